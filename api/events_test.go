package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/ledger"
)

// append1 writes one entry of an agent.
func (w *world) append1(agent string) {
	w.t.Helper()
	if err := w.engine.Ledger().Append(w.t.Context(), ledger.Entry{Kind: "test", Agent: agent}); err != nil {
		w.t.Error(err)
	}
}

// However often a reader breaks off, and whoever writes meanwhile, it sees every
// entry once and in order.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	const writers, each = 4, 50
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range each {
				w.append1("coder")
			}
		})
	}
	seen, tests := int64(0), 0
	for tests < writers*each {
		n := 0
		for e, err := range w.operator.Events(t.Context(), seen) {
			must(t, err)
			if b := bodyOf(t, e.Entry); e.Seq != seen+1 || b.Seq != e.Seq || b.Kind != e.Kind {
				t.Fatalf("after %d comes %d: %s", seen, e.Seq, e.Body)
			}
			seen = e.Seq
			if e.Kind == "test" {
				tests++
			}
			if n++; n == 37 || tests == writers*each {
				break
			}
		}
	}
	writing.Wait()
}

// The header of a reader that comes back counts more than the query it began with;
// without either a stream begins now.
func TestEventsBegin(t *testing.T) {
	w := newWorld(t)
	first := func(target string, header ...string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", "http://writ"+target, nil)
		must(t, err)
		for _, h := range header {
			req.Header.Set("Last-Event-ID", h)
		}
		resp, err := w.doors[operatorDoor].Do(req)
		must(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Request-ID") == "" {
			t.Errorf("%s: %v", target, resp)
		}
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadString('\n')
			must(t, err)
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				return strings.TrimSpace(id)
			}
			if strings.HasPrefix(line, ": entries") {
				w.append1("coder") // the stream is there: this is new to it
			}
		}
	}
	if got := first("/v1/events?after=0"); got != "1" {
		t.Errorf("after=0 begins at %s", got)
	}
	if got := first("/v1/events?after=0", "2"); got != "3" {
		t.Errorf("Last-Event-ID 2 goes on at %s", got)
	}
	end, err := w.operator.LedgerTail(t.Context(), 1)
	must(t, err)
	if got, want := first("/v1/events"), fmt.Sprint(bodyOf(t, end[0]).Seq+1); got != want {
		t.Errorf("it begins at %s, want %s", got, want)
	}
}

// An agent gets its own entries and those of agents below it, ended ones too.
func TestEventsOfAgents(t *testing.T) {
	w := newWorld(t)
	w.token("helper")
	w.token("other")
	kid, err := w.agent("coder").Delegate(t.Context(), client.DelegationRequest{Name: "kid", LastsSeconds: 60})
	must(t, err)
	w.append1("helper")
	w.append1("other")
	w.append1("")
	w.append1("coderx")
	must(t, w.agent("coder").EndDelegation(t.Context(), kid.Agent))
	w.append1(kid.Agent)
	for _, agent := range []string{"helper", "other", "coder"} {
		w.append1(agent) // the last that each of them can see
	}
	for who, want := range map[string][]string{"coder": {"coder", kid.Agent, "helper"}, "helper": {"helper"}, "other": {"other"}} {
		seen := map[string]int{}
		for e, err := range w.agent(who).Events(t.Context(), 0) {
			must(t, err)
			b := bodyOf(t, e.Entry)
			seen[b.Agent]++
			if b.Kind == "test" && b.Agent == who && (who == "coder" || seen[who] > 2) {
				break
			}
		}
		var names []string
		for n := range seen {
			names = append(names, n)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%s sees %v, want %v", who, seen, want)
		}
	}
}

// open opens a stream and returns once it is there.
func (w *world) open(c *client.Client) (next func() (client.Event, error), end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	events := make(chan client.Event)
	failed := make(chan error, 1)
	go func() {
		for e, err := range c.Events(ctx, 0) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
			}
		}
	}()
	return func() (client.Event, error) {
		select {
		case e := <-events:
			return e, nil
		case err := <-failed:
			return client.Event{}, err
		}
	}, cancel
}

func TestEventLimits(t *testing.T) {
	w := newWorld(t, func(l *limits) { l.streams, l.agentStreams = 3, 2 })
	stream := func(who string) (func() (client.Event, error), func()) {
		next, end := w.open(w.agent(who))
		_, err := next()
		must(t, err)
		return next, end
	}
	w.append1("other")
	stream("coder")
	_, end := stream("coder")
	w.refused(ask{agentDoor, "coder", "GET", "/v1/events", nil, ""}, 409, writ.Conflict, "this agent has too many streams open; close some")
	stream("other")
	w.refused(ask{agentDoor, "helper", "GET", "/v1/events", nil, ""}, 409, writ.Conflict, "too many streams are open here; try again later")
	next, _ := w.open(w.operator)
	_, err := next() // the operator's door has its own
	must(t, err)
	end()
	for { // a stream that was closed makes room, as soon as the daemon sees it
		next, _ := w.open(w.agent("coder"))
		if _, err := next(); err == nil {
			break
		}
	}
}

// A stream ends with its token and with the daemon.
func TestEventsEnd(t *testing.T) {
	w := newWorld(t)
	until := func(next func() (client.Event, error)) error {
		for {
			if _, err := next(); err != nil {
				return err
			}
		}
	}
	coder, _ := w.open(w.agent("coder"))
	_, err := coder()
	must(t, err)
	must(t, w.operator.RevokeToken(t.Context(), w.ids["coder"]))
	if err := until(coder); err.Error() != "the stream ended: EOF" {
		t.Errorf("revoked: %v", err)
	}
	operator, _ := w.open(w.operator)
	_, err = operator()
	must(t, err)
	w.end()
	if err := until(operator); err.Error() != "the stream ended: EOF" {
		t.Errorf("shutdown: %v", err)
	}
}

// A stream with nothing to say says that it is alive.
func TestHeartbeat(t *testing.T) {
	w := newWorld(t, func(l *limits) { l.heartbeat = 10 * time.Millisecond })
	resp, err := w.doors[operatorDoor].Get("http://writ/v1/events")
	must(t, err)
	defer resp.Body.Close()
	text := make([]byte, len(": entries of the ledger as they are committed\n\n: \n\n: \n\n"))
	_, err = io.ReadFull(resp.Body, text)
	must(t, err)
	if string(text) != ": entries of the ledger as they are committed\n\n: \n\n: \n\n" {
		t.Errorf("%q", text)
	}
}

// A reader that does not read is dropped, and its place is free again.
func TestUnreadStream(t *testing.T) {
	w := newWorld(t, func(l *limits) { l.streams, l.unread = 1, time.Second })
	var writing sync.WaitGroup
	for range 50 {
		writing.Go(func() {
			for range 40 {
				w.append1(strings.Repeat("x", 1000))
			}
		})
	}
	writing.Wait() // far more than a socket holds
	c, err := net.Dial("unix", client.SocketPath(filepath.Join(w.dir, "state")))
	must(t, err)
	defer c.Close()
	fmt.Fprintf(c, "GET /v1/events?after=0 HTTP/1.1\r\nHost: writ\r\n\r\n")
	one := make([]byte, 1)
	_, err = c.Read(one) // it is there
	must(t, err)
	if got := w.ask(ask{operatorDoor, "", "GET", "/v1/events", nil, ""}); got.status != 409 {
		t.Errorf("it was dropped at once: %d", got.status)
	}
	for {
		next, end := w.open(w.operator)
		_, err := next()
		end()
		if err == nil {
			break
		}
	}
}
