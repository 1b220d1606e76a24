package main

//lint:file-ignore SA1019 servers ask for samples and roots until clients of older versions are gone

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const nameSchema = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`

// question asks for one thing.
func question(message, property, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, property, kind, property))}
}

func prompt(text string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}, MaxTokens: 100}
}

// accepted is what the user said to a question, if it was agreed to.
func accepted(all mcp.InputResponseMap, key string) (map[string]any, bool) {
	e, ok := all[key].(*mcp.ElicitResult)
	if !ok || e == nil || e.Action != "accept" || len(e.Content) == 0 {
		return nil, false
	}
	return e.Content, true
}

// asking has the client make the call again.
func asking(state string, questions mcp.InputRequestMap) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
}

// addRounds adds the tools that ask by having the call made again.
func addRounds(s *mcp.Server) {
	add := func(name string, run func(req *mcp.CallToolRequest, answers mcp.InputResponseMap, state string) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: "test_input_required_result_" + name, Description: "Asks: " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return run(req, req.Params.InputResponses, req.Params.RequestState)
			})
	}
	add("elicitation", func(_ *mcp.CallToolRequest, got mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
		if name, ok := accepted(got, "user_name"); ok {
			return content(fmt.Sprintf("Hello, %v!", name["name"])), nil
		}
		return asking("", mcp.InputRequestMap{"user_name": question("What is your name?", "name", "string")})
	})
	add("sampling", func(_ *mcp.CallToolRequest, got mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
		if got["capital_question"] != nil {
			return content("the model answered"), nil
		}
		return asking("", mcp.InputRequestMap{"capital_question": prompt("What is the capital of France?")})
	})
	add("list_roots", func(_ *mcp.CallToolRequest, got mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
		if r, ok := got["client_roots"].(*mcp.ListRootsResult); ok {
			return content(fmt.Sprintf("%d roots", len(r.Roots))), nil
		}
		return asking("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
	})
	for _, name := range []string{"request_state", "tampered_state"} {
		add(name, func(_ *mcp.CallToolRequest, got mcp.InputResponseMap, state string) (*mcp.CallToolResult, error) {
			_, ok := accepted(got, "confirm")
			switch {
			case state != "" && state != "confirming":
				return nil, invalid("the state is not one that was given out")
			case ok && state != "":
				return content("state-ok"), nil
			}
			return asking("confirming", mcp.InputRequestMap{"confirm": question("Please confirm", "ok", "boolean")})
		})
	}
	add("multiple_inputs", func(_ *mcp.CallToolRequest, got mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
		if got["user_name"] != nil && got["greeting"] != nil && got["client_roots"] != nil {
			return content("all were answered"), nil
		}
		return asking("several", mcp.InputRequestMap{
			"user_name": question("What is your name?", "name", "string"), "greeting": prompt("Generate a greeting"), "client_roots": &mcp.ListRootsParams{},
		})
	})
	add("multi_round", func(_ *mcp.CallToolRequest, got mcp.InputResponseMap, state string) (*mcp.CallToolResult, error) {
		switch state {
		case "":
			return asking("first", mcp.InputRequestMap{"step1": question("What is your name?", "name", "string")})
		case "first":
			return asking("second", mcp.InputRequestMap{"step2": question("What is your favorite color?", "color", "string")})
		}
		return content("both rounds were answered"), nil
	})
	add("capabilities", func(req *mcp.CallToolRequest, got mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
		caps := req.ClientCapabilities()
		ask := mcp.InputRequestMap{}
		if caps != nil && caps.Elicitation != nil {
			ask["user_name"] = question("What is your name?", "name", "string")
		}
		if caps != nil && caps.Sampling != nil {
			ask["greeting"] = prompt("Generate a greeting")
		}
		if len(got) > 0 || len(ask) == 0 {
			return content("nothing more is asked"), nil
		}
		return asking("", ask)
	})
}
