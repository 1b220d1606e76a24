package usage_test

import (
	"bufio"
	"cmp"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/writ-run/writ/sandbox/usage"
)

// What a process writes counts, and what its children do: while they live, and after they
// were waited for; so does time on the processors.
func TestOf(t *testing.T) {
	cmd := exec.Command("/bin/bash", "-c", `
		head -c 3000000 /dev/zero >a
		(head -c 5000000 /dev/zero >b; echo ready; read line)
		for ((i = 0; i < 60000; i++)); do :; done; echo waited; read line`)
	cmd.Dir = onDisk(t)
	in, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(stdout)

	lines.Scan()
	alive, err := usage.Of(cmd.Process.Pid)
	must(t, err)
	if alive.Written < 8_000_000 || alive.Written > 9_000_000 {
		t.Errorf("with a child that lives: %d bytes written", alive.Written)
	}
	in.Write([]byte("\n"))
	lines.Scan()
	after, err := usage.Of(cmd.Process.Pid)
	must(t, err)
	if after.Written < alive.Written || after.Written > 9_000_000 {
		t.Errorf("with a child that was waited for: %d bytes written, before %d", after.Written, alive.Written)
	}
	if after.CPU <= alive.CPU || after.CPU > time.Minute {
		t.Errorf("processor time %v, before a loop %v", after.CPU, alive.CPU)
	}
	if gone, err := usage.Of(1 << 22); err != nil || gone != (usage.Use{}) {
		t.Errorf("a process that is not there: %+v, %v", gone, err)
	}
}

// onDisk is a directory whose files go to a disk, as those of a tmpfs do not.
func onDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(cmp.Or(os.Getenv("WRIT_TEST_DIR"), "."), "writ-usage-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
