// Package config reads the one configuration file, strictly, into one value:
// every key is enforced somewhere or refused here, and every error names file,
// line and the nearest valid spelling. It never reads from a workspace an agent
// can write.
package config

import (
	"time"

	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/strict"
)

// File is the configuration as written, laid over the defaults.
type File struct {
	Version    int                  `yaml:"version"`
	Listen     Listen               `yaml:"listen"`
	Store      Store                `yaml:"store"`
	Workspaces map[string]Workspace `yaml:"workspaces"`
	Agents     map[string]Agent     `yaml:"agents"`
	Roles      map[string]Role      `yaml:"roles"`
	ToolAccess ToolAccess           `yaml:"tool_access"`
	Autonomy   Autonomy             `yaml:"autonomy"`
	Actions    Actions              `yaml:"actions"`
	Tools      map[string]ToolRule  `yaml:"tools"`
	Sandboxing Sandboxing           `yaml:"sandboxing"`
	Approvals  Approvals            `yaml:"approvals"`
	Disclosure Disclosure           `yaml:"tool_disclosure"`
	Egress     Egress               `yaml:"egress"`
	Upstreams  map[string]Upstream  `yaml:"upstreams"`

	Secrets     Secrets               `yaml:"secrets"`
	Connections map[string]Connection `yaml:"connections"`

	LogShipping LogShipping `yaml:"container_log_shipping"`
}

// Listen is where agents come in over HTTP: an address, or a mapping with a
// certificate beside it.
type Listen struct {
	Address     string `yaml:"address"`
	Certificate string `yaml:"certificate"` // PEM file, leaf first
	Key         string `yaml:"key"`         // PEM file
	ClientCA    string `yaml:"client_ca"`   // PEM file of who signs agents' certificates
	Socket      string `yaml:"socket"`      // Unix socket for agents of other users of this machine
	OAuth       *OAuth `yaml:"oauth"`       // nil: no access tokens of anybody are taken
}

// Shape takes an address alone as well.
func (l *Listen) Shape(k strict.Kind) (any, string) {
	switch k {
	case strict.Text:
		return &l.Address, ""
	case strict.Mapping:
		type plain Listen // without this method
		return (*plain)(l), ""
	}
	return nil, "an address, or a mapping of address, certificate, key, client_ca, socket and oauth"
}

// Store is where writ keeps its state.
type Store struct {
	Path    string `yaml:"path"`    // directory of database, keys and socket
	Witness string `yaml:"witness"` // file that signed ledger heads are copied to
}

// Workspace is a directory agents work in, and the project around it.
type Workspace struct {
	Path    string `yaml:"path"`
	Project string `yaml:"project"`
}

// Agent is one agent.
type Agent struct {
	Workspace string           `yaml:"workspace"`
	Parent    string           `yaml:"parent"`
	Profile   string           `yaml:"profile"`
	Person    string           `yaml:"person"`
	Role      string           `yaml:"role"`
	Level     *access.Level    `yaml:"level"`
	Autonomy  *access.Autonomy `yaml:"autonomy"`
	Allowed   *[]string        `yaml:"allowed"`
	Denied    []string         `yaml:"denied"`
	Overrides Overrides        `yaml:"overrides"`
	Gate      *bool            `yaml:"enforce_tool_policies"`

	Certificates []string `yaml:"certificates"` // names or fingerprints of client certificates that are this agent's
	Users        []string `yaml:"users"`        // of this machine, who may be this agent over listen.socket
}

// Overrides change any of the six sub-constraints for one agent.
type Overrides struct {
	FileSystem       *access.FileScope    `yaml:"file_system" json:"file_system,omitempty"`
	Network          *access.NetworkMode  `yaml:"network" json:"network,omitempty"`
	NetworkAllowlist *[]string            `yaml:"network_allowlist" json:"network_allowlist,omitempty"`
	Git              *access.GitMode      `yaml:"git" json:"git,omitempty"`
	CodeExecution    *access.CodeMode     `yaml:"code_execution" json:"code_execution,omitempty"`
	Terminal         *access.TerminalMode `yaml:"terminal" json:"terminal,omitempty"`
	RequiresApproval *[]string            `yaml:"requires_approval" json:"requires_approval,omitempty"`
}

// Role is a bundle of the operator's own.
type Role struct {
	Allowed     *[]string        `yaml:"allowed"`
	Denied      []string         `yaml:"denied"`
	Level       *access.Level    `yaml:"level"`
	Autonomy    *access.Autonomy `yaml:"autonomy"`
	Constraints Overrides        `yaml:"constraints"`
}

// ToolAccess sets the access levels.
type ToolAccess struct {
	Levels             map[access.Level]Level `yaml:"levels"`
	RestrictedCommands []string               `yaml:"restricted_commands"`
}

// Level is one level's sub-constraints.
type Level struct {
	Description      string               `yaml:"description"`
	FileSystem       *access.FileScope    `yaml:"file_system"`
	Network          *access.NetworkMode  `yaml:"network"`
	NetworkAllowlist *[]string            `yaml:"network_allowlist"`
	Git              *access.GitMode      `yaml:"git"`
	CodeExecution    *access.CodeMode     `yaml:"code_execution"`
	Terminal         *access.TerminalMode `yaml:"terminal"`
	RequiresApproval *[]string            `yaml:"requires_approval"`
	Deployment       *bool                `yaml:"deployment"`
}

// Autonomy sets how much agents do without asking.
type Autonomy struct {
	Default access.Autonomy            `yaml:"default"`
	Presets map[access.Autonomy]Preset `yaml:"presets"`
}

// Preset is the patterns of one autonomy.
type Preset struct {
	AutoApprove   *[]string `yaml:"auto_approve"`
	HumanApproval *[]string `yaml:"human_approval"`
}

// Actions registers custom action types.
type Actions struct {
	Custom map[string]action.Risk `yaml:"custom"`
}

// ToolRule tightens one tool.
type ToolRule struct {
	RequiresApproval bool     `yaml:"requires_approval"`
	Disabled         bool     `yaml:"disabled"`
	Forbidden        bool     `yaml:"forbidden"`
	MaxInvocations   string   `yaml:"max_invocations"`
	Rate             string   `yaml:"rate"`
	OnlyAfter        []string `yaml:"only_after"`
	EgressClass      Class    `yaml:"egress_class"` // at least this; empty where the operator says nothing
	Dangerous        bool     `yaml:"dangerous"`    // only true says anything
	Quorum           int      `yaml:"quorum"`       // 0 where the operator says nothing

	// Of git_clone alone, and they hold for git_fetch and git_push too.
	HostnameAllowlist []string `yaml:"hostname_allowlist"`       // hosts that may have private addresses
	Mitigation        *bool    `yaml:"dns_rebinding_mitigation"` // a name keeps its addresses for the time of a call; true unless said
}

// Class is an egress class as written. The empty one says nothing, which the zero
// value of writ.Class would not.
type Class string

// Sandboxing chooses and sets sandbox drivers.
type Sandboxing struct {
	DefaultBackend Backend                     `yaml:"default_backend"`
	Overrides      map[action.Category]Backend `yaml:"overrides"`
	Subprocess     Subprocess                  `yaml:"subprocess"`
	Docker         Docker                      `yaml:"docker"`
	Lifecycle      Lifecycle                   `yaml:"lifecycle"`
	CompatEnv      CompatEnv                   `yaml:"compat_env"` // empty: writ's own variables alone
}

// Lifecycle says how long boxes are kept for calls that reach the same.
type Lifecycle struct {
	Strategy Strategy `yaml:"strategy"`
	Grace    Duration `yaml:"grace"` // after a session ended
	Idle     Duration `yaml:"idle"`  // without a call
}

// Strategy is per-agent, per-task or per-call.
type Strategy string

// Subprocess sets the subprocess driver.
type Subprocess struct {
	TimeoutSeconds        int      `yaml:"timeout_seconds"`
	KillGraceSeconds      int      `yaml:"kill_grace_seconds"`
	WorkspaceOnly         bool     `yaml:"workspace_only"`
	RestrictedPath        bool     `yaml:"restricted_path"`
	ExtraSafePathPrefixes []string `yaml:"extra_safe_path_prefixes"`
}

// Duration is written 90s, 15m, 24h or 7d.
type Duration time.Duration

// Backend is the name of a sandbox driver, or auto.
type Backend string

// notBuilt names keys of the product that this version refuses, so that nobody
// believes them to be in force.
var notBuilt = map[string]string{
	"people":                       "the people block (people are kept in the store; 'writ init' makes the first)",
	"screening":                    "screening",
	"policies":                     "operator policies",
	"trust":                        "trust",
	"retention":                    "keeping arguments and results",
	"telemetry":                    "telemetry",
	"toolsmith":                    "the toolsmith",
	"sandboxing.k8s":               "the k8s driver",
	"sandboxing.native":            "the native driver",
	"tool_access.containerized_by": "choosing what counts as containerized",
}
