package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newFixture is the MCP server inside the program.
func newFixture() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"test"}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	addResources(s)
	addPrompts(s)
	addRounds(s)
	var added atomic.Int64
	none := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&mcp.Tool{Name: "json_schema_2020_12_tool", Description: "Its schema is to arrive as it is.", InputSchema: json.RawMessage(fullSchema)}, answering("taken"))
	s.AddTool(&mcp.Tool{Name: "test_trigger_tool_change", Description: "Changes the list of tools.", InputSchema: none}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		name := fmt.Sprintf("another_tool_%d", added.Add(1)) // what is there already would change nothing
		s.AddTool(&mcp.Tool{Name: name, Description: "Appeared.", InputSchema: none}, answering("here"))
		return content("changed"), nil
	})
	s.AddTool(&mcp.Tool{Name: "test_trigger_prompt_change", Description: "Changes the list of prompts.", InputSchema: none}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddPrompt(&mcp.Prompt{Name: fmt.Sprintf("another_prompt_%d", added.Add(1)), Description: "Appeared."}, speaking("", &mcp.TextContent{Text: "here"}))
		return content("changed"), nil
	})
	return s
}

// fullSchema has what a gateway could lose of a schema.
const fullSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
	`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},` +
	`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},` +
	`"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

func content(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func answering(text string) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return content(text), nil }
}

func addResources(s *mcp.Server) {
	picture, _ := base64.StdEncoding.DecodeString(png) // it is a constant
	reading := func(c mcp.ResourceContents) mcp.ResourceHandler {
		return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			is := c
			is.URI = req.Params.URI
			is.Text = strings.ReplaceAll(is.Text, "{id}", strings.TrimSuffix(strings.TrimPrefix(is.URI, "test://template/"), "/data"))
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&is}}, nil
		}
	}
	text := mcp.ResourceContents{MIMEType: "text/plain", Text: "This is the content of the static text resource."}
	s.AddResource(&mcp.Resource{URI: "test://static-text", Name: "static-text", Description: "A text.", MIMEType: "text/plain"}, reading(text))
	s.AddResource(&mcp.Resource{URI: "test://static-binary", Name: "static-binary", Description: "A picture.", MIMEType: "image/png"}, reading(mcp.ResourceContents{MIMEType: "image/png", Blob: picture}))
	s.AddResource(&mcp.Resource{URI: "test://watched-resource", Name: "watched-resource", Description: "One to be told of.", MIMEType: "text/plain"}, reading(text))
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", Description: "One of many.", MIMEType: "application/json"},
		reading(mcp.ResourceContents{MIMEType: "application/json", Text: `{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}`}))
}

// speaking is a prompt of some messages; {NAME} in texts is an argument.
func speaking(uri string, all ...mcp.Content) mcp.PromptHandler {
	return func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		out := &mcp.GetPromptResult{}
		for _, c := range all {
			switch is := c.(type) {
			case *mcp.TextContent:
				text := is.Text
				for name, value := range req.Params.Arguments {
					text = strings.ReplaceAll(text, "{"+name+"}", value)
				}
				c = &mcp.TextContent{Text: text}
			case *mcp.EmbeddedResource:
				r := *is.Resource
				r.URI = req.Params.Arguments[uri]
				c = &mcp.EmbeddedResource{Resource: &r}
			}
			out.Messages = append(out.Messages, &mcp.PromptMessage{Role: "user", Content: c})
		}
		return out, nil
	}
}

func addPrompts(s *mcp.Server) {
	picture, _ := base64.StdEncoding.DecodeString(png)
	arg := func(names ...string) (out []*mcp.PromptArgument) {
		for _, n := range names {
			out = append(out, &mcp.PromptArgument{Name: n, Description: "An argument.", Required: true})
		}
		return out
	}
	s.AddPrompt(&mcp.Prompt{Name: "test_simple_prompt", Description: "A text."}, speaking("", &mcp.TextContent{Text: "This is a simple prompt for testing."}))
	s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_arguments", Description: "A text with arguments.", Arguments: arg("arg1", "arg2")},
		speaking("", &mcp.TextContent{Text: "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"}))
	s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_embedded_resource", Description: "A resource.", Arguments: arg("resourceUri")}, speaking("resourceUri",
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{MIMEType: "text/plain", Text: "Embedded resource content for testing."}}, &mcp.TextContent{Text: "Please read it."}))
	s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_image", Description: "A picture."}, speaking("", &mcp.ImageContent{Data: picture, MIMEType: "image/png"}, &mcp.TextContent{Text: "Please look at it."}))
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "Asks first."}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		got, ok := accepted(req.Params.InputResponses, "user_context")
		if !ok {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": question("What is it about?", "context", "string")}}, nil
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprint(got["context"])}}}}, nil
	})
}

func invalid(why string) error { return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why} }
