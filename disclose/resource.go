package disclose

import (
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/display"
)

// The resources that every tool has: what Full shows, without its bounds.
const (
	partDescription = "description"
	partSchema      = "schema"
	partExamples    = "examples"
	partFailures    = "failure_modes"
	partResources   = "resources" // the names of all
)

// Resource is the text of one resource (L3), safe to read. It is as long as its author
// made it: whoever hands it to a model caps it as any result.
func (e *Entry) Resource(name string) (string, error) {
	switch name {
	case partDescription:
		return display.Visible(e.Description), nil
	case partSchema:
		return compact(e.Schema), nil
	case partExamples:
		return e.examples().whole(), nil
	case partFailures:
		return e.failures().whole(), nil
	case partResources:
		return e.resources().whole(), nil
	}
	for _, r := range e.Resources {
		if r.Name == name {
			return display.Visible(r.Text), nil
		}
	}
	return "", writ.Fail(writ.NotFound, fmt.Sprintf("%s has no resource %q; take one of %s", label(e.Name, 64), display.Preview(name, 64), e.named()), nil)
}

// A series is a part of an entry that is read line by line. Lines are made one at a
// time, so that a million of them cost no more than what is shown.
type series struct {
	part    string // the resource that has all
	heading string
	n       int
	size    func(int) int // in bytes, before a line is made
	line    func(int) string
}

func (e *Entry) examples() series {
	return series{partExamples, "Examples", len(e.Examples),
		func(i int) int { return len(e.Examples[i].What) + len(e.Examples[i].Args) },
		func(i int) string {
			return joined(": ", display.Line(oneLine(e.Examples[i].What)), compact(e.Examples[i].Args))
		}}
}

func (e *Entry) failures() series {
	return series{partFailures, "Failure modes", len(e.Failures),
		func(i int) int { return len(e.Failures[i]) },
		func(i int) string { return display.Line(oneLine(e.Failures[i])) }}
}

func (e *Entry) resources() series {
	return series{partResources, "More, by " + LoadResource, len(e.Resources),
		func(int) int { return 0 }, // a line is short whatever it is of
		func(i int) string {
			return joined(": ", label(e.Resources[i].Name, 64), label(e.Resources[i].Title, 120))
		}}
}

func (s series) whole() string {
	var b strings.Builder
	for i := range s.n {
		b.WriteString("- " + s.line(i) + "\n")
	}
	return b.String()
}

// named is what Resource takes, the first few of them.
func (e *Entry) named() string {
	names := []string{partDescription, partSchema, partExamples, partFailures, partResources}
	for _, r := range e.Resources[:min(len(e.Resources), 20)] {
		names = append(names, label(r.Name, 64))
	}
	return strings.Join(names, ", ")
}
