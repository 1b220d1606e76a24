package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// scripted is a model that says what a test has it say, to clients of two makes:
// it looks at what its tools returned so far, and names the next call.
type scripted struct {
	*httptest.Server
	// next is the call after some results; an empty tool ends the conversation.
	next func(results []string) (tool string, args map[string]any)

	mu      sync.Mutex
	offered map[string]bool // tools that the client showed, by their own names
	results []string        // of the conversation, by now
}

func newModel(t *testing.T, next func(results []string) (string, map[string]any)) *scripted {
	m := &scripted{next: next, offered: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/responses", m.responses)
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// seen is what the model was shown: its tools, and what they returned.
func (m *scripted) seen() (offered map[string]bool, results []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.offered, m.results
}

// turn decides about the next call. names are the tools by their full names.
func (m *scripted) turn(names, results []string) (name string, args []byte) {
	m.mu.Lock()
	if len(results) >= len(m.results) {
		m.results = results
	}
	full := map[string]string{}
	for _, n := range names {
		full[n[strings.LastIndex(n, "__")+1:]] = n
		if _, own, ok := strings.Cut(n, "mcp__writ__"); ok {
			m.offered[own], full[own] = true, n
		}
	}
	m.mu.Unlock()
	if len(full) == 0 { // a question besides, such as for a title
		return "", nil
	}
	tool, with := m.next(results)
	if tool == "" {
		return "", nil
	}
	args, _ = json.Marshal(with) // of a test's own
	return full[tool], args
}

func events(w http.ResponseWriter, all ...map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all {
		b, _ := json.Marshal(e)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], b)
	}
}

type object = map[string]any

// messages speaks to Claude Code.
func (m *scripted) messages(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct{ Content json.RawMessage }
		Tools    []struct{ Name string }
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var names, results []string
	for _, t := range in.Tools {
		names = append(names, t.Name)
	}
	for _, msg := range in.Messages {
		var blocks []struct {
			Type    string
			Content json.RawMessage
		}
		if json.Unmarshal(msg.Content, &blocks) != nil {
			continue // a text
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				results = append(results, texts(b.Content))
			}
		}
	}
	name, args := m.turn(names, results)
	block, delta, why := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "done"}, "end_turn"
	if name != "" {
		block = object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(results)), "name": name, "input": object{}}
		delta, why = object{"type": "input_json_delta", "partial_json": string(args)}, "tool_use"
	}
	usage := object{"input_tokens": 1, "output_tokens": 1}
	events(w,
		object{"type": "message_start", "message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "stop_reason": nil, "usage": usage}},
		object{"type": "content_block_start", "index": 0, "content_block": block},
		object{"type": "content_block_delta", "index": 0, "delta": delta},
		object{"type": "content_block_stop", "index": 0},
		object{"type": "message_delta", "delta": object{"stop_reason": why}, "usage": usage},
		object{"type": "message_stop"})
}

// responses speaks to Codex.
func (m *scripted) responses(w http.ResponseWriter, r *http.Request) {
	type tool struct {
		Type, Name string
		Tools      []struct{ Name string }
	}
	var in struct {
		Input []struct {
			Type   string
			Output json.RawMessage
		}
		Tools []tool
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var names, results []string
	for _, t := range in.Tools {
		if t.Type != "namespace" {
			names = append(names, t.Name)
		}
		for _, inner := range t.Tools {
			names = append(names, t.Name+"__"+inner.Name)
		}
	}
	for _, i := range in.Input {
		if i.Type == "function_call_output" {
			results = append(results, texts(i.Output))
		}
	}
	name, args := m.turn(names, results)
	item := object{"type": "message", "id": "m", "role": "assistant", "content": []any{object{"type": "output_text", "text": "done", "annotations": []any{}}}}
	if name != "" {
		item = object{"type": "function_call", "id": fmt.Sprintf("fc_%d", len(results)), "call_id": fmt.Sprintf("call_%d", len(results)), "name": name, "arguments": string(args)}
		if space, own, ok := strings.Cut(name, "writ__"); ok {
			item["namespace"], item["name"] = space+"writ", own
		}
	}
	events(w,
		object{"type": "response.created", "response": object{"id": "r"}},
		object{"type": "response.output_item.done", "output_index": 0, "item": item},
		object{"type": "response.completed", "response": object{"id": "r", "usage": object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}})
}

// texts is what a result says: a string, or blocks of text.
func texts(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []struct{ Text string }
	if json.Unmarshal(raw, &blocks) != nil {
		return string(raw)
	}
	for _, b := range blocks {
		s += b.Text + "\n"
	}
	return s
}
