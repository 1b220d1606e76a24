package decide

import (
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// Registered is what a tool counts as by the registry: the highest that a definition
// of its name ever was, or what a person waived it to.
type Registered struct {
	Class     writ.Class
	Dangerous bool
	Waiver    string // of this very definition; empty: none
}

// Standing is what a tool counts as, whoever calls it and with whatever arguments, and
// why where that is not what its definition says.
type Standing struct {
	Class     writ.Class
	Dangerous bool
	Quorum    int // of people who have to agree, where one has to
	Reasons   []writ.Reason
	waived    bool
}

// Standing is what a tool counts as; ok is false where there is no such tool.
func (d *Decider) Standing(toolName string) (s Standing, ok bool) {
	s, ok = d.stands[toolName]
	return s, ok
}

// standing is the highest of what the definition says, what the registry knows and
// what the operator set (R5). A waiver stands for the first two, and for what the
// definition declares that it writes; the operator's own word raises it again.
func (in *Input) standing(t *tool.Tool) Standing {
	var s Standing
	s.Class, s.Dangerous = t.Declared()
	if r, ok := in.Registered[t.Name]; ok {
		s.register(t.Name, r)
	}
	rule := in.Rules[t.Name]
	s.Quorum = max(1, rule.Quorum)
	if rule.Class != nil && rule.Class.V < s.Class {
		s.Class = rule.Class.V
		s.say("tools", rule.Class.At, "tool %s counts as class %s", t.Name, s.Class)
	}
	where := "its definition"
	if _, declared := t.Declared(); !declared {
		where = "the registry"
	}
	if rule.Dangerous.V {
		s.Dangerous, where = true, rule.Dangerous.At
	}
	if s.Dangerous {
		s.Reasons = append(s.Reasons, writ.Reason{Effect: writ.Ask, Source: "dangerous", Where: where, Text: fmt.Sprintf("tool %s is dangerous", t.Name)})
	}
	return s
}

func (s *Standing) register(name string, r Registered) {
	class, dangerous := s.Class, s.Dangerous
	if r.Waiver != "" {
		s.Class, s.Dangerous, s.waived = r.Class, r.Dangerous, true
		s.say("waiver", r.Waiver, "a person let tool %s count as class %s%s", name, s.Class, notDangerous(dangerous && !s.Dangerous))
		return
	}
	s.Class, s.Dangerous = min(class, r.Class), dangerous || r.Dangerous
	if s.Class < class {
		s.say("registry", "the registry", "tool %s was of class %s and says %s now; the higher one holds until a person waives it: writ tool waive %s --class %s", name, s.Class, class, name, class)
	}
	if s.Dangerous && !dangerous {
		s.say("registry", "the registry", "tool %s was dangerous and does not say so any more; that holds until a person waives it: writ tool waive %s --not-dangerous", name, name)
	}
}

func notDangerous(waived bool) string {
	if waived {
		return ", and as not dangerous"
	}
	return ""
}

// say adds what was heard about the class. That class write asks is said where it is
// known of a call.
func (s *Standing) say(source, at, format string, args ...any) {
	s.Reasons = append(s.Reasons, writ.Reason{Effect: writ.Allow, Source: source, Where: at, Text: fmt.Sprintf(format, args...)})
}

// base is the digest of what every call of a pair may reach: its confinement and
// class before the arguments ask for more. A grant is bound to it.
func (p *pair) base() (writ.Digest, error) {
	text, err := wire.Marshal(struct {
		Class   writ.Class       `json:"class"`
		Confine writ.Confinement `json:"confinement"`
	}{p.class, p.confine})
	if err != nil {
		return writ.Digest{}, err
	}
	return wire.Digest(text), nil
}

// changes is why a call is class write. Where talking to hosts alone makes it so, it names
// them, and the key by which an operator who knows better says so.
func changes(talks []string, other bool) string {
	const most = 3
	if other || len(talks) == 0 {
		return "it changes something outside the workspace (class write)"
	}
	named := talks[:min(most, len(talks))]
	more := ""
	if len(talks) > most {
		more = fmt.Sprintf(" and %d more", len(talks)-most)
	}
	return fmt.Sprintf("it talks to %s%s, which counts as write (class write); egress.hosts.%q.class: read_only would say otherwise",
		strings.Join(named, ", "), more, strings.TrimSuffix(talks[0], ":443"))
}
