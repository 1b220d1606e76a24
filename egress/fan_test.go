package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/sandbox"
)

// Requests of one connection of HTTP/2 become connections to a server that speaks HTTP/1.1.
// They are the run's like any other, and so is their number.
func TestFannedOut(t *testing.T) {
	const most = 4
	var mu sync.Mutex
	at, highest := 0, 0
	full := make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/first" {
			return
		}
		mu.Lock()
		if at++; at > highest {
			highest = at
		}
		if at == most {
			close(full)
		}
		mu.Unlock()
		select {
		case <-full:
		case <-time.After(10 * time.Second):
		}
		time.Sleep(50 * time.Millisecond) // for one more to come, if it may
		mu.Lock()
		at--
		mu.Unlock()
		io.WriteString(rw, "served")
	}))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	to := netip.MustParseAddrPort(s.Listener.Addr().String())
	name := "example.com" + s.Listener.Addr().String()[len("127.0.0.1"):]
	pattern, err := host.ParsePattern(name)
	if err != nil {
		t.Fatal(err)
	}
	var verdicts sync.Map
	b := New(Options{Resolver: names{}, Roots: roots, Limits: Limits{Connections: most}})
	p := b.Open(Run{Class: writ.ClassReadOnly, Rules: Rules{{Host: pattern, Reads: true, Ranges: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, Log: func(e Event) { verdicts.Store(e.Verdict, true) }})
	p.pin(mustHost(t, "example.com"), []netip.Addr{to.Addr()})
	own, err := p.Authority()
	if err != nil {
		t.Fatal(err)
	}
	tcp, stream := listen(t), listen(t)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	relay := p.Serve(sandbox.Mouth{TCP: tcp, DNS: udp, DNSTCP: stream, Original: func(net.Conn) (netip.AddrPort, error) { return to, nil }})
	trusts := x509.NewCertPool()
	trusts.AppendCertsFromPEM(own)
	client := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusts, ServerName: "example.com"}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", tcp.Addr().String())
		},
	}
	var all sync.WaitGroup
	var texts sync.Map
	get := func(path string) {
		req, _ := http.NewRequest(http.MethodGet, "https://"+name+path, nil)
		res, err := client.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		texts.Store(res.Proto+" "+strings.TrimSpace(string(text)), true)
	}
	get("/first") // so that there is one connection, for the rest to go by
	for range 2 * most {
		all.Go(func() { get("/") })
	}
	all.Wait()
	client.CloseIdleConnections()
	relay.Close()
	_, served := texts.Load("HTTP/2.0 served")
	_, told := texts.Load("HTTP/2.0 writ: not_connected: the run has as many connections as it may")
	if _, said := verdicts.Load(TooMany); !served || !told || !said || highest != most {
		t.Errorf("served %t, told %t, said %t, %d at once", served, told, said, highest)
	}
	if b.open.Load() != 0 || p.open != 0 {
		t.Errorf("%d are left, %d of the run", b.open.Load(), p.open)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
