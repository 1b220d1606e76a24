package sshagent

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// about reports whether what a signing in names is the key that signs it, or a user's
// certificate of that key: a program that has one shows it, and has the key in it sign.
func about(named, key []byte) bool {
	if bytes.Equal(named, key) {
		return true
	}
	k, err := ssh.ParsePublicKey(named)
	if err != nil {
		return false
	}
	c, ok := k.(*ssh.Certificate)
	return ok && c.CertType == ssh.UserCert && bytes.Equal(c.Key.Marshal(), key)
}

// bare is a key without what certifies it.
func bare(k ssh.PublicKey) ssh.PublicKey {
	if c, ok := k.(*ssh.Certificate); ok {
		return c.Key
	}
	return k
}

// certified is how the names of algorithms end that prove a key by a certificate of it. What
// is signed is the same.
const certified = "-cert-v01@openssh.com"

// signAs signs by the algorithm that the data names, which has to be one of the key's.
func signAs(k ssh.Signer, algorithm string, data []byte) (*ssh.Signature, error) {
	algorithm = strings.TrimSuffix(algorithm, certified)
	if kind := bare(k.PublicKey()).Type(); kind != ssh.KeyAlgoRSA {
		if algorithm != strings.TrimSuffix(kind, "@openssh.com") && algorithm != kind {
			return nil, errors.New("the program wants a signature that the key does not make")
		}
		return k.Sign(rand.Reader, data)
	}
	by, ok := k.(ssh.AlgorithmSigner)
	if !ok || !slices.Contains([]string{ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512}, algorithm) {
		return nil, errors.New("the program wants a signature with SHA-1, which nobody should take any more")
	}
	return by.SignWithAlgorithm(rand.Reader, data, algorithm)
}

// shown is a name that a program wrote, as a log can carry it.
func shown(name string) string {
	if len(name) > 100 {
		name = name[:100]
	}
	return strconv.Quote(name)
}
