package disclose

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/writ-run/writ/display"
)

// An Entry is what is known of one tool. It is not changed once an Index or a Session
// has it.
type Entry struct {
	Name        string
	Title       string
	Description string
	Category    string
	Tier        string          // cost: cheap, medium, expensive
	Schema      json.RawMessage // of the arguments
	Examples    []Example
	Failures    []string
	Resources   []Resource // besides those that every tool has, which go before
}

// Example is one call with what it is for.
type Example struct {
	What string
	Args json.RawMessage
}

// Resource is a text about a tool that is read by itself. Name is what it is loaded
// by; Title says what it is about.
type Resource struct{ Name, Title, Text string }

// LineTokens is the most that Line is counted as.
const LineTokens = 100

// firstBytes of a description are looked at for its first sentence. They are more
// than a line holds.
const firstBytes = 2048

// Line is the tool in one line: "name (category, tier): First sentence." A sentence
// that is too long ends in "…".
func (e *Entry) Line() string {
	line := label(e.Name, 64)
	if about := joined(", ", label(e.Category, 40), label(e.Tier, 20)); about != "" {
		line += " (" + about + ")"
	}
	said := firstSentence(e.Description)
	if said == "" {
		said = firstSentence(e.Title)
	}
	if said == "" {
		return cut(line, LineTokens)
	}
	return cut(line+": "+display.Line(said), LineTokens)
}

// label is a short name on one line. Those of a catalog are shorter than most.
func label(s string, most int) string {
	return display.Preview(oneLine(beginning(s, firstBytes)), most)
}

// firstSentence is the first sentence of the first paragraph of s on one line, or as
// much of it as the first firstBytes hold.
func firstSentence(s string) string {
	var paragraph strings.Builder
	for line := range strings.Lines(beginning(s, firstBytes)) {
		if strings.TrimSpace(line) != "" {
			paragraph.WriteString(line)
		} else if paragraph.Len() > 0 {
			return oneSentence(paragraph.String())
		}
	}
	if len(s) > firstBytes {
		paragraph.WriteString("…")
	}
	return oneSentence(paragraph.String())
}

func oneSentence(s string) string {
	s = oneLine(s)
	if end := sentence(s); end > 0 {
		return s[:end]
	}
	return s
}

// digest covers all of an entry: a tool that says something else has to be read again.
func (e *Entry) digest() [sha256.Size]byte {
	h := sha256.New()
	put := func(parts ...string) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(parts))))
		for _, s := range parts {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
			h.Write([]byte(s))
		}
	}
	put(e.Name, e.Title, e.Description, e.Category, e.Tier, string(e.Schema))
	put(e.Failures...)
	for _, x := range e.Examples {
		put(x.What, string(x.Args))
	}
	put()
	for _, r := range e.Resources {
		put(r.Name, r.Title, r.Text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
