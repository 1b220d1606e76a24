package docker

import (
	"os"
	"testing"
	"time"

	"github.com/writ-run/writ/sandbox"
)

// A box that reaches hosts is claimed where one really was led out, and not without an
// outlet.
func TestProbeNetwork(t *testing.T) {
	o := options(t)
	d := driver(t, o)
	began := time.Now()
	found := d.probeNetwork(t.Context(), program(t))
	t.Logf("%v %s", time.Since(began), found.Evidence)
	if !found.Enforced {
		t.Errorf("%+v", found)
	}
	o.Outlet = nil
	if found := driver(t, o).probeNetwork(t.Context(), program(t)); found.Enforced || found.Feature != sandbox.HostAllowlist {
		t.Errorf("%+v", found)
	}
}

func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}
