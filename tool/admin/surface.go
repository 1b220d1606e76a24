package admin

// Arguments that several operations take.
var (
	whose    = param{name: "agent", kind: text, about: "Only of this agent: yourself or one below you. Left out: yourself and all below you."}
	below    = param{name: "agent", kind: text, required: true, about: "An agent below you, by name; writ_agents_list shows them."}
	callID   = param{name: "id", kind: text, required: true, about: "The call, call_…; writ_invocations_list shows them."}
	since    = param{name: "since", kind: moment, about: "Only from this time on, as 2026-03-01T10:00:00Z."}
	until    = param{name: "until", kind: moment, about: "Only before this time; later than since."}
	toolName = param{name: "tool", kind: text, required: true, about: "A tool's name; writ_tools_list shows them."}
)

func named(name, about string) param {
	return param{name: name, kind: text, required: true, about: about}
}

// surface is every operation there is, by domain. A domain is a function; a new one
// is added here: manifest, trust, toolsmith, analytics.
func surface() []operation {
	var out []operation
	for _, domain := range [][]operation{
		agents(), approvals(), audit(), config(), connections(), egress(), health(), invocations(), policies(), sandboxes(), tools(), upstreams(),
	} {
		out = append(out, domain...)
	}
	return out
}

func agents() []operation {
	const d = "agents"
	session := named("session", "A session of yours, by id; writ_agents_sessions shows them.")
	task := named("task", "A task of yours, task_…; writ_agents_tasks shows them.")
	free := func(required bool, about string) param {
		return param{name: "name", kind: text, most: 128, free: true, required: required, about: about}
	}
	delegate := write(d, "delegate", "Make a child agent", "A child's token must not pass through a model: use 'writ agent delegate NAME', or POST /v1/delegations.",
		named("name", "What the child is called."))
	delegate.gap = "a child's token must not pass through a model; make the child with 'writ agent delegate NAME', or POST /v1/delegations"
	return []operation{
		listing(d, "list", "List agents", "List yourself and the agents below you: role, level, autonomy, workspace, what they may use."),
		read(d, "show", "Show an agent", "Show yourself or an agent below you.", named("agent", "Its name.")),
		listing(d, "sessions", "List sessions", "List the sessions of yourself and the agents below you, the newest first.", whose),
		listing(d, "tasks", "List tasks", "List the tasks of yourself and the agents below you, the newest first.", whose),
		listing(d, "stops", "List stops", "List the stops of agents below you that are in force."),
		write(d, "start_session", "Open a session", "Open a session of your token.", free(false, "What it is called.")),
		write(d, "start_task", "Open a task", "Open a task, or find the open one of that name, in the session of this call.", free(true, "What it is called; not beginning with task_.")),
		write(d, "end_session", "End a session", "End a session of your token, its tasks, the agents delegated in it and all they own.", session),
		write(d, "end_task", "End a task", "End a task of your token's sessions and all it owns.", task),
		write(d, "end", "End a delegated agent", "End an agent that was delegated below you, and all below it.", below),
		delegate,
		admin(d, "stop", "Stop an agent", "Stop an agent below you: its calls are refused, what it runs is killed, what it asked for is void. Only a person lifts a stop.", below),
		admin(d, "revoke_token", "Revoke tokens", "End the tokens of an agent below you, and what was opened and delegated with them.", below,
			param{name: "token", kind: text, about: "One of them, tok_…. Left out: all."}),
		byPerson(d, "lift_stop", "Lift a stop", "writ stop --lift AGENT --as NAME", named("agent", "Who is stopped.")),
		byPerson(d, "new_token", "Make a token", "writ agent token AGENT", named("agent", "For whom.")),
		byPerson(d, "rate_task", "Rate a task", "writ task rate ID RATING", named("task", "Which."), param{name: "rating", kind: number, most: 10, required: true, about: "From 0 to 10."}),
	}
}

func approvals() []operation {
	const d = "approvals"
	id := named("id", "The request, call_…; writ_approvals_list shows them.")
	state := param{name: "state", kind: text, among: []string{"pending", "approved", "used", "rejected", "expired", "void"}, about: "Only those in this state."}
	return []operation{
		listing(d, "list", "List requests", "List what people were asked about calls of yourself and the agents below you, the newest first. Arguments are not shown.", state, whose, since, until),
		read(d, "show", "Show a request", "Show what became of a request, and who answered.", id),
		listing(d, "grants", "List standing approvals", "List the standing approvals of yourself and the agents below you, the newest first."),
		admin(d, "revoke_grant", "Revoke a standing approval", "End a standing approval of yourself or an agent below you.", named("grant", "Its id; writ_approvals_grants shows them.")),
		byPerson(d, "approve", "Approve a call", "writ approval approve ID", id),
		byPerson(d, "reject", "Reject a call", "writ approval reject ID", id),
		byPerson(d, "grant", "Grant calls", "writ approval grant ID", id),
		byPerson(d, "add_person", "Add a person", "writ person add NAME ROLE", named("name", "Who.")),
	}
}

func audit() []operation {
	const d = "audit"
	return []operation{
		listing(d, "list", "List ledger entries", "List entries of the ledger about yourself and the agents below you, the newest first.", whose,
			param{name: "call", kind: text, about: "Only about this call, call_…."}, param{name: "kind", kind: text, about: "Only of this kind, as call.finished."}, since, until),
		read(d, "verify", "Verify the ledger", "Check every entry, link, signature and witnessed head of the ledger, and say whether they hold. 'writ ledger verify' says what does not."),
	}
}

func config() []operation {
	const d = "config"
	return []operation{
		listing(d, "show", "Show the configuration", "List the values in force that bear on you and the agents below you. Other agents, people, listeners, the store and secrets are left out.",
			param{name: "prefix", kind: text, about: "Only keys that begin so, as autonomy."}),
		read(d, "check", "Check the configuration", "Say whether the configuration on disk holds, and whether it is the one in force. 'writ config check' says what is wrong."),
		byPerson(d, "reload", "Reload the configuration", "writ config reload"),
	}
}

func connections() []operation {
	const d = "connections"
	name := named("name", "Which; writ_connections_list shows them.")
	return []operation{
		listing(d, "list", "List connections", "List the connections that you may use: which tools take them and where they lead. Credentials are put on where calls leave, and are nowhere to be read."),
		byPerson(d, "test", "Test a connection", "writ connection test NAME", name),
		byPerson(d, "set_secret", "Set a secret", "writ secret set NAME", name),
	}
}

func egress() []operation {
	return []operation{
		listing("egress", "list", "List what left sandboxes", "List what left the sandboxes of yourself and the agents below you, and what was refused to, the newest first, with what would allow it.", whose,
			param{name: "call", kind: text, about: "Only of this call, call_…."}, param{name: "verdict", kind: text, among: []string{"refused"}, about: "Only what was not let through."}, since, until),
	}
}

func health() []operation {
	return []operation{read("health", "show", "Show health", "Say that the daemon answers, its version, the policy in force, and who you are to it.")}
}

func invocations() []operation {
	const d = "invocations"
	state := param{name: "state", kind: text, about: "Only those in this state.",
		among: []string{"pending", "running", "completed", "failed", "rejected", "expired", "cancelled", "unknown", "denied"}}
	return []operation{
		listing(d, "list", "List calls", "List calls of yourself and the agents below you, the newest first.", state, whose, since, until),
		read(d, "show", "Show a call", "Show a call: its life and what was measured. What came of it is handed over where the call was made, not here.", callID),
		write(d, "cancel", "Cancel a call", "End a call of yourself or an agent below you: what waits is not asked about any more, what runs is killed.", callID),
		byPerson(d, "resolve", "Resolve an unknown outcome", "writ invocation resolve ID", callID),
	}
}

func policies() []operation {
	return []operation{read("policy", "explain", "Explain a decision", "Decide a call without making it, and say why: of yourself, or of an agent below you.", toolName,
		param{name: "arguments", kind: object, about: "The arguments of the call; none when left out."},
		param{name: "agent", kind: text, about: "Who would make it; yourself when left out."})}
}

func sandboxes() []operation {
	const d = "sandbox"
	return []operation{
		listing(d, "list", "List sandboxes", "List the sandboxes of yourself and the agents below you, the oldest first."),
		read(d, "show", "Show a sandbox", "Show a sandbox of yourself or an agent below you, also one that is over: what it is made of, and how the last commands in it ended.", named("id", "The sandbox, box_….")),
		read(d, "doctor", "Examine the sandboxes", "Say what each sandbox driver of this machine enforces, by trying."),
		admin(d, "kill", "Kill a sandbox", "End a sandbox of yourself or an agent below you, and what runs in it.", named("id", "The sandbox; writ_sandbox_list shows them.")),
	}
}

func tools() []operation {
	const d = "tools"
	return []operation{
		listing(d, "list", "List tools", "List the tools that you may use."),
		read(d, "show", "Show a tool", "Show the definition of a tool that you may use.", toolName),
		byPerson(d, "accept", "Accept a definition", "writ tool accept NAME", toolName),
		byPerson(d, "waive", "Waive a class", "writ tool waive NAME", toolName),
		byPerson(d, "end_waiver", "End a waiver", "writ tool waive NAME --end", toolName),
	}
}

func upstreams() []operation {
	const d = "upstreams"
	server := named("server", "A server's name; writ_upstreams_list shows them.")
	return []operation{
		listing(d, "list", "List MCP servers", "List the MCP servers behind the gateway whose tools you may use, and whether they are connected."),
		read(d, "show", "Show an MCP server", "Show a server and those of its tools that are for you. What is new or changed is suspended until a person accepts it.", server),
		write(d, "test", "Test an MCP server", "Connect to a server anew and say whether it works. 'writ upstream test NAME' says why it does not.", server),
		byPerson(d, "accept", "Accept a server's tools", "writ upstream accept NAME", server),
	}
}
