package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/writ-run/writ/strict"
)

// checkListen takes loopback addresses, and others only with a certificate that
// serves them (without TLS a token could be read on the way).
func (c *Config) checkListen(d *strict.File) {
	l := &c.File.Listen
	key := "listen"
	if _, ok := c.lines["listen.address"]; ok {
		key = "listen.address"
	}
	if (l.Certificate == "") != (l.Key == "") {
		d.Reject("listen", "certificate and key go together; give both or none")
		return
	}
	if err := address(l.Address, l.Certificate != ""); err != nil {
		d.Reject(key, "%v", err)
	}
	c.checkSocket(d)
	c.checkOAuth(d)
	if l.Certificate == "" {
		if l.ClientCA != "" {
			d.Reject("listen.client_ca", "certificates are shown over TLS only; set listen.certificate and listen.key")
		}
		return
	}
	var ok bool
	if l.Certificate, ok = c.path(d, "listen.certificate", l.Certificate); !ok {
		return
	}
	if l.Key, ok = c.path(d, "listen.key", l.Key); !ok {
		return
	}
	if info, err := os.Stat(l.Key); err == nil && info.Mode().Perm()&0o077 != 0 {
		d.Reject("listen.key", "others can read the key (mode %04o); run: chmod 600 %s", info.Mode().Perm(), l.Key)
		return
	}
	if _, err := tls.LoadX509KeyPair(l.Certificate, l.Key); err != nil {
		d.Reject("listen.certificate", "certificate and key do not load: %v", err)
	}
	c.checkClientCA(d)
}

// address refuses any address but loopback where there is no TLS.
func address(listen string, secure bool) error {
	h, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%q is not an address; write 127.0.0.1:7323", listen)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%q has no valid port; write 127.0.0.1:7323", listen)
	}
	a, err := netip.ParseAddr(h)
	if secure && err != nil {
		return fmt.Errorf("%q is not an IP address and a port; write 0.0.0.0:7323 for every IPv4 address", listen)
	}
	if !secure && err != nil {
		return fmt.Errorf("%q is not an IP address and a port; write 127.0.0.1:7323", listen)
	}
	if !secure && !a.IsLoopback() {
		return fmt.Errorf("%q is not a loopback address; without TLS only 127.0.0.1 or [::1] can be listened on", listen)
	}
	return nil
}
