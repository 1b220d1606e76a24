package secret

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// bao answers as the KV engines of Vault and OpenBao do: paths, headers, statuses and
// bodies are those of their HTTP API.
func bao(t *testing.T) (address string, seen *[]string) {
	seen = &[]string{}
	refuse := func(w http.ResponseWriter, status int) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"errors":["permission denied `+value+`"]}`)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r.Method+" "+r.Header.Get("X-Vault-Namespace")+" "+r.URL.Path)
		if r.Header.Get("X-Vault-Token") != "vault-token" || r.Header.Get("X-Vault-Request") != "true" {
			refuse(w, http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/v1/secret/data/team/github":
			fmt.Fprintf(w, `{"request_id":"r","lease_id":"","data":{"data":{"token":%q,"count":3},"metadata":{"version":2,"destroyed":false}}}`, value)
		case "/v1/kv/team/github":
			fmt.Fprintf(w, `{"lease_duration":2764800,"data":{"token":%q}}`, value)
		case "/v1/secret/data/gone":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"data":{"data":null,"metadata":{"deletion_time":"2026-01-01T00:00:00Z"}}}`)
		case "/v1/secret/data/away":
			http.Redirect(w, r, "http://127.0.0.1:1/v1/secret/data/team/github", http.StatusTemporaryRedirect)
		case "/v1/secret/data/sealed":
			refuse(w, http.StatusServiceUnavailable)
		case "/v1/secret/data/large":
			fmt.Fprintf(w, `{"data":{"data":{"token":"%s"}}}`, strings.Repeat("x", vaultBytes))
		case "/v1/secret/data/odd":
			fmt.Fprintf(w, `{"data": %q}`, value)
		default:
			refuse(w, http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

type direct struct{ *http.Transport }

func (direct) Close() error { return nil }

func TestVault(t *testing.T) {
	address, seen := bao(t)
	t.Setenv("WRIT_TEST_VAULT", "vault-token")
	t.Setenv("WRIT_TEST_WRONG", "another")
	way := func() (Way, error) { return direct{&http.Transport{}}, nil }
	two := Vault{Address: address, Token: Ref{Backend: "env", Name: "WRIT_TEST_VAULT"}, Tokens: Set{"env": Env{}}, Way: way}
	one, other, nobody, deaf := two, two, two, two
	one.Version, one.Mount, one.Namespace = 1, "kv", "team"
	other.Token.Name, nobody.Token.Name, deaf.Address = "WRIT_TEST_WRONG", "WRIT_TEST_NONE", "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		vault     Vault
		path      string
		field     string
		want, not string // the value, or what the error says
	}{
		"version 2":       {two, "team/github", "token", value, ""},
		"version 1":       {one, "team/github", "token", value, ""},
		"no such field":   {two, "team/github", "password", "", "no such field"},
		"a number":        {two, "team/github", "count", "", "no such field"},
		"no such path":    {two, "team/gitlab", "token", "", "nothing there"},
		"deleted":         {two, "gone", "token", "", "nothing there"},
		"elsewhere":       {two, "away", "token", "", "sends elsewhere"},
		"sealed":          {two, "sealed", "token", "", "sealed"},
		"large":           {two, "large", "token", "", "larger than 1 MiB"},
		"not its answer":  {two, "odd", "token", "", "not that of a KV engine"},
		"refused":         {other, "team/github", "token", "", "refuses the token"},
		"without a token": {nobody, "team/github", "token", "", "no such variable"},
		"nobody is there": {deaf, "team/github", "token", "", "does not answer"},
		"not configured":  {Vault{}, "team/github", "token", "", "there is no vault"},
	} {
		v, err := Set{"vault": c.vault}.Resolve(context.Background(), Ref{Backend: "vault", Name: c.path, Field: c.field})
		if c.want != "" && (err != nil || v.Reveal() != c.want) || c.not != "" && (err == nil || !strings.Contains(err.Error(), c.not)) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), value) || strings.Contains(err.Error(), "vault-token")) {
			t.Errorf("%s: the error has a secret: %v", name, err)
		}
	}
	if all := strings.Join(*seen, "\n"); !strings.Contains(all, "GET team /v1/kv/team/github") {
		t.Errorf("no namespace: %s", all)
	}
}
