package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-run/writ/egress/lab"
)

// sample is one line of what Prometheus reads.
var sample = regexp.MustCompile(`^([a-z_]+(?:\{[a-z]+="[^"\\]*"(?:,[a-z]+="[^"\\]*")*\})?) (\d+)$`)

// metrics are the counters and gauges of the daemon, by name and labels.
func (w *world) metrics() map[string]int {
	w.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.state("writ.sock"))
	}
	c := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	resp, err := c.Get("http://writ/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		w.t.Fatalf("%v %v: %s", err, resp.Header, body)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			w.t.Fatalf("this does not read: %q", line)
		}
		out[m[1]], _ = strconv.Atoi(m[2])
	}
	return out
}

// What is refused is counted, by name, and so is what is let through; nothing that an agent
// wrote is a label.
func TestMetrics(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	r := receive(t, "", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(500)
		}
	})
	w := newWorld(t, "role: developer\nlevel: elevated\ndenied: [stat]\noverrides:\n  terminal: full\n", hookedTo(t, r.at, ", events: [tool_invocation_denied]")).init()
	lab.Names(t, map[string][][]string{"good.test": {{lab.Public}}, "bad.test": {{lab.Other}}})
	lab.Web(t, lab.Public+":80", nil)
	w.must("", "doctor")
	before := w.metrics()
	for _, name := range []string{
		`writ_egress_events_total{verdict="allowed"}`, `writ_egress_events_total{verdict="host_not_allowed"}`, `writ_egress_events_total{verdict="address_not_open"}`, `writ_egress_sent_bytes_total`,
		`writ_calls_total{outcome="ok"}`, `writ_calls_total{outcome="denied"}`, `writ_decisions_total{effect="ask"}`, `writ_approvals_pending`, `writ_sandboxes{state="running"}`,
		`writ_webhook_deliveries_total{webhook="ops",result="taken"}`, `writ_webhook_failing{webhook="ops"}`,
	} {
		if n, there := before[name]; !there || n != 0 {
			t.Errorf("%s is %d, %v before anything happened", name, n, there)
		}
	}
	call := func() outcome {
		return w.call("shell_command", map[string]any{"command": "curl -sm 5 http://good.test/; curl -sm 5 http://bad.test/; exit 0", "hosts": []string{"good.test:80"}})
	}
	if o := call(); o.code != 4 {
		t.Fatalf("%+v", o)
	}
	if n := w.metrics()["writ_approvals_pending"]; n != 1 {
		t.Errorf("%d wait", n)
	}
	w.approves(w.pending())
	if o := call(); o.code != 0 || !strings.HasPrefix(o.out, "GET good.test") {
		t.Fatalf("%+v", o)
	}
	w.call("stat", map[string]any{"path": "."})
	w.eventually("all of it is counted", func() bool {
		m := w.metrics()
		return m[`writ_egress_events_total{verdict="host_not_allowed"}`] > 0 && m[`writ_egress_events_total{verdict="allowed"}`] > 0 && m[`writ_egress_sent_bytes_total`] > 0 && m[`writ_egress_received_bytes_total`] > 0 &&
			m[`writ_calls_total{outcome="ok"}`] == 1 && m[`writ_calls_total{outcome="denied"}`] == 1 && m[`writ_decisions_total{effect="ask"}`] == 1 && m[`writ_decisions_total{effect="deny"}`] == 1 && m["writ_approvals_pending"] == 0 &&
			m[`writ_webhook_deliveries_total{webhook="ops",result="failed"}`] == 1 && m[`writ_webhook_deliveries_total{webhook="ops",result="taken"}`] == 1 && m[`writ_webhook_failing{webhook="ops"}`] == 0
	})
	for name := range w.metrics() {
		for _, word := range []string{"good.test", "bad.test", "coder", "shell_command"} {
			if strings.Contains(name, word) {
				t.Errorf("%s names %s", name, word)
			}
		}
	}
	if len(w.metrics()) != len(before) {
		t.Error("what happened made new series")
	}
}
