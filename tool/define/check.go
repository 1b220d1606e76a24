package define

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// check readies the definition as it will be used, and holds its examples against it.
func (b *builder) check(d *tool.Definition) {
	for i, e := range b.Examples {
		key := fmt.Sprintf("examples[%d]", i)
		if e.What == "" {
			b.Reject(key+".what", "is missing; say what the call is for")
		}
		if e.Args == nil {
			b.Reject(key+".args", "is missing; write the arguments of the call")
		}
	}
	if b.params.bad || b.source.Name == "" || !tool.ValidName(b.source.Name) {
		return
	}
	t, err := tool.New(tool.Definition{Name: d.Name, Schema: d.Schema}, refuse)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "tool "+d.Name+": ")
		b.Reject("parameters", "%s", strings.TrimPrefix(why, "parameters: "))
		return
	}
	for i, e := range b.Examples {
		canonical, _, err := t.Args(e.Args)
		if err != nil && e.Args != nil {
			_, msg := writ.Public(err)
			b.Reject(fmt.Sprintf("examples[%d].args", i), "does not hold: %s", strings.TrimPrefix(msg, d.Name+": "))
			continue
		}
		d.Examples = append(d.Examples, tool.Example{What: e.What, Args: json.RawMessage(canonical)})
	}
}

// refuse stands in for the work of a tool that is only being checked.
func refuse(context.Context, writ.Writ) (writ.Result, error) {
	return writ.Result{}, writ.Fail(writ.Internal, "this tool cannot be called", nil)
}

// canonical is the one spelling of a value that was read. Read checks the rest; what
// is left are numbers that JSON cannot hold.
func (b *builder) canonical(key string, v strict.JSON) (json.RawMessage, bool) {
	if b.Unread(key) {
		return nil, false
	}
	if v[0] != '{' {
		b.Reject(key, "must be a JSON Schema written as a mapping")
		return nil, false
	}
	text, err := wire.CanonicalObject(v)
	if err != nil {
		_, msg := writ.Public(err)
		b.Reject(key, "%s", msg)
		return nil, false
	}
	return json.RawMessage(text), true
}

// shown refuses text for people in which something does not show. The file itself is
// checked as it is read; this is what escapes in quotes make.
func (b *builder) shown() {
	b.visible("title", b.Title)
	b.visible("description", string(b.Description))
	for i, f := range b.Failures {
		b.visible(fmt.Sprintf("failure_modes[%d]", i), string(f))
	}
	for i, e := range b.Examples {
		b.visible(fmt.Sprintf("examples[%d].what", i), e.What)
	}
}

func (b *builder) visible(key, text string) bool {
	i := strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) || unicode.Is(unicode.Bidi_Control, r)
	})
	if i >= 0 {
		b.Reject(key, "holds the character %U, which does not show; remove it", []rune(text[i:])[0])
	}
	return i < 0
}
