package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/writ-run/writ/need"
)

// Addresses of a lab.
const (
	Public   = "93.184.216.34"
	Other    = "93.184.216.35"
	Private  = "10.20.30.40"
	Metadata = "169.254.169.254"
	Public6  = "2606:2800:220:1::34"
	Private6 = "fd00::40"
)

const inside = "WRIT_TEST_LAB"

// Run runs a test in a lab of its own: this program again, with that test alone. It
// reports false in the program that only waits for it, beside other parallel tests:
// labs know nothing of each other.
func Run(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		setUp(t)
		return true
	}
	if os.Geteuid() != 0 {
		need.Lacking(t, "a network of its own needs root")
	}
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("in the lab: %v\n%s", err, out)
	}
	return false
}

func setUp(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"link", "set", "lo", "up"}, {"addr", "add", Public + "/32", "dev", "lo"}, {"addr", "add", Other + "/32", "dev", "lo"},
		{"addr", "add", Private + "/32", "dev", "lo"}, {"addr", "add", Metadata + "/32", "dev", "lo"}, {"addr", "add", Public6 + "/128", "dev", "lo", "nodad"}, {"addr", "add", Private6 + "/128", "dev", "lo", "nodad"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v %s", args, err, out)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver "+Public+"\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}

// DNS is the lab's name server. Each answer of a name is given in turn; the last one
// stays. What is not an address in an answer is another name, whose addresses come along.
type DNS struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   []string
}

// Names starts the name server.
func Names(t *testing.T, answers map[string][][]string) *DNS {
	t.Helper()
	d := &DNS{answers: answers}
	c, err := net.ListenPacket("udp", Public+":53")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: c, Handler: dns.HandlerFunc(d.answer)}
	go s.ActivateAndServe()
	t.Cleanup(func() { s.Shutdown() })
	return d
}

func (d *DNS) answer(w dns.ResponseWriter, q *dns.Msg) {
	said := strings.TrimSuffix(q.Question[0].Name, ".")
	name := strings.ToLower(said)
	d.mu.Lock()
	d.asked = append(d.asked, said)
	turns := d.answers[name]
	var now []string
	if len(turns) > 0 {
		now = turns[0]
	}
	if len(turns) > 1 && q.Question[0].Qtype == dns.TypeA {
		d.answers[name] = turns[1:]
	}
	d.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(q)
	if now == nil {
		m.Rcode = dns.RcodeNameError
	}
	m.Answer = d.records(q.Question[0].Name, q.Question[0].Qtype, now)
	w.WriteMsg(m)
}

// records are the answers of a kind, none of which may be remembered.
func (d *DNS) records(name string, kind uint16, answers []string) (out []dns.RR) {
	for _, a := range answers {
		ip := net.ParseIP(a)
		head := dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET}
		switch {
		case ip == nil:
			d.mu.Lock()
			turns := d.answers[a]
			d.mu.Unlock()
			head.Rrtype = dns.TypeCNAME
			out = append(out, &dns.CNAME{Hdr: head, Target: dns.Fqdn(a)})
			if len(turns) > 0 {
				out = append(out, d.records(dns.Fqdn(a), kind, turns[0])...)
			}
		case kind == dns.TypeA && ip.To4() != nil:
			out = append(out, &dns.A{Hdr: head, A: ip})
		case kind == dns.TypeAAAA && ip.To4() == nil:
			out = append(out, &dns.AAAA{Hdr: head, AAAA: ip})
		}
	}
	return out
}

// Asked are the names that were asked about, in order and letter by letter.
func (d *DNS) Asked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.asked...)
}

// Web starts a server at an address and port that says which host it was asked for, with
// TLS where authority is not nil.
func Web(t testing.TB, at string, authority *Authority) {
	t.Helper()
	Serve(t, at, authority, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // before the answer, which some clients of HTTP/2 want
		fmt.Fprintf(w, "%s %s at %s\n", r.Method, r.Host, at)
	}))
}

// Serve starts a server of one's own at an address and port, with TLS where authority is
// not nil.
func Serve(t testing.TB, at string, authority *Authority, h http.Handler) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)} // clients that go away are what tests are about
	if authority != nil {
		s.TLSConfig = &tls.Config{GetCertificate: authority.certificate}
		go s.ServeTLS(l, "", "")
	} else {
		go s.Serve(l)
	}
	t.Cleanup(func() { s.Close() })
}

// Authority signs certificates for any name.
type Authority struct {
	File string // of its own certificate
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// NewAuthority makes one.
func NewAuthority(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "authority.pem")}
	var der []byte
	a.key, a.cert, der = issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "lab"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	os.Chmod(filepath.Dir(a.File), 0o755)
	if err := os.WriteFile(a.File, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	return a
}

// Trusted has the lab trust it, as a system trusts those of its bundle.
func (a *Authority) Trusted(t *testing.T) {
	t.Helper()
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	system, err := os.ReadFile(bundle)
	if err != nil {
		need.Lacking(t, "this system has no "+bundle)
	}
	own, err := os.ReadFile(a.File)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(a.File), "bundle.pem")
	if err := os.WriteFile(file, append(system, own...), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(file, bundle, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}

func issue(t testing.TB, c *x509.Certificate, by *Authority) (*ecdsa.PrivateKey, *x509.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert, der
}

func (a *Authority) certificate(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	name := h.ServerName
	if name == "" {
		name = "nobody.test"
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
