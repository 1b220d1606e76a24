package api

import (
	"encoding/json"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

var (
	waits = []param{{name: "wait", about: "seconds to wait for a person, where one is asked; 0 when left out", number: true, most: int64(maxWait / time.Second)}}
	asks  = param{name: "state", about: "only those in this state", among: approvalStates}
	is    = param{name: "state", about: "only those in this state", among: invocationStates}
	part  = []param{{name: "pointer", about: "which argument, as the request's display has it"}, {name: "page", about: "which page, from 1", number: true, least: 1, most: 1 << 20}}
	after = param{name: "after", about: "a sequence number: entries after it, the oldest first", number: true, most: maxSeq}
	head  = param{name: "head", about: "a hash that the ledger must contain"}
)

// callRefusals are how the gate can refuse a call.
var callRefusals = []writ.Kind{
	writ.Pending, writ.NotFound, writ.Denied, writ.Rejected, writ.Expired, writ.Stopped, writ.Cancelled, writ.Changed, writ.Conflict, writ.SandboxUnavailable, writ.Unknown,
}

// routes is the table: everything there is at either door.
func routes() []route {
	const get, post, del = "GET", "POST", "DELETE"
	return []route{
		{method: get, path: "/v1/health", doors: bothDoors, who: anyone, id: "health", summary: "Ask whether the daemon answers", reply: client.Health{}, run: health},
		{method: get, path: resourcePath, doors: agentDoor, who: anyone, id: "protectedResource", summary: "Say whose access tokens are taken (RFC 9728); not found where there is no issuer",
			reply: ProtectedResource{}, refuses: []writ.Kind{writ.NotFound}, run: showResource},
		{method: get, path: resourcePath + "/mcp", doors: agentDoor, who: anyone, id: "protectedResourceMCP", summary: "The same, where clients of /mcp look for it",
			reply: ProtectedResource{}, refuses: []writ.Kind{writ.NotFound}, run: showResource},
		{method: get, path: "/v1/openapi.json", doors: bothDoors, who: local, id: "openapi", summary: "This document", reply: json.RawMessage{}, run: openAPI},

		{method: post, path: "/v1/calls", doors: bothDoors, who: agents, id: "call", summary: "Call a tool", query: waits,
			body: client.CallRequest{}, reply: client.CallReply{}, refuses: callRefusals, run: makeCall},
		{method: post, path: "/v1/batches", doors: bothDoors, who: agents, id: "batch", summary: "Call several tools; results keep the order of the calls", query: waits,
			body: client.BatchRequest{}, reply: client.BatchReply{}, run: makeBatch},

		{method: post, path: "/v1/sessions", doors: bothDoors, who: agents, id: "openSession", summary: "Open a session of this token",
			body: client.SessionRequest{}, reply: client.Session{}, refuses: []writ.Kind{writ.Conflict}, run: openSession},
		{method: get, path: "/v1/sessions", doors: bothDoors, who: either, id: "listSessions", summary: "List this token's sessions, newest first; for the operator: all",
			query: paged(), reply: client.Page[client.Session]{}, run: listSessions},
		{method: get, path: "/v1/sessions/{id}", doors: bothDoors, who: either, id: "showSession", summary: "Show a session", reply: client.Session{}, run: showSession},
		{method: post, path: "/v1/sessions/{id}/end", doors: bothDoors, who: either, id: "endSession", summary: "End a session, its tasks and all they own",
			reply: client.Status{}, refuses: []writ.Kind{writ.Conflict}, run: endSession},

		{method: post, path: "/v1/tasks", doors: bothDoors, who: agents, id: "startTask", summary: "Open a task, or find the open one of that name",
			body: client.TaskRequest{}, reply: client.Task{}, refuses: []writ.Kind{writ.NotFound, writ.Conflict}, run: startTask},
		{method: get, path: "/v1/tasks", doors: bothDoors, who: either, id: "listTasks", summary: "List the tasks of this token's sessions, newest first; for the operator: all",
			query: paged(), reply: client.Page[client.Task]{}, run: listTasks},
		{method: get, path: "/v1/tasks/{id}", doors: bothDoors, who: either, id: "showTask", summary: "Show a task", reply: client.Task{}, run: showTask},
		{method: post, path: "/v1/tasks/{id}/end", doors: bothDoors, who: either, id: "endTask", summary: "End a task and all it owns", reply: client.Status{}, run: endTask},
		{method: post, path: "/v1/tasks/{id}/rating", doors: operatorDoor, who: operator, id: "rateTask", summary: "Say what a person thinks of a task",
			body: client.RatingRequest{}, reply: client.Status{}, run: rateTask},

		{method: get, path: "/v1/tools", doors: bothDoors, who: either, id: "listTools", summary: "List the tools this agent may use; for the operator: all, with their state",
			query: paged(), reply: client.Page[client.Tool]{}, run: listTools},
		{method: get, path: "/v1/tools/{name}", doors: bothDoors, who: either, id: "showTool", summary: "Show a tool's definition", reply: client.Tool{}, run: showTool},
		{method: get, path: "/v1/tools/{name}/diff", doors: operatorDoor, who: operator, id: "diffTool", summary: "Show what changed in a definition since a person accepted it",
			reply: client.ToolDiff{}, run: diffTool},
		{method: post, path: "/v1/tools/{name}/accept", doors: operatorDoor, who: operator, id: "acceptTool", summary: "Let a definition be used as it was shown",
			body: client.AcceptRequest{}, reply: client.Status{}, refuses: []writ.Kind{writ.Changed, writ.Conflict}, run: acceptTool},
		{method: post, path: "/v1/tools/{name}/waiver", doors: operatorDoor, who: operator, id: "waiveTool", summary: "Let a tool count as less, with a person's passphrase",
			body: client.WaiveRequest{}, reply: client.Status{}, refuses: []writ.Kind{writ.Changed, writ.Conflict}, run: waiveTool},
		{method: del, path: "/v1/tools/{name}/waiver", doors: operatorDoor, who: operator, id: "endWaiver", summary: "Let a tool count as what it is again",
			reply: client.Status{}, run: endWaiver},
		{method: get, path: "/v1/waivers", doors: operatorDoor, who: operator, id: "listWaivers", summary: "List every waiver there was, the oldest first",
			query: paged(), reply: client.Page[client.Waiver]{}, run: listWaivers},

		{method: get, path: "/v1/upstreams", doors: operatorDoor, who: operator, id: "listUpstreams", summary: "List the MCP servers behind the gateway, each with its state and tools",
			query: paged(), reply: client.Page[client.Upstream]{}, run: listUpstreams},
		{method: get, path: "/v1/upstreams/{name}", doors: operatorDoor, who: operator, id: "showUpstream", summary: "Show an MCP server: its state, what it reaches, its tools",
			reply: client.Upstream{}, run: showUpstream},
		{method: post, path: "/v1/upstreams/{name}/test", doors: operatorDoor, who: operator, id: "testUpstream", summary: "Connect to an MCP server anew and say how it went",
			reply: client.UpstreamTest{}, run: testUpstream},
		{method: post, path: "/v1/upstreams/{name}/restart", doors: operatorDoor, who: operator, id: "restartUpstream", summary: "End an MCP server's process or connection, begin anew, and show it then",
			reply: client.Upstream{}, refuses: []writ.Kind{writ.Conflict}, run: restartUpstream},
		{method: post, path: "/v1/upstreams/{name}/accept", doors: operatorDoor, who: operator, id: "acceptUpstream", summary: "Let definitions of an MCP server be used as they were shown, with a person's passphrase",
			body: client.UpstreamAcceptRequest{}, reply: client.Status{}, refuses: []writ.Kind{writ.Changed, writ.Conflict}, run: acceptUpstream},

		{method: get, path: "/v1/connections", doors: operatorDoor, who: operator, id: "listConnections", summary: "List the connections, without what their secrets hold",
			query: paged(), reply: client.Page[client.Connection]{}, run: listConnections},
		{method: get, path: "/v1/connections/{name}", doors: operatorDoor, who: operator, id: "showConnection", summary: "Show a connection: where it leads, what may be sent over it, where its secrets are kept",
			reply: client.Connection{}, run: showConnection},
		{method: post, path: "/v1/connections/{name}/test", doors: operatorDoor, who: operator, id: "testConnection", summary: "Look a connection's secrets up and ask its address for an answer",
			reply: client.ConnectionTest{}, run: testConnection},
		{method: get, path: "/v1/secrets", doors: operatorDoor, who: operator, id: "listSecrets", summary: "List the secrets in the store: names, when and by whom each was set",
			query: paged(), reply: client.Page[client.Secret]{}, run: listSecrets},
		{method: post, path: "/v1/secrets/{name}", doors: operatorDoor, who: operator, id: "setSecret", summary: "Keep a secret in the store, encrypted, with a person's passphrase",
			body: client.SecretRequest{}, reply: client.Status{}, refuses: []writ.Kind{writ.TooLarge}, run: setSecret},
		{method: del, path: "/v1/secrets/{name}", doors: operatorDoor, who: operator, id: "removeSecret", summary: "Forget a secret of the store",
			reply: client.Status{}, run: removeSecret},
		{method: post, path: "/v1/secret-checks", doors: operatorDoor, who: operator, id: "checkSecret", summary: "Say whether a secret can be had by its reference, and about how long it is",
			body: client.SecretCheckRequest{}, reply: client.SecretCheck{}, run: checkSecret},

		{method: get, path: "/v1/agents", doors: bothDoors, who: either, id: "listAgents", summary: "List this agent and those below it; for the operator: all",
			query: paged(), reply: client.Page[client.Agent]{}, run: listAgents},
		{method: get, path: "/v1/agents/{name}", doors: bothDoors, who: either, id: "showAgent", summary: "Show an agent", reply: client.Agent{}, run: showAgent},
		{method: get, path: "/v1/tree", doors: operatorDoor, who: operator, id: "showTree", summary: "Show every agent under the one above it", reply: client.Tree{}, run: showTree},
		{method: post, path: "/v1/delegations", doors: bothDoors, who: agents, id: "delegate", summary: "Make a child of this agent, which reaches at most what this one does",
			body: client.DelegationRequest{}, reply: client.Delegated{}, refuses: []writ.Kind{writ.NotFound, writ.Conflict}, run: delegate},
		{method: post, path: "/v1/delegations/{name}/end", doors: bothDoors, who: either, id: "endDelegation", summary: "End a delegated agent and all below it",
			reply: client.Status{}, run: endDelegation},
		{method: post, path: "/v1/agents/{name}/tokens", doors: operatorDoor, who: operator, id: "newToken", summary: "Make a token for an agent; it is shown this once",
			body: client.PersonRequest{}, reply: client.NewToken{}, refuses: []writ.Kind{writ.Conflict}, run: newToken},
		{method: del, path: "/v1/tokens/{id}", doors: operatorDoor, who: operator, id: "revokeToken", summary: "End a token, and what was opened and delegated with it",
			reply: client.Status{}, run: revokeToken},

		{method: get, path: "/v1/approvals", doors: bothDoors, who: either, id: "listApprovals", summary: "List this agent's requests for a person, newest first; for the operator: all",
			query: paged(asks), reply: client.Page[client.Approval]{}, run: listApprovals},
		{method: get, path: "/v1/approvals/{id}", doors: bothDoors, who: either, id: "showApproval", summary: "Show what became of a request; for the operator: all of it",
			reply: client.Approval{}, refuses: []writ.Kind{writ.TooLarge}, run: showApproval},
		{method: get, path: "/v1/approvals/{id}/argument", doors: operatorDoor, who: operator, id: "showArgument", summary: "Show one page of a long argument, made safe to print",
			query: part, reply: client.Item{}, refuses: []writ.Kind{writ.Conflict, writ.TooLarge}, run: showArgument},
		{method: post, path: "/v1/approvals/{id}/preview", doors: operatorDoor, who: operator, id: "previewEdit",
			summary: "Show a request as it would be with other arguments, decided anew; nothing changes",
			body:    client.PreviewRequest{}, reply: client.Approval{}, refuses: []writ.Kind{writ.Changed, writ.Conflict, writ.Expired, writ.TooLarge}, run: previewApproval},
		{method: post, path: "/v1/approvals/{id}/decision", doors: operatorDoor, who: operator, id: "decide", summary: "Answer a request, with a person's passphrase",
			body: client.DecisionRequest{}, reply: client.Approval{}, refuses: []writ.Kind{writ.Changed, writ.Conflict, writ.Expired}, run: decideApproval},
		{method: get, path: "/v1/grants", doors: bothDoors, who: either, id: "listGrants", summary: "List the standing approvals of this agent and those below it, newest first; for the operator: all",
			query: paged(), reply: client.Page[client.Grant]{}, run: listGrants},
		{method: post, path: "/v1/grants/{id}/revoke", doors: bothDoors, who: either, id: "revokeGrant", summary: "End a standing approval", reply: client.Status{}, run: revokeGrant},

		{method: get, path: "/v1/invocations", doors: bothDoors, who: either, id: "listInvocations", summary: "List this agent's calls, newest first; for the operator: all",
			query: paged(is), reply: client.Page[client.Invocation]{}, run: listInvocations},
		{method: get, path: "/v1/invocations/{id}", doors: bothDoors, who: either, id: "showInvocation",
			summary: "Show a call; with wait, once it has ended. This is where a call that was answered 202 is looked for", query: waits, reply: client.Invocation{}, run: showInvocation},
		{method: get, path: "/v1/invocations/{id}/events", doors: bothDoors, who: either, id: "invocationEvents", query: []param{after}, media: "text/event-stream", stream: streamInvocation,
			summary: "Stream what happens to one call (tool_invocation_…) until it has ended. Last-Event-ID, or after, resumes; left out: from its beginning", refuses: []writ.Kind{writ.Conflict}},
		{method: post, path: "/v1/invocations/{id}/cancel", doors: bothDoors, who: either, id: "cancelInvocation", summary: "End a call: what waits is not asked about any more, what runs is killed",
			reply: client.Invocation{}, refuses: []writ.Kind{writ.Conflict}, run: cancelInvocation},
		{method: post, path: "/v1/invocations/{id}/resolution", doors: operatorDoor, who: operator, id: "resolveInvocation", summary: "Say what a person found out about an unknown outcome",
			body: client.ResolutionRequest{}, reply: client.Invocation{}, refuses: []writ.Kind{writ.Conflict}, run: resolveInvocation},

		{method: get, path: "/v1/ledger", doors: operatorDoor, who: operator, id: "listLedger", summary: "List entries of the ledger, the newest first",
			query: paged(after), reply: client.Page[client.Entry]{}, run: listLedger},
		{method: get, path: "/v1/ledger/calls/{id}", doors: operatorDoor, who: operator, id: "ledgerOfCall", summary: "List the entries about one call, the oldest first",
			query: paged(), reply: client.Page[client.Entry]{}, run: ledgerCall},
		{method: get, path: "/v1/ledger/verify", doors: operatorDoor, who: operator, id: "verifyLedger", summary: "Check every entry, link, signature and witnessed head",
			query: []param{head}, reply: client.LedgerReport{}, run: verifyLedger},
		{method: get, path: "/v1/ledger/export", doors: operatorDoor, who: operator, id: "exportLedger", summary: "The whole ledger as JSON Lines",
			media: "application/jsonl", stream: exportLedger},
		{method: get, path: "/v1/events", doors: bothDoors, who: either, id: "events", query: []param{after}, media: "text/event-stream", stream: streamEvents,
			summary: "Stream entries of the ledger as they are committed: id is the sequence number, event the kind, data the entry. " +
				"Last-Event-ID, or after, resumes; an agent gets its own entries and those of agents below it", refuses: []writ.Kind{writ.Conflict}},

		{method: get, path: "/v1/invocation-events", doors: bothDoors, who: either, id: "allInvocationEvents", query: []param{after}, media: "text/event-stream", stream: streamInvocations,
			summary: "Stream what happens to calls: event is tool_invocation_ and one of requested, denied, approval_required, approved, rejected, expired, started, completed, failed, cancelled, unknown. " +
				"Last-Event-ID, or after, resumes; an agent gets its own and those of agents below it", refuses: []writ.Kind{writ.Conflict}},

		{method: get, path: "/v1/egress", doors: operatorDoor, who: operator, id: "listEgress", summary: "List what left sandboxes and what was refused to, the newest first",
			query: paged(egressFilters...), reply: client.Page[client.Egress]{}, run: listEgress},
		{method: post, path: "/v1/egress", doors: operatorDoor, who: operator, id: "reportEgress", summary: "Add what left the sandbox of a command that a person ran ('writ run')",
			body: client.EgressReport{}, reply: client.Status{}, run: reportEgress},

		{method: get, path: "/v1/webhooks", doors: operatorDoor, who: operator, id: "listWebhooks", summary: "List who is told what happens to calls, and how each is doing",
			query: paged(), reply: client.Page[client.Webhook]{}, run: listWebhooks},
		{method: post, path: "/v1/webhooks/{name}/test", doors: operatorDoor, who: operator, id: "testWebhook", summary: "Send a webhook a message that says nothing has happened",
			reply: client.WebhookTest{}, run: testWebhook},
		{method: post, path: "/v1/webhooks/{name}/retry", doors: operatorDoor, who: operator, id: "retryWebhook", summary: "Try again at once what failed or was given up",
			body: client.WebhookRetry{}, reply: client.Status{}, run: retryWebhook},

		{method: get, path: "/metrics", doors: operatorDoor, who: operator, id: "metrics", summary: "Counters since the daemon started, and what there is now, as Prometheus reads them",
			media: "text/plain", stream: showMetrics},

		{method: get, path: "/v1/sandboxes", doors: operatorDoor, who: operator, id: "listSandboxes", summary: "List the sandboxes there are: in use, and kept for the next call; or those there were",
			query: paged(param{name: "state", about: "ended: those that are over, of daemons before too, the newest first: all that were kept or were containers", among: []string{"ended"}}), reply: client.Page[client.Sandbox]{}, run: listSandboxes},
		{method: get, path: "/v1/sandboxes/{id}", doors: operatorDoor, who: operator, id: "showSandbox", summary: "Everything that is known of a sandbox, also of one that is over",
			reply: client.Sandbox{}, run: showSandbox},
		{method: post, path: "/v1/sandboxes/{id}/exec", doors: operatorDoor, who: operator, id: "execSandbox", summary: "Run a command in a sandbox that is kept and that nobody uses, confined as its calls are, with a person's passphrase",
			body: client.SandboxExecRequest{}, reply: client.CallReply{}, refuses: callRefusals, run: execSandbox},
		{method: post, path: "/v1/sandboxes/{id}/kill", doors: operatorDoor, who: operator, id: "killSandbox", summary: "End a sandbox and what runs in it",
			reply: client.Status{}, run: killSandbox},
		{method: post, path: "/v1/unconfined", doors: operatorDoor, who: operator, id: "startUnconfined", summary: "Write down a command that is about to run with nothing around it",
			body: client.UnconfinedRequest{}, reply: client.Unconfined{}, run: startUnconfined},
		{method: post, path: "/v1/unconfined/{id}/end", doors: operatorDoor, who: operator, id: "endUnconfined", summary: "Write down how such a command ended",
			body: client.UnconfinedEnd{}, reply: client.Status{}, refuses: []writ.Kind{writ.Conflict}, run: endUnconfined},

		{method: get, path: "/v1/stops", doors: operatorDoor, who: operator, id: "listStops", summary: "List the stops in force",
			query: paged(), reply: client.Page[client.Stop]{}, run: listStops},
		{method: post, path: "/v1/stops", doors: operatorDoor, who: operator, id: "stop", summary: "Stop an agent, or everybody",
			body: client.StopRequest{}, reply: client.Status{}, refuses: []writ.Kind{writ.NotFound}, run: stopAgent},
		{method: post, path: "/v1/stops/{agent}/lift", doors: operatorDoor, who: operator, id: "lift", summary: "Lift a stop, with a person's passphrase",
			body: client.PersonRequest{}, reply: client.Status{}, run: liftStop},
		{method: get, path: "/v1/people", doors: operatorDoor, who: operator, id: "listPeople", summary: "List who can decide",
			query: paged(), reply: client.Page[client.Person]{}, run: listPeople},
		{method: post, path: "/v1/people", doors: operatorDoor, who: operator, id: "addPerson", summary: "Add somebody, with an admin's passphrase; or make the first person, while there is nobody",
			body: client.NewPersonRequest{}, reply: client.Status{}, refuses: []writ.Kind{writ.Conflict}, run: addPerson},
		{method: post, path: "/v1/people/{name}/role", doors: operatorDoor, who: operator, id: "setRole", summary: "Give somebody another role, with an admin's passphrase",
			body: client.RoleRequest{}, reply: client.Status{}, refuses: []writ.Kind{writ.Conflict}, run: setRole},
		{method: post, path: "/v1/people/{name}/passphrase", doors: operatorDoor, who: operator, id: "setPassphrase",
			summary: "Replace a passphrase: one's own with the old one, or as an admin somebody else's", body: client.PassphraseRequest{}, reply: client.Status{}, run: setPassphrase},
		{method: post, path: "/v1/explain", doors: operatorDoor, who: operator, id: "explain", summary: "Decide a call without making it",
			body: client.ExplainRequest{}, reply: client.Explanation{}, refuses: []writ.Kind{writ.NotFound}, run: explain},
		{method: get, path: "/v1/config", doors: operatorDoor, who: operator, id: "showConfig", summary: "List the values in force and where each came from",
			query: paged(), reply: client.Page[client.Value]{}, run: showConfig},
		{method: post, path: "/v1/config/reload", doors: operatorDoor, who: operator, id: "reloadConfig", summary: "Read the configuration again",
			reply: client.Reloaded{}, refuses: []writ.Kind{writ.Conflict}, run: reloadConfig},
		{method: get, path: "/v1/doctor", doors: operatorDoor, who: operator, id: "doctor", summary: "Examine the set-up: what is enforced on this machine", reply: client.Doctor{}, run: doctor},
		{method: post, path: "/v1/shutdown", doors: operatorDoor, who: operator, id: "shutdown", summary: "End the daemon", reply: client.Status{}, run: shutdown},
	}
}
