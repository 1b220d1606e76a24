package bwrap

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writ-run/writ/sandbox/reach"
)

// TestOptions: the hardening is not left to what the plan is.
func TestOptions(t *testing.T) {
	ws := t.TempDir()
	odd := ws + "/--bind \n\""
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	v := &view{plan: &reach.Plan{Write: []string{odd}, System: reach.SystemDirs}}
	defer v.close()
	if err := v.build(); err != nil {
		t.Fatal(err)
	}
	if _, err := v.options(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(v.files[len(v.files)-1])
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	want := []string{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
		"--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP",
	}
	if diff := cmp.Diff(want, args[:len(want)]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// A name that looks like an option is an operand: it follows what it is one of.
	at := slices.Index(args, inside(odd))
	if at < 2 || args[at-2] != "--bind-fd" || slices.Index(args[at+1:], inside(odd)) >= 0 {
		t.Errorf("the workspace is not bound once by descriptor: %q", args)
	}
	if diff := cmp.Diff([]string{"--remount-ro", "/"}, args[len(args)-2:]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	for said, want := range map[string]string{
		"bwrap: Unknown option --bind-fd\n":                                 "bubblewrap is too old; install one that has --bind-fd (0.10, or an update of an older one for CVE-2024-42472)",
		"bwrap: Creating new namespace failed: Operation not permitted":     "bubblewrap can make no namespaces; allow unprivileged user namespaces (",
		"bwrap: No permissions to create new namespace, likely because...":  "bubblewrap can make no namespaces; allow unprivileged user namespaces (",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted": "bubblewrap cannot mount /proc; in a container do not mask /proc",
		"": "the box could not be set up by bubblewrap",
	} {
		if msg := explain(said); !strings.HasPrefix(msg, want) {
			t.Errorf("%q: %s", said, msg)
		}
	}
}
