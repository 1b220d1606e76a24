package host

import (
	"bufio"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
)

// seed adds the published vectors of one kind, so that fuzzing starts from every
// trick that is already known.
func seed(f *testing.F, kind string, add func(in []string)) {
	file, err := os.Open("testdata/vectors.txt")
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		columns := strings.Split(lines.Text(), "\t")
		if columns[0] != kind {
			continue
		}
		inputs := columns[1 : len(columns)-1]
		for i, in := range inputs {
			if plain, err := strconv.Unquote(in); err == nil && in[0] == '"' {
				inputs[i] = plain
			}
		}
		add(inputs)
	}
	if err := lines.Err(); err != nil {
		f.Fatal(err)
	}
}

// oneLine is what every error promises: short, ASCII, one line.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("error is not one short line of ASCII: %q", err)
	}
}

func FuzzParse(f *testing.F) {
	seed(f, "parse", func(in []string) { f.Add(in[0]) })
	f.Fuzz(func(t *testing.T, s string) {
		h, err := Parse(s)
		if err != nil {
			if h != (Host{}) {
				t.Errorf("Parse(%q) gave %v and an error", s, h)
			}
			oneLine(t, err)
			return
		}
		again, err := Parse(h.String())
		if err != nil || again != h {
			t.Errorf("Parse(%q) is %q, which parses to %q, %v", s, h, again, err)
		}
		name, isName := h.Name()
		addr, isAddr := h.Addr()
		if isName == isAddr {
			t.Fatalf("Parse(%q) is a name: %v, an address: %v", s, isName, isAddr)
		}
		if isAddr {
			if addr.Zone() != "" || Classify(addr) == Invalid || Classify(addr) == Zoned {
				t.Errorf("Parse(%q) is %v", s, addr)
			}
			return
		}
		if len(name) > 253 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
			t.Errorf("Parse(%q) is the name %q", s, name)
		}
		for label := range strings.SplitSeq(name, ".") {
			if label == "" || len(label) > 63 || label != strings.Trim(label, "-") {
				t.Errorf("Parse(%q) has the label %q", s, label)
			}
		}
		// What was written in ASCII is not another name afterwards.
		if isASCII(s) && !strings.EqualFold(s, name) {
			t.Errorf("Parse(%q) is the name %q", s, name)
		}
		// No structure appears that was not written.
		if strings.Count(s, ".") != strings.Count(name, ".") {
			t.Errorf("Parse(%q) is %q: another number of dots", s, name)
		}
	})
}

func FuzzEndpoint(f *testing.F) {
	seed(f, "endpoint", func(in []string) { f.Add(in[0]) })
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEndpoint(s)
		if err != nil {
			if e != (Endpoint{}) {
				t.Errorf("ParseEndpoint(%q) gave %v and an error", s, e)
			}
			oneLine(t, err)
			return
		}
		again, err := ParseEndpoint(e.String())
		if err != nil || again != e || e.Port == 0 {
			t.Errorf("ParseEndpoint(%q) is %q, which parses to %q, %v", s, e, again, err)
		}
	})
}

func FuzzURL(f *testing.F) {
	seed(f, "url", func(in []string) { f.Add(in[0]) })
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseURL(s)
		if err != nil {
			if e != (Endpoint{}) {
				t.Errorf("ParseURL(%q) gave %v and an error", s, e)
			}
			oneLine(t, err)
			return
		}
		u, err := url.Parse(s)
		if err != nil {
			t.Fatalf("ParseURL(%q) is %v, net/url refuses: %v", s, e, err)
		}
		h, err := Parse(u.Hostname())
		if err != nil || h != e.Host || u.User != nil {
			t.Errorf("ParseURL(%q) is %v, net/url has the host %q (%v) and user %v", s, e, u.Hostname(), err, u.User)
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		if port != strconv.Itoa(int(e.Port)) {
			t.Errorf("ParseURL(%q) is %v, net/url has the port %q", s, e, port)
		}
	})
}

func FuzzPattern(f *testing.F) {
	seed(f, "pattern", func(in []string) { f.Add(in[0], "*.example.com") })
	seed(f, "contains", func(in []string) { f.Add(in[0], in[1]) })
	seed(f, "match", func(in []string) { f.Add(in[0], in[1]) })
	f.Fuzz(func(t *testing.T, s1, s2 string) {
		p, err := ParsePattern(s1)
		if err != nil {
			if p != (Pattern{}) {
				t.Errorf("ParsePattern(%q) gave %v and an error", s1, p)
			}
			oneLine(t, err)
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again != p || !p.Contains(p) {
			t.Errorf("ParsePattern(%q) is %q, which parses to %q, %v", s1, p, again, err)
		}
		q, err := ParsePattern(s2)
		if err != nil {
			return
		}
		for _, e := range append(samples(p), samples(q)...) {
			if p.Contains(q) && q.Match(e) && !p.Match(e) {
				t.Errorf("%v contains %v, but only the second matches %v", p, q, e)
			}
			if q.Contains(p) && p.Match(e) && !q.Match(e) {
				t.Errorf("%v contains %v, but only the second matches %v", q, p, e)
			}
			if p.kind == public && p.Match(e) && !isPublic(e.Host) {
				t.Errorf("%v matches %v", p, e)
			}
		}
	})
}

// samples are endpoints in and around a pattern: edges of its range, names above,
// at and below its domain, below suffixes and below special names.
func samples(p Pattern) []Endpoint {
	hosts := []string{
		"example.com", "localhost", "8.8.8.8", "127.0.0.1", "169.254.169.254", "168.63.129.16",
		"[::1]", "[::ffff:8.8.8.8]", "[2606:4700::5efe:a00:1]", "[2606:4700:4700::1111]", p.host.name,
	}
	for _, label := range []string{"a", "a.b", "s3", "bucket.s3", "kubernetes.default", "compute-1", "x.compute", "github", "localhost"} {
		hosts = append(hosts, label+"."+p.host.name)
	}
	var endpoints []Endpoint
	for _, s := range hosts {
		if h, err := Parse(s); err == nil {
			endpoints = append(endpoints, Endpoint{h, p.port})
		}
	}
	if _, ok := p.host.Addr(); ok {
		endpoints = append(endpoints, Endpoint{p.host, p.port})
	}
	for _, addr := range edges(p.prefix) {
		if h, err := FromAddr(addr); err == nil {
			endpoints = append(endpoints, Endpoint{h, p.port}, Endpoint{h, 443})
		}
	}
	return endpoints
}

// edges are the first and the last address of a range and their neighbours.
func edges(p netip.Prefix) []netip.Addr {
	if !p.IsValid() {
		return nil
	}
	last := p.Addr().AsSlice()
	for i := p.Bits(); i < len(last)*8; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	end, _ := netip.AddrFromSlice(last)
	return []netip.Addr{p.Addr(), p.Addr().Prev(), p.Addr().Next(), end, end.Prev(), end.Next()}
}
