package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// claims are what a token says, of what is looked at.
type claims struct {
	issuer, subject, client string
	audience, scopes        []string
	expires                 time.Time
	notBefore, issued       time.Time // zero where nothing is said
	bound                   bool      // to a key that its bearer would have to show, and nobody here asks for
}

func readClaims(payload []byte) (claims, error) {
	in, err := members(payload)
	if err != nil {
		return claims{}, err
	}
	var c claims
	_, c.bound = in["cnf"]
	for name, into := range map[string]*string{"iss": &c.issuer, "sub": &c.subject, "client_id": &c.client} {
		if *into, err = text1(in, name); err != nil {
			return claims{}, err
		}
	}
	for name, into := range map[string]*time.Time{"exp": &c.expires, "nbf": &c.notBefore, "iat": &c.issued} {
		if *into, err = date(in, name); err != nil {
			return claims{}, err
		}
	}
	if c.audience, err = texts(in, "aud"); err != nil {
		return claims{}, err
	}
	return c, c.readScopes(in)
}

// readScopes takes scope, which RFC 9068 has, and scp, which some issuers have instead.
func (c *claims) readScopes(in map[string]json.RawMessage) error {
	scope, err := text1(in, "scope")
	if err != nil {
		return err
	}
	list, err := texts(in, "scp")
	for _, s := range append(list, scope) {
		c.scopes = append(c.scopes, strings.FieldsFunc(s, func(r rune) bool { return r == ' ' })...)
	}
	return err
}

// wrong says why a token is not for us, or not now; "" when it is.
func (c claims) wrong(issuer, audience string, now time.Time) string {
	switch {
	case issuer == "" || c.issuer != issuer:
		return "another issuer made it"
	case audience == "" || !slices.Contains(c.audience, audience):
		return "it is meant for another audience"
	case c.subject == "":
		return "it names no subject"
	case c.bound:
		return "it is bound to a key (cnf), and only plain bearer tokens are taken"
	case c.expires.IsZero():
		return "it does not say when it expires"
	case !now.Before(c.expires.Add(leeway)):
		return "it has expired"
	case now.Add(leeway).Before(c.notBefore):
		return "it is not good yet"
	case now.Add(leeway).Before(c.issued):
		return "it was issued in the future"
	}
	return ""
}

// texts is a member that is text or a list of texts.
func texts(in map[string]json.RawMessage, name string) ([]string, error) {
	raw, ok := in[name]
	if !ok {
		return nil, nil
	}
	var list []*string
	if one, err := text1(in, name); err == nil {
		list = []*string{&one}
	} else if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, errors.New(name + " is neither text nor a list of texts")
	}
	var out []string
	for _, s := range list {
		if s == nil {
			return nil, errors.New(name + " is neither text nor a list of texts")
		}
		out = append(out, *s)
	}
	return out, nil
}

// date is a member that is a number of seconds since 1970, which may have a fraction.
func date(in map[string]json.RawMessage, name string) (time.Time, error) {
	raw, ok := in[name]
	if !ok {
		return time.Time{}, nil
	}
	var n *float64
	const last = 253402300799 // the year 9999
	if err := json.Unmarshal(raw, &n); err != nil || n == nil || *n < 1 || *n > last {
		return time.Time{}, fmt.Errorf("%s is not a date", name)
	}
	return time.Unix(int64(*n), 0), nil
}
