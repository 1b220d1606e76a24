package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-run/writ/cli"
)

// What an agent writes does not lead a credential elsewhere (R10), and is refused before
// anything is sent. The control is a request that arrives.
func TestConnectionAttacks(t *testing.T) {
	t.Parallel()
	e, evil := newEcho(t), newEcho(t)
	w := newWorld(t, free, fmt.Sprintf(`connections:
  echo:
    base_url: %s/base
    auth: {type: bearer, secret: "store:canary"}
    paths: ["/v1/**", "/away"]
    rate_limit: 100
  slow: {base_url: %q, rate_limit: 2}
  other: {base_url: %q, agents: [other]}
`, e.URL, e.URL, evil.URL))
	w.edit("agents:\n  coder:", "agents:\n  none: {workspace: main, level: elevated, autonomy: full, overrides: {network: none}}\n  other: {workspace: main}\n  coder:")
	w.init()
	if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	arrives := func() {
		t.Helper()
		before := e.count()
		if o := w.api(map[string]any{"connection": "echo", "path": "/v1/x"}); o.code != 0 || e.count() != before+1 {
			t.Fatalf("the control does not arrive: %+v", o)
		}
	}
	arrives()
	evilHost := strings.TrimPrefix(evil.URL, "http://")
	for name, c := range map[string]struct {
		args map[string]any
		says string
	}{
		"up":                {map[string]any{"path": "/../admin"}, "argument /path: it has a dot segment"},
		"up, below":         {map[string]any{"path": "/v1/../../admin"}, "dot segment"},
		"up, encoded":       {map[string]any{"path": "/v1/%2e%2e/admin"}, "dot segment"},
		"up, encoded twice": {map[string]any{"path": "/v1/%252e%252e/admin"}, "within an encoding"},
		"another host":      {map[string]any{"path": "//" + evilHost + "/"}, "empty segment"},
		"backslashes":       {map[string]any{"path": `\\` + evilHost + `\v1`}, "begins with /"},
		"userinfo":          {map[string]any{"path": "@" + evilHost + "/v1/x"}, "begins with /"},
		"a whole URL":       {map[string]any{"path": evil.URL + "/v1/x"}, "begins with /"},
		"a line more":       {map[string]any{"path": "/v1/x\r\nHost: " + evilHost}, "control character"},
		"host header":       {map[string]any{"path": "/v1/x", "headers": map[string]string{"Host": evilHost}}, "argument /headers: Host is not for agents"},
		"method override":   {map[string]any{"path": "/v1/x", "headers": map[string]string{"X-HTTP-Method-Override": "DELETE"}}, "not for agents"},
		"another path":      {map[string]any{"path": "/v2/x"}, "does not go there"},
		"override, in dots": {map[string]any{"path": "/v1/x", "headers": map[string]string{"X.HTTP.Method~Override": "DELETE"}}, "not for agents"},
		"a key, in dots":    {map[string]any{"path": "/v1/x?api.key=mine"}, "the query has api-key, which is a credential"},
		"another method":    {map[string]any{"path": "/v1/x", "method": "POST", "body": "x"}, "argument /method: connection echo does not take POST; it takes GET, HEAD"},
		"no method":         {map[string]any{"path": "/v1/x", "method": "TRACE"}, "must be one of"},
		"their own key":     {map[string]any{"path": "/v1/x?access_token=mine"}, "is a credential"},
		"no such":           {map[string]any{"path": "/v1/x", "connection": "ehco"}, `there is no connection "ehco"; there are echo, slow; did you mean echo?`},
		"somebody else's":   {map[string]any{"path": "/v1/x", "connection": "other"}, "connection other is not for agent coder"},
	} {
		if c.args["connection"] == nil {
			c.args["connection"] = "echo"
		}
		before := e.count() + evil.count()
		o := w.api(c.args)
		if o.code == 0 || !strings.Contains(o.out+o.err, c.says) || e.count()+evil.count() != before || leaks(o.out+o.err) != "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
	// An @ in a path is one: it goes to the connection's own host.
	if o := w.api(map[string]any{"connection": "echo", "path": "/v1/a@" + evilHost}); o.code != 0 || !strings.Contains(o.out, "GET /base/v1/a@") || evil.count() != 0 {
		t.Errorf("@: %+v", o)
	}
	before := e.count()
	if o := w.api(map[string]any{"connection": "echo", "path": "/away"}); o.code != 0 || !strings.Contains(o.out, "HTTP 302") || !strings.Contains(o.out, "token=Bearer [secret]") || leaks(o.out) != "" || e.count() != before+1 {
		t.Errorf("a redirect: %+v", o)
	}
	for i := range 3 {
		o := w.run("", "call", "external_api", "connection=slow", "path=/", "--json")
		if limited := strings.Contains(o.out, "retry_after: "); limited != (i == 2) || (o.code != 0) != limited {
			t.Errorf("request %d over a connection for two a minute: %+v", i, o)
		}
	}
	arrives() // over another connection
	token := w.token
	w.token = w.tokenOf("none")
	if o := w.api(map[string]any{"connection": "echo", "path": "/v1/x"}); o.code == 0 || !strings.Contains(o.err, "network: none") {
		t.Errorf("without a network: %+v", o)
	}
	w.token = token
	w.verifies()
}

// tokenOf makes a token for an agent.
func (w *world) tokenOf(agent string) string {
	w.t.Helper()
	o := w.by("alice", nil, "agent", "token", agent, "--json")
	var got struct{ Token string }
	if err := json.Unmarshal([]byte(o.out), &got); err != nil || got.Token == "" {
		w.t.Fatalf("a token: %+v %v", o, err)
	}
	return got.Token
}

// A request that changes something asks, with what is sent; a sensitive connection asks
// always; and what was approved over a connection is not sent over another.
func TestConnectionAsks(t *testing.T) {
	t.Parallel()
	e, second := newEcho(t), newEcho(t)
	w := newWorld(t, free, fmt.Sprintf(`connections:
  echo: {base_url: %q, methods: [GET, POST], auth: {type: bearer, secret: "store:canary"}, environment: staging}
  hush: {base_url: %q, sensitive: true}
`, e.URL, e.URL)).init()
	if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	post := map[string]any{"connection": "echo", "method": "POST", "path": "/v1/things?x=1", "body": `{"name":"thing"}`}
	if o := w.api(post); o.code != cli.ExitPending || e.count() != 0 {
		t.Fatalf("nobody was asked: %+v", o)
	}
	id := w.pending()
	shown := w.must("", "approval", "show", id)
	for _, want := range []string{
		"POST " + e.URL + "/v1/things?x=1: 16 bytes, sha256 eb2c8914176b419e4b55902951bdf6602b5eec92f003b908044c4da69e5e7a2d",
		`{"name":"thing"}`, "connection   echo: " + e.URL + ", auth: bearer token store:canary, environment staging", "class write",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("a person is not shown %q:\n%s", want, shown)
		}
	}
	if leaks(shown) != "" {
		t.Errorf("it shows the credential:\n%s", shown)
	}
	w.approves(id)
	if o := w.api(post); o.code != 0 || !strings.Contains(o.out, `body {"name":"thing"}`) || e.count() != 1 {
		t.Errorf("approved: %+v", o)
	}
	if got := e.last(t); got.Method != "POST" || got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Authorization") != "Bearer "+canary {
		t.Errorf("the server got %s %v", got.Method, got.Header)
	}
	if o := w.api(map[string]any{"connection": "hush", "path": "/x"}); o.code != cli.ExitPending {
		t.Errorf("sensitive: %+v", o)
	}
	w.must(pass+"\n", "approval", "reject", w.pending(), "--reason", "no", "--as", "alice", "--passphrase-stdin")
	post["path"] = "/v1/others"
	if o := w.api(post); o.code != cli.ExitPending {
		t.Fatalf("%+v", o)
	}
	id = w.pending()
	w.edit(e.URL+`", methods: [GET, POST]`, second.URL+`", methods: [GET, POST]`)
	w.must("", "config", "reload")
	if o := w.run(pass+"\n", "approval", "approve", id, "--as", "alice", "--passphrase-stdin"); o.code == 0 {
		t.Errorf("a request over a connection that is another now was approved: %+v", o)
	}
	if o := w.api(post); o.code != cli.ExitPending || second.count() != 0 || e.count() != 1 {
		t.Errorf("it was sent: %+v", o)
	}
}
