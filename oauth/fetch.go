package oauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/host"
)

// Dial is how the issuer is reached.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// newClient goes where it is told and nowhere else: no redirects, no proxy from the
// environment, nothing kept open between two visits.
func newClient(dial Dial) *http.Client {
	return &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, DialContext: dial, TLSHandshakeTimeout: patience,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

// fetch asks the issuer where its keys are, and gets them.
func (v *Verifier) fetch(ctx context.Context) ([]key, error) {
	at, err := v.discover(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := v.get(ctx, at)
	if err != nil {
		return nil, err
	}
	keys, err := readKeys(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return keys, nil
}

// discover reads the issuer's metadata: OpenID Connect's, or where there is none the
// one of RFC 8414, which has its well-known part before the path.
func (v *Verifier) discover(ctx context.Context) (keys string, err error) {
	home, err := config.Endpoint(v.o.Issuer)
	if err != nil {
		return "", fmt.Errorf("issuer: %w", err)
	}
	base, path := split(v.o.Issuer)
	at := base + path + "/.well-known/openid-configuration"
	raw, err := v.get(ctx, at)
	var status *statusError
	if errors.As(err, &status) {
		at = base + "/.well-known/oauth-authorization-server" + path
		var other error
		if raw, other = v.get(ctx, at); other != nil {
			return "", errors.Join(err, other)
		}
		err = nil
	}
	if err != nil {
		return "", err
	}
	doc, err := members(raw)
	if err != nil {
		return "", fmt.Errorf("%s: %w", at, err)
	}
	issuer, err := text1(doc, "issuer")
	if err != nil || issuer != v.o.Issuer { // else one issuer could speak for another
		return "", fmt.Errorf("%s: issuer is not %s to the letter", at, v.o.Issuer)
	}
	if keys, err = text1(doc, "jwks_uri"); err != nil {
		return "", fmt.Errorf("%s: %w", at, err)
	}
	return keys, v.mayHaveKeys(keys, home)
}

// split cuts an address before its path, which loses a slash at its end.
func split(at string) (base, path string) {
	scheme, rest, _ := strings.Cut(at, "://")
	authority, path, _ := strings.Cut(rest, "/")
	if path = strings.TrimSuffix(path, "/"); path != "" {
		path = "/" + path
	}
	return scheme + "://" + authority, path
}

// mayHaveKeys holds the address of the keys to the issuer's host and those that the
// operator listed, port included: metadata must not send us to other services.
func (v *Verifier) mayHaveKeys(at string, issuer host.Endpoint) error {
	e, err := config.Endpoint(at)
	if err != nil {
		return fmt.Errorf("jwks_uri: %w", err)
	}
	for _, text := range v.o.KeyHosts {
		if listed, err := host.ParseEndpoint(text); err == nil && listed == e {
			return nil
		}
	}
	if e != issuer {
		return fmt.Errorf("jwks_uri: %s is not the issuer's; list it in listen.oauth.jwks_hosts if keys may come from there", e)
	}
	return nil
}

type statusError struct {
	at   string
	code int
}

func (e *statusError) Error() string { return fmt.Sprintf("%s answers %d", e.at, e.code) }

// get reads one document, whole or not at all.
func (v *Verifier) get(ctx context.Context, at string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := v.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, &statusError{at, resp.StatusCode}
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if len(raw) > maxAnswer {
		return nil, fmt.Errorf("%s answers more than %d bytes", at, maxAnswer)
	}
	return raw, nil
}
