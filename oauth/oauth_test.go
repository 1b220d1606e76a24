package oauth

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/writ-run/writ"
)

func refusal(p *provider, why string) string {
	return "the access token is refused: " + why + "; get a new one from " + p.url
}

func TestVerify(t *testing.T) {
	p := newProvider(t, "", httptest.NewServer)
	now := time.Now().Unix()
	keys := map[jose.SignatureAlgorithm]private{}
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA} {
		keys[alg] = newKey(t, "key-"+string(alg), alg)
		p.publish(keys[alg])
	}
	v := p.verifier()
	for alg, k := range keys {
		if got, err := v.Verify(t.Context(), k.sign(t, p.claims(nil), nil)); err != nil || got.Agent != "coder" || !strings.HasPrefix(got.ID, "oauth:") || len(got.ID) != 22 {
			t.Errorf("%s: %+v %v", alg, got, err)
		}
	}
	k := keys[jose.ES256]
	for name, row := range map[string]struct {
		change map[string]any
		agent  string // or
		want   string
	}{
		"as it is":               {nil, "coder", ""},
		"several audiences":      {map[string]any{"aud": []string{"x", audience}}, "coder", ""},
		"scp as a list":          {map[string]any{"scope": nil, "scp": []string{"writ:coder"}}, "coder", ""},
		"two scopes of one":      {map[string]any{"scope": "writ:coder writ:code"}, "coder", ""},
		"by subject":             {map[string]any{"scope": "openid", "sub": "robot"}, "other", ""},
		"within the leeway":      {map[string]any{"exp": now - 55, "nbf": now + 55, "iat": now + 55}, "coder", ""},
		"a date with a fraction": {map[string]any{"exp": float64(now) + 10.5}, "coder", ""},
		"no iat":                 {map[string]any{"iat": nil}, "coder", ""},

		"another issuer":        {map[string]any{"iss": "https://evil.example"}, "", refusal(p, "another issuer made it")},
		"issuer with a slash":   {map[string]any{"iss": p.url + "/"}, "", refusal(p, "another issuer made it")},
		"no issuer":             {map[string]any{"iss": nil}, "", refusal(p, "another issuer made it")},
		"another audience":      {map[string]any{"aud": "https://writ.example"}, "", refusal(p, "it is meant for another audience")},
		"an audience inside":    {map[string]any{"aud": "x " + audience}, "", refusal(p, "it is meant for another audience")},
		"no audience":           {map[string]any{"aud": nil}, "", refusal(p, "it is meant for another audience")},
		"audience of objects":   {map[string]any{"aud": []any{map[string]any{}}}, "", refusal(p, "its claims cannot be read")},
		"audience of null":      {map[string]any{"aud": []any{nil, audience}}, "", refusal(p, "its claims cannot be read")},
		"expired":               {map[string]any{"exp": now - 65}, "", refusal(p, "it has expired")},
		"no expiry":             {map[string]any{"exp": nil}, "", refusal(p, "it does not say when it expires")},
		"expiry as text":        {map[string]any{"exp": "9999999999"}, "", refusal(p, "its claims cannot be read")},
		"expiry beyond dates":   {map[string]any{"exp": 1e300}, "", refusal(p, "its claims cannot be read")},
		"expiry null":           {map[string]any{"exp": json.RawMessage("null")}, "", refusal(p, "its claims cannot be read")},
		"not yet":               {map[string]any{"nbf": now + 70}, "", refusal(p, "it is not good yet")},
		"bound to a key":        {map[string]any{"cnf": map[string]any{"jkt": "x"}}, "", refusal(p, "it is bound to a key (cnf), and only plain bearer tokens are taken")},
		"another space":         {map[string]any{"scope": "openid\u2003writ:coder"}, "", "the access token stands for no agent; ask the issuer for one with one of the scopes: writ:code writ:coder writ:other"},
		"issued in the future":  {map[string]any{"iat": now + 70}, "", refusal(p, "it was issued in the future")},
		"no subject":            {map[string]any{"sub": nil}, "", refusal(p, "it names no subject")},
		"Sub is not sub":        {map[string]any{"sub": nil, "Sub": "robot", "scope": nil}, "", refusal(p, "it names no subject")},
		"subject as a list":     {map[string]any{"sub": []string{"robot"}}, "", refusal(p, "its claims cannot be read")},
		"no agent":              {map[string]any{"scope": "openid"}, "", "the access token stands for no agent; ask the issuer for one with one of the scopes: writ:code writ:coder writ:other"},
		"no scope at all":       {map[string]any{"scope": nil}, "", "the access token stands for no agent; ask the issuer for one with one of the scopes: writ:code writ:coder writ:other"},
		"a scope's beginning":   {map[string]any{"scope": "writ:co WRIT:CODER"}, "", "the access token stands for no agent; ask the issuer for one with one of the scopes: writ:code writ:coder writ:other"},
		"two agents":            {map[string]any{"scope": "writ:coder writ:other"}, "", "the access token stands for several agents (coder, other); ask the issuer for one with the scope of one agent"},
		"two agents by subject": {map[string]any{"sub": "robot"}, "", "the access token stands for several agents (coder, other); ask the issuer for one with the scope of one agent"},
	} {
		got, err := v.Verify(t.Context(), k.sign(t, p.claims(row.change), nil))
		_, said := writ.Public(err)
		if err == nil {
			said = ""
		}
		if got.Agent != row.agent || said != row.want {
			t.Errorf("%s: %q %v\nwant %q %s", name, got.Agent, err, row.agent, row.want)
		}
		if scope := strings.Contains(row.want, "no agent"); errors.Is(err, ErrScope) != scope || err != nil && (writ.KindOf(err) == writ.Denied) != strings.Contains(row.want, "stands for") {
			t.Errorf("%s: kind %s", name, writ.KindOf(err))
		}
	}
}

// Who holds tokens has one id for all of them, and nobody else has it.
func TestIdentity(t *testing.T) {
	p := newProvider(t, "", httptest.NewServer)
	k := newKey(t, "a", jose.EdDSA)
	p.publish(k)
	v := p.verifier()
	id := func(change map[string]any) string {
		t.Helper()
		got, err := v.Verify(t.Context(), k.sign(t, p.claims(change), nil))
		must(t, err)
		return got.ID
	}
	one := id(nil)
	if id(map[string]any{"jti": "other", "exp": time.Now().Unix() + 9}) != one {
		t.Error("the next token of the same subject is somebody else's")
	}
	for _, change := range []map[string]any{{"sub": "x"}, {"client_id": "x"}, {"client_id": nil}, {"sub": `service-account-7" "ci`, "client_id": nil}} {
		if id(change) == one {
			t.Errorf("%v is the same", change)
		}
	}
}

// What is wrong with a token itself, each beside the same token without it.
func TestForged(t *testing.T) {
	p := newProvider(t, "", httptest.NewServer)
	k, stranger := newKey(t, "rsa", jose.RS256), newKey(t, "rsa", jose.RS256)
	curve := newKey(t, "curve", jose.ES256)
	p.publish(k)
	p.publish(curve)
	v := p.verifier()
	good := k.sign(t, p.claims(nil), nil)
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	enc := base64.RawURLEncoding.EncodeToString
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	must(t, err)
	header := func(text string) string { return enc([]byte(text)) + "." + parts[1] + "." + parts[2] }
	unsigned := func(alg string) string {
		return enc([]byte(`{"alg":"`+alg+`","typ":"at+jwt","kid":"rsa"}`)) + "." + parts[1] + "."
	}
	der, err := x509.MarshalPKIXPublicKey(k.key.Public())
	must(t, err)
	var hmacs []string // the public key as a secret, in every form a library might use
	for _, secret := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), k.key.Public().(*rsa.PublicKey).N.Bytes()} {
		hmacs = append(hmacs, signWith(t, jose.HS256, secret, "rsa", p.claims(nil), nil))
	}
	bare, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: k.key}, (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "rsa"))
	must(t, err)
	const unread, foreign, unknown, claims = "it is not a signed token that is taken here", "its signature is not the issuer's", "it is signed with a key that the issuer does not have", "its claims cannot be read"
	for name, row := range map[string]struct{ token, want string }{
		"none":                     {unsigned("none"), unread},
		"none with a signature":    {header(`{"alg":"none","typ":"at+jwt","kid":"rsa"}`), unread},
		"NONE":                     {header(`{"alg":"NonE","typ":"at+jwt","kid":"rsa"}`), unread},
		"HS256 der":                {hmacs[0], unread},
		"HS256 pem":                {hmacs[1], unread},
		"HS256 modulus":            {hmacs[2], unread},
		"no algorithm":             {header(`{"typ":"at+jwt","kid":"rsa"}`), unread},
		"an algorithm twice":       {header(`{"alg":"none","alg":"RS256","typ":"at+jwt","kid":"rsa"}`), unread},
		"RS512":                    {header(`{"alg":"RS512","typ":"at+jwt","kid":"rsa"}`), unread},
		"PS256 for RS256":          {header(`{"alg":"PS256","typ":"at+jwt","kid":"rsa"}`), foreign},
		"ES256 by an RSA key":      {header(`{"alg":"ES256","typ":"at+jwt","kid":"rsa"}`), unknown},
		"ID token's type":          {k.sign(t, p.claims(nil), map[jose.HeaderKey]any{"typ": "id+jwt"}), unread},
		"no type":                  {k.sign(t, p.claims(nil), map[jose.HeaderKey]any{"typ": ""}), unread},
		"crit":                     {k.sign(t, p.claims(nil), map[jose.HeaderKey]any{"crit": []string{"exp"}, "exp": 1}), unread},
		"a stranger's key":         {stranger.sign(t, p.claims(nil), nil), foreign},
		"jwk in the header":        {stranger.sign(t, p.claims(nil), map[jose.HeaderKey]any{"jwk": jose.JSONWebKey{Key: stranger.key.Public(), KeyID: "rsa"}}), foreign},
		"jku in the header":        {stranger.sign(t, p.claims(nil), map[jose.HeaderKey]any{"jku": p.url + "/keys"}), foreign},
		"kid as a path":            {signWith(t, jose.RS256, stranger.key, "../../dev/null", p.claims(nil), nil), unknown},
		"kid as a query":           {signWith(t, jose.RS256, stranger.key, "' OR 1=1 --", p.claims(nil), nil), unknown},
		"kid of another key":       {signWith(t, jose.RS256, k.key, "curve", p.claims(nil), nil), unknown},
		"kid as a number":          {header(`{"alg":"RS256","typ":"at+jwt","kid":1}`), unread},
		"other claims":             {parts[0] + "." + enc([]byte(`{"sub":"robot"}`)) + "." + parts[2], foreign},
		"no signature":             {parts[0] + "." + parts[1] + ".", unread},
		"signature cut":            {parts[0] + "." + parts[1] + "." + enc(signature[:len(signature)-1]), foreign},
		"signature with line ends": {parts[0] + "." + parts[1] + ".\n" + parts[2], unread},
		"padding":                  {parts[0] + "." + parts[1] + "." + parts[2] + "==", unread},
		"two parts":                {parts[0] + "." + parts[1], unread},
		"five parts":               {good + ".x.y", unread},
		"empty":                    {"", unread},
		"JSON serialization":       {`{"payload":"` + parts[1] + `","signatures":[]}`, unread},
		"large":                    {k.sign(t, p.claims(map[string]any{"x": strings.Repeat("y", maxToken)}), nil), unread},
		"claims twice":             {compact(t, bare, []byte(`{"iss":"`+p.url+`","sub":"a","sub":"robot"}`)), claims},
		"claims as a list":         {compact(t, bare, []byte(`[]`)), claims},
		"claims and more":          {compact(t, bare, []byte(`{}{}`)), claims},
	} {
		got, err := v.Verify(t.Context(), row.token)
		if _, said := writ.Public(err); err == nil || said != refusal(p, row.want) || writ.KindOf(err) != writ.Unauthenticated {
			t.Errorf("%s: %+v %v", name, got, err)
		}
		if len(parts[1]) > 0 && err != nil && strings.Contains(err.Error(), parts[2][:20]) {
			t.Errorf("%s: the error has the token in it: %v", name, err)
		}
	}
	for name, token := range map[string]string{ // and what may vary
		"JWT":                 k.sign(t, p.claims(nil), map[jose.HeaderKey]any{"typ": "JWT"}),
		"application/at+jwt":  k.sign(t, p.claims(nil), map[jose.HeaderKey]any{"typ": "application/AT+JWT"}),
		"no kid, one such":    signWith(t, jose.RS256, k.key, "", p.claims(nil), nil),
		"unused header":       k.sign(t, p.claims(nil), map[jose.HeaderKey]any{"jku": "https://evil.example/", "x5u": "https://evil.example/"}),
		"a large one that is": k.sign(t, p.claims(map[string]any{"x": strings.Repeat("y", 10<<10)}), nil),
	} {
		if got, err := v.Verify(t.Context(), token); err != nil || got.Agent != "coder" {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}
