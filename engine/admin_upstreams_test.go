package engine

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/config"
)

// An agent sees the servers that have a tool for it, and of them those tools; where they
// are, and why one fails, it does not.
func TestAdministrationUpstreams(t *testing.T) {
	text := strings.Replace(agentsText, "agents:\n", `agents:
  boss: {workspace: main, allowed: ["@writ", "@one", two__look]}
  plain: {workspace: main, allowed: ["@writ"]}
`, 1) + "upstreams:\n"
	for _, name := range []string{"one", "two", "three"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		answering(t, l, "look", "peek")
		text += "  " + name + ": {url: 'http://" + l.Addr().String() + "/s3cret'}\n"
	}
	f := newFixture(t, text, Options{})
	for _, name := range []string{"one", "two", "three"} {
		f.shown(name, "ready")
	}
	f.must(f.AcceptUpstream(t.Context(), "two", map[string]string{"two__look": f.shown("two", "ready").Tools[0].Digest}, f.alice()))

	since := f.shown("two", "ready").Since
	none := func(name string) string {
		return fmt.Sprintf(`{"domain_code":"not_found","error_type":"NotFoundError","message":"there is no server \"%s\" of yours; writ_upstreams_list shows them","status":"error"}`, name)
	}
	for _, c := range []struct {
		who, op string
		args    object
		want    string
	}{
		{"boss", "writ_upstreams_list", object{}, `{"data":[{"kind":"http","name":"one","state":"ready","tools":2},{"kind":"http","name":"two","state":"ready","tools":1}],"pagination":{"limit":50,"offset":0,"total":2},"status":"ok"}`},
		{"boss", "writ_upstreams_list", object{"limit": 1, "offset": 1}, `{"data":[{"kind":"http","name":"two","state":"ready","tools":1}],"pagination":{"limit":1,"offset":1,"total":2},"status":"ok"}`},
		{"boss", "writ_upstreams_show", object{"server": "two"}, `{"data":{"kind":"http","name":"two","since":"` + since + `","state":"ready","tools":[{"dangerous":false,"egress_class":"read_only","name":"two__look","state":"accepted","title":""}]},"status":"ok"}`},
		{"boss", "writ_upstreams_test", object{"server": "two"}, `{"data":{"name":"two","works":true},"status":"ok"}`},
		{"boss", "writ_upstreams_show", object{"server": "three"}, none("three")},
		{"boss", "writ_upstreams_test", object{"server": "three"}, none("three")},
		{"boss", "writ_upstreams_test", object{"server": "thre"}, none("thre")},
		{"plain", "writ_upstreams_list", object{}, `{"data":[],"pagination":{"limit":50,"offset":0,"total":0},"status":"ok"}`},
		{"plain", "writ_upstreams_show", object{"server": "one"}, none("one")},
		{"boss", "writ_upstreams_accept", sure(object{"server": "one"}), `{"domain_code":"forbidden","error_type":"ForbiddenError","message":"only a person does this: writ upstream accept NAME","status":"error"}`},
	} {
		res := f.says(c.op, c.args, by(c.who))
		if diff := cmp.Diff(c.want, res.Content); diff != "" {
			t.Errorf("%s %s %v: %s", c.who, c.op, c.args, diff)
		}
	}
	for _, name := range []string{"one__look", "one__peek", "two__peek"} {
		if got := f.at().held[name]; !strings.Contains(got, "is new and suspended") {
			t.Errorf("%s: %q", name, got)
		}
	}
	// A child sees what both its list and its parent's permit.
	_, boss := f.token("boss")
	kid := f.child(boss, "kid", config.Request{Allowed: list("@writ", "@two", "@three")})
	if got := f.says("writ_upstreams_list", object{}, as(kid)).Content; !strings.Contains(got, `"data":[{"kind":"http","name":"two","state":"ready","tools":1}]`) {
		t.Error(got)
	}
}

// Of a server that does not work no more is said than that; one is tested at a time.
func TestAdministrationUpstreamDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := newFixture(t, strings.Replace(agentsText, "agents:\n", "agents:\n  boss: {workspace: main, allowed: [\"@writ\", \"@down\"]}\n", 1)+
		"upstreams: {down: {url: 'http://"+l.Addr().String()+"/s3cret', connect_timeout: 1s, call_timeout: 1s}}\n", Options{})
	var said [2]string
	each(2, func(i int) { said[i] = f.says("writ_upstreams_test", object{"server": "down"}, by("boss")).Content })
	slices.Sort(said[:])
	want := [2]string{`{"data":{"name":"down","works":false},"status":"ok"}`, `{"domain_code":"conflict","error_type":"ConflictError","message":"a server is being tested; ask again in a moment","status":"error"}`}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	u := f.shown("down", "failed")
	got := f.says("writ_upstreams_show", object{"server": "down"}, by("boss")).Content
	if !strings.Contains(got, `"name":"down"`) || strings.Contains(got, "s3cret") || strings.Contains(got, l.Addr().String()) || u.Failed == "" || strings.Contains(got, u.Failed) {
		t.Errorf("%s, where the operator is told %s", got, u.Failed)
	}
}
