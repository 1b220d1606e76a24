package config

import (
	"strings"

	"github.com/writ-run/writ/disclose"
	"github.com/writ-run/writ/strict"
)

// Disclosure sets how many tools a model is shown at once.
type Disclosure struct {
	Active     Disclosing `yaml:"active"`
	L1Budget   int        `yaml:"l1_token_budget"`
	L2Budget   int        `yaml:"l2_token_budget"`
	AutoUnload bool       `yaml:"auto_unload_on_budget_pressure"`
	Threshold  float64    `yaml:"unload_threshold_percent"`
}

// Disclosing is when tools are disclosed one by one: auto, for an agent with many.
type Disclosing string

func (m *Disclosing) UnmarshalText(b []byte) error {
	return word(m, "value of active", b, "auto", "always", "never")
}

func disclosureDefaults() Disclosure {
	s := disclose.Defaults()
	return Disclosure{Active: "auto", L1Budget: s.L1Budget, L2Budget: s.L2Budget, AutoUnload: s.AutoUnload, Threshold: s.Threshold}
}

func (c *Config) checkDisclosure(d *strict.File) {
	f := c.File.Disclosure
	c.Disclosure = disclose.Settings{L1Budget: f.L1Budget, L2Budget: f.L2Budget, AutoUnload: f.AutoUnload, Threshold: f.Threshold}
	if f.Active != "auto" {
		c.Disclosure.Active = disclose.Mode(f.Active)
	}
	if err := c.Disclosure.Validate(); err != nil {
		key, why, _ := strings.Cut(err.Error(), ": ")
		d.Reject("tool_disclosure."+key, "%s", why)
	}
}
