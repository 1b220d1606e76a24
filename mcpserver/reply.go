package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ/wire"
)

// unread is how long a client may leave a write waiting. Longer, and it would hold a
// call's goroutine, and everything behind it, for ever.
const unread = 10 * time.Second

// reply is the answer to one request: a JSON body where nothing else is said before
// it, else a stream of events. Safe for concurrent use.
type reply struct {
	w       http.ResponseWriter
	streams bool // the client takes a stream of events

	mu    sync.Mutex
	begun bool  // the stream
	over  bool  // the answer was given
	err   error // the client is gone
}

func newReply(w http.ResponseWriter, r *http.Request) *reply {
	_, streams := accepts(r)
	return &reply{w: w, streams: streams}
}

var errNoStream = errors.New("the client takes no stream, or the answer was given")

// say sends a notification or a request of ours before the answer.
func (r *reply) say(msg []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.streams || r.over {
		return errNoStream
	}
	return r.event(msg)
}

// start begins the stream before there is anything to say.
func (r *reply) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head()
	r.write([]byte(": \n\n"))
}

// leave has the client's end of a pipe keep what it answers should this daemon be gone
// before it does. Others read over it.
func (r *reply) leave(msg []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams && !r.over {
		r.head()
		r.write(append(append([]byte(lostMark), msg...), "\n\n"...))
	}
}

// lostMark is before an answer in a comment of the stream, for who asked for it (lostHeader).
const (
	lostHeader = "Writ-Lost"
	lostMark   = ": lost "
)

// gone reports whether the client has gone away.
func (r *reply) gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// beat keeps what stands between the client and us from taking a stream for dead.
func (r *reply) beat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun && !r.over {
		r.write([]byte(": \n\n"))
	}
}

// end gives the answer. A status other than 200 is for an error that is all there is to say.
func (r *reply) end(msg []byte, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.over = true
	if r.begun {
		r.event(msg)
		return
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(msg)))
	r.w.WriteHeader(status)
	r.write(msg)
}

// drop ends without an answer: of a request that its client cancelled.
func (r *reply) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over && !r.begun {
		r.w.WriteHeader(http.StatusAccepted)
	}
	r.over = true
}

// event writes one message of the stream. Whoever calls it holds mu.
func (r *reply) event(msg []byte) error {
	r.head()
	if bytes.ContainsAny(msg, "\r\n") { // a line break would end the event
		var b bytes.Buffer
		if err := json.Compact(&b, msg); err != nil {
			return err
		}
		msg = b.Bytes()
	}
	return r.write(append(append([]byte("event: message\ndata: "), msg...), "\n\n"...))
}

// head begins the stream, once.
func (r *reply) head() {
	if r.begun {
		return
	}
	r.begun = true
	h := r.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	r.w.WriteHeader(http.StatusOK)
}

func (r *reply) write(b []byte) error {
	if r.err != nil {
		return r.err
	}
	c := http.NewResponseController(r.w)
	c.SetWriteDeadline(time.Now().Add(unread))
	defer c.SetWriteDeadline(time.Time{})
	if _, r.err = r.w.Write(b); r.err == nil && r.begun {
		r.err = c.Flush()
	}
	return r.err
}

// accepts reports which of the two kinds of answer a client takes.
func accepts(r *http.Request) (body, stream bool) {
	for _, h := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(h, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "application/json":
				body = true
			case "text/event-stream":
				stream = true
			case "*/*":
				body, stream = true, true
			case "application/*":
				body = true
			case "text/*":
				stream = true
			}
		}
	}
	return body, stream
}

// answer is a JSON-RPC response.
func answer(id, result json.RawMessage) []byte {
	out := make([]byte, 0, len(id)+len(result)+40)
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), id...)
	out = append(append(out, `,"result":`...), result...)
	return append(out, '}')
}

// refusal is a JSON-RPC response that is an error. A request whose id could not be
// read gets null.
func refusal(id json.RawMessage, e *rpcError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	b, err := wire.Plain(e)
	if err != nil {
		b = []byte(`{"code":-32603,"message":"internal error"}`)
	}
	out := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"error":`...)
	return append(append(out, b...), '}')
}

// notification is a message that wants no answer.
func notification(method string, params any) ([]byte, error) {
	return wire.Plain(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}
