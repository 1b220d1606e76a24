package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMCPDisclosure: an agent with many tools is shown the way to them; what it loads
// it may call, in that session and no other, and its client is told.
func TestMCPDisclosure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "tool_disclosure: {active: always}\n").init()
	for name, version := range map[string]string{"2026-07-28": "", "2025-06-18": "2025-06-18"} {
		t.Run(name, func(t *testing.T) {
			p := w.speak(version, `{}`, "--agent", "coder")
			other := w.speak(version, `{}`, "--agent", "coder")
			discovery := []string{"list_tools", "load_tool", "load_tool_resource"}
			seen := func(p *peer) []string {
				return slices.DeleteFunc(p.names(), func(s string) bool { return s == "writ_resume" })
			}
			if got := seen(p); !slices.Equal(got, discovery) {
				t.Errorf("at first: %v", got)
			}
			if version == "" {
				p.begin("subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
				p.until("notifications/subscriptions/acknowledged")
			}
			if text, failed := p.call("stat", `{"path":"."}`); !failed || !strings.Contains(text, "load_tool") {
				t.Errorf("before it is loaded: %q", text)
			}
			if text, failed := p.call("list_tools", `{"query":"look at one file"}`); failed || !strings.Contains(text, "stat") || strings.Contains(text, "move_file") {
				t.Errorf("list_tools: %q", text)
			}
			if text, failed := p.call("load_tool", `{"tool_name":"move_file"}`); !failed {
				t.Errorf("a denied tool is loaded: %q", text)
			}
			if text, failed := p.call("load_tool", `{"tool_name":"stat"}`); failed || !strings.Contains(text, `"path"`) {
				t.Errorf("load_tool: %q", text)
			}
			p.until("notifications/tools/list_changed")
			if got := seen(p); !slices.Equal(got, append(slices.Clone(discovery), "stat")) {
				t.Errorf("then: %v", got)
			}
			if text, failed := p.call("stat", `{"path":"."}`); failed {
				t.Errorf("once it is loaded: %q", text)
			}
			if got := seen(other); !slices.Equal(got, discovery) {
				t.Errorf("another session: %v", got)
			}
			fill := fmt.Sprintf(`{"name":"load_tool","arguments":{"tool_name":"read_file"},"_meta":{"run.writ/context_fill":95%s}}`, p.meta())
			if text, failed := textOf(p.askWith("tools/call", fill)); failed || !strings.Contains(text, "Unloaded to make room: stat") {
				t.Errorf("under pressure: %q", text)
			}
			if got := seen(p); !slices.Equal(got, append(slices.Clone(discovery), "read_file")) {
				t.Errorf("after pressure: %v", got)
			}
		})
	}
}
