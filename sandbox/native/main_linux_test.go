package native_test

import (
	"os"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	probe.Main()
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	d := native.New(native.Options{})
	t.Cleanup(func() { d.Close() })
	if _, err := d.Probe(t.Context()); err != nil && strings.Contains(err.Error(), "no launcher") {
		need.Lacking(t, "%v", err)
	}
	sandboxtest.Run(t, d)
}
