package connect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Connect says what makes data name s. An entry of ours keeps the keys that somebody
// added to it; a foreign one is a *Foreign error unless it is to be replaced.
func Connect(l Language, data []byte, s Server, replace bool) (Change, error) {
	if err := s.check(); err != nil {
		return Change{}, err
	}
	f, err := find(l, data)
	switch {
	case err != nil:
		return Change{}, err
	case f == nil:
		after, err := l.add(data, s)
		return Change{Added, after, nil}, err
	case f.is(s):
		return Change{Unchanged, data, f}, nil
	case f.ours() && f.URL == "" && s.URL == "" && f.State == s.State:
		return Change{Replaced, update(l, data, f, map[string]any{"command": s.Command, "args": s.Args}), f}, nil
	case f.ours() && f.URL != "" && s.URL != "":
		return Change{Replaced, update(l, data, f, map[string]any{"url": s.URL}), f}, nil
	case !f.ours() && !replace:
		return Change{}, &Foreign{f}
	case f.ours() && f.URL == "" && s.URL == "" && len(f.Also) > 0 && !replace:
		return Change{}, &BadLine{f.Line, stateOf(s, f.Also)}
	}
	after, err := l.swap(data, f, s)
	return Change{Replaced, after, f}, err
}

// stateOf says what a person has to do to an entry with keys of their own: among those
// another environment cannot be put without taking them along.
func stateOf(s Server, also []string) string {
	does := fmt.Sprintf("give its env %s = %q", StateVariable, s.State)
	if s.State == "" {
		does = fmt.Sprintf("take %s out of its env", StateVariable)
	}
	return fmt.Sprintf("has an entry with keys that you added (%s), and its state is elsewhere; %s, then run this again, or write it anew without them: --replace", strings.Join(also, ", "), does)
}

// update replaces values of an entry in place, the last first so that spans stay good.
func update(l Language, data []byte, f *Found, values map[string]any) []byte {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return f.fields[b].start - f.fields[a].start })
	for _, k := range keys {
		data = splice(data, f.fields[k], l.instead(data, f.fields[k], values[k]))
	}
	return data
}

// Disconnect says what takes the entry out. earlier are backups of the file: one that
// becomes data when the entry is added to it is exactly what was there before. Where
// each has an entry of ours, a file that holds nothing else was made by Connect, and goes.
func Disconnect(l Language, data []byte, earlier [][]byte, force bool) (Change, error) {
	f, err := find(l, data)
	switch {
	case err != nil:
		return Change{}, err
	case f == nil:
		return Change{Unchanged, data, nil}, nil
	case !f.ours() && !force:
		return Change{}, &Foreign{f}
	}
	if len(f.Also) == 0 {
		existed := false
		for _, before := range earlier {
			there, err := find(l, before)
			if err == nil && there != nil && there.ours() {
				continue // as it was under an earlier Connect
			}
			existed = true
			if err != nil || there != nil {
				continue
			}
			if again, err := l.add(before, f.Server); err == nil && bytes.Equal(again, data) {
				return Change{Removed, before, f}, nil
			}
		}
		if fresh, err := l.add(nil, f.Server); err == nil && bytes.Equal(fresh, data) && !existed {
			return Change{Removed, nil, f}, nil
		}
	}
	after, err := l.cut(data, f)
	return Change{Removed, after, f}, err
}

func find(l Language, data []byte) (*Found, error) {
	if data == nil {
		return nil, nil
	}
	if !utf8.Valid(data) {
		return nil, lineError(data, firstInvalid(data), "is not UTF-8; correct it, then run this again")
	}
	return l.find(data)
}

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}
