package web

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// mostParts bounds a selector: each part is one pass over the document.
const mostParts = 32

// parseSelector reads a selector. Its errors say what is understood.
func parseSelector(text string) (selector, error) {
	p := &selecting{rest: text}
	var out selector
	for {
		c, err := p.chain()
		if err != nil {
			return nil, failf("selector %q: %v", cutTo(text, 200), err)
		}
		out = append(out, c)
		if p.rest == "" {
			return out, nil
		}
		p.rest = p.rest[1:] // the comma
	}
}

// selecting is a selector as far as it is not read yet.
type selecting struct {
	rest  string
	parts int
}

func (p *selecting) spaces() bool {
	trimmed := strings.TrimLeft(p.rest, " \t\r\n\f")
	was := len(trimmed) < len(p.rest)
	p.rest = trimmed
	return was
}

func (p *selecting) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// chain reads up to a comma or the end.
func (p *selecting) chain() (chainOf, error) {
	var out chainOf
	joined := byte(0)
	p.spaces()
	for {
		one, err := p.part()
		if err != nil {
			return nil, err
		}
		one.joined = joined
		out = append(out, one)
		spaced := p.spaces()
		switch {
		case p.rest == "" || p.rest[0] == ',':
			return out, nil
		case strings.IndexByte(">+~", p.rest[0]) >= 0:
			joined = p.rest[0]
			p.rest = p.rest[1:]
			p.spaces()
		case spaced:
			joined = ' '
		default:
			return nil, p.unexpected()
		}
	}
}

func (p *selecting) unexpected() error {
	if p.rest == "" {
		return fmt.Errorf("it ends where an element, .class, #id, [attribute] or :pseudo-class has to follow")
	}
	_, n := utf8.DecodeRuneInString(p.rest)
	return fmt.Errorf("%q is not understood there; there are elements, *, .class, #id, [attribute], :pseudo-classes, and between them spaces, >, +, ~ and commas", p.rest[:n])
}

// part reads conditions that are on one element.
func (p *selecting) part() (part, error) {
	if p.parts++; p.parts > mostParts {
		return part{}, fmt.Errorf("it has more than %d parts; write several selectors", mostParts)
	}
	var out part
	all := p.take('*')
	if name := p.name(); name != "" && !all {
		out.tests = append(out.tests, named(strings.ToLower(name)))
	} else if name != "" {
		return out, p.unexpected()
	}
	for {
		t, err := p.test()
		if err != nil {
			return out, err
		}
		if t == nil {
			break
		}
		out.tests = append(out.tests, t)
	}
	if len(out.tests) == 0 && !all {
		return out, p.unexpected()
	}
	return out, nil
}

func (p *selecting) test() (test, error) {
	switch {
	case p.take('.'):
		name, err := p.mustName("class")
		return classed(name), err
	case p.take('#'):
		name, err := p.mustName("id")
		return identified(name), err
	case p.take('['):
		return p.attribute()
	case p.take(':'):
		return p.pseudo()
	}
	return nil, nil
}

// name reads an identifier: letters, digits, - and _, anything that is not ASCII, and
// whatever a backslash stands before.
func (p *selecting) name() string {
	var out strings.Builder
	for i, r := range p.rest {
		switch {
		case r == '\\' && i+1 < len(p.rest):
			// By CSS, hexadecimal digits after it would be a code point; nobody needs that here.
			_, n := utf8.DecodeRuneInString(p.rest[i+1:])
			out.WriteString(p.rest[i+1 : i+1+n])
			rest := &selecting{rest: p.rest[i+1+n:]}
			out.WriteString(rest.name())
			p.rest = rest.rest
			return out.String()
		case r >= utf8.RuneSelf, 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			out.WriteRune(r)
		default:
			p.rest = p.rest[i:]
			return out.String()
		}
	}
	p.rest = ""
	return out.String()
}

func (p *selecting) mustName(what string) (string, error) {
	name := p.name()
	if name == "" {
		return "", fmt.Errorf("the %s has no name", what)
	}
	return name, nil
}

// attribute reads what follows [.
func (p *selecting) attribute() (test, error) {
	p.spaces()
	name, err := p.mustName("attribute")
	if err != nil {
		return nil, err
	}
	p.spaces()
	op := ""
	for _, known := range []string{"=", "~=", "|=", "^=", "$=", "*="} {
		if strings.HasPrefix(p.rest, known) {
			op = known
		}
	}
	value, fold := "", false
	if p.rest = p.rest[len(op):]; op != "" {
		p.spaces()
		if value, err = p.value(); err != nil {
			return nil, err
		}
		p.spaces()
		fold = p.take('i') || p.take('I')
		p.spaces()
	}
	if !p.take(']') {
		return nil, fmt.Errorf("[%s is not closed; write [%s], or [%s=\"value\"] with =, ~=, |=, ^=, $= or *=", name, name, name)
	}
	return attributed(strings.ToLower(name), op, value, fold), nil
}

func (p *selecting) value() (string, error) {
	if p.rest == "" || p.rest[0] != '"' && p.rest[0] != '\'' {
		return p.mustName("value")
	}
	quote := p.rest[0]
	end := strings.IndexByte(p.rest[1:], quote)
	if end < 0 {
		return "", fmt.Errorf("a value begins with %c and does not end with it", quote)
	}
	value := p.rest[1 : 1+end]
	p.rest = p.rest[end+2:]
	return value, nil
}

// pseudo reads what follows a colon.
func (p *selecting) pseudo() (test, error) {
	name := strings.ToLower(p.name())
	switch name {
	case "first-child":
		return counted(0, 1, false), nil
	case "last-child":
		return counted(0, 1, true), nil
	case "only-child":
		return only, nil
	case "empty":
		return empty, nil
	case "root":
		return root, nil
	case "nth-child", "nth-last-child", "not":
		return p.function(name)
	}
	return nil, fmt.Errorf(":%s is not understood; there are :first-child, :last-child, :only-child, :nth-child(2n+1), :nth-last-child(1), :not(.class), :empty and :root", cutTo(name, 40))
}

func (p *selecting) function(name string) (test, error) {
	if !p.take('(') {
		return nil, fmt.Errorf(":%s needs something in brackets", name)
	}
	if name == "not" {
		p.spaces()
		inner, err := p.part()
		p.spaces()
		if err == nil && !p.take(')') {
			err = fmt.Errorf(":not takes conditions on one element, such as :not(.ad[href])")
		}
		return not(inner), err
	}
	end := strings.IndexByte(p.rest, ')')
	if end < 0 {
		return nil, fmt.Errorf(":%s( is not closed", name)
	}
	step, start, err := nth(p.rest[:end])
	p.rest = p.rest[end+1:]
	return counted(step, start, name == "nth-last-child"), err
}

// nth reads odd, even, 3, n, -n+3, 2n+1.
func nth(text string) (step, start int, err error) {
	flat := strings.ToLower(strings.Join(strings.Fields(text), ""))
	switch flat {
	case "odd":
		return 2, 1, nil
	case "even":
		return 2, 0, nil
	}
	wrong := fmt.Errorf("%q is no place; write odd, even, 3, 2n or 2n+1", cutTo(text, 40))
	times, plus, has := strings.Cut(flat, "n")
	if !has {
		start, err = strconv.Atoi(flat)
		if err != nil {
			return 0, 0, wrong
		}
		return 0, start, nil
	}
	switch times {
	case "", "+":
		step = 1
	case "-":
		step = -1
	default:
		if step, err = strconv.Atoi(times); err != nil {
			return 0, 0, wrong
		}
	}
	if plus != "" {
		if start, err = strconv.Atoi(plus); err != nil || plus[0] != '+' && plus[0] != '-' {
			return 0, 0, wrong
		}
	}
	return step, start, nil
}
