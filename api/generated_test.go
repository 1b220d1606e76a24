package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
)

// program is the built binary as somebody else's program meets it: an address and a
// token.
type program struct {
	t    *testing.T
	home string
	url  string
	env  []string
}

const programConfig = `version: 1
listen: 127.0.0.1:0
store: {path: %[1]s/state}
workspaces: {main: {path: %[1]s/ws}}
agents:
  coder: {workspace: main, person: alice, level: standard, overrides: {requires_approval: ["code:delete"]}}
`

func newProgram(t *testing.T) *program {
	t.Helper()
	home, err := os.MkdirTemp("", "writ-run-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(home) })
	p := &program{t: t, home: home}
	must(t, os.Mkdir(filepath.Join(home, "ws"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, "writ.yaml"), fmt.Appendf(nil, programConfig, home), 0o600))
	p.run(".", "go", "build", "-o", home, "../cmd/writ", "../cmd/writd")
	p.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "WRIT_CONFIG=" + filepath.Join(home, "writ.yaml")}
	init := exec.Command(filepath.Join(home, "writ"), "init", "--as", "alice", "--passphrase-stdin")
	init.Env, init.Stdin = p.env, strings.NewReader(passphrase+"\n")
	out, err := init.CombinedOutput()
	_, rest, ok := strings.Cut(string(out), "WRIT_TOKEN=")
	if err != nil || !ok {
		t.Fatalf("init: %v\n%s", err, out)
	}
	token, _, _ := strings.Cut(rest, "\n")
	p.env = append(p.env, "WRIT_TOKEN="+token)
	p.serve()
	return p
}

func (p *program) serve() {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(p.home, "writ"), "serve")
	cmd.Env, cmd.Stderr = p.env, os.Stderr
	out, err := cmd.StdoutPipe()
	must(p.t, err)
	must(p.t, cmd.Start())
	p.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	banner := make([]byte, 4096)
	n, err := io.ReadAtLeast(out, banner, 60)
	must(p.t, err)
	_, rest, _ := strings.Cut(string(banner[:n]), "serves agents on ")
	p.url, _, _ = strings.Cut(rest, "\n")
	p.env = append(p.env, "WRIT_URL="+p.url)
	go io.Copy(io.Discard, out)
}

// run runs a command and demands that it succeeds.
func (p *program) run(dir string, argv ...string) string {
	p.t.Helper()
	out, err := p.try(dir, argv...)
	if err != nil {
		p.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return out
}

func (p *program) try(dir string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), p.env...)
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	err := cmd.Run()
	return all.String(), err
}

func (p *program) token() string {
	_, token, _ := strings.Cut(strings.Join(p.env, "\n"), "WRIT_TOKEN=")
	token, _, _ = strings.Cut(token, "\n")
	return token
}

// The document of the built binary is one that a generator of somebody else's takes,
// and the client it makes works.
func TestGeneratedClient(t *testing.T) {
	need.Programs(t, "go", "node", "npm")
	p := newProgram(t)
	dir := filepath.Join(p.home, "generated")
	must(t, os.CopyFS(dir, os.DirFS("testdata/generated")))
	if out, err := p.try(dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		need.Lacking(t, "npm cannot install the generator: %s", out)
	}
	p.run(dir, "curl", "--silent", "--show-error", "--fail", "-o", "openapi.json", p.url+"/v1/openapi.json")
	p.run(dir, "node", "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "schema.d.ts")
	p.run(dir, "node", "node_modules/typescript/bin/tsc", "-p", ".")
	got := p.run(dir, "node", "out/drive.js", p.url, p.token())
	want := `health "ok"
session "coder" "generated"
call "created hello.txt (2 bytes)" false
denied 403 "denied" "urn:writ:problem:denied" true
asked 202 "approval_pending" true true true
approval "pending" 20 true true
invocation "pending" "pending" false
key true "created twice.txt (4 bytes)"
cancel "cancelled"
batch false "denied" false
tools true true true
delegation "coder" "ended"
end "ended"
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Control: what the document does not have does not compile.
	drive, err := os.ReadFile(filepath.Join(dir, "drive.ts"))
	must(t, err)
	first := bytes.Count(drive, []byte("\n")) + 1
	wrong := []string{`await writ.GET("/v1/ledger");`, `await writ.POST("/v1/calls", { body: { args: {} } });`, `await writ.POST("/v1/calls", { body: { tool: 7 } });`}
	must(t, os.WriteFile(filepath.Join(dir, "drive.ts"), append(drive, strings.Join(wrong, "\n")...), 0o600))
	out, err := p.try(dir, "node", "node_modules/typescript/bin/tsc", "-p", ".", "--noEmit")
	for i, line := range wrong {
		if err == nil || !strings.Contains(out, fmt.Sprintf("drive.ts(%d,", first+i)) {
			t.Errorf("%s compiles: %s", line, out)
		}
	}
}

// The same with curl, as a person tries it.
func TestCurl(t *testing.T) {
	need.Programs(t, "go", "curl", "sh")
	p := newProgram(t)
	script, err := filepath.Abs("testdata/curl.sh")
	must(t, err)
	got := p.run(p.home, "sh", "-eu", script)
	want, err := os.ReadFile("testdata/curl.txt")
	must(t, err)
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
