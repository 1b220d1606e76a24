package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A command that finds no program is told that programs are left out, and by what, where
// they are: in a call, and in a job.
func TestProgramsLeftOut(t *testing.T) {
	t.Parallel()
	const told = "[programs are left out: terminal: restricted_commands runs those of tool_access.restricted_commands alone; the operator can add one there, or give the agent terminal: full]\n"
	w := newWorld(t, free+"overrides: {terminal: restricted_commands}\n", "").init()
	for command, want := range map[string]bool{"perl -e 1": true, "/usr/bin/perl -e 1": true, "echo here": false, "exit 1": false} {
		if o := w.shell(command); strings.Contains(o.out+o.err, told) != want {
			t.Errorf("%s: %+v", command, o)
		}
	}
	started := w.call("shell_command", map[string]any{"command": "perl -e 1", "background": true})
	id := regexp.MustCompile(`job_\w+`).FindString(started.out)
	waitFor(t, func() bool {
		o := w.call("shell_job", map[string]any{"do": "output", "job": id})
		return strings.Contains(o.out+o.err, told)
	})
	text := readAll(w.config)
	for _, change := range []string{"tool_access: {restricted_commands: [coreutils, perl]}\n", ""} {
		changed := text + change
		if change == "" {
			changed = strings.Replace(text, "terminal: restricted_commands", "terminal: full", 1)
		}
		if err := os.WriteFile(w.config, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		w.must("", "config", "reload")
		if o := w.shell("perl -e 'print 6*7'"); o.code != 0 || !strings.HasPrefix(o.out, "42") {
			t.Errorf("what it says to do does not help: %q %+v", change, o)
		}
	}
	if o := w.shell("nonsense"); o.code == 0 || strings.Contains(fmt.Sprint(o), told) {
		t.Errorf("where every program is there: %+v", o)
	}
}
