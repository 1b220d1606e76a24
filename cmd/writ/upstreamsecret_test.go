package main

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// echoServer is an MCP server at a URL that takes those alone who say the key, and says it
// again wherever it can.
func echoServer(t *testing.T, key *atomic.Value) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Say it.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		said := r.Extra.Header.Get("Authorization")
		text := said + " and in base64 " + base64.StdEncoding.EncodeToString([]byte(said)) + ", which is all"
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key.Load().(string) {
			http.Error(rw, "no: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL + "/mcp"
}

// TestUpstreamBearer: a token that is kept elsewhere goes with requests, is shown nowhere,
// and another one under the same reference is no other server.
func TestUpstreamBearer(t *testing.T) {
	t.Parallel()
	var key atomic.Value
	key.Store("first-t0ken/with\"odd<")
	url := echoServer(t, &key)
	w := newWorld(t, "level: elevated\nautonomy: full\nallowed: [\"@web\"]", "").init()
	w.must("", "doctor") // which starts the daemon
	set := func(value string) {
		w.must(pass+"\n"+value, "secret", "set", "tok", "--passphrase-stdin")
		key.Store(value)
	}
	o := w.run("", "upstream", "add", "web", "--url", url, "--bearer", "store:tok", "--read-action", "web:read")
	contains(t, o.out, "web: failed", "its credentials cannot be had: secret store:tok: there is no such secret; set it: writ secret set tok", "proven by bearer token store:tok")
	if o.code != 1 {
		t.Errorf("exit %d", o.code)
	}
	set("first-t0ken/with\"odd<")
	w.must("", "upstream", "test", "web")
	w.takeUp("web__echo")
	said := func(old string) {
		t.Helper()
		o := w.call("web__echo", map[string]any{})
		if o.code != 0 || !strings.Contains(o.out, "Bearer [secret] and in base64 ") || !strings.Contains(o.out, "which is all") {
			t.Errorf("%+v", o)
		}
		if strings.Contains(o.out+o.err, old) || strings.Contains(o.out, base64.StdEncoding.EncodeToString([]byte("Bearer "+old))) {
			t.Errorf("it is shown: %s", o.out)
		}
	}
	said("first-t0ken")
	set("second-t0ken-of-more") // in use at once, and no tool is suspended by it
	said("second-t0ken")
	contains(t, w.must("", "upstream", "show", "web"), "web__echo  read_only  accepted", "proven by bearer token store:tok")
	key.Store("another-one-altogether")
	o = w.run("", "upstream", "restart", "web")
	contains(t, o.out, "web: failed", "note      the server does not take the credentials (401): bearer token store:tok; set the value anew, or another: ")
	key.Store("second-t0ken-of-more")
	w.must(pass+"\nsecond-t0ken-of-more", "secret", "set", "tik", "--passphrase-stdin")
	o = w.run("", "upstream", "set", "web", "--bearer", "store:tik", "--yes")
	contains(t, o.out, "proven by bearer token store:tik", "- proof: bearer token store:tok\n    + proof: bearer token store:tik", "suspended (changed)")
	contains(t, w.run("", "secret", "remove", "tok").out, "removed tok")
	out := w.must("", "ledger", "export") + w.must("", "config", "show", "--effective") + w.read(w.serverFile("web"))
	for _, dir := range []string{w.state(), filepath.Dir(w.config)} {
		out += filesBelow(t, dir)
	}
	for _, value := range []string{"first-t0ken", "second-t0ken"} {
		if strings.Contains(out, value) {
			t.Errorf("%s is on disk, or shown", value)
		}
	}
	w.verifies()
}

// filesBelow is all that the files below a directory hold.
func filesBelow(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestUpstreamSecretEnv: a program is given a value that is kept elsewhere when it starts,
// and what it says of it is not shown.
func TestUpstreamSecretEnv(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgram(t, map[string]string{"environment": "", "peek": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	w.must(pass+"\nfirst-v4lue", "secret", "set", "key", "--passphrase-stdin")
	out := w.must("", "upstream", "add", "srv", "--read", filepath.Dir(list), "--secret-env", "API_KEY=store:key", "--env", "PLAIN=first", "--", bin, list)
	contains(t, out, "srv: ready", "secrets   API_KEY=store:key")
	w.takeUp("srv__environment")
	o := w.call("srv__environment", map[string]any{})
	contains(t, o.out, "API_KEY=[secret]", "PLAIN=first")
	w.must(pass+"\nsecond-v4lue", "secret", "set", "key", "--passphrase-stdin")
	w.must("", "upstream", "restart", "srv")
	o = w.call("srv__environment", map[string]any{})
	contains(t, o.out, "API_KEY=[secret]") // not suspended
	o = w.run("", "secret", "remove", "key")
	contains(t, o.err, "without it these do not work: server srv")
	o = w.run("", "upstream", "restart", "srv")
	contains(t, o.out, "srv: failed", "its variable API_KEY cannot be had: secret store:key: there is no such secret; set it: writ secret set key")
	if err := os.WriteFile(filepath.Join(w.home, "short"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	out = w.run("", "upstream", "add", "brief", "--read", filepath.Dir(list), "--secret-env", "API_KEY=file:"+filepath.Join(w.home, "short"), "--", bin, list).out
	contains(t, out, "short has fewer than 8 characters")
	w.verifies()
}

// TestUpstreamAuth: each way to prove oneself that a connection has, a server has as well.
func TestUpstreamAuth(t *testing.T) {
	t.Parallel()
	const value = "s3cret-of-it"
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	}, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		given := map[string]bool{
			"/key": r.Header.Get("X-Key") == value, "/basic": user == "me" && password == value,
			"/headers": r.Header.Get("X-One") == value, "/oauth": r.Header.Get("Authorization") == "Bearer token-for-it", "/bearer": r.Header.Get("Authorization") == "Bearer "+value,
		}
		switch {
		case r.URL.Path == "/token" && user == "client" && password == value && r.FormValue("scope") == "read":
			rw.Header().Set("Content-Type", "application/json")
			io.WriteString(rw, `{"access_token":"token-for-it","token_type":"Bearer","expires_in":3600}`)
		case given[r.URL.Path]:
			inner.ServeHTTP(rw, r)
		default:
			rw.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	w := newWorld(t, "", "")
	file := filepath.Join(w.home, "kept")
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := `secret: "file:` + file + `"`
	var text strings.Builder
	text.WriteString("upstreams:\n")
	for name, auth := range map[string]string{
		"key": "type: api_key, header: X-Key, " + secret, "basic": "type: basic, user: me, " + secret, "headers": `type: headers, headers: {X-One: "file:` + file + `"}`, "bearer": "type: bearer, " + secret,
		"oauth": "type: oauth2_client, client_id: client, token_url: " + web.URL + "/token, scopes: [read], " + secret,
	} {
		text.WriteString("  " + name + ": {url: '" + web.URL + "/" + name + "', auth: {" + auth + "}}\n")
	}
	text.WriteString("  other: {url: '" + web.URL + "/basic', auth: {type: basic, user: you, " + secret + "}}\n") // the control
	w.edit("version: 1", "version: 1\n"+text.String())
	w.init()
	w.must("", "doctor") // which starts the daemon
	for _, name := range []string{"key", "basic", "headers", "bearer", "oauth"} {
		contains(t, w.must("", "upstream", "test", name), "ok: connected to")
	}
	w.fails(1, "the server does not take the credentials (401): user you with password file:"+file, "", "upstream", "test", "other")
}
