package profile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/writ-run/writ/strict"
)

// fill takes what was read and says what does not hold.
func (p *Profile) fill(f *strict.File, s *source) {
	p.Name = cmp.Or(s.Name, base(p.File))
	if !validName(p.Name) {
		f.Reject("name", "%q is not a name; use letters, digits, _ . and -, at most 64, beginning with a letter or digit", p.Name)
	}
	p.Description = strings.TrimSpace(string(s.Description))
	if s.Role != "" {
		p.Role = Entry{s.Role, f.Line("role")}
	}
	if s.Allowed != nil {
		list := entries(f, "allowedTools", *s.Allowed)
		p.Allowed = &list
	}
	p.Denied = entries(f, "disallowedTools", s.Denied)
	p.Servers = serverNames(f, s.Servers)
}

// entries keeps a list with its lines. An entry twice is a list that somebody thinks
// says something else.
func entries(f *strict.File, key string, texts []string) []Entry {
	out := []Entry{}
	for i, text := range texts {
		at := fmt.Sprintf("%s[%d]", key, i)
		out = append(out, Entry{text, f.Line(at)})
		if text != "" && slices.ContainsFunc(texts[:i], func(t string) bool { return strings.EqualFold(t, text) }) {
			f.Reject(at, "%q is there twice; remove one", text)
		}
	}
	return out
}

func serverNames(f *strict.File, s servers) []Entry {
	const key = "mcpServers"
	var out []Entry
	if s.list != nil {
		out = entries(f, key, s.list)
		for i, e := range out {
			validServer(f, fmt.Sprintf("%s[%d]", key, i), e.Text)
		}
	}
	folded := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		at := strict.Member(key, name)
		validServer(f, at, name)
		if other, twice := folded[strings.ToLower(name)]; twice {
			f.Reject(at, "is %s in other letters, and letter case does not matter; keep one", other)
		}
		folded[strings.ToLower(name)] = name
		out = append(out, Entry{name, f.Line(at)})
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return a.Line - b.Line })
	return out
}

// validServer takes names that lists can speak of as @name. The names of a server's
// tools begin with its own and __, so neither may run into the other; what begins
// with writ is writ's.
func validServer(f *strict.File, key, name string) {
	lower := strings.ToLower(name)
	switch {
	case name == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || len(name) > 64:
		f.Reject(key, "%q is not a server's name; use letters, digits, _ and -, at most 64", name)
	case strings.Contains(name, "__"):
		f.Reject(key, "%q holds __, which separates a server from its tools; choose another name", name)
	case strings.HasSuffix(name, "_"):
		f.Reject(key, "%q ends with _, which would run into what separates it from its tools; choose another name", name)
	case lower == "builtin":
		f.Reject(key, "%q is a word of the lists; choose another name", name)
	case strings.HasPrefix(lower, "writ"):
		f.Reject(key, "%q begins with writ, as writ's own servers do; choose another name", name)
	}
}

func validName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return s != "" && len(s) <= 64 && strings.Trim(s[:1], letters) == "" && strings.Trim(s, letters+"_.-") == ""
}
