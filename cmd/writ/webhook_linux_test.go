package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// A webhook's name that leads inside is refused, whatever answers there; one that leads
// outside is not, and neither is one that the operator said the range of.
func TestWebhooksStayOutside(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	ca := lab.NewAuthority(t)
	if err := syscall.Mount(ca.File, "/etc/ssl/certs/ca-certificates.crt", "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	lab.Names(t, map[string][][]string{
		"good.test": {{lab.Public}}, "inner.test": {{lab.Private}}, "cloud.test": {{lab.Metadata}}, "mixed.test": {{lab.Public, lab.Private}},
		"said.test": {{lab.Private}}, "self.test": {{"127.0.0.1"}},
	})
	for _, at := range []string{lab.Public, lab.Private, lab.Metadata, "127.0.0.1"} {
		lab.Web(t, at+":443", ca)
	}
	names := []string{"good", "inner", "cloud", "mixed", "said", "self"}
	var hooks strings.Builder
	for _, n := range names {
		fmt.Fprintf(&hooks, "    %s: {url: 'https://%s.test/hook', format: slack, events: [tool_invocation_denied]}\n", n, n)
	}
	w := newWorld(t, standard, "egress: {hosts: {said.test: {ranges: [10.20.30.0/24]}}}\napprovals:\n  webhooks:\n"+hooks.String()).init()
	for name, want := range map[string]string{
		"good": "", "said": "",
		"inner": "address_not_open: inner.test:443", "cloud": "address_not_open: cloud.test:443", "mixed": "address_not_open: mixed.test:443", "self": "address_not_open: self.test:443",
	} {
		o := w.run("", "webhook", "test", name)
		if want == "" && (o.code != 0 || o.out != name+" took it\n") || want != "" && (o.code != 1 || !strings.Contains(o.err, want)) {
			t.Errorf("%s: %+v, want %q", name, o, want)
		}
	}
	w.call("read_file", map[string]any{"path": "/etc/shadow"})
	w.eventually("what happened is told likewise", func() bool {
		return w.listed("cloud").State == "failing" && strings.Contains(w.listed("cloud").Failure, "address_not_open")
	})
	w.eventually("and is in the log", func() bool {
		return strings.Contains(w.must("", "egress", "log", "--agent", "webhook cloud", "--refused"), "metadata")
	})
}
