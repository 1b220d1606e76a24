package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
)

// streamEvents sends entries of the ledger as they are committed, each once and in
// order, from where the reader left off. An agent gets those of itself and of the
// agents below it. A reader that does not read is dropped: it can come back with
// the id of the last entry it saw.
func streamEvents(x *exchange) error {
	seq, err := x.from()
	if err != nil {
		return err
	}
	left, err := x.beginStream(x.rt.door, x.engine.Root(x.who.Agent))
	if err != nil {
		return err
	}
	defer left()
	x.w.Header().Set("Content-Type", x.route.media)
	x.w.WriteHeader(http.StatusOK)
	if err := x.follow(seq); err != nil {
		x.log.Debug("a stream ended", "request", x.w.Header().Get("X-Request-ID"), "err", err)
	}
	return nil
}

// from is where the stream begins: after what the reader has seen, else now. A
// reader that comes back by itself repeats its query, so the header counts.
func (x *exchange) from() (int64, error) {
	if last := x.r.Header.Get("Last-Event-ID"); last != "" {
		seq, err := strconv.ParseInt(last, 10, 64)
		if err != nil || seq < 0 || seq > maxSeq {
			return 0, writ.Fail(writ.Invalid, "Last-Event-ID is the id of an event of this stream: a whole number", nil)
		}
		return seq, nil
	}
	if _, given := x.query["after"]; given {
		return x.number("after", 0), nil
	}
	end, err := x.engine.Store().EntriesBefore(x.r.Context(), 0, 1)
	if err != nil || len(end) == 0 {
		return 0, err
	}
	return end[0].Seq, nil
}

// follow sends what is there and then waits for more, until somebody ends it.
func (x *exchange) follow(seq int64) error {
	beat := time.NewTicker(x.limits.heartbeat)
	defer beat.Stop()
	text := ": entries of the ledger as they are committed\n\n"
	for {
		if err := x.say(text); err != nil {
			return err
		}
		if err := x.welcome(); err != nil {
			return err
		}
		grown := x.engine.Ledger().Grown() // before reading, so that none is missed
		page, err := x.engine.Store().After(x.r.Context(), seq, 256)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			seq = page[len(page)-1].Seq
			if text, err = x.events(page); err != nil {
				return err
			}
			continue
		}
		text = ""
		select {
		case <-grown:
		case <-beat.C:
			text = ": \n\n"
		case <-x.ending:
		case <-x.r.Context().Done():
		}
	}
}

// welcome says why the stream ends: the daemon does, the reader has gone, or its
// token is not good any more.
func (x *exchange) welcome() error {
	select {
	case <-x.ending:
		return errors.New("the daemon is ending")
	case <-x.r.Context().Done():
		return x.r.Context().Err()
	default:
	}
	if x.operator {
		return nil
	}
	_, err := x.caller(x.r.Header.Values("Authorization"))
	return err
}

// events is the entries of a page that the reader may see, as they are sent.
func (x *exchange) events(page []store.Entry) (string, error) {
	var out strings.Builder
	for _, e := range page {
		if !x.operator && !x.engine.Below(e.Agent, x.who.Agent) {
			continue
		}
		data, err := encode(entryView(e))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "id: %d\nevent: %s\ndata: %s\n", e.Seq, e.Kind, data) // data ends its own line
	}
	return out.String(), nil
}

// say sends text, unless the reader leaves what came before waiting too long.
func (x *exchange) say(text string) error {
	c := http.NewResponseController(x.w)
	if err := c.SetWriteDeadline(time.Now().Add(x.limits.unread)); err != nil {
		return err
	}
	if _, err := io.WriteString(x.w, text); err != nil {
		return err
	}
	return c.Flush()
}
