package client

import (
	"context"
	"strconv"
)

// Egress is one connection or one question of a box, when it was over.
type Egress struct {
	N        int64  `json:"n" jsonschema:"its place among all"`
	At       string `json:"at"`
	Call     string `json:"call,omitempty"`
	Agent    string `json:"agent"`
	Kind     string `json:"kind" jsonschema:"connect, dns, http or ssh"`
	Host     string `json:"host" jsonschema:"host:port, or the name that was asked about; the box's own words"`
	Address  string `json:"address,omitempty"`
	Verdict  string `json:"verdict" jsonschema:"allowed, or the name of the refusal"`
	Class    string `json:"address_class,omitempty"`
	Rule     string `json:"rule,omitempty" jsonschema:"by which"`
	Needs    string `json:"needs,omitempty" jsonschema:"what would allow it: a host to name, or what opens an address"`
	Detail   string `json:"detail,omitempty"`
	Sent     int64  `json:"sent"`
	Received int64  `json:"received"`
	Micros   int64  `json:"took_micros"`
}

// EgressReport is what left the box of a command that the daemon did not run.
type EgressReport struct {
	Events []Egress `json:"events" jsonschema:"at most 1000; whose they are is not for the report to say"`
}

// ReportEgress adds to what left boxes what a command did that a person ran. It is logged
// as that command's.
func (c *Client) ReportEgress(ctx context.Context, r EgressReport) error {
	return c.do(ctx, "POST", "/v1/egress", r, &Status{})
}

// EgressOf chooses what to list of what left boxes. Its zero value chooses all.
type EgressOf struct {
	Call    string
	Agent   string
	Refused bool // only what was not let through
}

// Egress lists what left boxes and what was refused to, the newest first.
func (c *Client) Egress(of EgressOf) List[Egress] { return c.egress(of, "") }

// EgressAfter lists those after a place, the oldest first.
func (c *Client) EgressAfter(of EgressOf, n int64) List[Egress] {
	return c.egress(of, strconv.FormatInt(n, 10))
}

func (c *Client) egress(of EgressOf, after string) List[Egress] {
	verdict := ""
	if of.Refused {
		verdict = "refused"
	}
	return list[Egress](c, "/v1/egress", "call", of.Call, "agent", of.Agent, "verdict", verdict, "after", after)
}
