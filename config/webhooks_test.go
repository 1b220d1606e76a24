package config

import (
	"slices"
	"testing"
)

// The file of a webhook's secret is hidden from every box, as writ's own keys are.
func TestWebhookSecretsAreHidden(t *testing.T) {
	c := newPlace(t).mustLoad(t, "version: 1\napprovals: {webhooks: {a: {url: 'https://w.example', secret: 'file:/srv/keys/hook'}, b: {url: 'https://w.example', secret: 'env:HOOK'}}}\n")
	if own := c.Own(); !slices.Contains(own, "/srv/keys/hook") || slices.Contains(own, "") {
		t.Errorf("%q", own)
	}
}
