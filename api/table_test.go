package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

const by = `{"name":"alice","passphrase":"` + passphrase + `"}`

// walk asks for every operation of the table once, in an order in which all of them
// succeed. ask holds each answer against the document.
func walk(w *world) map[string]func(d door) answer {
	w.t.Helper()
	child := map[door]client.Delegated{}
	session, task, grant := map[door]string{}, map[door]string{}, map[door]string{}
	unknown, sandbox, bare := map[door]string{}, "", ""
	lost := func(d door) string { // a call of which nobody knows what came
		if unknown[d] == "" {
			unknown[d] = w.send("coder", fmt.Sprint("lost", d))
			w.decide(unknown[d], `"approve":true`)
			w.ended(unknown[d])
		}
		return unknown[d]
	}
	as := func(d door, method, target, body string) answer {
		return w.ok(ask{door: d, token: "coder", method: method, target: target, body: body})
	}
	root := func(method, target, body string) answer {
		return w.ok(ask{door: operatorDoor, method: method, target: target, body: body})
	}
	get := func(target string) func(door) answer { return func(d door) answer { return as(d, "GET", target, "") } }
	op := func(method, target, body string) func(door) answer {
		return func(door) answer { return root(method, target, body) }
	}
	digest := func(a answer) string { return jsonOf[struct{ Digest string }](w.t, a).Digest }
	return map[string]func(d door) answer{
		"health":  get("/v1/health"),
		"openapi": get("/v1/openapi.json"),

		"protectedResource": nil, "protectedResourceMCP": nil, // TestServedMetadata: an issuer has to be configured
		"call": func(d door) answer { return as(d, "POST", "/v1/calls?wait=0", `{"tool":"stat","args":{"path":"."}}`) },
		"batch": func(d door) answer {
			return as(d, "POST", "/v1/batches", `{"calls":[{"tool":"stat","args":{"path":"."}},{"tool":"nothing"}],"order":"concurrent","max_concurrency":2}`)
		},
		"openSession": func(d door) answer {
			a := as(d, "POST", "/v1/sessions", `{"name":"morning"}`)
			session[d] = jsonOf[client.Session](w.t, a).ID
			return a
		},
		"listSessions": get("/v1/sessions?limit=2"),
		"showSession":  func(d door) answer { return as(d, "GET", "/v1/sessions/"+session[d], "") },
		"endSession":   func(d door) answer { return as(d, "POST", "/v1/sessions/"+session[d]+"/end", "") },
		"startTask": func(d door) answer {
			a := as(d, "POST", "/v1/tasks", fmt.Sprintf(`{"name":"fix","session":%q}`, session[d]))
			task[d] = jsonOf[client.Task](w.t, a).ID
			return a
		},
		"listTasks": get("/v1/tasks"),
		"showTask":  func(d door) answer { return as(d, "GET", "/v1/tasks/"+task[d], "") },
		"endTask":   func(d door) answer { return as(d, "POST", "/v1/tasks/"+task[d]+"/end", "{}") },
		"rateTask":  func(d door) answer { return root("POST", "/v1/tasks/"+task[d]+"/rating", `{"rating":0,"by":`+by+`}`) },
		"listTools": get("/v1/tools"),
		"showTool": func(d door) answer {
			root("GET", "/v1/tools/read_file", "")
			return as(d, "GET", "/v1/tools/read_file", "")
		},
		"diffTool": op("GET", "/v1/tools/count_words/diff", ""),
		"acceptTool": func(door) answer {
			d := digest(root("GET", "/v1/tools/count_words/diff", ""))
			return root("POST", "/v1/tools/count_words/accept", `{"digest":"`+d+`","by":`+by+`}`)
		},
		"waiveTool": func(door) answer {
			must(w.t, w.engine.Register(w.t.Context(), engine.Tool{Name: "publish", Run: func(context.Context, json.RawMessage) (writ.Result, error) { return writ.Result{}, nil }}))
			d := digest(root("GET", "/v1/tools/publish", ""))
			return root("POST", "/v1/tools/publish/waiver", `{"egress_class":"none","reason":"test","digest":"`+d+`","by":`+by+`}`)
		},
		"listWaivers": op("GET", "/v1/waivers", ""),
		"endWaiver":   op("DELETE", "/v1/tools/publish/waiver", ""),
		"listUpstreams": func(door) answer {
			w.behind()
			return root("GET", "/v1/upstreams", "")
		},
		"showUpstream":    op("GET", "/v1/upstreams/web", ""),
		"testUpstream":    op("POST", "/v1/upstreams/web/test", ""),
		"restartUpstream": op("POST", "/v1/upstreams/web/restart", ""),
		"acceptUpstream": func(door) answer {
			var digests []string
			for _, t := range jsonOf[client.Upstream](w.t, root("GET", "/v1/upstreams/web", "")).Suspended() {
				digests = append(digests, fmt.Sprintf("%q:%q", t.Name, t.Digest))
			}
			return root("POST", "/v1/upstreams/web/accept", `{"digests":{`+strings.Join(digests, ",")+`},"by":`+by+`}`)
		},
		"listAgents": get("/v1/agents"),
		"showAgent":  get("/v1/agents/helper"),
		"showTree":   op("GET", "/v1/tree", ""),
		"delegate": func(d door) answer {
			a := as(d, "POST", "/v1/delegations", `{"name":"kid","lasts_seconds":60,"request":{"level":"sandboxed","autonomy":"locked","allowed":["read_file"],"denied":["write_file"],"constraints":{"file_system":"workspace_only","network":"none"}}}`)
			child[d] = jsonOf[client.Delegated](w.t, a)
			return a
		},
		"endDelegation": func(d door) answer {
			return as(d, "POST", "/v1/delegations/"+url.PathEscape(child[d].Agent)+"/end", "")
		},
		"newToken": op("POST", "/v1/agents/other/tokens", `{"by":`+by+`}`),
		"revokeToken": func(door) answer {
			id := jsonOf[client.NewToken](w.t, root("POST", "/v1/agents/other/tokens", `{"by":`+by+`}`)).ID
			return root("DELETE", "/v1/tokens/"+id, "")
		},
		"listApprovals": func(d door) answer {
			w.pending("coder", fmt.Sprint("listed", d))
			return as(d, "GET", "/v1/approvals?state=pending", "")
		},
		"showApproval": func(d door) answer {
			return as(d, "GET", "/v1/approvals/"+w.pending("coder", fmt.Sprint("shown", d)), "")
		},
		"decide": func(door) answer {
			id := w.pending("coder", "decided")
			d := digest(root("GET", "/v1/approvals/"+id, ""))
			return root("POST", "/v1/approvals/"+id+"/decision", `{"digest":"`+d+`","approve":false,"reason":"no","by":`+by+`}`)
		},
		"showArgument": func(door) answer {
			return root("GET", "/v1/approvals/"+w.pending("coder", "argued")+"/argument?pointer=%2Fpath&page=1", "")
		},
		"previewEdit": func(door) answer {
			return root("POST", "/v1/approvals/"+w.pending("coder", "previewed")+"/preview", `{"args":{"path":"listed1"}}`)
		},
		"listGrants": func(d door) answer {
			w.decide(w.send("coder", fmt.Sprint("granted", d)), `"approve":true,"grant":{"uses":3,"seconds":60}`)
			a := as(d, "GET", "/v1/grants", "")
			grant[d] = jsonOf[client.Page[client.Grant]](w.t, a).Data[0].ID
			return a
		},
		"revokeGrant":     func(d door) answer { return as(d, "POST", "/v1/grants/"+grant[d]+"/revoke", "") },
		"listInvocations": get("/v1/invocations?state=pending&limit=2"),
		"showInvocation":  func(d door) answer { return as(d, "GET", "/v1/invocations/"+lost(d)+"?wait=60", "") },
		"resolveInvocation": func(d door) answer {
			return root("POST", "/v1/invocations/"+lost(d)+"/resolution", `{"happened":"partly","note":"half of it arrived","by":`+by+`}`)
		},
		"invocationEvents": func(d door) answer { return as(d, "GET", "/v1/invocations/"+lost(d)+"/events", "") },
		"cancelInvocation": func(d door) answer {
			return as(d, "POST", "/v1/invocations/"+w.send("coder", fmt.Sprint("cancelled", d))+"/cancel", "")
		},
		"allInvocationEvents": nil, // it does not end by itself: TestInvocationEvents
		"listLedger":          op("GET", "/v1/ledger?after=3&limit=5", ""),
		"ledgerOfCall": func(d door) answer {
			return root("GET", "/v1/ledger/calls/"+jsonOf[client.CallReply](w.t, as(d, "POST", "/v1/calls", `{"tool":"stat","args":{"path":"."}}`)).CallID, "")
		},
		"verifyLedger": op("GET", "/v1/ledger/verify", ""),
		"exportLedger": op("GET", "/v1/ledger/export", ""),
		"listEgress":   op("GET", "/v1/egress?call=call_x&agent=coder&verdict=refused&after=0&limit=5", ""),
		"reportEgress": op("POST", "/v1/egress", `{"events":[{"n":0,"at":"2026-01-01T00:00:00.000000000Z","agent":"","kind":"dns","host":"a.example","verdict":"allowed","sent":0,"received":0,"took_micros":1}]}`),
		"setSecret":    op("POST", "/v1/secrets/crm", `{"value":"long enough","by":`+by+`}`),
		"listSecrets":  op("GET", "/v1/secrets", ""),
		"checkSecret":  op("POST", "/v1/secret-checks", `{"reference":"store:crm"}`),
		"removeSecret": op("DELETE", "/v1/secrets/crm", ""),
		"listConnections": func(door) answer {
			w.more("connections: {crm: {base_url: 'http://127.0.0.1:1', auth: {type: bearer, secret: 'store:crm'}}}\n")
			return root("GET", "/v1/connections", "")
		},
		"showConnection": op("GET", "/v1/connections/crm", ""),
		"testConnection": op("POST", "/v1/connections/crm/test", ""),
		"listWebhooks": func(door) answer {
			w.more("approvals: {webhooks: {ops: {url: 'http://127.0.0.1:1/x', format: slack}}}\n")
			return root("GET", "/v1/webhooks?limit=5", "")
		},
		"metrics":      op("GET", "/metrics", ""),
		"testWebhook":  op("POST", "/v1/webhooks/ops/test", ""),
		"retryWebhook": op("POST", "/v1/webhooks/ops/retry", `{"from_now":true}`),
		"events":       nil, // it does not end by itself: TestEvents
		"listSandboxes": func(d door) answer {
			as(d, "POST", "/v1/calls", `{"tool":"shell_command","args":{"command":"true"}}`)
			a := root("GET", "/v1/sandboxes", "")
			sandbox = jsonOf[client.Page[client.Sandbox]](w.t, a).Data[0].ID
			return a
		},
		"showSandbox": func(door) answer { return root("GET", "/v1/sandboxes/"+sandbox, "") },
		"execSandbox": func(door) answer {
			return root("POST", "/v1/sandboxes/"+sandbox+"/exec", `{"command":["bash","-c","true"],"by":`+by+`}`)
		},
		"killSandbox": func(door) answer { return root("POST", "/v1/sandboxes/"+sandbox+"/kill", "") },
		"startUnconfined": func(door) answer {
			a := root("POST", "/v1/unconfined", unconfined)
			bare = jsonOf[client.Unconfined](w.t, a).ID
			return a
		},
		"endUnconfined": func(door) answer { return root("POST", "/v1/unconfined/"+bare+"/end", `{"exit_code":0}`) },
		"listStops":     op("GET", "/v1/stops", ""),
		"stop":          op("POST", "/v1/stops", `{"agent":"other","reason":"test"}`),
		"lift":          op("POST", "/v1/stops/other/lift", `{"by":`+by+`}`),
		"listPeople":    op("GET", "/v1/people", ""),
		"addPerson":     op("POST", "/v1/people", `{"person":{"name":"bob","role":"viewer","passphrase":"long enough"},"by":`+by+`}`),
		"setRole":       op("POST", "/v1/people/bob/role", `{"role":"approver","by":`+by+`}`),
		"setPassphrase": op("POST", "/v1/people/bob/passphrase", `{"passphrase":"another one","by":`+by+`}`),
		"explain":       op("POST", "/v1/explain", `{"agent":"coder","tool":"delete_file","args":{"path":"x"}}`),
		"showConfig":    op("GET", "/v1/config", ""),
		"reloadConfig":  op("POST", "/v1/config/reload", ""),
		"doctor":        op("GET", "/v1/doctor", ""),
		"shutdown":      nil, // TestShutdown
	}
}

// more adds to the configuration, and has it taken up.
func (w *world) more(text string) {
	was, err := os.ReadFile(filepath.Join(w.dir, "writ.yaml"))
	must(w.t, err)
	w.write("writ.yaml", string(was)+text)
	if _, err := w.engine.Reload(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// order is that of the walk: what ends something comes after what shows it.
var order = []string{
	"health", "openapi", "protectedResource", "protectedResourceMCP", "call", "batch", "openSession", "listSessions", "showSession", "startTask", "listTasks", "showTask", "rateTask", "endTask", "endSession",
	"listTools", "showTool", "diffTool", "acceptTool", "waiveTool", "listWaivers", "endWaiver", "listUpstreams", "showUpstream", "testUpstream", "restartUpstream", "acceptUpstream", "listAgents", "showAgent", "delegate", "showTree", "endDelegation", "newToken", "revokeToken",
	"listApprovals", "showApproval", "showArgument", "previewEdit", "decide", "listGrants", "revokeGrant",
	"listInvocations", "showInvocation", "invocationEvents", "resolveInvocation", "cancelInvocation", "allInvocationEvents", "listLedger", "ledgerOfCall", "verifyLedger", "exportLedger", "listEgress", "reportEgress", "setSecret", "listSecrets", "checkSecret", "listConnections", "showConnection", "testConnection", "removeSecret", "listWebhooks", "testWebhook", "retryWebhook", "metrics", "events", "listSandboxes", "showSandbox", "execSandbox", "killSandbox", "startUnconfined", "endUnconfined", "stop", "listStops", "lift",
	"listPeople", "addPerson", "setRole", "setPassphrase", "explain", "showConfig", "reloadConfig", "doctor", "shutdown",
}

// Every operation of each door's document answers as documented, the operator's own
// view included, and there is none that the walk does not know.
func TestWalk(t *testing.T) {
	w := newWorld(t)
	steps := walk(w)
	for _, d := range []door{agentDoor, operatorDoor} {
		ids := map[string]bool{}
		for path, ops := range w.spec(d).Paths {
			for method, op := range ops {
				ids[op.OperationID] = true
				if step, known := steps[op.OperationID]; !known {
					t.Errorf("%s %s is not walked", method, path)
				} else if step == nil && !slices.Contains([]string{"events", "allInvocationEvents", "shutdown", "protectedResource", "protectedResourceMCP"}, op.OperationID) {
					t.Errorf("%s %s is left out of the walk", method, path)
				}
			}
		}
		for _, id := range order {
			if ids[id] && steps[id] != nil {
				steps[id](d)
			}
		}
		if len(order) != len(steps) {
			t.Errorf("%d operations have an order and %d a step", len(order), len(steps))
		}
	}
	for _, target := range []string{"/v1/sessions", "/v1/tasks", "/v1/tools", "/v1/tools/count_words", "/v1/agents", "/v1/agents/coder", "/v1/approvals", "/v1/ledger", "/v1/egress", "/v1/invocations", "/v1/grants", "/v1/waivers"} {
		w.ok(ask{door: operatorDoor, method: "GET", target: target})
	}
}

// What is not in a door's document is not there: neither a path nor a method.
func TestNothingElse(t *testing.T) {
	w := newWorld(t)
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"}
	paths := map[string]bool{"/": true, "/v1": true, "/v1/": true, "/v2/calls": true, "/metrics": true, "/debug/pprof/": true, "/v1/calls/": true,
		"//v1/calls": true, "/v1//calls": true, "/v1/../v1/calls": true, "/v1/CALLS": true, "/v1/calls%2F": true, "/v1/%63alls": true, "/v1/sessions//end": true,
		"/v1/approvals/x/decision/": true, "/v1/tools/x/y": true, "/v1/tools//diff": true}
	for _, d := range []door{agentDoor, operatorDoor} {
		for path := range w.spec(d).Paths {
			paths[strings.NewReplacer("{", "", "}", "").Replace(path)] = true
		}
	}
	for _, d := range []door{agentDoor, operatorDoor} {
		for path := range paths {
			var allow []string
			for _, m := range methods {
				if w.spec(d).operation(m, path) != nil {
					allow = append(allow, m)
				}
			}
			slices.Sort(allow)
			for _, m := range methods {
				if slices.Contains(allow, m) {
					continue
				}
				got := w.ask(ask{door: d, token: "coder", method: m, target: path})
				want := http.StatusNotFound
				if len(allow) > 0 {
					want = http.StatusMethodNotAllowed
				}
				if got.status != want || got.header.Get("Allow") != strings.Join(allow, ", ") {
					t.Errorf("door %d: %s %s: %d, Allow %q; want %d, %q", d, m, path, got.status, got.header.Get("Allow"), want, allow)
				}
			}
		}
	}
}

// Who a route is for is held for every route: agents' need a token, operators'
// refuse one, and the agents' door has none of the operator's.
func TestAudience(t *testing.T) {
	w := newWorld(t)
	for _, r := range routes() {
		path := strings.NewReplacer("{", "", "}", "").Replace(r.path)
		body := ""
		if r.body != nil {
			body = "{}"
		}
		if r.doors&agentDoor != 0 && r.who != anyone && r.who != local {
			got := w.ask(ask{door: agentDoor, method: r.method, target: path, body: body})
			if got.status != http.StatusUnauthorized || got.problem.Kind != writ.Unauthenticated {
				t.Errorf("%s %s without a token: %d %s", r.method, path, got.status, got.body)
			}
		}
		if r.doors&agentDoor == 0 {
			if got := w.ask(ask{door: agentDoor, token: "coder", method: r.method, target: path, body: body}); got.status != 404 && got.status != 405 {
				t.Errorf("%s %s on the agents' door: %d", r.method, path, got.status)
			}
			w.refused(ask{door: operatorDoor, token: "coder", method: r.method, target: path, body: body}, 403, writ.Denied,
				"this is for the operator, and a token makes you its agent; leave the token out")
		}
		if r.who == agents {
			if got := w.ask(ask{door: operatorDoor, method: r.method, target: path, body: body}); got.status != http.StatusUnauthorized {
				t.Errorf("%s %s by the operator without a token: %d", r.method, path, got.status)
			}
		}
	}
}

func (w *world) ledgerLength() int64 {
	w.t.Helper()
	r, err := w.operator.LedgerVerify(w.t.Context(), "")
	must(w.t, err)
	return r.Entries
}

func TestShutdown(t *testing.T) {
	w := newWorld(t)
	must(t, w.operator.Shutdown(t.Context()))
	w.end()
	if _, err := w.operator.Health(t.Context()); !client.IsDown(err) {
		t.Errorf("it still answers: %v", err)
	}
}

// The names of a body's fields that must be there are those of the document.
func TestRequiredIsDocumented(t *testing.T) {
	w := newWorld(t)
	for path, ops := range w.spec(operatorDoor).Paths {
		for method, op := range ops {
			if op.RequestBody == nil {
				continue
			}
			name := op.RequestBody.Content["application/json"].Schema.name()
			var schema struct {
				Required             []string
				AdditionalProperties *bool
			}
			must(t, json.Unmarshal(w.specs[operatorDoor].Components.Schemas[name], &schema))
			if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
				t.Errorf("%s is not closed, and an unknown key is refused", name)
			}
			token := map[bool]string{true: "coder"}[len(op.Security) == 1]
			target := strings.NewReplacer("{", "", "}", "").Replace(path)
			for _, missing := range schema.Required {
				body := map[string]any{}
				for _, r := range schema.Required {
					if r == missing {
						break
					}
					body[r] = map[string]any{"rating": 1, "by": alice, "calls": []any{map[string]any{"tool": "stat"}}, "approve": true, "lasts_seconds": 5, "digests": map[string]string{}, "command": []string{"x"}, "uid": 1, "args": 1, "args_bytes": 1}[r]
					if body[r] == nil {
						body[r] = "x"
					}
				}
				b, err := json.Marshal(body)
				must(t, err)
				w.refused(ask{door: operatorDoor, token: token, method: strings.ToUpper(method), target: target, body: string(b)}, 400, writ.Invalid,
					fmt.Sprintf("JSON: field %q is missing; send it", missing))
			}
		}
	}
}
