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
)

const ping = `{"name":"t","arguments":{}}`

// An answer that two readers could read differently is an error of that call, and of
// nothing else; one that cannot be read ends the connection.
func TestAnswers(t *testing.T) {
	for _, a := range []struct {
		name   string
		answer func(id string) string
		want   string // in the result, or in the error
		lost   bool
		ends   bool
	}{
		{"sound", func(id string) string { return result(id, `{"content":[],"x":12345678901234567890}`) }, `{"content":[],"x":12345678901234567890}`, false, false},
		{"pretty", func(id string) string { return ` {"result": {"a" : 1 }, "id":` + id + `,"jsonrpc":"2.0"} ` }, `{"a" : 1 }`, false, false},
		{"duplicate keys", func(id string) string { return result(id, `{"content":[],"a":{"b":1,"\u0062":2}}`) }, "duplicate key", true, false},
		{"invalid UTF-8", func(id string) string { return result(id, "{\"a\":\"\xff\"}") }, "invalid UTF-8", true, false},
		{"lone surrogate", func(id string) string { return result(id, `{"a":"\ud83d"}`) }, "lone surrogate", true, false},
		{"duplicate keys of the message", func(id string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{},"result":{"a":1}}`
		}, "duplicate key", true, true},
		{"not JSON", func(string) string { return "Server listening on port 1" }, "a JSON object is expected", true, true},
		{"a batch", func(id string) string { return "[" + result(id, "{}") + "]" }, "a JSON object is expected", true, true},
		{"too deep", func(id string) string { return result(id, strings.Repeat("[", 70)+strings.Repeat("]", 70)) }, "more than 64 levels", true, true},
		{"another protocol", func(id string) string { return `{"jsonrpc":"1.0","id":` + id + `,"result":{}}` }, `without "jsonrpc": "2.0"`, true, true},
		{"result and error", func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{},"error":{}}` }, "neither a request nor an answer", true, true},
		{"20 MiB", func(id string) string { return result(id, `"`+strings.Repeat("x", 20<<20)+`"`) }, "a line has more than 16777216 bytes", true, true},
	} {
		t.Run(a.name, func(t *testing.T) {
			_, dial := newHand(t, func(h *hand) {
				h.answers["tools/call"] = func(id, _ string) string { return a.answer(id) }
				h.answers["ping"] = func(id, _ string) string { return result(id, `{"pong":true}`) }
			})
			c := connected(t, dial, Options{})
			got, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil)
			if errors.Is(err, ErrLost) != a.lost || !strings.Contains(string(got)+fmt.Sprint(err), a.want) {
				t.Errorf("%s, %v; want %s", got, err, a.want)
			}
			got, err = c.Call(t.Context(), "ping", nil, nil)
			if ended := errors.Is(err, ErrNotSent); ended != a.ends || !ended && string(got) != `{"pong":true}` {
				t.Errorf("the next call: %s, %v", got, err)
			}
		})
	}
}

// Answers that nobody asked for change nothing.
func TestStrays(t *testing.T) {
	h, dial := newHand(t, func(h *hand) {
		h.answers["tools/call"] = func(id, _ string) string {
			return strings.Join([]string{
				result(`"w999"`, `"foreign"`), result(`7`, `"foreign"`), result(`null`, `"foreign"`),
				result(`{"w1":1}`, `"foreign"`), result(`"s1.1"`, `{"protocolVersion":"2025-11-25"}`),
				result(id, `"first"`), result(id, `"second"`),
			}, "\n")
		}
	})
	c := connected(t, dial, Options{})
	for range 2 {
		got, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil)
		if err != nil || string(got) != `"first"` {
			t.Fatalf("%s, %v", got, err)
		}
	}
	if _, err := c.Call(t.Context(), "nothing", nil, nil); err == nil {
		t.Fatal("it was answered")
	}
	if n := c.Stats().Strays; n != 12 {
		t.Errorf("%d strays", n)
	}
	_ = h
}

// A server that dies in the middle of a call leaves an outcome that nobody knows.
func TestDiesInTheMiddle(t *testing.T) {
	h, dial := newHand(t, nil)
	h.answers["tools/call"] = func(string, string) string { h.out.Close(); return "" }
	c := connected(t, dial, Options{})
	if _, err := c.Call(t.Context(), "tools/list", nil, nil); err != nil {
		t.Fatal(err)
	}
	_, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil)
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "the server closed its output") {
		t.Error(err)
	}
	<-c.Done()
}

// A server that never answers holds a call for as long as its caller waits, and one
// that does not read is given up.
func TestStalls(t *testing.T) {
	t.Run("answers nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, dial := newHand(t, func(h *hand) { h.answers["tools/call"] = func(string, string) string { return "" } })
			c := connected(t, dial, Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			if _, err := c.Call(ctx, "tools/call", json.RawMessage(ping), nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			if line := h.next(t, "notifications/cancelled"); !strings.Contains(line, `"requestId":"w1"`) {
				t.Error(line)
			}
			c.Close()
			synctest.Wait()
		})
	})
	t.Run("reads nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, dial := newHand(t, nil)
			block := make(chan struct{})
			h.answers["tools/call"] = func(string, string) string { <-block; return "" }
			c := connected(t, dial, Options{})
			began := time.Now()
			errs := make(chan error, 5)
			for range 5 {
				go func() {
					_, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil)
					errs <- err
				}()
			}
			for range 5 {
				if err := <-errs; !errors.Is(err, errStuck) || time.Since(began) != 10*time.Second {
					t.Errorf("%v after %s", err, time.Since(began))
				}
			}
			close(block)
			c.Close()
			synctest.Wait()
		})
	})
	t.Run("leaves the first question open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var late string
			h, dial := newHand(t, nil)
			h.answers["server/discover"] = func(id, _ string) string { late = id; return "" }
			answer := h.answers["initialize"]
			h.answers["initialize"] = func(id, params string) string {
				return result(late, `{"protocolVersion":"2024-11-05","capabilities":{}}`) + "\n" + answer(id, params)
			}
			began := time.Now()
			c := connected(t, dial, Options{})
			if c.Version() != legacy || time.Since(began) != probe || late != `"s1.1"` {
				t.Errorf("%s after %s, %s", c.Version(), time.Since(began), late)
			}
			c.Close()
			synctest.Wait()
		})
	})
	t.Run("never connects", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			from, _ := io.Pipe()
			_, to := io.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			began := time.Now()
			if _, err := Stdio(ctx, from, to, Options{}); err == nil || time.Since(began) != 8*time.Second {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			synctest.Wait()
		})
	})
}

// What a server sends without being asked is dropped beyond a rate, and ends its
// connection far beyond it.
func TestFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notices := 0
		h, dial := newHand(t, nil)
		h.answers["tools/call"] = func(id, params string) string {
			var b strings.Builder
			for range 1000 {
				b.WriteString(`{"jsonrpc":"2.0","method":"notifications/whatever"}` + "\n")
			}
			return b.String() + result(id, `"done"`)
		}
		c := connected(t, dial, Options{Notice: func(string, json.RawMessage) { notices++ }})
		got, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil)
		if err != nil || string(got) != `"done"` || notices != floodBurst || c.Stats().Dropped != 800 {
			t.Fatalf("%s, %v, %d notices, %+v", got, err, notices, c.Stats())
		}
		time.Sleep(time.Second) // of the bubble
		if _, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil); err != nil || notices != floodBurst+floodRate {
			t.Fatalf("%v, %d notices", err, notices)
		}
		go func() {
			line := strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/whatever"}`+"\n", 1000)
			for c.Err() == nil {
				h.write(h.out, line)
			}
		}()
		<-c.Done()
		if !strings.Contains(c.Err().Error(), "the server floods") {
			t.Error(c.Err())
		}
		c.Close()
		synctest.Wait()
	})
}

// What a server asks of the client is answered, and most of it with no.
func TestRequestsOfTheServer(t *testing.T) {
	h, dial := newHand(t, nil)
	connected(t, dial, Options{Sampling: true})
	for _, q := range []struct{ ask, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`{"jsonrpc":"2.0","id":"a","method":"roots/list"}`, `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"roots are not offered"}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{}}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"elicitation/create is refused: it is not relayed here"}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"sampling/createMessage is refused: it cannot be told on behalf of which call it is"}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{}}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"the client has no such method"}}`},
	} {
		h.say(q.ask)
		if got := h.next(t, ""); got != q.want {
			t.Errorf("%s\n got %s\nwant %s", q.ask, got, q.want)
		}
	}
}

// On pipes that calls share, a request is given to a caller only when it can be no
// other's, whether that other one takes requests or not.
func TestAskedWithTwoCallsUnderWay(t *testing.T) {
	for _, other := range []string{"takes", "takes nothing"} {
		t.Run(other, func(t *testing.T) {
			ids := make(chan string, 2)
			h, dial := newHand(t, func(h *hand) {
				h.answers["tools/call"] = func(id, _ string) string { ids <- id; return "" }
			})
			c := connected(t, dial, Options{Sampling: true})
			var asked atomic.Int32
			takes := &peer{ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				asked.Add(1)
				return json.RawMessage(`{"model":"m"}`), nil
			}}
			done := make(chan error, 2)
			call := func(p Peer) {
				_, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), p)
				done <- err
			}
			go call(takes)
			first := <-ids
			const question = `{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{}}`
			h.say(fmt.Sprintf(question, 1))
			if got := h.next(t, ""); got != `{"jsonrpc":"2.0","id":1,"result":{"model":"m"}}` {
				t.Error(got)
			}
			if other == "takes" {
				go call(takes)
			} else {
				go call(nil)
			}
			second := <-ids
			h.say(fmt.Sprintf(question, 2))
			if got := h.next(t, ""); !strings.Contains(got, `"id":2,"error"`) {
				t.Error(got)
			}
			h.say(result(first, `{}`))
			h.say(result(second, `{}`))
			if err := errors.Join(<-done, <-done); err != nil || asked.Load() != 1 {
				t.Errorf("%v, asked %d times", err, asked.Load())
			}
		})
	}
}

// An answer that comes while a question is open ends both.
func TestAnswerWithAQuestionOpen(t *testing.T) {
	h, dial := newHand(t, nil)
	h.answers["tools/call"] = func(id, _ string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}` + "\n" + result(id, `"early"`)
	}
	c := connected(t, dial, Options{Sampling: true})
	got, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), &peer{ask: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if err != nil || string(got) != `"early"` {
		t.Errorf("%s, %v", got, err)
	}
	if got := h.next(t, ""); !strings.Contains(got, `"id":1,"error"`) {
		t.Error(got)
	}
}

// Servers reached by HTTP, by hand.
func TestHostileHTTP(t *testing.T) {
	const jsonType, stream = "application/json", "text/event-stream"
	for _, a := range []struct {
		name   string
		answer func(w http.ResponseWriter, id string)
		want   string
		is     error
	}{
		{"sound", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", jsonType)
			io.WriteString(w, result(id, `{"x":12345678901234567890}`))
		}, `{"x":12345678901234567890}`, nil},
		{"sound stream", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", stream)
			io.WriteString(w, ": hello\r\nevent: message\r\nid: 1\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"notifications/x\"}\r\n\r\ndata: "+result(id, `{"a":1}`)+"\n\n")
		}, `{"a":1}`, nil},
		{"a redirect", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(307)
		}, "HTTP status 307", ErrNotSent},
		{"a page", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>")
		}, `an answer of type "text/html"`, ErrLost},
		{"20 MiB", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", jsonType)
			io.WriteString(w, result(id, `"`+strings.Repeat("x", 20<<20)+`"`))
		}, "the server's answer has more than 16777216 bytes", ErrLost},
		{"an event of 20 MiB", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", stream)
			io.WriteString(w, "data: "+result(id, `"`+strings.Repeat("x", 20<<20)+`"`)+"\n\n")
		}, "a line has more than 16777216 bytes", ErrLost},
		{"an event of many lines", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", stream)
			io.WriteString(w, strings.Repeat("data: "+strings.Repeat(" ", 1<<20)+"\n", 20))
		}, "an event has more than 16777216 bytes", ErrLost},
		{"comments without end", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", stream)
			for {
				if _, err := io.WriteString(w, strings.Repeat(": \n", 1000)); err != nil {
					return
				}
			}
		}, "of a stream without an event", ErrLost},
		{"a cut stream", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", stream)
			io.WriteString(w, "data: "+result(id, `{}`)[:20])
		}, "the stream ended before the answer", ErrLost},
		{"another call's answer", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", jsonType)
			io.WriteString(w, result(`"w999"`, `{}`))
		}, "the body is not the answer", ErrLost},
		{"duplicate keys", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", jsonType)
			io.WriteString(w, result(id, `{"a":1,"b":{"c":1,"c":2}}`))
		}, "duplicate key", ErrLost},
		{"a server's fault", func(w http.ResponseWriter, _ string) { w.WriteHeader(503) }, "HTTP status 503", ErrLost},
		{"refused", func(w http.ResponseWriter, _ string) { w.WriteHeader(401) }, "HTTP status 401", ErrNotSent},
	} {
		t.Run(a.name, func(t *testing.T) {
			dial := overHandler(t, handHTTP(func(w http.ResponseWriter, method, id string) { a.answer(w, id) }))
			c := connected(t, dial, Options{})
			got, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil)
			if a.is == nil && err != nil || a.is != nil && !errors.Is(err, a.is) || !strings.Contains(string(got)+fmt.Sprint(err), a.want) {
				t.Errorf("%s, %v", got, err)
			}
			if c.Err() != nil {
				t.Errorf("the connection ended: %v", c.Err())
			}
		})
	}
}

// A piece of a stream that is carriage returns alone is not many times its size here.
func TestCarriageReturns(t *testing.T) {
	stream := strings.Repeat("\r", defaultMessage-2) + "\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := newEventReader(strings.NewReader(stream), defaultMessage).next()
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "of a stream without an event") {
		t.Error(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 10*defaultMessage {
		t.Errorf("%d bytes take %d", len(stream), took)
	}
}

// What comes on the stream of one call is no answer to another.
func TestAnswerOnAnotherStream(t *testing.T) {
	both := make(chan string, 2)
	answered := make(chan struct{})
	var n atomic.Int32
	c := connected(t, overHandler(t, handHTTP(func(w http.ResponseWriter, _, id string) {
		w.Header().Set("Content-Type", "application/json")
		if n.Add(1) == 1 {
			io.WriteString(w, result(<-both, `"forged"`))
			return
		}
		both <- id
		<-answered
		io.WriteString(w, result(id, `"own"`))
	})), Options{})
	forged := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil)
		forged <- err
		close(answered)
	}()
	for n.Load() == 0 { // the first is there
		runtime.Gosched()
	}
	got, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), nil)
	if err != nil || string(got) != `"own"` {
		t.Errorf("%s, %v", got, err)
	}
	if err := <-forged; !errors.Is(err, ErrLost) || c.Stats().Strays != 1 {
		t.Errorf("%v, %+v", err, c.Stats())
	}
}

// handHTTP is a server of the older generation by hand; answer is for everything
// after the handshake.
func handHTTP(answer func(w http.ResponseWriter, method, id string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(405)
			return
		}
		json.NewDecoder(r.Body).Decode(&m)
		switch m.Method {
		case "server/discover":
			w.WriteHeader(400)
		case "initialize":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", "session")
			io.WriteString(w, result(string(m.ID), `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hand","version":"1"}}`))
		case "notifications/initialized", "notifications/cancelled", "":
			w.WriteHeader(202)
		default:
			answer(w, m.Method, string(m.ID))
		}
	}
}
