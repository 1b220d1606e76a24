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

// silence is how long a stream may say nothing at all: the daemon sends a comment
// every 15 seconds.
const silence = 45 * time.Second

// maxEvent bounds one line of a stream.
const maxEvent = 4 << 20

// Events streams entries after a sequence number as they are committed; below zero:
// from now on. It ends with an error, that of ctx or of a stream that broke: go on from
// the Seq of the last event then, and nothing is lost or seen twice.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		path := "/v1/events"
		if after >= 0 {
			path += "?after=" + strconv.FormatInt(after, 10)
		}
		resp, err := c.send(ctx, "GET", path, nil, http.Header{"Accept": {"text/event-stream"}})
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer resp.Body.Close()
		quiet := time.AfterFunc(silence, func() { cancel(errors.New("the daemon says nothing any more")) })
		defer quiet.Stop()
		err = readEvents(resp.Body, func() { quiet.Reset(silence) }, func(e Event) bool { return yield(e, nil) })
		switch {
		case errors.Is(err, errStopped):
		case ctx.Err() != nil:
			yield(Event{}, context.Cause(ctx))
		default:
			yield(Event{}, fmt.Errorf("the stream ended: %w", err))
		}
	}
}

var errStopped = errors.New("the caller has enough")

// readEvents reads a stream until it ends, which is an error too.
func readEvents(r io.Reader, alive func(), yield func(Event) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	var e Event
	for lines.Scan() {
		alive()
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		var err error
		switch field {
		case "id":
			e.Seq, err = strconv.ParseInt(value, 10, 64)
		case "event":
			e.Kind = value
		case "data":
			err = json.Unmarshal([]byte(value), &e.Entry)
		default:
			if lines.Text() == "" && e.Hash != "" {
				if !yield(e) {
					return errStopped
				}
				e = Event{}
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
