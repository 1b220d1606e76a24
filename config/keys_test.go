package config

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/external"
)

// row shows one key biting: two configurations that differ in that key alone, and
// what differs for it.
type row struct {
	key          string
	text         string // with $X for the value
	one, other   string // values of the key, as YAML
	see          func(testing.TB, *Config) string
	first, then  string // what is seen under each, or one line of it
	engine       bool   // deciding does not use the key; it reaches a field that the engine hands on
	refusedOther bool   // under the other value the file does not load, and then is the error
}

const oneAgent = `version: 1
workspaces: {main: {path: $DIR/project/ws, project: $DIR/project}, other: {path: $DIR/ws}}
`

const (
	withTLS        = "version: 1\nlisten: {address: '0.0.0.0:1', certificate: $DIR/tls/cert.pem, key: $DIR/tls/key.pem, "
	sameConnection = "https://a.example a.example:443 none 60 [/**] [GET HEAD]"
	withOAuth      = "version: 1\nlisten: {oauth: {issuer: $X, audience: https://w.example, scopes: {s: bot}}}\nworkspaces: {main: {path: $DIR/ws}}\nagents: {bot: {workspace: main}}\n"
)

var rows = []row{
	{key: "version", text: "version: $X\n", one: "1", other: "2", see: func(testing.TB, *Config) string { return "loads" },
		first: "loads", then: "writ.yaml:1: version: must be 1; write version: 1", refusedOther: true},
	{key: "listen.address", text: "version: 1\nlisten: {address: $X}\n", one: "127.0.0.1:1", other: "'[::1]:2'", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Listen.Address }, first: "127.0.0.1:1", then: "[::1]:2"},
	{key: "listen.certificate", text: "version: 1\nlisten: {address: '0.0.0.0:1', certificate: $X, key: $DIR/tls/key.pem}\n", one: "$DIR/tls/cert.pem", other: "$DIR/file", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Listen.Certificate }, first: "$DIR/tls/cert.pem",
		then: "writ.yaml:2: listen.certificate: certificate and key do not load: tls: failed to find any PEM data in certificate input", refusedOther: true},
	{key: "listen.key", text: "version: 1\nlisten: {address: '0.0.0.0:1', certificate: $DIR/tls/cert.pem, key: $X}\n", one: "$DIR/tls/key.pem", other: "$DIR/file", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Listen.Key }, first: "$DIR/tls/key.pem",
		then: "writ.yaml:2: listen.certificate: certificate and key do not load: tls: failed to find any PEM data in key input", refusedOther: true},
	{key: "listen.client_ca", text: withTLS + "client_ca: $X}\n" + oneAgent[11:] + "agents: {bot: {workspace: main, certificates: [bot.internal]}}\n", one: "$DIR/tls/cert.pem", other: "$DIR/file", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Listen.ClientCA }, first: "$DIR/tls/cert.pem",
		then: "writ.yaml:2: listen.client_ca: there is no certificate in it; give a PEM file", refusedOther: true},
	{key: "agents.*.certificates", text: withTLS + "client_ca: $DIR/tls/cert.pem}\n" + oneAgent[11:] + "agents: {bot: {workspace: main, certificates: $X}, dev: {workspace: main, certificates: [dev.internal]}}\n",
		one: "['spiffe://example/bot']", other: "[Bot.Internal]", engine: true, see: certified, first: "uri [bot], dns []", then: "uri [], dns [bot]"},
	{key: "listen.socket", text: "version: 1\nlisten: {socket: $X}\n", one: "$DIR/run/agents.sock", other: "$DIR/open/agents.sock", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Listen.Socket }, first: "$DIR/run/agents.sock", refusedOther: true,
		then: "writ.yaml:2: listen.socket: others can write to $DIR/open (mode 0777) and put a socket of their own there; run: chmod go-w $DIR/open"},
	{key: "agents.*.users", text: "version: 1\nlisten: {socket: $DIR/run/agents.sock}\n" + oneAgent[11:] + "agents: {bot: {workspace: main, users: $X}, dev: {workspace: main, users: [root, '77']}}\n", one: "[root]", other: "['77', '77']", engine: true,
		see: func(_ testing.TB, c *Config) string {
			return fmt.Sprint(c.AgentsOfUser(0), c.AgentsOfUser(77), c.AgentsOfUser(78))
		},
		first: "[bot dev] [dev] []", then: "[dev] [bot dev] []"},
	{key: "listen.oauth.issuer", text: withOAuth, one: "https://a.example", other: "http://a.example", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Listen.OAuth.Issuer }, first: "https://a.example", refusedOther: true,
		then: `writ.yaml:2: listen.oauth.issuer: "http://a.example" is not https; only an address of this machine (127.0.0.1, [::1], localhost) can do without`},
	{key: "listen.oauth.audience", text: strings.NewReplacer("$X", "https://a.example", "https://w.example", "$X").Replace(withOAuth), one: "https://w.example/mcp", other: "http://127.0.0.1:7323/mcp", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Listen.OAuth.Audience }, first: "https://w.example/mcp", then: "http://127.0.0.1:7323/mcp"},
	{key: "listen.oauth.scopes.*", text: strings.NewReplacer("$X", "https://a.example", "scopes: {s: bot}", "scopes: {s: $X}").Replace(withOAuth), one: "bot", other: "bott", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Listen.OAuth.Scopes) }, first: "map[s:bot]", refusedOther: true,
		then: `writ.yaml:2: listen.oauth.scopes.s: there is no agent "bott"; did you mean bot?`},
	{key: "listen.oauth.subjects.*", text: strings.NewReplacer("$X", "https://a.example", "scopes: {s: bot}", "subjects: {s: $X}").Replace(withOAuth), one: "bot", other: "bott", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Listen.OAuth.Subjects) }, first: "map[s:bot]", refusedOther: true,
		then: `writ.yaml:2: listen.oauth.subjects.s: there is no agent "bott"; did you mean bot?`},
	{key: "listen.oauth.jwks_hosts", text: strings.NewReplacer("$X", "https://a.example", "scopes:", "jwks_hosts: $X, scopes:").Replace(withOAuth), one: "[k.example]", other: "['k.example:8443']", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Listen.OAuth.JWKSHosts) }, first: "[k.example]", then: "[k.example:8443]"},
	{key: "secrets.store.key_file", text: "version: 1\nstore: {path: $DIR/state}\nsecrets: {store: {key_file: $X}}\n", one: "~/k", other: "$DIR/tools/k", engine: true,
		see: func(_ testing.TB, c *Config) string {
			return fmt.Sprint(c.SecretKeyFile(), " hidden ", slices.Contains(c.Own(), c.SecretKeyFile()))
		}, first: "$DIR/home/k hidden true", then: "$DIR/tools/k hidden true"},
	{key: "secrets.store.key", text: "version: 1\nstore: {path: $DIR/state}\nsecrets: {store: {key: $X}}\n", one: "'keyring:a'", other: "'env:A'", engine: true,
		see: func(_ testing.TB, c *Config) string {
			return fmt.Sprint(c.File.Secrets.Store.Key, " ", c.SecretKeyFile())
		}, first: "keyring:a ", refusedOther: true,
		then: "writ.yaml:3: secrets.store.key: the key of the store is kept in a file of its own or in the keyring; write keyring:NAME, or key_file and a path"},
	{key: "secrets.vault.address", text: withVault("address: $X, token: 'env:T'"), one: "https://v.example:8200", other: "http://v.example:8200", engine: true, see: vaultOf, first: "https://v.example:8200 env:T  secret 2",
		then: `writ.yaml:2: secrets.vault.address: "http://v.example:8200" is not https; only an address of this machine (127.0.0.1, [::1], localhost) can do without`, refusedOther: true},
	{key: "secrets.vault.token", text: withVault("address: https://v.example, token: $X"), one: "'file:/etc/t'", other: "'vault:a/b#c'", engine: true, see: vaultOf, first: "https://v.example file:/etc/t  secret 2",
		then: "writ.yaml:2: secrets.vault.token: the token of the vault is not kept in it; write env:NAME, file:/abs/path or keyring:NAME", refusedOther: true},
	{key: "secrets.vault.namespace", text: withVault("address: https://v.example, token: 'env:T', namespace: $X"), one: "team", other: "other", engine: true, see: vaultOf,
		first: "https://v.example env:T team secret 2", then: "https://v.example env:T other secret 2"},
	{key: "secrets.vault.mount", text: withVault("address: https://v.example, token: 'env:T', mount: $X"), one: "kv", other: "'../sys'", engine: true, see: vaultOf,
		first: "https://v.example env:T  kv 2", then: `writ.yaml:2: secrets.vault.mount: "../sys" is no path of a mount; write one such as secret or team/kv`, refusedOther: true},
	{key: "secrets.vault.kv_version", text: withVault("address: https://v.example, token: 'env:T', kv_version: $X"), one: "1", other: "2", engine: true, see: vaultOf,
		first: "https://v.example env:T  secret 1", then: "https://v.example env:T  secret 2"},
	{key: "connections.*.type", text: withConnection("type: $X, base_url: https://a.example"), one: "http", other: "postgres", engine: true, see: connectionOf, first: sameConnection,
		then: `writ.yaml:4: connections.api.type: unknown type of connection "postgres"; there are http, git, brave, exa, searxng, tavily`, refusedOther: true},
	{key: "connections.*.base_url", text: withConnection("base_url: $X"), one: "https://a.example/v2/", other: "https://u:p@a.example", engine: true, see: connectionOf, first: "https://a.example/v2 a.example:443 none 60 [/**] [GET HEAD]",
		then: `writ.yaml:4: connections.api.base_url: URL with host "a.example" has user information before the host; remove everything up to the @`, refusedOther: true},
	{key: "connections.*.auth.type", text: withConnection("base_url: https://a.example, auth: {type: $X, secret: 'env:T'}"), one: "bearer", other: "basic", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 bearer token env:T 60 [/**] [GET HEAD]", then: "writ.yaml:4: connections.api.auth: auth of type basic needs user; write it", refusedOther: true},
	{key: "connections.*.auth.secret", text: withConnection("base_url: https://a.example, auth: {type: bearer, secret: $X}"), one: "'store:t'", other: "ghp_0123456789", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 bearer token store:t 60 [/**] [GET HEAD]", refusedOther: true,
		then: "writ.yaml:4: connections.api.auth.secret: this is not where a secret is kept, and a secret itself does not belong here; write env:NAME, file:/abs/path, keyring:NAME, store:NAME or vault:PATH#FIELD"},
	{key: "connections.*.auth.header", text: withConnection("base_url: https://a.example, auth: {type: api_key, secret: 'env:T', header: $X}"), one: "X-Api-Key", other: "Host", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 header X-Api-Key from env:T 60 [/**] [GET HEAD]", then: "writ.yaml:4: connections.api.auth.header: the header is the client's own and holds no credential; name another", refusedOther: true},
	{key: "connections.*.auth.user", text: withConnection("base_url: https://a.example, auth: {type: basic, secret: 'env:T', user: $X}"), one: "me", other: "'a:b'", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 user me with password env:T 60 [/**] [GET HEAD]", then: "writ.yaml:4: connections.api.auth.user: a user has no colon, no space and nothing but ASCII; write it so", refusedOther: true},
	{key: "connections.*.auth.token_url", text: withConnection("base_url: https://a.example, auth: {type: oauth2_client, secret: 'env:T', client_id: c, token_url: $X}"), one: "https://t.example/token", other: "http://t.example/token", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 OAuth 2 client c with env:T at https://t.example/token 60 [/**] [GET HEAD]", refusedOther: true,
		then: `writ.yaml:4: connections.api.auth.token_url: "http://t.example/token" is not https; only an address of this machine (127.0.0.1, [::1], localhost) can do without`},
	{key: "connections.*.auth.client_id", text: withConnection("base_url: https://a.example, auth: {type: oauth2_client, secret: 'env:T', client_id: $X, token_url: https://t.example}"), one: "c", other: "d", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 OAuth 2 client c with env:T at https://t.example 60 [/**] [GET HEAD]", then: "https://a.example a.example:443 OAuth 2 client d with env:T at https://t.example 60 [/**] [GET HEAD]"},
	{key: "connections.*.auth.scopes", text: withConnection("base_url: https://a.example, auth: {type: oauth2_client, secret: 'env:T', client_id: c, token_url: https://t.example, scopes: $X}"), one: "[a]", other: "[b]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.Connections["api"].Auth.Scopes) }, first: "[a]", then: "[b]"},
	{key: "connections.*.auth.headers.*", text: withConnection("base_url: https://a.example, auth: {type: headers, headers: {X-One: $X}}"), one: "'env:T'", other: "'store:u'", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 header X-One from env:T 60 [/**] [GET HEAD]", then: "https://a.example a.example:443 header X-One from store:u 60 [/**] [GET HEAD]"},
	{key: "connections.*.sensitive", text: withConnection("base_url: https://a.example, sensitive: $X"), one: "false", other: "true", see: over, first: "allow read_only a.example:443", then: "ask connection: connection api is sensitive, so a person is asked each time"},
	{key: "connections.*.rate_limit", text: withConnection("base_url: https://a.example, rate_limit: $X"), one: "5", other: "0", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 none 5 [/**] [GET HEAD]", then: "writ.yaml:4: connections.api.rate_limit: must be 1 to 6000, requests a minute", refusedOther: true},
	{key: "connections.*.paths", text: withConnection("base_url: https://a.example, paths: $X"), one: "[/v1/**]", other: "[v1]", engine: true, see: connectionOf,
		first: "https://a.example a.example:443 none 60 [/v1/**] [GET HEAD]", then: `writ.yaml:4: connections.api.paths[0]: "v1" is not a pattern of paths; write one such as /v1/things/**`, refusedOther: true},
	{key: "connections.*.methods", text: withConnection("base_url: https://a.example, methods: $X"), one: "[POST]", other: "[post]", engine: true, see: connectionOf, first: "https://a.example a.example:443 none 60 [/**] [POST]",
		then: `writ.yaml:4: connections.api.methods[0]: unknown method "post"; did you mean POST?`, refusedOther: true},
	{key: "connections.*.environment", text: withConnection("base_url: https://a.example, environment: $X"), one: "staging", other: "production", engine: true,
		see: func(_ testing.TB, c *Config) string { return string(c.File.Connections["api"].Environment) }, first: "staging", then: "production"},
	{key: "connections.*.agents", text: withConnection("base_url: https://a.example, agents: $X"), one: "[bot]", other: "[top]", see: over, first: "allow read_only a.example:443", then: "deny connection: argument /connection: connection api is not for agent bot"},
	{key: "store.path", text: "version: 1\nstore: {path: $X}\n", one: "$DIR/state", other: "$DIR/into-state", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.StatePath + " " + c.Witness }, first: "$DIR/state $DIR/state/witness.jsonl", then: "$DIR/state/inner $DIR/state/inner/witness.jsonl"},
	{key: "store.witness", text: "version: 1\nstore: {path: $DIR/state, witness: $X}\n", one: "~/w", other: "$DIR/tools/w", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.Witness }, first: "$DIR/home/w", then: "$DIR/tools/w"},
	{key: "workspaces.*.path", text: "version: 1\nworkspaces: {main: {path: $X}}\nagents: {bot: {workspace: main}}\n", one: "$DIR/ws", other: "$DIR/project",
		see: confine("write_file"), first: "read [$DIR/ws] write [$DIR/ws]", then: "read [$DIR/project] write [$DIR/project]"},
	{key: "workspaces.*.project", text: "version: 1\nworkspaces: {main: {path: $DIR/project/ws, project: $X}}\nagents: {bot: {workspace: main}}\n", one: "$DIR/project/ws", other: "$DIR/project",
		see: confine("write_file"), first: "read [$DIR/project/ws] write [$DIR/project/ws]", then: "read [$DIR/project] write [$DIR/project]"},
	{key: "agents.*.workspace", text: oneAgent + "agents: {bot: {workspace: $X}}\n", one: "main", other: "other",
		see: confine("write_file"), first: "read [$DIR/project] write [$DIR/project]", then: "read [$DIR/ws] write [$DIR/ws]"},
	{key: "agents.*.parent", text: oneAgent + "agents: {top: {workspace: main, level: $X}, bot: {parent: top}}\n", one: "standard", other: "restricted",
		see: decided("shell_command"), first: "allow level: by parent top: level standard opens category terminal", then: "deny level: by parent top: level restricted does not open category terminal to agent top"},
	{key: "agents.*.profile", text: oneAgent + "agents: {bot: {workspace: main, profile: $X}}\n", one: "careful", other: "bold",
		see: decided("write_file"), first: "deny role: role of profile careful does not include tool write_file", then: "allow role: role of profile bold names it by \"fs_*\""},
	{key: "agents.*.person", text: oneAgent + "agents: {bot: {workspace: main, person: $X}}\n", one: "anna", other: "ben", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.Agents[0].Person }, first: "anna", then: "ben"},
	{key: "agents.*.role", text: oneAgent + "agents: {bot: {workspace: main, role: $X}}\n", one: "developer", other: "reviewer",
		see: decided("write_file"), first: "allow role: role developer names it by \"fs_*\"", then: "deny role: role reviewer does not include tool write_file"},
	{key: "agents.*.level", text: oneAgent + "agents: {bot: {workspace: main, level: $X}}\n", one: "standard", other: "restricted",
		see: decided("shell_command"), first: "allow level: level standard opens category terminal", then: "deny level: level restricted does not open category terminal to agent bot"},
	{key: "agents.*.autonomy", text: oneAgent + "agents: {bot: {workspace: main, autonomy: $X}}\n", one: "full", other: "locked",
		see: decided("read_file"), first: "allow autonomy: autonomy full runs all by itself", then: "ask autonomy: autonomy locked asks a person for all"},
	{key: "agents.*.allowed", text: oneAgent + "agents: {bot: {workspace: main, level: custom, allowed: $X}}\n", one: "[stat]", other: "[read_file]",
		see: decided("read_file"), first: "deny level: level custom does not open category file_system to agent bot", then: "allow allowed_list: the allowed list names it by \"read_file\""},
	{key: "agents.*.denied", text: oneAgent + "agents: {bot: {workspace: main, denied: $X}}\n", one: "[stat]", other: "[fs_read]",
		see: decided("read_file"), first: "allow level: level standard opens category file_system", then: "deny denied_list: tool read_file is denied to agent bot by \"fs_read\""},
	{key: "agents.*.enforce_tool_policies", text: oneAgent + "agents: {bot: {workspace: main, level: elevated, enforce_tool_policies: $X}}\n", one: "true", other: "false",
		see: decided("report"), first: "deny argument_gate: argument /path: path \"here\" is outside what the tool declares", then: "allow argument_gate: recorded only, enforce_tool_policies is false: argument /path: path \"here\" is outside what the tool declares"},
	{key: "agents.*.overrides.file_system", text: oneAgent + "agents: {bot: {workspace: main, overrides: {file_system: $X}}}\n", one: "workspace_only", other: "full",
		see: confine("read_file"), first: "read [$DIR/project/ws] write []", then: "read [/] write []"},
	{key: "agents.*.overrides.network", text: oneAgent + "agents: {bot: {workspace: main, overrides: {network: $X}}}\n", one: "none", other: "open",
		see: reach("shell_command"), first: "deny network: argument /hosts/0: host \"example.com:443\" cannot be reached with network: none", then: "ask hosts [example.com:443]"},
	{key: "agents.*.overrides.network_allowlist", text: oneAgent + "agents: {bot: {workspace: main, overrides: {network: allowlist_only, network_allowlist: $X}}}\n", one: "[example.org]", other: "[example.com]",
		see: reach("shell_command"), first: "deny network: argument /hosts/0: host \"example.com:443\" is not on the network allowlist", then: "ask hosts [example.com:443]"},
	{key: "agents.*.overrides.git", text: oneAgent + "agents: {bot: {workspace: main, autonomy: full, overrides: {git: $X}}}\n", one: "full", other: "read_and_branch",
		see: decided("git_push"), first: "ask egress_class: it changes something outside the workspace (class write)", then: "deny git: git: read_and_branch does not take vcs:push"},
	{key: "agents.*.overrides.code_execution", text: oneAgent + "agents: {bot: {workspace: main, overrides: {code_execution: $X}}}\n", one: "containerized", other: "process",
		see: isolation("code_runner"), first: "containerized", then: "process"},
	{key: "agents.*.overrides.terminal", text: oneAgent + "agents: {bot: {workspace: main, overrides: {terminal: $X}}}\n", one: "none", other: "full",
		see: decided("shell_command"), first: "deny terminal: agent bot has terminal: none", then: "allow terminal: terminal: full"},
	{key: "agents.*.overrides.requires_approval", text: oneAgent + "agents: {bot: {workspace: main, overrides: {requires_approval: $X}}}\n", one: "[deployment]", other: "['code:delete']",
		see: decided("delete_file"), first: "allow autonomy: autonomy semi runs code by itself", then: "ask requires_approval: action code:delete asks a person (code:delete)"},
	{key: "roles.*.allowed", text: oneAgent + "roles: {mine: {allowed: $X}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "[]", other: "['*']",
		see: decided("read_file"), first: "deny role: role mine does not include tool read_file", then: "allow role: role mine names it by \"*\""},
	{key: "roles.*.denied", text: oneAgent + "roles: {mine: {denied: $X}}\nagents: {bot: {workspace: main, role: mine, allowed: [read_file]}}\n", one: "[stat]", other: "['read_*']",
		see: decided("read_file"), first: "allow allowed_list: the allowed list names it by \"read_file\"", then: "deny denied_list: tool read_file is denied to agent bot by \"read_*\""},
	{key: "roles.*.level", text: oneAgent + "roles: {mine: {level: $X}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "elevated", other: "sandboxed",
		see: decided("deploy_trigger"), first: "ask autonomy: autonomy semi asks a person for deploy", then: "deny level: deployment is not open to agent bot"},
	{key: "roles.*.autonomy", text: oneAgent + "roles: {mine: {autonomy: $X}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "semi", other: "supervised",
		see: decided("write_file"), first: "allow autonomy: autonomy semi runs code by itself", then: "ask autonomy: autonomy supervised names no rule for code:write, so a person is asked"},
	{key: "roles.*.constraints.file_system", text: oneAgent + "roles: {mine: {constraints: {file_system: $X}}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "workspace_only", other: "full",
		see: confine("read_file"), first: "read [$DIR/project/ws] write []", then: "read [/] write []"},
	{key: "roles.*.constraints.network", text: oneAgent + "roles: {mine: {constraints: {network: $X}}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "none", other: "open",
		see: reach("shell_command"), first: "deny network: argument /hosts/0: host \"example.com:443\" cannot be reached with network: none", then: "ask hosts [example.com:443]"},
	{key: "roles.*.constraints.network_allowlist", text: oneAgent + "roles: {mine: {constraints: {network: allowlist_only, network_allowlist: $X}}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "[example.org]", other: "[example.com]",
		see: reach("shell_command"), first: "deny network: argument /hosts/0: host \"example.com:443\" is not on the network allowlist", then: "ask hosts [example.com:443]"},
	{key: "roles.*.constraints.git", text: oneAgent + "roles: {mine: {constraints: {git: $X}}}\nagents: {bot: {workspace: main, role: mine, autonomy: full}}\n", one: "full", other: "read_and_branch",
		see: decided("git_push"), first: "ask egress_class: it changes something outside the workspace (class write)", then: "deny git: git: read_and_branch does not take vcs:push"},
	{key: "roles.*.constraints.code_execution", text: oneAgent + "roles: {mine: {constraints: {code_execution: $X}}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "containerized", other: "process",
		see: isolation("code_runner"), first: "containerized", then: "process"},
	{key: "roles.*.constraints.terminal", text: oneAgent + "roles: {mine: {constraints: {terminal: $X}}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "none", other: "full",
		see: decided("shell_command"), first: "deny terminal: agent bot has terminal: none", then: "allow terminal: terminal: full"},
	{key: "roles.*.constraints.requires_approval", text: oneAgent + "roles: {mine: {constraints: {requires_approval: $X}}}\nagents: {bot: {workspace: main, role: mine}}\n", one: "[deployment]", other: "['code:delete']",
		see: decided("delete_file"), first: "allow autonomy: autonomy semi runs code by itself", then: "ask requires_approval: action code:delete asks a person (code:delete)"},
	{key: "tool_access.levels.*.description", text: oneAgent + "tool_access: {levels: {standard: {description: $X}}}\n", one: "one", other: "other", engine: true,
		see: effective("tool_access.levels.standard.description"), first: "one", then: "other"},
	{key: "tool_access.levels.*.file_system", text: oneAgent + "tool_access: {levels: {standard: {file_system: $X}}}\nagents: {bot: {workspace: main}}\n", one: "workspace_only", other: "full",
		see: confine("read_file"), first: "read [$DIR/project/ws] write []", then: "read [/] write []"},
	{key: "tool_access.levels.*.network", text: oneAgent + "tool_access: {levels: {standard: {network: $X}}}\nagents: {bot: {workspace: main}}\n", one: "none", other: "open",
		see: reach("shell_command"), first: "deny network: argument /hosts/0: host \"example.com:443\" cannot be reached with network: none", then: "ask hosts [example.com:443]"},
	{key: "tool_access.levels.*.network_allowlist", text: oneAgent + "tool_access: {levels: {standard: {network: allowlist_only, network_allowlist: $X}}}\nagents: {bot: {workspace: main}}\n", one: "[]", other: "[example.com]",
		see: reach("shell_command"), first: "deny network: argument /hosts/0: host \"example.com:443\" is not on the network allowlist", then: "ask hosts [example.com:443]"},
	{key: "tool_access.levels.*.git", text: oneAgent + "tool_access: {levels: {standard: {git: $X}}}\nagents: {bot: {workspace: main, autonomy: full}}\n", one: "full", other: "local_only",
		see: decided("git_push"), first: "ask egress_class: it changes something outside the workspace (class write)", then: "deny git: git: local_only does not take vcs:push"},
	{key: "tool_access.levels.*.code_execution", text: oneAgent + "tool_access: {levels: {standard: {code_execution: $X}}}\nagents: {bot: {workspace: main}}\n", one: "containerized", other: "process",
		see: isolation("code_runner"), first: "containerized", then: "process"},
	{key: "tool_access.levels.*.terminal", text: oneAgent + "tool_access: {levels: {standard: {terminal: $X}}}\nagents: {bot: {workspace: main}}\n", one: "none", other: "restricted_commands",
		see: decided("shell_command"), first: "deny terminal: agent bot has terminal: none", then: "allow terminal: terminal: restricted_commands"},
	{key: "tool_access.levels.*.requires_approval", text: oneAgent + "tool_access: {levels: {standard: {requires_approval: $X}}}\nagents: {bot: {workspace: main}}\n", one: "[]", other: "[code]",
		see: decided("read_file"), first: "allow autonomy: autonomy semi runs code by itself", then: "ask requires_approval: action code:read asks a person (code)"},
	{key: "tool_access.levels.*.deployment", text: oneAgent + "tool_access: {levels: {elevated: {deployment: $X}}}\nagents: {bot: {workspace: main, level: elevated}}\n", one: "true", other: "false",
		see: decided("deploy_trigger"), first: "ask autonomy: autonomy semi asks a person for deploy", then: "deny level: deployment is not open to agent bot"},
	{key: "tool_access.restricted_commands", text: oneAgent + "tool_access: {restricted_commands: $X}\nagents: {bot: {workspace: main}}\n", one: "[findutils]", other: "[jq, '[']",
		see: programs("shell_command"), first: "listed [find xargs]", then: "listed [[ jq]"},
	{key: "autonomy.default", text: oneAgent + "autonomy: {default: $X}\nagents: {bot: {workspace: main}}\n", one: "semi", other: "locked",
		see: decided("read_file"), first: "allow autonomy: autonomy semi runs code by itself", then: "ask autonomy: autonomy locked asks a person for all"},
	{key: "autonomy.presets.*.auto_approve", text: oneAgent + "autonomy: {presets: {semi: {auto_approve: $X}}}\nagents: {bot: {workspace: main}}\n", one: "[code]", other: "[test]",
		see: decided("read_file"), first: "allow autonomy: autonomy semi runs code by itself", then: "ask autonomy: autonomy semi names no rule for code:read, so a person is asked"},
	{key: "autonomy.presets.*.human_approval", text: oneAgent + "autonomy: {presets: {semi: {human_approval: $X}}}\nagents: {bot: {workspace: main}}\n", one: "[deploy]", other: "['code:read']",
		see: decided("read_file"), first: "allow autonomy: autonomy semi runs code by itself", then: "ask autonomy: autonomy semi asks a person for code:read"},
	{key: "actions.custom.*", text: oneAgent + "actions: {custom: {'crm:write': $X}}\nagents: {bot: {workspace: main, level: elevated, overrides: {requires_approval: ['crm:*']}}}\n", one: "low", other: "critical",
		see: func(t testing.TB, c *Config) string {
			d := decision(t, c, "crm_write", nil)
			return d.Risk + " " + d.Effect.String()
		}, first: "low ask", then: "critical ask"},
	{key: "tools.*.disabled", text: oneAgent + "tools: {read_file: {disabled: $X}}\nagents: {bot: {workspace: main}}\n", one: "false", other: "true",
		see: decided("read_file"), first: "allow level: level standard opens category file_system", then: "deny tools: tool read_file is disabled"},
	{key: "tools.*.requires_approval", text: oneAgent + "tools: {read_file: {requires_approval: $X}}\nagents: {bot: {workspace: main}}\n", one: "false", other: "true",
		see: decided("read_file"), first: "allow level: level standard opens category file_system", then: "ask tools: tool read_file asks a person each time"},
	{key: "tools.*.forbidden", text: oneAgent + "tools: {read_file: {forbidden: $X}}\nagents: {bot: {workspace: main}}\n", one: "false", other: "true",
		see: decided("read_file"), first: "allow level: level standard opens category file_system", then: "deny constraints: tool read_file is for code alone, never for a model (forbidden)"},
	{key: "tools.*.max_invocations", text: oneAgent + "tools: {read_file: {max_invocations: $X}}\nagents: {bot: {workspace: main}}\n", one: "5/task", other: "'2/session, 9/24h'",
		see: reserve("read_file"), first: "[{5 task 0s}] after []", then: "[{2 session 0s} {9 window 24h0m0s}] after []"},
	{key: "tools.*.rate", text: oneAgent + "tools: {read_file: {rate: $X}}\nagents: {bot: {workspace: main}}\n", one: "5/1m", other: "6/1h",
		see: reserve("read_file"), first: "[{5 window 1m0s}] after []", then: "[{6 window 1h0m0s}] after []"},
	{key: "tools.*.only_after", text: oneAgent + "tools: {write_file: {only_after: $X}}\nagents: {bot: {workspace: main}}\n", one: "[read_file]", other: "[stat, read_file]",
		see: reserve("write_file"), first: "[] after [read_file]", then: "[] after [stat read_file]"},
	{key: "sandboxing.default_backend", text: oneAgent + "sandboxing: {default_backend: $X}\nagents: {bot: {workspace: main}}\n", one: "auto", other: "subprocess",
		see: backend("shell_command"), first: "", then: "subprocess"},
	{key: "sandboxing.overrides.*", text: oneAgent + "sandboxing: {default_backend: subprocess, overrides: {terminal: $X, git: $X}}\nagents: {bot: {workspace: main}}\n", one: "subprocess", other: "auto",
		see: func(t testing.TB, c *Config) string {
			return backend("shell_command")(t, c) + backend("git_push")(t, c)
		}, first: "subprocesssubprocess", then: ""},
	{key: "sandboxing.subprocess.timeout_seconds", text: oneAgent + "sandboxing: {subprocess: {timeout_seconds: $X}}\nagents: {bot: {workspace: main}}\n", one: "1", other: "600",
		see: limits, first: "wall 1s grace 5s", then: "wall 10m0s grace 5s"},
	{key: "sandboxing.subprocess.kill_grace_seconds", text: oneAgent + "sandboxing: {subprocess: {kill_grace_seconds: $X}}\nagents: {bot: {workspace: main}}\n", one: "1", other: "60",
		see: limits, first: "wall 30s grace 1s", then: "wall 30s grace 1m0s"},
	{key: "sandboxing.subprocess.workspace_only", text: "version: 1\nsandboxing: {subprocess: {workspace_only: $X}}\n", one: "true", other: "false", engine: true,
		see: func(_ testing.TB, c *Config) string {
			return fmt.Sprint(c.File.Sandboxing.Subprocess.WorkspaceOnly, c.Warnings)
		},
		first: "true []", then: "false [writ.yaml:2: workspace_only is false: commands may start in any readable directory]"},
	{key: "sandboxing.subprocess.restricted_path", text: "version: 1\nsandboxing: {subprocess: {restricted_path: $X}}\n", one: "true", other: "false", engine: true,
		see: func(_ testing.TB, c *Config) string {
			return fmt.Sprint(c.File.Sandboxing.Subprocess.RestrictedPath, c.Warnings)
		},
		first: "true []", then: "false [writ.yaml:2: restricted_path is false: commands are looked up in the whole PATH of the daemon]"},
	{key: "sandboxing.subprocess.extra_safe_path_prefixes", text: "version: 1\nsandboxing: {subprocess: {extra_safe_path_prefixes: $X}}\n", one: "[]", other: "[/opt/x]", engine: true,
		see: func(_ testing.TB, c *Config) string {
			return fmt.Sprint(c.File.Sandboxing.Subprocess.ExtraSafePathPrefixes)
		}, first: "[]", then: "[/opt/x]"},
	{key: "sandboxing.docker.host", text: "version: 1\nsandboxing: {docker: {host: $X}}\n", one: "unix:///a", other: "unix:///b", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.Host) }, first: "unix:///a", then: "unix:///b"},
	{key: "sandboxing.docker.image", text: "version: 1\nsandboxing: {docker: {image: $X}}\n", one: "a:1", other: "b@sha256:" + strings.Repeat("0a", 32), engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.Image) }, first: "a:1", then: "b@sha256:" + strings.Repeat("0a", 32)},
	{key: "sandboxing.docker.runtime", text: "version: 1\nsandboxing: {docker: {runtime: $X}}\n", one: "runc", other: "runsc", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.Runtime) }, first: "runc", then: "runsc"},
	{key: "sandboxing.docker.memory_limit", text: "version: 1\nsandboxing: {docker: {memory_limit: $X}}\n", one: "16m", other: "1g", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.MemoryLimit) }, first: "16777216", then: "1073741824"},
	{key: "sandboxing.docker.cpu_limit", text: "version: 1\nsandboxing: {docker: {cpu_limit: $X}}\n", one: "'0.5'", other: "2", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.CPULimit) }, first: "0.5", then: "2"},
	{key: "sandboxing.docker.pids_limit", text: "version: 1\nsandboxing: {docker: {pids_limit: $X}}\n", one: "32", other: "100", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.PidsLimit) }, first: "32", then: "100"},
	{key: "sandboxing.docker.tmpfs_size", text: "version: 1\nsandboxing: {docker: {tmpfs_size: $X}}\n", one: "64k", other: "1m", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.TmpfsSize) }, first: "65536", then: "1048576"},
	{key: "sandboxing.docker.mount_mode", text: "version: 1\nsandboxing: {docker: {mount_mode: $X}}\n", one: "ro", other: "rw", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.MountMode) }, first: "ro", then: "rw"},
	{key: "sandboxing.docker.auto_remove", text: "version: 1\nsandboxing: {docker: {auto_remove: $X}}\n", one: "true", other: "false", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.AutoRemove) }, first: "true", then: "false"},
	{key: "sandboxing.docker.timeout_seconds", text: "version: 1\nsandboxing: {docker: {timeout_seconds: $X}}\n", one: "1", other: "600", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.TimeoutSeconds) }, first: "1", then: "600"},
	{key: "sandboxing.docker.network", text: oneAgent + "sandboxing: {default_backend: docker, docker: {network: $X}}\nagents: {bot: {workspace: main}}\n", one: "none", other: "bridge",
		see: reach("shell_command"), first: closedContainer, then: "ask hosts [example.com:443]"},
	{key: "sandboxing.docker.network_overrides.*", text: oneAgent + "sandboxing: {default_backend: docker, docker: {network_overrides: {terminal: $X}}}\nagents: {bot: {workspace: main}}\n", one: "none", other: "bridge",
		see: reach("shell_command"), first: closedContainer, then: "ask hosts [example.com:443]"},
	{key: "sandboxing.docker.allowed_hosts", text: oneAgent + "sandboxing: {default_backend: docker, docker: {network: bridge, allowed_hosts: $X}}\nagents: {bot: {workspace: main}}\n", one: "['b.example']", other: "['b.example', 'example.com']",
		see: reach("shell_command"), first: "deny network: argument /hosts/0: host \"example.com:443\" is not among sandboxing.docker.allowed_hosts", then: "ask hosts [example.com:443]"},
	{key: "sandboxing.docker.dns_allowed", text: "version: 1\nsandboxing: {docker: {dns_allowed: $X}}\n", one: "true", other: "false", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.DNSAllowed) }, first: "true", then: "false"},
	{key: "sandboxing.docker.loopback_allowed", text: "version: 1\nsandboxing: {docker: {loopback_allowed: $X}}\n", one: "true", other: "false", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.LoopbackAllowed) }, first: "true", then: "false"},
	{key: "sandboxing.docker.sidecar_pids_limit", text: "version: 1\nsandboxing: {docker: {sidecar_pids_limit: $X}}\n", one: "16", other: "100", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.SidecarPidsLimit) }, first: "16", then: "100"},
	{key: "sandboxing.docker.sidecar_tmpfs_size", text: "version: 1\nsandboxing: {docker: {sidecar_tmpfs_size: $X}}\n", one: "64k", other: "1m", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Sandboxing.Docker.SidecarTmpfsSize) }, first: "65536", then: "1048576"},
	{key: "sandboxing.lifecycle.strategy", text: "version: 1\nsandboxing: {lifecycle: {strategy: $X}}\n", one: "per-task", other: "per-call", engine: true,
		see: func(_ testing.TB, c *Config) string { return string(c.File.Sandboxing.Lifecycle.Strategy) }, first: "per-task", then: "per-call"},
	{key: "sandboxing.lifecycle.grace", text: "version: 1\nsandboxing: {lifecycle: {grace: $X}}\n", one: "1s", other: "2m", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Sandboxing.Lifecycle.Grace.String() }, first: "1s", then: "2m0s"},
	{key: "sandboxing.lifecycle.idle", text: "version: 1\nsandboxing: {lifecycle: {idle: $X}}\n", one: "1s", other: "1h", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Sandboxing.Lifecycle.Idle.String() }, first: "1s", then: "1h0m0s"},
	{key: "sandboxing.compat_env", text: "version: 1\nsandboxing: {compat_env: $X}\n", one: "synthorg", other: "synthorgs", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.IDNames()) }, first: "[WRIT SYNTHORG]", refusedOther: true,
		then: `writ.yaml:2: sandboxing.compat_env: unknown value of compat_env "synthorgs"; did you mean synthorg?`},
	{key: "container_log_shipping.enabled", text: "version: 1\ncontainer_log_shipping: {enabled: $X}\n", one: "true", other: "false", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.LogShipping.Enabled) }, first: "true", then: "false"},
	{key: "container_log_shipping.collection_timeout_seconds", text: "version: 1\ncontainer_log_shipping: {collection_timeout_seconds: $X}\n", one: "1", other: "0", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.LogShipping.TimeoutSeconds) }, first: "1", refusedOther: true,
		then: "writ.yaml:2: container_log_shipping.collection_timeout_seconds: must be 1 to 60"},
	{key: "container_log_shipping.max_log_bytes", text: "version: 1\ncontainer_log_shipping: {max_log_bytes: $X}\n", one: "2k", other: "1023", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.LogShipping.MaxBytes) }, first: "2048", refusedOther: true,
		then: "writ.yaml:2: container_log_shipping.max_log_bytes: must be 1k to 100m"},
	{key: "container_log_shipping.ship_raw_logs", text: "version: 1\ncontainer_log_shipping: {ship_raw_logs: $X}\n", one: "false", other: "true", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.LogShipping.Raw) }, first: "false", then: "true"},
	{key: "tools.*.egress_class", text: oneAgent + "tools: {read_file: {egress_class: $X}}\nagents: {bot: {workspace: main}}\n", one: "none", other: "write",
		see: decided("read_file"), first: "allow level: level standard opens category file_system", then: "ask egress_class: it changes something outside the workspace (class write)"},
	{key: "tools.*.dangerous", text: oneAgent + "tools: {$X}\nagents: {bot: {workspace: main}}\n", one: "stat: {dangerous: true}", other: "read_file: {dangerous: true}",
		see: decided("read_file"), first: "allow level: level standard opens category file_system", then: "ask dangerous: tool read_file is dangerous"},
	{key: "tools.*.quorum", text: oneAgent + "tools: {read_file: {quorum: $X}}\nagents: {bot: {workspace: main}}\n", one: "1", other: "3",
		see: func(t testing.TB, c *Config) string { return fmt.Sprint(decision(t, c, "read_file", nil).Quorum) }, first: "1", then: "3"},
	{key: "approvals.expiry", text: "version: 1\napprovals: {expiry: $X}\n", one: "90s", other: "7d", engine: true,
		see: func(_ testing.TB, c *Config) string { return time.Duration(c.File.Approvals.Expiry).String() }, first: "1m30s", then: "168h0m0s"},
	{key: "approvals.timeout", text: "version: 1\napprovals: {timeout: $X}\n", one: "deny", other: "wait", engine: true,
		see: func(_ testing.TB, c *Config) string { return string(c.File.Approvals.Timeout) }, first: "deny", then: "wait"},
	{key: "approvals.tiers.*.after", text: "version: 1\napprovals: {timeout: tiered, tiers: {high: {after: $X, then: deny}}}\n", one: "15m", other: "30d", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Approvals.Tiers[action.High].After.String() }, first: "15m0s", then: "720h0m0s"},
	{key: "approvals.tiers.*.then", text: "version: 1\napprovals: {timeout: tiered, tiers: {low: {after: 1h, then: escalate}, high: {after: 1h, then: $X}}, escalation: [{role: admin, after: 1h}]}\n",
		one: "deny", other: "escalate", engine: true,
		see: func(_ testing.TB, c *Config) string { return string(c.File.Approvals.Tiers[action.High].Then) }, first: "deny", then: "escalate"},
	{key: "approvals.escalation", text: "version: 1\napprovals: {timeout: escalate, escalation: $X}\n", one: "[{role: admin, after: 2h}]", other: "[{role: approver, after: 30m}, {role: admin, after: 1d}]", engine: true,
		see:   func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Approvals.Escalation) },
		first: "[{role: admin, after: 2h0m0s}]", then: "[{role: approver, after: 30m0s} {role: admin, after: 24h0m0s}]"},
	{key: "approvals.four_eyes", text: "version: 1\napprovals: {four_eyes: $X}\n", one: "always", other: "unsafe_never", engine: true,
		see: func(_ testing.TB, c *Config) string {
			return fmt.Sprintf("%s %v", c.File.Approvals.FourEyes, c.Warnings)
		},
		first: "always []", then: "unsafe_never [writ.yaml:2: four_eyes is unsafe_never: whoever an agent acts for may approve its dangerous calls alone]"},
	{key: "approvals.quorum", text: "version: 1\napprovals: {quorum: $X}\n", one: "1", other: "10", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Approvals.Quorum) }, first: "1", then: "10"},
	{key: "approvals.address", text: "version: 1\napprovals: {address: $X}\n", one: "https://w.example/", other: "http://w.example", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Approvals.Address }, first: "https://w.example", refusedOther: true,
		then: `writ.yaml:2: approvals.address: "http://w.example" is not https; only an address of this machine (127.0.0.1, [::1], localhost) can do without`},
	{key: "approvals.webhooks.*.url", text: "version: 1\napprovals: {webhooks: {ops: {url: $X, format: slack}}}\n", one: "https://w.example/T0/B0/s3cret", other: "http://w.example/T0/B0/s3cret", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Approvals.Webhooks["ops"].URL }, first: "https://w.example/T0/B0/s3cret", refusedOther: true,
		then: `writ.yaml:2: approvals.webhooks.ops.url: "http://w.example:80/…" is not https; only an address of this machine (127.0.0.1, [::1], localhost) can do without`},
	{key: "approvals.webhooks.*.secret", text: "version: 1\napprovals: {webhooks: {ops: {url: 'https://w.example', secret: $X}}}\n", one: "env:HOOK", other: "whsec_c2VjcmV0", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Approvals.Webhooks["ops"].Secret.String() }, first: "env:HOOK", refusedOther: true,
		then: "writ.yaml:2: approvals.webhooks.ops.secret: this is not where a secret is kept, and a secret itself does not belong here; write env:NAME, file:/abs/path, keyring:NAME, store:NAME or vault:PATH#FIELD"},
	{key: "approvals.webhooks.*.events", text: "version: 1\napprovals: {webhooks: {ops: {url: 'https://w.example', secret: 'file:/s', events: $X}}}\n", one: "[failed]", other: "[tool_invocation_fialed]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Approvals.Webhooks["ops"].Events) }, first: "[tool_invocation_failed]", refusedOther: true,
		then: `writ.yaml:2: approvals.webhooks.ops.events[0]: unknown event "tool_invocation_fialed"; did you mean tool_invocation_failed?`},
	{key: "approvals.webhooks.*.format", text: "version: 1\napprovals: {webhooks: {ops: {url: 'https://w.example', secret: 'file:/s', format: $X}}}\n", one: "json", other: "slack", engine: true,
		see: func(_ testing.TB, c *Config) string {
			return fmt.Sprint(len(c.File.Approvals.Webhooks["ops"].InForce().Events))
		}, first: "11", then: "1"},
	{key: "approvals.webhooks.*.give_up_after", text: "version: 1\napprovals: {webhooks: {ops: {url: 'https://w.example', secret: 'file:/s', give_up_after: $X}}}\n", one: "1s", other: "31d", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.File.Approvals.Webhooks["ops"].GiveUp.String() }, first: "1s", refusedOther: true,
		then: "writ.yaml:2: approvals.webhooks.ops.give_up_after: must be at most 30d"},
	{key: "approvals.max_pending", text: "version: 1\napprovals: {max_pending: $X}\n", one: "1", other: "1000", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Approvals.MaxPending) }, first: "1", then: "1000"},
	{key: "upstreams.*.command", text: "version: 1\nupstreams: {srv: {command: $X}}\n", one: `[prog]`, other: `[prog, -v]`, engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Command) }, first: "[prog]", then: "[prog -v]"},
	{key: "upstreams.*.dir", text: "version: 1\nupstreams: {srv: {command: [prog], dir: $X}}\n", one: "$DIR/ws", other: "ws", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Dir) }, first: "$DIR/ws", then: `writ.yaml:2: upstreams.srv.dir: "ws" is not an absolute path; begin it with / or ~/`, refusedOther: true},
	{key: "upstreams.*.env.*", text: "version: 1\nupstreams: {srv: {command: [prog], env: {A: $X}}}\n", one: "one", other: "two", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Env) }, first: "map[A:one]", then: "map[A:two]"},
	{key: "upstreams.*.read", text: "version: 1\nupstreams: {srv: {command: [prog], read: $X}}\n", one: "[$DIR/ws]", other: "[ws]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Read) }, first: "[$DIR/ws]", then: `writ.yaml:2: upstreams.srv.read[0]: "ws" is not an absolute path; begin it with / or ~/`, refusedOther: true},
	{key: "upstreams.*.write", text: "version: 1\nupstreams: {srv: {command: [prog], write: $X}}\n", one: "[$DIR/ws]", other: "[ws]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Write) }, first: "[$DIR/ws]", then: `writ.yaml:2: upstreams.srv.write[0]: "ws" is not an absolute path; begin it with / or ~/`, refusedOther: true},
	{key: "upstreams.*.url", text: "version: 1\nupstreams: {srv: {url: $X}}\n", one: "https://a.example/mcp", other: "http://a.example/mcp", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].URL) }, first: "https://a.example/mcp", then: `writ.yaml:2: upstreams.srv.url: "http://a.example/mcp" is not https; only an address of this machine (127.0.0.1, [::1], localhost) can do without`, refusedOther: true},
	{key: "upstreams.*.headers.*", text: "version: 1\nupstreams: {srv: {url: https://a.example/mcp, headers: {A: $X}}}\n", one: "one", other: "two", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Headers) }, first: "map[A:one]", then: "map[A:two]"},
	{key: "upstreams.*.secret_env.*", text: "version: 1\nupstreams: {srv: {command: [prog], secret_env: {A: $X}}}\n", one: "'store:a'", other: "s3cret", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].SecretEnv["A"]) }, first: "store:a", refusedOther: true,
		then: "writ.yaml:2: upstreams.srv.secret_env.A: this is not where a secret is kept, and a secret itself does not belong here; write env:NAME, file:/abs/path, keyring:NAME, store:NAME or vault:PATH#FIELD"},
	{key: "upstreams.*.auth.type", text: withAuth("type: $X, secret: 'env:T'"), one: "bearer", other: "basic", engine: true, see: authOf, first: "bearer token env:T",
		then: "writ.yaml:2: upstreams.srv.auth: auth of type basic needs user; write it", refusedOther: true},
	{key: "upstreams.*.auth.secret", text: withAuth("type: bearer, secret: $X"), one: "'store:t'", other: "'env:T'", engine: true, see: authOf, first: "bearer token store:t", then: "bearer token env:T"},
	{key: "upstreams.*.auth.header", text: withAuth("type: api_key, secret: 'env:T', header: $X"), one: "X-A", other: "X-B", engine: true, see: authOf, first: "header X-A from env:T", then: "header X-B from env:T"},
	{key: "upstreams.*.auth.user", text: withAuth("type: basic, secret: 'env:T', user: $X"), one: "me", other: "you", engine: true, see: authOf, first: "user me with password env:T", then: "user you with password env:T"},
	{key: "upstreams.*.auth.token_url", text: withAuth("type: oauth2_client, secret: 'env:T', client_id: c, token_url: $X"), one: "https://t.example", other: "https://u.example", engine: true, see: authOf,
		first: "OAuth 2 client c with env:T at https://t.example", then: "OAuth 2 client c with env:T at https://u.example"},
	{key: "upstreams.*.auth.client_id", text: withAuth("type: oauth2_client, secret: 'env:T', client_id: $X, token_url: https://t.example"), one: "c", other: "d", engine: true, see: authOf,
		first: "OAuth 2 client c with env:T at https://t.example", then: "OAuth 2 client d with env:T at https://t.example"},
	{key: "upstreams.*.auth.scopes", text: withAuth("type: oauth2_client, secret: 'env:T', client_id: c, token_url: https://t.example, scopes: $X"), one: "[a]", other: "[b]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Auth.Scopes) }, first: "[a]", then: "[b]"},
	{key: "upstreams.*.auth.headers.*", text: withAuth("type: headers, headers: {X-A: $X}"), one: "'env:T'", other: "'store:u'", engine: true, see: authOf, first: "header X-A from env:T", then: "header X-A from store:u"},
	{key: "upstreams.*.prefix", text: "version: 1\nupstreams: {srv: {command: [prog], prefix: $X}}\n", one: "name", other: "none", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Prefix) }, first: "name", then: "none"},
	{key: "upstreams.*.enabled", text: "version: 1\nupstreams: {srv: {command: [prog], enabled: $X}}\n", one: "[a]", other: "[a, b]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Enabled) }, first: "[a]", then: "[a b]"},
	{key: "upstreams.*.disabled", text: "version: 1\nupstreams: {srv: {command: [prog], disabled: $X}}\n", one: "[a]", other: "[a, b]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Disabled) }, first: "[a]", then: "[a b]"},
	{key: "upstreams.*.cacheable", text: "version: 1\nupstreams: {srv: {command: [prog], cacheable: $X}}\n", one: "[a]", other: "[b]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Cacheable) }, first: "[a]", then: "[b]"},
	{key: "upstreams.*.relay", text: "version: 1\nupstreams: {srv: {command: [prog], relay: $X}}\n", one: "[sampling]", other: "[elicitation, roots]", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Relay) }, first: "[sampling]", then: "[elicitation roots]"},
	{key: "upstreams.*.call_timeout", text: "version: 1\nupstreams: {srv: {command: [prog], call_timeout: $X}}\n", one: "5s", other: "11m", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].CallTimeout) }, first: "5s", then: "writ.yaml:2: upstreams.srv.call_timeout: must be over 0 and at most 10m", refusedOther: true},
	{key: "upstreams.*.connect_timeout", text: "version: 1\nupstreams: {srv: {command: [prog], connect_timeout: $X}}\n", one: "5s", other: "11m", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].ConnectTimeout) }, first: "5s", then: "writ.yaml:2: upstreams.srv.connect_timeout: must be over 0 and at most 10m", refusedOther: true},
	{key: "upstreams.*.hosts", text: "version: 1\nupstreams: {srv: {command: [prog], hosts: $X}}\n", one: "[a.example]", other: "['a.example/x']", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].Hosts) }, first: "[a.example:443]", refusedOther: true,
		then: `writ.yaml:2: upstreams.srv.hosts[0]: pattern "a.example/x" has a path, and a host is reached whole; write a.example`},
	{key: "upstreams.*.read_action", text: "version: 1\nactions: {custom: {\"crm:read\": low}}\nupstreams: {srv: {command: [prog], read_action: $X}}\n", one: "crm:read", other: "code:reed", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Upstreams["srv"].ReadAction) }, first: "crm:read", then: `writ.yaml:3: upstreams.srv.read_action: unknown action type "code:reed"; did you mean code:read?`, refusedOther: true},
	{key: "egress.hosts.*.class", text: "version: 1\negress: {hosts: {'*.a.example': {class: $X}}}\n", one: "read_only", other: "none", engine: true,
		see: saidOfHosts, first: "*.a.example:443 read_only [] false", refusedOther: true,
		then: `writ.yaml:2: egress.hosts."*.a.example".class: none is no network at all; write read_only or write`},
	{key: "egress.hosts.*.ranges", text: "version: 1\negress: {hosts: {a.example: {}, '*': {ranges: $X}}}\n", one: "[10.0.0.0/8]", other: "[10.0.0.1/8]", engine: true,
		see: saidOfHosts, first: "a.example:443 write [] false, *:443 write [10.0.0.0/8] false", refusedOther: true,
		then: `writ.yaml:2: egress.hosts."*".ranges[0]: "10.0.0.1/8" is not a range; write one such as 10.0.0.0/8`},
	{key: "egress.hosts.*.ipv6", text: "version: 1\negress: {hosts: {a.example: {ipv6: $X}}}\n", one: "false", other: "true", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.Egress[0].IPv6) }, first: "false", then: "true"},
	{key: "egress.hosts.*.unsafe_unnamed_tls", text: "version: 1\negress: {hosts: {a.example: {unsafe_unnamed_tls: $X}}}\n", one: "false", other: "true", engine: true,
		see: saidOfHosts, first: "a.example:443 write [] false", then: "a.example:443 write [] true"},
	{key: "egress.ssh.known_hosts", text: "version: 1\negress: {ssh: {known_hosts: $X}}\n", one: "$DIR/file", other: "$DIR/ws", engine: true,
		see: func(_ testing.TB, c *Config) string { return c.SSH.KnownHosts }, first: "$DIR/file", refusedOther: true,
		then: "writ.yaml:2: egress.ssh.known_hosts: $DIR/ws is not a file; make one: ssh-keyscan HOST, and compare what it says with what the server's operator publishes"},
	{key: "egress.ssh.hosts.*.key", text: "version: 1\negress: {ssh: {hosts: {a.example: {key: $X}}}}\n", one: "'file:$DIR/tls/key.pem'", other: "'$DIR/tls/key.pem'", engine: true,
		see: logins, first: "a.example:22 git $DIR/tls/key.pem, hidden true", refusedOther: true,
		then: "writ.yaml:2: egress.ssh.hosts.\"a.example\".key: this is not where a secret is kept, and a secret itself does not belong here; write env:NAME, file:/abs/path, keyring:NAME, store:NAME or vault:PATH#FIELD"},
	{key: "egress.ssh.hosts.*.user", text: "version: 1\negress: {ssh: {hosts: {'a.example:2222': {user: $X, key: 'file:$DIR/tls/key.pem'}}}}\n", one: "deploy", other: "-x", engine: true,
		see: logins, first: "a.example:2222 deploy $DIR/tls/key.pem, hidden true", refusedOther: true,
		then: "writ.yaml:2: egress.ssh.hosts.\"a.example:2222\".user: \"-x\" is not the name of a user; write one such as git"},
	{key: "egress.ssh.hosts.*.agents", text: oneAgent + "agents: {bot: {workspace: main}}\negress: {ssh: {hosts: {a.example: {agents: [$X], key: 'file:$DIR/tls/key.pem'}}}}\n", one: "bot", other: "bott", engine: true,
		see: func(_ testing.TB, c *Config) string {
			for _, l := range c.SSH.Hosts {
				return fmt.Sprint(l.Agents.V)
			}
			return "no server"
		}, first: "[bot]", refusedOther: true,
		then: "writ.yaml:4: egress.ssh.hosts.\"a.example\".agents[0]: there is no agent \"bott\"; did you mean bot?"},
	{key: "tools.*.hostname_allowlist", text: "version: 1\ntools: {$X}\n", one: "git_clone: {hostname_allowlist: [Git.example]}", other: "git_push: {hostname_allowlist: [git.example]}", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.Git.Inner) }, first: "[git.example]", refusedOther: true,
		then: "writ.yaml:2: tools.git_push.hostname_allowlist: belongs to git_clone, and holds for git_fetch and git_push too; write it there"},
	{key: "tools.*.dns_rebinding_mitigation", text: "version: 1\ntools: {git_clone: {dns_rebinding_mitigation: $X}}\n", one: "true", other: "false", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.Git.Varies, c.Warnings) }, first: "false []",
		then: "true [writ.yaml:2: tools.git_clone.dns_rebinding_mitigation: is false: within one call a server's name may lead to another address from one question to the next]"},
	{key: "tool_disclosure.active", text: "version: 1\ntool_disclosure: {active: $X}\n", one: "auto", other: "always", engine: true,
		see: disclosing, first: "31 true, 1 false", then: "31 true, 1 true"},
	{key: "tool_disclosure.l1_token_budget", text: "version: 1\ntool_disclosure: {l1_token_budget: $X}\n", one: "250", other: "249", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.Disclosure.L1Budget) }, first: "250", refusedOther: true,
		then: "writ.yaml:2: tool_disclosure.l1_token_budget: 249 is less than one line takes; write at least 250"},
	{key: "tool_disclosure.l2_token_budget", text: "version: 1\ntool_disclosure: {l2_token_budget: $X}\n", one: "5000", other: "20000", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.Disclosure.L2Budget) }, first: "5000", then: "20000"},
	{key: "tool_disclosure.auto_unload_on_budget_pressure", text: "version: 1\ntool_disclosure: {auto_unload_on_budget_pressure: $X}\n", one: "true", other: "false", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.Disclosure.AutoUnload) }, first: "true", then: "false"},
	{key: "tool_disclosure.unload_threshold_percent", text: "version: 1\ntool_disclosure: {unload_threshold_percent: $X}\n", one: "80.5", other: "101", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.Disclosure.Threshold) }, first: "80.5", refusedOther: true,
		then: "writ.yaml:2: tool_disclosure.unload_threshold_percent: write a number over 0, at most 100"},
	{key: "approvals.rate", text: "version: 1\napprovals: {rate: $X}\n", one: "5/1m", other: "60/1d", engine: true,
		see: func(_ testing.TB, c *Config) string { return fmt.Sprint(c.File.Approvals.Rate.Quota) }, first: "{5 window 1m0s}", then: "{60 window 24h0m0s}"},
}

// TestI13 shows every key biting, and that none was forgotten.
func TestI13(t *testing.T) {
	p := newPlace(t)
	var have []string
	for _, r := range rows {
		have = append(have, r.key)
		if r.engine {
			t.Logf("%s: an end-to-end test has to show the rest", r.key)
		}
		load := func(x string) (*Config, string) {
			c, err := p.load(t, strings.ReplaceAll(r.text, "$X", x), 0o600)
			if err != nil {
				return nil, strings.ReplaceAll(err.Error(), string(p), "$DIR")
			}
			return c, strings.ReplaceAll(r.see(t, c), string(p), "$DIR")
		}
		one, first := load(r.one)
		other, then := load(r.other)
		if !slices.Contains(strings.Split(first, "\n"), r.first) || !slices.Contains(strings.Split(then, "\n"), r.then) {
			t.Errorf("%s: with %s\n %s\nwith %s\n %s\nwant\n %s\n %s", r.key, r.one, first, r.other, then, r.first, r.then)
		}
		if first == then {
			t.Errorf("%s: nothing differs", r.key)
		}
		if (other == nil) != r.refusedOther || one == nil {
			t.Errorf("%s: loads %t and %t", r.key, one != nil, other != nil)
		} else if other != nil && one.Digest == other.Digest {
			t.Errorf("%s: the digest does not cover it", r.key)
		}
	}
	for _, k := range Keys() {
		if !slices.Contains(have, k) {
			t.Errorf("%s: no row shows it biting", k)
		}
	}
	if len(have) != len(Keys()) {
		t.Errorf("%d rows for %d keys", len(have), len(Keys()))
	}
}

const closedContainer = "deny network: argument /hosts/0: host \"example.com:443\" cannot be reached: category terminal runs on docker with network: none; " +
	"an operator opens it: sandboxing.docker.network_overrides: {terminal: bridge}"

// input is what the engine hands to deciding, from one configuration.
func input(t testing.TB, c *Config) decide.Input {
	f := c.File
	in := decide.Input{
		Types: c.Types, Agents: c.Agents, Presets: c.Presets, Tools: append(builtins(t), extraTools(t)...), Rules: map[string]decide.Rule{},
		Commands: access.Set[[]string]{V: Programs(f.ToolAccess.RestrictedCommands), At: c.At("tool_access.restricted_commands")},
		Hide:     []string{c.StatePath, c.Witness, c.Path}, Digest: c.Digest,
		Backends: decide.Backends{Default: string(f.Sandboxing.DefaultBackend), ByCategory: map[action.Category]string{}},
		Limits: writ.Limits{
			Wall:  time.Duration(f.Sandboxing.Subprocess.TimeoutSeconds) * time.Second,
			Grace: time.Duration(f.Sandboxing.Subprocess.KillGraceSeconds) * time.Second,
		},
	}
	d := f.Sandboxing.Docker
	outside := &decide.Outside{Driver: "docker", ByCategory: map[action.Category]access.Set[bool]{}}
	outside.Open.V, outside.Hosts.V = d.Network == "bridge", c.DockerHosts
	for k, n := range d.NetworkOverrides {
		outside.ByCategory[k] = access.Set[bool]{V: n == "bridge"}
	}
	in.Backends.Outside = map[string]*decide.Outside{"docker": outside}
	in.Connections = map[string]decide.Connection{}
	for name, n := range c.Connections {
		in.Connections[name] = decide.Connection{Host: n.Host, Sensitive: c.Sensitivity(name), Agents: c.Users(name)}
	}
	for k, b := range f.Sandboxing.Overrides {
		in.Backends.ByCategory[k] = string(b)
	}
	for name, r := range f.Tools {
		in.Rules[name] = decide.Rule{
			RequiresApproval: access.Set[bool]{V: r.RequiresApproval, At: c.At("tools." + name + ".requires_approval")},
			Disabled:         access.Set[bool]{V: r.Disabled, At: c.At("tools." + name + ".disabled")},
			Forbidden:        access.Set[bool]{V: r.Forbidden, At: c.At("tools." + name + ".forbidden")},
			Quotas:           c.Limits[name].Quotas, OnlyAfter: c.Limits[name].OnlyAfter,
			Class:     &access.Set[writ.Class]{V: r.EgressClass.Least(), At: c.At("tools." + name + ".egress_class")},
			Dangerous: access.Set[bool]{V: r.Dangerous, At: c.At("tools." + name + ".dangerous")}, Quorum: r.Quorum,
		}
	}
	return in
}

// extraTools are of families that are not built yet but whose keys are, and those that
// need something configured.
func extraTools(t testing.TB) []*tool.Tool {
	t.Helper()
	var out []*tool.Tool
	for _, d := range []tool.Definition{
		{Name: "deploy_trigger", Category: action.Deployment, Action: "deploy:staging"},
		{Name: "crm_write", Category: action.Other, Action: "crm:write", Policy: policy.Policy{Risk: action.Low}},
		{Name: "report", Category: action.FileSystem, Action: "code:read", Policy: policy.Policy{Files: policy.Files{Read: policy.Paths("/srv/**")}}},
	} {
		d.Class, d.Runs, d.Schema = writ.ClassNone, tool.InBox, json.RawMessage(`{"type":"object"}`)
		x, err := tool.New(d, func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil })
		must(t, err)
		out = append(out, x)
	}
	apis, err := external.Tools(nil)
	must(t, err)
	return append(out, apis...)
}

func decision(t testing.TB, c *Config, name string, targets []writ.Target) writ.Decision {
	t.Helper()
	in := input(t, c)
	i := slices.IndexFunc(in.Tools, func(x *tool.Tool) bool { return x.Name == name })
	d, err := decide.New(in).Decide(context.Background(), writ.Call{
		Agent: "bot", Tool: name, Definition: in.Tools[i].Digest, Args: "{}", Targets: targets, Resolved: true,
	})
	must(t, err)
	return d
}

// decided is the reasons that made a decision what it is.
func decided(name string) func(testing.TB, *Config) string {
	return func(t testing.TB, c *Config) string {
		t.Helper()
		var targets []writ.Target
		if name == "report" {
			targets = []writ.Target{{Pointer: "/path", Value: "here", Side: writ.SideRead, Path: filepath.Join(c.Agents[0].Workspace.Path, "here")}}
		}
		d := decision(t, c, name, targets)
		var said []string
		for _, r := range d.Reasons {
			if r.Effect == d.Effect {
				said = append(said, fmt.Sprintf("%s %s: %s", r.Effect, r.Source, r.Text))
			}
		}
		return strings.Join(said, "\n")
	}
}

func confine(name string) func(testing.TB, *Config) string {
	return func(t testing.TB, c *Config) string {
		d := decision(t, c, name, nil)
		return fmt.Sprintf("read %v write %v", d.Confine.Read, d.Confine.Write)
	}
}

func reach(name string) func(testing.TB, *Config) string {
	return func(t testing.TB, c *Config) string {
		d := decision(t, c, name, []writ.Target{{Pointer: "/hosts/0", Value: "example.com", Kind: writ.TargetHost, Host: "example.com:443"}})
		if d.Effect == writ.Deny {
			r := d.Reasons[slices.IndexFunc(d.Reasons, func(r writ.Reason) bool { return r.Effect == writ.Deny })]
			return fmt.Sprintf("deny %s: %s", r.Source, r.Text)
		}
		return fmt.Sprintf("%s hosts %v", d.Effect, d.Confine.Network.Hosts)
	}
}

func saidOfHosts(_ testing.TB, c *Config) string {
	var out []string
	for _, s := range c.Egress {
		out = append(out, fmt.Sprint(s.Host, " ", s.Class, " ", s.Ranges, " ", s.Unnamed))
	}
	return strings.Join(out, ", ")
}

func logins(_ testing.TB, c *Config) string {
	var out []string
	for e, l := range c.SSH.Hosts {
		out = append(out, fmt.Sprintf("%s %s %s, hidden %t", e, l.User, l.Key.Name, slices.Contains(c.Own(), l.Key.Name)))
	}
	return strings.Join(out, ", ")
}

func reserve(name string) func(testing.TB, *Config) string {
	return func(t testing.TB, c *Config) string {
		r := decision(t, c, name, nil).Reserve
		return fmt.Sprintf("%v after %v", r.Quotas, r.After)
	}
}

func isolation(name string) func(testing.TB, *Config) string {
	return func(t testing.TB, c *Config) string { return decision(t, c, name, nil).Confine.Isolation.String() }
}

func programs(name string) func(testing.TB, *Config) string {
	return func(t testing.TB, c *Config) string {
		e := decision(t, c, name, nil).Confine.Exec
		return fmt.Sprintf("%s %v", e.Mode, e.Files)
	}
}

func backend(name string) func(testing.TB, *Config) string {
	return func(t testing.TB, c *Config) string { return decision(t, c, name, nil).Confine.Backend }
}

func limits(t testing.TB, c *Config) string {
	l := decision(t, c, "shell_command", nil).Confine.Limits
	return fmt.Sprintf("wall %s grace %s", l.Wall, l.Grace)
}

func effective(key string) func(testing.TB, *Config) string {
	return func(_ testing.TB, c *Config) string {
		for _, v := range c.Effective() {
			if v.Key == key {
				return v.Value
			}
		}
		return ""
	}
}

func disclosing(_ testing.TB, c *Config) string {
	return fmt.Sprintf("31 %v, 1 %v", c.Disclosure.On(31), c.Disclosure.On(1))
}

func withVault(keys string) string { return "version: 1\nsecrets: {vault: {" + keys + "}}\n" }

func vaultOf(_ testing.TB, c *Config) string {
	v := c.File.Secrets.Vault
	return fmt.Sprint(v.Address, " ", v.Token, " ", v.Namespace, " ", cmp.Or(v.Mount, "secret"), " ", cmp.Or(v.KVVersion, 2))
}

func withConnection(keys string) string {
	return oneAgent + "agents: {bot: {workspace: main, level: elevated, autonomy: full}, top: {workspace: main}}\nconnections: {api: {" + keys + "}}\n"
}

func connectionOf(_ testing.TB, c *Config) string {
	n := c.Connections["api"]
	return fmt.Sprint(n.Base, " ", n.Host, " ", n.Auth, " ", n.Rate, " ", n.Paths, " ", n.Methods)
}

// over is what is decided about a request over a connection.
func over(t testing.TB, c *Config) string {
	t.Helper()
	d := decision(t, c, "external_api", []writ.Target{{Pointer: "/connection", Value: "api", Kind: writ.TargetConnection, Host: c.Connections["api"].Host}})
	for _, r := range d.Reasons {
		if r.Effect == d.Effect && d.Effect != writ.Allow {
			return fmt.Sprintf("%s %s: %s", r.Effect, r.Source, r.Text)
		}
	}
	return fmt.Sprint(d.Effect, " ", d.Class, " ", strings.Join(d.Confine.Network.Hosts, " "))
}

// withAuth is a configuration with a server that proves itself so.
func withAuth(auth string) string {
	return "version: 1\nupstreams: {srv: {url: https://a.example/mcp, auth: {" + auth + "}}}\n"
}

func authOf(_ testing.TB, c *Config) string {
	proof, _ := c.File.Upstreams["srv"].Proof("srv")
	return proof.Auth.String()
}
