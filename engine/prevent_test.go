package engine

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/host"
)

// An address that the broker would not dial is known before anybody is asked, and one that
// an operator opened is not taken for such.
func TestUnopened(t *testing.T) {
	pattern, err := host.ParsePattern("10.1.2.3:443")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := host.ParseEndpoint("10.9.9.9:443")
	if err != nil {
		t.Fatal(err)
	}
	r := &rules{cfg: &config.Config{}}
	r.cfg.Egress = []config.Said{{Host: pattern, Ranges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}}
	r.cfg.Git.Inner = []host.Host{inner.Host}
	for _, c := range []struct{ tool, to, says string }{
		{"http_request", "93.184.216.34:443", ""},
		{"http_request", "inner.example:443", ""},
		{"http_request", "10.1.2.3:443", ""},
		{"http_request", "10.1.2.3:80", `egress.hosts."10.1.2.3:80".ranges: [10.1.2.3/32]`},
		{"http_request", "169.254.169.254:80", "class metadata"},
		{"shell_command", "[::1]:443", `egress.hosts."[::1]:443".ranges: [::1/128]`},
		{"git_clone", "10.9.9.9:443", ""},
		{"http_request", "10.9.9.9:443", "class private"},
		{"git_clone", "127.0.0.1:443", "class loopback"},
	} {
		if got := r.unopened(c.tool, c.to); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("%s to %s: %q, want %q", c.tool, c.to, got, c.says)
		}
	}
}
