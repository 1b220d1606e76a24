package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// What the daemon reaches on its own account is held to the rules for hosts: a name that an
// operator wrote and somebody else lets lead into this network is refused.
func TestDaemonReachesByRule(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	const said = "    inside.test: {class: write}\n"
	w := newWorld(t, "role: developer\n", "upstreams:\n  inner: {url: \"https://inside.test/mcp\"}\n"+
		"egress:\n  hosts:\n"+said)
	w.edit("listen: 127.0.0.1:0\n", "listen:\n  address: 127.0.0.1:8399\n  oauth: {issuer: \"https://idp.test\", audience: \"http://127.0.0.1:8399\", subjects: {robot: coder}}\n")
	lab.Names(t, map[string][][]string{"inside.test": {{lab.Private}}, "idp.test": {{lab.Metadata}}})
	a := lab.NewAuthority(t)
	lab.Web(t, lab.Private+":443", a)
	lab.Web(t, lab.Metadata+":443", a)
	w.init()
	logged := func(parts ...string) func() bool {
		return func() bool {
			for line := range strings.Lines(w.must("", "egress", "log", "--json")) {
				all := true
				for _, p := range parts {
					all = all && strings.Contains(line, p)
				}
				if all {
					return true
				}
			}
			return false
		}
	}
	w.eventually("the server's address is refused", logged(`"agent":"upstreams.inner"`, "inside.test:443", "address_not_open"))

	req, err := http.NewRequest("GET", "http://127.0.0.1:8399/v1/tools", nil)
	if err != nil {
		t.Fatal(err)
	}
	// A header and claims that could be right, so that the keys are asked for.
	req.Header.Set("Authorization", "Bearer eyJhbGciOiJFZERTQSIsImtpZCI6ImEiLCJ0eXAiOiJhdCtqd3QifQ."+
		"eyJpc3MiOiJodHRwczovL2lkcC50ZXN0IiwiYXVkIjoiaHR0cDovLzEyNy4wLjAuMTo4Mzk5Iiwic3ViIjoicm9ib3QiLCJleHAiOjQwMDAwMDAwMDAsImlhdCI6MTcwMDAwMDAwMH0.AAAA")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	w.eventually("the issuer's address is refused", logged(`"agent":"listen.oauth"`, "idp.test:443", "address_not_open"))

	w.edit(said, "    inside.test: {class: write, ranges: [10.0.0.0/8]}\n")
	w.must("", "config", "reload")
	w.eventually("with the range said it is reached", logged(`"agent":"upstreams.inner"`, lab.Private+":443", `"verdict":"allowed"`))
}
