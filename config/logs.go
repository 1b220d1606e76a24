package config

import "github.com/writ-run/writ/strict"

// LogShipping sets what is logged of commands that run in containers.
type LogShipping struct {
	Enabled        bool  `yaml:"enabled"`
	TimeoutSeconds int   `yaml:"collection_timeout_seconds"` // for what a sidecar says
	MaxBytes       Bytes `yaml:"max_log_bytes"`              // of one run
	Raw            bool  `yaml:"ship_raw_logs"`              // what commands and sidecars wrote, too
}

func logShippingDefaults() LogShipping {
	return LogShipping{Enabled: true, TimeoutSeconds: 5, MaxBytes: 10 << 20}
}

func (c *Config) checkLogShipping(d *strict.File) {
	s, key := c.File.LogShipping, "container_log_shipping."
	if s.TimeoutSeconds < 1 || s.TimeoutSeconds > 60 {
		d.Reject(key+"collection_timeout_seconds", "must be 1 to 60")
	}
	if s.MaxBytes < 1<<10 || s.MaxBytes > 100<<20 {
		d.Reject(key+"max_log_bytes", "must be 1k to 100m")
	}
	if s.Enabled && s.Raw {
		c.Warnings = append(c.Warnings, c.At(key+"ship_raw_logs")+": ship_raw_logs is true: what commands in containers write goes to the daemon's log, and only what looks like a credential is taken out")
	}
}

// CompatEnv names another product whose variables commands find besides writ's own.
type CompatEnv string

// UnmarshalText takes the one there is.
func (e *CompatEnv) UnmarshalText(b []byte) error {
	return word(e, "value of compat_env", b, "synthorg")
}

// IDNames is what the names of the variables begin with that tell a command in a box whose
// it is.
func (c *Config) IDNames() []string {
	if c.File.Sandboxing.CompatEnv == "synthorg" {
		return []string{"WRIT", "SYNTHORG"}
	}
	return []string{"WRIT"}
}
