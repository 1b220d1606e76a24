package define

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool"
)

// builder turns what was written into a definition, and says what does not hold.
type builder struct {
	*strict.File
	*source
	types  *action.Registry
	beside func(name string) (string, error) // the text of a file beside the definition
	params *parameters
}

func (b *builder) build(wantName string) (tool.Definition, *plan) {
	b.name(wantName)
	b.required()
	b.params = b.parameters()
	d := tool.Definition{
		Name: b.source.Name, Title: cmp.Or(b.Title, b.source.Name), Description: strings.TrimSpace(string(b.Description)),
		Class: b.class(), Dangerous: yes(b.Dangerous), Tier: string(cmp.Or(b.Tier, "medium")), Policy: b.policy(), Constraints: b.constraints(),
		Schema: b.params.text, Output: b.output(), Untrusted: b.Untrusted, Runs: tool.InBox,
		Hints: tool.Hints(b.Hints),
		Limits: writ.Limits{Wall: time.Duration(b.Limits.Timeout), Memory: int64(b.Limits.Memory), Output: int64(b.Limits.Output),
			CPU: time.Duration(b.Limits.CPU), Disk: int64(b.Limits.Disk)},
	}
	if b.Category != nil {
		d.Category = *b.Category
	}
	d.Action, d.ActionBy = b.action(d.Category)
	for _, f := range b.Failures {
		d.Failures = append(d.Failures, strings.TrimSpace(string(f)))
	}
	b.shown()
	if yes(b.Hints.ReadOnly) && yes(b.Hints.Destructive) {
		b.Reject("annotations", "read_only and destructive exclude each other; leave one out")
	}
	if b.Dangerous != nil && !*b.Dangerous && yes(b.Hints.Destructive) {
		b.Reject("dangerous", "is false and the annotations say destructive, which is dangerous; leave one out")
	}
	var p *plan
	d.Runner, p = b.runner()
	b.check(&d)
	return d, p
}

func yes(b *bool) bool { return b != nil && *b }

// name refuses a name that would hide something or that lists could not speak of:
// __ separates a server from its tools, writ's own tools begin with writ, and a word
// of the lists means other tools.
func (b *builder) name(want string) {
	name := b.source.Name
	lower := strings.ToLower(name)
	switch {
	case name == "":
		b.Reject("name", "is missing; write name: %s", want)
	case !tool.ValidName(name):
		b.Reject("name", "%q is not a tool's name; use letters, digits, _ and -, at most 64", name)
	case name != want:
		b.Reject("name", "is %s and the file is for %s; give both the same name", name, want)
	case strings.Contains(name, "__"):
		b.Reject("name", "holds __, which separates a server from its tools; choose another name")
	case strings.HasPrefix(lower, "writ"):
		b.Reject("name", "begins with writ, as writ's own tools do; choose another name")
	case slices.Contains(access.Discovery, lower):
		b.Reject("name", "%s is a discovery tool; choose another name", lower)
	case slices.Contains(access.Words(), lower):
		b.Reject("name", "%s is a word that lists use for other tools; choose another name", lower)
	}
}

func (b *builder) required() {
	if strings.TrimSpace(string(b.Description)) == "" {
		b.Reject("description", "is missing; say what the tool does")
	}
	if b.Category == nil {
		b.Reject("category", "is missing; there are %s", strings.Join(words(action.Categories()), ", "))
	}
	if b.Class != nil && b.Permission != nil {
		b.Reject("permission_level", "says the same as egress_class; leave one out")
	}
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// class is write where nothing is said: a tool is not taken to stay inside because
// its author forgot a line.
func (b *builder) class() writ.Class {
	switch {
	case b.Class != nil:
		return writ.Class(*b.Class)
	case b.Permission != nil:
		return writ.Class(*b.Permission)
	}
	return writ.ClassWrite
}

func (b *builder) constraints() tool.Constraints {
	s := b.Constraints
	out := tool.Constraints{OnlyAfter: s.OnlyAfter, Forbidden: s.Forbidden, RequiresApproval: s.RequiresApproval}
	if s.MaxInvocations != "" {
		quotas, err := tool.ParseQuotas(s.MaxInvocations)
		if err != nil {
			b.Reject("constraints.max_invocations", "%v", err)
		}
		out.Quotas = quotas
	}
	if s.Rate != "" {
		rate, err := tool.ParseRate(s.Rate)
		if err != nil {
			b.Reject("constraints.rate", "%v", err)
		}
		out.Quotas = append(out.Quotas, rate)
	}
	for i, name := range s.OnlyAfter {
		key := fmt.Sprintf("constraints.only_after[%d]", i)
		switch {
		case !tool.ValidName(name):
			b.Reject(key, "%q is not a tool's name; use letters, digits, _ and -, at most 64", name)
		case strings.EqualFold(name, b.source.Name):
			b.Reject(key, "is the tool itself, which could then never run; remove it")
		case slices.Contains(s.OnlyAfter[:i], name):
			b.Reject(key, "%s is there twice; remove one", name)
		}
	}
	return out
}
