package native_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/sshagent"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	probe.Main()
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	d := native.New(native.Options{Outlet: outlet})
	t.Cleanup(func() { d.Close() })
	needLauncher(t, d)
	sandboxtest.Run(t, d)
}

// outlet leads nowhere, and has an agent of ssh without a key.
func outlet(_ writ.Writ, m sandbox.Mouth) (io.Closer, error) {
	return struct {
		io.Closer
		*sshagent.Agent
	}{egress.New(egress.Options{}).Open(egress.Run{}).Serve(m), &sshagent.Agent{}}, nil
}

// needLauncher ends a test of a build that make did not do.
func needLauncher(t *testing.T, d *native.Driver) {
	t.Helper()
	if _, err := d.Probe(t.Context()); err != nil && strings.Contains(err.Error(), "no launcher") {
		need.Lacking(t, "%v", err)
	}
}
