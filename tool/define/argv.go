package define

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// argv checks a command line and readies it.
func (b *builder) argv(elements []element, p *plan) {
	const key = "runner.process.argv"
	if len(elements) == 0 {
		if b.Unread("runner.process") {
			return
		}
		b.Reject(key, "is missing; write the program and its arguments as a list")
		return
	}
	b.program(elements[0])
	free := false // a literal -- came before: what follows is never an option
	for i, e := range elements {
		at := fmt.Sprintf("%s[%d]", key, i)
		if e.from == nil {
			if strings.ContainsRune(e.literal, 0) {
				b.Reject(at, "holds a NUL character; remove it")
			}
			free = free || e.literal == "--"
			p.argv = append(p.argv, piece{literal: e.literal})
			continue
		}
		if i == 0 {
			continue // said by program
		}
		if e.from.Flag != "" {
			b.flag(at+".flag", e.from.Flag)
		}
		a, ok := b.argument(at+".arg", e.from.Arg)
		if !ok {
			continue
		}
		b.element(at, e.from, a)
		p.argv = append(p.argv, piece{flag: e.from.Flag, arg: e.from.Arg, free: free})
	}
}

// program takes a name to be looked up in the box's PATH, or an absolute path. A
// relative path would run what agents write.
func (b *builder) program(first element) {
	const key = "runner.process.argv[0]"
	name := first.literal
	switch {
	case first.from != nil:
		b.Reject(key, "is the program, which no argument chooses; write its name")
	case b.Unread(key):
	case strings.HasPrefix(name, "/") && path.Clean(name) == name && name != "/":
	case strings.Contains(name, "/"):
		b.Reject(key, "%q is neither a program's name nor an absolute, clean path; write one of them", name)
	case name == "." || name == ".." || strings.HasPrefix(name, "-"):
		b.Reject(key, "%q is not a program's name; write one", name)
	}
}

func (b *builder) flag(key, flag string) {
	if !strings.HasPrefix(flag, "-") || strings.Trim(flag, "-=") == "" || strings.ContainsAny(flag, "\x00 \t\n") {
		b.Reject(key, "%q is not a flag; write -k, --name or --name=", flag)
	}
}

// element refuses an argument whose values have no one spelling on a command line.
func (b *builder) element(key string, from *flagged, a *parameter) {
	scalars := []string{"string", "integer", "number"}
	switch {
	case a.kind == "":
		b.Reject(key+".arg", "%s has no single type in parameters; give it one", from.Arg)
	case a.kind == "boolean" && from.Flag == "":
		b.Reject(key+".arg", "%s is a boolean, which is a flag that is there or not; write {flag: --name, arg: %s}", from.Arg, from.Arg)
	case a.kind == "boolean" && strings.HasSuffix(from.Flag, "="):
		b.Reject(key+".flag", "%s is a boolean, which has no value on a command line; write the flag without =", from.Arg)
	case a.kind == "array" && !slices.Contains(scalars, a.items):
		b.Reject(key+".arg", "%s is an array of something else than strings, integers or numbers; give its items one of these types", from.Arg)
	case !slices.Contains(append(scalars, "boolean", "array"), a.kind):
		b.Reject(key+".arg", "%s is of type %s, which has no spelling on a command line; use stdin: json", from.Arg, a.kind)
	}
}
