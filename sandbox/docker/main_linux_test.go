package docker

import (
	"os"
	"testing"

	"github.com/writ-run/writ/sandbox/probe"
)

func TestMain(m *testing.M) {
	probe.Main()
	Main()
	os.Exit(m.Run())
}
