package oauth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
)

// token is a JWS in compact form, taken apart. Nothing of it is to be believed before
// signedBy.
type token struct {
	alg, kid  string
	signed    []byte // what the signature is over
	signature []byte
	payload   []byte
}

// algorithms that are taken. none and the HS family are not and never: a public key is
// no secret, and would be one for HS256.
var algorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

// parse takes a token apart. Of its header alg, typ and kid are read; what names keys
// (jku, jwk, x5u, x5c) is not even looked at, and crit, which demands to be understood,
// is refused.
func parse(text string) (token, error) {
	if len(text) > maxToken {
		return token{}, fmt.Errorf("it has %d bytes and may have %d", len(text), maxToken)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return token{}, errors.New("it has not three parts")
	}
	var raw [3][]byte
	for i, p := range parts {
		var err error
		if raw[i], err = decode(p); err != nil {
			return token{}, err
		}
	}
	header, err := members(raw[0])
	if err != nil {
		return token{}, fmt.Errorf("header: %w", err)
	}
	if _, ok := header["crit"]; ok {
		return token{}, errors.New("header: crit is not taken")
	}
	t := token{payload: raw[1], signature: raw[2], signed: []byte(parts[0] + "." + parts[1])}
	var typ string
	for name, into := range map[string]*string{"alg": &t.alg, "typ": &typ, "kid": &t.kid} {
		if *into, err = text1(header, name); err != nil {
			return token{}, fmt.Errorf("header: %w", err)
		}
	}
	if !slices.Contains(algorithms, t.alg) {
		return token{}, errors.New("header: alg is none of " + strings.Join(algorithms, ", "))
	}
	if typ = strings.TrimPrefix(strings.ToLower(typ), "application/"); typ != "at+jwt" && typ != "jwt" {
		return token{}, errors.New("header: typ is neither at+jwt nor JWT")
	}
	return t, nil
}

// signedBy checks the signature with one key. The algorithm is the token's, and fits
// the key: fits has seen to that.
func (t token) signedBy(k key) bool {
	sum := sha256.Sum256(t.signed)
	switch pub := k.public.(type) {
	case *rsa.PublicKey:
		if t.alg == "RS256" {
			return rsa.VerifyPKCS1v15(pub, crypto.SHA256, sum[:], t.signature) == nil
		}
		return t.alg == "PS256" && rsa.VerifyPSS(pub, crypto.SHA256, sum[:], t.signature, &rsa.PSSOptions{SaltLength: sha256.Size}) == nil
	case *ecdsa.PublicKey:
		if t.alg != "ES256" || len(t.signature) != 64 {
			return false
		}
		r, s := new(big.Int).SetBytes(t.signature[:32]), new(big.Int).SetBytes(t.signature[32:])
		return ecdsa.Verify(pub, sum[:], r, s)
	case ed25519.PublicKey:
		return t.alg == "EdDSA" && ed25519.Verify(pub, t.signed, t.signature)
	}
	return false
}

// decode reads base64url as JOSE has it: no padding, no line ends, no stray bits. One
// spelling each, so that one token is one text.
func decode(s string) ([]byte, error) {
	if s == "" || strings.ContainsAny(s, "\r\n") { // the decoder would skip them
		return nil, errors.New("it is not base64url")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, errors.New("it is not base64url")
	}
	return b, nil
}

// members reads one JSON object. A name given twice is refused, and names are compared
// as they are: encoding/json would take Sub for sub, and the last of two.
func members(raw []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	out := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errors.New("it is not a JSON object")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.New("it is not a JSON object")
		}
		if _, twice := out[name.(string)]; twice {
			return nil, errors.New("a member is given twice")
		}
		out[name.(string)] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("it is not a JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return out, nil
}

// text1 is a member that is text, or "" where there is none.
func text1(in map[string]json.RawMessage, name string) (string, error) {
	raw, ok := in[name]
	if !ok {
		return "", nil
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", errors.New(name + " is not text")
	}
	return *s, nil
}
