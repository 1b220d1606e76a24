package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/moby/moby/client"
	"github.com/writ-run/writ/need"
)

// Engine is where an engine listens, and an image that it has.
type Engine struct {
	Host  string // unix://...
	Image string // what 'writ image build sandbox' makes: Debian with bash, python3, node, git, rg, jq, ps, curl
}

// idle is for how many seconds nobody uses the engine before it ends.
const idle = 30

// Start gives a test the engine that all tests share, started where it does not run. Its
// containers have no network but the host's: tests use NetworkMode none. A test removes
// the containers it made; those of tests that were killed are gone when the engine starts
// the next time. A test that runs in a lab calls it before lab.Run too: the image is made
// of packages, which a lab does not reach.
func Start(t testing.TB) Engine {
	t.Helper()
	needs(t)
	cache := os.Getenv("WRIT_TEST_CACHE")
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(dir, "writ-test")
	}
	e, unlock := start(t, filepath.Join(cache, "docker"), idle)
	defer unlock()
	e.Image = made(t, e)
	return e
}

// Runsc is Start for a test that has runtime runsc. An engine that was started before that
// was installed does not know it.
func Runsc(t testing.TB) Engine {
	t.Helper()
	need.Programs(t, "runsc")
	e := Start(t)
	c := dial(t, e)
	defer c.Close()
	info, err := c.Info(t.Context(), client.InfoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := info.Info.Runtimes["runsc"]; !known {
		need.Lacking(t, "the engine of the tests was started without runsc; it ends when no test has used it for %d seconds", idle)
	}
	return e
}

func needs(t testing.TB) {
	t.Helper()
	need.Root(t)
	for _, program := range []string{"dockerd", "debootstrap", "flock", "nsenter", "unshare"} {
		_, err := exec.LookPath(program)
		if _, missing := os.Stat("/usr/sbin/" + program); err != nil && missing != nil {
			need.Lacking(t, "%s is not installed", program)
		}
	}
}
