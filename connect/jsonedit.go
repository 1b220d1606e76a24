package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// add appends the entry to its object, and the objects on the way that are missing, in
// the file's own style: on lines of their own where the file has its members so.
func (j JSON) add(data []byte, s Server) ([]byte, error) {
	if data == nil {
		data = []byte("{}\n")
	}
	objects, err := way(data, j.Path)
	if err != nil {
		return nil, err
	}
	missing := append(j.Path[len(objects)-1:len(j.Path):len(j.Path)], Name)
	text := j.entry(s)
	for i := len(missing) - 1; i > 0; i-- {
		text = fmt.Sprintf("{%s:%s}", j.value(missing[i]), text)
	}
	return insert(data, objects, missing[0], text), nil
}

// insert makes a member the last of the last object.
func insert(data []byte, objects []*object, name, text string) []byte {
	o := objects[len(objects)-1]
	key := JSON{}.value(name)
	if !onLines(data, objects) {
		if len(o.members) == 0 {
			return splice(data, span{o.open + 1, o.shut}, key+":"+text)
		}
		m := o.members[len(o.members)-1]
		return splice(data, span{m.value.end, m.value.end}, ","+gap(data, o)+key+":"+text)
	}
	end, outer := lineEnd(data), indentOf(data, o.open)
	unit := unitOf(data, objects)
	inner := outer + unit
	if len(o.members) > 0 {
		inner = gap(data, o)
		inner = inner[strings.LastIndexByte(inner, '\n')+1:]
	}
	pretty := strings.ReplaceAll(indented(text, inner, unit), "\n", end)
	if len(o.members) == 0 {
		return splice(data, span{o.open + 1, o.shut}, end+inner+key+": "+pretty+end+outer)
	}
	m := o.members[len(o.members)-1]
	return splice(data, span{m.value.end, m.value.end}, ","+gap(data, o)+key+": "+pretty)
}

func indented(text, prefix, unit string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), prefix, unit); err != nil {
		panic(err) // it is ours
	}
	return b.String()
}

// gap is the space between an object's last member and the comma or brace before it.
func gap(data []byte, o *object) string {
	key := o.members[len(o.members)-1].key.start
	from := key
	for from > o.open+1 && strings.IndexByte(" \t\r\n", data[from-1]) >= 0 {
		from--
	}
	return string(data[from:key])
}

// onLines says whether a new member gets lines of its own: as its neighbours do, or
// those of the nearest object around it that has any.
func onLines(data []byte, objects []*object) bool {
	for i := len(objects) - 1; i >= 0; i-- {
		if len(objects[i].members) > 0 {
			return strings.Contains(gap(data, objects[i]), "\n")
		}
	}
	return true
}

// indentOf is the space at the beginning of a line.
func indentOf(data []byte, offset int) string {
	start := bytes.LastIndexByte(data[:offset], '\n') + 1
	line := bytes.TrimPrefix(data[start:offset], bom)
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unitOf is one step of indentation: how much further in members begin than their object.
func unitOf(data []byte, objects []*object) string {
	for i := len(objects) - 1; i >= 0; i-- {
		if len(objects[i].members) == 0 {
			continue
		}
		space := gap(data, objects[i])
		inner := space[strings.LastIndexByte(space, '\n')+1:]
		outer := indentOf(data, objects[i].open)
		if strings.Contains(space, "\n") && strings.HasPrefix(inner, outer) && len(inner) > len(outer) {
			return inner[len(outer):]
		}
	}
	return "  "
}

// instead keeps a list on the lines of the old one.
func (j JSON) instead(data []byte, old span, v any) string {
	text := old.of(data)
	_, rest, lines := strings.Cut(text, "\n")
	if !lines {
		return j.value(v)
	}
	outer := indentOf(data, old.start)
	inner := rest[:len(rest)-len(strings.TrimLeft(rest, " \t"))]
	unit, ok := strings.CutPrefix(inner, outer)
	if !ok || unit == "" {
		unit = "  "
	}
	return strings.ReplaceAll(indented(j.value(v), outer, unit), "\n", lineEnd(data))
}

// swap leaves the entry where it is among its neighbours.
func (j JSON) swap(data []byte, f *Found, s Server) ([]byte, error) {
	objects := f.at.([]*object)
	last := objects[len(objects)-1]
	i, _ := last.at(Name)
	m := last.members[i]
	text := j.entry(s)
	if onLines(data, objects) {
		text = strings.ReplaceAll(indented(text, indentOf(data, m.key.start), unitOf(data, objects)), "\n", lineEnd(data))
	}
	return splice(data, m.value, text), nil
}

// cut takes the entry out, and the objects around it that adding it to the rest would
// make again as they are: nothing else tells one that connect made from an empty one.
func (j JSON) cut(data []byte, f *Found) ([]byte, error) {
	objects := f.at.([]*object)
	without := remove(data, objects[len(objects)-1], Name)
	for depth := len(objects) - 1; depth > 0 && len(objects[depth].members) == 1; depth-- {
		bare := remove(data, objects[depth-1], j.Path[depth-1])
		if again, err := j.add(bare, f.Server); err == nil && bytes.Equal(again, data) {
			without = bare
		}
	}
	return without, nil
}

// remove takes a member out of an object, with one comma.
func remove(data []byte, o *object, name string) []byte {
	i, _ := o.at(name)
	switch {
	case len(o.members) == 1:
		return splice(data, span{o.open + 1, o.shut}, "")
	case i == 0:
		return splice(data, span{o.members[0].key.start, o.members[1].key.start}, "")
	}
	return splice(data, span{o.members[i-1].value.end, o.members[i].value.end}, "")
}
