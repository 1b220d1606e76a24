package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/sandbox/image"
	"github.com/writ-run/writ/sandbox/rig"
)

// What would be removed is said and stays; then it goes, in words and as JSON.
func TestImagePrune(t *testing.T) {
	e := rig.Own(t)
	w := newWorld(t, standard, "")
	file := filepath.Join(t.TempDir(), "root.tar")
	if out, err := exec.Command("tar", "-cf", file, "-C", w.home, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	imports := func(tag, recipe string) {
		t.Helper()
		cmd := exec.Command("curl", "-sf", "--unix-socket", strings.TrimPrefix(e.Host, "unix://"), "-T", file, "-X", "POST",
			"http://engine/images/create?fromSrc=-&repo="+tag+"&message=made+by+writ+image+build&changes=LABEL+writ.managed=true&changes=LABEL+writ.image=base&changes=LABEL+writ.recipe="+recipe)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	imports("old:1", "sha256:0")
	imports("new:1", image.Digest("base"))
	if out := w.must("", "image", "list", "--host", e.Host); !strings.Contains(out, "old:1") || strings.Count(out, " stale ") != 1 || strings.Count(out, " current ") != 1 {
		t.Errorf("listed\n%s", out)
	}
	if out := w.must("", "image", "prune", "--dry-run", "--host", e.Host); !strings.HasPrefix(out, "would remove base ") || !strings.Contains(out, "(old:1, ") || strings.Count(out, "\n") != 1 {
		t.Errorf("a dry run says %s", out)
	}
	named := newWorld(t, standard, "sandboxing: {docker: {host: '"+e.Host+"', image: 'old:1'}}\n")
	if out := named.must("", "image", "prune"); !strings.HasPrefix(out, "kept base ") || !strings.Contains(out, "(old:1): --keep or the configuration names it\n") {
		t.Errorf("what the configuration names: %s", out)
	}
	var did struct {
		Removed, Kept []imageShown
		DryRun        bool `json:"dry_run"`
	}
	w.decode(&did, "", "image", "prune", "--host", e.Host, "--json")
	if len(did.Removed) != 1 || did.Removed[0].Tags[0] != "old:1" || len(did.Kept) != 0 || did.DryRun {
		t.Errorf("removed %+v", did)
	}
	if out := w.must("", "image", "prune", "--all", "--keep", "new:1", "--host", e.Host); !strings.HasPrefix(out, "kept base ") || !strings.HasSuffix(out, ": --keep or the configuration names it\nthere is nothing to remove\n") {
		t.Errorf("with --keep: %s", out)
	}
	var left []struct{ RepoTags []string }
	if err := json.Unmarshal([]byte(engineSays(t, e.Host, "/images/json")), &left); err != nil || len(left) != 1 || left[0].RepoTags[0] != "new:1" {
		t.Errorf("left %+v (%v)", left, err)
	}
}
