package docker

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// keptIn runs commands one after the other in one container, as calls of one agent are, and
// returns what each wrote and how the last ended.
func keptIn(t *testing.T, d *Driver, ws string, commands ...string) (said []string, exit sandbox.Exit, err error) {
	t.Helper()
	confined := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	sandboxtest.With(t, confined, ws, func(ctx context.Context, w writ.Writ) {
		var in sandbox.Kept
		for _, command := range commands {
			var out bytes.Buffer
			spec := shell(command, ws)
			spec.Stdout, spec.Stderr = &out, &out
			p, failed := d.Plan(ctx, w, spec)
			if failed == nil && in == nil {
				in, failed = p.Keep(ctx)
			}
			if failed != nil {
				t.Fatal(failed)
			}
			b, failed := p.StartIn(ctx, in)
			if failed != nil {
				t.Fatal(failed, said)
			}
			exit, err = b.Wait(ctx)
			said = append(said, out.String())
			if failed := in.Renew(ctx); failed != nil && err == nil && exit.Limit != sandbox.ContainerEnded {
				t.Error(failed)
			}
		}
		in.Close()
	})
	return said, exit, err
}

// Memory and queues that processes share by a number are the command's own: the next in the
// same container does not find them.
func TestQueuesEnd(t *testing.T) {
	d, ws := driver(t, options(t)), workspace(t)
	said, _, err := keptIn(t, d, ws, `ipcmk -M 4096 -Q -S 1 >/dev/null; ipcs | grep -c ^0x`, `ipcs | grep -c ^0x`)
	if err != nil || strings.Join(said, "") != "3\n0\n" {
		t.Errorf("%v %q", err, said)
	}
}

// What passes through a supervisor does not stay in it: it has the memory of the container,
// and would go with the command.
func TestMuchPasses(t *testing.T) {
	o := options(t)
	o.Memory = 64 << 20
	d, ws := driver(t, o), workspace(t)
	confined := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	got := sandboxtest.Command(t, d, confined, shell("head -c 100m /dev/zero", ws))
	if got.Error != nil || got.Exit.Code != 0 {
		t.Errorf("%v %+v %d bytes", got.Error, got.Exit, len(got.Out))
	}
}

const findSupervisor = `for s in $(ls /proc | grep -x '[0-9]*'); do grep -qs docker-supervise /proc/$s/cmdline && break; done; `

// What watches over a command runs as the same user, among the same processes, and is not
// the command's to stop, to starve or to take its files from.
func TestSupervisorIsNoPrey(t *testing.T) {
	d, ws := driver(t, options(t)), workspace(t)
	own := `sleep 9 & prlimit --nofile >/dev/null && taskset -cp 0 $! >/dev/null && kill -STOP $! && kill -9 $! && echo alive`
	tries := findSupervisor + `exec 2>/dev/null; for p in 1 $s; do
prlimit --pid $p --nofile=3 && echo BROKEN limit; prlimit --pid $p --cpu=1 && echo BROKEN time; renice -n 19 -p $p >/dev/null && echo BROKEN nice; chrt -i -p 0 $p && echo BROKEN idle; ionice -c 3 -p $p && echo BROKEN io
kill -STOP $p && echo BROKEN stop; kill -9 $p && echo BROKEN kill; cat /proc/$p/fd/1 && echo BROKEN fd; ls /proc/$p/root/ && echo BROKEN root; echo 1000 >/proc/$p/oom_score_adj && echo BROKEN oom
done; echo $s | grep -c .; renice -n 5 -u $(id -u) >/dev/null && echo BROKEN user; true`
	said, exit, err := keptIn(t, d, ws, own, tries)
	if err != nil || exit.Code != 0 || strings.Join(said, "") != "alive\n1\n" {
		t.Errorf("%v %+v %q", err, exit, said)
	}
}

// A box whose supervisor is gone, whoever ended that, ends with all that runs in it, before
// anybody looks at what it has left among protected names.
func TestSupervisorGone(t *testing.T) {
	d, ws := driver(t, options(t)), workspace(t)
	script := `(setsid bash -c 'while :; do mkdir -p r$((++i / 50))/.git/hooks && echo x >r$((i / 50))/.git/hooks/pre-commit; done' >/dev/null 2>&1 &)
until test -d r1; do sleep 0.1; done; touch ready; sleep 60`
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := os.Stat(ws + "/ready"); err == nil {
				break
			}
		}
		for _, pid := range supervisors(t, ws) {
			exec.Command("kill", "-9", pid).Run()
		}
	}()
	_, exit, err := keptIn(t, d, ws, script)
	<-done
	if err == nil && exit.Limit != sandbox.ContainerEnded {
		t.Errorf("nobody heard of it: %+v", exit)
	}
	left, _ := exec.Command("find", ws, "-name", "pre-commit").Output()
	if len(left) > 0 {
		t.Errorf("it went on and left\n%s", left)
	}
}

// supervisors are those of the containers that are shown a directory, by their numbers here.
func supervisors(t *testing.T, ws string) (pids []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		mounts, _ := os.ReadFile("/proc/" + e.Name() + "/mountinfo")
		if strings.Contains(string(line), partSupervise) && strings.Contains(string(mounts), ws) {
			pids = append(pids, e.Name())
		}
	}
	if len(pids) == 0 {
		t.Error("there is no supervisor")
	}
	return pids
}
