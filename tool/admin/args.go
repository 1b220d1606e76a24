package admin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

// Pages of lists.
const (
	usualLimit = 50
	maxLimit   = 1000
	maxOffset  = 1 << 30
)

// valueKind is what an argument is. No kind is taken for another.
type valueKind string

const (
	text   valueKind = "string"
	number valueKind = "integer"
	truth  valueKind = "boolean" // true, and nothing else
	object valueKind = "object"
	moment valueKind = "date-time" // ISO 8601 with a zone
)

// param is an argument of an operation. The schema and the check of a call are both
// made of it.
type param struct {
	name        string
	kind        valueKind
	about       string
	required    bool
	among       []string // of a text: what it may be
	least, most int      // of a number; of a text how long it may be
	free        bool     // free text, which names no path
}

// Args are the arguments of a call as they were declared.
type Args struct {
	Offset, Limit int       // of a list
	Since, Until  time.Time // zero where they were left out
	Reason        string    // of an admin operation

	texts   map[string]string
	numbers map[string]int
	objects map[string]json.RawMessage
}

// Text is a text, empty where it was left out.
func (a Args) Text(name string) string { return a.texts[name] }

// Object is a JSON object, nil where it was left out.
func (a Args) Object(name string) json.RawMessage { return a.objects[name] }

// Number is a whole number, or another where it was left out.
func (a Args) Number(name string, otherwise int) int {
	if n, ok := a.numbers[name]; ok {
		return n
	}
	return otherwise
}

func (o operation) schema() (json.RawMessage, error) {
	props, required := map[string]any{}, []string{}
	for _, p := range o.params {
		props[p.name] = p.schema()
		if p.required {
			required = append(required, p.name)
		}
	}
	s := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	canonical, err := wire.Marshal(s)
	return json.RawMessage(canonical), err
}

func (p param) schema() map[string]any {
	s := map[string]any{"type": string(p.kind), "description": p.about}
	switch p.kind {
	case text:
		s["minLength"], s["maxLength"] = 1, p.longest()
		if p.among != nil {
			s["enum"] = p.among
		}
		if p.name == "reason" {
			s["pattern"] = `\S`
		}
	case number:
		s["minimum"], s["maximum"] = p.least, p.most
	case truth:
		s["const"] = true
	case moment:
		s["type"], s["format"] = "string", "date-time"
	}
	if p.free || p.kind == object {
		s["x-writ-text"] = true
	}
	return s
}

func (p param) longest() int {
	if p.most == 0 {
		return 256
	}
	return p.most
}

// membersOf reads the arguments. The edge has made them canonical; that is not taken on
// trust, because numbers and texts are told apart by how they are written.
func membersOf(args string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	canonical, err := wire.CanonicalObject([]byte(args))
	if err != nil || json.Unmarshal([]byte(canonical), &members) != nil {
		return nil, invalid("the arguments are not a JSON object")
	}
	return members, nil
}

// guard holds an operation to what it needs: an actor, who can do it, and for an admin
// operation confirm and a reason.
func (o operation) guard(c writ.Call, members map[string]json.RawMessage) error {
	var reason string
	_ = json.Unmarshal(members["reason"], &reason) // what is no text is no reason
	switch {
	case strings.TrimSpace(c.Agent) == "":
		return guardrail{"missing_actor", "nobody is known to have called"}
	case o.person != "":
		return writ.Fail(writ.Denied, "only a person does this: "+o.person, nil)
	case o.kind != adminOp:
	case string(members["confirm"]) != "true":
		return guardrail{"missing_confirm", "set confirm to true to say that you mean it"}
	case strings.TrimSpace(reason) == "":
		return guardrail{"missing_reason", "say in reason why you do it"}
	}
	return nil
}

// parse reads every argument as its operation declares it.
func (o operation) parse(members map[string]json.RawMessage) (Args, error) {
	a := Args{Limit: usualLimit, texts: map[string]string{}, numbers: map[string]int{}, objects: map[string]json.RawMessage{}}
	known := map[string]bool{}
	for _, p := range o.params {
		known[p.name] = true
		raw, given := members[p.name]
		if !given && !p.required {
			continue
		}
		if !given {
			return Args{}, invalid("argument %q is missing", p.name)
		}
		if why := a.take(p, raw); why != "" {
			return Args{}, invalid("argument %q: %s", p.name, why)
		}
	}
	for name := range members {
		if !known[name] {
			return Args{}, invalid("there is no argument of a name that was given; the schema has those there are")
		}
	}
	if !a.Since.IsZero() && !a.Until.IsZero() && !a.Since.Before(a.Until) {
		return Args{}, invalid("since must come before until")
	}
	a.Offset, a.Limit, a.Reason = a.Number("offset", 0), a.Number("limit", usualLimit), a.Text("reason")
	return a, nil
}

// take reads one argument; what it says repeats none of its value.
func (a *Args) take(p param, raw json.RawMessage) string {
	switch p.kind {
	case text:
		s, why := p.textOf(raw)
		a.texts[p.name] = s
		return why
	case number:
		n, err := strconv.Atoi(string(raw)) // a boolean and a string are none
		if err != nil {
			return "want a whole number"
		}
		if n < p.least || n > p.most {
			return fmt.Sprintf("it must be from %d to %d", p.least, p.most)
		}
		a.numbers[p.name] = n
	case truth:
		if string(raw) != "true" {
			return "it must be true"
		}
	case object:
		if len(raw) == 0 || raw[0] != '{' {
			return "want an object"
		}
		a.objects[p.name] = raw
	case moment:
		return a.takeMoment(p.name, raw)
	}
	return ""
}

func (p param) textOf(raw json.RawMessage) (s, why string) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", "want a string"
	}
	if n := utf8.RuneCountInString(s); n == 0 || n > p.longest() {
		return "", fmt.Sprintf("it must have 1 to %d characters", p.longest())
	}
	if p.among != nil && !slices.Contains(p.among, s) {
		return "", "it must be one of " + strings.Join(p.among, ", ")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", "it must be one line of printable characters"
	}
	return s, ""
}

func (a *Args) takeMoment(name string, raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "want a string"
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1970 || t.Year() > 9990 { // the zero time is none, and a time of the record has four digits
		return "want a time with a zone, as 2026-03-01T10:00:00Z"
	}
	if name == "since" {
		a.Since = t
	} else {
		a.Until = t
	}
	return ""
}

func invalid(format string, args ...any) error {
	return writ.Fail(writ.Invalid, fmt.Sprintf(format, args...), nil)
}
