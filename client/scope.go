package client

import (
	"context"
	"net/url"
)

// Session is a stretch of an agent's work, bound to the token it was opened with.
type Session struct {
	ID     string `json:"id"`
	Token  string `json:"token" jsonschema:"the id of the token it belongs to"`
	Agent  string `json:"agent"`
	Name   string `json:"name,omitempty"`
	Opened string `json:"opened_at"`
	Ended  string `json:"ended_at,omitempty" jsonschema:"left out while it is open"`
	Why    string `json:"why,omitempty" jsonschema:"it ended: ended, idle, revoked"`
}

// SessionRequest opens a session.
type SessionRequest struct {
	Name string `json:"name,omitempty"`
}

// Task is a piece of work inside a session.
type Task struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Name    string `json:"name"`
	Opened  string `json:"opened_at"`
	Ended   string `json:"ended_at,omitempty" jsonschema:"left out while it is open"`
	Why     string `json:"why,omitempty"`
	Rating  *int   `json:"rating,omitempty" jsonschema:"0 to 10, by a person"`
	RatedBy string `json:"rated_by,omitempty"`
}

// TaskRequest opens a task, or finds the open one of that name.
type TaskRequest struct {
	Name    string `json:"name"`
	Session string `json:"session,omitempty" jsonschema:"an open session of this token; left out: the token's session of the day"`
}

// RatingRequest is what a person thinks of a task.
type RatingRequest struct {
	Rating int         `json:"rating" jsonschema:"0 to 10"`
	By     Credentials `json:"by"`
}

// Status is the answer of what has nothing else to say.
type Status struct {
	Status string `json:"status"`
}

// OpenSession opens a session of the token.
func (c *Client) OpenSession(ctx context.Context, req SessionRequest) (Session, error) {
	var out Session
	err := c.do(ctx, "POST", "/v1/sessions", req, &out)
	return out, err
}

// Sessions lists the token's sessions, or an operator's view of all, newest first.
func (c *Client) Sessions() List[Session] { return list[Session](c, "/v1/sessions") }

// Session shows one.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	var out Session
	err := c.do(ctx, "GET", "/v1/sessions/"+url.PathEscape(id), nil, &out)
	return out, err
}

// EndSession ends one, with its tasks and all they own.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.do(ctx, "POST", "/v1/sessions/"+url.PathEscape(id)+"/end", nil, &Status{})
}

// StartTask opens a task.
func (c *Client) StartTask(ctx context.Context, req TaskRequest) (Task, error) {
	var out Task
	err := c.do(ctx, "POST", "/v1/tasks", req, &out)
	return out, err
}

// Tasks lists the tasks of the token's sessions, or an operator's view of all,
// newest first.
func (c *Client) Tasks() List[Task] { return list[Task](c, "/v1/tasks") }

// Task shows one.
func (c *Client) Task(ctx context.Context, id string) (Task, error) {
	var out Task
	err := c.do(ctx, "GET", "/v1/tasks/"+url.PathEscape(id), nil, &out)
	return out, err
}

// EndTask ends one, with all it owns.
func (c *Client) EndTask(ctx context.Context, id string) error {
	return c.do(ctx, "POST", "/v1/tasks/"+url.PathEscape(id)+"/end", nil, &Status{})
}

// RateTask says what a person thinks of one.
func (c *Client) RateTask(ctx context.Context, id string, req RatingRequest) error {
	return c.do(ctx, "POST", "/v1/tasks/"+url.PathEscape(id)+"/rating", req, &Status{})
}
