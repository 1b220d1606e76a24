package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
)

const tasksExtension = "io.modelcontextprotocol/tasks"

// taskTools are those that the suite wants to become tasks: by taking long, or by
// asking in the middle of their work.
func taskTools() []engine.Tool {
	return []engine.Tool{
		made("greet", `{"name":{"type":"string"}}`, func(r running) (writ.Result, error) { return said(fmt.Sprintf("Hello, %s!", r.args["name"])) }),
		made("slow_compute", `{"seconds":{"type":"number"},"label":{"type":"string"}}`, func(r running) (writ.Result, error) {
			seconds, _ := r.args["seconds"].(float64)
			return r.after(time.Duration(seconds*float64(time.Second)), fmt.Sprintf("computed %v", r.args["label"]))
		}),
		made("failing_job", `{}`, inTask(func(r running) (writ.Result, error) {
			if _, err := r.after(time.Second, ""); err != nil {
				return writ.Result{}, err
			}
			return writ.Result{Content: "the job failed", IsError: true}, nil
		})),
		made("protocol_error_job", `{}`, inTask(func(r running) (writ.Result, error) {
			if _, err := r.after(time.Second, ""); err != nil {
				return writ.Result{}, err
			}
			return refused(-32603, "the job broke", "")
		})),
		made("confirm_delete", `{"filename":{"type":"string"}}`, inTask(func(r running) (writ.Result, error) {
			return r.elicits(fmt.Sprintf("Delete %v?", r.args["filename"]), `{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`)
		})),
		made("multi_input", `{}`, inTask(twoQuestions)),
		made("test_tool_with_task", `{}`, afterQuestion),
	}
}

// inTask makes a tool one for clients that take tasks.
func inTask(run func(running) (writ.Result, error)) func(running) (writ.Result, error) {
	return func(r running) (writ.Result, error) {
		if !r.can("extensions", tasksExtension) {
			return lacking(`{"extensions":{"` + tasksExtension + `":{}}}`)
		}
		return run(r)
	}
}

// twoQuestions asks both at once.
func twoQuestions(r running) (writ.Result, error) {
	failed := make(chan error, 2)
	for _, what := range []string{"name", "color"} {
		go func() {
			_, err := r.elicits("Which "+what+"?", fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string"}}}`, what))
			failed <- err
		}()
	}
	for range 2 {
		if err := <-failed; err != nil {
			return writ.Result{}, err
		}
	}
	return said("both were answered")
}

// afterQuestion asks first, in a round of its own, and then works.
func afterQuestion(r running) (writ.Result, error) {
	var answers struct {
		Name struct{ Content struct{ Name string } } `json:"user_name"`
	}
	if r.peer != nil && len(r.peer.Round().Inputs) > 0 {
		if err := json.Unmarshal(r.peer.Round().Inputs, &answers); err != nil {
			return writ.Result{}, err
		}
	}
	if name := answers.Name.Content.Name; name != "" {
		return r.after(time.Second, "It was "+name+".")
	}
	return writ.Result{Content: "the client is asked", IsError: true, Metadata: map[string]any{"input_required": json.RawMessage(
		`{"resultType":"input_required","inputRequests":{"user_name":{"method":"elicitation/create","params":{"message":"What is your name?","requestedSchema":` + nameSchema + `}}},"requestState":"asked"}`)}}, nil
}
