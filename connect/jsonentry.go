package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

func (j JSON) find(data []byte) (*Found, error) {
	objects, err := way(data, j.Path)
	if err != nil || len(objects) <= len(j.Path) {
		return nil, err
	}
	last := objects[len(objects)-1]
	i, there := last.at(Name)
	if !there {
		return nil, nil
	}
	m := last.members[i]
	f := &Found{Text: m.value.of(data), Line: lineOf(data, m.key.start), fields: map[string]span{}, at: objects}
	return f, j.read(data, m, f)
}

// read takes an entry's values. One of an unexpected type is nobody's of ours: it stays
// empty, and the entry counts as foreign.
func (j JSON) read(data []byte, m member, f *Found) error {
	if data[m.value.start] != '{' {
		return nil
	}
	objects, err := way(data, append(slices.Clone(j.Path), Name))
	if err != nil {
		return err
	}
	for _, field := range objects[len(objects)-1].members {
		raw := []byte(field.value.of(data))
		f.fields[field.name] = field.value
		var kind string
		switch field.name {
		case "command":
			_ = json.Unmarshal(raw, &f.Command)
		case "args":
			_ = json.Unmarshal(raw, &f.Args)
		case "url":
			_ = json.Unmarshal(raw, &f.URL)
		case "headers":
			f.headers(raw)
		case "type":
			if json.Unmarshal(raw, &kind) != nil || kind != "stdio" && kind != "http" {
				f.Also = append(f.Also, field.name)
			}
		case "env":
			f.env(raw)
		default:
			f.Also = append(f.Also, field.name)
		}
	}
	return nil
}

func (f *Found) headers(raw []byte) {
	var headers map[string]string
	if json.Unmarshal(raw, &headers) != nil || len(headers) != 1 {
		f.Also = append(f.Also, "headers")
	}
	f.Token = headers["Authorization"]
}

// env takes the state, which is ours, and notes whether there is more.
func (f *Found) env(raw []byte) {
	var env map[string]any
	err := json.Unmarshal(raw, &env)
	state, ok := env[StateVariable].(string)
	if f.State = state; ok {
		delete(env, StateVariable)
	}
	if err != nil || len(env) > 0 {
		f.Also = append(f.Also, "env")
	}
}

// entry is an entry as Claude Code writes it, without spaces.
func (j JSON) entry(s Server) string {
	if s.URL != "" {
		return fmt.Sprintf(`{"type":"http","url":%s,"headers":{"Authorization":"Bearer ${%s}"}}`, j.value(s.URL), TokenVariable)
	}
	return fmt.Sprintf(`{"type":"stdio","command":%s,"args":%s,"env":%s}`, j.value(s.Command), j.value(s.Args), j.value(s.env()))
}

func (JSON) value(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // strings and lists of them
	}
	return strings.TrimSuffix(b.String(), "\n")
}
