package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/tool"
)

// What the suite looks for in content: the smallest picture, and the smallest sound.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

// running is a call of a tool of this program.
type running struct {
	ctx  context.Context
	args map[string]any
	peer tool.Peer // nil: nobody listens
}

// made is a tool that asks nobody. params are the properties of its arguments, JSON.
func made(name, params string, run func(running) (writ.Result, error)) engine.Tool {
	return engine.Tool{
		Name: name, Description: "Part of the conformance fixture: " + name + ".", Class: writ.ClassNone,
		Parameters: json.RawMessage(`{"type":"object","properties":` + params + `}`),
		Run: func(ctx context.Context, args json.RawMessage) (writ.Result, error) {
			r := running{ctx: ctx, peer: tool.PeerOf(ctx)}
			if err := json.Unmarshal(args, &r.args); err != nil {
				return writ.Result{}, err
			}
			return run(r)
		},
	}
}

// plainTools are those that answer at once, or speak to the client meanwhile.
func plainTools() []engine.Tool {
	says := func(name, text string) engine.Tool {
		return made(name, `{}`, func(running) (writ.Result, error) { return said(text) })
	}
	shows := func(name, content string) engine.Tool {
		return made(name, `{}`, func(running) (writ.Result, error) {
			return writ.Result{Content: name, Metadata: map[string]any{"content_blocks": json.RawMessage(content)}}, nil
		})
	}
	return []engine.Tool{
		says("test_simple_text", "This is a simple text response for testing."),
		says("test_streaming_elicitation", "nothing is asked"),
		shows("test_image_content", `[{"type":"image","data":"`+png+`","mimeType":"image/png"}]`),
		shows("test_audio_content", `[{"type":"audio","data":"`+wav+`","mimeType":"audio/wav"}]`),
		shows("test_embedded_resource", `[{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}]`),
		shows("test_multiple_content_types", `[{"type":"text","text":"Multiple content types test:"},{"type":"image","data":"`+png+`","mimeType":"image/png"},`+
			`{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{\"test\":\"data\",\"value\":123}"}}]`),
		made("test_error_handling", `{}`, func(running) (writ.Result, error) {
			return writ.Result{Content: "This tool intentionally returns an error for testing", IsError: true}, nil
		}),
		made("test_reconnection", `{}`, func(r running) (writ.Result, error) { return r.after(100*time.Millisecond, "it went on") }),
		made("test_tool_with_logging", `{}`, logs),
		made("test_logging_tool", `{}`, logs),
		made("test_tool_with_progress", `{}`, progresses),
		made("test_missing_capability", `{}`, func(r running) (writ.Result, error) {
			if r.can("sampling") {
				return said("the client can sample")
			}
			return lacking(`{"sampling":{}}`)
		}),
		made("test_sampling", `{"prompt":{"type":"string"}}`, samples),
		made("test_elicitation", `{"message":{"type":"string"}}`, func(r running) (writ.Result, error) {
			return r.elicits(fmt.Sprint(r.args["message"]), `{"type":"object","properties":{"username":{"type":"string","description":"A name"},"email":{"type":"string","description":"An address"}},"required":["username","email"]}`)
		}),
		made("test_elicitation_sep1034_defaults", `{}`, func(r running) (writ.Result, error) { return r.elicits("defaults", defaultsSchema) }),
		made("test_elicitation_sep1330_enums", `{}`, func(r running) (writ.Result, error) { return r.elicits("choices", enumsSchema) }),
	}
}

const defaultsSchema = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},` +
	`"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}},"required":[]}`

const enumsSchema = `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
	`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
	`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
	`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},` +
	`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}},"required":[]}`

func said(text string) (writ.Result, error) { return writ.Result{Content: text}, nil }

// refused is an error of the protocol, not of the tool.
func refused(code int, message, data string) (writ.Result, error) {
	e := map[string]any{"code": code, "message": message}
	if data != "" {
		e["data"] = json.RawMessage(data)
	}
	return writ.Result{Content: message, IsError: true, Metadata: map[string]any{"rpc_error": e}}, nil
}

// lacking refuses a client that cannot do what the tool needs.
func lacking(capabilities string) (writ.Result, error) {
	return refused(-32021, "the client lacks a capability", `{"requiredCapabilities":`+capabilities+`}`)
}

// can reports whether the client of a request that stands alone can do something.
func (r running) can(keys ...string) bool {
	var meta map[string]any
	if r.peer == nil || json.Unmarshal(r.peer.Round().Meta, &meta) != nil {
		return false
	}
	at := meta["io.modelcontextprotocol/clientCapabilities"]
	for _, k := range keys {
		m, ok := at.(map[string]any)
		if at = m[k]; !ok || at == nil {
			return false
		}
	}
	return true
}

// after waits, as long as it is wanted.
func (r running) after(d time.Duration, text string) (writ.Result, error) {
	select {
	case <-time.After(d):
		return said(text)
	case <-r.ctx.Done():
		return writ.Result{}, r.ctx.Err()
	}
}

func logs(r running) (writ.Result, error) {
	for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if r.peer != nil {
			r.peer.Log(json.RawMessage(fmt.Sprintf(`{"level":"info","data":%q}`, text)))
		}
		if _, err := r.after(50*time.Millisecond, ""); err != nil {
			return writ.Result{}, err
		}
	}
	return said("logged")
}

func progresses(r running) (writ.Result, error) {
	for _, n := range []int{0, 50, 100} {
		if r.peer != nil {
			r.peer.Progress(json.RawMessage(fmt.Sprintf(`{"progress":%d,"total":100}`, n)))
		}
		if _, err := r.after(50*time.Millisecond, ""); err != nil {
			return writ.Result{}, err
		}
	}
	return said("done")
}

// asks puts a request to the client.
func (r running) asks(method, params string) (json.RawMessage, error) {
	if r.peer == nil {
		return nil, errors.New("nobody can be asked")
	}
	return r.peer.Ask(r.ctx, method, json.RawMessage(params))
}

func (r running) elicits(message, schema string) (writ.Result, error) {
	got, err := r.asks("elicitation/create", fmt.Sprintf(`{"message":%q,"requestedSchema":%s}`, message, schema))
	if err != nil {
		return writ.Result{}, err
	}
	return said("the user answered " + string(got))
}

func samples(r running) (writ.Result, error) {
	got, err := r.asks("sampling/createMessage", fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":%q}}],"maxTokens":100}`, r.args["prompt"]))
	if err != nil {
		return writ.Result{}, err
	}
	var m struct{ Content struct{ Text string } }
	if err := json.Unmarshal(got, &m); err != nil {
		return writ.Result{}, err
	}
	return said("LLM response: " + m.Content.Text)
}
