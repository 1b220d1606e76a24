// Package client talks to a writ daemon: over its operator socket, or over HTTP
// with an agent's token. It knows the wire and nothing of what is behind it, so
// that a program which only calls tools stays small.
//
//	c, err := client.New("http://127.0.0.1:7323", os.Getenv("WRIT_TOKEN"), nil)
//	reply, err := c.Call(ctx, client.CallRequest{Tool: "read_file", Args: json.RawMessage(`{"path":"README.md"}`)}, time.Minute)
//	var p *client.Problem
//	if errors.As(err, &p) && p.Kind == writ.Pending {
//		// a person is being asked; the same call made again takes the answer up
//	}
//
// A refusal of the daemon is a *Problem; any other error means that there was no
// answer. A Client may be used by many goroutines; its Token is set before that.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"

	"github.com/writ-run/writ"
)

// SocketPath is where the operator socket of a state directory is.
func SocketPath(state string) string { return filepath.Join(state, "writ.sock") }

// Client talks to one daemon.
type Client struct {
	http  *http.Client
	base  string
	Token string // an agent's; over the operator socket, empty: the operator
}

// Dial makes a client for the daemon of a state directory; nothing is dialled yet.
func Dial(state string) *Client {
	path := SocketPath(state)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &Client{http: plain(&http.Transport{DialContext: dial, DisableCompression: true}), base: "http://writ"}
}

// New makes a client for a daemon at a URL such as http://127.0.0.1:7323. A token
// is not sent in the clear: http is for loopback only. trust may be nil for the
// system's certificates.
func New(baseURL, token string, trust *tls.Config) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("%q is not the address of a daemon; write http://127.0.0.1:7323 or https://HOST:PORT", baseURL)
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && loopback(u.Hostname()):
	default:
		return nil, fmt.Errorf("%q would send the token in the clear; use https, or http to a loopback address", baseURL)
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, ForceAttemptHTTP2: true, DisableCompression: true}
	return &Client{http: plain(t), base: u.Scheme + "://" + u.Host, Token: token}, nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// plain follows no redirects: whoever answers must not send the token elsewhere.
func plain(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// maxReply bounds what is read of one answer.
const maxReply = 256 << 20

// do sends one request and decodes its answer; a refusal is a *Problem.
func (c *Client) do(ctx context.Context, method, path string, body, into any) error {
	resp, err := c.send(ctx, method, path, body, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(into); err != nil {
		return fmt.Errorf("the daemon's answer does not read: %w", err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var p Problem
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&p); err != nil || p.Kind == "" {
		return nil, fmt.Errorf("the daemon answered %s", resp.Status)
	}
	return nil, &p
}

// Problem is a refusal as it crosses the door (RFC 9457).
type Problem struct {
	Type     string    `json:"type" jsonschema:"urn:writ:problem: and the kind"`
	Title    string    `json:"title"`
	Status   int       `json:"status"`
	Detail   string    `json:"detail" jsonschema:"what is wrong and what to do about it"`
	Instance string    `json:"instance" jsonschema:"the id of the request, as in X-Request-ID"`
	Kind     writ.Kind `json:"kind"`
	CallID   string    `json:"call_id,omitempty" jsonschema:"the call as the ledger knows it"`
	Approval string    `json:"approval,omitempty" jsonschema:"the request that waits for a person"`
	Resume   string    `json:"resume,omitempty" jsonschema:"where to look for what becomes of it; /events below it streams"`
}

func (p *Problem) Error() string { return p.Detail }

// IsDown reports whether err means that no daemon listens.
func IsDown(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
