//go:build linux

package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
)

// The metadata is served to anyone where an issuer is configured, and nowhere else.
func TestServedMetadata(t *testing.T) {
	w, p := oauthWorld(t)
	for _, path := range []string{resourcePath, resourcePath + "/mcp"} {
		want := `{"resource":"https://writ.example/mcp","authorization_servers":["` + p.url + `"],"scopes_supported":["writ:coder","writ:other"],"bearer_methods_supported":["header"]}` + "\n"
		if got := w.ok(ask{agentDoor, "", "GET", path, nil, ""}); got.body != want {
			t.Errorf("%s: %s", path, got.body)
		}
		newWorld(t).refused(ask{agentDoor, "", "GET", path, nil, ""}, 404, writ.NotFound, "no issuer of access tokens is configured here; use a token of 'writ agent token'")
	}
}

// The agents' socket is served by the daemon, and ends with it.
func TestServedSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "writ-sock-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "agents.sock")
	w := newWorldAt(t, config.Listen{Address: "127.0.0.1:0", Socket: path})
	if status, body := overSocket(t, os.Geteuid(), path, whoami); status != 401 || !strings.Contains(body, "of this machine is no agent") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := overSocket(t, os.Geteuid(), path, whoami+"Authorization: Bearer "+w.token("other")+"\r\n"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	w.end()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// A reload with an issuer is none of listen's.
func TestReloadWithIssuer(t *testing.T) {
	w := newWorld(t)
	text, err := os.ReadFile(filepath.Join(w.dir, "writ.yaml"))
	must(t, err)
	w.write("writ.yaml", strings.Replace(string(text), "listen: 127.0.0.1:0", `listen: {address: "127.0.0.1:0", oauth: {issuer: "https://a.example", audience: "https://b.example", scopes: {a: coder}}}`, 1))
	if got := w.ask(ask{operatorDoor, "", "POST", "/v1/config/reload", nil, ""}); got.status != 409 {
		t.Errorf("an issuer from one moment to the next: %d", got.status)
	}
	w.restart()
	w.ok(ask{operatorDoor, "", "POST", "/v1/config/reload", nil, ""})
}
