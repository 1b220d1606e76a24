package oauth

import (
	"net/http/httptest"
	"strings"
	"testing"

	jose "github.com/go-jose/go-jose/v4"
)

// FuzzVerify: whatever arrives is refused without a panic, unless it is one of the
// tokens that the issuer signed, to the letter.
func FuzzVerify(f *testing.F) {
	p := newProvider(f, "", httptest.NewServer)
	signed := map[string]bool{}
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA} {
		k := newKey(f, string(alg), alg)
		p.publish(k)
		token := k.sign(f, p.claims(map[string]any{"exp": 1 << 34}), nil)
		signed[token] = true
		f.Add(token)
		f.Add(strings.Replace(token, ".", "..", 1))
		f.Add(k.sign(f, p.claims(map[string]any{"exp": 1}), nil))
	}
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("..")
	v := p.verifier()
	f.Fuzz(func(t *testing.T, token string) {
		if id, err := v.Verify(t.Context(), token); (err == nil) != signed[token] {
			t.Errorf("%+v %v: %q", id, err, token)
		}
	})
}

// FuzzKeys: a set of keys is read or refused, and what is read can be used.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AA","e":"AQAB"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		keys, err := readKeys(raw)
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("%d keys and %v", len(keys), err)
		}
		for _, k := range keys {
			for _, alg := range algorithms {
				if tok := (token{alg: alg, signed: raw, signature: raw}); k.fits(tok) && tok.signedBy(k) {
					t.Errorf("anything is signed by %+v", k)
				}
			}
		}
	})
}
