package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// Package client speaks every route: what a person does with an agent, from the
// first look to the end.
func TestClient(t *testing.T) {
	w := newWorld(t)
	ctx, op, c := t.Context(), w.operator, w.agent("coder")
	var doc struct{ OpenAPI string }
	raw, err := c.OpenAPI(ctx)
	must(t, err)
	must(t, json.Unmarshal(raw, &doc))
	people, err := op.People().All(ctx)
	must(t, err)
	if doc.OpenAPI != "3.1.0" || len(people) != 1 || people[0].Name != "alice" || people[0].Role != "admin" {
		t.Errorf("%+v %+v", doc, people)
	}
	// A definition is looked at and accepted.
	if x, err := op.Tool(ctx, "count_words"); err != nil || x.State != "suspended" || !strings.Contains(x.Held, "writ tool accept count_words") {
		t.Errorf("%+v %v", x, err)
	}
	diff, err := op.DiffTool(ctx, "count_words")
	must(t, err)
	must(t, op.AcceptTool(ctx, "count_words", client.AcceptRequest{Digest: diff.Digest, By: alice}))
	if x, err := op.Tool(ctx, "count_words"); err != nil || x.State != "accepted" || len(diff.Changes) == 0 {
		t.Errorf("%+v %v", x, err)
	}
	// A request is answered, and the call that waits for it goes on.
	id := w.pending("coder", "doomed")
	waited := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, client.CallRequest{Tool: "delete_file", Args: []byte(`{"path":"doomed"}`)}, time.Minute)
		waited <- err
	}()
	r, err := op.Approval(ctx, id)
	must(t, err)
	if r.State != "pending" || r.Shown == nil || string(r.Shown.Args) != `{"path":"doomed"}` {
		t.Errorf("%+v", r)
	}
	r, err = op.Decide(ctx, id, client.DecisionRequest{Digest: r.Digest, Approve: true, By: alice})
	must(t, err)
	if r.By != "alice" {
		t.Errorf("%+v", r)
	}
	must(t, <-waited)
	// A task is rated, agents are looked at, a call is explained.
	task, err := c.StartTask(ctx, client.TaskRequest{Name: "fix"})
	must(t, err)
	must(t, op.RateTask(ctx, task.ID, client.RatingRequest{Rating: 8, By: alice}))
	if task, err = c.Task(ctx, task.ID); err != nil || task.Rating == nil || *task.Rating != 8 || task.RatedBy != "alice" {
		t.Errorf("%+v %v", task, err)
	}
	tree, err := op.Tree(ctx)
	must(t, err)
	if len(tree.Agents) != 2 || tree.Agents[0].Name != "coder" || len(tree.Agents[0].Children) != 1 || tree.Agents[0].Children[0].Name != "helper" {
		t.Errorf("%+v", tree)
	}
	if x, err := op.Explain(ctx, client.ExplainRequest{Agent: "coder", Tool: "delete_file", Args: []byte(`{"path":"x"}`)}); err != nil || x.Effect != "ask" {
		t.Errorf("%+v %v", x, err)
	}
	// It is stopped and lifted; the configuration is read again.
	must(t, op.Stop(ctx, client.StopRequest{Agent: "coder", Reason: "test"}))
	stops, err := op.Stops().All(ctx)
	must(t, err)
	_, err = c.Call(ctx, client.CallRequest{Tool: "stat", Args: []byte(`{"path":"."}`)}, 0)
	var p *client.Problem
	if !errors.As(err, &p) || p.Kind != writ.Stopped || len(stops) != 1 || stops[0].Reason != "test" {
		t.Errorf("%v %+v", err, stops)
	}
	must(t, op.Lift(ctx, "coder", alice))
	w.write("writ.yaml", strings.ReplaceAll(strings.Replace(configText, "level: standard", "level: restricted", 1), "$DIR", w.dir))
	before, err := op.Health(ctx)
	must(t, err)
	now, err := op.Reload(ctx)
	must(t, err)
	if now.Policy == before.Policy || now.Policy != w.engine.Config().Digest.String() {
		t.Errorf("%+v after %+v", now, before)
	}
	w.write("writ.yaml", "nonsense")
	if _, err = op.Reload(ctx); !errors.As(err, &p) || p.Status != 400 {
		t.Errorf("%v", err)
	}
	var export bytes.Buffer
	must(t, op.LedgerExport(ctx, &export))
	report, err := op.LedgerVerify(ctx, "")
	must(t, err)
	if int64(strings.Count(export.String(), `"kind":`)) < report.Entries || len(report.Problems) != 0 {
		t.Errorf("%+v", report)
	}
}

// A tool that panics is an error of its call, and not the end of anything else.
func TestPanic(t *testing.T) {
	w := newWorld(t)
	got := w.ask(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"wait","args":{"n":-1}}`})
	if got.status != 500 || got.problem.Kind != writ.Internal || strings.Contains(got.body, "the tool broke") || !strings.Contains(w.log.String(), "the tool broke") {
		t.Errorf("%s\n%s", got.body, w.log)
	}
	w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"."}}`})
}
