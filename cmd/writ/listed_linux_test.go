package main

import (
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
)

// The programs that terminal: restricted_commands names run by those names, whatever
// symlinks they are; others do not, nor do scripts of the workspace.
func TestRestrictedCommandsRun(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3", "awk", "npm", "make", "perl")
	for _, driver := range []string{"native", "bwrap", "subprocess"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only}\n", "sandboxing: {default_backend: "+driver+"}\n").init()
			for command, want := range map[string]string{
				"python3 -c 'print(6*7)'":                                    "42",
				"awk 'BEGIN { print 6*7 }'":                                  "42",
				"npm --version | grep -c '[.]'":                              "1",
				"printf 'x:\\n\\t@echo made $$((6*7))\\n' >Makefile && make": "made 42",
				"/bin/ls -d /usr && sh -c 'echo shell'":                      "shell",
				"echo 'print(6*7)' >p.py && python3 p.py":                    "42",
			} {
				if o := w.shell(command); o.code != 0 || !strings.Contains(o.out, want) {
					t.Errorf("%s: %+v", command, o)
				}
			}
			for _, command := range []string{"perl -e 'print 6*7'", "printf '#!/bin/sh\\necho 42\\n' >s && chmod +x s && ./s", "cp /usr/bin/env e && ./e echo 42"} {
				if o := w.shell(command); o.code == 0 || strings.Contains(o.out, "42") {
					t.Errorf("%s: %+v", command, o)
				}
			}
		})
	}
}
