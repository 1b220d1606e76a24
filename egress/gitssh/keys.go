package gitssh

import (
	"errors"
	"fmt"
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
