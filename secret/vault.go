package secret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Vault reads the KV engine of Vault or OpenBao over HTTP.
type Vault struct {
	Address   string // scheme, host and port, and perhaps a path
	Namespace string
	Mount     string // of the KV engine; empty: secret
	Version   int    // of the KV engine: 1 or 2; 0: 2
	Token     Ref    // of env, file or keyring
	Tokens    Set    // where Token is looked up
	Way       func() (Way, error)
}

// Way is how a request leaves, for one request.
type Way interface {
	http.RoundTripper
	io.Closer
}

const (
	vaultWithin = 10 * time.Second
	vaultBytes  = 1 << 20
)

func (v Vault) Read(ctx context.Context, r Ref) (Value, error) {
	if v.Address == "" {
		return Value{}, missing(r, "there is no vault; write secrets.vault.address and token", nil)
	}
	token, err := v.Tokens.Resolve(ctx, v.Token)
	if err != nil {
		return Value{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, vaultWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", v.url(r.Name), nil)
	if err != nil {
		return Value{}, missing(r, "it makes no address in the vault", err)
	}
	req.Header.Set("X-Vault-Token", token.Reveal())
	req.Header.Set("X-Vault-Request", "true") // which its proxies ask for
	if v.Namespace != "" {
		req.Header.Set("X-Vault-Namespace", v.Namespace)
	}
	// The transport itself, and not a client: it follows no redirect, to wherever the
	// token would go along.
	way, err := v.Way()
	if err != nil {
		return Value{}, err
	}
	defer way.Close()
	res, err := way.RoundTrip(req)
	if err != nil {
		return Value{}, missing(r, "the vault does not answer; see that it runs and is unsealed, and that egress.hosts opens its address where that is not public", err)
	}
	defer res.Body.Close()
	if why := refusal(res.StatusCode); why != "" {
		return Value{}, missing(r, why, nil)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, vaultBytes+1))
	if err != nil || len(text) > vaultBytes {
		return Value{}, missing(r, "the vault's answer breaks off or is larger than 1 MiB", err)
	}
	return v.field(r, text)
}

func (v Vault) url(path string) string {
	mount, data := v.Mount, "/data/"
	if mount == "" {
		mount = "secret"
	}
	if v.Version == 1 {
		data = "/"
	}
	return strings.TrimSuffix(v.Address, "/") + "/v1/" + mount + data + path
}

func refusal(status int) string {
	switch {
	case status == http.StatusOK:
		return ""
	case status == http.StatusNotFound:
		return "the vault has nothing there; see path, mount and kv_version"
	case status == http.StatusForbidden:
		return "the vault refuses the token; give one whose policy lets it read this path"
	case status == http.StatusServiceUnavailable:
		return "the vault is sealed or in standby; unseal it, or write the address of the active one"
	case status >= 300 && status < 400:
		return "the vault sends elsewhere, where its token does not go; write the address of the active one"
	}
	return fmt.Sprintf("the vault answers %d; its own log says why", status)
}

// field takes one text out of an answer. The error of a decoder quotes what it reads, so
// none goes on.
func (v Vault) field(r Ref, text []byte) (Value, error) {
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	err := json.Unmarshal(text, &answer)
	if err == nil && v.Version != 1 {
		data := answer.Data
		answer.Data = nil
		err = json.Unmarshal(data, &answer)
	}
	fields := map[string]any{}
	if err == nil {
		err = json.Unmarshal(answer.Data, &fields)
	}
	if err != nil {
		return Value{}, missing(r, "the vault's answer is not that of a KV engine; see mount and kv_version", errors.New("the answer does not read"))
	}
	value, ok := fields[r.Field].(string)
	if !ok {
		return Value{}, missing(r, "the secret there has no such field with a text; see its fields with 'vault kv get' or 'bao kv get', and write the field after the #", nil)
	}
	return New(value), nil
}
