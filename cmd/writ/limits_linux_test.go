package main

import (
	"strings"
	"testing"
)

// The limits that a definition sets on all processes together end a call, which says so;
// without them the same goes on to its own end.
func TestDefinedLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	// Two seconds on the processors, however many want them.
	const busy = `while s=($(</proc/$$/stat)); ((s[13]+s[14]<200)); do for ((i=0;i<20000;i++)); do :; done; done; echo through`
	const fill = `for i in $(seq 60); do head -c 1M /dev/zero >part; sleep 0.02; done; echo through`
	tools := []struct{ name, limits, code, says string }{
		{"busy_bounded", "{cpu_time: 1s}", busy, "[ended: it used more time on the processors than it may]"},
		{"busy_free", "{timeout: 20s}", busy, "through"},
		{"fill_bounded", "{disk: 8MiB}", fill, "[ended: it wrote more to the disk than it may]"},
		{"fill_free", "{timeout: 20s}", fill, "through"},
	}
	var names []string
	for _, x := range tools {
		w.place("tools/"+x.name+".yaml", `name: `+x.name+`
description: Uses something.
category: file_system
action_type: code:write
egress_class: none
policy: {risk: low, filesystem: {read: ["`+w.ws+`/**"], write: ["`+w.ws+`/**"]}, exec: allow}
limits: `+x.limits+`
parameters: {type: object, properties: {}, additionalProperties: false}
runner: {process: {argv: [bash, -c, '`+x.code+`']}}
`)
		names = append(names, x.name)
	}
	w.accept(names...)
	for _, x := range tools {
		if o := w.call(x.name, map[string]any{}); !strings.Contains(o.out, x.says) {
			t.Errorf("%s: %+v", x.name, o)
		}
	}
}
