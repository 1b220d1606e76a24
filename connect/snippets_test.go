package connect

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is printed is whole JSON, with the entry where the client looks for it.
func TestSnippets(t *testing.T) {
	both := Server{Command: "/opt/a b/\"writ\"", Args: []string{"mcp", "--agent", "coder"}, URL: "http://127.0.0.1:7323/mcp"}
	type fields = map[string]any
	args := []any{"mcp", "--agent", "coder"}
	auth := func(token string) fields { return fields{"Authorization": "Bearer " + token} }
	want := map[string]struct {
		list        string
		stdio, http fields
	}{
		"cursor":   {"mcpServers", fields{"command": both.Command, "args": args}, fields{"url": both.URL, "headers": auth("${env:WRIT_TOKEN}")}},
		"vscode":   {"servers", fields{"type": "stdio", "command": both.Command, "args": args}, fields{"type": "http", "url": both.URL, "headers": auth("${input:writ-token}")}},
		"gemini":   {"mcpServers", fields{"command": both.Command, "args": args}, fields{"httpUrl": both.URL, "headers": auth("$WRIT_TOKEN")}},
		"copilot":  {"mcpServers", fields{"type": "local", "tools": []any{"*"}, "command": both.Command, "args": args}, fields{"type": "http", "tools": []any{"*"}, "url": both.URL, "headers": auth("TOKEN")}},
		"windsurf": {"mcpServers", fields{"command": both.Command, "args": args}, fields{"serverUrl": both.URL, "headers": auth("${env:WRIT_TOKEN}")}},
		"zed":      {"context_servers", fields{"command": both.Command, "args": args}, fields{"url": both.URL, "headers": auth("TOKEN")}},
		"generic":  {"mcpServers", fields{"type": "stdio", "command": both.Command, "args": args}, fields{"type": "http", "url": both.URL, "headers": auth("${WRIT_TOKEN}")}},
	}
	seen := 0
	for _, c := range Clients {
		w, ok := want[c.Name]
		if !ok {
			continue
		}
		seen++
		for text, entry := range map[string]fields{c.Stdio(both): w.stdio, c.HTTP(both): w.http} {
			var got map[string]any
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%s: %v\n%s", c.Name, err, text)
			}
			if diff := cmp.Diff(fields{Name: entry}, got[w.list]); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.Name, diff)
			}
		}
	}
	if seen != len(want) || len(Clients) != seen+3 {
		t.Errorf("%d of %d clients were looked at", seen, len(Clients))
	}
}

func TestGoose(t *testing.T) {
	const stdio = `extensions:
  writ:
    enabled: true
    type: stdio
    name: writ
    description: tools behind writ
    cmd: "/opt/writ"
    args:
      - "mcp"
      - "--agent"
      - "coder"
    timeout: 300
`
	const http = `extensions:
  writ:
    enabled: true
    type: streamable_http
    name: writ
    description: tools behind writ
    uri: "http://127.0.0.1:7323/mcp"
    headers:
      Authorization: Bearer TOKEN
    timeout: 300
`
	if diff := cmp.Diff(stdio+http, gooseStdio(coder)+gooseHTTP(remote)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
