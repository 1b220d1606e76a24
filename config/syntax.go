package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// These bound the file: a configuration is written by people, and the parser takes
// time that grows with the square of lines and of entries.
const (
	maxBytes  = 256 << 10
	maxLines  = 10000
	maxTokens = 50000
)

// maxNested bounds what the parser recurses on. A stack that overflows ends the
// process and cannot be recovered from, so this is looked at before parsing.
const maxNested = 32

// file reads text into a File, as far as it can be read. It reports whether that
// is worth checking.
func (d *decoder) file(text []byte, into *File) bool {
	if len(text) > maxBytes {
		d.fail(0, "", "the file has %d bytes; at most %d are read", len(text), maxBytes)
		return false
	}
	if n := bytes.Count(text, []byte("\n")); n > maxLines {
		d.fail(0, "", "the file has %d lines; at most %d are read", n, maxLines)
		return false
	}
	if line, what := badText(text); what != "" {
		d.fail(line, "", "%s", what)
		return false
	}
	docs, err := parseYAML(string(text))
	switch {
	case err != nil:
		d.syntax(err)
	case len(docs) > 1:
		d.fail(docs[1].Start.Position.Line, "", "the file holds more than one YAML document; keep one")
	case len(docs) == 0 || docs[0].Body == nil || docs[0].Body.Type() == ast.NullType:
		d.fail(0, "", "the file is empty; 'writ init' writes a starting one")
	default:
		d.value("", docs[0].Body, reflect.ValueOf(into).Elem())
		return !slices.ContainsFunc(d.errs, func(e problem) bool { return e.path == "" && e.line > 0 })
	}
	return false
}

// badText finds what editors show differently from how it is read: bytes that are
// no text, control and direction characters, line ends that only some readers see.
func badText(text []byte) (line int, what string) {
	line = 1
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return line, fmt.Sprintf("byte 0x%02X is not UTF-8; save the file as UTF-8", text[i])
		case r == '\uFEFF':
			return line, "there is a byte order mark; save the file as UTF-8 without one"
		case r == '\r' && !bytes.HasPrefix(text[i:], []byte("\r\n")):
			return line, "there is a carriage return without a line feed; end lines with a line feed"
		case r == '\n':
			line++
		case r != '\r' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)):
			return line, fmt.Sprintf("character %U does not show; remove it", r)
		}
		i += size
	}
	return 0, ""
}

// parseYAML contains the parser: hostile input is an error, whatever it does there.
func parseYAML(text string) (docs []*ast.DocumentNode, err error) {
	defer func() {
		if r := recover(); r != nil {
			docs, err = nil, fmt.Errorf("the parser gave up (%v)", r)
		}
	}()
	tokens := lexer.Tokenize(text)
	if err := tooDeep(tokens); err != nil {
		return nil, err
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	return f.Docs, nil
}

// shapeError is said of tokens before they are parsed.
type shapeError struct {
	token   *token.Token
	message string
}

func (e *shapeError) Error() string          { return e.message }
func (e *shapeError) GetMessage() string     { return e.message }
func (e *shapeError) GetToken() *token.Token { return e.token }

// tooDeep refuses directives, too many tokens, and nesting that costs a byte or two a level.
// Nesting by indentation needs no bound of its own: it is quadratic in bytes.
func tooDeep(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return &shapeError{tokens[maxTokens], fmt.Sprintf("more than %d words and signs; a configuration has less", maxTokens)}
	}
	flow, marks, dashes, dashLine := 0, 0, 0, 0
	for _, t := range tokens {
		line := t.Position.Line
		switch t.Type {
		case token.DirectiveType:
			return &shapeError{t, "directives and values that begin with % are not taken; remove the line or quote the value"}
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.AnchorType, token.AliasType, token.TagType, token.MappingKeyType:
			marks++
		case token.SequenceEntryType:
			if line != dashLine {
				dashes, dashLine = 0, line
			}
			dashes++
		}
		if max(flow, marks, dashes) > maxNested {
			return &shapeError{t, fmt.Sprintf("nested more than %d deep", maxNested)}
		}
	}
	return nil
}

// syntax keeps the parser's line and message. It never asks the parser's errors
// for their own text, which draws the file around the place and takes minutes
// over a large one.
func (d *decoder) syntax(err error) {
	var at interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if !errors.As(err, &at) || at.GetToken() == nil {
		d.fail(0, "", "not valid YAML: %v", err)
		return
	}
	line, msg := at.GetToken().Position.Line, at.GetMessage()
	// What lists hold most, @server and *, means something else to YAML.
	if strings.Contains(msg, "reserved character") || strings.Contains(msg, "alias") || strings.Contains(msg, "unexpected scalar") {
		msg += "; quote the value"
	}
	d.fail(line, "", "not valid YAML: %s", msg)
}
