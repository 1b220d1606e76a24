package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	mcpInit  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	mcpStat  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stat","arguments":{"path":"."}%s}}`
	mcpAlone = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

// mcp sends one message, with headers as they are given in pairs; an empty value takes
// a usual one away.
func (w *world) mcp(method, agent, body string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	req, err := http.NewRequest(method, w.url+"/mcp", strings.NewReader(body))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if agent != "" {
		req.Header.Set("Authorization", "Bearer "+w.token(agent))
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := w.doors[agentDoor].Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	must(w.t, err)
	return resp, string(b)
}

// TestMCPDoor is what a request to the MCP door has to be before its message counts, and
// whose session is whose. Each refusal stands beside the same request that is taken.
func TestMCPDoor(t *testing.T) {
	w := newWorld(t)
	resp, _ := w.mcp("POST", "coder", mcpInit)
	session := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != 200 || session == "" {
		t.Fatal(resp.Status)
	}
	stat, alone := fmt.Sprintf(mcpStat, ""), fmt.Sprintf(mcpStat, mcpAlone)
	in := []string{"Mcp-Session-Id", session}
	modern := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "stat"}
	and := func(base []string, more ...string) []string { return append(append([]string{}, base...), more...) }
	for what, c := range map[string]struct {
		method, agent, body string
		headers             []string
		status              int
		want                string
	}{
		"in a session":                 {"POST", "coder", stat, in, 200, `"result"`},
		"alone":                        {"POST", "coder", alone, modern, 200, `"resultType":"complete"`},
		"nobody":                       {"POST", "", stat, in, 401, "send the agent's token"},
		"another agent's session":      {"POST", "other", stat, in, 404, "no such session"},
		"a made-up session":            {"POST", "coder", stat, []string{"Mcp-Session-Id", "AAAA"}, 404, "no such session"},
		"no session":                   {"POST", "coder", stat, nil, 400, "initialize first"},
		"another's stream":             {"GET", "other", "", in, 404, "no such session"},
		"another's end":                {"DELETE", "other", "", in, 404, "no such session"},
		"another host":                 {"POST", "coder", stat, and(in, "Host", "evil.example"), 421, "not served here"},
		"a web page":                   {"POST", "coder", stat, and(in, "Origin", "http://evil.example"), 403, "web pages"},
		"no type":                      {"POST", "coder", stat, and(in, "Content-Type", "text/plain"), 415, "application/json"},
		"no stream":                    {"POST", "coder", stat, and(in, "Accept", "application/json"), 406, "text/event-stream"},
		"a batch":                      {"POST", "coder", "[" + stat + "]", in, 400, "batches are not taken"},
		"two names":                    {"POST", "coder", strings.Replace(stat, `"name":"stat"`, `"name":"stat","name":"delete_file"`, 1), in, 400, "-32700"},
		"a method nobody has":          {"POST", "coder", strings.Replace(stat, "tools/call", "tools/drop", 1), in, 200, "-32601"},
		"a version nobody has":         {"POST", "coder", stat, and(in, "Mcp-Protocol-Version", "2025-01-01"), 400, "-32022"},
		"another method in a header":   {"POST", "coder", alone, and(modern, "Mcp-Method", "tools/list"), 400, "-32020"},
		"another name in a header":     {"POST", "coder", alone, and(modern, "Mcp-Name", "delete_file"), 400, "-32020"},
		"no name in a header":          {"POST", "coder", alone, and(modern, "Mcp-Name", ""), 400, "-32020"},
		"another version in a header":  {"POST", "coder", alone, and(modern, "Mcp-Protocol-Version", "2025-11-25"), 400, "-32020"},
		"no version in the message":    {"POST", "coder", stat, modern, 400, "-32602"},
		"a name in base64":             {"POST", "coder", alone, and(modern, "Mcp-Name", "=?base64?c3RhdA==?="), 200, `"resultType":"complete"`},
		"another name in base64":       {"POST", "coder", alone, and(modern, "Mcp-Name", "=?base64?ZGVsZXRlX2ZpbGU=?="), 400, "-32020"},
		"a name in broken base64":      {"POST", "coder", alone, and(modern, "Mcp-Name", "=?base64?c3RhdA?="), 400, "-32020"},
		"a name like base64, as it is": {"POST", "coder", strings.Replace(alone, `"stat"`, `"=?base64?c3RhdA==?="`, 1), and(modern, "Mcp-Name", "=?base64?c3RhdA==?="), 400, "-32020"},
		"a stream of no version":       {"GET", "coder", "", and(in, "Mcp-Protocol-Version", "1999-01-01"), 400, "-32022"},
		"an end of no version":         {"DELETE", "coder", "", and(in, "Mcp-Protocol-Version", "zzz"), 400, "-32022"},
		"a beginning in a session":     {"POST", "coder", mcpInit, in, 200, "this session has begun"},
		"a large beginning":            {"POST", "coder", strings.Replace(mcpInit, `"t"`, `"`+strings.Repeat("t", 64<<10)+`"`, 1), nil, 413, "may have 65536"},
		"a large question":             {"POST", "coder", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("t", 64<<10) + `"}}`, in, 413, "may have 65536"},
		"a large call":                 {"POST", "coder", strings.Replace(stat, `"."`, `".`+strings.Repeat("/.", 64<<10)+`"`, 1), in, 200, `"result"`},
		"a level nobody has":           {"POST", "coder", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`, in, 200, "-32602"},
		"a level":                      {"POST", "coder", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`, in, 200, `"result"`},
		"the header of a peer":         {"POST", "", stat, and(in, "Writ-Agent", "coder"), 403, "on a Unix socket"},
		"a session where none is":      {"GET", "coder", "", []string{"Mcp-Protocol-Version", "2026-07-28"}, 405, "no sessions"},
	} {
		resp, body := w.mcp(c.method, c.agent, c.body, c.headers...)
		if resp.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %s %s", what, resp.Status, body)
		}
	}
	if resp, _ := w.mcp("DELETE", "coder", "", in...); resp.StatusCode/100 != 2 {
		t.Errorf("its own end: %s", resp.Status)
	}
	if resp, _ := w.mcp("POST", "coder", stat, in...); resp.StatusCode != 404 {
		t.Errorf("after its end: %s", resp.Status)
	}
}
