package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/store"
)

// Where nobody can have anything rendered, agents see what became of their requests all
// the same, and people see the list and stop everybody: none of that renders anything.
func TestAgentsHaveNothingRendered(t *testing.T) {
	w := newWorld(t, func(l *limits) { l.renderings = 0 })
	id := w.send("coder", strings.Repeat("\u202e", 1<<18))
	a, err := w.agent("coder").Approval(t.Context(), id)
	must(t, err)
	if a.State != "pending" || a.Digest == "" || a.ArgsBytes != 3<<18+11 || a.Shown != nil || a.Display != nil {
		t.Errorf("%+v", a)
	}
	for _, d := range []door{agentDoor, operatorDoor} {
		for _, target := range []string{"/v1/approvals/" + id, "/v1/approvals"} {
			if got := w.ok(ask{d, "coder", "GET", target, nil, ""}); strings.Contains(got.body, "202") && len(got.body) > 2000 {
				t.Errorf("%s: %d bytes", target, len(got.body))
			}
		}
	}
	w.refused(ask{operatorDoor, "coder", "GET", "/v1/approvals/" + id + "/argument?pointer=%2Ftext", nil, ""}, 403, writ.Denied,
		"this is for the operator, and a token makes you its agent; leave the token out")
	listed, err := w.operator.Approvals("pending").All(t.Context())
	must(t, err)
	if len(listed) != 1 || listed[0].Preview != "… (786,443 bytes)" {
		t.Errorf("%+v", listed)
	}
	// Whoever does have something rendered waits, until they give up.
	for _, look := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := w.operator.Approval(ctx, id); return err },
		func(ctx context.Context) error { _, err := w.operator.Argument(ctx, id, "/text", 1); return err },
		func(ctx context.Context) error {
			_, err := w.operator.PreviewEdit(ctx, id, json.RawMessage(`{"text":"x"}`))
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
		if err := look(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it did not wait: %v", err)
		}
		cancel()
	}
	must(t, w.operator.Stop(t.Context(), client.StopRequest{Agent: "coder", Reason: "enough"}))
}

// No more than so many are rendered at once, the others wait their turn, and nobody waits
// who has gone.
func TestRenderedInTurn(t *testing.T) {
	s := &Server{rendering: make(chan struct{}, usual().renderings)}
	asking := func(ctx context.Context) *exchange {
		return &exchange{Server: s, r: (&http.Request{}).WithContext(ctx)}
	}
	began, end, ended := make(chan int), make(chan struct{}), make(chan error)
	for n := range 5 {
		go func() {
			_, err := asking(t.Context()).rendered(func() (any, error) { began <- n; <-end; return n, nil })
			ended <- err
		}()
	}
	<-began
	<-began
	gone, leave := context.WithCancel(t.Context())
	leave()
	if v, err := asking(gone).rendered(func() (any, error) { return "rendered", nil }); v != nil || writ.KindOf(err) != writ.Cancelled {
		t.Errorf("a third: %v, %v", v, err)
	}
	for range 3 {
		end <- struct{}{} // one of two ends, and only then does the next begin
		must(t, <-ended)
		<-began
	}
	for range 2 {
		end <- struct{}{}
		must(t, <-ended)
	}
	if v, err := asking(t.Context()).rendered(func() (any, error) { return "rendered", nil }); v != "rendered" || err != nil {
		t.Errorf("%v, %v", v, err)
	}
}

// What is too much to be shown is not shown in part, and whoever looks is told what to do.
func TestTooMuchToShow(t *testing.T) {
	x := &exchange{Server: &Server{}, r: (&http.Request{}).WithContext(t.Context())}
	show := func(args string) (client.Approval, error) {
		return x.wholeApproval(approval.Request{Invocation: store.Invocation{ID: "call_x"}, Shown: &approval.Shown{Args: json.RawMessage(args)}})
	}
	nasty := "рay∕y⁄y․y‐y\u202e\u200b\u2066\u00ad\ufeff <0x1>" // has far more to be said about it than there is of it
	for args, detail := range map[string]string{
		`["` + strings.Repeat(nasty+`","`, 100_000) + `"]`:                           errTooMuch.Error() + ": writ invocation cancel call_x",
		`{"` + strings.Repeat("k", 1<<20) + `":[` + strings.Repeat("0,", 20) + `0]}`: display.ErrTooLong.Error() + ": writ invocation cancel call_x",
	} {
		if _, err := show(args); writ.KindOf(err) != writ.TooLarge || err.Error() != detail {
			t.Errorf("%.20q…: %v", args, err)
		}
	}
	v, err := show(`["` + strings.Repeat(nasty+`","`, 1000) + `"]`) // the control
	if err != nil || len(v.Display) != 1001 || v.Display[0].Pointer != "[0]" || len(v.Display[0].Warnings) < 5 {
		t.Errorf("%d are shown: %v", len(v.Display), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x.r = x.r.WithContext(ctx)
	if _, err := show(`{"a":"x"}`); writ.KindOf(err) != writ.Cancelled {
		t.Errorf("%v", err)
	}
}

// BenchmarkLargeRequest is what it costs to look at one request with the largest
// arguments, made of a character that has to be spelled out.
func BenchmarkLargeRequest(b *testing.B) {
	w := newWorld(b)
	id := w.send("coder", strings.Repeat("\u202e", 4_900_000))
	agent := w.agent("coder")
	for name, look := range map[string]func() error{
		"agent": func() error { _, err := agent.Approval(b.Context(), id); return err },
		"whole": func() error { _, err := w.operator.Approval(b.Context(), id); return err },
		"page":  func() error { _, err := w.operator.Argument(b.Context(), id, "/text", 700); return err },
		"list":  func() error { _, err := w.operator.Approvals("pending").All(b.Context()); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, look())
			}
		})
	}
}
