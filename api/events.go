package api

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// streamEvents sends entries of the ledger as they are committed, each once and in
// order, from where the reader left off. An agent gets those of itself and of the
// agents below it. A reader that does not read is dropped: it can come back with
// the id of the last entry it saw.
func streamEvents(x *exchange) error {
	seq, err := x.from(-1)
	if err != nil {
		return err
	}
	return x.stream(seq, never, x.events)
}

// never is the end of a stream that has none.
const never = math.MaxInt64

// stream sends what say makes of the entries after a number, until say has had the
// last, or the one at end.
func (x *exchange) stream(seq, end int64, say func([]store.Entry) (text string, last bool, err error)) error {
	left, err := x.beginStream(x.rt.door, x.engine.Root(x.who.Agent))
	if err != nil {
		return err
	}
	defer left()
	x.w.Header().Set("Content-Type", x.route.media)
	x.w.WriteHeader(http.StatusOK)
	if err := x.follow(seq, end, say); err != nil {
		x.log.Debug("a stream ended", "request", x.w.Header().Get("X-Request-ID"), "err", err)
	}
	return nil
}

// from is where the stream begins: after what the reader has seen, else where it
// begins by itself (-1: now). A reader that comes back by itself repeats its query, so
// the header counts.
func (x *exchange) from(first int64) (int64, error) {
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
	if first >= 0 {
		return first, nil
	}
	return x.ledgerEnd()
}

// ledgerEnd is the number of the newest entry.
func (x *exchange) ledgerEnd() (int64, error) {
	end, err := x.engine.Store().EntriesBefore(x.r.Context(), 0, 1)
	if err != nil || len(end) == 0 {
		return 0, err
	}
	return end[0].Seq, nil
}

// follow sends what is there and then waits for more, until somebody ends it.
func (x *exchange) follow(seq, end int64, make func([]store.Entry) (string, bool, error)) error {
	beat := time.NewTicker(x.limits.heartbeat)
	defer beat.Stop()
	text := ": entries of the ledger as they are committed\n\n"
	last := false
	for {
		if err := x.say(text); err != nil || last || seq >= end {
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
			if text, last, err = make(page); err != nil {
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
func (x *exchange) events(page []store.Entry) (string, bool, error) {
	var out strings.Builder
	for _, e := range page {
		if !x.operator && !x.engine.Below(e.Agent, x.who.Agent) {
			continue
		}
		data, err := wire.Plain(entryView(e)) // with the bytes that its hash is of
		if err != nil {
			return "", false, err
		}
		fmt.Fprintf(&out, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data)
	}
	return out.String(), false, nil
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
