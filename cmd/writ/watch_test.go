package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-run/writ/client"
)

// terminal is a pseudo-terminal.
type terminal struct {
	t             testing.TB
	master, slave *os.File
	before        unix.Termios

	mu  sync.Mutex
	out bytes.Buffer // all that was written on it
}

func newTerminal(t testing.TB, width, height int) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	tm := &terminal{t: t, master: master, slave: slave}
	tm.resize(width, height)
	tm.before = tm.modes()
	go func() { // until it is closed
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			tm.mu.Lock()
			tm.out.Write(b[:n])
			tm.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { slave.Close(); master.Close() })
	return tm
}

func (tm *terminal) resize(width, height int) {
	tm.t.Helper()
	if err := unix.IoctlSetWinsize(int(tm.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}); err != nil {
		tm.t.Fatal(err)
	}
}

func (tm *terminal) modes() unix.Termios {
	tm.t.Helper()
	m, err := unix.IoctlGetTermios(int(tm.slave.Fd()), unix.TCGETS)
	if err != nil {
		tm.t.Fatal(err)
	}
	return *m
}

func (tm *terminal) raw() string {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.out.String()
}

// What the live screen writes to a terminal.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
)

var escapes = regexp.MustCompile(`\x1b\[(\?1049[hl]|\?25[hl]|H|K|J|[0-9]+m)`)

// frame is what stands on the screen: each drawing begins at its top.
func (tm *terminal) frame() string {
	raw := tm.raw()
	return escapes.ReplaceAllString(raw[strings.LastIndex(raw, toTop)+1:], "")
}

func (tm *terminal) types(keys string) {
	tm.t.Helper()
	if _, err := tm.master.WriteString(keys); err != nil {
		tm.t.Fatal(err)
	}
}

// sees waits until a text stands on the screen.
func (tm *terminal) sees(text string) {
	tm.t.Helper()
	tm.waits("does not show "+text, func() bool { return strings.Contains(tm.frame(), text) })
}

func (tm *terminal) waits(what string, ok func() bool) {
	tm.t.Helper()
	for range 750 {
		if ok() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	tm.t.Fatalf("the terminal %s:\n%s", what, tm.frame())
}

// answers types a line to a prompt that comes after what was written before.
func (tm *terminal) answers(from int, prompt, line string) {
	tm.t.Helper()
	tm.waits("does not ask "+prompt, func() bool { return strings.Contains(tm.raw()[from:], prompt) })
	tm.types(line + "\n")
}

// on starts the program on a terminal.
func (w *world) on(tm *terminal, env []string, args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = append(w.env(), env...), w.home
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tm.slave, tm.slave, tm.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// exit waits for a program and gives its exit code.
func exit(t testing.TB, cmd *exec.Cmd) int {
	t.Helper()
	late := time.AfterFunc(20*time.Second, func() { t.Error("it does not end"); cmd.Process.Kill() })
	defer late.Stop()
	cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// watches starts 'approval watch' and waits for its first list.
func (w *world) watches(env []string, args ...string) (*terminal, *exec.Cmd) {
	w.t.Helper()
	tm := newTerminal(w.t, 100, 20)
	cmd := w.on(tm, env, append([]string{"approval", "watch"}, args...)...)
	tm.waits("lists nothing", func() bool { return strings.Contains(tm.frame(), " wait") && !strings.Contains(tm.frame(), "waiting") })
	return tm, cmd
}

// reads opens the selected request and turns its pages to the last.
func (tm *terminal) reads() {
	tm.t.Helper()
	tm.types("\r")
	tm.sees("page 1 of ")
	for n := 2; !strings.Contains(tm.frame(), "a approve"); n++ {
		tm.types(" ")
		tm.sees(fmt.Sprintf("page %d of ", n))
	}
}

func gone(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return os.IsNotExist(err) }
}

func (w *world) state1(id string) client.Approval {
	w.t.Helper()
	var r client.Approval
	w.decode(&r, "", "approval", "show", id)
	return r
}

// Every answer by its key, with what it really does; none before the request was read
// to its last page.
func TestWatchAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	tm, cmd := w.watches([]string{"EDITOR=sed -i s/third/other/"})
	tm.sees("nothing waits")
	if strings.Contains(tm.raw(), "\a") {
		t.Error("it rings for nothing")
	}

	first := w.asks("first")
	tm.sees("1 request waits")
	tm.sees(`delete_file        `)
	if !strings.Contains(tm.raw(), "\a") {
		t.Error("no bell")
	}
	tm.types("a")
	tm.sees("read it to its last page first, then answer")
	tm.sees("page 1 of ")
	tm.types("a")
	tm.types("q")
	tm.sees("? help  q quit")
	if strings.Contains(tm.raw(), "Passphrase") || w.state1(first).State != "pending" {
		t.Fatal("it is decided before it was read")
	}
	tm.reads()
	from := len(tm.raw())
	tm.types("a")
	tm.answers(from, "Passphrase: ", "wrong "+pass)
	tm.sees("wrong name or passphrase")
	if w.state1(first).State != "pending" {
		t.Error("approved with a wrong passphrase")
	}
	from = len(tm.raw())
	tm.types("a")
	tm.answers(from, "Passphrase: ", pass)
	tm.sees(first + " approved by alice")
	tm.waits("runs nothing", gone(filepath.Join(w.ws, "first")))
	tm.sees("nothing waits")

	second := w.asks("second")
	tm.sees("1 request waits")
	tm.reads()
	from = len(tm.raw())
	tm.types("r")
	tm.answers(from, "Reason, which the agent is told (empty: none): ", "not today")
	tm.answers(from, "Passphrase: ", pass)
	tm.sees(second + " rejected by alice")
	if r := w.state1(second); r.State != "rejected" || r.Reason != "not today" || gone(filepath.Join(w.ws, "second"))() {
		t.Errorf("%+v", r)
	}

	w.write(filepath.Join(w.ws, "other"), "x")
	w.asks("third")
	tm.sees("1 request waits")
	tm.reads()
	from = len(tm.raw())
	tm.types("e")
	for n := 1; !strings.Contains(tm.raw()[from:], "Passphrase: "); n++ { // what it would do is shown page by page
		tm.waits("shows no page of the edit", func() bool {
			raw := tm.raw()[from:]
			return strings.Contains(raw, fmt.Sprintf("-- page %d of ", n)) || strings.Contains(raw, "Passphrase: ")
		})
		if !strings.Contains(tm.raw()[from:], "Passphrase: ") {
			tm.types(" ")
		}
	}
	tm.answers(from, "Passphrase: ", pass)
	tm.sees("e approved by alice")
	tm.waits("runs nothing", gone(filepath.Join(w.ws, "other")))
	if gone(filepath.Join(w.ws, "third"))() {
		t.Error("it ran as it was before the edit")
	}

	fourth := w.asks("fourth")
	tm.sees("1 request waits")
	tm.reads()
	from = len(tm.raw())
	tm.types("g")
	tm.answers(from, "How many later calls [20]: ", "3")
	tm.answers(from, "For how long [1h]: ", "")
	tm.answers(from, "Passphrase: ", pass)
	tm.sees(fourth + " approved by alice")
	tm.waits("runs nothing", gone(filepath.Join(w.ws, "fourth")))
	waitFor(t, func() bool { return w.state1(fourth).State == "used" })
	w.granted(fourth, 0)
	w.write(filepath.Join(w.ws, "fourth"), "again")
	w.ok(w.call("delete_file", map[string]any{"path": "fourth"})) // takes up what came of the first
	w.ok(w.call("delete_file", map[string]any{"path": "fourth"}))
	w.granted(fourth, 1)

	fifth := w.asks("fifth")
	tm.sees("1 request waits")
	tm.types("c")
	tm.sees("cancel " + fifth + "? y cancels it")
	tm.types("n")
	tm.sees("not cancelled")
	tm.types("c")
	tm.sees("cancel " + fifth + "? y cancels it")
	tm.types("y")
	tm.sees(fifth + " cancelled")
	if r := w.state1(fifth); r.State != "void" {
		t.Errorf("%+v", r)
	}
	tm.types("?")
	tm.sees("any key goes back")
	tm.types("xq")
	if code := exit(t, cmd); code != 0 {
		t.Errorf("exit %d", code)
	}
	w.verifies()
	w.end()
	w.holdsNone(pass)
}

// granted demands one grant of three uses from a request, used so often.
func (w *world) granted(from string, uses int) {
	w.t.Helper()
	var all []client.Grant
	w.decode(&all, "", "approval", "grants", "--all")
	if len(all) != 1 || all[0].From != from || all[0].Max != 3 || all[0].Uses != uses || all[0].State != "live" {
		w.t.Errorf("want one grant used %d times: %+v", uses, all)
	}
}

// Two requests, the newest last; arrows select, and another size begins the pages anew.
func TestWatchSelects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	tm, _ := w.watches(nil, "--quiet", "--as", "alice")
	one := w.asks("one")
	w.write(filepath.Join(w.ws, "two"), "x")
	w.call("delete_file", map[string]any{"path": "two"})
	tm.sees("2 requests wait")
	for _, c := range []struct{ keys, path string }{{"", "one"}, {"\x1b[B", "two"}, {"\x1b[B", "two"}, {"\x1bOA", "one"}, {"j", "two"}, {"k", "one"}} {
		tm.types(c.keys)
		tm.waits("does not select "+c.path, func() bool {
			return regexp.MustCompile(`(?m)^> .*"` + c.path + `"`).MatchString(strings.ReplaceAll(tm.frame(), "\r\n", "\n"))
		})
	}
	if f := tm.frame(); strings.Index(f, `"one"`) > strings.Index(f, `"two"`) {
		t.Errorf("the newest is not last:\n%s", f)
	}
	if strings.Contains(tm.raw(), "\a") {
		t.Error("it rings with --quiet")
	}
	tm.resize(100, 12)
	tm.types("\r")
	tm.sees("page 1 of 4")
	tm.types(" ")
	tm.sees("page 2 of 4")
	tm.resize(60, 14)
	tm.sees("page 1 of ")
	tm.resize(20, 5)
	tm.sees("too small")
	tm.types("a") // nothing of it is to be seen
	tm.sees("q quits")
	tm.resize(100, 60)
	tm.sees("digest ")
	if strings.Contains(tm.raw(), "Passphrase") || w.state1(one).State != "pending" {
		t.Error("it is decided without having been shown")
	}
}

// However it ends, the terminal is as it was.
func TestWatchLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	for name, c := range map[string]struct {
		end  func(*terminal, *exec.Cmd)
		code int
	}{
		"q":       {func(tm *terminal, _ *exec.Cmd) { tm.types("q") }, 0},
		"Ctrl-C":  {func(tm *terminal, _ *exec.Cmd) { tm.types("\x03") }, 0},
		"SIGTERM": {func(_ *terminal, cmd *exec.Cmd) { cmd.Process.Signal(syscall.SIGTERM) }, 0},
		"Ctrl-C at the reason": {func(tm *terminal, _ *exec.Cmd) {
			tm.reads()
			from := len(tm.raw())
			tm.types("r")
			tm.waits("does not ask", func() bool { return strings.Contains(tm.raw()[from:], "Reason, ") })
			tm.types("\x03")
		}, 0},
		"Ctrl-C at the passphrase": {func(tm *terminal, _ *exec.Cmd) {
			tm.reads()
			from := len(tm.raw())
			tm.types("a")
			tm.waits("does not ask", func() bool {
				return strings.Contains(tm.raw()[from:], "Passphrase: ") && tm.modes().Lflag&unix.ECHO == 0
			})
			tm.types("\x03")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if len(w.waitingIDs()) == 0 {
				w.asks("x")
			}
			tm, cmd := w.watches(nil)
			tm.sees("1 request waits")
			if tm.modes() == tm.before {
				t.Error("the control: the terminal is not raw")
			}
			c.end(tm, cmd)
			if code := exit(t, cmd); code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			tm.restored()
		})
	}
}

func (w *world) waitingIDs() []string {
	w.t.Helper()
	var rs []client.Approval
	w.decode(&rs, "", "approval", "list")
	var ids []string
	for _, r := range rs {
		ids = append(ids, r.ID)
	}
	return ids
}

// restored demands that the terminal has its modes, its screen and its cursor again.
func (tm *terminal) restored() {
	tm.t.Helper()
	if tm.modes() != tm.before {
		tm.t.Errorf("the modes are %+v, they were %+v", tm.modes(), tm.before)
	}
	tm.waits("has no cursor, or another screen", func() bool {
		raw := tm.raw()
		return strings.LastIndex(raw, enterScreen) >= 0 && strings.LastIndex(raw, leaveScreen) > strings.LastIndex(raw, enterScreen)
	})
}

// What an agent writes stays text: nothing of it moves the cursor, hides or reorders.
func TestWatchHostileArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "role: developer\nlevel: standard\noverrides: {requires_approval: [\"code:*\"]}\n", "").init()
	tm, cmd := w.watches([]string{"NO_COLOR=1"})
	const hostile = "\x1b]0;title\x07\x1b[2J\x1b[1;1Hforged\r\n\x1b[31mred \u202egnp.exe\u2066 \u009b5m\u200b\x08\x7f\nwrit approval watch: nothing waits"
	if o := w.call("write_file", map[string]any{"path": "x", "content": hostile}); o.code != 4 {
		t.Fatalf("it does not ask: %+v", o)
	}
	tm.sees("1 request waits")
	tm.sees(`{"content":"\u001b]0;`)
	tm.reads()
	tm.types("q")
	tm.sees("? help  q quit")
	tm.types("q")
	exit(t, cmd)
	raw := tm.raw()
	if left := escapes.ReplaceAllString(strings.ReplaceAll(raw, "\a", ""), ""); strings.Contains(left, "\x1b") {
		t.Errorf("an escape of the argument: %q", left)
	}
	for _, bad := range []string{"\x1b]0", "\x1b[2J", "\x1b[31m", "\u202e", "\u2066", "\u009b", "\u200b", "\x08", "\x7f", "forged\r\n\x1b"} {
		if strings.Contains(raw, bad) {
			t.Errorf("the terminal gets %q", bad)
		}
	}
	for _, shown := range []string{"<U+001B>]0;title", "<U+202E>", "<U+2066>", "<U+009B>", "<U+200B>", "forged<U+000D>"} {
		if !strings.Contains(raw, shown) {
			t.Errorf("%s is not spelled out", shown)
		}
	}
	if strings.Count(raw, "\a") != 1 {
		t.Errorf("%d bells", strings.Count(raw, "\a"))
	}
}

// watchedLines runs 'approval watch --json' and collects its lines.
type watchedLines struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *watchedLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

// events is "event path" of each line, in order.
func (l *watchedLines) events(t testing.TB) []string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	paths := map[string]string{}
	for line := range strings.Lines(l.out.String()) {
		var v struct {
			client.InvocationEvent
			Request *client.Approval
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if r := v.Request; r != nil && r.Shown != nil {
			paths[v.Invocation] = string(r.Shown.Args)
		}
		out = append(out, strings.TrimPrefix(v.Name, "tool_invocation_")+" "+paths[v.Invocation])
	}
	return out
}

// The daemon is killed and comes back: nothing is lost and nothing comes twice, on the
// screen and in lines.
func TestWatchAcrossRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	_, kill := w.serve()
	before := w.asks("before")
	lines := &watchedLines{cmd: exec.Command(program, "approval", "watch")}
	lines.cmd.Env, lines.cmd.Dir, lines.cmd.Stdout = w.env(), w.home, lines
	if err := lines.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lines.cmd.Process.Kill(); lines.cmd.Wait() })
	tm, cmd := w.watches(nil)
	tm.sees("1 request waits")
	waitFor(t, func() bool { return len(lines.events(t)) == 1 })
	kill()
	tm.sees("the daemon is down; waiting for it")
	_, kill = w.serve()
	tm.sees("1 request waits")
	w.must(pass+"\n", "approval", "reject", before, "--passphrase-stdin")
	after := w.asks("after")
	tm.sees(`"after"`)
	kill()
	tm.sees("the daemon is down; waiting for it")
	w.serve()
	w.must("", "invocation", "cancel", after)
	w.asks("last")
	tm.sees(`"last"`)
	want := []string{`approval_required {"path":"before"}`, `rejected {"path":"before"}`, `approval_required {"path":"after"}`,
		`cancelled {"path":"after"}`, `approval_required {"path":"last"}`}
	waitFor(t, func() bool { return len(lines.events(t)) >= len(want) })
	if got := lines.events(t); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if f := tm.frame(); strings.Contains(f, `"before"`) || strings.Contains(f, `"after"`) || strings.Count(f, `"last"`) != 1 {
		t.Errorf("the screen:\n%s", f)
	}
	lines.cmd.Process.Signal(os.Interrupt)
	if code := exit(t, lines.cmd); code != 0 {
		t.Errorf("interrupted: exit %d", code)
	}
	tm.types("q")
	if code := exit(t, cmd); code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := lines.events(t); len(got) != len(want) {
		t.Errorf("in the end %q", got)
	}
}
