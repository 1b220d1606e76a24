package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/secret"
)

// servers writes files of servers beside the configuration; a text may begin with a mode.
func (p place) servers(t testing.TB, files map[string]string) {
	t.Helper()
	dir := filepath.Join(string(p), "conf/upstreams")
	must(t, os.RemoveAll(dir))
	must(t, os.Mkdir(dir, 0o700))
	for name, text := range files {
		mode := os.FileMode(0o600)
		if rest, ok := strings.CutPrefix(text, "mode 0622\n"); ok {
			text, mode = rest, 0o622
		}
		path := filepath.Join(dir, name)
		if to, ok := strings.CutPrefix(text, "link "); ok {
			must(t, os.Symlink(to, path))
			continue
		}
		must(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "$DIR", string(p))), 0o600))
		must(t, os.Chmod(path, mode))
	}
}

// A server in a file of its own counts like one in the configuration: it is in force, it
// is part of the digest, and rules may name its tools.
func TestServerFiles(t *testing.T) {
	p := newPlace(t)
	const plain = "version: 1\nworkspaces: {main: {path: $DIR/ws}}\nagents: {bot: {workspace: main}}\n"
	rules := plain + "tools: {files__put: {requires_approval: true}}\n"
	if _, err := p.load(t, rules, 0o600); err == nil {
		t.Fatal("the control: a rule about a tool of no server holds")
	}
	none := p.mustLoad(t, plain)
	p.servers(t, map[string]string{"files.yaml": "# ours\ncommand: [/opt/files, $DIR/ws]\nread: [~/data]\n", "web.yaml": `{"url": "https://web.example/mcp"}`, ".web.yaml.swp": "x", "README.md": "x"})
	c := p.mustLoad(t, rules)
	got := lookup(c)
	for key, want := range map[string]Value{
		"upstreams.files.command": {Value: `["/opt/files", "$DIR/ws"]`, From: "upstreams/files.yaml:2"},
		"upstreams.files.read":    {Value: `["$DIR/home/data"]`, From: "upstreams/files.yaml:3"},
		"upstreams.files.write":   {Value: "[]", From: "built in"},
		"upstreams.web.url":       {Value: "https://web.example/mcp", From: "upstreams/web.yaml:1"},
	} {
		v := got[key]
		if v.Value = strings.ReplaceAll(v.Value, string(p), "$DIR"); v.Value != want.Value || v.From != want.From {
			t.Errorf("%s is %+v, want %+v", key, v, want)
		}
	}
	if c.At("upstreams.files") != "upstreams/files.yaml" {
		t.Errorf("it is at %s", c.At("upstreams.files"))
	}
	with := p.mustLoad(t, plain)
	if with.Digest == none.Digest {
		t.Error("servers in files are not part of the digest")
	}
	p.servers(t, nil)
	written := p.mustLoad(t, plain+"upstreams: {files: {command: [/opt/files, $DIR/ws], read: [~/data]}, web: {url: 'https://web.example/mcp'}}\n")
	if written.Digest != with.Digest {
		t.Error("where a server is written makes another digest")
	}
}

// Each file that does not hold says so, with its line; beside it nothing else is wrong.
func TestServerFilesRefused(t *testing.T) {
	p := newPlace(t)
	const good = "command: [/opt/x]\n"
	for what, c := range map[string]struct {
		files map[string]string
		text  string
		want  string
	}{
		"nothing wrong":      {files: map[string]string{"a.yaml": good}},
		"unknown key":        {files: map[string]string{"a.yaml": good + "reed: [/x]\n"}, want: "upstreams/a.yaml:2: reed: unknown key; did you mean read?"},
		"relative path":      {files: map[string]string{"a.yaml": good + "read: [x]\n"}, want: `upstreams/a.yaml:2: read[0]: "x" is not an absolute path; begin it with / or ~/`},
		"relative directory": {files: map[string]string{"a.yaml": good + "dir: x\n"}, want: `upstreams/a.yaml:2: dir: "x" is not an absolute path; begin it with / or ~/`},
		"empty":              {files: map[string]string{"a.yaml": "# nothing\n"}, want: "upstreams/a.yaml: the file is empty; give a command or a url, or remove the file"},
		"neither":            {files: map[string]string{"a.yaml": "prefix: none\n"}, want: "upstreams/a.yaml: give either command, a program to run in a box, or url"},
		"both":               {files: map[string]string{"a.yaml": good + "url: https://a.example\n"}, want: "upstreams/a.yaml: give either command, a program to run in a box, or url"},
		"one unread":         {files: map[string]string{"a.yaml": "command: x\n"}, want: "upstreams/a.yaml:1: command: must be a list, not text"},
		"an address":         {files: map[string]string{"a.yaml": "url: http://a.example\n"}, want: `upstreams/a.yaml:1: url: "http://a.example" is not https; only an address of this machine (127.0.0.1, [::1], localhost) can do without`},
		"a box of none":      {files: map[string]string{"a.yaml": "url: https://a.example\nwrite: [/x]\n"}, want: "upstreams/a.yaml:2: write: is for a program in a box, and this server is reached by its url; remove it"},
		"writ's own":         {files: map[string]string{"a.yaml": good + "write: [$DIR/conf/upstreams]\n"}, want: "upstreams/a.yaml:2: write[0]: $DIR/conf/upstreams is writ's own, which no box reaches; name another directory"},
		"above writ's own":   {files: map[string]string{"a.yaml": good + "read: [$DIR]\n"}},
		"proof of a program": {files: map[string]string{"a.yaml": good + "auth: {type: bearer, secret: 'store:a'}\n"}, want: `upstreams/a.yaml:2: auth: is for a server that is reached by its url; a program gets credentials as variables: secret_env: {NAME: "store:NAME"}`},
		"variables of none":  {files: map[string]string{"a.yaml": "url: https://a.example\nsecret_env: {A: 'store:a'}\n"}, want: "upstreams/a.yaml:2: secret_env: is for a program in a box, and this server is reached by its url; remove it"},
		"said twice":         {files: map[string]string{"a.yaml": good + "env: {A: x}\nsecret_env: {A: 'store:a'}\n"}, want: "upstreams/a.yaml:3: secret_env.A: env says this variable, too; keep one"},
		"sent twice":         {files: map[string]string{"a.yaml": "url: https://a.example\nheaders: {authorization: x}\nauth: {type: bearer, secret: 'store:a'}\n"}, want: "upstreams/a.yaml:2: headers.authorization: auth sends this header; keep one"},
		"a secret in reach":  {files: map[string]string{"a.yaml": good + "secret_env: {A: 'file:$DIR/ws/key'}\n"}, text: "workspaces: {main: {path: $DIR/ws}}\n", want: "upstreams/a.yaml:2: secret_env.A: $DIR/ws/key lies in the workspace main, where agents write; move it"},
		"a time":             {files: map[string]string{"a.yaml": good + "call_timeout: 11m\n"}, want: "upstreams/a.yaml:2: call_timeout: must be over 0 and at most 10m"},
		"its name":           {files: map[string]string{"A.yaml": good}, want: "upstreams/A.yaml: use a-z, 0-9, - and single _ between them, at most 32, such as my_server"},
		"our name":           {files: map[string]string{"writ-x.yaml": good}, want: "upstreams/writ-x.yaml: the name is writ's own; choose another"},
		"twice":              {files: map[string]string{"a.yaml": good}, text: "upstreams: {a: {command: [/x]}}\n", want: "upstreams/a.yaml: the server a is in writ.yaml:2 too; keep one"},
		"open to others":     {files: map[string]string{"a.yaml": "mode 0622\n" + good}, want: "upstreams/a.yaml: others can write to the file (mode 0622); run: chmod go-w $DIR/conf/upstreams/a.yaml"},
		"another file":       {files: map[string]string{"a.yml": good}, want: "upstreams/a.yml is not a server's file, which is NAME.yaml; rename or remove it"},
		"a link outside":     {files: map[string]string{"a.yaml": "link ../writ.yaml"}, want: "upstreams/a.yaml: is a symlink that leads outside its directory or nowhere; put the file itself there"},
		"a link to itself":   {files: map[string]string{"a.yaml": "link a.yaml"}, want: "upstreams/a.yaml: is a symlink that leads outside its directory or nowhere; put the file itself there"},
		"a link inside":      {files: map[string]string{"a.yaml": "link b.yaml", "b.yaml": good}},
		"two of them":        {files: map[string]string{"a.yaml": "url: 1\n", "b.yaml": "command: []\n"}, want: "upstreams/a.yaml:1: url: must be text, not a number; quote it\nupstreams/b.yaml: give either command, a program to run in a box, or url"},
	} {
		t.Run(what, func(t *testing.T) {
			p.servers(t, c.files)
			_, err := p.load(t, "version: 1\n"+c.text, 0o600)
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), string(p), "$DIR")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	p.servers(t, nil)
	must(t, os.Chmod(filepath.Join(string(p), "conf/upstreams"), 0o770))
	if _, err := p.load(t, "version: 1\n", 0o600); err == nil || !strings.Contains(err.Error(), "others can write to") {
		t.Errorf("a directory that others write to: %v", err)
	}
}

// What is planned is checked as if it were written, and nothing is.
func TestServersPlanned(t *testing.T) {
	p := newPlace(t)
	p.servers(t, map[string]string{"a.yaml": "command: [/x]\n", "broken.yaml": "nonsense: 1\n"})
	load := func(planned ...ServerFile) (*Config, error) {
		must(t, os.WriteFile(p.config(), []byte("version: 1\n"), 0o600))
		return Load(p.config(), named(), planned...)
	}
	if _, err := load(); err == nil {
		t.Fatal("the control: what is broken holds")
	}
	c, err := load(ServerFile{Name: "broken"}, ServerFile{Name: "new", Text: []byte("url: https://new.example\n")})
	must(t, err)
	if got := sorted(c.File.Upstreams); !slices.Equal(got, []string{"a", "new"}) {
		t.Errorf("servers %v", got)
	}
	if _, err := os.Stat(ServerPath(p.config(), "new")); err == nil {
		t.Error("it was written")
	}
	if _, err := load(ServerFile{Name: "broken"}, ServerFile{Name: "new", Text: []byte("url: x\n")}); err == nil || !strings.HasPrefix(err.Error(), "upstreams/new.yaml:1: url: ") {
		t.Errorf("one that does not hold: %v", err)
	}
}

// The directory is writ's own: no box reaches it, and no workspace contains it.
func TestServersAreHidden(t *testing.T) {
	p := newPlace(t)
	c := p.mustLoad(t, "version: 1\n")
	if want := filepath.Join(string(p), "conf/upstreams"); !slices.Contains(c.Own(), want) {
		t.Errorf("%s is not hidden: %v", want, c.Own())
	}
	must(t, os.Symlink("../home", filepath.Join(string(p), "conf/upstreams")))
	_, err := p.load(t, "version: 1\nworkspaces: {main: {path: $DIR/home}}\n", 0o600)
	if err == nil || !strings.Contains(err.Error(), "the directory of servers") {
		t.Errorf("where agents write: %v", err)
	}
	c = p.mustLoad(t, "version: 1\n")
	if want := filepath.Join(string(p), "home"); !slices.Contains(c.Own(), want) {
		t.Errorf("where it leads is not hidden: %v", c.Own())
	}
}

// What is written reads as it was, every key of it.
func TestServerText(t *testing.T) {
	p := newPlace(t)
	odd := "a \"b\" \\ ${X} #: é 🦊 \t\n'{}[]&*!%@\u2028"
	u := Upstream{
		Command: []string{"/x", odd, "null", "7"}, Dir: "/d", Env: map[string]string{"K": odd, "no": "true"}, Read: []string{"/r"}, Write: []string{"/w"}, Hosts: []string{"a.example:443"},
		SecretEnv: map[string]secret.Ref{"T": {Backend: "store", Name: "t"}}, URL: "https://x.example", Headers: map[string]string{"X-A": "v: w"},
		Auth: Auth{Type: "headers", Secret: secret.Ref{Backend: "vault", Name: "a/b", Field: odd}, Header: odd, User: odd, TokenURL: odd, ClientID: odd, Scopes: []string{odd}, Headers: map[string]secret.Ref{"X-B": {Backend: "env", Name: "B"}}}, Prefix: "none", Enabled: []string{odd}, Disabled: []string{"y"},
		Cacheable: []string{"c"}, Relay: []Relay{"sampling"}, CallTimeout: Duration(90e9), ConnectTimeout: Duration(15e9), ReadAction: "web:read",
	}
	v := reflect.ValueOf(u)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if v.FieldByIndex(f.Index).IsZero() {
			t.Errorf("%s is not tried", f.Name)
		}
	}
	for _, part := range []Upstream{
		{Command: u.Command, Dir: u.Dir, Env: u.Env, Read: u.Read, Write: u.Write, Hosts: u.Hosts, Prefix: u.Prefix, Enabled: u.Enabled, Disabled: u.Disabled, Cacheable: u.Cacheable, Relay: u.Relay, CallTimeout: u.CallTimeout, ConnectTimeout: u.ConnectTimeout, ReadAction: u.ReadAction},
		{URL: u.URL, Headers: u.Headers},
	} {
		must(t, os.WriteFile(p.config(), []byte("version: 1\n"), 0o600))
		c, err := Load(p.config(), named(), ServerFile{Name: "x", Text: part.Text()})
		if err != nil {
			t.Fatalf("%v\n%s", err, part.Text())
		}
		if diff := cmp.Diff(part, c.File.Upstreams["x"]); diff != "" {
			t.Errorf("%s\n%s", diff, part.Text())
		}
	}
}

// What looks like a secret is not shown, and what does not is.
func TestServerShown(t *testing.T) {
	u := Upstream{
		Command: []string{"npx", "-y", "@scope/server", "--api-key", "abc", "--token=def", "--level=info", "TOKEN=x", "https://u:p@h.example/x?k=v", "sk-123", "--auth", "--verbose", "/data/keys"},
		Env:     map[string]string{"GITHUB_TOKEN": "x", "LOG_LEVEL": "debug", "THING": "0123456789abcdef0123456789abcdef", "HOME": "/home/somebody/directory/that/is/long"},
		Headers: map[string]string{"Authorization": "x", "X-Thing": "Bearer abc", "Accept-Language": "de"},
		URL:     "https://h.example/mcp?key=abc",
	}
	want := Upstream{
		Command: []string{"npx", "-y", "@scope/server", "--api-key", "…", "--token=…", "--level=info", "TOKEN=…", "…", "…", "--auth", "--verbose", "/data/keys"},
		Env:     map[string]string{"GITHUB_TOKEN": "…", "LOG_LEVEL": "debug", "THING": "…", "HOME": "/home/somebody/directory/that/is/long"},
		Headers: map[string]string{"Authorization": "…", "X-Thing": "…", "Accept-Language": "de"},
		URL:     "https://h.example/mcp?…",
	}
	if diff := cmp.Diff(want, u.Shown()); diff != "" {
		t.Error(diff)
	}
	if u.Env["GITHUB_TOKEN"] != "x" || u.Command[4] != "abc" {
		t.Error("showing it changed it")
	}
	if got := ShownURL("https://u:p@h.example/x?k=v"); got != "https://…@h.example/x?…" {
		t.Error(got)
	}
}

// A ~ that no shell resolved is the home all the same, in any argument, and elsewhere in
// one it is a character.
func TestServerAtHome(t *testing.T) {
	p := newPlace(t)
	t.Setenv("HOME", string(p))
	must(t, os.WriteFile(p.config(), []byte("version: 1\n"), 0o600))
	c, err := Load(p.config(), named(), ServerFile{Name: "x", Text: []byte("command: [~/bin/node, ~/notes/server.js, a~/b, \"~\", ~other/x]\n")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{string(p) + "/bin/node", string(p) + "/notes/server.js", "a~/b", "~", "~other/x"}
	if diff := cmp.Diff(want, c.File.Upstreams["x"].Command); diff != "" {
		t.Error(diff)
	}
}
