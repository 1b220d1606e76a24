package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
)

// try is a program that people use, as they use it, and what it must have done.
type try struct {
	name  string
	needs []string
	files map[string]string // in its directory, before
	env   []string          // of the person
	args  []string          // of 'writ run'
	code  int
	out   string            // a regular expression
	made  map[string]string // regular expressions of files, after
}

// sh is a command of the shell, without flags.
func sh(command string) []string { return []string{"--", "bash", "-ec", command} }

var tries = []try{
	{
		name: "python3", needs: []string{"python3"},
		files: map[string]string{"x.py": "import asyncio, multiprocessing as m, subprocess, threading, sqlite3\n" +
			"def square(n): return n * n\n" +
			"if __name__ == '__main__':\n" +
			"    with m.Pool(2) as p: print(p.map(square, [1, 2, 3]))\n" +
			"    t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n" +
			"    asyncio.run(asyncio.sleep(0)); print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')\n" +
			"    c = sqlite3.connect('x.db'); c.execute('create table t (a)'); c.commit(); open('done', 'w').write('done')\n"},
		args: []string{"--", "python3", "x.py"}, out: `^\[1, 4, 9\]\nthread\nchild\n$`, made: map[string]string{"done": `^done$`, "x.db": `^SQLite format 3`},
	}, {
		name: "gcc", needs: []string{"gcc"}, files: map[string]string{"x.c": everydayC},
		args: sh("gcc -O2 -Wall -Werror -pthread -o x x.c; ./x"), made: map[string]string{"x": `^\x7fELF`},
		out: `^threads ok\nshm_open ok\nsem_open ok\nepoll ok\ninotify ok\nmemfd ok\nsocketpair ok\nloopback ok\nSystem V ok\nunnamed file ok\nlink ok\n$`,
	}, {
		name: "make", needs: []string{"make", "gcc"},
		files: map[string]string{"Makefile": "all: a.out\na.out: a.o b.o\n\t$(CC) a.o b.o\n", "a.c": "int b(void); int main(void) { return b(); }\n", "b.c": "int b(void) { return 0; }\n"},
		args:  sh("make -sj4; ./a.out; make"), out: `^make: Nothing to be done for 'all'\.\n$`, made: map[string]string{"a.out": `^\x7fELF`},
	}, {
		name: "perl", needs: []string{"perl"}, args: []string{"--", "perl", "-MSocket", "-e", `socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die $!; if (!fork) { print A "x\n"; exit } close A; print <B>; open F, ">made"; print F "p" x 3`},
		out: `^x\n$`, made: map[string]string{"made": `^ppp$`},
	}, {
		name: "rg", needs: []string{"rg"}, files: map[string]string{"a/b": "hay\nneedle\n", "c": "hay\n"}, args: []string{"--", "rg", "-n", "needle"}, out: `^a/b:2:needle\n$`,
	}, {
		name: "a pseudo terminal", needs: []string{"python3"}, args: []string{"--", "python3", "-c", "import pty; pty.spawn(['sh', '-c', 'tty; test -t 1 && echo yes >made'])"},
		out: `^/dev/pts/0\r\n$`, made: map[string]string{"made": `^yes\n$`},
	}, {
		name: "sqlite3", needs: []string{"sqlite3"}, args: []string{"--", "sqlite3", "x.db", "pragma journal_mode=wal; create table t (a); insert into t values (20), (22); select sum(a) from t;"},
		out: `^wal\n42\n$`, made: map[string]string{"x.db": `^SQLite format 3`},
	}, {
		name: "tar", needs: []string{"tar", "gzip", "xz"}, files: map[string]string{"d/f": "packed\n"},
		args: sh("tar czf d.tgz d; tar cJf d.txz d; rm -r d; tar xzf d.tgz; tar tJf d.txz"), out: `^d/\nd/f\n$`, made: map[string]string{"d/f": `^packed\n$`, "d.txz": `^.7zXZ`},
	}, {
		name: "ssh-keygen", needs: []string{"ssh-keygen"}, args: []string{"--", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "k"}, out: `^$`, made: map[string]string{"k.pub": `^ssh-ed25519 `},
	}, {
		name: "jq, find and xargs", needs: []string{"jq", "find", "xargs"}, files: map[string]string{"a.json": `{"n": 40}`, "b.json": `{"n": 2}`},
		args: sh("find . -name '*.json' -print0 | xargs -0 -P2 -n1 jq .n | sort -n | paste -sd+ >sum"), out: `^$`, made: map[string]string{"sum": `^2\+40\n$`},
	}, {
		name: "a server on the loopback", needs: []string{"python3", "curl"}, files: map[string]string{"page": "served\n"},
		args: sh("python3 -c 'import http.server as h, sys; s = h.HTTPServer((\"127.0.0.1\", 0), h.SimpleHTTPRequestHandler); print(s.server_port, flush=True); s.serve_forever()' 2>/dev/null | { read -r port; curl -sS http://localhost:$port/page; kill 0; } || true"),
		code: 143, out: `^served\n$`,
	}, {
		name: "job control without a terminal", args: sh("set -m; sleep 100 & jobs; kill %1; wait %1 || echo $?"), out: `^\[1\]\+  Running +sleep 100 &\n143\n$`,
	}, {
		name: "a large file", args: sh("truncate -s 3G x; stat -c %s x; rm x"), out: `^3221225472\n$`,
	}, {
		name: "many processes", args: sh("for i in {1..400}; do sleep 100 & done; jobs -r | wc -l; kill $(jobs -p)"), out: `^400\n$`,
	}, {
		name: "fewer, where a policy says so", needs: []string{"perl"}, files: map[string]string{"p.yaml": "pids: 30\nmemory_mib: 4096\n"},
		args: []string{"--policy", "p.yaml", "--", "perl", "-e", `while (defined($p = fork)) { if (!$p) { sleep 100; exit } push @all, $p; last if @all > 100 } print scalar(@all), " $!\n"; kill 9, @all`},
		out:  `^(2\d|3[01]) Resource temporarily unavailable\n$`,
	}, {
		name: "nonsense in a policy", files: map[string]string{"p.yaml": "memory_mib: 1\npids: many\n"}, code: cli.ExitNotStarted,
		args: []string{"--policy", "p.yaml", "--", "true"}, out: `^$`,
	}, {
		name: "git", needs: []string{"git"}, files: map[string]string{"f": "one\n"},
		args: sh("git init -q -b main; git add f; git commit -qm one; git switch -qc side; echo two >>f; git commit -qam two; git switch -q main; git merge -q side; git clone -q . copy; git -C copy log --format='%an <%ae> %s'; git status --short"),
		out:  `^Ada <ada@example\.org> two\nAda <ada@example\.org> one\n\?\? copy/\n$`, made: map[string]string{"copy/f": `^one\ntwo\n$`, ".git/refs/heads/side": `^[0-9a-f]{40}\n$`},
	},
}

// Programs run as they are, in a directory of theirs, and have their effect.
func TestPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	w.write(filepath.Join(w.home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	for _, p := range tries {
		t.Run(p.name, func(t *testing.T) { w.tries(t, p) })
	}
}

func (w *world) tries(t *testing.T, p try) (dir string) {
	t.Helper()
	need.Programs(t, p.needs...)
	dir = w.directory(t, p.files)
	o := w.confinesIn(dir, p.env, p.args...)
	if o.code != p.code || !regexp.MustCompile(p.out).MatchString(o.out) {
		t.Errorf("exit %d\n%s%s", o.code, o.out, o.err)
	}
	for name, want := range p.made {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !regexp.MustCompile(want).Match(b) {
			t.Errorf("%s: %v %.100q", name, err, b)
		}
	}
	return dir
}

// directory makes one in the workspace, with files, that belongs to whom boxes run as.
func (w *world) directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp(w.ws, "p")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.ownAll(t, dir)
	return dir
}

func (w *world) ownAll(t *testing.T, dir string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { w.own(path); return err }); err != nil {
		t.Fatal(err)
	}
}

// confinesIn runs a command with 'writ run' in a directory.
func (w *world) confinesIn(dir string, env []string, args ...string) outcome {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), program, append([]string{"run"}, args...)...)
	cmd.Env, cmd.Dir = append(w.env(), env...), dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// A command whose output nobody reads any more ends, also one that does not mind, and
// leaves the workspace as it was.
func TestProgramsBeforeHead(t *testing.T) {
	t.Parallel()
	need.Programs(t, "yes")
	w := newWorld(t, standard, "")
	for command, code := range map[string]int{"exec yes": 141, "trap '' PIPE; while :; do echo y; done": 137} {
		dir := w.directory(t, nil)
		cmd := exec.CommandContext(t.Context(), program, "run", "--", "bash", "-c", command)
		cmd.Env, cmd.Dir = w.env(), dir
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 2)
		if _, err := io.ReadFull(out, line); err != nil || string(line) != "y\n" {
			t.Fatalf("%v %q", err, line)
		}
		if during, _ := os.ReadDir(dir); len(during) == 0 {
			t.Error("inconclusive: there is nothing to put in order")
		}
		out.Close()
		cmd.Wait()
		after, err := os.ReadDir(dir)
		if got := cmd.ProcessState.ExitCode(); got != code || err != nil || len(after) > 0 {
			t.Errorf("%s: exit %d, want %d; left: %v %v", command, got, code, after, err)
		}
	}
}

// A wheel is installed in an environment, whose programs are found when it is activated,
// and what is not at hand is missed at once.
func TestProgramsPip(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3")
	w := newWorld(t, standard, "")
	if out, err := exec.Command("/usr/bin/python3", "-c", "import pip, ensurepip").CombinedOutput(); err != nil {
		need.Lacking(t, "python3 has no pip or no ensurepip: %s", out)
	}
	const file = "greet-1.0-py3-none-any.whl"
	dir := w.tries(t, try{
		files: map[string]string{file: wheel(t)}, args: sh("/usr/bin/python3 -m venv env; env/bin/pip install -q ./" + file + "; env/bin/greet"), out: `^hello from a wheel\n$`,
		made: map[string]string{"env/bin/greet": `^#!`},
	})
	for name, tc := range map[string]struct {
		command, out string
		code         int
	}{
		"activated":   {"greet; command -v python3", `^hello from a wheel\n` + regexp.QuoteMeta(dir) + `/env/bin/python3\n$`, 0},
		"its own":     {"pip install -q --target lib ./" + file + "; ls lib", `(?m)^greet$`, 0},
		"in the home": {"/usr/bin/python3 -m pip install -q --user --break-system-packages --no-warn-script-location ./" + file + "; ~/.local/bin/greet", `^hello from a wheel\n$`, 0},
		"not there":   {"pip install -q greet-other", `^$`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.confinesIn(dir, []string{"PATH=" + dir + "/env/bin:" + os.Getenv("PATH")}, sh(tc.command)...)
			if o.code != tc.code || !regexp.MustCompile(tc.out).MatchString(o.out) || strings.Contains(o.err, "Retrying") || strings.Contains(o.err, "cache") {
				t.Errorf("%+v", o)
			}
		})
	}
}

// wheel is one of a few lines, made by hand.
func wheel(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	record := ""
	for _, f := range [][2]string{
		{"greet/__init__.py", "def main(): print('hello from a wheel')\n"},
		{"greet-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n"},
		{"greet-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"greet-1.0.dist-info/entry_points.txt", "[console_scripts]\ngreet = greet:main\n"},
		{"greet-1.0.dist-info/RECORD", ""},
	} {
		name, text := f[0], f[1]
		if text == "" {
			text = record + name + ",,\n"
		}
		sum := sha256.Sum256([]byte(text))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
		if e, err := z.Create(name); err != nil {
			t.Fatal(err)
		} else if _, err := e.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// 'npm ci' takes from the cache what a lock file names, without a network and without
// changing the cache; without the cache it says at once what it has not got.
func TestProgramsNpm(t *testing.T) {
	t.Parallel()
	need.Programs(t, "npm", "node")
	w := newWorld(t, standard, "")
	outside := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("npm", args...)
		cmd.Env, cmd.Dir = append(w.env(), "npm_config_update_notifier=false"), dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npm %v: %v\n%s", args, err, out)
		}
	}
	made := w.directory(t, map[string]string{"package.json": `{"name": "greet", "version": "1.0.0", "main": "x.js"}`, "x.js": "module.exports = 'hello from a cache'\n"})
	outside(made, "pack")
	tarball := filepath.Join(made, "greet-1.0.0.tgz")
	b, err := os.ReadFile(tarball)
	if err != nil {
		t.Fatal(err)
	}
	outside(made, "cache", "add", tarball)
	sum := sha512.Sum512(b)
	const root = `{"name": "app", "version": "1.0.0", "dependencies": {"greet": "1.0.0"}}`
	files := map[string]string{"package.json": root, "package-lock.json": `{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {"": ` + root + `,
		"node_modules/greet": {"version": "1.0.0", "resolved": "https://packages.example/greet-1.0.0.tgz", "integrity": "sha512-` + base64.StdEncoding.EncodeToString(sum[:]) + `"}}}`}
	before := tree(t, filepath.Join(w.home, ".npm"))
	dir := w.tries(t, try{files: files, args: sh("npm ci; node -p 'require(\"greet\")'"), out: `(?s)added 1 package.*\nhello from a cache\n$`,
		made: map[string]string{"node_modules/greet/x.js": `^module`}})
	if after := tree(t, filepath.Join(w.home, ".npm")); after != before {
		t.Errorf("the cache was changed:\n%s\n%s", before, after)
	}
	if o := w.confinesIn(dir, nil, "--no-caches", "--", "npm", "ci"); o.code == 0 || !strings.Contains(o.err, "ENOTCACHED") {
		t.Errorf("control: without the cache: %+v", o)
	}
}

// tree is every name below a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { out = append(out, path); return err }); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

// Of what package managers keep, packages can be read, and not the tokens beside them.
func TestProgramsCaches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	for name, text := range map[string]string{".cargo/registry/crate": "crate\n", ".cargo/credentials.toml": "CANARY\n", ".npm/_cacache/x": "package\n", ".npm/_logs/x": "CANARY\n"} {
		path := filepath.Join(w.home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		w.write(path, text)
	}
	dir := w.directory(t, nil)
	const look = `cat "$CARGO_HOME"/registry/crate "$npm_config_cache"/_cacache/x; ls -A "$CARGO_HOME" "$npm_config_cache" | sort | paste -sd,`
	if o := w.confinesIn(dir, nil, sh(look)...); o.code != 0 || !regexp.MustCompile(`^crate\npackage\n,\S*/\.cargo:,\S*/\.npm:,_cacache,registry\n$`).MatchString(o.out) {
		t.Errorf("%+v", o)
	}
	if o := w.confinesIn(dir, nil, "--read", filepath.Join(w.home, ".cargo"), "--", "cat", filepath.Join(w.home, ".cargo/credentials.toml")); o.out != "CANARY\n" {
		t.Errorf("control: what is named can be read: %+v", o)
	}
}

// Go builds, tests and vets packages of this repository.
func TestProgramsGo(t *testing.T) {
	t.Parallel()
	need.Programs(t, "go")
	modules, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"GOMODCACHE=" + strings.TrimSpace(string(modules))}
	w := newWorld(t, standard, "")
	dir := w.directory(t, map[string]string{"hello/main.go": "package main\n\nimport \"github.com/writ-run/writ/spell\"\n\nfunc main() { println(spell.Nearest(\"raed\", []string{\"read\", \"write\"})) }\n"})
	if err := os.CopyFS(filepath.Join(dir, "spell"), os.DirFS("../../spell")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Join(dir, name), string(b))
	}
	w.ownAll(t, dir)
	for _, tc := range []struct{ command, out, err string }{
		{"go build -o bin/ ./hello; bin/hello", `^$`, `read\n$`},
		{"go test ./spell", `^ok  \t\S+/spell\t[\d.]+s\n$`, `^$`},
		{"go test ./spell", `^ok  \t\S+/spell\t\(cached\)\n$`, `^$`}, // by the run before
		{"go vet ./spell ./hello", `^$`, `^$`},
	} {
		o := w.confinesIn(dir, env, sh(tc.command)...)
		if o.code != 0 || !regexp.MustCompile(tc.out).MatchString(o.out) || !regexp.MustCompile(tc.err).MatchString(o.err) {
			t.Errorf("%s: %+v", tc.command, o)
		}
	}
}

// With a network, package managers write what they fetch where the next command in the same
// directory finds it, and go takes what is in the cache of modules already.
func TestCachesWithNetwork(t *testing.T) {
	t.Parallel()
	need.Programs(t, "go", "npm")
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}}@{{.Version}} {{.Dir}}", "golang.org/x/sys").Output()
	module, at, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	cache, found := strings.CutSuffix(at, "/"+module)
	if err != nil || !found {
		t.Fatalf("%v %s", err, out)
	}
	w := newWorld(t, standard, "")
	dir := w.directory(t, map[string]string{"go.mod": "module a.test\n\ngo 1.26\n", "p/package.json": `{"name": "p", "version": "1.0.0"}`})
	env := []string{"GOMODCACHE=" + cache, "GOPROXY=off"}
	args := []string{"--allow-host", "nobody.invalid", "--", "sh", "-ec"}
	fetch := "cd p && npm pack --silent && cd .. && GONOSUMDB='*' go mod download -x -json " + module + " | grep -o '\"Zip\": \".*\"'"
	for range 2 {
		o := w.confinesIn(dir, env, append(args, fetch)...)
		if o.code != 0 || !strings.Contains(o.out, "p-1.0.0.tgz") || !strings.Contains(o.out, "/writ/build/") {
			t.Fatalf("%+v", o)
		}
		fetch = "test -e $GOMODCACHE/" + module + " && test -d $npm_config_cache && echo p-1.0.0.tgz /writ/build/"
	}
}

// A build cache that nobody used for long is removed when another one is made, and no other.
func TestBuildCachesUnused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	used, gone := w.directory(t, nil), w.directory(t, nil)
	all := filepath.Join(w.home, ".cache", "writ", "build")
	keep := func(dir string) string {
		t.Helper()
		if o := w.confinesIn(dir, nil, "--", "sh", "-c", `mkdir -p "$GOCACHE" && touch "$GOCACHE/kept" && echo "$GOCACHE"`); o.code != 0 {
			t.Fatalf("%+v", o)
		} else {
			return strings.TrimSpace(o.out)
		}
		return ""
	}
	stays, goes := keep(used), keep(gone)
	old := time.Now().Add(-40 * 24 * time.Hour)
	for _, at := range []string{stays, goes} {
		if err := os.Chtimes(filepath.Dir(at), old, old); err != nil || !strings.HasPrefix(at, all) {
			t.Fatal(at, err)
		}
	}
	keep(used) // and so it is used
	keep(w.directory(t, nil))
	if _, err := os.Stat(filepath.Join(stays, "kept")); err != nil {
		t.Errorf("a cache that is used was removed: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(goes)); err == nil {
		t.Error("a cache that nobody uses is left")
	}
}

// The whole program, built in a box, and the tests of what does no I/O (make soak).
func TestSoakBuildsItself(t *testing.T) {
	if os.Getenv("WRIT_SOAK") == "" {
		t.Skip("a build without a cache takes minutes; make soak does it")
	}
	need.Programs(t, "go", "tar")
	modules, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, standard, "")
	dir := w.directory(t, nil)
	copied := exec.Command("bash", "-ec", `tar -c --exclude=./.git --exclude=./bin . | tar -x -C "$0"`, dir)
	copied.Dir = "../.."
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.ownAll(t, dir)
	o := w.confinesIn(dir, []string{"GOMODCACHE=" + strings.TrimSpace(string(modules))},
		sh("CGO_ENABLED=0 go build -o writ ./cmd/writ; ./writ run --help | head -1; go test ./spell ./host ./action ./display ./access ./policy ./decide ./strict ./wire | grep -c ^ok")...)
	if o.code != 0 || o.out != "Run any command in a sandbox, without a daemon. It can read the system and the\n9\n" {
		t.Errorf("%+v", o)
	}
}

// Programs that take the whole screen do so in a shell, one after the other.
func TestProgramsFullScreen(t *testing.T) {
	t.Parallel()
	need.Programs(t, "vim", "less", "top")
	w := newWorld(t, standard, "")
	w.write(filepath.Join(w.ws, "long.txt"), strings.Repeat("line\n", 200)+"the last line\n")
	tm := newTerminal(t, 90, 30)
	cmd := w.onIn(tm, "shell")
	prompts := func() int { return strings.Count(tm.raw(), "ready> ") }
	tm.types("PS1='rea''dy> '\r") // what is typed is shown, too
	tm.waits("has no prompt", func() bool { return prompts() == 1 })
	for _, tc := range []struct {
		run   string
		steps [][2]string // what is shown, and what is typed then
	}{
		{"less long.txt", [][2]string{{"\x1b[7mlong.txt", "G"}, {"the last line", "q"}}},
		{"vim -u NONE -n note.txt", [][2]string{{`"note.txt" [New`, "ihello from vim\x1b:wq\r"}}},
		{"top", [][2]string{{"%CPU", "q"}}},
	} {
		before := prompts()
		tm.types(tc.run + "\r")
		for _, s := range tc.steps {
			tm.waits(tc.run+" does not show "+s[0], func() bool { return strings.Contains(tm.raw(), s[0]) })
			tm.types(s[1])
		}
		tm.waits(tc.run+" does not end", func() bool { return prompts() > before })
	}
	if got := strings.Count(tm.raw(), "\x1b[?1049h"); got < 2 {
		t.Errorf("%d programs took the screen", got)
	}
	tm.types("exit 3\r")
	if code := exit(t, cmd); code != 3 || tm.modes() != tm.before {
		t.Errorf("exit %d", code)
	}
	if b, _ := os.ReadFile(filepath.Join(w.ws, "note.txt")); string(b) != "hello from vim\n" {
		t.Errorf("vim wrote %q", b)
	}
}

// everydayC uses what programs of every day use of the system.
const everydayC = `#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

static void say(const char *what, int ok) { printf("%s %s\n", what, ok ? "ok" : strerror(errno)); }
static void *add(void *n) { __sync_fetch_and_add((int *)n, 1); return n; }

int main(void) {
	int n = 0;
	pthread_t t[16];
	for (int i = 0; i < 16; i++) pthread_create(&t[i], 0, add, &n);
	for (int i = 0; i < 16; i++) pthread_join(t[i], 0);
	say("threads", n == 16);

	int fd = shm_open("/shared", O_CREAT | O_RDWR, 0600);
	say("shm_open", fd >= 0 && !ftruncate(fd, 4096) && mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
	sem_t *s = sem_open("/counted", O_CREAT, 0600, 1);
	say("sem_open", s != SEM_FAILED && !sem_wait(s) && !sem_post(s));

	struct epoll_event e = {.events = EPOLLIN};
	unsigned long one = 1;
	int ep = epoll_create1(0), ev = eventfd(0, 0);
	say("epoll", !epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e) && write(ev, &one, 8) == 8 && epoll_wait(ep, &e, 1, 1000) == 1);
	char buf[4096];
	int in = inotify_init1(0), seen = inotify_add_watch(in, ".", IN_CREATE);
	close(open("seen", O_CREAT | O_WRONLY, 0600));
	say("inotify", seen >= 0 && read(in, buf, sizeof buf) > 0);
	fd = memfd_create("memory", 0);
	say("memfd", fd >= 0 && write(fd, "x", 1) == 1);

	int pair[2];
	say("socketpair", !socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && write(pair[0], "x", 1) == 1 && read(pair[1], buf, 1) == 1);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
	say("loopback", !bind(l, (void *)&a, size) && !listen(l, 1) && !getsockname(l, (void *)&a, &size) && !connect(c, (void *)&a, size) && accept(l, 0, 0) >= 0);
	int id = shmget(IPC_PRIVATE, 4096, 0600);
	say("System V", id >= 0 && shmat(id, 0, 0) != (void *)-1);
	say("unnamed file", open(".", O_TMPFILE | O_RDWR, 0600) >= 0);
	say("link", !link("seen", "linked") && !symlink("seen", "symlinked"));
	return 0;
}
`
