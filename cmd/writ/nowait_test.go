package main

import (
	"strings"
	"testing"

	"github.com/writ-run/writ/cli"
)

// A call that does not wait prints the request's id on standard output and nothing else
// there, so that a script can take it; one that nobody is asked about prints its result.
func TestNoWaitPrintsTheID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asking, "").init()
	o := w.run("", "call", "write_file", "path=a", "content=1", "--no-wait")
	id := w.pending()
	if o.code != cli.ExitPending || o.out != id+"\n" || o.err != "left pending "+id+"; make the same call again to take it up\n" {
		t.Errorf("%+v, want %s", o, id)
	}
	if o := w.run("", "call", "list_directory", "--no-wait"); o.code != 0 || strings.Contains(o.out, "call_") || o.err != "" {
		t.Errorf("nobody is asked: %+v", o)
	}
	script := `export WRIT_TOKEN=` + w.token + `; ID=$(` + program + ` call write_file path=b content=2 --no-wait 2>err); echo "code $?"; ` + program + ` approval show "$ID"`
	if o := w.bash(script, ""); o.code != 0 || !strings.Contains(o.out, "code 4\n") || !strings.Contains(o.out, "/path = b\n") {
		t.Errorf("in a script: %+v", o)
	}
}

// What led to a request names each call; of a tool that does not exist no name was kept.
func TestWhatLedHereOfNoTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asking, "").init()
	w.must("", "call", "list_directory")
	if o := w.run("", "call", "no_such_thing"); o.code == 0 {
		t.Fatalf("%+v", o)
	}
	id := strings.TrimSpace(w.run("", "call", "write_file", "path=a", "content=1", "--no-wait").out)
	_, led, ok := strings.Cut(w.must("", "approval", "show", id), "what led here (newest first)\n")
	lines := strings.Split(led, "\n")
	if !ok || len(lines) < 2 || !strings.Contains(lines[0], "  (no such tool)  ") || !strings.Contains(lines[1], "  list_directory  ") {
		t.Errorf("%q", led)
	}
}
