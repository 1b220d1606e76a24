package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"time"
)

// A hello is how a TLS client begins: whom it wants, and the bytes it said so with.
type hello struct {
	name   string
	hidden bool // it may say somebody else in an encrypted part
	raw    []byte
}

// encryptedHello is the extension of RFC 9849. Some clients send one that means nothing,
// which cannot be told from one that does.
const encryptedHello = 0xfe0d

var errHeard = errors.New("heard")

// hear reads a client's hello with the parser that crypto/tls has for it, and answers
// nothing. What was read is handed on as it came.
func hear(c io.Reader) (hello, error) {
	var h hello
	seen := &recorded{from: c}
	err := tls.Server(seen, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h.name, h.hidden = info.ServerName, slices.Contains(info.Extensions, encryptedHello)
		return nil, errHeard
	}}).Handshake()
	h.raw = seen.read.Bytes()
	if errors.Is(err, errHeard) {
		err = nil
	} else if err == nil {
		err = errors.New("no hello")
	}
	return h, err
}

// recorded keeps what is read, and drops what is written: the alert of a handshake that
// was never meant to go on.
type recorded struct {
	from io.Reader
	read bytes.Buffer
}

func (r *recorded) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.read.Write(b[:n])
	return n, err
}

func (r *recorded) Write(b []byte) (int, error)      { return len(b), nil }
func (r *recorded) Close() error                     { return nil }
func (r *recorded) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (r *recorded) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (r *recorded) SetDeadline(time.Time) error      { return nil }
func (r *recorded) SetReadDeadline(time.Time) error  { return nil }
func (r *recorded) SetWriteDeadline(time.Time) error { return nil }
