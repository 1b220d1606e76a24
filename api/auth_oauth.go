package api

import (
	"errors"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/oauth"
)

// errScope marks a good token that stands for no agent.
var errScope = oauth.ErrScope

// issuer is whose access tokens are taken, and what is said of that.
type issuer struct {
	*oauth.Verifier
	metadata    ProtectedResource
	metadataURL string
}

// ProtectedResource is what clients read to find out where tokens come from (RFC 9728).
type ProtectedResource struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
}

// A Reach is a way to hosts that the operator wrote.
type Reach func(what string, hosts ...host.Endpoint) (*engine.Way, error)

func newIssuer(o *config.OAuth, reach Reach) (*issuer, error) {
	if o == nil {
		return nil, nil
	}
	hosts, err := o.Hosts()
	if err != nil {
		return nil, err
	}
	way, err := reach("listen.oauth", hosts...)
	if err != nil {
		return nil, err
	}
	v := oauth.New(oauth.Options{Issuer: o.Issuer, Audience: o.Audience, KeyHosts: o.JWKSHosts, Scopes: o.Scopes, Subjects: o.Subjects, Dial: way.Dial})
	return &issuer{
		Verifier: v, metadataURL: wellKnown(o.Audience),
		metadata: ProtectedResource{o.Audience, []string{o.Issuer}, v.ScopeNames(), []string{"header"}},
	}, nil
}

const resourcePath = "/.well-known/oauth-protected-resource"

// wellKnown is where the metadata of a resource is: the well-known part goes before the
// resource's own path.
func wellKnown(resource string) string {
	scheme, rest, _ := strings.Cut(resource, "://")
	authority, path, _ := strings.Cut(rest, "/")
	if path != "" {
		path = "/" + path
	}
	return scheme + "://" + authority + resourcePath + path
}

// verify asks the verifier. That the issuer could not be reached goes to the log, once a
// try; what was wrong with a token does at debug level, and the token never.
func (o *issuer) verify(x *exchange, token string) (oauth.Identity, error) {
	id, err := o.Verify(x.r.Context(), token)
	var down *oauth.FetchError
	switch {
	case errors.As(err, &down):
		x.log.Warn("access tokens cannot be verified", "issuer", o.metadata.AuthorizationServers[0], "err", down)
	case err != nil:
		x.log.Debug("an access token was refused", "request", x.w.Header().Get("X-Request-ID"), "err", err)
	}
	return id, err
}

// showResource answers with the metadata, at the agents' door and to anyone.
func showResource(x *exchange) (any, error) {
	o := arrivalOf(x.r).oauth
	if o == nil {
		return nil, writ.Fail(writ.NotFound, "no issuer of access tokens is configured here; use a token of 'writ agent token'", nil)
	}
	return o.metadata, nil
}
