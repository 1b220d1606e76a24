package git

import (
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]struct{ normal, endpoint, name string }{
		"https://Forge.test/org/x.git":         {"https://forge.test/org/x.git", "forge.test:443", "x"},
		"https://forge.test:8443/x":            {"https://forge.test:8443/x", "forge.test:8443", "x"},
		"https://forge.test/a%20b/x":           {"https://forge.test/a%20b/x", "forge.test:443", "x"},
		"https://forge.test/x/":                {"https://forge.test/x/", "forge.test:443", "x"},
		"https://forge.test/.git":              {"https://forge.test/.git", "forge.test:443", ""},
		"HTTPS://93.184.216.34/x":              {"https://93.184.216.34/x", "93.184.216.34:443", "x"},
		"https://[2606:2800:220::1]/x":         {"https://[2606:2800:220::1]/x", "[2606:2800:220::1]:443", "x"},
		"ssh://forge.test/org/x":               {"ssh://forge.test/org/x", "forge.test:22", "x"},
		"ssh://git@forge.test:2222/x.git":      {"ssh://git@forge.test:2222/x.git", "forge.test:2222", "x"},
		"ssh://git@[2606:2800:220::1]/x":       {"ssh://git@[2606:2800:220::1]/x", "[2606:2800:220::1]:22", "x"},
		"ssh://git@forge.test/~bob/x":          {"ssh://git@forge.test/~bob/x", "forge.test:22", "x"},
		"git@forge.test:org/x.git":             {"git@forge.test:org/x.git", "forge.test:22", "x"},
		"git@forge.test:/srv/x.git":            {"ssh://git@forge.test/srv/x.git", "forge.test:22", "x"},
		"forge.test:x":                         {"forge.test:x", "forge.test:22", "x"},
		"git@forge.test:~bob/x":                {"ssh://git@forge.test/~bob/x", "forge.test:22", "x"},
		"https://xn--bcher-kva.test/x":         {"https://xn--bcher-kva.test/x", "xn--bcher-kva.test:443", "x"},
		"https://b\u00fccher.test/x":           {"https://xn--bcher-kva.test/x", "xn--bcher-kva.test:443", "x"},
		"ssh://git@forge.test/v3/org/proj/x=1": {"ssh://git@forge.test/v3/org/proj/x=1", "forge.test:22", ""},
	} {
		u, err := ParseURL(text)
		if err != nil || u.String() != want.normal || u.Endpoint().String() != want.endpoint || u.name() != want.name {
			t.Errorf("%s: %q %q %q %v, want %q", text, u, u.Endpoint(), u.name(), err, want)
			continue
		}
		if again, err := ParseURL(u.String()); err != nil || again != u {
			t.Errorf("%s: its own form %s reads as %v %v", text, u, again, err)
		}
	}
}

// Whatever is accepted is put together of plain characters, is read again as the same, and
// cannot be an option, another transport or another host to git.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"https://forge.test/x", "ssh://git@forge.test/~/x", "git@forge.test:x", "ext::sh -c x", "file:///x", "http://h/x", "-oProxyCommand=x", "https://a:b@c/d",
		"https://a@b@c/d", "ssh://-h/x", "a:b:c", "c:/x", "https://[::1]/x", "https://h/%2e%2e/x", "fd::17", "ssh://h:22x/y", "https://h\x00/x", "user@:x", "@h:x", "[h]:x", "https:///x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURL(s)
		if err != nil {
			return
		}
		normal := u.String()
		again, err := ParseURL(normal)
		if err != nil || again != u {
			t.Fatalf("%q is %q, which reads as %v %v", s, normal, again, err)
		}
		if normal[0] == '-' || strings.Contains(normal, "::") && !strings.Contains(normal, "[") || strings.ContainsAny(normal, " '\"\\`$&|;<>(){}!*?#\n\x00") {
			t.Fatalf("%q is %q", s, normal)
		}
		if _, _, ssh := u.SSH(); ssh != !strings.HasPrefix(normal, "https://") || u.Endpoint().String() == "" {
			t.Fatalf("%q is %q at %q", s, normal, u.Endpoint())
		}
	})
}
