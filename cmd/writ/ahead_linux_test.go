package main

import (
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// A sandbox that was begun before it was known what for, and is not the one that is needed,
// does not stay beside the command: it holds the host's mounts.
func TestNeedlessLauncherEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.own(w.home)
	for _, tc := range []struct {
		flags     []string
		launchers int // the first, and the one in the box
	}{
		{nil, 2},
		{[]string{"--program", "sleep"}, 2},
		{[]string{"--unsafe-unconfined"}, 0},
	} {
		cmd := exec.Command(program, slices.Concat([]string{"run"}, tc.flags, []string{"--", "sleep", "600"})...)
		cmd.Env, cmd.Dir = w.env(), w.ws
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		named := func(name string) (out []int) {
			for _, pid := range below(cmd.Process.Pid) {
				if readAll(fmt.Sprintf("/proc/%d/comm", pid)) == name+"\n" {
					out = append(out, pid)
				}
			}
			return out
		}
		t.Cleanup(func() {
			for _, pid := range named("sleep") { // an unconfined one outlives who has run it
				syscall.Kill(pid, syscall.SIGKILL)
			}
			cmd.Process.Kill()
			cmd.Wait()
		})
		w.eventually(fmt.Sprintf("%v: the command runs", tc.flags), func() bool { return len(named("sleep")) == 1 })
		w.eventually(fmt.Sprintf("%v: there are %d launchers", tc.flags, tc.launchers), func() bool { return len(named("writ-box")) == tc.launchers })
	}
}
