package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Event is an entry of the ledger as it was committed.
type Event struct {
	Seq  int64
	Kind string
	Entry
}

// InvocationEvent is something that happened to a call.
type InvocationEvent struct {
	// Seq is where to go on from. It is 0 where more of the same entry follows: the
	// number of the event before it counts then.
	Seq        int64           `json:"-"`
	Name       string          `json:"event"` // tool_invocation_ and what happened
	Invocation string          `json:"invocation"`
	Agent      string          `json:"agent"`
	Person     string          `json:"person,omitempty"` // who decided
	At         string          `json:"at"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// silence is how long a stream may say nothing at all: the daemon sends a comment
// every 15 seconds.
const silence = 45 * time.Second

// maxEvent bounds one line of a stream.
const maxEvent = 4 << 20

// Events streams entries after a sequence number as they are committed; below zero:
// from now on. It ends with an error, that of ctx or of a stream that broke: go on from
// the Seq of the last event then, and nothing is lost or seen twice.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return follow(ctx, c, "/v1/events", after, readEvents)
}

// InvocationEvents streams what happens to calls, as Events streams entries: those of
// the token's agent and of the agents below it, or an operator's view of all.
func (c *Client) InvocationEvents(ctx context.Context, after int64) iter.Seq2[InvocationEvent, error] {
	return follow(ctx, c, "/v1/invocation-events", after, readInvocationEvents)
}

// EventsOf streams what happens to one call, below zero from its beginning. Once the
// call has ended, so does the stream, which is an error as any other end is.
func (c *Client) EventsOf(ctx context.Context, id string, after int64) iter.Seq2[InvocationEvent, error] {
	return follow(ctx, c, "/v1/invocations/"+url.PathEscape(id)+"/events", after, readInvocationEvents)
}

// follow opens a stream after a number and gives out what read makes of it.
func follow[E any](ctx context.Context, c *Client, path string, after int64, read func(io.Reader, func(), func(E) bool) error) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		header := http.Header{"Accept": {"text/event-stream"}}
		if after >= 0 {
			header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
		}
		resp, err := c.send(ctx, "GET", path, nil, header)
		if err != nil {
			yield(none, err)
			return
		}
		defer resp.Body.Close()
		quiet := time.AfterFunc(silence, func() { cancel(errors.New("the daemon says nothing any more")) })
		defer quiet.Stop()
		err = read(resp.Body, func() { quiet.Reset(silence) }, func(e E) bool { return yield(e, nil) })
		switch {
		case errors.Is(err, errStopped):
		case ctx.Err() != nil:
			yield(none, context.Cause(ctx))
		default:
			yield(none, fmt.Errorf("the stream ended: %w", err))
		}
	}
}

var errStopped = errors.New("the caller has enough")

// readEvents reads a stream until it ends, which is an error too.
func readEvents(r io.Reader, alive func(), yield func(Event) bool) error {
	return readMessages(r, alive, func(m message) error {
		e := Event{Seq: m.id, Kind: m.name}
		if err := json.Unmarshal(m.data, &e.Entry); err != nil {
			return err
		}
		if e.Hash != "" && !yield(e) {
			return errStopped
		}
		return nil
	})
}

func readInvocationEvents(r io.Reader, alive func(), yield func(InvocationEvent) bool) error {
	return readMessages(r, alive, func(m message) error {
		e := InvocationEvent{Seq: m.id}
		if err := json.Unmarshal(m.data, &e); err != nil {
			return err
		}
		if e.Name != "" && !yield(e) {
			return errStopped
		}
		return nil
	})
}

// message is one event of a stream, whatever its data is.
type message struct {
	id   int64 // 0: it has none of its own
	name string
	data json.RawMessage
}

// readMessages reads server-sent events whose data is one line, until the stream ends
// or each has an error. One that was cut off in the middle is not given out.
func readMessages(r io.Reader, alive func(), each func(message) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	var m message
	for lines.Scan() {
		alive()
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		var err error
		switch field {
		case "id":
			m.id, err = strconv.ParseInt(value, 10, 64)
		case "event":
			m.name = value
		case "data":
			err = json.Unmarshal([]byte(value), &m.data)
		default:
			if lines.Text() == "" && m.data != nil {
				err = each(m)
				m = message{}
			}
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}
