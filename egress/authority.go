package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/writ-run/writ/host"
)

// An authority says of the broker, to the programs of one box, that it is the host they
// want. Its key is in this process and nowhere else, and is gone with the run.
type authority struct {
	cert *x509.Certificate
	pem  []byte
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // of all that it says

	mu   sync.Mutex
	said map[host.Host]*tls.Certificate
}

// goodFor is longer than a box lives; the certificate is of no use without the key.
const goodFor = 30 * 24 * time.Hour

// mostSaid bounds what is remembered. The names are the rules', so few runs have many.
const mostSaid = 1024

func newAuthority() (*authority, error) {
	a := &authority{said: map[host.Host]*tls.Certificate{}}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if a.leaf, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	self := &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"writ"}, CommonName: "writ, for one sandbox"}, IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := sign(self, self, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

func sign(c, parent *x509.Certificate, key *ecdsa.PublicKey, by *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	// Before now, for clocks in boxes that are set by faketime and the like.
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, time.Now().Add(-24*time.Hour), time.Now().Add(goodFor)
	return x509.CreateCertificate(rand.Reader, c, parent, key, by)
}

// of is the certificate for a host.
func (a *authority) of(h host.Host) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.said[h]; c != nil {
		return c, nil
	}
	c := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if name, ok := h.Name(); ok {
		c.DNSNames = []string{name}
	} else if addr, ok := h.Addr(); ok {
		c.IPAddresses = []net.IP{addr.AsSlice()}
	}
	der, err := sign(c, a.cert, &a.leaf.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	out := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf}
	if len(a.said) < mostSaid {
		a.said[h] = out
	}
	return out, nil
}
