package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/sandbox"
)

// The ports of the servers, and how much goes through.
const (
	tlsPort, echoPort, bulkPort, shortPort = 443, 7, 9, 17
	bulkSize                               = 512 << 20
	shortFor                               = 5 * time.Second
)

// egressParty is what this program is as one of the parties.
func egressParty(args []string) (bool, error) {
	switch {
	case len(args) == 4 && args[1] == "egress-lab":
		return true, egressLab(args[2], args[3])
	case len(args) == 2 && args[1] == "egress-servers":
		return true, egressServers()
	case len(args) == 2 && args[1] == "egress-short-server":
		return true, shortServer()
	case len(args) == 3 && args[1] == "egress-client":
		return true, egressClient(args[2], dialled)
	case len(args) == 4 && args[1] == "egress-client" && args[3] == "by-proxy":
		return true, egressClient(args[2], askedFor)
	case len(args) == 3 && args[1] == "egress-idle":
		return true, egressIdle(args[2])
	}
	return false, nil
}

// egressServers say a byte after a handshake, say back a byte, and pour out zeroes.
func egressServers() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"good.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, SessionTicketsDisabled: true}
	zeroes := make([]byte, 1<<20)
	for port, serve := range map[int]func(net.Conn){
		tlsPort:  func(c net.Conn) { c = tls.Server(c, config); c.Write([]byte{1}); c.Close() },
		echoPort: func(c net.Conn) { io.CopyN(c, c, 1); c.Close() },
		bulkPort: func(c net.Conn) {
			c.Read(make([]byte, 1))
			for sent := 0; sent < bulkSize; sent += len(zeroes) {
				if _, err := c.Write(zeroes); err != nil {
					break
				}
			}
			c.Close()
		},
	} {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", there, port))
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go serve(c)
			}
		}()
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// egressClient does as it is told, line by line, and answers with a number: how long it
// took, or how many there were.
func egressClient(name string, dial dialer) error {
	at, err := net.LookupHost(name)
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var n int64
		began := time.Now()
		switch in.Text() {
		case "tls":
			err = handshake(dial, at[0])
			n = int64(time.Since(began))
		case "tcp":
			err = hello(dial, at[0])
			n = int64(time.Since(began))
		case "bulk":
			err = pour(dial, at[0])
			n = int64(time.Since(began))
		case "short":
			n, err = short(at[0])
		}
		if err != nil {
			fmt.Println(err)
			return err
		}
		fmt.Println(n)
	}
	return nil
}

// A dialer connects to a port of an address.
type dialer func(at string, port int) (net.Conn, error)

// askedFor is a connection that the proxy was asked for which the environment names.
func askedFor(at string, port int) (net.Conn, error) {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("tcp", proxy.Host, 20*time.Second)
	if err != nil {
		return nil, err
	}
	to := net.JoinHostPort(at, strconv.Itoa(port))
	secret, _ := proxy.User.Password()
	who := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + secret))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n", to, to, who)
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect}) // no party speaks first on what follows
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy answers %s", answer.Status)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func dialled(at string, port int) (net.Conn, error) {
	return net.DialTimeout("tcp", net.JoinHostPort(at, strconv.Itoa(port)), 20*time.Second)
}

func handshake(dial dialer, at string) error {
	c, err := dial(at, tlsPort)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = tls.Client(c, &tls.Config{ServerName: "good.test", InsecureSkipVerify: true}).Read(make([]byte, 1)) // what is measured is the way
	return err
}

func hello(dial dialer, at string) error {
	c, err := dial(at, echoPort)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.Write([]byte{1}); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	return err
}

func pour(dial dialer, at string) error {
	c, err := dial(at, bulkPort)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	b, sum := make([]byte, 1<<18), 0
	for err == nil {
		var n int
		n, err = c.Read(b)
		sum += n
	}
	if err != io.EOF || sum != bulkSize {
		return fmt.Errorf("%d bytes came: %w", sum, err)
	}
	return nil
}

// egressIdle says how much more is resident with so many relays that wait, in KiB.
func egressIdle(text string) error {
	many, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	b := egress.New(egress.Options{})
	debug.FreeOSMemory()
	before, err := rss(os.Getpid())
	if err != nil {
		return err
	}
	for range many {
		tcp, err1 := net.Listen("tcp", "127.0.0.1:0")
		udp, err2 := net.ListenPacket("udp", "127.0.0.1:0")
		stream, err3 := net.Listen("tcp", "127.0.0.1:0")
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		b.Open(egress.Run{Class: writ.ClassWrite}).Serve(sandbox.Mouth{TCP: tcp, DNS: udp, DNSTCP: stream, Original: func(net.Conn) (netip.AddrPort, error) { return netip.AddrPort{}, errors.New("nobody") }})
	}
	time.Sleep(500 * time.Millisecond)
	runtime.GC()
	after, err := rss(os.Getpid())
	fmt.Println(after - before)
	return err
}
