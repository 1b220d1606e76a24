package connect

import (
	"slices"
	"strings"
)

// TOML is Codex's file: the entry is the table mcp_servers.writ, however it is written.
type TOML struct{}

var entryPath = []string{"mcp_servers", Name}

// statement is a table's header or a key with its value, with all its lines.
type statement struct {
	span          // whole lines, the last line's end included
	path []string // from the root
	head bool     // a header: what follows belongs to it
	list bool     // a header in two brackets
	leaf []leaf   // the values of a key: one, or those of an inline table
}

// leaf is one value, with its path from the root.
type leaf struct {
	path  []string
	value span
}

// entry is what a file has of mcp_servers.writ.
type entry struct {
	statements []statement
	sections   []int // index of the header of each statement's section, or -1
	mine       []int // statements that belong to the entry
	buried     bool  // it lies in an inline table with others
}

func under(p, root []string) bool { return len(p) >= len(root) && slices.Equal(p[:len(root)], root) }

func (t TOML) find(data []byte) (*Found, error) {
	statements, err := parseTOML(data)
	if err != nil {
		return nil, err
	}
	e := &entry{statements: statements}
	section := -1
	for i, s := range statements {
		if s.head {
			section = i
		}
		e.sections = append(e.sections, section)
		if s.list && len(s.path) <= len(entryPath) && under(entryPath, s.path) {
			return nil, lineError(data, s.start, "makes %s a list of tables; it has to be a table", strings.Join(s.path, "."))
		}
		if under(s.path, entryPath) {
			e.mine = append(e.mine, i)
		}
	}
	f := &Found{fields: map[string]span{}, at: e}
	found, err := e.read(data, f)
	if err != nil || !found {
		return nil, err
	}
	return f, nil
}

// read takes the values of the entry, in whichever way they are written.
func (e *entry) read(data []byte, f *Found) (found bool, err error) {
	seen := map[string]bool{}
	note := func(path []string, at int) error {
		key := strings.Join(path, "\x00")
		if seen[key] {
			return lineError(data, at, "has %s a second time; remove one, then run this again", strings.Join(path, "."))
		}
		seen[key] = true
		if !found {
			found, f.Line = true, lineOf(data, at)
		}
		return nil
	}
	for _, s := range e.statements {
		if s.head && under(s.path, entryPath) {
			if s.list { // may be there again
				delete(seen, strings.Join(s.path, "\x00"))
			}
			if err := note(s.path, s.start); err != nil {
				return false, err
			}
			if !slices.Equal(s.path, append(slices.Clone(entryPath), "env")) { // what is in it counts
				f.also(s.path)
			}
		}
		for _, l := range s.leaf {
			if slices.Equal(l.path, entryPath[:1]) && !isTable(data, l) {
				return false, lineError(data, s.start, "has mcp_servers, which is not a table; correct it, then run this again")
			}
			if !under(l.path, entryPath) {
				continue
			}
			if err := note(l.path, l.value.start); err != nil {
				return false, err
			}
			e.buried = e.buried || !under(s.path, entryPath)
			f.take(data, l)
		}
	}
	for _, i := range e.mine {
		f.Text += e.statements[i].of(data)
	}
	if e.buried {
		f.Text = e.around(data)
	}
	return found, nil
}

func (e *entry) around(data []byte) string {
	for _, s := range e.statements {
		if slices.Equal(s.path, entryPath[:1]) && !s.head {
			return s.of(data)
		}
	}
	return ""
}

func isTable(data []byte, l leaf) bool { return data[l.value.start] == '{' }

// also notes keys of an entry that are not ours.
func (f *Found) also(path []string) {
	if len(path) > len(entryPath) && !slices.Contains(f.Also, path[len(entryPath)]) {
		f.Also = append(f.Also, path[len(entryPath)])
	}
}

func (f *Found) take(data []byte, l leaf) {
	if len(l.path) == len(entryPath)+1 {
		text := l.value.of(data)
		key := l.path[len(entryPath)]
		f.fields[key] = l.value
		switch key {
		case "command":
			f.Command, _ = tomlString(text)
			return
		case "args":
			f.Args, _ = tomlStrings(text)
			return
		case "url":
			f.URL, _ = tomlString(text)
			return
		case "bearer_token_env_var":
			f.Token, _ = tomlString(text)
			return
		}
	}
	if slices.Equal(l.path, []string{entryPath[0], Name, "env", StateVariable}) {
		f.State, _ = tomlString(l.value.of(data))
		return
	}
	f.also(l.path)
}
