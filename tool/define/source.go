package define

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/strict"
)

// source is a definition as written.
type source struct {
	Name        string           `yaml:"name"`
	Title       string           `yaml:"title"`
	Description strict.Block     `yaml:"description"`
	Category    *action.Category `yaml:"category"`
	Action      actionSource     `yaml:"action_type"`
	Class       *egress          `yaml:"egress_class"`
	Permission  *permission      `yaml:"permission_level"`
	Dangerous   *bool            `yaml:"dangerous"`
	Tier        tier             `yaml:"cost_tier"`
	Policy      policySource     `yaml:"policy"`
	Constraints constraints      `yaml:"constraints"`
	Parameters  strict.JSON      `yaml:"parameters"`
	Output      strict.JSON      `yaml:"output"`
	Examples    []example        `yaml:"examples"`
	Failures    []strict.Block   `yaml:"failure_modes"`
	Hints       hints            `yaml:"annotations"`
	Limits      limits           `yaml:"limits"`
	Untrusted   bool             `yaml:"untrusted_output"`
	Runner      *runnerSource    `yaml:"runner"`
}

// notBuilt are keys of the product that this version refuses.
var notBuilt = map[string]string{
	"runner.wasm": "the wasm runner",
	"runner.http": "the http runner",
	"runner.mcp":  "the mcp runner",
}

type actionSource struct {
	Fixed string
	By    *actionBy
}

type actionBy struct {
	Argument string            `yaml:"argument"`
	Types    map[string]string `yaml:"types"`
	Default  string            `yaml:"default"`
}

func (a *actionSource) Shape(k strict.Kind) (any, string) {
	switch k {
	case strict.Text:
		return &a.Fixed, ""
	case strict.Mapping:
		a.By = &actionBy{}
		return a.By, ""
	}
	return nil, "an action type or a mapping of argument, types and default"
}

type constraints struct {
	MaxInvocations   string   `yaml:"max_invocations"`
	Rate             string   `yaml:"rate"`
	OnlyAfter        []string `yaml:"only_after"`
	Forbidden        bool     `yaml:"forbidden"`
	RequiresApproval bool     `yaml:"requires_approval"`
}

type example struct {
	What string      `yaml:"what"`
	Args strict.JSON `yaml:"args"`
}

type hints struct {
	ReadOnly    *bool `yaml:"read_only"`
	Destructive *bool `yaml:"destructive"`
	Idempotent  *bool `yaml:"idempotent"`
	OpenWorld   *bool `yaml:"open_world"`
}

type limits struct {
	Timeout timeout `yaml:"timeout"`
	Memory  memory  `yaml:"memory"`
	Output  output  `yaml:"output"`
	CPU     timeout `yaml:"cpu_time"`
	Disk    disk    `yaml:"disk"`
}

// pick takes one of the known words.
func pick(what string, b []byte, known ...string) (int, error) {
	i := slices.Index(known, string(b))
	if i < 0 {
		return 0, &action.UnknownError{What: what, Got: string(b), Known: known}
	}
	return i, nil
}

type egress writ.Class

func (e *egress) UnmarshalText(b []byte) error {
	i, err := pick("egress class", b, "none", "read_only", "write")
	if *e = egress(writ.ClassWrite); err == nil {
		*e = egress([]writ.Class{writ.ClassNone, writ.ClassReadOnly, writ.ClassWrite}[i])
	}
	return err
}

// permission is the word by which TOOL.md files say their class. What acts in any
// way is of class write.
type permission writ.Class

func (p *permission) UnmarshalText(b []byte) error {
	i, err := pick("permission level", b, "none", "read", "read_only", "write", "admin", "modify", "publish", "external_action", "execute")
	*p = permission(writ.ClassWrite)
	if err == nil && i < 3 {
		*p = permission([]writ.Class{writ.ClassNone, writ.ClassReadOnly, writ.ClassReadOnly}[i])
	}
	return err
}

type tier string

func (t *tier) UnmarshalText(b []byte) error {
	*t = tier(b)
	_, err := pick("cost tier", b, "cheap", "medium", "expensive")
	return err
}

type execStance policy.Stance

func (e *execStance) UnmarshalText(b []byte) error {
	i, err := pick("exec stance", b, "deny", "allow")
	*e = execStance([]policy.Stance{policy.None, policy.All}[i])
	return err
}

type timeout time.Duration

func (t *timeout) UnmarshalText(b []byte) error {
	n, ok := number(string(b), map[string]int64{"s": int64(time.Second), "m": int64(time.Minute)})
	*t = timeout(n)
	if !ok || time.Duration(n) < time.Second || time.Duration(n) > 600*time.Second {
		return fmt.Errorf("%q is not a time of 1s to 600s; write 30s or 5m", b)
	}
	return nil
}

var sizes = map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

type memory int64

// UnmarshalText takes at most what a box has anyway: a limit only tightens.
func (m *memory) UnmarshalText(b []byte) error {
	n, ok := number(string(b), sizes)
	*m = memory(n)
	if !ok || n < 16<<20 || n > 4<<30 {
		return fmt.Errorf("%q is not a size of 16MiB to 4GiB; write 512MiB", b)
	}
	return nil
}

// disk is how much may be written in all.
type disk int64

func (d *disk) UnmarshalText(b []byte) error {
	n, ok := number(string(b), sizes)
	*d = disk(n)
	if !ok || n < 1<<20 || n > 16<<30 {
		return fmt.Errorf("%q is not a size of 1MiB to 16GiB; write 512MiB", b)
	}
	return nil
}

type output int64

func (o *output) UnmarshalText(b []byte) error {
	n, ok := number(string(b), sizes)
	*o = output(n)
	if !ok || n < 1<<10 || n > 1<<20 {
		return fmt.Errorf("%q is not a size of 1KiB to 1MiB; write 256KiB", b)
	}
	return nil
}

// number takes one plain whole number and one unit, so that a value has one spelling.
func number(s string, units map[string]int64) (int64, bool) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit, ok := units[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || strconv.FormatInt(n, 10) != digits || n < 1 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}
