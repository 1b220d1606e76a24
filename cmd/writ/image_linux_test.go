package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/sandbox/rig"
)

// imageShown is one image, as programs are told of it.
type imageShown struct {
	Name, ID, Recipe string
	Tags             []string
	Size             int64
}

// The image is built of Debian's packages on this machine, is small enough, is listed, and
// is what the configuration is told; on top of another it is built too.
func TestImageBuild(t *testing.T) {
	e := rig.Start(t)
	w := newWorld(t, standard, "")
	var built struct {
		ID, Base string
		Size     int64
	}
	w.decode(&built, "", "image", "build", "sandbox", "--from-debootstrap", "--tag", e.Image, "--host", e.Host, "--json")
	if built.Size < 100e6 || built.Size >= 500e6 || built.Base != "writ-base:bookworm" {
		t.Errorf("built %+v; the sandbox has less than 500 MB", built)
	}
	var all []imageShown
	w.decode(&all, "", "image", "list", "--host", e.Host, "--json")
	found := false
	for _, i := range all {
		found = found || i.ID == built.ID && i.Name == "sandbox" && i.Recipe == "current" && i.Size == built.Size
	}
	if !found {
		t.Errorf("%s is not listed as it was built: %+v", built.ID, all)
	}
	if out := w.must("", "image", "list", "--host", e.Host); !strings.Contains(out, cli.ShortID(built.ID)+"  "+fmt.Sprintf("%.0f MB", float64(built.Size)/1e6)+"  ") {
		t.Errorf("listed as\n%s", out)
	}
	out := w.must("", "image", "build", "sandbox", "--from", built.ID, "--tag", "writ-sandbox:on-test", "--host", e.Host)
	if !strings.Contains(out, "built writ-sandbox:on-test: ") || !strings.Contains(out, "under sandboxing, it is:\n\n  docker:\n    host: "+e.Host+"\n    image: sha256:") {
		t.Errorf("on another it says\n%s", out)
	}
}

// An image that is wrong in any way says what to do.
func TestImageRefused(t *testing.T) {
	e := rig.Own(t)
	w := newWorld(t, standard, "")
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"build", "sandbox", "--from", "127.0.0.1:1/none:1", "--host", e.Host}, 1, []string{"image 127.0.0.1:1/none:1 is not in the engine at " + e.Host + " and cannot be pulled", "--from IMAGE", "--from-debootstrap"}},
		{[]string{"build", "sandbox", "--from-debootstrap=../x", "--host", e.Host}, 1, []string{`"../x" is no suite of Debian; write one such as`}},
		{[]string{"build", "sandbox", "--from", "x", "--from-debootstrap", "--host", e.Host}, 2, []string{"leave out --from or --from-debootstrap"}},
		{[]string{"build", "sandbax", "--host", e.Host}, 2, []string{`there is no image "sandbax" to build; did you mean sandbox?`, "there are sandbox, sandbox-go, browser, desktop"}},
		{[]string{"build"}, 2, []string{"expected what to build: sandbox,"}},
		{[]string{"list", "--host", "unix:///nowhere/docker.sock"}, 1, []string{"no container engine answers at unix:///nowhere/docker.sock", "--host"}},
		{[]string{"prune", "--host", "nonsense"}, 1, []string{"nonsense", "--host unix://"}},
	} {
		o := w.run("", append([]string{"image"}, c.args...)...)
		for _, want := range c.says {
			if o.code != c.code || !strings.Contains(o.err, want) {
				t.Errorf("image %v: exit %d\n%s\nwant %d %q", c.args, o.code, o.err, c.code, want)
			}
		}
	}
	if out := w.must("", "image", "list", "--host", e.Host); !strings.HasPrefix(out, "there are none at "+e.Host+"; ") {
		t.Errorf("an engine without images: %s", out)
	}
	if out := w.must("", "image", "prune", "--all", "--host", e.Host); out != "there is nothing to remove\n" {
		t.Errorf("nothing to remove: %s", out)
	}
	if out := w.must("", "__complete", "image", "build", ""); !strings.Contains(out, "browser\tthe sandbox with Chromium") {
		t.Errorf("offers\n%s", out)
	}
}

// Debootstrap takes root: somebody else is told so before anything is done.
func TestImageDebootstrapAsNobody(t *testing.T) {
	e := rig.Own(t)
	socket := strings.TrimPrefix(e.Host, "unix://")
	for _, path := range []string{filepath.Dir(filepath.Dir(socket)), filepath.Dir(socket)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "image", "build", "sandbox", "--from-debootstrap")
	cmd.Env = []string{"HOME=/nonexistent", "PATH=" + os.Getenv("PATH"), "DOCKER_HOST=" + e.Host}
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "takes root; run this with sudo, or build on an image that is there with --from IMAGE") {
		t.Errorf("%v: %s", err, said.String())
	}
}

// Ctrl-C while the base is made ends debootstrap and all it started, and leaves no image;
// while the engine runs a step it leaves no container.
func TestImageInterrupted(t *testing.T) {
	e := rig.Own(t)
	w := newWorld(t, standard, "")
	tm := newTerminal(t, 60, 24)
	cmd := w.on(tm, nil, "image", "build", "sandbox", "--from-debootstrap", "--host", e.Host)
	tm.waits("does not show what debootstrap does", func() bool {
		_, live, _ := strings.Cut(tm.raw(), "\r\x1b[Kmaking writ-base:bookworm with debootstrap; this takes a f…\r\n")
		return strings.Contains(live, "s  Retrieving ")
	})
	if len(holders(w.home)) < 3 {
		t.Errorf("only %v run for it: this test would not see what is left", holders(w.home))
	}
	tm.types("\x03")
	if code := exit(t, cmd); code != 1 {
		t.Errorf("interrupted: exit %d", code)
	}
	tm.waits("does not say how it ended", func() bool {
		return strings.HasSuffix(tm.raw(), "\r\x1b[Kwrit: interrupted; no image was made, and the next build goes on from the layers that are done\r\n")
	})
	if left := holders(w.home); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	if left := engineSays(t, e.Host, "/images/json?all=1"); left != "[]" {
		t.Errorf("left images: %s", left)
	}

	shared := rig.Start(t)
	from, tag := unbuilt(t, shared), "writ-sandbox:interrupted"
	s := w.starts("image", "build", "sandbox", "--from", from, "--tag", tag, "--host", shared.Host, "--verbose")
	var container string
	w.eventually("the engine runs no step", func() bool {
		_, step, _ := strings.Cut(s.err.String(), ": RUN ")
		_, id, _ := strings.Cut(step, "Running in ")
		id, _, whole := strings.Cut(id, "\n")
		container = id
		return whole && strings.Contains(engineSays(t, shared.Host, "/containers/"+id+"/json"), `"Running":true`)
	})
	s.cmd.Process.Signal(os.Interrupt)
	if o := s.ends(); o.code != 1 || !strings.Contains(o.err, "writ: interrupted; no image was made") {
		t.Errorf("interrupted: %+v", o)
	}
	w.eventually("the container is left", func() bool {
		return strings.Contains(engineSays(t, shared.Host, "/containers/"+container+"/json"), "No such container")
	})
	if got := engineSays(t, shared.Host, "/images/"+tag+"/json"); !strings.Contains(got, "No such image") {
		t.Errorf("half an image: %s", got)
	}
}

// unbuilt gives an image on which nobody has built: all steps on it run. With --no-cache
// they would too, and take the place of those that other tests find in the cache.
func unbuilt(t *testing.T, e rig.Engine) string {
	t.Helper()
	label := strings.ToLower(rand.Text())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM "+e.Image+"\nLABEL writ.test="+label+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "context.tar")
	if out, err := exec.Command("tar", "-cf", file, "-C", dir, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tag := "writ-unbuilt:" + label
	engineSays(t, e.Host, "/build?t="+tag, "-X", "POST", "-H", "Content-Type: application/x-tar", "-T", file)
	t.Cleanup(func() {
		engineSays(t, e.Host, "/images/"+tag, "-X", "DELETE")
		engineSays(t, e.Host, "/images/prune", "-X", "POST", "-G", "--data-urlencode", `filters={"dangling":["true"],"label":["writ.test=`+label+`"]}`)
	})
	return tag
}

// holders are the processes whose HOME is a world's.
func holders(home string) (out []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		env, _ := os.ReadFile(path)
		if bytes.Contains(env, []byte("HOME="+home+"\x00")) {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
			out = append(out, strings.TrimSpace(string(name)))
		}
	}
	return out
}

// engineSays asks an engine as anybody can.
func engineSays(t *testing.T, host, path string, options ...string) string {
	t.Helper()
	args := append([]string{"-s", "--max-time", "20", "--unix-socket", strings.TrimPrefix(host, "unix://"), "http://engine" + path}, options...)
	out, err := exec.Command("curl", args...).Output()
	if err != nil {
		t.Fatalf("ask the engine for %s: %v", path, err)
	}
	return strings.TrimSpace(string(out))
}
