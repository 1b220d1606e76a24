package connect

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tomlString is the text of a string of one line. Ours never have more.
func tomlString(text string) (string, error) {
	if len(text) < 2 || text[0] != text[len(text)-1] || len(text) >= 6 && text[1] == text[0] {
		return "", fmt.Errorf("a string of one line is expected")
	}
	body := text[1 : len(text)-1]
	switch text[0] {
	case '\'':
		return body, nil
	case '"':
		return unescape(body)
	}
	return "", fmt.Errorf("a string is expected")
}

func unescape(body string) (string, error) {
	simple := map[byte]byte{'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', '"': '"', '\\': '\\', 'e': 0x1b}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			b.WriteByte(body[i])
			continue
		}
		if i++; i == len(body) {
			return "", fmt.Errorf("a backslash ends the string")
		}
		if c, ok := simple[body[i]]; ok {
			b.WriteByte(c)
			continue
		}
		n := digits[body[i]]
		if n == 0 || i+n >= len(body) {
			return "", fmt.Errorf("\\%c is no escape", body[i])
		}
		code, err := strconv.ParseUint(body[i+1:i+1+n], 16, 32)
		if err != nil || !utf8.ValidRune(rune(code)) {
			return "", fmt.Errorf("\\%c%s is no character", body[i], body[i+1:i+1+n])
		}
		b.WriteRune(rune(code))
		i += n
	}
	return b.String(), nil
}

// tomlStrings is a list of strings.
func tomlStrings(text string) ([]string, error) {
	s := &scanner{data: []byte(text)}
	if s.peek() != '[' {
		return nil, fmt.Errorf("a list is expected")
	}
	var out []string
	err := s.items(']', func() error {
		start := s.at
		if _, err := s.value(nil, 0); err != nil {
			return err
		}
		one, err := tomlString(string(s.data[start:s.at]))
		out = append(out, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
