package cli

import (
	"testing"
	"time"

	"github.com/writ-run/writ/client"
)

func TestWaitingLine(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.Local)
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339Nano) }
	approved := waitingLine{since: now.Add(-time.Hour)}
	approved.look(client.Approval{State: "pending", By: "nobody", Expires: at(0)}, now)
	if approved.by != "" {
		t.Error("what waits is approved")
	}
	approved.look(client.Approval{State: "used", By: "al\x1bice"}, now.Add(-time.Second))
	approved.look(client.Approval{State: "used", By: "al\x1bice"}, now)
	for _, c := range []struct {
		line waitingLine
		want string
	}{
		{waitingLine{since: now.Add(-72 * time.Second), until: at(time.Hour), quorum: 1}, "waiting for a person 1m12s, until 13:00; Ctrl-C leaves it pending"},
		{waitingLine{since: now, until: at(24 * time.Hour), quorum: 2}, "waiting for 2 people 0s, until 16 Nov 12:00; Ctrl-C leaves it pending"},
		{waitingLine{since: now, until: "9999-12-31T23:59:59Z"}, "waiting for a person 0s; Ctrl-C leaves it pending"},
		{waitingLine{since: now}, "waiting for a person 0s; Ctrl-C leaves it pending"},
		{approved, "approved by al<U+001B>ice; running for 1s; Ctrl-C ends it"},
	} {
		if got := c.line.text(now); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
