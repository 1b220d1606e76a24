package decide

import (
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
)

// TestOutside: a driver that says nothing lets everything through; what is said of a
// category holds for it alone, and a list names all there is.
func TestOutside(t *testing.T) {
	patterns := func(texts ...string) (out host.Patterns) {
		for _, text := range texts {
			p, err := host.ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, p)
		}
		return out
	}
	on, off := access.Set[bool]{V: true, At: "f:1"}, access.Set[bool]{At: "f:2"}
	of := func(hosts ...string) access.Set[host.Patterns] {
		return access.Set[host.Patterns]{V: patterns(hosts...), At: "f:3"}
	}
	by := func(c action.Category, v access.Set[bool]) map[action.Category]access.Set[bool] {
		return map[action.Category]access.Set[bool]{c: v}
	}
	for _, c := range []struct {
		name    string
		outside *Outside
		host    string
		where   string // of the refusal; empty: none
	}{
		{"nothing said", nil, "a.example:443", ""},
		{"closed", &Outside{Open: off}, "a.example:443", "f:2"},
		{"the zero value", &Outside{}, "a.example:443", "nowhere"},
		{"open", &Outside{Open: on}, "a.example:443", ""},
		{"closed for the category", &Outside{Open: on, ByCategory: by(action.Terminal, off)}, "a.example:443", "f:2"},
		{"open for the category", &Outside{Open: off, ByCategory: by(action.Terminal, on)}, "a.example:443", ""},
		{"open for another", &Outside{Open: off, ByCategory: by(action.Web, on)}, "a.example:443", "f:2"},
		{"listed", &Outside{Open: on, Hosts: of("a.example")}, "a.example:443", ""},
		{"listed with another port", &Outside{Open: on, Hosts: of("a.example:80")}, "a.example:443", "f:3"},
		{"not listed", &Outside{Open: on, Hosts: of("b.example")}, "a.example:443", "f:3"},
		{"listed but closed", &Outside{Open: off, Hosts: of("a.example")}, "a.example:443", "f:2"},
		{"a pattern within another", &Outside{Open: on, Hosts: of("*.example.com")}, "*.a.example.com:443", ""},
		{"a pattern that is wider", &Outside{Open: on, Hosts: of("a.example.com")}, "*.example.com:443", "f:3"},
		{"what is no host", &Outside{Open: on}, "a b", "f:3"},
	} {
		why := c.outside.Refuses(action.Terminal, c.host)
		if c.where == "" && why != (writ.Reason{}) || c.where != "" && (why.Effect != writ.Deny || why.Source != "network") || strings.HasPrefix(c.where, "f:") && c.name != "what is no host" && why.Where != c.where {
			t.Errorf("%s: %+v", c.name, why)
		}
	}
}
