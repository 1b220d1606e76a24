package connect

import (
	"bytes"
	"fmt"
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
			f.also(s.path)
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
	f.also(l.path)
}

func (t TOML) value(v any) string {
	switch v := v.(type) {
	case string:
		return quoteTOML(v)
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = quoteTOML(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	panic(fmt.Sprintf("a value of type %T", v))
}

func (t TOML) instead(_ []byte, _ span, v any) string { return t.value(v) }

// add appends the table, which is good wherever it stands, after an empty line. A file
// whose last line has no end keeps it so: then taking the table out again leaves it.
func (t TOML) add(data []byte, s Server) ([]byte, error) {
	statements, err := parseTOML(data)
	if err != nil {
		return nil, err
	}
	for _, st := range statements {
		if slices.Equal(st.path, entryPath[:1]) && !st.head {
			return nil, lineError(data, st.start, "has all servers in one inline table, to which no table can be added; write each as [mcp_servers.NAME], then run this again")
		}
	}
	lines := []string{"[mcp_servers." + Name + "]"}
	if s.URL != "" {
		lines = append(lines, "url = "+t.value(s.URL), "bearer_token_env_var = "+t.value(TokenVariable))
	} else {
		lines = append(lines, "command = "+t.value(s.Command), "args = "+t.value(s.Args))
	}
	end := lineEnd(data)
	block := strings.Join(lines, end)
	switch text := bytes.TrimPrefix(data, bom); {
	case len(text) == 0:
		block += end
	case bytes.HasSuffix(text, []byte("\n")):
		block = end + block + end
	default:
		block = end + end + block
	}
	return append(slices.Clone(data), block...), nil
}

func (t TOML) swap(data []byte, f *Found, s Server) ([]byte, error) {
	without, err := t.cut(data, f)
	if err != nil {
		return nil, err
	}
	return t.add(without, s)
}

// cut takes out every line of the entry: its table, the tables below it and the
// comments between their keys. Comments above a table and below its last key stay.
func (t TOML) cut(data []byte, f *Found) ([]byte, error) {
	e := f.at.(*entry)
	if e.buried {
		return nil, &BadLine{f.Line, "has the entry in an inline table with others, where it cannot be edited safely; write each server as [mcp_servers.NAME], then run this again"}
	}
	for n := len(e.mine) - 1; n >= 0; n-- {
		last := e.mine[n]
		first := last
		for n > 0 && e.sections[e.mine[n-1]] == e.sections[last] && e.mine[n-1] == first-1 && e.sections[last] >= 0 && under(e.statements[e.sections[last]].path, entryPath) {
			n--
			first = e.mine[n]
		}
		data = cutLines(data, span{e.statements[first].start, e.statements[last].end}, e.statements[first].head)
	}
	return data, nil
}

// cutLines takes lines out; with a table goes the empty line that parts it from what is
// before, where another follows or nothing does.
func cutLines(data []byte, s span, table bool) []byte {
	s.end = min(s.end, len(data)) // the line end may have gone with what came after
	before, after := data[:s.start], data[s.end:]
	end := lineEnd(data)
	if table && (len(after) == 0 || bytes.HasPrefix(after, []byte(end))) {
		ended := bytes.HasSuffix(data[:s.end], []byte("\n"))
		if bytes.HasSuffix(before, []byte("\n"+end)) || string(before) == end {
			before = bytes.TrimSuffix(before, []byte(end))
			if !ended {
				before = bytes.TrimSuffix(before, []byte(end))
			}
		}
	}
	return append(slices.Clone(before), after...)
}
