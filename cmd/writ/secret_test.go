package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Secrets of the store: a person sets one, anybody at the operators' door sees its name,
// nobody what it holds, and the ledger says who did what.
func TestSecretCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, free, "").init()
	w.add("bob", "approver")
	for name, c := range map[string]struct {
		stdin string
		args  []string
		says  string
	}{
		"with no value":          {pass + "\n", []string{"secret", "set", "a", "--as", "alice", "--passphrase-stdin"}, "no value on standard input"},
		"as an argument":         {pass + "\n", []string{"secret", "set", "a", canary, "--as", "alice", "--passphrase-stdin"}, "expected a name for the secret"},
		"under no name":          {pass + "\nvalue", []string{"secret", "set", "a/b", "--as", "alice", "--passphrase-stdin"}, "a secret's name has"},
		"by an approver":         {passphraseOf("bob") + "\n" + canary, []string{"secret", "set", "a", "--as", "bob", "--passphrase-stdin"}, "this takes operator or admin"},
		"with a wrong one":       {"wrong horse\n" + canary, []string{"secret", "set", "a", "--as", "alice", "--passphrase-stdin"}, "passphrase"},
		"without a terminal":     {canary, []string{"secret", "set", "a", "--as", "alice"}, "terminal"},
		"too short":              {pass + "\n1234567", []string{"secret", "set", "a", "--as", "alice", "--passphrase-stdin"}, "fewer than 8 characters"},
		"too large":              {pass + "\n" + strings.Repeat("x", 65<<10), []string{"secret", "set", "a", "--as", "alice", "--passphrase-stdin"}, "more than 64 KiB"},
		"removed, never set":     {"", []string{"secret", "remove", "a"}, `there is no secret "a"`},
		"checked, never set":     {"", []string{"secret", "check", "store:a"}, "writ secret set a"},
		"checked, not there":     {"", []string{"secret", "check", "env:WRIT_NO_SUCH"}, "no such variable"},
		"checked, not a place":   {"", []string{"secret", "check", "a"}, "this is not where a secret is kept"},
		"checked without vault":  {"", []string{"secret", "check", "vault:a#b"}, "there is no vault"},
		"checked, readable":      {"", []string{"secret", "check", "file:" + w.config}, ""},
		"checked, for everybody": {"", []string{"secret", "check", "file:/etc/hostname"}, "copy the secret to a file of its own that only the daemon's user can read"},
	} {
		o := w.run(c.stdin, c.args...)
		if (o.code == 0) != (c.says == "") || !strings.Contains(o.err, c.says) || leaks(o.out+o.err) != "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if out := w.must("", "secret", "list"); !strings.Contains(out, "there are no secrets") {
		t.Errorf("something was set: %s", out)
	}
	for _, value := range []string{"the first value", canary} {
		if o := w.run(pass+"\n"+value+"\n", "secret", "set", "a", "--as", "alice", "--passphrase-stdin"); o.code != 0 || o.out != "set a; a configuration names it store:a\n" {
			t.Fatalf("set: %+v", o)
		}
	}
	if out := w.must("", "secret", "check", "store:a", "--json"); !strings.Contains(out, `"found": true`) || !strings.Contains(out, `"8 to 31 bytes"`) {
		t.Errorf("check: %s", out)
	}
	if o := w.run("", "secret", "check", "store:b", "--json"); o.code == 0 || !strings.Contains(o.out, `"found": false`) {
		t.Errorf("check: %+v", o)
	}
	var list []struct{ Name, SetBy string }
	if err := json.Unmarshal([]byte(strings.ReplaceAll(w.must("", "secret", "list", "--json"), "set_by", "SetBy")), &list); err != nil || len(list) != 1 || list[0].Name != "a" || list[0].SetBy != "alice" {
		t.Errorf("list: %v %v", list, err)
	}
	w.must("", "secret", "remove", "a")
	if out := w.must("", "ledger", "tail"); !regexp.MustCompile(`secret\.removed +secret=a\n`).MatchString(out) {
		t.Errorf("the ledger's tail does not say which:\n%s", out)
	}
	if o := w.run("", "secret", "check", "store:a"); o.code == 0 {
		t.Errorf("it is still there: %+v", o)
	}
	kinds := strings.Join(w.ledgerKinds(), " ")
	for kind, n := range map[string]int{"secret.set": 2, "secret.removed": 1, "secret.checked": 2} {
		if strings.Count(kinds, kind) != n {
			t.Errorf("%d of %s: %s", strings.Count(kinds, kind), kind, kinds)
		}
	}
	if leaks(w.must("", "ledger", "export")) != "" {
		t.Error("the ledger has it")
	}
	w.verifies()
}

// services are a vault, a token endpoint and an API that says how it was asked.
func services(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/team-kv/data/") && r.Header.Get("X-Vault-Token") == "the-vault-token" && r.Header.Get("X-Vault-Namespace") == "team":
			fmt.Fprint(w, `{"data":{"data":{"token":"from-the-vault-2"},"metadata":{"version":1}}}`)
		case strings.HasPrefix(r.URL.Path, "/v1/team-kv/") && r.Header.Get("X-Vault-Token") == "the-vault-token":
			fmt.Fprint(w, `{"data":{"token":"from-the-vault-1"}}`)
		case r.URL.Path == "/token" && r.Method == "POST" && user == "client" && password == "client-password" && r.FormValue("grant_type") == "client_credentials":
			fmt.Fprintf(w, `{"access_token":"access-for-%s","token_type":"Bearer","expires_in":3600}`, strings.ReplaceAll(r.FormValue("scope"), " ", "-"))
		case strings.HasPrefix(r.URL.Path, "/api"):
			got := "nothing"
			for _, h := range []string{"Authorization", "X-Team-Key", "X-One"} {
				if v := r.Header.Get(h); v != "" {
					got = h + " with " + fmt.Sprint(len(v))
				}
			}
			w.Header().Set("X-Asked", strings.NewReplacer("Bearer ", "B/", "Basic ", "b/").Replace(r.Header.Get("Authorization")+r.Header.Get("X-Team-Key")+r.Header.Get("X-One")))
			fmt.Fprintln(w, "asked by", got)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// Each way to prove oneself, and each backend that has keys, from the binary (I13).
func TestConnectionKeysBite(t *testing.T) {
	t.Parallel()
	s := services(t)
	w := newWorld(t, free, "")
	token := filepath.Join(w.home, "vault-token")
	key := filepath.Join(w.home, "secrets.key")
	for path, text := range map[string]string{token: "the-vault-token\n", filepath.Join(w.home, "password"): "client-password\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := os.ReadFile(w.config)
	text := strings.NewReplacer("$URL", s.URL, "$HOME", w.home).Replace(string(b) + `secrets:
  store: {key_file: $HOME/secrets.key}
  vault: {address: "$URL", token: "file:$HOME/vault-token", namespace: team, mount: team-kv, kv_version: 2}
connections:
  none: {base_url: "$URL/api"}
  vault: {base_url: "$URL/api", auth: {type: bearer, secret: "vault:app/github#token"}}
  store: {base_url: "$URL/api", auth: {type: api_key, header: X-Team-Key, secret: "store:k"}}
  basic: {base_url: "$URL/api", auth: {type: basic, user: me, secret: "file:$HOME/password"}}
  client: {base_url: "$URL/api", auth: {type: oauth2_client, token_url: "$URL/token", client_id: client, secret: "file:$HOME/password", scopes: [read, write]}}
  headers: {base_url: "$URL/api", auth: {type: headers, headers: {X-One: "store:k"}}}
`)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.init()
	if o := w.by("alice", []string{"from-the-store"}, "secret", "set", "k"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	defer func() {
		if o := w.run("", "secret", "remove", "k"); o.code != 0 || !strings.Contains(o.err, "without it these do not work: connection headers, connection store; set it again with") {
			t.Errorf("remove: %+v", o)
		}
	}()
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("secrets.store.key_file: %v %v", info, err)
	}
	asked := func(connection string) string {
		o := w.api(map[string]any{"connection": connection, "path": "/x"})
		for _, secret := range []string{"from-the-", "client-password", "access-for", "the-vault-token"} {
			if strings.Contains(o.out+o.err, secret) {
				t.Errorf("%s: the result has %s: %+v", connection, secret, o)
			}
		}
		_, said, _ := strings.Cut(o.out, "asked by ")
		return strings.TrimSpace(said) + o.err
	}
	for connection, want := range map[string]string{
		"none": "nothing", "vault": "Authorization with 23", "store": "X-Team-Key with 14", "basic": "Authorization with 30",
		"client": "Authorization with 28", "headers": "X-One with 14", // access-for-read-write
	} {
		if got := asked(connection); got != want {
			t.Errorf("%s: asked by %q, want %q", connection, got, want)
		}
		if out := w.must("", "connection", "test", connection); !strings.Contains(out, "answered 200 OK") {
			t.Errorf("test %s: %s", connection, out)
		}
	}
	for change, broken := range map[[2]string]string{
		{"kv_version: 2", "kv_version: 1"}:                     "",
		{"namespace: team, ", ""}:                              "", // which version 1 here does not ask for
		{"mount: team-kv", "mount: other"}:                     "vault",
		{"client_id: client", "client_id: other"}:              "client",
		{"user: me", "user: somebody-else"}:                    "",
		{"scopes: [read, write]", "scopes: [read]"}:            "",
		{"vault-token\", ", "password\", "}:                    "vault",
		{`address: "` + s.URL, `address: "http://127.0.0.1:1`}: "vault",
	} {
		before, _ := os.ReadFile(w.config)
		w.edit(change[0], change[1])
		w.must("", "config", "reload")
		got := map[string]string{"vault": asked("vault"), "client": asked("client"), "basic": asked("basic")}
		want := map[string]string{"vault": "Authorization with 23", "client": "Authorization with 28", "basic": "Authorization with 30"}
		if strings.HasPrefix(change[0], "user") {
			want["basic"] = "Authorization with 46"
		}
		if strings.HasPrefix(change[0], "scopes") {
			want["client"] = "Authorization with 22"
		}
		if strings.HasPrefix(change[0], "namespace") {
			want["vault"] = "cannot be had"
		}
		if broken != "" {
			want[broken] = "cannot be had"
		}
		for name := range want {
			if !strings.Contains(got[name], want[name]) {
				t.Errorf("%v: %s: %q, want %q", change, name, got[name], want[name])
			}
		}
		if err := os.WriteFile(w.config, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.must("", "config", "reload")
	for _, hidden := range []string{key, token} {
		if o := w.call("read_file", map[string]any{"path": hidden}); o.code == 0 || !strings.Contains(o.err, "not for agents") {
			t.Errorf("an agent reads %s: %+v", hidden, o)
		}
	}
}
