package connect

import (
	"fmt"
	"strings"
)

// Client is an MCP client. Files of most are not edited: what belongs in them is
// printed, for a person to paste.
type Client struct {
	Name, Title string
	File        string // where its configuration is
	Note        string // what to know of pasting
	stdio, http func(Server) string
}

// Printed says whether a client's file is a person's to edit.
func (c Client) Printed() bool { return c.stdio != nil }

// Stdio is what to paste for a server that the client starts.
func (c Client) Stdio(s Server) string { return c.stdio(s) }

// HTTP is what to paste for a daemon that runs already.
func (c Client) HTTP(s Server) string { return c.http(s) }

const envToken = "With HTTP, the client takes the token from WRIT_TOKEN: export it where the client starts."

const pasteToken = "With HTTP, put the token in place of TOKEN, and keep the file to yourself (chmod 600)."

// Clients are those that connect knows, in the order of the help.
var Clients = []Client{
	{Name: "claude-code", Title: "Claude Code", File: "~/.claude.json, or .mcp.json of a project"},
	{Name: "codex", Title: "Codex", File: "~/.codex/config.toml"},
	{"cursor", "Cursor", "~/.cursor/mcp.json, or .cursor/mcp.json of a project", envToken,
		started("mcpServers", ""), reached("mcpServers", `"url": %s`, "${env:WRIT_TOKEN}")},
	{"vscode", "VS Code", ".vscode/mcp.json of a project, or the command \"MCP: Open User Configuration\"", "With HTTP, VS Code asks for the token once and keeps it.",
		started("servers", `"type": "stdio"`), vscodeHTTP},
	{"gemini", "Gemini CLI", "~/.gemini/settings.json, or .gemini/settings.json of a project", envToken,
		started("mcpServers", ""), reached("mcpServers", `"httpUrl": %s`, "$WRIT_TOKEN")},
	{"copilot", "GitHub Copilot CLI", "~/.copilot/mcp-config.json", pasteToken,
		started("mcpServers", `"type": "local", "tools": ["*"]`), reached("mcpServers", `"type": "http", "tools": ["*"], "url": %s`, "TOKEN")},
	{"windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", envToken,
		started("mcpServers", ""), reached("mcpServers", `"serverUrl": %s`, "${env:WRIT_TOKEN}")},
	{"zed", "Zed", "~/.config/zed/settings.json", pasteToken,
		started("context_servers", ""), reached("context_servers", `"url": %s`, "TOKEN")},
	{"goose", "goose", "~/.config/goose/config.yaml", pasteToken, gooseStdio, gooseHTTP},
	{"generic", "any other client", "its list of MCP servers", "Names of keys differ from client to client; the command, its arguments, the URL and the header do not.",
		started("mcpServers", `"type": "stdio"`), reached("mcpServers", `"type": "http", "url": %s`, "${WRIT_TOKEN}")},
}

func pretty(format string, args ...any) string {
	return indented(fmt.Sprintf(format, args...), "", "  ") + "\n"
}

func started(list, more string) func(Server) string {
	if more != "" {
		more += ", "
	}
	return func(s Server) string {
		env := ""
		if s.State != "" {
			env = `, "env": ` + JSON{}.value(s.env())
		}
		return pretty(`{%q: {%q: {%s"command": %s, "args": %s%s}}}`, list, Name, more, JSON{}.value(s.Command), JSON{}.value(s.Args), env)
	}
}

func reached(list, url, token string) func(Server) string {
	return func(s Server) string {
		return pretty(`{%q: {%q: {%s, "headers": {"Authorization": "Bearer %s"}}}}`, list, Name, fmt.Sprintf(url, JSON{}.value(s.URL)), token)
	}
}

func vscodeHTTP(s Server) string {
	return pretty(`{"inputs": [{"type": "promptString", "id": "writ-token", "description": "Token of the agent (writ agent token)", "password": true}],
		"servers": {%q: {"type": "http", "url": %s, "headers": {"Authorization": "Bearer ${input:writ-token}"}}}}`, Name, JSON{}.value(s.URL))
}

// A JSON string is a YAML string.
func gooseStdio(s Server) string {
	var b strings.Builder
	fmt.Fprintf(&b, "extensions:\n  writ:\n    enabled: true\n    type: stdio\n    name: writ\n    description: tools behind writ\n    cmd: %s\n    args:\n", JSON{}.value(s.Command))
	for _, arg := range s.Args {
		fmt.Fprintf(&b, "      - %s\n", JSON{}.value(arg))
	}
	if s.State != "" {
		fmt.Fprintf(&b, "    envs:\n      %s: %s\n", StateVariable, JSON{}.value(s.State))
	}
	b.WriteString("    timeout: 300\n")
	return b.String()
}

func gooseHTTP(s Server) string {
	return fmt.Sprintf("extensions:\n  writ:\n    enabled: true\n    type: streamable_http\n    name: writ\n    description: tools behind writ\n    uri: %s\n    headers:\n      Authorization: Bearer TOKEN\n    timeout: 300\n", JSON{}.value(s.URL))
}
