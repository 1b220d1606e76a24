package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/writ-run/writ"
)

// Endpoint is where messages go.
type Endpoint struct {
	Name   string
	URL    string
	Slack  bool     // people read it, in a channel
	Events []string // of which it is told
	GiveUp time.Duration
	Base   string                                // what links begin with; empty: there are none
	Secret func(context.Context) ([]byte, error) // nil: messages are not signed
	Way    http.RoundTripper                     // out of this machine
	Agent  string                                // what it says it is, such as writ/1.0
}

const (
	patience   = 10 * time.Second
	mostAnswer = 64 << 10 // of an answer, which nobody reads: enough to use a connection again
)

// refusal is an answer that is none of thanks.
type refusal struct {
	why   string
	gone  bool          // nobody wants to be told any more
	after time.Duration // it asks for that much time
}

func (r *refusal) Error() string { return r.why }

// send makes one attempt. What it says of a failure is for people to read, and has no
// more of the address than its host: the rest may be as good as a password.
func (e Endpoint) send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := e.request(ctx, m)
	if err != nil {
		return err
	}
	c := http.Client{Transport: e.Way, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		return unaddressed(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, mostAnswer) // it has answered already
	return answered(resp)
}

// unaddressed is a failure without the address.
func unaddressed(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("there was no answer within %s", patience)
	}
	var public *writ.Error
	if errors.As(err, &public) {
		return errors.New(public.Msg)
	}
	return err
}

func (e Endpoint) request(ctx context.Context, m Message) (*http.Request, error) {
	make := m.body
	if e.Slack {
		make = m.slack
	}
	body, err := make()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("its address does not read; mend url")
	}
	at := time.Now().Unix()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", e.Agent)
	req.Header.Set("webhook-id", m.ID)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at, 10))
	if e.Secret == nil {
		return req, nil
	}
	secret, err := e.Secret(ctx)
	if err != nil {
		return nil, unaddressed(err)
	}
	if secret, err = Key(secret); err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	req.Header.Set("webhook-signature", sign(secret, m.ID, at, body))
	return req, nil
}

// answered is what an answer comes to. Only 2xx is thanks; 410 says that nobody wants to be
// told any more. Everything else is tried again, 4xx too: messages are all of one shape, so
// that it is the receiver's set-up that is wrong, which somebody mends.
func answered(resp *http.Response) error {
	r := &refusal{why: fmt.Sprintf("it answers %d", resp.StatusCode), gone: resp.StatusCode == http.StatusGone}
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return nil
	case code/100 == 3:
		r.why += ", which leads elsewhere and is not followed; write the address that it leads to"
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
			r.after = min(time.Duration(min(n, int(longest/time.Second)))*time.Second, longest)
		}
	}
	return r
}

// wants reports whether the endpoint is told of an event.
func (e Endpoint) wants(m Message) bool { return slices.Contains(e.Events, m.Event) }
