package gitssh

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Known is what files of servers' keys say of one server.
type Known struct {
	Keys        []ssh.PublicKey // that it may show
	Authorities []ssh.PublicKey // by whose certificates for it it may show any

	address string
	check   ssh.HostKeyCallback
}

// KnownOf is what is known of the server at an address. Nothing is an error that says what
// to do.
func KnownOf(address string, files ...string) (Known, error) {
	unknown := refused{fmt.Sprintf("the key of %s is not known; an operator compares what %s says with what the server's operator publishes, and adds it to %s", address, scan(address), strings.Join(files, " or "))}
	check, err := knownhosts.New(files...)
	if errors.Is(err, os.ErrNotExist) {
		return Known{}, unknown
	}
	if err != nil {
		return Known{}, refused{unread(err, files)}
	}
	out := Known{address: address, check: check}
	var none *knownhosts.KeyError
	if err := check(address, anywhere{}, nobodysKey()); !errors.As(err, &none) {
		return Known{}, unknown
	}
	for _, k := range none.Want {
		switch {
		case check(address, anywhere{}, k.Key) != nil: // it was revoked
		case authority(k):
			out.Authorities = append(out.Authorities, k.Key)
		default:
			out.Keys = append(out.Keys, k.Key)
		}
	}
	if len(out.Keys)+len(out.Authorities) == 0 {
		return Known{}, unknown
	}
	return out, nil
}

// Shows reports why a key, or a certificate, is not one that the server may show; nil: it is.
func (k Known) Shows(key ssh.PublicKey) error {
	var revoked *knownhosts.RevokedError
	err := k.check(k.address, anywhere{}, key)
	switch _, certified := key.(*ssh.Certificate); {
	case errors.As(err, &revoked):
		return err
	case err == nil && (certified || slices.ContainsFunc(k.Keys, func(had ssh.PublicKey) bool { return string(had.Marshal()) == string(key.Marshal()) })):
		return nil
	}
	return &knownhosts.KeyError{} // also of an authority's own key, which signs certificates and is no server's
}

// kinds are the ways in which it may prove itself: a server with several keys shows the one
// that it is asked for.
func (k Known) kinds() []string {
	var out []string
	if len(k.Authorities) > 0 {
		out = []string{ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01}
	}
	for _, key := range k.Keys {
		for _, kind := range algorithms(key.Type()) {
			if !slices.Contains(out, kind) {
				out = append(out, kind)
			}
		}
	}
	return out
}

// authority reports whether a key stands in its file as one that signs certificates, and not
// as a server's own: the library tells them apart only for certificates. What cannot be read
// again is no server's key.
func authority(k knownhosts.KnownKey) bool {
	text, err := os.ReadFile(k.Filename)
	lines := strings.Split(string(text), "\n")
	return err != nil || k.Line > len(lines) || strings.HasPrefix(strings.TrimSpace(lines[k.Line-1]), "@cert-authority")
}

// scan is the command that asks a server for its keys.
func scan(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "22" {
		return strings.TrimSpace("ssh-keyscan " + host)
	}
	return "ssh-keyscan -p " + port + " " + host
}

// unread says which line of which file is not one of servers' keys.
func unread(err error, files []string) string {
	for _, f := range files {
		if _, rest, ok := strings.Cut(err.Error(), f+":"); ok {
			line, _, _ := strings.Cut(rest, ":")
			return fmt.Sprintf("%s:%s is not a line of servers' keys; an operator mends it, or takes it out", f, line)
		}
	}
	return fmt.Sprintf("%s cannot be read; an operator looks at it", strings.Join(files, " or "))
}

// anywhere is an address that nobody is compared by.
type anywhere struct{}

func (anywhere) Network() string { return "tcp" }
func (anywhere) String() string  { return "0.0.0.0:0" }

// algorithms are the ways that a key of a type signs.
func algorithms(kind string) []string {
	if kind == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{kind}
}

// nobodysKey is one that no server has, to ask what is known.
func nobodysKey() ssh.PublicKey {
	k, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	return k
}
