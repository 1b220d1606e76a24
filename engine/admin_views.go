package engine

import (
	"encoding/json"

	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/store"
)

// What the administration surface shows of things: no arguments, no tokens, no places
// in the configuration.

type agentOf struct {
	Name        string            `json:"name"`
	Parent      string            `json:"parent,omitempty"`
	Person      string            `json:"acts_for,omitempty"`
	Role        string            `json:"role,omitempty"`
	Level       string            `json:"level"`
	Autonomy    string            `json:"autonomy"`
	Workspace   string            `json:"workspace"`
	Project     string            `json:"project"`
	Constraints map[string]string `json:"constraints"`
	Tools       []string          `json:"tools"`
	Unavailable []string          `json:"unavailable,omitempty"`
	Stopped     bool              `json:"stopped"`
}

type stopOf struct {
	Agent string `json:"agent"`
	At    string `json:"at"`
}

type reasonOf struct {
	Effect string `json:"effect"`
	Source string `json:"source"`
	Text   string `json:"text"`
}

type toolOf struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Category    string `json:"category"`
	Action      string `json:"action_type"`
	Class       string `json:"egress_class"`
	Tier        string `json:"cost_tier"`
	Digest      string `json:"digest"`
	Unavailable string `json:"unavailable,omitempty"`
}

type sessionView struct {
	ID     string `json:"id"`
	Agent  string `json:"agent"`
	Name   string `json:"name,omitempty"`
	Opened string `json:"opened_at"`
	Ended  string `json:"ended_at,omitempty"`
	Why    string `json:"why,omitempty"`
}

func sessionOf(s store.Session) sessionView {
	return sessionView{s.ID, s.Agent, s.Name, s.Opened, s.Ended, s.Why}
}

type entryView struct {
	Hash string          `json:"hash"`
	Body json.RawMessage `json:"body"`
}

type invocationView struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	Approval  string `json:"approval_status"`
	Reason    string `json:"approval_reason,omitempty"`
	Agent     string `json:"agent"`
	Person    string `json:"acts_for,omitempty"`
	Tool      string `json:"tool"`
	Action    string `json:"action,omitempty"`
	Risk      string `json:"risk,omitempty"`
	Class     string `json:"class"`
	Session   string `json:"session,omitempty"`
	Task      string `json:"task,omitempty"`
	Door      string `json:"door"`
	Args      string `json:"args_sha256"`
	ArgsBytes int64  `json:"args_bytes"`
	Requested string `json:"requested_at"`
	Started   string `json:"started_at,omitempty"`
	Completed string `json:"completed_at,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	Grant     string `json:"grant,omitempty"`
	Micros    *int64 `json:"measured_micros,omitempty"`
	Resolved  string `json:"resolved,omitempty"` // of one: whether it happened, as a person found out
}

func invocationOf(i store.Invocation) invocationView {
	return invocationView{
		ID: i.ID, Status: i.Status, Approval: i.Approval, Reason: i.Reason, Agent: i.Agent, Person: i.Person, Tool: i.Tool, Action: i.Action, Risk: i.Risk, Class: i.Class,
		Session: i.Session, Task: i.Task, Door: i.Door, Args: i.ArgsDigest, ArgsBytes: i.ArgsBytes, Requested: i.Requested, Started: i.Started, Completed: i.Completed,
		Outcome: i.Outcome, Grant: i.Grant, Micros: i.Micros,
	}
}

type approvalView struct {
	ID        string   `json:"id"`
	State     string   `json:"state"`
	Agent     string   `json:"agent"`
	Tool      string   `json:"tool"`
	Risk      string   `json:"risk"`
	Class     string   `json:"class"`
	Dangerous bool     `json:"dangerous,omitempty"`
	Requested string   `json:"requested_at"`
	Expires   string   `json:"expires_at"`
	Decided   string   `json:"decided_at,omitempty"`
	By        string   `json:"decided_by,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Quorum    int      `json:"quorum"`
	Args      string   `json:"args_sha256"`
	ArgsBytes int64    `json:"args_bytes"`
	Replaced  string   `json:"replaced_by,omitempty"`
	Votes     []voteOf `json:"votes,omitempty"`
}

type voteOf struct {
	Person   string `json:"person"`
	Decision string `json:"decision"`
	At       string `json:"at"`
}

func (a *administration) approvalOf(i store.Invocation) approvalView {
	return approvalView{
		ID: i.ID, State: approval.StateOf(i, a.e.ledger.Now()), Agent: i.Agent, Tool: i.Tool, Risk: i.Risk, Class: i.Class, Dangerous: i.Dangerous, Requested: i.Requested,
		Expires: i.Expires, Decided: i.Decided, By: i.By, Reason: i.Reason, Quorum: i.Quorum, Args: i.ArgsDigest, ArgsBytes: i.ArgsBytes, Replaced: i.Replaced,
	}
}

type grantView struct {
	ID      string `json:"id"`
	From    string `json:"from"`
	Agent   string `json:"agent"`
	Tool    string `json:"tool"`
	Class   string `json:"class"`
	Uses    int    `json:"uses"`
	Max     int    `json:"max_uses"`
	Made    string `json:"made_at"`
	By      string `json:"made_by"`
	Expires string `json:"expires_at"`
	Revoked string `json:"revoked_at,omitempty"`
	Live    bool   `json:"live"`
}

func (a *administration) grantOf(g store.Grant) grantView {
	live := g.Revoked == "" && g.Expires > a.e.ledger.Now() && g.Used < g.Max && a.e.Grantable(g)
	return grantView{g.ID, g.Invocation, g.Agent, g.Tool, g.Class, g.Used, g.Max, g.Made, g.By, g.Expires, g.Revoked, live}
}
