package api

import (
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/secret"
)

func listSecrets(x *exchange) (any, error) {
	all, err := x.engine.Secrets(x.r.Context())
	if err != nil {
		return nil, err
	}
	var views []client.Secret
	for _, s := range all {
		views = append(views, client.Secret(s))
	}
	return pageBy(x, "secrets", views, func(s client.Secret) string { return s.Name })
}

func setSecret(x *exchange) (any, error) {
	in := body[client.SecretRequest](x)
	return client.Status{Status: "set"}, x.engine.SetSecret(x.r.Context(), x.r.PathValue("name"), secret.New(in.Value), engine.Credentials(in.By))
}

func removeSecret(x *exchange) (any, error) {
	return client.Status{Status: "removed"}, x.engine.RemoveSecret(x.r.Context(), x.r.PathValue("name"))
}

// checkSecret answers also where the secret cannot be had: that is what was asked.
func checkSecret(x *exchange) (any, error) {
	in := body[client.SecretCheckRequest](x)
	length, err := x.engine.CheckSecret(x.r.Context(), in.Reference)
	if writ.KindOf(err) == writ.NotFound {
		_, why := writ.Public(err)
		return client.SecretCheck{Reference: in.Reference, Why: why}, nil
	}
	return client.SecretCheck{Reference: in.Reference, Found: true, Length: length}, err
}
