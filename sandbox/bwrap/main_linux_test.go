package bwrap_test

import (
	"os"
	"testing"

	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox/bwrap"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/sandboxtest"
	"github.com/writ-run/writ/sandbox/wrapped"
)

func TestMain(m *testing.M) {
	probe.Main()
	wrapped.Main()
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	need.Programs(t, "bwrap")
	sandboxtest.Run(t, bwrap.New(bwrap.Options{}))
}
