package oauth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// key is one public key of an issuer.
type key struct {
	id     string
	alg    string // the only one it is for, where the issuer says so
	kind   string // kty
	public any
}

// fits reports whether a token may be signed with the key: an algorithm works with one
// type of key, so a token cannot choose how a key is used.
func (k key) fits(t token) bool {
	kinds := map[string]string{"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}
	return k.kind == kinds[t.alg] && (k.alg == "" || k.alg == t.alg)
}

// readKeys reads a JSON Web Key Set. Keys of other kinds and for other uses are left
// out, as RFC 7517 says; a set without one that can be used is an error.
func readKeys(raw []byte) ([]key, error) {
	set, err := members(raw)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(set["keys"], &list); err != nil || len(list) > maxKeys {
		return nil, fmt.Errorf("keys is not a list of at most %d", maxKeys)
	}
	var out []key
	for _, one := range list {
		if k, err := readKey(one); err == nil {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("none of its keys can be used: RSA of 2048 to 8192 bits, EC P-256 and Ed25519 can")
	}
	return out, nil
}

func readKey(raw []byte) (key, error) {
	in, err := members(raw)
	if err != nil {
		return key{}, err
	}
	var k key
	var use, curve string
	for name, into := range map[string]*string{"kid": &k.id, "alg": &k.alg, "kty": &k.kind, "use": &use, "crv": &curve} {
		if *into, err = text1(in, name); err != nil {
			return key{}, err
		}
	}
	ops, err := texts(in, "key_ops")
	if err != nil || use != "" && use != "sig" || ops != nil && !slices.Contains(ops, "verify") {
		return key{}, errors.New("it is not for signatures")
	}
	switch {
	case k.kind == "RSA":
		k.public, err = rsaKey(in)
	case k.kind == "EC" && curve == "P-256":
		k.public, err = ecKey(in)
	case k.kind == "OKP" && curve == "Ed25519":
		k.public, err = edKey(in)
	default:
		err = errors.New("it is of another kind")
	}
	return k, err
}

func rsaKey(in map[string]json.RawMessage) (any, error) {
	n, err := bytesOf(in, "n", 0)
	if err != nil {
		return nil, err
	}
	e, err := bytesOf(in, "e", 0)
	if err != nil {
		return nil, err
	}
	pub := &rsa.PublicKey{N: new(big.Int).SetBytes(n)}
	exponent := new(big.Int).SetBytes(e)
	if bits := pub.N.BitLen(); bits < 2048 || bits > 8192 || exponent.BitLen() > 31 || exponent.Int64() < 3 {
		return nil, errors.New("its size is not taken")
	}
	pub.E = int(exponent.Int64())
	return pub, nil
}

func ecKey(in map[string]json.RawMessage) (any, error) {
	x, err := bytesOf(in, "x", 32)
	if err != nil {
		return nil, err
	}
	y, err := bytesOf(in, "y", 32)
	if err != nil {
		return nil, err
	}
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y)) // a point that is not on the curve is refused
}

func edKey(in map[string]json.RawMessage) (any, error) {
	x, err := bytesOf(in, "x", ed25519.PublicKeySize)
	return ed25519.PublicKey(x), err
}

// bytesOf is a member in base64url, of that many bytes where the number is given.
func bytesOf(in map[string]json.RawMessage, name string, size int) ([]byte, error) {
	s, err := text1(in, name)
	if err != nil {
		return nil, err
	}
	b, err := decode(s)
	if err != nil || size != 0 && len(b) != size {
		return nil, errors.New(name + " is not what its kind of key has")
	}
	return b, nil
}
