package firejail_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/firejail"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// TestUsersThatItDoesNotTake: root's boxes are nobody's, and a probe of them says so.
func TestUsersThatItDoesNotTake(t *testing.T) {
	need.Programs(t, "firejail")
	need.Root(t)
	const want = "sandbox_unavailable: driver firejail does not take user nobody; run the daemon as an ordinary user, or use driver native"
	_, err := firejail.New(firejail.Options{}).Probe(t.Context())
	if kind, msg := writ.Public(err); kind != writ.SandboxUnavailable || msg != want {
		t.Errorf("%s: %s", kind, msg)
	}
}

// TestWhatItCannotBeTold: a name that a profile would read as something else is refused,
// and so is what firejail has no way to show.
func TestWhatItCannotBeTold(t *testing.T) {
	need.Programs(t, "firejail")
	if os.Getenv("WRIT_TEST_ORDINARY") == "" {
		if text, err := ordinary(t, "-test.run=^TestWhatItCannotBeTold$").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return
	}
	d, dir := firejail.New(firejail.Options{}), scratch(t)
	for name, want := range map[string]string{
		"plain name": "", "star*": "cannot name", "macro${HOME}": "cannot name", "a,b": "cannot name", "line\nread-write /": "cannot name", " lead": "",
		"trail ": "cannot name", "quote\"": "cannot name",
	} {
		ws := filepath.Join(dir, name)
		if err := os.MkdirAll(ws, 0o755); err != nil {
			t.Fatal(err)
		}
		o := sandboxtest.Command(t, d, confined(ws), sandbox.Spec{Argv: []string{"touch", "made"}})
		_, made := os.Stat(filepath.Join(ws, "made"))
		if want == "" && (o.Error != nil || made != nil) || want != "" && (o.Error == nil || !strings.Contains(o.Error.Error(), want) || made == nil) {
			t.Errorf("%q: %v, made: %v", name, o.Error, made)
		}
	}
	below, err := os.MkdirTemp("/var/tmp", "writ-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(below)
	if o := sandboxtest.Command(t, d, confined(below), sandbox.Spec{Argv: []string{"true"}}); writ.KindOf(o.Error) != writ.SandboxUnavailable {
		t.Errorf("below /var/tmp: %v", o.Error)
	}
}

func confined(ws string) writ.Confinement {
	return writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
}

// TestWatch: temporary files that grow beyond their bound end the box, and it is said.
func TestWatch(t *testing.T) {
	need.Programs(t, "firejail")
	if os.Getenv("WRIT_TEST_ORDINARY") == "" {
		if text, err := ordinary(t, "-test.run=^TestWatch$").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return
	}
	d, dir := firejail.New(firejail.Options{}), scratch(t)
	for script, want := range map[string]string{
		"head -c 1M /dev/zero >/tmp/f":                  "",
		"head -c 100M /dev/zero >/tmp/f; sleep 20":      "temporary_space",
		"head -c 100M /dev/zero >/dev/shm/f; sleep 20":  "temporary_space",
		"head -c 100M /dev/zero >$HOME/f; sleep 20":     "temporary_space",
		"cd /tmp; seq 80000 | xargs touch; sleep 20":    "temporary_space",
		"head -c 100M /dev/zero >f; rm f; [ ! -e /x ];": "",
	} {
		o := sandboxtest.Command(t, d, confined(dir), sandbox.Spec{Argv: []string{"bash", "-c", script}})
		if o.Error != nil || o.Exit.Limit != want || (want == "") != (o.Exit.Code == 0) {
			t.Errorf("%s: %v", script, o)
		}
	}
}

// TestReadBelowTmp: a root in /tmp, which firejail mounts on its own, is no more writable
// than others.
func TestReadBelowTmp(t *testing.T) {
	need.Programs(t, "firejail")
	if os.Getenv("WRIT_TEST_ORDINARY") == "" {
		if text, err := ordinary(t, "-test.run=^TestReadBelowTmp$").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return
	}
	below, err := os.MkdirTemp("/tmp", "writ-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(below)
	file := filepath.Join(below, "file")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := confined(scratch(t))
	c.Read = []string{below}
	const script = `cat "$1" && ! chmod 777 "$1" && ! touch -d 2001-01-01 "$1" && ! touch "$1.new"`
	o := sandboxtest.Command(t, firejail.New(firejail.Options{}), c, sandbox.Spec{Argv: []string{"bash", "-c", script, "bash", file}})
	if o.Error != nil || o.Exit.Code != 0 || o.Out != "text" {
		t.Errorf("%v", o)
	}
}
