package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ"
)

// A real server, kept: connected, read, called, read again when it changes, closed.
func TestServerIsKept(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := everything(way.version)
			dial := way.dial(t, s, way.version)
			offers := make(chan Offer, 10)
			u, err := Start(Spec{Name: "every", Connect: dial, Disabled: []string{"works"}, OnChange: func(o Offer) { offers <- o }})
			if err != nil {
				t.Fatal(err)
			}
			o := <-offers
			if err := u.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := names(o); got != "echo fails | file:///a | file:///{+path} | greet | be kind" || o.Version != way.version || len(o.Refused) > 0 {
				t.Errorf("%s, %s, %v", got, o.Version, o.Refused)
			}
			if !strings.Contains(string(o.ServerInfo), `"name":"everything"`) {
				t.Errorf("%s", o.ServerInfo)
			}
			got, err := u.CallTool(t.Context(), "echo", json.RawMessage(`{"a":1}`), nil)
			if err != nil || !strings.Contains(string(got), `{\"a\":1}`) {
				t.Errorf("%s, %v", got, err)
			}
			s.AddTool(&mcp.Tool{Name: "more", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
			u.Refresh()
			if o := <-offers; !strings.HasPrefix(names(o), "echo fails more |") {
				t.Errorf("%s", names(o))
			}
			u.Close()
			if st := u.State(); st.Phase != Closed {
				t.Errorf("%+v", st)
			}
			if _, err := u.CallTool(t.Context(), "echo", nil, nil); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		})
	}
}

// Close leaves no goroutine behind, whatever was under way.
func TestCloseLeavesNothing(t *testing.T) {
	for _, way := range ways {
		before := runtime.NumGoroutine()
		t.Run(way.name, func(t *testing.T) {
			s := everything(way.version)
			began := make(chan struct{}, 3)
			s.AddTool(&mcp.Tool{Name: "hangs", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				began <- struct{}{}
				select {
				case <-ctx.Done():
				case <-t.Context().Done():
				}
				return nil, errors.New("ended")
			})
			u, err := Start(Spec{Name: "every", Connect: way.dial(t, s, way.version)})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 3)
			for range 3 {
				go func() {
					_, err := u.CallTool(t.Context(), "hangs", nil, &peer{})
					ended <- err
				}()
				<-began
			}
			u.Close()
			for range 3 {
				if err := <-ended; writ.KindOf(err) != writ.Unknown {
					t.Error(err)
				}
			}
		})
		settled(t, before)
	}
}

func names(o Offer) string {
	var b strings.Builder
	for _, t := range o.Tools {
		b.WriteString(t.Name + " ")
	}
	b.WriteString("| ")
	for _, r := range o.Resources {
		b.WriteString(r.URI + " ")
	}
	b.WriteString("| ")
	for _, r := range o.Templates {
		b.WriteString(r.URI + " ")
	}
	b.WriteString("| ")
	for _, p := range o.Prompts {
		b.WriteString(p.Name + " ")
	}
	return b.String() + "| " + o.Instructions
}

// A server that cannot be reached is tried again, each time after a longer wait, and
// callers are told at once.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var tries []time.Duration
		u, err := Start(Spec{Name: "gone", Connect: func(context.Context, Options) (*Conn, error) {
			tries = append(tries, time.Since(began))
			return nil, errors.New("nobody there")
		}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, err = u.CallTool(t.Context(), "t", nil, nil)
		if kind, msg := writ.Public(err); kind != writ.Internal || msg != "the server gone is not connected; nothing was done, and it is tried again in 1s" || !errors.Is(err, ErrNotSent) {
			t.Errorf("%s, %v", kind, err)
		}
		time.Sleep(5 * time.Minute)
		u.Close()
		for i, least := 1, time.Second; i < len(tries); i, least = i+1, min(2*least, longestWait) {
			if wait := tries[i] - tries[i-1]; wait < least || wait > least+least/4 {
				t.Errorf("attempt %d came %s after the last, want %s to %s", i, wait, least, least+least/4)
			}
		}
		if len(tries) < 9 || len(tries) > 11 {
			t.Errorf("%d attempts in five minutes", len(tries))
		}
		if st := u.State(); st.Phase != Closed {
			t.Errorf("%+v", st)
		}
	})
}

// A lazy server is connected when somebody wants it.
func TestLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := newHand(t, func(h *hand) { h.answers["tools/call"] = func(id, _ string) string { return result(id, `{}`) } })
		dials := 0
		u, err := Start(Spec{Name: "lazy", Lazy: true, Connect: func(ctx context.Context, o Options) (*Conn, error) { dials++; return dial(ctx, o) }})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if st := u.State(); st.Phase != Idle || dials != 0 {
			t.Errorf("%+v, %d", st, dials)
		}
		if _, err := u.CallTool(t.Context(), "t", nil, nil); err != nil || dials != 1 {
			t.Errorf("%v, %d", err, dials)
		}
		u.Close()
		synctest.Wait()
	})
}

// A flood of changes is read at most twice a second, and what did not change is
// not told.
func TestRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads, told int
		var description atomic.Value
		description.Store("one")
		h, dial := newHand(t, func(h *hand) {
			h.answers["tools/list"] = func(id, _ string) string {
				reads++
				return result(id, fmt.Sprintf(`{"tools":[{"name":"t","description":%q,"inputSchema":{"type":"object"}}]}`, description.Load()))
			}
		})
		u, err := Start(Spec{Name: "restless", Connect: dial, OnChange: func(Offer) { told++ }})
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
		for range 200 {
			h.say(changed)
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		if reads < 18 || reads > 22 || told != 1 {
			t.Errorf("%d reads, %d told", reads, told)
		}
		first, _ := u.Offer()
		description.Store("two")
		h.say(changed)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		second, _ := u.Offer()
		if told != 2 || first.Tools[0].Digest == second.Tools[0].Digest || second.Tools[0].Description != "two" {
			t.Errorf("%d told, %+v", told, second.Tools)
		}
		u.Close()
		synctest.Wait()
	})
}

// After a crash the server is connected again, and what it offers is read again.
func TestReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := 0
		dial := func(ctx context.Context, o Options) (*Conn, error) {
			version++
			_, connect := newHand(t, func(h *hand) {
				answer := fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}`, version)
				h.answers["tools/list"] = func(id, _ string) string { return result(id, answer) }
				h.answers["tools/call"] = func(id, _ string) string { h.out.Close(); return "" }
			})
			return connect(ctx, o)
		}
		var states []string
		u, err := Start(Spec{Name: "fragile", Connect: dial, OnState: func(s State) { states = append(states, string(s.Phase)) }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = u.CallTool(t.Context(), "t", nil, nil)
		if kind, msg := writ.Public(err); kind != writ.Unknown || msg != "the server fragile went away before it answered; whether it did anything is not known" {
			t.Errorf("%s, %v", kind, err)
		}
		synctest.Wait()
		time.Sleep(2 * time.Second)
		if o, _ := u.Offer(); len(o.Tools) != 1 || o.Tools[0].Name != "t2" {
			t.Errorf("%+v", o.Tools)
		}
		u.Close()
		if d := cmp.Diff([]string{"starting", "ready", "failed", "starting", "ready", "closed"}, states); d != "" {
			t.Error(d)
		}
		synctest.Wait()
	})
}

func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := newHand(t, func(h *hand) { h.answers["tools/call"] = func(string, string) string { return "" } })
		u, err := Start(Spec{Name: "slow", Connect: dial})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = u.CallTool(t.Context(), "t", nil, nil)
		if kind, msg := writ.Public(err); kind != writ.Unknown || msg != "the server slow did not answer within 30s (call_timeout); whether it did anything is not known" || time.Since(began) != 30*time.Second {
			t.Errorf("%s, %v after %s", kind, err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = u.CallTool(ctx, "t", nil, nil); writ.KindOf(err) != writ.Cancelled {
			t.Error(err)
		}
		u.Close()
		synctest.Wait()
	})
}

// A session that the server has forgotten is made again, and the call with it.
func TestForgottenSession(t *testing.T) {
	var calls, sessions atomic.Int32
	inner := handHTTP(func(w http.ResponseWriter, method, id string) {
		w.Header().Set("Content-Type", "application/json")
		if method == "tools/list" {
			io.WriteString(w, result(id, `{"tools":[]}`))
			return
		}
		if calls.Add(1) == 1 {
			w.WriteHeader(404)
			return
		}
		io.WriteString(w, result(id, `{"content":[]}`))
	})
	dial := overHandler(t, inner)
	u, err := Start(Spec{Name: "web", Connect: func(ctx context.Context, o Options) (*Conn, error) {
		sessions.Add(1)
		return dial(ctx, o)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if err := u.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := u.CallTool(t.Context(), "t", nil, nil)
	if err != nil || string(got) != `{"content":[]}` || calls.Load() != 2 || sessions.Load() != 2 {
		t.Errorf("%s, %v, %d calls, %d sessions", got, err, calls.Load(), sessions.Load())
	}
}

// Lists are read to their end, or to a bound that the offer names.
func TestPages(t *testing.T) {
	tool := func(n int) string { return fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, n) }
	for _, p := range []struct {
		name    string
		page    func(cursor string) string
		tools   int
		refused string
	}{
		{"three pages", func(c string) string {
			return map[string]string{"": page([]string{tool(1)}, "a"), "a": page([]string{tool(2)}, "b"), "b": page([]string{tool(3)}, "")}[c]
		}, 3, ""},
		{"a loop", func(c string) string { return page([]string{tool(len(c))}, c+"x") }, 100, `the rest of tools/list: it has more than 100 pages`},
		{"back to the first", func(c string) string {
			return map[string]string{"": page([]string{tool(1)}, "a"), "a": page([]string{tool(2)}, "a")}[c]
		}, 2, "the rest of tools/list: its pages lead back to one that was read"},
		{"1,500 tools", func(string) string {
			var all []string
			for n := range 1500 {
				all = append(all, tool(n))
			}
			return page(all, "")
		}, 1000, "the rest of tools/list: it has more than 1000 entries"},
		{"9 MiB", func(c string) string {
			return page([]string{fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"},"x":%q}`, len(c), strings.Repeat("x", 200<<10))}, c+"x")
		}, 40, "the rest of tools/list: it has more than 8388608 bytes"},
	} {
		t.Run(p.name, func(t *testing.T) {
			_, dial := newHand(t, func(h *hand) {
				h.answers["tools/list"] = func(id, params string) string {
					return result(id, p.page(text(field([]byte(params), "cursor"))))
				}
			})
			c := connected(t, dial, Options{})
			o, err := read(t.Context(), c, func(string) bool { return true })
			if err != nil || len(o.Tools) != p.tools {
				t.Fatalf("%d tools, %v", len(o.Tools), err)
			}
			said := ""
			for _, r := range o.Refused {
				said += r.Name + ": " + r.Why
			}
			if said != p.refused {
				t.Errorf("refused %q", said)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"Up":      `server name "Up": use a-z, 0-9, - and single _ between them, such as my_server`,
		"writ_db": `server name "writ_db" is writ's own; choose another`,
		"fine":    "server fine has nothing to connect with",
	} {
		if _, err := Start(Spec{Name: name}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
