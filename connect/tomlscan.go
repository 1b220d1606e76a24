package connect

import (
	"bytes"
	"fmt"
	"slices"
)

// scanner finds where the parts of a TOML file begin and end. It takes every file that
// is TOML 1.0 and divides it as TOML does; what it takes beyond that is the client's to
// refuse, and is left as it is.
type scanner struct {
	data []byte
	at   int
}

// maxNesting bounds recursion on what somebody else wrote.
const maxNesting = 100

func parseTOML(data []byte) ([]statement, error) {
	s := &scanner{data: data}
	if bytes.HasPrefix(data, bom) {
		s.at = len(bom)
	}
	var out []statement
	var table []string
	for {
		start := s.at
		s.spaces()
		switch c := s.peek(); {
		case s.at == len(data):
			return out, nil
		case c == '\n' || c == '\r' || c == '#':
			if err := s.endLine(); err != nil {
				return nil, err
			}
		default:
			st, err := s.statement(table)
			if err != nil {
				return nil, err
			}
			st.start, st.end = start, s.at
			if st.head {
				table = st.path
			}
			out = append(out, st)
		}
	}
}

func (s *scanner) statement(table []string) (st statement, err error) {
	if s.peek() == '[' {
		st.head = true
		s.at++
		if st.list = s.peek() == '['; st.list {
			s.at++
		}
		if st.path, err = s.keys(); err != nil {
			return st, err
		}
		if err := s.expect(']'); err != nil {
			return st, err
		}
		if st.list && (s.at == len(s.data) || s.peek() != ']') {
			return st, s.fail("a header ends with ]]")
		}
		if st.list {
			s.at++
		}
		s.spaces()
		return st, s.endLine()
	}
	keys, err := s.keys()
	if err != nil {
		return st, err
	}
	st.path = append(slices.Clone(table), keys...)
	if err := s.expect('='); err != nil {
		return st, err
	}
	s.spaces()
	if st.leaf, err = s.value(st.path, 0); err != nil {
		return st, err
	}
	s.spaces()
	return st, s.endLine()
}

func (s *scanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *scanner) spaces() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.at++
	}
}

// blank skips spaces, line ends and comments, where a value goes on over lines.
func (s *scanner) blank() error {
	for {
		s.spaces()
		if c := s.peek(); s.at == len(s.data) || c != '\n' && c != '\r' && c != '#' {
			return nil
		}
		if err := s.endLine(); err != nil {
			return err
		}
	}
}

// endLine takes a comment and the end of the line, or of the file.
func (s *scanner) endLine() error {
	if s.peek() == '#' {
		for s.at < len(s.data) && s.peek() != '\n' && s.peek() != '\r' {
			s.at++
		}
	}
	if s.peek() == '\r' {
		s.at++
		if s.peek() != '\n' {
			return s.fail("a carriage return without a line end")
		}
	}
	if s.at < len(s.data) && s.peek() != '\n' {
		return s.fail("%q is not expected there", s.data[s.at])
	}
	s.at = min(s.at+1, len(s.data))
	return nil
}

func (s *scanner) expect(c byte) error {
	s.spaces()
	if s.at == len(s.data) || s.peek() != c {
		return s.fail("there is no %c", c)
	}
	s.at++
	return nil
}

func (s *scanner) fail(format string, args ...any) error {
	return lineError(s.data, s.at, "is not TOML: %s; correct it, then run this again", fmt.Sprintf(format, args...))
}

// keys reads a dotted key.
func (s *scanner) keys() ([]string, error) {
	var out []string
	for {
		s.spaces()
		start := s.at
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			if err := s.str(false); err != nil {
				return nil, err
			}
			key, err := tomlString(string(s.data[start:s.at]))
			if err != nil {
				return nil, s.fail("%v", err)
			}
			out = append(out, key)
		default:
			for isBare(s.peek()) {
				s.at++
			}
			if s.at == start {
				return nil, s.fail("a key is expected")
			}
			out = append(out, string(s.data[start:s.at]))
		}
		s.spaces()
		if s.peek() != '.' {
			return out, nil
		}
		s.at++
	}
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
