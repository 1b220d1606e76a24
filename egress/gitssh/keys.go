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

// ParseKey reads a private key, which has no passphrase: nobody is there to type one.
func ParseKey(text string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey([]byte(text))
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, errors.New("it has a passphrase, and nobody is there to type it; make a key without one for this")
	}
	if err != nil {
		return nil, errors.New("it is not a private key of ssh")
	}
	return signer, nil
}

// KnownKeys are those that a server at an address may show, by files of servers' keys. None
// known is an error that says what to do.
func KnownKeys(address string, files ...string) ([]ssh.PublicKey, error) {
	_, keys, err := known(address, anywhere{}, files...)
	return keys, err
}

// anywhere is an address that nobody is compared by.
type anywhere struct{}

func (anywhere) Network() string { return "tcp" }
func (anywhere) String() string  { return "0.0.0.0:0" }

func known(address string, remote net.Addr, files ...string) (ssh.HostKeyCallback, []ssh.PublicKey, error) {
	unknown := refused{fmt.Sprintf("the key of %s is not known; an operator compares what ssh-keyscan says with what the server's operator publishes, and adds it to %s", address, strings.Join(files, " or "))}
	check, err := knownhosts.New(files...)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, unknown
	}
	if err != nil {
		return nil, nil, refused{fmt.Sprintf("%s cannot be read; an operator looks at it", strings.Join(files, " or "))}
	}
	var none *knownhosts.KeyError
	if err := check(address, remote, nobodysKey()); !errors.As(err, &none) {
		return nil, nil, unknown
	}
	var keys []ssh.PublicKey
	for _, k := range none.Want {
		if check(address, remote, k.Key) == nil { // else it was revoked
			keys = append(keys, k.Key)
		}
	}
	if len(keys) == 0 {
		return nil, nil, unknown
	}
	return check, keys, nil
}

// knownKeys is known with the kinds of the keys: a server with several shows the one that it
// is asked for.
func knownKeys(file, address string, remote net.Addr) (ssh.HostKeyCallback, []string, error) {
	check, keys, err := known(address, remote, file)
	var kinds []string
	for _, k := range keys {
		for _, kind := range algorithms(k.Type()) {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return check, kinds, err
}

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

// explain says what is wrong in words that an agent may read.
func explain(address string, err error) error {
	var other *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &other):
		return refused{fmt.Sprintf("%s shows another key than is known of it; somebody may be in between, so tell the operator", address)}
	case errors.As(err, &revoked):
		return refused{fmt.Sprintf("the key of %s was revoked; tell the operator", address)}
	case strings.Contains(err.Error(), "unable to authenticate"):
		return refused{fmt.Sprintf("%s does not take the key that the operator gave for it", address)}
	}
	return fmt.Errorf("%s does not speak ssh as it should", address)
}
