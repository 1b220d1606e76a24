package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// outcome reads what a server answered to a call.
func (w *web) outcome(k *call, resp *http.Response) (json.RawMessage, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, w.refused(k, resp)
	}
	switch mediaType(resp) {
	case "application/json":
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		if err := w.c.take(body, k); err != nil {
			return nil, err
		}
		return w.taken(k, errors.New("the body is not the answer to the request"))
	case "text/event-stream":
		return w.stream(k, resp)
	}
	return nil, fmt.Errorf("an answer of type %q", short(resp.Header.Get("Content-Type")))
}

// stream reads events until the answer. A server may hang up in between where it has
// given events ids: the rest is there when we come back.
func (w *web) stream(k *call, resp *http.Response) (json.RawMessage, error) {
	for resumed := 0; ; resumed++ {
		events := newEventReader(resp.Body, w.c.o.MaxMessage)
		result, err, over := w.follow(k, events)
		if over {
			return result, err
		}
		if events.last == "" || resumed == 8 || w.c.modern() || k.ctx.Err() != nil {
			return nil, err
		}
		resp.Body.Close()
		if resp, err = w.resume(k, events); err != nil {
			return nil, err
		}
		defer resp.Body.Close()
	}
}

// follow is over when the answer came or the stream is of no use.
func (w *web) follow(k *call, events *eventReader) (result json.RawMessage, err error, over bool) {
	for {
		data, err := events.next()
		if errors.Is(err, io.EOF) {
			return nil, errCut, false
		}
		if err == nil && len(data) > 0 {
			err = w.c.take(data, k)
		}
		if err != nil {
			return nil, err, k.ctx.Err() != nil || !cutOff(err)
		}
		if k.peer != nil {
			k.drain()
		}
		select {
		case out := <-k.answer:
			return out.result, out.err, true
		default:
		}
	}
}

// cutOff reports whether a connection broke, as opposed to what came over it.
func cutOff(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op)
}

func (w *web) resume(k *call, events *eventReader) (*http.Response, error) {
	timer := time.NewTimer(max(events.retry, 100*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.ctx.Done():
		return nil, k.ctx.Err()
	}
	req, err := w.request(k.ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Last-Event-ID", events.last)
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream" {
		resp.Body.Close()
		return nil, errCut
	}
	return resp, nil
}

// taken is the answer that take was just given.
func (w *web) taken(k *call, otherwise error) (json.RawMessage, error) {
	select {
	case out := <-k.answer:
		if k.peer != nil {
			k.drain()
		}
		return out.result, out.err
	default:
		return nil, otherwise
	}
}

// refused is the error of a status other than 200.
func (w *web) refused(k *call, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostErrorData))
	if err == nil {
		if m, err := parse(w.c.o.Hide(body)); err == nil && m.fail != nil && (string(m.id) == "null" || string(m.id) == strconv.Quote(k.id)) {
			return serverError(m.fail)
		}
	}
	status := fmt.Errorf("the server answered with HTTP status %d", resp.StatusCode)
	switch {
	case resp.StatusCode == http.StatusNotFound && w.id != "":
		w.c.fail(ErrSession)
		return fmt.Errorf("%w: %w", ErrNotSent, ErrSession)
	case resp.StatusCode < 200 || 300 <= resp.StatusCode && resp.StatusCode < 500:
		return fmt.Errorf("%w: %w", ErrNotSent, status)
	}
	return fmt.Errorf("%w: %w", ErrLost, status)
}
