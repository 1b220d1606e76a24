package config

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/access"
)

// full writes every key there is.
const full = `version: 1
listen: {address: 127.0.0.1:7323, certificate: $DIR/tls/cert.pem, key: $DIR/tls/key.pem, client_ca: $DIR/tls/cert.pem, socket: $DIR/run/agents.sock, oauth: {issuer: "https://idp.example", audience: "https://writ.example/mcp", scopes: {"writ:child": a.b}, subjects: {"7": a.b}, jwks_hosts: ["keys.example"]}}
store: {path: $DIR/state, witness: $DIR/tools/witness}
workspaces:
  main: {path: $DIR/project/ws, project: $DIR/project}
agents:
  a.b:
    workspace: main
    person: anna
    role: mine
    level: restricted
    autonomy: locked
    allowed: [stat, "@srv:x"]
    denied: [move_file]
    enforce_tool_policies: true
    overrides:
      file_system: workspace_only
      network: allowlist_only
      network_allowlist: [example.com]
      git: full
      code_execution: process
      terminal: full
      requires_approval: [deployment]
  child: {parent: a.b, profile: careful, certificates: [Child.Internal], users: [root]}
roles:
  mine:
    allowed: ["*"]
    denied: [delete_file]
    level: custom
    autonomy: full
    constraints: {file_system: full, network: allowlist_only, network_allowlist: [a.example], git: full, code_execution: process, terminal: full, requires_approval: [all]}
tool_access:
  restricted_commands: [git, "[", g++]
  levels:
    restricted:
      description: "two words"
      file_system: full
      network: allowlist_only
      network_allowlist: ["*.example.com:8443"]
      git: local_only
      code_execution: containerized
      terminal: none
      requires_approval: [all]
      deployment: false
autonomy:
  default: supervised
  presets:
    semi:
      auto_approve: [code]
      human_approval: [deploy]
actions:
  custom:
    crm:write: high
tools:
  {stat: {requires_approval: true, disabled: false, forbidden: false, max_invocations: 5/task, rate: 9/1h, only_after: [read_file], egress_class: read_only, dangerous: true, quorum: 3}, git_clone: {hostname_allowlist: [git.example], dns_rebinding_mitigation: true}}
sandboxing:
  default_backend: subprocess
  overrides: {git: auto}
  subprocess:
    timeout_seconds: 60
    kill_grace_seconds: 6
    workspace_only: false
    restricted_path: false
    extra_safe_path_prefixes: [/opt/tools]
  docker: {host: 'unix:///x', image: 'a:1', runtime: runsc, memory_limit: 1g, cpu_limit: 2, timeout_seconds: 60, pids_limit: 100, tmpfs_size: 1m, mount_mode: rw, auto_remove: false, network: bridge, network_overrides: {terminal: none}, allowed_hosts: ["a.example:443"], dns_allowed: false, loopback_allowed: false, sidecar_pids_limit: 40, sidecar_tmpfs_size: 2m}
  compat_env: synthorg
  lifecycle: {strategy: per-task, grace: 1m, idle: 10m}
approvals:
  expiry: 1h
  timeout: tiered
  tiers:
    low: {after: 8h, then: deny}
    critical: {after: 15m, then: escalate}
  escalation: [{role: approver, after: 30m}, {role: admin, after: 2h}]
  four_eyes: always
  quorum: 2
  max_pending: 5
  rate: 30/1h
  address: https://writ.example/
  webhooks: {ops: {url: "https://a.example/x?y=secret", secret: "env:HOOK", events: [tool_invocation_failed], format: slack, give_up_after: 2h}, all: {url: "http://localhost:1/x", secret: "file:/x"}}
upstreams:
  prog: {command: [p, -x], dir: $DIR/ws, env: {A: b}, secret_env: {B: "store:b"}, read: [$DIR/ws], write: [$DIR/project], hosts: ["*.a.example:443"], prefix: none, enabled: [a], disabled: [b], cacheable: [a], relay: [sampling], call_timeout: 5s, connect_timeout: 6s, read_action: crm:write}
  remote: {url: "https://a.example/mcp", headers: {X-A: b}, auth: {type: api_key, secret: "env:T", header: X-Key}}
  user: {url: "https://a.example/mcp", auth: {type: basic, secret: "env:T", user: me}}
  client: {url: "https://a.example/mcp", auth: {type: oauth2_client, secret: "env:T", client_id: c, token_url: "https://t.example", scopes: [read]}}
  own: {url: "https://a.example/mcp", auth: {type: headers, headers: {X-One: "env:ONE"}}}
egress: {hosts: {"db.example:5432": {class: read_only, ranges: ["10.0.0.0/8"], ipv6: false, unsafe_unnamed_tls: false}}, ssh: {known_hosts: $DIR/file, hosts: {git.example: {key: "file:$DIR/tls/key.pem", user: deploy, agents: [a.b]}}}}
tool_disclosure: {active: always, l1_token_budget: 2000, l2_token_budget: 9000, auto_unload_on_budget_pressure: false, unload_threshold_percent: 70.5}
secrets:
  store: {key_file: $DIR/tools/key}
  vault: {address: "https://v.example", token: "env:T", namespace: team, mount: kv, kv_version: 1}
connections:
  key: {type: http, base_url: "https://a.example", auth: {type: api_key, secret: "env:T", header: X-Key}, sensitive: true, rate_limit: 5, paths: ["/v1/**"], methods: [POST], environment: staging, agents: [a.b]}
  user: {base_url: "https://b.example", auth: {type: basic, secret: "store:p", user: me}}
  client: {base_url: "https://c.example", auth: {type: oauth2_client, secret: "store:p", client_id: c, token_url: "https://t.example", scopes: [read]}}
  own: {base_url: "https://d.example", auth: {type: headers, headers: {X-One: "env:ONE"}}}
container_log_shipping: {enabled: true, collection_timeout_seconds: 7, max_log_bytes: 1m, ship_raw_logs: true}
`

func lookup(c *Config) map[string]Value {
	out := map[string]Value{}
	for _, v := range c.Effective() {
		out[v.Key] = v
	}
	return out
}

// TestEffective: what is in force is listed whole, each key once, with its line.
func TestEffective(t *testing.T) {
	p := newPlace(t)
	c := p.mustLoad(t, full)
	got := lookup(c)
	if len(got) != len(c.Effective()) {
		t.Error("some key is listed twice")
	}
	other := lookup(p.mustLoad(t, strings.Replace(full, "key_file: $DIR/tools/key", `key: "keyring:k"`, 1))) // instead of it
	if v := other["secrets.store.key"]; v.Value != "keyring:k" || other["secrets.store.key_file"].Value != "" {
		t.Errorf("the key of the store: %+v", v)
	}
	for _, key := range Keys() {
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(key), `\*`, `("[^"]*"|[^."]+)`) + "$")
		written := strings.HasPrefix(other[key].From, "writ.yaml:")
		for k, v := range got {
			written = written || pattern.MatchString(k) && v.From != access.BuiltIn
		}
		if !written {
			t.Errorf("%s is written and not listed as such", key)
		}
	}
	for _, want := range []Value{
		{"version", "1", "writ.yaml:1"},
		{"upstreams.prog.read_action", "crm:write", "writ.yaml:82"},
		{"upstreams.prog.env.A", "…", "writ.yaml:82"},
		{"upstreams.prog.secret_env.B", "store:b", "writ.yaml:82"},
		{"upstreams.own.auth.headers.X-One", "env:ONE", "writ.yaml:86"},
		{"upstreams.remote.call_timeout", "30s", "built in"},
		{"upstreams.remote.connect_timeout", "10s", "built in"},
		{"upstreams.remote.prefix", "name", "built in"},
		{"upstreams.remote.read_action", "comms:external", "built in"},
		{"store.path", "$DIR/state", "writ.yaml:3"},
		{"store.witness", "$DIR/tools/witness", "writ.yaml:3"},
		{"workspaces.main.project", "$DIR/project", "writ.yaml:5"},
		{`agents."a.b".person`, "anna", "writ.yaml:9"},
		{`agents."a.b".level`, "restricted", "writ.yaml:11"},
		{`agents."a.b".allowed`, `["stat", "@srv:x"]`, "writ.yaml:13"},
		{`agents."a.b".denied`, `["move_file"]`, "writ.yaml:14"},
		{`agents."a.b".overrides.network_allowlist`, `["example.com:443"]`, "writ.yaml:19"},
		{`agents."a.b".overrides.requires_approval`, `["deployment"]`, "writ.yaml:23"},
		{"roles.mine.allowed", `["*"]`, "writ.yaml:27"},
		{"roles.reviewer.allowed", `["@builtin", "fs_read", "fs_list", "@writ"]`, "built in"},
		{"tool_access.restricted_commands", `["git", "[", "g++"]`, "writ.yaml:33"},
		{"tool_access.levels.restricted.description", "two words", "writ.yaml:36"},
		{"tool_access.levels.restricted.network_allowlist", `["*.example.com:8443"]`, "writ.yaml:39"},
		{"tool_access.levels.standard.git", "full", "built in"},
		{"tool_access.levels.elevated.deployment", "true", "built in"},
		{"autonomy.presets.semi.human_approval", `["deploy"]`, "writ.yaml:50"},
		{"autonomy.presets.locked.human_approval", `["all"]`, "built in"},
		{"actions.custom.crm:write", "high", "writ.yaml:53"},
		{"tools.stat.disabled", "false", "writ.yaml:55"},
		{"sandboxing.overrides.version_control", "auto", "writ.yaml:58"},
		{"sandboxing.subprocess.extra_safe_path_prefixes", `["/opt/tools"]`, "writ.yaml:64"},
		{"tools.stat.egress_class", "read_only", "writ.yaml:55"},
		{"tools.stat.dangerous", "true", "writ.yaml:55"},
		{"tools.stat.quorum", "3", "writ.yaml:55"},
		{"sandboxing.lifecycle.strategy", "per-task", "writ.yaml:67"},
		{"sandboxing.compat_env", "synthorg", "writ.yaml:66"},
		{"container_log_shipping.max_log_bytes", "1048576", "writ.yaml:97"},
		{"approvals.expiry", "1h0m0s", "writ.yaml:69"},
		{"approvals.timeout", "tiered", "writ.yaml:70"},
		{"approvals.tiers.low.after", "8h0m0s", "writ.yaml:72"},
		{"approvals.tiers.critical.then", "escalate", "writ.yaml:73"},
		{"approvals.escalation", "[{role: approver, after: 30m0s} {role: admin, after: 2h0m0s}]", "writ.yaml:74"},
		{"approvals.four_eyes", "always", "writ.yaml:75"},
		{"approvals.quorum", "2", "writ.yaml:76"},
		{"approvals.max_pending", "5", "writ.yaml:77"},
		{"approvals.rate", "30/1h", "writ.yaml:78"},
		{"approvals.address", "https://writ.example", "writ.yaml:79"},
		{"approvals.webhooks.ops.url", "https://a.example:443/…", "writ.yaml:80"},
		{"approvals.webhooks.ops.secret", "env:HOOK", "writ.yaml:80"},
		{"approvals.webhooks.ops.events", "[tool_invocation_failed]", "writ.yaml:80"},
		{"approvals.webhooks.all.format", "json", "built in"},
		{"approvals.webhooks.all.give_up_after", "24h0m0s", "built in"},
	} {
		v := got[want.Key]
		v.Value = strings.ReplaceAll(v.Value, string(p), "$DIR")
		if v != want {
			t.Errorf("%v, want %v", v, want)
		}
	}
}

// TestEffectiveResolved: what an agent inherits is listed with where it is from.
func TestEffectiveResolved(t *testing.T) {
	p := newPlace(t)
	c := p.mustLoad(t, `version: 1
workspaces: {main: {path: $DIR/ws}}
roles:
  mine:
    level: restricted
tool_access:
  levels:
    restricted:
      git: full
agents:
  bot: {workspace: main, role: mine}
`)
	got := lookup(c)
	for _, want := range []Value{
		{"agents.bot.level", "restricted", "writ.yaml:5"},
		{"agents.bot.autonomy", "semi", "built in"},
		{"agents.bot.overrides.git", "full", "writ.yaml:9"},
		{"agents.bot.overrides.network", "allowlist_only", "built in"},
		{"agents.bot.overrides.requires_approval", `["deploy:*", "db:mutate"]`, "built in"},
		{"agents.bot.enforce_tool_policies", "true", "built in"},
		{"workspaces.main.project", string(p) + "/ws", "built in"},
	} {
		if got[want.Key] != want {
			t.Errorf("%v, want %v", got[want.Key], want)
		}
	}
	if _, ok := got["agents.bot.allowed"]; ok {
		t.Error("an allowed list that is not there is listed")
	}
}

// TestDigest: only what is in force counts. Each value changing is TestI13's.
func TestDigest(t *testing.T) {
	p := newPlace(t)
	base := p.mustLoad(t, full)
	blocks := strings.Split(regexp.MustCompile(`(?m)^(\w)`).ReplaceAllString(full, "\x00$1"), "\x00")
	slices.Reverse(blocks)
	for name, text := range map[string]string{
		"comments":   "# one\n\n" + strings.ReplaceAll(full, "\n", " # two\n"),
		"order":      strings.Join(blocks, ""),
		"quotes":     strings.Replace(full, "level: restricted", "'level': \"restricted\"", 1),
		"spelling":   strings.Replace(full, "{git: auto}", "{version_control: auto}", 1),
		"link":       strings.Replace(full, "$DIR/state", "$DIR/into-state/..", 1),
		"line ends":  strings.ReplaceAll(full, "\n", "\r\n"),
		"same again": full,
	} {
		for range 3 {
			if c := p.mustLoad(t, text); c.Digest != base.Digest {
				t.Errorf("%s changes the digest:\n%s", name, cmp.Diff(lookup(base), lookup(c)))
				break
			}
		}
	}
	for name, change := range map[string][2]string{
		"two entries made one":    {`[stat, "@srv:x"]`, `["stat", "@srv:y"]`},
		"list made one word":      {"restricted_commands: [git, \"[\", g++]", "restricted_commands: [git]"},
		"agent renamed":           {"child:", "kid:"},
		"empty list for no list":  {"    allowed: [\"*\"]\n", "    allowed: []\n"},
		"no list for a list":      {"    allowed: [\"*\"]\n", ""},
		"order of what is denied": {"[move_file]", "[move_file, stat]"},
	} {
		text := strings.Replace(full, change[0], change[1], 1)
		if text == full {
			t.Fatalf("%s: nothing replaced", name)
		}
		if p.mustLoad(t, text).Digest == base.Digest {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

// TestLines: a key's line is right in each way of writing it.
func TestLines(t *testing.T) {
	p := newPlace(t)
	c := p.mustLoad(t, `# a comment
---
"version": 1

workspaces: {main: {path: $DIR/ws},
  other: {
    path: $DIR/project/ws,
    'project': $DIR/project}}
agents:
  # about bot
  "bot":

    workspace: main # here
    allowed:
      # first
      - stat

      - "read_file"   # second
      - 'move_file'
    denied: [delete_file,
      edit_file]
    overrides: {network: none,
      "git":
        full}
    level:
      custom
`)
	want := map[string]int{
		"version": 3, "workspaces": 5, "workspaces.main": 5, "workspaces.main.path": 5, "workspaces.other": 6, "workspaces.other.path": 7,
		"workspaces.other.project": 8, "agents": 9, "agents.bot": 11, "agents.bot.workspace": 13, "agents.bot.allowed": 14,
		"agents.bot.allowed[0]": 16, "agents.bot.allowed[1]": 18, "agents.bot.allowed[2]": 19, "agents.bot.denied": 20,
		"agents.bot.denied[0]": 20, "agents.bot.denied[1]": 21, "agents.bot.overrides": 22, "agents.bot.overrides.network": 22,
		"agents.bot.overrides.git": 23, "agents.bot.level": 25,
	}
	got := maps.Clone(c.lines)
	delete(got, "")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if at := c.Agents[0].Allowed[1].At; at != "writ.yaml:18" {
		t.Errorf("the entry is at %s", at)
	}
}

// TestSeed loads the tool_access block as both seed documents print it.
func TestSeed(t *testing.T) {
	p := newPlace(t)
	block, err := os.ReadFile("testdata/seed.yaml")
	must(t, err)
	c := p.mustLoad(t, "version: 1\n"+string(block))
	for l, want := range map[access.Level][8]string{
		//                  file_system, network, git, code_execution, terminal, requires_approval, deployment, description
		access.Sandboxed:  {"workspace_only", "none", "local_only", "containerized", "none", "[]", "false", "No external access. Isolated workspace."},
		access.Restricted: {"project_directory", "allowlist_only", "read_and_branch", "containerized", "none", `["deployment", "database_write"]`, "false", "Limited external access with approval."},
		access.Standard:   {"project_directory", "open", "full", "containerized", "restricted_commands", "[]", "false", "Normal development access."},
		access.Elevated:   {"full", "open", "full", "containerized", "full", "[]", "true", "Full access for senior/trusted agents."},
		access.Custom:     {"workspace_only", "none", "local_only", "containerized", "none", "[]", "false", "Per-agent custom configuration."},
	} {
		var got [8]string
		for i, k := range []string{"file_system", "network", "git", "code_execution", "terminal", "requires_approval", "deployment", "description"} {
			got[i] = lookup(c)["tool_access.levels."+l.String()+"."+k].Value
		}
		if got != want {
			t.Errorf("%s: %q, want %q", l, got, want)
		}
		// The block says what is built in: only the spelling of two patterns differs.
		for _, ty := range c.Types.Types() {
			matches := func(c access.Constraints) (n int) {
				for _, p := range c.RequiresApproval.V {
					if p.Match(ty) {
						n++
					}
				}
				return n
			}
			if got, want := matches(c.levels[l]), matches(access.Defaults(l, c.Types)); got != want {
				t.Errorf("%s: requires_approval takes %s %d times, built in %d", l, ty, got, want)
			}
		}
	}
	if len(c.Warnings) > 0 {
		t.Error(c.Warnings)
	}
}

func TestWarnings(t *testing.T) {
	p := newPlace(t)
	c := p.mustLoad(t, `version: 1
workspaces: {main: {path: $DIR/ws}}
agents:
  bot:
    workspace: main
    enforce_tool_policies: false
    allowed: [raed_file, "@srv", "mail_*", read_file]
    denied: [notebook]
autonomy:
  presets:
    semi: {human_approval: [deploy]}
tool_access:
  restricted_commands: [coreutils, cat, no-such-program]
`)
	want := []string{
		"writ.yaml:11: autonomy.presets.semi: runs by itself what the product's own preset asks for: vcs:clone, vcs:push",
		`writ.yaml:8: agents.bot.denied[0]: "notebook" matches no tool there is`,
		"writ.yaml:6: agents.bot.enforce_tool_policies: is false: the argument gate records and does not deny",
		`writ.yaml:7: agents.bot.allowed[0]: "raed_file" matches no tool there is; did you mean read_file?`,
		`writ.yaml:7: agents.bot.allowed[1]: "@srv" matches no tool there is`,
		`writ.yaml:7: agents.bot.allowed[2]: "mail_*" matches no tool there is`,
		`writ.yaml:13: tool_access.restricted_commands[2]: there is no program "no-such-program" in /usr/local/sbin, /usr/local/bin, /usr/sbin, /usr/bin, /sbin, /bin`,
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What a reference names and cannot be had as things are is said before it is needed.
func TestSecretWarnings(t *testing.T) {
	p := newPlace(t)
	c := p.mustLoad(t, `version: 1
workspaces: {main: {path: $DIR/ws}}
connections:
  a: {base_url: "https://a.example", auth: {type: bearer, secret: "vault:team/a#token"}}
  b: {base_url: "https://b.example", auth: {type: headers, headers: {X-B: "file:/nowhere/b"}}}
  c: {base_url: "https://c.example", auth: {type: bearer, secret: "file:/etc/hostname"}}
`)
	want := []string{
		"writ.yaml:4: connections.a.auth.secret: vault:team/a#token: there is no vault; write secrets.vault",
		"writ.yaml:5: connections.b.auth.headers.X-B: file:/nowhere/b: there is no such file; make it, with mode 0600",
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// One address, where a range is wanted, is answered with how to write it.
func TestRangeLike(t *testing.T) {
	for text, want := range map[string]string{
		"10.20.30.40": "10.20.30.40/32 for that address alone", "fc00::1": "fc00::1/128 for that address alone",
		"10.0.0.1/8": "one such as 10.0.0.0/8", "fe80::1%lo": "one such as 10.0.0.0/8", "": "one such as 10.0.0.0/8",
	} {
		if got := RangeLike(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestStarter: the starting configuration loads, whatever the names are.
func TestStarter(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"coder", "7", "null", "true", "1e3", "0x1F", "1.5", "a.b-c_d", "12-34", "PERSON"} {
		dir := filepath.Join(string(p), "with: \"space\" #"+name)
		must(t, os.Mkdir(dir, 0o700))
		c := p.mustLoad(t, Starter(name, name, dir))
		if len(c.Agents) != 1 || c.Agents[0].Name != name || c.Agents[0].Person != name || c.Agents[0].Workspace.Path != dir {
			t.Errorf("%s: %+v", name, c.Agents)
		}
		if len(c.Warnings) > 0 {
			t.Error(c.Warnings)
		}
	}
}

// TestLoadRefuses what is no file, or leads elsewhere through a workspace.
func TestLoadRefuses(t *testing.T) {
	p := newPlace(t)
	at := func(name string) string { return filepath.Join(string(p), name) }
	must(t, os.WriteFile(p.config(), []byte("version: 1\nworkspaces: {main: {path: "+at("ws")+"}}\n"), 0o600))
	must(t, os.Symlink(p.config(), at("ws/writ.yaml")))
	for path, want := range map[string]string{
		at("none"):         "there is no configuration at $DIR/none; 'writ init' writes a starting one",
		at("conf"):         "$DIR/conf is not a file; name the configuration file with --config",
		"/dev/zero":        "/dev/zero is not a file; name the configuration file with --config",
		at("ws/writ.yaml"): "writ.yaml:2: workspaces.main: the configuration ($DIR/ws/writ.yaml) lies inside it, where agents write; move one of them",
	} {
		_, err := Load(path, named())
		if err == nil || strings.ReplaceAll(err.Error(), string(p), "$DIR") != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if _, err := Load(p.config(), named()); err != nil {
		t.Errorf("under its own name: %v", err)
	}
}

func TestPath(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "/c")
	t.Setenv("WRIT_CONFIG", "")
	check := func(flag, want string) {
		t.Helper()
		if got, err := Path(flag); err != nil || got != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	check("", "/c/writ/writ.yaml")
	t.Setenv("WRIT_CONFIG", "/e.yaml")
	check("", "/e.yaml")
	check("/f.yaml", "/f.yaml")
}

func TestDuration(t *testing.T) {
	for s, want := range map[string]string{"1s": "1s", "90s": "1m30s", "1h30m": "1h30m0s", "7d": "168h0m0s", "3650d": "87600h0m0s"} {
		var d Duration
		if err := d.UnmarshalText([]byte(s)); err != nil || d.String() != want {
			t.Errorf("%s: %s, %v", s, d, err)
		}
	}
}

// TestEffectiveHides: what may be a credential counts, and is not shown.
func TestEffectiveHides(t *testing.T) {
	p := newPlace(t)
	one, other := p.mustLoad(t, full), p.mustLoad(t, strings.ReplaceAll(strings.ReplaceAll(full, "{X-A: b}", "{X-A: s3cret}"), "env: {A: b}", "env: {A: s3cret}"))
	if one.Digest == other.Digest {
		t.Error("another credential is the same configuration")
	}
	for _, v := range other.Effective() {
		if strings.Contains(v.Value, "s3cret") {
			t.Errorf("%s shows %s", v.Key, v.Value)
		}
	}
}
