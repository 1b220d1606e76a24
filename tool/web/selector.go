package web

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// A selector is what CSS calls a list of complex selectors, without what would need more
// than one pass over a document for each of its parts: every part is held against every
// element once, whatever the selector and the document are like. Matching from the
// element outwards, as browsers and libraries do, takes time that grows with the depth to
// the power of the parts, and here both are chosen by others.
type selector []chainOf

// chainOf is parts joined by combinators.
type chainOf []part

type part struct {
	joined byte // how it follows the part before: ' ', '>', '+', '~'; 0 of the first
	tests  []test
}

// test is one condition on an element.
type test func(*outline, int) bool

// outline is the elements of a document in order, with what tests ask of them.
type outline struct {
	nodes  []*html.Node
	parent []int // -1: none
	before []int // the element before it below the same parent; -1: none
	place  []int // from 1, below the same parent
	among  []int // how many there are below the same parent
}

func outlineOf(doc *html.Node) *outline {
	o := &outline{}
	o.add(doc, -1)
	return o
}

func (o *outline) add(n *html.Node, parent int) {
	last, place := -1, 0
	var mine []int
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		place++
		at := len(o.nodes)
		o.nodes, o.parent = append(o.nodes, c), append(o.parent, parent)
		o.before, o.place, o.among = append(o.before, last), append(o.place, place), append(o.among, 0)
		last = at
		mine = append(mine, at)
		o.add(c, at)
	}
	for _, at := range mine {
		o.among[at] = place
	}
}

// find gives the elements that a selector matches, in order.
func (s selector) find(ctx context.Context, o *outline) ([]int, error) {
	found := make([]bool, len(o.nodes))
	for _, c := range s {
		matched, err := c.match(ctx, o)
		if err != nil {
			return nil, err
		}
		for i, m := range matched {
			found[i] = found[i] || m
		}
	}
	var out []int
	for i, m := range found {
		if m {
			out = append(out, i)
		}
	}
	return out, nil
}

func (c chainOf) match(ctx context.Context, o *outline) ([]bool, error) {
	var before []bool
	for _, p := range c {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now, near := make([]bool, len(o.nodes)), make([]bool, len(o.nodes))
		for i := range o.nodes {
			now[i] = p.follows(o, i, before, near) && p.holds(o, i)
		}
		before = now
	}
	return before, nil
}

// follows reports whether an element stands to one that the part before matched as the
// combinator says. near remembers it for all that is further in or after.
func (p part) follows(o *outline, i int, before, near []bool) bool {
	via := o.parent[i]
	switch p.joined {
	case 0:
		return true
	case '+', '~':
		via = o.before[i]
	}
	if via < 0 {
		return false
	}
	if p.joined == '>' || p.joined == '+' {
		return before[via]
	}
	near[i] = before[via] || near[via]
	return near[i]
}

func (p part) holds(o *outline, i int) bool {
	for _, t := range p.tests {
		if !t(o, i) {
			return false
		}
	}
	return true
}

func named(name string) test {
	return func(o *outline, i int) bool { return o.nodes[i].Data == name }
}

func identified(id string) test {
	return func(o *outline, i int) bool { return attr(o.nodes[i], "id") == id }
}

func classed(class string) test {
	return func(o *outline, i int) bool {
		return slices.Contains(strings.Fields(attr(o.nodes[i], "class")), class)
	}
}

// attributed is a condition on an attribute. fold compares without case.
func attributed(name, op, value string, fold bool) test {
	if fold {
		value = strings.ToLower(value)
	}
	return func(o *outline, i int) bool {
		has, is := lookup(o.nodes[i], name)
		if fold {
			is = strings.ToLower(is)
		}
		return has && compare(op, is, value)
	}
}

func lookup(n *html.Node, name string) (bool, string) {
	for _, a := range n.Attr {
		if a.Key == name {
			return true, a.Val
		}
	}
	return false, ""
}

func compare(op, is, value string) bool {
	switch op {
	case "":
		return true
	case "=":
		return is == value
	case "~=":
		return value != "" && slices.Contains(strings.Fields(is), value)
	case "|=":
		return is == value || strings.HasPrefix(is, value+"-")
	case "^=":
		return value != "" && strings.HasPrefix(is, value)
	case "$=":
		return value != "" && strings.HasSuffix(is, value)
	}
	return value != "" && strings.Contains(is, value) // *=
}

// counted is every step-th element from the one at start, by its place.
func counted(step, start int, fromEnd bool) test {
	return func(o *outline, i int) bool {
		place := o.place[i]
		if fromEnd {
			place = o.among[i] - place + 1
		}
		if step == 0 {
			return place == start
		}
		return (place-start)%step == 0 && (place-start)/step >= 0
	}
}

func empty(o *outline, i int) bool {
	for c := o.nodes[i].FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode || c.Type == html.TextNode && c.Data != "" {
			return false
		}
	}
	return true
}

func only(o *outline, i int) bool { return o.among[i] == 1 }

func root(o *outline, i int) bool { return o.parent[i] < 0 }

func not(p part) test {
	return func(o *outline, i int) bool { return !p.holds(o, i) }
}
