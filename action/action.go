// Package action names what calls do: action types such as code:write, the
// categories tools belong to, the risk of each type, and the patterns by which a
// configuration speaks of them. It is pure data and pure functions.
package action

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Type is one leaf of the taxonomy, "category:action".
type Type string

// Risk orders how much harm a wrong call can do. The zero value is Unknown,
// which counts as High wherever risks are compared.
type Risk uint8

const (
	Unknown Risk = iota
	Low
	Medium
	High
	Critical
)

var riskNames = [...]string{"unknown", "low", "medium", "high", "critical"}

func (r Risk) String() string               { return riskNames[r] }
func (r Risk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText refuses what it does not know: a misspelt risk must not read as
// "unspecified".
func (r *Risk) UnmarshalText(b []byte) error {
	i := slices.Index(riskNames[:], string(b))
	if i < 0 {
		return &UnknownError{What: "risk", Got: string(b), Known: riskNames[:]}
	}
	*r = Risk(i)
	return nil
}

// builtin is the taxonomy: 41 leaves of the seeds and four of our own.
var builtin = map[Type]Risk{
	"code:read": Low, "code:write": Medium, "code:create": Medium, "code:delete": High, "code:refactor": Medium,
	"test:write": Low, "test:run": Low,
	"docs:write": Low,
	"vcs:read":   Low, "vcs:commit": Medium, "vcs:push": High, "vcs:branch": Low,
	"deploy:staging": High, "deploy:production": Critical,
	"comms:internal": Low, "comms:external": High,
	"budget:spend": Medium, "budget:exceed": High,
	"org:hire": Medium, "org:fire": Critical, "org:promote": Medium,
	"db:query": Low, "db:mutate": High, "db:admin": Critical,
	"arch:decide":      Medium,
	"tool:create":      High,
	"memory:read":      Low,
	"knowledge:ingest": Medium, "knowledge:reindex": Low,
	"browser:navigate": Low, "browser:screenshot": Low, "browser:diff": Low, "browser:accessibility_scan": Low, "browser:spec": Low,
	"external_data:request": High,
	"desktop:launch":        Medium, "desktop:click": Low, "desktop:type": Low, "desktop:key": Low, "desktop:screenshot": Low, "desktop:scroll": Low,

	"web:read": Low, "vcs:clone": High, "memory:write": Low, "memory:delete": Medium,
}

// Registry is the set of action types of one configuration: the built-in ones
// and those it registers. Immutable.
type Registry struct{ types map[Type]Risk }

// NewRegistry adds custom types to the built-in ones. A custom type is written
// category:action in lower case, may not redefine a built-in one, and its
// category may not be a word that patterns use for something else: whoever asks
// a person for "deployment" would not be asked for deployment:rollback.
func NewRegistry(custom map[Type]Risk) (*Registry, error) {
	r := &Registry{types: make(map[Type]Risk, len(builtin)+len(custom))}
	for t, risk := range builtin {
		r.types[t] = risk
	}
	for t, risk := range custom {
		if !wellFormed(string(t)) {
			return nil, fmt.Errorf("action type %q is not of the form category:action in lower case", t)
		}
		category, _, _ := strings.Cut(string(t), ":")
		if _, taken := aliases[category]; taken || category == everything {
			return nil, fmt.Errorf("action type %q: %q is a pattern of its own; choose another category", t, category)
		}
		if _, taken := builtin[t]; taken {
			return nil, fmt.Errorf("action type %q is built in and cannot be redefined; choose another name", t)
		}
		r.types[t] = risk
	}
	return r, nil
}

func wellFormed(s string) bool {
	cat, leaf, ok := strings.Cut(s, ":")
	word := func(w string) bool {
		return w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	}
	return ok && word(cat) && word(leaf)
}

// Types lists every registered type in order.
func (r *Registry) Types() []Type {
	all := make([]Type, 0, len(r.types))
	for t := range r.types {
		all = append(all, t)
	}
	slices.Sort(all)
	return all
}

// Risk is the risk of t; Unknown when t is not registered.
func (r *Registry) Risk(t Type) Risk { return r.types[t] }

// Has reports whether t is registered.
func (r *Registry) Has(t Type) bool { _, ok := r.types[t]; return ok }

// Pattern selects action types: everything, a category, or one leaf. The zero
// Pattern selects nothing.
type Pattern struct {
	Text string // as written
	want string // "", "code:" or "code:write"
	rank rank
}

// rank is how specific a pattern is.
type rank uint8

const (
	_ rank = iota // the zero Pattern
	all
	category
	leaf
)

// everything is the pattern that selects every type.
const everything = "all"

// aliases are spellings the seeds print in requires_approval.
var aliases = map[string]string{"deployment": "deploy:*", "database_write": "db:mutate"}

// ParsePattern reads "all", a category ("code" or "code:*") or a leaf. What names
// nothing is an error: a typo in a list of what asks a person must never mean
// that nobody is asked.
func (r *Registry) ParsePattern(s string) (Pattern, error) {
	text := cmp.Or(aliases[s], s)
	if text == everything {
		return Pattern{Text: s, rank: all}, nil
	}
	prefix := strings.TrimSuffix(text, ":*")
	if !strings.Contains(prefix, ":") {
		prefix += ":"
		for t := range r.types {
			if strings.HasPrefix(string(t), prefix) {
				return Pattern{Text: s, want: prefix, rank: category}, nil
			}
		}
	} else if r.Has(Type(text)) {
		return Pattern{Text: s, want: text, rank: leaf}, nil
	}
	return Pattern{}, &UnknownError{
		What: "action type", Got: s, Known: r.spellings(), Form: "all, a category such as code, or a type such as code:write",
	}
}

func (r *Registry) spellings() []string {
	known := []string{everything}
	for alias := range aliases {
		known = append(known, alias)
	}
	for _, t := range r.Types() {
		category, _, _ := strings.Cut(string(t), ":")
		known = append(known, string(t), category)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// Match reports whether p selects t.
func (p Pattern) Match(t Type) bool {
	switch p.rank {
	case all:
		return true
	case category:
		return strings.HasPrefix(string(t), p.want)
	case leaf:
		return string(t) == p.want
	}
	return false
}

// Lists is one autonomy preset: what runs by itself and what asks a person.
type Lists struct{ Auto, Human []Pattern }

// Verdict is what Lists say of one type.
type Verdict struct {
	Named bool    // some pattern selects the type
	Human bool    // a person is asked
	By    Pattern // the pattern that won
}

// Of finds the most specific pattern that selects t; at equal specificity the
// human list wins.
func (l Lists) Of(t Type) Verdict {
	var v Verdict
	var best rank
	for _, p := range l.Human {
		if p.Match(t) && p.rank > best {
			v, best = Verdict{Named: true, Human: true, By: p}, p.rank
		}
	}
	for _, p := range l.Auto {
		if p.Match(t) && p.rank > best {
			v, best = Verdict{Named: true, By: p}, p.rank
		}
	}
	return v
}

// UnknownError says that a word is not one of those known.
type UnknownError struct {
	What  string
	Got   string
	Known []string
	Form  string // what can be written, where Known is too long to print or not all
}

func (e *UnknownError) Error() string { return fmt.Sprintf("unknown %s %q", e.What, e.Got) }

// reading are the types whose calls change nothing, so that several can run at once.
var reading = []Type{"code:read", "vcs:read", "db:query", "memory:read", "web:read", "browser:screenshot", "browser:diff",
	"browser:accessibility_scan", "desktop:screenshot"}

// Reads reports whether a call of this type changes nothing. What is not known to
// read counts as changing.
func (t Type) Reads() bool { return slices.Contains(reading, t) }
