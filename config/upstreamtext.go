package config

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/wire"
)

// Text is the server as a file of its own has it. Reading it gives the same server.
func (u Upstream) Text() []byte {
	var b bytes.Buffer
	one := func(key, v string) {
		if v != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, quoted(v))
		}
	}
	list := func(key string, vs []string) {
		if len(vs) > 0 {
			fmt.Fprintf(&b, "%s: [%s]\n", key, strings.Join(mapped(vs, quoted), ", "))
		}
	}
	table := func(key string, m map[string]string) {
		if len(m) > 0 {
			fmt.Fprintf(&b, "%s:\n", key)
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, "  %s: %s\n", quoted(k), quoted(m[k]))
		}
	}
	lasts := func(key string, d Duration) {
		if d != 0 {
			fmt.Fprintf(&b, "%s: %s\n", key, time.Duration(d))
		}
	}
	list("command", u.Command)
	one("dir", u.Dir)
	table("env", u.Env)
	table("secret_env", texts(u.SecretEnv))
	list("read", u.Read)
	list("write", u.Write)
	list("hosts", u.Hosts)
	one("url", u.URL)
	table("headers", u.Headers)
	if auth := u.Auth.text(); auth != "" {
		fmt.Fprintf(&b, "auth: %s\n", auth)
	}
	one("prefix", string(u.Prefix))
	list("enabled", u.Enabled)
	list("disabled", u.Disabled)
	list("cacheable", u.Cacheable)
	list("relay", mapped(u.Relay, func(r Relay) string { return string(r) }))
	lasts("call_timeout", u.CallTimeout)
	lasts("connect_timeout", u.ConnectTimeout)
	one("read_action", string(u.ReadAction))
	return b.Bytes()
}

// text is it on one line; empty where there is nothing to say.
func (a Auth) text() string {
	var parts []string
	one := func(key, v string) {
		if v != "" {
			parts = append(parts, key+": "+quoted(v))
		}
	}
	one("type", string(a.Type))
	one("secret", a.Secret.String())
	one("header", a.Header)
	one("user", a.User)
	one("token_url", a.TokenURL)
	one("client_id", a.ClientID)
	if len(a.Scopes) > 0 {
		parts = append(parts, "scopes: ["+strings.Join(mapped(a.Scopes, quoted), ", ")+"]")
	}
	if len(a.Headers) > 0 {
		var each []string
		for _, k := range sorted(a.Headers) {
			each = append(each, quoted(k)+": "+quoted(a.Headers[k].String()))
		}
		parts = append(parts, "headers: {"+strings.Join(each, ", ")+"}")
	}
	if parts == nil {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// texts is references as they are written.
func texts(refs map[string]secret.Ref) map[string]string {
	out := map[string]string{}
	for k, r := range refs {
		out[k] = r.String()
	}
	return out
}

func mapped[T any](vs []T, f func(T) string) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = f(v)
	}
	return out
}

// quoted is a text as JSON has it, which YAML reads the same.
func quoted(s string) string {
	b, _ := wire.Plain(s) // a string
	return string(b)
}

// Hidden stands for what looks like a secret where a server is shown.
const Hidden = "…"

// Shown is the server as people and logs may see it: values that look like secrets are
// hidden. It is to be read, and reaches nothing.
func (u Upstream) Shown() Upstream {
	hide := func(m map[string]string) map[string]string {
		out := map[string]string{}
		for k, v := range m {
			if out[k] = v; secretName().MatchString(k) || secretValue(v) {
				out[k] = Hidden
			}
		}
		return out
	}
	u.Env, u.Headers, u.Command, u.URL = hide(u.Env), hide(u.Headers), shownArgs(u.Command), ShownURL(u.URL)
	return u
}

// secretName matches what secrets are usually called.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(key|token|secret|pass|pwd|auth|cred|cookie|session|signature|private|bearer|dsn|connection)`)
})

// known matches values that are what they look like, wherever they stand; random ones
// of many letters and digits.
var (
	known = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(bearer|basic|token) |^(sk|pk|rk)[-_]|^gh[a-z]_|^github_pat_|^glpat-|^xox[a-z]-|^AKIA|^eyJ|-----BEGIN|://[^/@\s]*:[^/@\s]*@`)
	})
	random = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9+=_-]{20,}$`) })
)

func secretValue(v string) bool {
	return known().MatchString(v) || random().MatchString(v) && strings.ContainsAny(v, "0123456789")
}

// shownArgs hides what follows a flag with a secret's name, too.
func shownArgs(args []string) []string {
	out := slices.Clone(args)
	for i, a := range args {
		flag, v, with := strings.Cut(a, "=")
		switch {
		case i == 0:
		case strings.HasPrefix(a, "-") && with && (secretName().MatchString(flag) || secretValue(v)), with && secretName().MatchString(flag) && !strings.ContainsAny(flag, "/:"):
			out[i] = flag + "=" + Hidden
		case strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") && !strings.HasPrefix(a, "-") && secretName().MatchString(args[i-1]), secretValue(a):
			out[i] = Hidden
		case strings.Contains(a, "://"):
			out[i] = ShownURL(a)
		}
	}
	return out
}

// ShownURL is an address without what its user or its query say.
func ShownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return text
	}
	bare := *u
	bare.User, bare.RawQuery, bare.ForceQuery = nil, "", false
	out := bare.String()
	if u.User != nil {
		out = strings.Replace(out, "://", "://"+Hidden+"@", 1)
	}
	if u.RawQuery != "" {
		out += "?" + Hidden
	}
	return out
}
