package disclose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/writ-run/writ/display"
)

// FullTokens is what Full stays under.
const FullTokens = 5000

const (
	forOthers = 700      // tokens to name resources
	mostBytes = 64 << 10 // of one text: more is too large without counting
)

// Full is all that a model needs to call the tool: what it does, the schema of its
// arguments, examples and failure modes. The schema is there whole or not at all; of
// what does not fit, the text says which resource has it.
func (e *Entry) Full() string {
	// Each of the five parts has a heading, and may say what to load instead of it.
	left := FullTokens - Tokens(e.head()) - 5*(Tokens(e.instead(partDescription))+20)
	more := e.list(e.resources(), forOthers)
	left -= Tokens(more)
	schema, fits := e.schema(left)
	if fits {
		left -= Tokens(schema)
	}
	about := e.described(left)
	left -= Tokens(about)
	failures := e.list(e.failures(), left)
	left -= Tokens(failures)
	return strings.TrimSuffix(e.head()+about+schema+e.list(e.examples(), left)+failures+more, "\n")
}

// head names the tool.
func (e *Entry) head() string {
	return "# " + joined(": ", label(e.Name, 64), label(e.Title, 80)) + "\n" +
		joined(", ", label(e.Category, 40), label(e.Tier, 20)) + "\n"
}

// instead says what to load for a part that is not there.
func (e *Entry) instead(part string) string {
	return fmt.Sprintf("call %s with tool_name %s and resource_id %s", LoadResource, label(e.Name, 64), part)
}

func (e *Entry) described(left int) string {
	if strings.TrimSpace(e.Description) == "" {
		return ""
	}
	whole := display.Visible(strings.TrimSpace(beginning(e.Description, mostBytes)))
	text := cut(whole, left)
	if text != whole || len(e.Description) > mostBytes {
		text += "\n(cut here: for all of it " + e.instead(partDescription) + ")"
	}
	return "\n" + text + "\n"
}

// schema is the schema with its heading, and whether it is the whole.
func (e *Entry) schema(left int) (string, bool) {
	const heading = "\n## Arguments (JSON Schema)\n"
	if len(e.Schema) == 0 {
		return heading + "none declared\n", true
	}
	if len(e.Schema) <= mostBytes {
		if text := heading + compact(e.Schema) + "\n"; Tokens(text) <= left {
			return text, true
		}
	}
	return heading + "too large to show here: before calling it, " + e.instead(partSchema) + "\n", false
}

// list is the first lines of a series that fit, under its heading.
func (e *Entry) list(s series, left int) string {
	if s.n == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n", s.heading)
	for i := range s.n {
		text := ""
		if s.size(i) <= mostBytes {
			text = "- " + s.line(i) + "\n"
		}
		if text == "" || Tokens(text) > left {
			fmt.Fprintf(&b, "(%d of %d left out: for all of them %s)\n", s.n-i, s.n, e.instead(s.part))
			break
		}
		left -= Tokens(text)
		b.WriteString(text)
	}
	return b.String()
}

// compact is JSON on one line. A character that would not show is written as an escape
// of JSON, so that it means the same and hides nothing.
func compact(raw json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return "(not JSON)"
	}
	text := line.String()
	if display.Line(text) == text {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x7F:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}
