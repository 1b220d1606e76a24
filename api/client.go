package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// Client talks to a daemon over its operator socket.
type Client struct {
	http  *http.Client
	Token string // an agent's, for calls
}

// Dial makes a client for the daemon of a state directory; nothing is dialled yet.
func Dial(state string) *Client {
	path := SocketPath(state)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true}}}
}

// do sends one request and decodes its answer; a refusal is a *Problem.
func (c *Client) do(ctx context.Context, method, path string, body, into any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://writ"+path, r)
	if err != nil {
		return nil, err
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
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&p); err != nil {
		return nil, fmt.Errorf("the daemon answered %s", resp.Status)
	}
	return nil, &p
}

// Health is what a daemon that answers says of itself.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	err := c.do(ctx, "GET", "/v1/health", nil, &h)
	return h, err
}

// Call makes one call and waits for a person, where one is asked, at most that long.
func (c *Client) Call(ctx context.Context, req CallRequest, wait time.Duration) (CallReply, error) {
	var out CallReply
	err := c.do(ctx, "POST", "/v1/calls?wait="+strconv.Itoa(int(wait/time.Second)), req, &out)
	return out, err
}

// Tools lists the tools there are, or those the token's agent may use.
func (c *Client) Tools(ctx context.Context) ([]ToolView, error) {
	var out []ToolView
	err := c.do(ctx, "GET", "/v1/tools", nil, &out)
	return out, err
}

// Tool shows one.
func (c *Client) Tool(ctx context.Context, name string) (ToolView, error) {
	var out ToolView
	err := c.do(ctx, "GET", "/v1/tools/"+url.PathEscape(name), nil, &out)
	return out, err
}

// Agents lists the configured agents.
func (c *Client) Agents(ctx context.Context) ([]engine.Agent, error) {
	var out []engine.Agent
	err := c.do(ctx, "GET", "/v1/agents", nil, &out)
	return out, err
}

// NewToken makes a token for an agent.
func (c *Client) NewToken(ctx context.Context, agent string, by engine.Credentials) (token, id string, err error) {
	var out NewToken
	err = c.do(ctx, "POST", "/v1/agents/"+url.PathEscape(agent)+"/tokens", PersonRequest{by}, &out)
	return out.Token, out.ID, err
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, "DELETE", "/v1/tokens/"+url.PathEscape(id), nil, &ok{})
}

// Explain decides a call without making it.
func (c *Client) Explain(ctx context.Context, req ExplainRequest) (Explanation, error) {
	var out Explanation
	err := c.do(ctx, "POST", "/v1/explain", req, &out)
	return out, err
}

// Approvals lists requests in a state, or all when it is empty.
func (c *Client) Approvals(ctx context.Context, state string) ([]approval.Request, error) {
	var out []approval.Request
	err := c.do(ctx, "GET", "/v1/approvals?state="+url.QueryEscape(state), nil, &out)
	return out, err
}

// Approval shows one.
func (c *Client) Approval(ctx context.Context, id string) (approval.Request, error) {
	var out approval.Request
	err := c.do(ctx, "GET", "/v1/approvals/"+url.PathEscape(id), nil, &out)
	return out, err
}

// Decide answers one.
func (c *Client) Decide(ctx context.Context, id string, req DecisionRequest) (approval.Request, error) {
	var out approval.Request
	err := c.do(ctx, "POST", "/v1/approvals/"+url.PathEscape(id)+"/decision", req, &out)
	return out, err
}

// People lists who can decide.
func (c *Client) People(ctx context.Context) ([]store.Person, error) {
	var views []PersonView
	err := c.do(ctx, "GET", "/v1/people", nil, &views)
	var out []store.Person
	for _, v := range views {
		out = append(out, store.Person{Name: v.Name, Role: v.Role, Created: v.Created})
	}
	return out, err
}

// AddFirstPerson makes the first person.
func (c *Client) AddFirstPerson(ctx context.Context, by engine.Credentials) error {
	return c.do(ctx, "POST", "/v1/people", PersonRequest{by}, &ok{})
}

// LedgerTail lists the last entries; LedgerAfter those after a sequence number.
func (c *Client) LedgerTail(ctx context.Context, limit int) ([]EntryView, error) {
	var out []EntryView
	err := c.do(ctx, "GET", fmt.Sprintf("/v1/ledger?limit=%d", limit), nil, &out)
	return out, err
}

// LedgerAfter lists entries after a sequence number.
func (c *Client) LedgerAfter(ctx context.Context, seq int64, limit int) ([]EntryView, error) {
	var out []EntryView
	err := c.do(ctx, "GET", fmt.Sprintf("/v1/ledger?after=%d&limit=%d", seq, limit), nil, &out)
	return out, err
}

// LedgerCall lists the entries about one call.
func (c *Client) LedgerCall(ctx context.Context, id string) ([]EntryView, error) {
	var out []EntryView
	err := c.do(ctx, "GET", "/v1/ledger/calls/"+url.PathEscape(id), nil, &out)
	return out, err
}

// LedgerVerify verifies the daemon's ledger.
func (c *Client) LedgerVerify(ctx context.Context, head string) (ledger.Report, error) {
	var out ledger.Report
	err := c.do(ctx, "GET", "/v1/ledger/verify?head="+url.QueryEscape(head), nil, &out)
	return out, err
}

// LedgerExport copies the whole ledger to w.
func (c *Client) LedgerExport(ctx context.Context, w io.Writer) error {
	resp, err := c.send(ctx, "GET", "/v1/ledger/export", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the export is not whole: %w", err)
	}
	return nil
}

// Stops lists the stops in force.
func (c *Client) Stops(ctx context.Context) ([]store.Stop, error) {
	var out []store.Stop
	err := c.do(ctx, "GET", "/v1/stops", nil, &out)
	return out, err
}

// Stop stops an agent, or everybody.
func (c *Client) Stop(ctx context.Context, req StopRequest) error {
	return c.do(ctx, "POST", "/v1/stops", req, &ok{})
}

// Lift ends a stop.
func (c *Client) Lift(ctx context.Context, agent string, by engine.Credentials) error {
	return c.do(ctx, "POST", "/v1/stops/"+url.PathEscape(agent)+"/lift", PersonRequest{by}, &ok{})
}

// Doctor examines the daemon and its drivers.
func (c *Client) Doctor(ctx context.Context) (Doctor, error) {
	var out Doctor
	err := c.do(ctx, "GET", "/v1/doctor", nil, &out)
	return out, err
}

// Effective lists the values the daemon runs under.
func (c *Client) Effective(ctx context.Context) ([]config.Value, error) {
	var out []config.Value
	err := c.do(ctx, "GET", "/v1/config", nil, &out)
	return out, err
}

// Shutdown ends the daemon.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.do(ctx, "POST", "/v1/shutdown", struct{}{}, &ok{})
}

// IsDown reports whether err means that no daemon listens.
func IsDown(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
