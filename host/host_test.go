package host

import (
	"net/netip"
	"strings"
	"testing"
)

// TestZero: a value nobody parsed allows nothing, whichever side it is on.
func TestZero(t *testing.T) {
	example, err := ParseEndpoint("example.com")
	if err != nil {
		t.Fatal(err)
	}
	everything := Patterns{}
	for _, s := range []string{"*", "*.example.com", "example.com", "0.0.0.0/0", "[::/0]"} {
		p, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		everything = append(everything, p)
		if p.Contains(Pattern{}) || (Pattern{}).Contains(p) {
			t.Errorf("%s: contained in or contains the zero Pattern", s)
		}
	}
	if !everything.Match(example) {
		t.Fatal("control: the list does not match example.com:443")
	}
	for _, e := range []Endpoint{{}, {Port: 443}, {Host: example.Host}} {
		if everything.Match(e) {
			t.Errorf("%#v matched", e)
		}
		if e.String() != "" {
			t.Errorf("%#v has the normal form %q", e, e)
		}
	}
	if (Pattern{}).Match(example) || (Pattern{}).Match(Endpoint{}) || Patterns(nil).Match(example) {
		t.Error("the zero Pattern or the nil list matched")
	}
	if _, ok := SpecialName(Host{}); !ok {
		t.Error("the zero Host counts as a public name")
	}
	if Class("").Public() {
		t.Error("the zero Class is public")
	}
	if s := (Host{}).String() + (Pattern{}).String(); s != "" {
		t.Errorf("zero values print %q", s)
	}
}

// TestFromAddr: an address from the resolver is the same host as its text.
func TestFromAddr(t *testing.T) {
	for _, s := range []string{"192.0.2.1", "2001:db8::1", "::ffff:127.0.0.1"} {
		got, err := FromAddr(netip.MustParseAddr(s))
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := Parse(s); got != want || got.String() != s {
			t.Errorf("FromAddr(%s) = %v, want %v", s, got, want)
		}
	}
	for _, addr := range []netip.Addr{{}, netip.MustParseAddr("fe80::1%eth0")} {
		if h, err := FromAddr(addr); err == nil || h != (Host{}) {
			t.Errorf("FromAddr(%v) = %v, %v; want an error and the zero Host", addr, h, err)
		}
	}
}

// TestErrorsHidePasswords: I7, an error never repeats what stood before the @.
func TestErrorsHidePasswords(t *testing.T) {
	_, err := ParseURL("https://user:hunter2@example.com:99999/?q")
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "example.com") {
		t.Errorf("error is %v", err)
	}
}

func BenchmarkClassify(b *testing.B) {
	for _, s := range []string{"8.8.8.8", "169.254.169.254", "2606:4700:4700::1111", "::ffff:127.0.0.1"} {
		addr := netip.MustParseAddr(s)
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Classify(addr)
			}
		})
	}
}
