package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// An agent that is given the operations sees what left its boxes and what would allow the
// rest, the connections it may use, and its boxes; of credentials, addresses and what is
// others' nothing.
func TestAgentSeesItsEgress(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\nallowed: [shell_command, external_api, \"@writ\"]\n", `  other: {workspace: main, level: standard}
connections:
  mine: {base_url: "https://mine.test/", auth: {type: bearer, secret: "store:canary"}}
  theirs: {base_url: "https://theirs.test/", agents: [other]}
`).init()
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "hidden.test": {{lab.Private}}})
	lab.Web(t, lab.Public+":80", nil)
	if o := w.agreed("shell_command", map[string]any{"command": "curl -sm 5 http://good.test/ http://hidden.test/; exit 0", "hosts": []string{"good.test:80", "hidden.test:80"}}); !strings.Contains(o.out, "GET good.test") {
		t.Fatalf("inconclusive: %+v", o)
	}
	list := func(tool string, args map[string]any) string {
		t.Helper()
		o := w.call(tool, args)
		var got struct {
			Status string
			Data   json.RawMessage
		}
		if err := json.Unmarshal([]byte(o.out), &got); err != nil || got.Status != "ok" {
			t.Fatalf("%s: %+v", tool, o)
		}
		return string(got.Data)
	}
	refused := list("writ_egress_list", map[string]any{"verdict": "refused"})
	contains(t, refused, `"hidden.test"`, `"verdict":"address_not_open"`, `egress.hosts.\"hidden.test:80\".ranges`)
	all := list("writ_egress_list", map[string]any{})
	contains(t, all, `"host":"good.test:80"`, `"verdict":"allowed"`)
	connections := list("writ_connections_list", map[string]any{})
	contains(t, connections, `"mine"`, `"mine.test:443"`, `"external_api"`)
	for _, secret := range []string{"canary", "bearer", "theirs", lab.Private, lab.Public} {
		if strings.Contains(refused+all+connections, secret) {
			t.Errorf("%q is told: %s%s%s", secret, refused, all, connections)
		}
	}
}
