package define

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// maxScript bounds a script's text, which is one element of a command line.
const maxScript = 64 << 10

func (b *builder) runner() (tool.Runner, *plan) {
	r := b.Runner
	switch {
	case r == nil || r.Process == nil && r.Script == nil:
		if !b.Unread("runner") {
			b.Reject("runner", "is missing; write process or script")
		}
	case r.Process != nil && r.Script != nil:
		b.Reject("runner", "holds process and script; keep one")
	case r.Process != nil:
		return b.process(r.Process)
	default:
		return b.script(r.Script)
	}
	return tool.Runner{}, nil
}

func (b *builder) script(s *scriptSource) (tool.Runner, *plan) {
	const key = "runner.script"
	code := string(s.Code)
	switch {
	case s.Language == "":
		b.Reject(key+".language", "is missing; there are python, javascript, bash")
	case code == "" && s.File == "":
		b.Reject(key+".code", "is missing; write code, or file with the name of a file beside this one")
	case code != "" && s.File != "":
		b.Reject(key+".file", "is given beside code; keep one")
	case s.File != "" && !plainName(s.File):
		b.Reject(key+".file", "%q is not the plain name of a file beside this one; write it without directory", s.File)
	case s.File != "" && !b.Unread(key):
		var err error
		if code, err = b.beside(s.File); err != nil {
			b.Reject(key+".file", "%v", err)
		}
	}
	if len(code) > maxScript {
		b.Reject(key, "the script has %d bytes; at most %d are taken", len(code), maxScript)
	}
	b.visible(key, code) // what a reviewer reads is what runs
	spec, err := wire.Marshal(map[string]string{"language": string(s.Language), "code": code})
	if err != nil {
		b.Reject(key, "the script is not text; save it as UTF-8")
	}
	p := &plan{stdinJSON: true, shape: b.params.shape}
	for _, word := range slices.Concat(interpreters[s.Language], []string{code}) {
		p.argv = append(p.argv, piece{literal: word})
	}
	return tool.Runner{Kind: tool.Script, Spec: json.RawMessage(spec)}, p
}

func plainName(s string) bool {
	return path.Base(s) == s && s != "." && s != ".." && s != "/" && !strings.ContainsAny(s, "\x00\\")
}

func (b *builder) process(s *processSource) (tool.Runner, *plan) {
	p := &plan{shape: b.params.shape, stdinJSON: bool(s.Stdin.word)}
	b.argv(s.Argv, p)
	spec := map[string]any{"argv": s.Argv}
	if p.stdinJSON {
		spec["stdin"] = "json"
	}
	if s.Stdin.from != nil {
		p.stdin = s.Stdin.from.Arg
		spec["stdin"] = s.Stdin.from
		if a, ok := b.argument("runner.process.stdin.arg", p.stdin); ok && a.kind != "string" {
			b.Reject("runner.process.stdin.arg", "%s is not of type string; name an argument that is, or write stdin: json", p.stdin)
		}
	}
	if s.Directory != nil {
		p.dir = s.Directory.Arg
		spec["directory"] = s.Directory
		if a, ok := b.argument("runner.process.directory.arg", p.dir); ok && (a.kind != "string" || !a.path) {
			b.Reject("runner.process.directory.arg", "%s is not a path; give it type: string and x-writ-path: read", p.dir)
		}
	}
	if !p.stdinJSON && !b.params.bad && !b.Unread("runner") && len(p.argv) == len(s.Argv) {
		for _, name := range b.params.names() {
			if !b.params.props[name].used {
				b.Reject(strict.Member("parameters.properties", name), "is used nowhere in the runner, so giving it would change nothing; use it or remove it")
			}
		}
	}
	text, err := wire.Marshal(spec)
	if err != nil {
		b.Reject("runner.process", "holds something that is not text; write it as UTF-8")
	}
	return tool.Runner{Kind: tool.Process, Spec: json.RawMessage(text)}, p
}

// argument finds one that the runner takes and marks it as used.
func (b *builder) argument(key, name string) (*parameter, bool) {
	if name == "" {
		if !b.Unread(strings.TrimSuffix(key, ".arg")) {
			b.Reject(key, "is missing; name an argument of parameters")
		}
		return nil, false
	}
	a, ok := b.params.lookup(b, key, name)
	if ok {
		a.used = true
	}
	return a, ok
}
