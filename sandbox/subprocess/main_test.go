//go:build linux

package subprocess_test

import (
	"os"
	"testing"

	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/subprocess"
)

func TestMain(m *testing.M) {
	subprocess.Main()
	if ws := os.Getenv("WRIT_TEST_DAEMON"); ws != "" {
		miniDaemon(ws)
	}
	os.Exit(m.Run())
}

// TestProbe: what is claimed, and what honestly is not.
func TestProbe(t *testing.T) {
	have, err := subprocess.New(subprocess.Options{}).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range have {
		t.Logf("%-16s %-5v %s", f.Feature, f.Enforced, f.Evidence)
		want := true
		switch f.Feature {
		case sandbox.ProcessTable, sandbox.HostAllowlist, sandbox.SSHAgent, sandbox.Containerized:
			want = false
		case sandbox.LimitMemory:
			want = !restrict.RaceBuild
		}
		if f.Enforced != want || f.Evidence == "" {
			t.Errorf("%s: enforced %v, want %v: %s", f.Feature, f.Enforced, want, f.Evidence)
		}
	}
	if len(have) != 16 {
		t.Errorf("%d findings", len(have))
	}
}
