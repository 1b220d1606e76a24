//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-run/writ/need"
)

// confines runs a command with 'writ run' in the workspace of a world that has no daemon.
func (w *world) confines(stdin string, args ...string) outcome {
	w.t.Helper()
	cmd := exec.Command(program, append([]string{"run"}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stdin = append(w.env(), "MY_API_KEY=secret", "FANCY=yes"), w.ws, strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func TestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	if err := os.WriteFile(filepath.Join(w.ws, "inside"), []byte("here\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(w.home, "outside")
	if err := os.WriteFile(out, []byte("CANARY\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, ".gitconfig"), []byte("[core]\n\tpager = touch /x\n[User]\n\tname = \"Ada L\\\"\n\temail=ada@example.org\n[alias]\n\tx = !touch /y\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	extra := filepath.Join(w.home, "extra")
	if err := os.Mkdir(extra, 0o755); err != nil {
		t.Fatal(err)
	}
	w.own(extra)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	lost, from := filepath.Join(w.home, "lost.yaml"), filepath.Join(w.home, "from.yaml")
	if err := errors.Join(os.WriteFile(lost, []byte("read: [outside, nowhere]\nwrite: ['']\nprograms: [nosuchprogram]\n"), 0o644),
		os.WriteFile(from, []byte("programs: [progs/one]\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	one := filepath.Join(w.home, "progs", "one")
	if out, err := exec.Command("install", "-D", "/bin/echo", one).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	policy := filepath.Join(w.home, "p.yaml")
	if err := os.WriteFile(policy, []byte("read: [outside]\nenv: [A=1]\ntimeout: 1s\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(w.home, "small.yaml")
	if err := os.WriteFile(small, []byte("memory_mib: 100\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	none, pipe, link := filepath.Join(w.home, "none.yaml"), filepath.Join(w.home, "pipe"), filepath.Join(w.home, "link")
	if err := errors.Join(os.WriteFile(none, []byte("pids: 0\nmemory_mib: 0\ntimeout: 8d\n"), 0o644), unix.Mkfifo(pipe, 0o600), os.Symlink(out, link)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.state(), 0o700); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("0123456789abcdef", 1<<17)
	for _, tc := range []struct {
		name, stdin string
		args        []string
		code        int
		out, err    string // regular expressions
	}{
		{"changes the directory", "", []string{"--", "sh", "-c", "cat inside; echo made >made; cat made"}, 0, `^here\nmade\n$`, `^$`},
		{"reads nothing else", "", []string{"--", "cat", out}, 1, `^$`, `No such file`},
		{"unless it is named", "", []string{"--read", out, "--", "cat", out}, 0, `^CANARY\n$`, `^$`},
		{"which cannot be changed", "", []string{"--read", out, "--", "sh", "-c", "echo x >>" + out}, 2, `^$`, `Read-only file system|Permission denied`},
		{"writes what is named", "", []string{"--write", extra, "--", "touch", filepath.Join(extra, "made")}, 0, `^$`, `^$`},
		{"the system is read-only", "", []string{"--", "touch", "/etc/x", "/usr/x"}, 1, `^$`, `Read-only file system`},
		{"no network", "", []string{"--", "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", port)}, 1, `^$`, `refused|unreachable|denied`},
		{"never root", "", []string{"--", "sh", "-c", "id -u | grep -v '^0$'"}, 0, `^\d+\n$`, `^$`},
		{"a home of its own", "", []string{"--", "sh", "-c", "echo $HOME; ls -A ~; cat ~/.gitconfig"}, 0, `^/tmp/home\n\.gitconfig\n\[user\]\n\tname = "Ada L"\n\temail = "ada@example\.org"\n$`, `^$`},
		{"no secrets", "", []string{"--", "env"}, 0, `^[^$]*$`, `^$`},
		{"a variable that is named", "", []string{"--env", "FANCY", "--env", "B=2", "--", "sh", "-c", "echo $FANCY $B"}, 0, `^yes 2\n$`, `^$`},
		{"a variable that is not there", "", []string{"--env", "NOTHING", "--", "true"}, 2, `^$`, `--env NOTHING: there is no such variable in your environment; write NOTHING=VALUE`},
		{"input and output", big, []string{"--", "cat"}, 0, `^(0123456789abcdef)+$`, `^$`},
		{"an exit code", "", []string{"--", "sh", "-c", "exit 7"}, 7, `^$`, `^$`},
		{"a signal", "", []string{"--", "sh", "-c", "kill -9 $$"}, 137, `^$`, `^$`},
		{"a time limit", "", []string{"--timeout", "1s", "--", "sleep", "60"}, 124, `^$`, `ended after 1(\.\d)?s: the time limit`},
		{"a policy", "", []string{"--policy", policy, "--", "sh", "-c", "cat " + out + "; echo $A; sleep 60"}, 124, `^CANARY\n1\n$`, `the time limit`},
		{"listed programs", "", []string{"--program", "cat", "--", "bash", "-c", "cat inside; ls"}, 126, `^here\n$`, `ls: (Permission denied|No such file|command not found)`},
		{"a program that is not there", "", []string{"--", "nonsense"}, 125, `^$`, `writ run: the program "nonsense" was not found`},
		{"nothing to run", "", []string{"--"}, 2, `^$`, `expected a command: writ run -- COMMAND`},
		{"a directory that is not there", "", []string{"--read", "/nowhere", "--", "true"}, 125, `^$`, `/nowhere: there is no such file or directory; make it first`},
		{"a program by its path", "", []string{"--", "./nonsense"}, 125, `^$`, `there is no program "\./nonsense": no such file or directory`},
		{"a file that is no program", "", []string{"--", "./inside"}, 125, `^$`, `"\./inside" is not executable; chmod \+x it`},
		{"a directory that is no program", "", []string{"--", "/usr"}, 125, `^$`, `"/usr" is a directory and no program`},
		{"a file to run in", "", []string{"--dir", "inside", "--", "true"}, 125, `^$`, `inside: it is not a directory`},
		{"an empty path", "", []string{"--read", "", "--", "true"}, 125, `^$`, `--read is empty; name a file or a directory`},
		{"a temporary directory, whole", "", []string{"--write", "/tmp", "--", "true"}, 125, `^$`, `a box has a /tmp of its own, and what it writes there is gone afterwards`},
		{"processes of the host", "", []string{"--read", "/proc", "--", "true"}, 125, `^$`, `/proc shows other processes and cannot be opened to a box, which has a /proc of its own; leave it out\n$`},
		{"a variable of the box's own", "", []string{"--env", "HOME=/x", "--", "true"}, 2, `^$`, `--env HOME: it would not reach the command: a box has its own; leave it out`},
		{"JSON", "", []string{"--json", "--", "true"}, 2, `what is printed is the command's own`, `^$`},
		{"a variable that runs code", "", []string{"--env", "LD_PRELOAD=/x", "--", "true"}, 2, `^$`, `--env LD_PRELOAD: it would not reach the command: such names carry code that some program would run`},
		{"a variable without a name", "", []string{"--env", "A B=1", "--", "true"}, 2, `^$`, `it is no name of a variable`},
		{"another search path", "", []string{"--env", "PATH=/x", "--", "true"}, 2, `^$`, `--env PATH: its PATH has the system's directories`},
		{"writ's state", "", []string{"--dir", w.state(), "--", "true"}, 125, `^$`, `is writ's own and out of reach of every box; run the command elsewhere`},
		{"what is around writ's files", "", []string{"--read", w.home, "--", "sh", "-c", "cat " + w.config + "; ls -A " + w.state() + "; cat " + out}, 0, `^CANARY\n$`, `cat: .*No such file`},
		{"memory of all processes", "", []string{"--policy", small, "--", "bash", "-c", `for i in 1 2 3 4; do python3 -c "x=bytearray(40<<20); import time; time.sleep(2)" & done; r=0; for j in $(jobs -p); do wait $j || r=$?; done; exit $r`}, 137, `^$`, `it came up against a limit: all of it together used more memory than it may|ended: all of it together used more memory`},
		{"a policy that does not end", "", []string{"--policy", "/dev/zero", "--", "true"}, 125, `^$`, `zero: the file has 262145 bytes; at most 262144 are read`},
		{"a policy that nobody writes", "", []string{"--policy", pipe, "--", "true"}, 125, `^$`, `pipe: the file is empty`},
		{"limits of nothing", "", []string{"--policy", none, "--", "true"}, 125, `^$`, `(?s)pids.*must be 1 to 65536.*|memory_mib.*must be 16`},
		{"a policy of too long", "", []string{"--policy", none, "--", "true"}, 125, `^$`, `timeout: must be at most 7d`},
		{"a policy bounds a flag", "", []string{"--policy", policy, "--timeout", "1h", "--", "sleep", "60"}, 124, `^$`, `ended after 1(\.\d)?s: the time limit`},
		{"a policy of what is not there", "", []string{"--policy", lost, "--", "true"}, 125, `^$`, `(?s)lost.yaml:1: read\[1\]: /.*/nowhere: there is no such file.*lost.yaml:2: write\[0\]: is empty.*lost.yaml:3: programs\[0\]: nosuchprogram: there is no such program`},
		{"a program from where the policy is", "", []string{"--policy", from, "--read", filepath.Dir(one), "--", one, "hi"}, 0, `^hi\n$`, ``},
		{"what every box has for itself", "", []string{"--read", "/tmp", "--", "true"}, 125, `^$`, `--read /tmp: a box has one of its own`},
		{"two times", "", []string{"--timeout", "1s", "--timeout", "5m", "--", "true"}, 2, `^$`, `--timeout.*it was given already; give it once`},
		{"two policies", "", []string{"--policy", policy, "--policy", small, "--", "true"}, 2, `^$`, `--policy.*it was given already; give it once`},
		{"by another name", "", []string{"--read", link, "--", "sh", "-c", "cat " + link + " || cat " + out}, 0, `^CANARY\n$`, `--read \S+link leads to \S+outside by a symlink: the command finds it there`},
		{"the root", "", []string{"--write", "/", "--", "true"}, 125, `^$`, `the root directory cannot be changed`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := w.confines(tc.stdin, tc.args...)
			if o.code != tc.code && !(tc.name == "listed programs" && o.code == 127) || !regexp.MustCompile(tc.out).MatchString(o.out) || !regexp.MustCompile(tc.err).MatchString(o.err) {
				t.Errorf("exit %d, out %.300q, err %.300q", o.code, o.out, o.err)
			}
			if strings.Contains(o.out, "secret") {
				t.Error("a secret was passed on")
			}
			if tc.name == "input and output" && len(o.out) != len(big) {
				t.Errorf("%d bytes of %d", len(o.out), len(big))
			}
		})
	}
	if _, err := os.Stat(filepath.Join(extra, "made")); err != nil {
		t.Error(err)
	}
}

// Runs in one directory at the same time keep its protected names together: the one that
// ends first takes nothing away from the other, and neither fails.
func TestRunsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	begun, ended := filepath.Join(w.ws, "begun"), filepath.Join(w.ws, "ended")
	long := exec.Command(program, "run", "--no-caches", "--", "bash", "-c", "touch begun; until test -e ended; do sleep 0.02; done; echo evil >.envrc; mkdir -p .claude/evil; exit 0")
	long.Env, long.Dir = w.env(), w.ws
	if err := long.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, err := os.Stat(begun); return err == nil })
	var all []*exec.Cmd
	for range 4 {
		cmd := exec.Command(program, "run", "--no-caches", "--", "true")
		cmd.Env, cmd.Dir = w.env(), w.ws
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(ended, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := long.Wait(); err != nil {
		t.Error(err)
	}
	quarantined, _ := filepath.Glob(w.state("run", "quarantine", "*"))
	left, _ := filepath.Glob(filepath.Join(w.ws, ".*"))
	if len(quarantined) > 0 || len(left) > 0 {
		t.Errorf("written: %v, left: %v", quarantined, left)
	}
}

// A run leaves no process behind, also when writ itself is killed.
func TestRunKilled(t *testing.T) {
	w := newWorld(t, standard, "")
	cmd := exec.Command(program, "run", "--", "sh", "-c", "sleep 1234 & setsid sleep 1234 & touch begun; wait")
	cmd.Env, cmd.Dir = w.env(), w.ws
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(w.ws, "begun")); return err == nil })
	waitFor(t, func() bool { return sleepers("1234") == 2 })
	cmd.Process.Kill()
	cmd.Wait()
	waitFor(t, func() bool { return sleepers("1234") == 0 })
}

// sleepers counts the processes of this machine that sleep for so long.
func sleepers(seconds string) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if b, _ := os.ReadFile(path); string(b) == "sleep\x00"+seconds+"\x00" {
			n++
		}
	}
	return n
}

// At a terminal the command has one of its own: size, Ctrl-C, job control, full screens.
func TestRunAtTerminal(t *testing.T) {
	need.Programs(t, "stty", "vim")
	w := newWorld(t, standard, "")
	tm := newTerminal(t, 97, 31)
	cmd := w.onIn(tm, "run", "--", "bash", "-c", `stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : </dev/tty && echo terminals; trap 'echo interrupted' INT; read -r x; echo "got $x"; sleep 1000; read -r y; echo "and $y"; exit 5`)
	tm.waits("does not show its size", func() bool { return strings.Contains(tm.raw(), "31 97\r\nterminals\r\n") })
	tm.types("hello\r")
	tm.waits("does not read", func() bool { return strings.Contains(tm.raw(), "got hello\r\n") })
	tm.types("\x03")
	tm.waits("does not hear Ctrl-C", func() bool { return strings.Contains(tm.raw(), "interrupted\r\n") })
	tm.resize(50, 20)
	tm.types("again\r")
	tm.waits("does not read again", func() bool { return strings.Contains(tm.raw(), "and again\r\n") })
	if code := exit(t, cmd); code != 5 {
		t.Errorf("exit %d", code)
	}
	if tm.modes() != tm.before {
		t.Error("the terminal is not as it was")
	}

	script := exec.Command(program, "shell") // which is no person's: nothing is written between what it says
	script.Env, script.Dir, script.Stdin = w.env(), w.ws, strings.NewReader("echo said\nexit 4\n")
	if out, _ := script.CombinedOutput(); string(out) != "said\n" || script.ProcessState.ExitCode() != 4 {
		t.Errorf("a script in the shell: exit %d, %q", script.ProcessState.ExitCode(), out)
	}

	cmd = w.onIn(tm, "shell")
	tm.types("PS1='ready> '\r")
	tm.waits("has no prompt", func() bool { return strings.Contains(tm.raw(), "ready> ") })
	tm.types("sleep 2345\r")
	waitFor(t, func() bool { return sleepers("2345") == 1 })
	tm.types("\x1a")
	tm.waits("does not stop a job", func() bool { return strings.Contains(tm.raw(), "Stopped") })
	tm.types("kill %1; jobs; stty size\r")
	tm.waits("does not know the new size", func() bool { return strings.Contains(tm.raw(), "20 50\r\n") })
	tm.types("exit 3\r")
	if code := exit(t, cmd); code != 3 {
		t.Errorf("exit %d", code)
	}

	// Who runs it in a loop wants to know that it was Ctrl-C, as of any program; and who
	// runs it in the background, that it goes on.
	cmd = w.onIn(tm, "run", "--", "sleep", "2346")
	waitFor(t, func() bool { return sleepers("2346") == 1 })
	tm.types("\x03")
	if err := cmd.Wait(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("Ctrl-C: %v", err)
	}
	sh := exec.Command("bash", "-ic", program+` run -- sh -c 'echo in the background; cat' & wait $!; echo "it ended: $?"`)
	sh.Env, sh.Dir, sh.Stdin, sh.Stdout, sh.Stderr = append(w.env(), "TERM=xterm"), w.ws, tm.slave, tm.slave, tm.slave
	sh.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { sh.Process.Kill(); sh.Wait() }()
	tm.waits("does not run in the background", func() bool {
		return strings.Contains(tm.raw(), "in the background\r\n") && strings.Contains(tm.raw(), "it ended: 0\r\n")
	})

	cmd = w.onIn(tm, "run", "--", "vim", "-u", "NONE", "-n", "note.txt")
	tm.waits("shows no editor", func() bool { return strings.Contains(tm.raw(), "note.txt") })
	tm.types("ihello from vim\x1b:wq\r")
	if code := exit(t, cmd); code != 0 {
		t.Errorf("vim: exit %d", code)
	}
	if b, _ := os.ReadFile(filepath.Join(w.ws, "note.txt")); string(b) != "hello from vim\n" {
		t.Errorf("vim wrote %q", b)
	}
	if tm.modes() != tm.before {
		t.Error("the terminal is not as it was")
	}
}

// onIn starts the program on a terminal, in the workspace.
func (w *world) onIn(tm *terminal, args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = append(w.env(), "TERM=xterm"), w.ws
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tm.slave, tm.slave, tm.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}
