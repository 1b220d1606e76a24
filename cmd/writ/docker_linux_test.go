package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/sandbox/rig"
)

const inDocker = "level: standard\noverrides: {terminal: full}\n"

// docked is a world whose calls run in containers of the rig; keys are more of the driver's.
func docked(t testing.TB, keys, more string) (*world, rig.Engine) {
	t.Helper()
	e := rig.Start(t)
	w := newWorld(t, inDocker, fmt.Sprintf("sandboxing: {default_backend: docker, docker: {host: %q, image: %q%s}%s}\n", e.Host, e.Image, keys, more)).init()
	return w, e
}

// talks is a client of the rig, and the containers of a world on it.
func talks(t testing.TB, e rig.Engine) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(e.Host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// mine puts a file into the workspace.
func (w *world) mine(name string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.ws, name), []byte("mine\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// containersOf are those that show something of this world, whatever their labels say.
func (w *world) containersOf(c *client.Client) (out []container.Summary) {
	w.t.Helper()
	all, err := c.ContainerList(context.Background(), client.ContainerListOptions{All: true})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, x := range all.Items {
		if slices.ContainsFunc(x.Mounts, func(m container.MountPoint) bool { return strings.HasPrefix(m.Source, w.home+"/") }) {
			out = append(out, x)
		}
	}
	return out
}

// A call runs in a container: as the owner of the workspace, with the image's files and the
// workspace, and nothing of the host; the next one has the same container, emptied.
func TestDockerCall(t *testing.T) {
	t.Parallel()
	w, e := docked(t, ", mount_mode: rw", "")
	c := talks(t, e)
	w.mine("file")
	o := w.shell(`hostname; cat file; echo new >out; echo left >/tmp/left; ls /root /srv/elsewhere; cat /proc/1/cmdline | tr '\0' ' '; (setsid sleep 300 >/dev/null 2>&1 &); exit 3`)
	if o.code == 0 || !strings.Contains(o.out, "box\nmine\n") || !strings.Contains(o.out, "docker-idle") {
		t.Fatalf("%+v", o)
	}
	if b, err := os.ReadFile(filepath.Join(w.ws, "out")); string(b) != "new\n" {
		t.Errorf("the workspace was not written: %q %v", b, err)
	}
	w.settled(1)
	if o := w.shell(`ls -A /tmp; grep -lsx sleep /proc/[0-9]*/comm; true`); o.code != 0 || strings.Contains(o.out, "left") || strings.Contains(o.out, "comm") {
		t.Errorf("a call finds what the one before left: %+v", o)
	}
	b := w.settled(1)[0]
	if b.Driver != "docker" || b.Calls != 2 || !b.Kept {
		t.Errorf("%+v", b)
	}
	ours := w.containersOf(c)
	if len(ours) != 1 {
		t.Fatalf("%d containers", len(ours))
	}
	is, err := c.ContainerInspect(t.Context(), ours[0].ID, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := is.Container.HostConfig
	if h.Privileged || !h.ReadonlyRootfs || h.NetworkMode != "none" || len(h.CapAdd) != 0 || strings.Join(h.CapDrop, "") != "ALL" || h.Memory != h.MemorySwap || h.Memory != 512<<20 ||
		h.NanoCPUs != 1e9 || *h.PidsLimit != 96 || h.PidMode.IsHost() || h.IpcMode.IsHost() || h.UTSMode.IsHost() || len(h.Devices) != 0 || strings.HasPrefix(is.Container.Config.User, "0") {
		t.Errorf("%+v", h)
	}
	if l := ours[0].Labels; l["writ.managed"] != "true" || l["writ.owner"] != "coder" || l["writ.deployment"] == "" || l["writ.proof"] == "" {
		t.Errorf("labels %v", l)
	}
	w.must("", "serve", "--stop")
	waitFor(t, func() bool { return len(w.containersOf(c)) == 0 })
}

// Every key of the driver changes what happens.
func TestDockerKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, keys, script string
		code               int
		says               string // empty: nothing in particular
	}{
		{"mount_mode ro", "", "touch x", 1, "Read-only file system"},
		{"mount_mode rw", ", mount_mode: rw", "touch x", 0, ""},
		{"tmpfs_size 64m", "", "head -c 40m /dev/zero >/tmp/x && rm /tmp/x && echo fits", 0, "fits"},
		{"tmpfs_size 1m", ", tmpfs_size: 1m", "head -c 2m /dev/zero >/tmp/x", 1, "1 MiB, sandboxing.docker.tmpfs_size"},
		{"memory_limit 512m", "", `python3 -c "x=bytearray(200<<20); print(len(x))"`, 0, "209715200"},
		{"memory_limit 64m", ", memory_limit: 64m", `python3 -c "x=bytearray(200<<20); print(len(x))"`, 1, "[ended: all of it together used more memory than it may (64 MiB, sandboxing.docker.memory_limit)]"},
		{"memory_limit 64m, much output", ", memory_limit: 64m", "head -c 100m /dev/zero; echo all of it >&2", 0, "all of it"},
		{"pids_limit 64", "", `python3 -c "import subprocess; [subprocess.Popen(['sleep','5']) for i in range(40)]; print('all')"`, 0, "all"},
		{"pids_limit 32", ", pids_limit: 32", `python3 -c "import subprocess; [subprocess.Popen(['sleep','5']) for i in range(40)]; print('all')"`, 1, "[ended: it began more processes than it may (32, sandboxing.docker.pids_limit)]"},
		{"timeout_seconds 1", ", timeout_seconds: 1", "echo before; sleep 30", 1, "sandboxing.docker.timeout_seconds"},
		{"image that is not there", ", image: no-such-image", "true", 1, "writ image build"},
		{"runtime that is not there", ", runtime: no-such-runtime", "true", 1, "no-such-runtime"},
		{"host that is not there", ", host: 'unix:///nowhere/docker.sock'", "true", 1, "no engine of Docker or Podman answers at unix:///nowhere/docker.sock"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := rig.Start(t)
			keys := fmt.Sprintf("{host: %q, image: %q}", e.Host, e.Image)
			for kv := range strings.SplitSeq(strings.TrimPrefix(tc.keys, ", "), ", ") {
				name, _, _ := strings.Cut(kv, ":")
				switch name {
				case "":
				case "image":
					keys = fmt.Sprintf("{host: %q, %s}", e.Host, kv)
				case "host":
					keys = fmt.Sprintf("{%s, image: %q}", kv, e.Image)
				default:
					keys = strings.TrimSuffix(keys, "}") + ", " + kv + "}"
				}
			}
			w := newWorld(t, inDocker, "sandboxing: {default_backend: docker, docker: "+keys+"}\n").init()
			o := w.shell(tc.script)
			if (o.code == 0) != (tc.code == 0) || !strings.Contains(o.out+o.err, tc.says) {
				t.Errorf("%+v", o)
			}
			if tc.name == "timeout_seconds 1" && !strings.Contains(o.out, "before") {
				t.Errorf("what it said before is gone: %+v", o)
			}
		})
	}
	t.Run("cpu_limit", func(t *testing.T) {
		const busy = `python3 -c "
import time
t=time.perf_counter(); c=time.process_time()
while time.perf_counter()-t<1.5: pass
print(int(100*(time.process_time()-c)/(time.perf_counter()-t)))"`
		w, _ := docked(t, ", cpu_limit: 0.1", "")
		o := w.shell(busy)
		share, err := strconv.Atoi(strings.TrimSpace(o.out))
		if err != nil || share > 30 {
			t.Errorf("%d%% of a processor with a tenth allowed: %+v", share, o)
		}
	})
	t.Run("auto_remove false", func(t *testing.T) {
		t.Parallel()
		w, e := docked(t, ", auto_remove: false", ", lifecycle: {strategy: per-call}")
		c := talks(t, e)
		if o := w.shell("true"); o.code != 0 {
			t.Fatalf("%+v", o)
		}
		left := w.containersOf(c)
		if len(left) != 1 || left[0].State == "running" {
			t.Fatalf("%+v", left)
		}
		// What looks like ours and is not is spared; what is ours is removed at the next start.
		spoof, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
			Config:     &container.Config{Image: e.Image, Cmd: []string{"true"}, Labels: left[0].Labels},
			HostConfig: &container.HostConfig{NetworkMode: "none", Binds: []string{w.ws + ":/x"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.ContainerRemove(context.Background(), spoof.ID, client.ContainerRemoveOptions{Force: true})
		w.must("", "serve", "--stop")
		w.daemonGone()
		w.must("", "doctor")
		waitFor(t, func() bool {
			now := w.containersOf(c)
			return len(now) == 1 && now[0].ID == spoof.ID
		})
	})
}

// Without an engine the categories that need it say so, the others go on; when it comes,
// that is noticed.
func TestDockerAbsent(t *testing.T) {
	t.Parallel()
	e := rig.Start(t)
	dir := t.TempDir()
	at := filepath.Join(dir, "docker.sock")
	w := newWorld(t, inDocker, fmt.Sprintf("sandboxing: {overrides: {terminal: docker}, docker: {host: 'unix://%s', image: %q}}\n", at, e.Image)).init()
	w.mine("file")
	if o := w.shell("true"); o.code == 0 || !strings.Contains(o.err+o.out, "no engine of Docker or Podman answers at unix://"+at) {
		t.Errorf("%+v", o)
	}
	if o := w.call("read_file", map[string]any{"path": "file"}); o.code != 0 {
		t.Errorf("what needs no engine: %+v", o)
	}
	if err := os.Symlink(strings.TrimPrefix(e.Host, "unix://"), at); err != nil {
		t.Fatal(err)
	}
	if o := w.shell("cat file"); o.code != 0 || o.out != "mine\n" {
		t.Errorf("after it came: %+v", o)
	}
	if o := w.run("", "doctor", "--driver", "docker"); o.code != 0 || !strings.Contains(o.out, "driver docker, in force by sandboxing.overrides.terminal\n") || strings.Contains(o.out, "\ndriver native") {
		t.Errorf("doctor: %+v", o)
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if o := w.run("", "doctor"); o.code != cli.ExitError || !strings.Contains(o.out, "cannot be used here: sandbox_unavailable: no engine of Docker or Podman answers at unix://"+at) ||
		!strings.Contains(o.err, "driver docker cannot be used, and sandboxing.overrides.terminal names it") {
		t.Errorf("doctor, after it went: %+v", o)
	}
	if o := w.shell("true"); o.code == 0 || !strings.Contains(o.err+o.out, "no engine of Docker or Podman answers at unix://"+at) {
		t.Errorf("after it went: %+v", o)
	}
}

// kill -9 of the daemon during calls: no container of ours is left, and no other was touched.
func TestDockerCrash(t *testing.T) {
	rounds, calls := 1, 12
	if os.Getenv("WRIT_SOAK") != "" {
		rounds, calls = 10, 200
	}
	w, e := docked(t, ", mount_mode: rw", "")
	c := talks(t, e)
	foreign, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config:     &container.Config{Image: e.Image, Cmd: []string{"sleep", "3600"}, Labels: map[string]string{"writ.managed": "true"}},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err == nil {
		_, err = c.ContainerStart(t.Context(), foreign.ID, client.ContainerStartOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.ContainerRemove(context.Background(), foreign.ID, client.ContainerRemoveOptions{Force: true})
	for round := range rounds {
		_, kill := w.serve()
		marker := fmt.Sprintf("writ-docker-crash-%d-%d", os.Getpid(), round)
		var wg sync.WaitGroup
		turns := make(chan struct{}, 8)
		for i := range calls {
			wg.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				script := []string{"true", "exec -a " + marker + " sleep 40", "head -c 3m /dev/zero", "(setsid sh -c 'exec -a " + marker + " sleep 40' &); sleep 0.1"}[i%4]
				w.call("shell_command", map[string]any{"command": script})
			})
		}
		waitFor(t, func() bool { return len(w.containersOf(c)) > 0 })
		time.Sleep(time.Duration(300+round*170%900) * time.Millisecond)
		kill()
		// The callers find no daemon and start another; end that one too.
		for end := time.Now().Add(2 * time.Minute); ; {
			w.stopRunning(marker)
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(2 * time.Second):
				if time.Now().Before(end) {
					continue
				}
				t.Fatal("calls do not end")
			}
			break
		}
		w.must("", "serve", "--stop")
		w.daemonGone()
		waitFor(t, func() bool { return len(w.containersOf(c)) == 0 && !processExists(marker) })
	}
	if is, err := c.ContainerInspect(t.Context(), foreign.ID, client.ContainerInspectOptions{}); err != nil || !is.Container.State.Running {
		t.Errorf("a foreign container was touched: %v", err)
	}
	w.verifies()
}

// What is decided is what the driver does: with mount_mode ro, which is so unless said,
// nothing says that files can be written, and what fails there says why.
func TestDockerReadOnly(t *testing.T) {
	t.Parallel()
	for mode, reads := range map[string]bool{"": true, ", mount_mode: rw": false} {
		w, _ := docked(t, mode, "")
		writes := "can write    " + w.home
		if reads {
			writes = "can write    nothing"
		}
		o := w.run("", "explain", "shell_command", "--agent", "coder", "command=true")
		if o.code != 0 || !strings.Contains(o.out, writes) || !strings.Contains(o.out, "can read     "+w.home) || reads != strings.Contains(o.out, "sandboxing.docker.mount_mode: rw") {
			t.Errorf("explain%s: %+v", mode, o)
		}
		if o := w.shell("echo made >made.txt"); (o.code != 0) != reads || reads != strings.Contains(o.out, "[files can be read alone in this container: an operator opens them with sandboxing.docker.mount_mode: rw") {
			t.Errorf("a command that writes%s: %+v", mode, o)
		}
		if o := w.shell("exit 3"); strings.Contains(o.out, "mount_mode") {
			t.Errorf("a command that fails of itself%s: %+v", mode, o)
		}
		if out := w.must("", "sandbox", "show", w.settled(1)[0].ID); !strings.Contains(out, writes) {
			t.Errorf("sandbox show%s:\n%s", mode, out)
		}
		if o := w.call("shell_command", map[string]any{"command": "true", "writable": []string{w.ws}}); (o.code == 3) != reads || reads != strings.Contains(o.err+o.out, "mount_mode: rw") {
			t.Errorf("a path to write%s: %+v", mode, o)
		}
	}
}

// A command that had as many processes as it may is told so by its result, whatever it says
// itself, and so is the next one; one that fails with fewer is not.
func TestDockerPids(t *testing.T) {
	t.Parallel()
	w := contained(t, "", "")
	w.edit("mount_mode: rw", "mount_mode: rw, pids_limit: 40")
	const begin = "command=python3 -c \"\nimport subprocess, sys\ntry: [subprocess.Popen(['sleep', '5']) for i in range(%d)]\nexcept OSError: sys.exit(4)\nsys.exit(%d)\""
	for _, c := range []struct {
		begins, code int
		met          string
	}{{34, 3, ""}, {60, 0, "pids"}, {34, 3, ""}, {60, 0, "pids"}, {60, 0, "pids"}} {
		r := w.reply(fmt.Sprintf(begin, c.begins, c.code))
		if m := r.Metadata; m.Met != c.met || m.Limit != c.met || m.Code == 0 || strings.Contains(r.Content, "sandboxing.docker.pids_limit") != (c.met != "") {
			t.Errorf("%d processes: %+v", c.begins, r)
		}
	}
}

// An engine that is lost during a call, killed or stopped, fails it; and what the command
// had begun is over after a while, though no engine is there to end it.
func TestDockerEngineLost(t *testing.T) {
	t.Parallel()
	e := rig.Small(t, rig.Own(t))
	w := newWorld(t, inDocker, fmt.Sprintf("sandboxing: {default_backend: docker, docker: {host: %q, image: %q, mount_mode: rw}}\n", e.Host, e.Image)).init()
	beats := func() int {
		b, _ := os.ReadFile(filepath.Join(w.ws, "beats"))
		return len(b)
	}
	during := func(lose func()) {
		t.Helper()
		if o := w.shell("echo here; : >beats"); o.code != 0 || o.out != "here\n" {
			t.Fatalf("%+v", o)
		}
		ended := make(chan outcome, 1)
		go func() { ended <- w.shell("echo before; for i in {1..900}; do echo x >>beats; sleep 0.2; done") }()
		waitFor(t, func() bool { return beats() > 8 })
		lose()
		was := beats()
		time.Sleep(time.Second)
		if beats() == was {
			t.Error("the command ended with the engine: nothing was tried")
		}
		// The call is over when nothing of it can write any more.
		if o := <-ended; o.code != 1 || !strings.Contains(o.out+o.err, "before") || !strings.Contains(o.out+o.err, "was lost while the command ran") {
			t.Errorf("%+v", o)
		}
		was = beats()
		time.Sleep(time.Second)
		if now := beats(); now != was {
			t.Errorf("the command goes on: %d bytes, then %d", was, now)
		}
	}
	if os.Getenv("WRIT_SOAK") != "" { // it is waited for as long as a busy one may take
		var goOn func()
		during(func() { goOn = rig.Hang(t, e) })
		const hangs = "is there and does not answer"
		for _, o := range []outcome{w.shell("true"), w.run("", "doctor")} {
			if o.code == 0 || !strings.Contains(o.out+o.err, hangs) {
				t.Errorf("%+v", o)
			}
		}
		goOn()
	}
	during(func() { rig.Kill(t, e) })
}

// A container that somebody ends during a call says so, and what was written is there.
func TestDockerKilled(t *testing.T) {
	t.Parallel()
	w, e := docked(t, ", mount_mode: rw", "")
	c := talks(t, e)
	ended := make(chan outcome, 1)
	go func() { ended <- w.shell("echo before; touch began; sleep 60") }()
	waitFor(t, func() bool { return exists(filepath.Join(w.ws, "began")) })
	for _, x := range w.containersOf(c) {
		if _, err := c.ContainerKill(t.Context(), x.ID, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			t.Log(err)
		}
	}
	if o := <-ended; o.code != 1 || !strings.HasPrefix(o.out, "before\n") || !strings.Contains(o.out, "[ended: its container was ended from outside, and all that ran in it]") {
		t.Errorf("%+v", o)
	}
}
