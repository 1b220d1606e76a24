package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/tool"
)

// Offer is what a server has to offer, read whole and checked. Raw members are as the
// server sent them; texts are fit for models and people. Read only.
type Offer struct {
	Tools        []Tool
	Resources    []Resource
	Templates    []Template
	Prompts      []Prompt
	Instructions string          // safe text
	ServerInfo   json.RawMessage // what the server calls itself; for people
	Version      string          // of the protocol
	Refused      []Refusal       // what is left out, and why

	Digest writ.Digest // of all of it, as it was sent
}

// Refusal is something of a server's that is not offered.
type Refusal struct {
	Name string // safe text
	Why  string
	With string // the server whose tool has the same name, where that is why
}

// Tool is one tool of a server.
type Tool struct {
	Name        string          // as the server calls it
	Title       string          // safe text
	Description string          // safe text
	Raw         json.RawMessage // the definition as it was sent
	Digest      writ.Digest     // of its canonical form: what is pinned
	Schema      json.RawMessage // of the arguments, cleaned
	Output      json.RawMessage // of structuredContent, cleaned; nil: none
	Hints       tool.Hints      // what its annotations say; see Definition
	Annotated   bool            // there are annotations

	headers []headerParam
	check   outputChecker // of Output
}

// Resource is one resource, or a Template of them where URI is a pattern.
type Resource struct {
	URI   string
	Name  string
	Raw   json.RawMessage
	Shown json.RawMessage // Raw with nothing hidden: what others may be given

	fits *regexp.Regexp // of a Template: what its URIs are like
}

type Template = Resource

// Prompt is one prompt.
type Prompt struct {
	Name  string
	Raw   json.RawMessage
	Shown json.RawMessage
}

// tools reads a list of tools. Of those whose names differ at most by case none is
// taken: which of them a caller means would be a guess.
func (o *Offer) tools(raw []json.RawMessage) {
	count := map[string]int{}
	var sound []Tool
	for _, r := range raw {
		t, err := parseTool(r)
		count[strings.ToLower(t.Name)]++
		if err != nil {
			o.refuse("tool", t.Name, err)
			continue
		}
		sound = append(sound, t)
	}
	for _, t := range sound {
		if count[strings.ToLower(t.Name)] > 1 {
			o.refuse("tool", t.Name, errors.New("the server has two tools of this name, or of names that differ by case alone"))
			continue
		}
		o.Tools = append(o.Tools, t)
	}
}

func (o *Offer) resources(raw []json.RawMessage, kind, member string, into *[]Resource) {
	seen := map[string]bool{}
	for _, r := range raw {
		m, err := entry(r)
		uri := text(m[member])
		switch {
		case err != nil:
		case uri == "" || len(uri) > mostURI:
			err = fmt.Errorf("its %s is missing or longer than %d bytes", member, mostURI)
		case uri != display.Line(uri):
			err = fmt.Errorf("its %s holds characters that do not show", member)
		case seen[uri]:
			err = fmt.Errorf("the server has two of them with this %s", member)
		}
		var shown json.RawMessage
		if err == nil {
			shown, err = clean(r)
		}
		var fits *regexp.Regexp
		if err == nil && member == "uriTemplate" {
			fits, err = matcher(uri)
		}
		if err != nil {
			o.refuse(kind, uri, err)
			continue
		}
		seen[uri] = true
		*into = append(*into, Resource{URI: uri, Name: display.Line(text(m["name"])), Raw: bytes.Clone(r), Shown: shown, fits: fits})
	}
}

func (o *Offer) prompts(raw []json.RawMessage) {
	seen := map[string]bool{}
	for _, r := range raw {
		m, err := entry(r)
		name := text(m["name"])
		if err == nil {
			err = usableName(name)
		}
		if err == nil && seen[strings.ToLower(name)] {
			err = errors.New("the server has two prompts of this name, or of names that differ by case alone")
		}
		var shown json.RawMessage
		if err == nil {
			shown, err = clean(r)
		}
		if err != nil {
			o.refuse("prompt", name, err)
			continue
		}
		seen[strings.ToLower(name)] = true
		o.Prompts = append(o.Prompts, Prompt{Name: name, Raw: bytes.Clone(r), Shown: shown})
	}
}

// mostRefused are listed one by one.
const mostRefused = 1000

func (o *Offer) refuse(kind, name string, why error) {
	if len(o.Refused) < mostRefused {
		o.Refused = append(o.Refused, Refusal{Name: kind + " " + short(name), Why: display.Preview(why.Error(), 400)})
	}
}

// seal is the digest over everything that was sent, in the order it was.
func (o *Offer) seal(lists ...[]json.RawMessage) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", o.Instructions, o.ServerInfo, o.Version)
	for _, list := range lists {
		fmt.Fprintf(h, "%d\x00", len(list))
		for _, raw := range list {
			fmt.Fprintf(h, "%d\x00", len(raw))
			h.Write(raw)
		}
	}
	for _, r := range o.Refused { // also what cut a list short
		fmt.Fprintf(h, "%s\x00%s\x00", r.Name, r.Why)
	}
	h.Sum(o.Digest[:0])
}
