package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dumper runs a program as somebody does who wants core dumps, also of Go programs, and
// with the canary in its environment.
func (w *world) dumper(dir string, args ...string) (*exec.Cmd, *heard) {
	w.t.Helper()
	said := &heard{}
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -c unlimited && exec "$@"`, "sh"}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(w.env(), "GOTRACEBACK=crash", "CANARY="+canary), dir, said, said
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, said
}

// dumps takes the core dumps away that are in a directory.
func dumps(t *testing.T, dir string) (all string) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "*core*"))
	for _, path := range found {
		all += readAll(path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// below are the processes that a process has started, and they in turn.
func below(pid int) (out []int) {
	text := ""
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text += readAll(task)
	}
	for _, field := range strings.Fields(text) {
		child, _ := strconv.Atoi(field)
		out = append(append(out, child), below(child)...)
	}
	return out
}

// dumpsHere reports whether the machine leaves core dumps in the directory of who crashed.
func dumpsHere(t *testing.T) bool {
	pattern := strings.TrimSpace(readAll("/proc/sys/kernel/core_pattern"))
	here := !strings.ContainsAny(pattern, "|/") && strings.Contains(pattern, "core")
	if !here {
		t.Logf("dumps go to %q, so what the kernel was told is looked at alone", pattern)
	}
	return here
}

// I7: a daemon that crashes while it holds a secret leaves no core dump. A command of the
// same program that crashes beside it does, with the canary in it.
func TestCanaryInCoreDumps(t *testing.T) {
	asked := make(chan string, 10)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		<-r.Context().Done()
	}))
	defer hangs.Close()
	w := newWorld(t, free, fmt.Sprintf(`connections:
  hangs: {base_url: %q, auth: {type: bearer, secret: "store:canary"}}
`, hangs.URL))
	dir, here := t.TempDir(), dumpsHere(t)
	for _, sig := range []syscall.Signal{syscall.SIGABRT, syscall.SIGQUIT, syscall.SIGSEGV} {
		serve, said := w.dumper(dir, program, "serve")
		waitFor(t, func() bool { return strings.Contains(said.String(), "http://") })
		if w.token == "" {
			w.init()
			if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
				t.Fatalf("set: %+v", o)
			}
		}
		call, told := w.dumper(dir, program, "call", "external_api", "connection=hangs", fmt.Sprintf("path=/%d", sig))
		select {
		case got := <-asked:
			if got != "Bearer "+canary {
				t.Fatalf("the server got %q", got)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the server is not asked: %s", told)
		}
		if !strings.Contains(memory(t, strconv.Itoa(serve.Process.Pid)), canary) {
			t.Error("the daemon does not have the canary in memory, so nothing is proven")
		}
		call.Process.Signal(sig)
		call.Wait()
		if here && !strings.Contains(dumps(t, dir), canary) {
			t.Errorf("%v: a command leaves no core dump with the canary in it, so nothing is proven", sig)
		}
		withheld(t, serve.Process.Pid)
		serve.Process.Signal(sig)
		serve.Wait()
		if s := serve.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.CoreDump() {
			t.Errorf("the daemon got %v, and ended with %v", sig, serve.ProcessState)
		}
		if leaks(said.String()) != "" || !strings.Contains(said.String(), "goroutine ") {
			t.Errorf("%v: what the daemon said has the canary, or is not of a crash:\n%.2000s", sig, said)
		}
		if left := dumps(t, dir); left != "" {
			t.Errorf("%v: a core dump of %d bytes is left; the canary is in it: %v", sig, len(left), strings.Contains(left, canary))
		}
		w.daemonGone()
	}
}

// Neither does what a daemon has started: launchers, boxes, and commands in them, which
// crash in their workspace.
func TestBoxesLeaveNoCoreDumps(t *testing.T) {
	w := newWorld(t, free+"overrides: {terminal: full}\n", "")
	serve, said := w.dumper(t.TempDir(), program, "serve")
	waitFor(t, func() bool { return strings.Contains(said.String(), "http://") })
	w.init()
	if dumpsHere(t) {
		outside, _ := w.dumper(w.ws, "sh", "-c", "kill -ABRT $$")
		outside.Wait()
		if !strings.Contains(dumps(t, w.ws), canary) {
			t.Error("a command outside leaves no core dump, so nothing is proven")
		}
	}
	o := w.shell("ulimit -c unlimited; CANARY='" + canary + "' sh -c 'kill -ABRT $$'; echo ended $?; ulimit -c")
	if !strings.Contains(o.out, "ended 134") || !strings.Contains(o.out, "\n0\n") || dumps(t, w.ws) != "" {
		t.Errorf("a command in a box: %+v", o)
	}
	w.dumper(t.TempDir(), program, "call", "shell_command", "command=sleep 78.125; true")
	waitFor(t, func() bool { return len(sleeping("78.125")) > 0 })
	all := below(serve.Process.Pid)
	if len(all) < 3 {
		t.Errorf("only %d processes are looked at", len(all))
	}
	withheld(t, all...)
}

// withheld demands of processes that nothing of their memory would be dumped, to a file or
// to a program.
func withheld(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		at := fmt.Sprintf("/proc/%d/", pid)
		_, limit, _ := strings.Cut(readAll(at+"limits"), "Max core file size")
		filter := strings.TrimSpace(readAll(at + "coredump_filter"))
		if limit == "" && filter == "" {
			continue // it has ended
		}
		if f := strings.Fields(limit); len(f) < 2 || f[0] != "0" || f[1] != "0" || strings.Trim(filter, "0") != "" {
			t.Errorf("%q can be dumped: %.40q, filter %s", readAll(at+"cmdline"), limit, filter)
		}
	}
}
