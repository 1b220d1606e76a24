package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
)

func TestViolation(t *testing.T) {
	none := Globs{Stance: None}
	var hosts host.Patterns
	for _, s := range []string{"example.com", "*.example.org:8443"} {
		h, err := host.ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	split := Policy{Files: Files{Read: Paths("/r/**"), Write: Paths("/w/*")}}
	file := func(side writ.Side, p string) writ.Target {
		return writ.Target{Pointer: "/p", Value: "as written", Side: side, Path: p}
	}
	name := func(h string) writ.Target {
		return writ.Target{Pointer: "/h", Value: h, Kind: writ.TargetHost, Host: h}
	}
	for _, row := range []struct {
		name    string
		policy  Policy
		target  writ.Target
		outside bool
	}{
		{"read side, read", split, file(writ.SideRead, "/r/x"), false},
		{"read side, the directory itself", split, file(writ.SideRead, "/r"), false},
		{"read side, write", split, file(writ.SideRead, "/w/x"), true},
		{"write side, write", split, file(writ.SideWrite, "/w/x"), false},
		{"write side, read", split, file(writ.SideWrite, "/r/x"), true},
		{"write side, deeper", split, file(writ.SideWrite, "/w/x/y"), true},
		{"either side, read", split, file(writ.SideEither, "/r/x"), false},
		{"either side, write", split, file(writ.SideEither, "/w/x"), false},
		{"either side, neither", split, file(writ.SideEither, "/x"), true},
		{"a name that only begins alike", split, file(writ.SideRead, "/rr/x"), true},
		{"read none, write listed", Policy{Files: Files{Read: none, Write: Paths("/w/**")}}, file(writ.SideRead, "/w/x"), true},
		{"read left out once write is declared", Policy{Files: Files{Write: Paths("/w/**")}}, file(writ.SideRead, "/w/x"), true},
		{"write left out once read is declared", Policy{Files: Files{Read: Paths("/**")}}, file(writ.SideWrite, "/x"), true},
		{"none and none", Policy{Files: Files{Read: none, Write: none}}, file(writ.SideEither, "/"), true},
		{"none with globs is none", Policy{Files: Files{Read: Globs{Stance: None, Globs: []string{"/**"}}, Write: none}}, file(writ.SideRead, "/x"), true},
		{"all", Policy{Files: Files{Read: Globs{Stance: All}}}, file(writ.SideRead, "/x"), false},
		{"nothing declared: not engaged", Policy{}, file(writ.SideWrite, "/x"), false},
		{"host listed", Policy{Network: Network{Stance: Listed, Hosts: hosts}}, name("example.com:443"), false},
		{"host and port listed", Policy{Network: Network{Stance: Listed, Hosts: hosts}}, name("a.example.org:8443"), false},
		{"host not listed", Policy{Network: Network{Stance: Listed, Hosts: hosts}}, name("example.net:443"), true},
		{"host that is none", Policy{Network: Network{Stance: Listed, Hosts: hosts}}, name(""), true},
		{"network none", Policy{Network: Network{Stance: None}}, name("example.com:443"), true},
		{"network unspecified", split, name("example.com:443"), true},
		{"network all", Policy{Network: Network{Stance: All}}, name("example.com:443"), false},
		{"unresolved path", Policy{}, writ.Target{Pointer: "/p", Problem: "why"}, true},
		{"unresolved, all declared", Policy{Files: Files{Read: Globs{Stance: All}, Write: Globs{Stance: All}}}, writ.Target{Pointer: "/p", Problem: "why"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.policy.Violation(row.target); (got != "") != row.outside {
				t.Errorf("%q", got)
			}
		})
	}
	for want, target := range map[string]writ.Target{
		`argument /p: path "as written" is outside what the tool declares`:      file(writ.SideRead, "/x"),
		`argument /h: host "example.net:443" is outside what the tool declares`: name("example.net:443"),
		`argument /p: why`: {Pointer: "/p", Problem: "why"},
	} {
		if got := split.Violation(target); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A key of the arguments is part of the pointer; it must not break the one line
// that the model and the ledger get, nor fill it.
func TestViolationIsOneShortLine(t *testing.T) {
	p := Policy{Files: Files{Read: Globs{Stance: None}}}
	for _, pointer := range []string{"/a\nledger: all is well", "/\x1b[2J", "/" + strings.Repeat("k", 100_000), "/\u202e"} {
		for _, target := range []writ.Target{{Pointer: pointer, Value: strings.Repeat("v", 100_000), Path: "/x"}, {Pointer: pointer, Problem: "why"}} {
			got := p.Violation(target)
			if got == "" || len(got) > 1000 || strings.ContainsAny(got, "\n\x1b\u202e") {
				t.Errorf("%.300q (%d bytes)", got, len(got))
			}
		}
	}
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name string
		p    Policy
		want string
	}{
		{"zero", Policy{}, ""},
		{"globs", Policy{Files: Files{Read: Paths("/a/**"), Write: Globs{Stance: None}}}, ""},
		{"listed, no glob", Policy{Files: Files{Read: Globs{Stance: Listed}}}, "filesystem.read: globs are given exactly when the mode is globs"},
		{"none, a glob", Policy{Files: Files{Write: Globs{Stance: None, Globs: []string{"/a"}}}}, "filesystem.write: globs are given exactly when the mode is globs"},
		{"relative", Policy{Files: Files{Read: Paths("a")}}, `filesystem.read: glob "a" is not an absolute, clean path pattern`},
		{"not clean", Policy{Files: Files{Read: Paths("/a/../b")}}, `filesystem.read: glob "/a/../b" is not an absolute, clean path pattern`},
		{"slash at the end", Policy{Files: Files{Read: Paths("/a/")}}, `filesystem.read: glob "/a/" is not an absolute, clean path pattern`},
		{"malformed", Policy{Files: Files{Read: Paths("/a[")}}, `filesystem.read: glob "/a[": it is malformed`},
		{"both sides wrong: read speaks first", Policy{Files: Files{Read: Paths("a"), Write: Paths("b")}}, `filesystem.read: glob "a" is not an absolute, clean path pattern`},
		{"network", Policy{Network: Network{Stance: Listed}}, "network: hosts are given exactly when the mode is hosts"},
		{"environment", Policy{Env: Env{Stance: Listed}}, "environment: variables are given exactly when the mode is vars"},
		{"environment all", Policy{Env: Env{Stance: All}}, "environment: there is no mode all"},
		{"exec listed", Policy{Exec: Listed}, "exec: there is no mode listed"},
		{"no such stance", Policy{Exec: 9}, "exec: there is no mode invalid(9)"},
		{"no such stance of files", Policy{Files: Files{Read: Globs{Stance: 9}}}, "filesystem.read: there is no mode invalid(9)"},
		{"no such stance of network", Policy{Network: Network{Stance: 9}}, "network: there is no mode invalid(9)"},
	} {
		for range 5 {
			got := ""
			if err := row.p.Validate(); err != nil {
				got = err.Error()
			}
			if got != row.want {
				t.Errorf("%s: %q, want %q", row.name, got, row.want)
				break
			}
		}
	}
}

func TestStanceText(t *testing.T) {
	for _, s := range []Stance{Unspecified, None, Listed, All} {
		b, _ := s.MarshalText()
		var back Stance
		if err := back.UnmarshalText(b); err != nil || back != s {
			t.Errorf("%v: %v, %v", s, back, err)
		}
	}
	var p Policy
	for _, text := range []string{`{"exec":"al"}`, `{"exec":""}`, `{"exec":"ALL"}`, `{"exec":0}`} {
		if err := json.Unmarshal([]byte(text), &p); err == nil || p.Exec != Unspecified {
			t.Errorf("%s: %v, %v", text, p.Exec, err)
		}
	}
}
