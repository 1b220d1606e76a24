package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/sandbox/rig"
)

// contained is a world whose shells are containers with a way out; more is laid into
// sandboxing.docker.
func contained(t *testing.T, more string) *world {
	t.Helper()
	e := rig.Start(t)
	return newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\n  file_system: workspace_only\n", fmt.Sprintf(`egress:
  hosts:
    good.test:80: {class: read_only}
    other.test:80: {class: read_only}
    six.test:80: {class: read_only, ipv6: true}
    93.184.216.34:80: {class: read_only}
sandboxing:
  overrides: {terminal: docker}
  docker: {host: %q, image: %q, mount_mode: rw, %s}
`, e.Host, e.Image, more)).init()
}

const bridged = "network_overrides: {terminal: bridge}"

// webs are servers that are there to be reached, or not.
func webs(t *testing.T) *lab.Authority {
	t.Helper()
	ca := lab.NewAuthority(t)
	ca.Trusted(t)
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "other.test": {{lab.Other}}, "bad.test": {{lab.Other}}, "six.test": {{lab.Public6}}, "inner.test": {{lab.Private}}, "meta.test": {{lab.Metadata}}})
	for _, at := range []string{lab.Public, lab.Other, lab.Private, lab.Metadata, "[" + lab.Public6 + "]"} {
		lab.Web(t, at+":80", nil)
	}
	lab.Web(t, lab.Public+":443", ca)
	return ca
}

func (w *world) reaches(command string, hosts ...string) outcome {
	w.t.Helper()
	return w.call("shell_command", map[string]any{"command": command, "hosts": hosts})
}

// A container reaches the hosts of its call and no others, by the same broker as any box,
// and what it did is in the log of that call.
func TestContainerReachesHosts(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	webs(t)
	w := contained(t, bridged)
	const told = "[not let out: bad.test: host_not_allowed (bad.test:80 in hosts, or in reads to read only, would ask for it)]\n"
	got := "GET good.test at " + lab.Public + ":80\n"
	o := w.reaches("curl -sm 9 http://good.test/; curl -sm 9 http://bad.test/; python3 -c 'import urllib.request as u; print(u.urlopen(\"http://good.test/\").read().decode(), end=\"\")'", "good.test:80")
	if o.code != 0 || o.out != got+got+told {
		t.Fatalf("%+v", o)
	}
	var calls []struct{ ID string }
	w.decode(&calls, "", "invocation", "list", "--json")
	seen, log := map[string]bool{}, w.must("", "egress", "log", "--json")
	for d := json.NewDecoder(strings.NewReader(log)); d.More(); {
		var e struct{ Call, Kind, Host, Verdict string }
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if len(calls) != 1 || e.Call != calls[0].ID {
			t.Errorf("whose is %+v? There are %v", e, calls)
		}
		seen[e.Kind+" "+e.Host+" "+e.Verdict] = true
	}
	for _, want := range []string{"dns good.test allowed", "connect good.test:80 allowed", "dns bad.test host_not_allowed"} {
		if !seen[want] {
			t.Errorf("%q is not in the log: %v", want, log)
		}
	}
	// TLS that is looked into is trusted by what is in the image.
	reads := w.call("shell_command", map[string]any{"command": "curl -sSm 9 https://good.test/; env -i /usr/bin/curl -sSm 9 https://good.test/; python3 -c 'import urllib.request as u; print(u.urlopen(\"https://good.test/\").read().decode(), end=\"\")'", "reads": []string{"good.test"}})
	if got := "GET good.test at " + lab.Public + ":443\n"; reads.code != 0 || reads.out != got+got+got {
		t.Errorf("reads: %+v", reads)
	}
	w.verifies()
}
