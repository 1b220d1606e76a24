package ledger

import (
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
)

// Counter is where started calls are counted: a transaction, or the store as it is.
type Counter interface {
	Full(u store.Use, q writ.Quota, since string) (bool, string, error)
	Succeeded(task, tool string) (bool, error)
}

// Room is nil when a call has a place within everything that bounds it, and
// otherwise the denial that says what is used up and when to come again.
func Room(c Counter, call writ.Call, r writ.Reserve, now time.Time) error {
	use := UseOf(call, now)
	for _, tool := range r.After {
		ok, err := c.Succeeded(use.Task, tool)
		if err != nil {
			return err
		}
		if !ok {
			return full(fmt.Sprintf("tool %s runs only after %s has succeeded in this task", use.Tool, tool))
		}
	}
	for _, q := range r.Quotas {
		none, oldest, err := c.Full(use, q, store.Since(now, q.Window, TimeFormat))
		if err != nil {
			return err
		}
		if none {
			return full(exhausted(use.Tool, q, oldest, now))
		}
	}
	return nil
}

// UseOf is a call as it is counted.
func UseOf(c writ.Call, now time.Time) store.Use {
	return store.Use{Call: c.ID, Agent: c.Root(), Tool: c.Tool, Session: c.Session, Task: c.Task, At: now.UTC().Format(TimeFormat)}
}

func full(text string) error {
	reason := writ.Reason{Effect: writ.Deny, Source: "constraints", Text: text, Where: "counted"}
	return &writ.Error{Kind: writ.Denied, Msg: "denied: " + text, Reasons: []writ.Reason{reason}}
}

func exhausted(tool string, q writ.Quota, oldest string, now time.Time) string {
	if q.Per != writ.PerWindow {
		return fmt.Sprintf("tool %s was used %s in this %s, which is all it may be", tool, times(q.Max), q.Per)
	}
	again := ""
	if at, err := time.Parse(TimeFormat, oldest); err == nil {
		again = fmt.Sprintf("; again in %s", max(time.Second, at.Add(q.Window).Sub(now).Round(time.Second)))
	}
	return fmt.Sprintf("tool %s was used %s within %s, which is all it may be%s", tool, times(q.Max), span(q.Window), again)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// span is a window as it is written.
func span(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
