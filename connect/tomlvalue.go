package connect

import (
	"bytes"
	"slices"
	"strings"
)

// value reads one value and gives the leaves it has.
func (s *scanner) value(path []string, nesting int) ([]leaf, error) {
	if nesting > maxNesting {
		return nil, s.fail("it is nested deeper than %d", maxNesting)
	}
	start := s.at
	var inner []leaf
	var err error
	switch c := s.peek(); c {
	case '"', '\'':
		err = s.str(true)
	case '[':
		err = s.items(']', func() error { _, err := s.value(nil, nesting+1); return err })
	case '{':
		err = s.items('}', func() error {
			keys, err := s.keys()
			if err != nil {
				return err
			}
			if err := s.expect('='); err != nil {
				return err
			}
			s.spaces()
			more, err := s.value(append(slices.Clone(path), keys...), nesting+1)
			inner = append(inner, more...)
			return err
		})
	default:
		for isBare(s.peek()) || s.at < len(s.data) && strings.IndexByte("+.: ", s.peek()) >= 0 {
			s.at++
		}
		text := bytes.TrimRight(s.data[start:s.at], " ")
		if s.at = start + len(text); len(text) == 0 {
			err = s.fail("a value is expected")
		}
	}
	if len(inner) > 0 || err != nil {
		return inner, err
	}
	return []leaf{{path, span{start, s.at}}}, nil
}

// items reads what stands between brackets, parted by commas.
func (s *scanner) items(shut byte, item func() error) error {
	s.at++
	for {
		if err := s.blank(); err != nil {
			return err
		}
		if s.peek() == shut {
			s.at++
			return nil
		}
		if err := item(); err != nil {
			return err
		}
		if err := s.blank(); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case shut:
		default:
			return s.fail("there is no %c", shut)
		}
	}
}

// str skips a string of any of the four kinds.
func (s *scanner) str(lines bool) error {
	quote := s.peek()
	triple := bytes.Repeat([]byte{quote}, 3)
	if !bytes.HasPrefix(s.data[s.at:], triple) {
		for s.at++; s.at < len(s.data) && s.peek() != '\n'; s.at++ {
			switch c := s.peek(); {
			case c == quote:
				s.at++
				return nil
			case c == '\\' && quote == '"' && s.at+1 < len(s.data) && s.data[s.at+1] != '\n':
				s.at++
			}
		}
		return s.fail("a string does not end on its line")
	}
	if !lines {
		return s.fail("a key is written on one line")
	}
	begin := s.at
	for s.at += 3; s.at < len(s.data); s.at++ {
		if s.peek() == '\\' && quote == '"' {
			s.at++
			continue
		}
		if bytes.HasPrefix(s.data[s.at:], triple) {
			s.at += 3
			for range 2 { // the last two quotes of five belong to the text
				if s.peek() == quote {
					s.at++
				}
			}
			return nil
		}
	}
	s.at = begin
	return s.fail("a string does not end")
}
