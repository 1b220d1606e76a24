package define

import (
	"slices"
	"strings"

	"github.com/writ-run/writ/tool"
)

// sectionNames are the sections of a TOOL.md, each there once.
var sectionNames = []string{"Capability Description", "Inputs", "Outputs", "Failure Modes"}

// section is one of them with what stands below its heading.
type section struct {
	line int
	text []string
}

// sections reads the body of a TOOL.md, which begins at a line of the file. The
// function it returns lays what was read into a definition.
func (b *builder) sections(body string, line int) func(*tool.Definition) {
	found := map[string]*section{}
	var at *section
	fence := ""
	for i, text := range strings.Split(body, "\n") {
		text = strings.TrimRight(text, " \t\r")
		if fence = fenced(fence, text); fence == "" {
			if next := b.opens(text, line+i, at, found); next != nil {
				at = next
				continue
			}
		}
		if at != nil {
			at.text = append(at.text, text)
		} else if level, _ := heading(text); text != "" && level != 1 {
			b.RejectAt(line+i, "", "text before the first section is not read; move it below ## %s", sectionNames[0])
			at = &section{} // said once
		}
	}
	for _, name := range sectionNames {
		switch s := found[name]; {
		case s == nil:
			b.RejectAt(0, "", "the section ## %s is missing; add it", name)
		case s.body() == "":
			b.RejectAt(s.line, "", "the section %s is empty; write something below it", name)
		}
	}
	modes := b.failures(found["Failure Modes"])
	return func(d *tool.Definition) {
		d.Docs = tool.Docs{Capability: found["Capability Description"].body(), Inputs: found["Inputs"].body(), Outputs: found["Outputs"].body()}
		d.Failures = modes
	}
}

func (s *section) body() string { return strings.Trim(strings.Join(s.text, "\n"), "\n") }

// opens gives the section that a line begins, or nil. A heading of the third level or
// below that is no section's is part of the text, and so is the title of the file.
func (b *builder) opens(text string, line int, at *section, found map[string]*section) *section {
	level, title := heading(text)
	name := canonicalSection(title)
	next := &section{line: line}
	switch {
	case level == 2 && name == "", level == 1 && name == "" && at != nil:
		b.RejectAt(line, "", "there is no section %q; the sections are %s", title, strings.Join(sectionNames, ", "))
	case level == 0 || level > 3 || name == "":
		return nil
	case found[name] != nil:
		b.RejectAt(line, "", "the section %s is there twice; the first is on line %d", name, found[name].line)
	default:
		found[name] = next
	}
	return next
}

func canonicalSection(title string) string {
	i := slices.IndexFunc(sectionNames, func(name string) bool { return strings.EqualFold(name, title) })
	if i < 0 {
		return ""
	}
	return sectionNames[i]
}

// heading reads "## Title".
func heading(text string) (level int, title string) {
	rest := strings.TrimLeft(text, "#")
	level = len(text) - len(rest)
	if level < 1 || level > 6 || !strings.HasPrefix(rest, " ") {
		return 0, ""
	}
	return level, strings.TrimSpace(rest)
}

// fenced follows blocks of code, in which # begins no heading. It gives the fence
// that is open after a line.
func fenced(open, text string) string {
	text = strings.TrimLeft(text, " ")
	for _, mark := range []string{"```", "~~~"} {
		if !strings.HasPrefix(text, mark) {
			continue
		}
		if open == "" {
			return mark
		}
		if open == mark && strings.Trim(text, mark[:1]) == "" {
			return ""
		}
	}
	return open
}

// failures reads the list of failure modes: an item each, which may go on over
// indented lines.
func (b *builder) failures(s *section) []string {
	if s == nil {
		return nil
	}
	var out []string
	for i, text := range s.text {
		item, is := listItem(text)
		switch {
		case text == "":
		case is && item != "":
			out = append(out, item)
		case !is && len(out) > 0 && strings.HasPrefix(text, " "):
			out[len(out)-1] += " " + strings.TrimSpace(text)
		default:
			b.RejectAt(s.line+1+i, "", "is not an item of the list of failure modes; write each as - text")
		}
	}
	return out
}

func listItem(text string) (item string, ok bool) {
	for _, mark := range []string{"-", "*", "+"} {
		if rest, ok := strings.CutPrefix(text, mark); ok && (rest == "" || rest[0] == ' ') {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}
