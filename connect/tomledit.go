package connect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

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
	if s.State != "" {
		lines = append(lines, "env = { "+StateVariable+" = "+t.value(s.State)+" }")
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
