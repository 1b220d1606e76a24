package strict

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// These bound a file: it is written by people, and the parser takes
// time that grows with the square of lines and of entries.
const (
	MaxBytes  = 256 << 10
	MaxLines  = 10000
	maxTokens = 50000
)

// maxNested bounds what the parser recurses on. A stack that overflows ends the
// process and cannot be recovered from, so this is looked at before parsing.
const maxNested = 32

// Read reads text into the struct that into points to, as far as it can be read. It
// reports whether that is worth checking; what is wrong is in Err either way.
func (f *File) Read(text []byte, into any) bool {
	f.Lines()
	if !f.readable(text) {
		return false
	}
	docs, err := parseYAML(string(text), f.What)
	switch {
	case err != nil:
		f.syntax(err)
	case len(docs) > 1:
		f.RejectAt(beginning(docs[1]), "", "the file holds more than one YAML document; keep one")
	case len(docs) == 0 || docs[0].Body == nil || docs[0].Body.Type() == ast.NullType:
		f.RejectAt(0, "", "the file is empty; %s", f.Empty)
	default:
		f.value("", docs[0].Body, reflect.ValueOf(into).Elem())
		f.decoded = len(f.errs)
		return !slices.ContainsFunc(f.errs, func(e problem) bool { return e.path == "" && e.line > 0 })
	}
	return false
}

// beginning is the line of a document that follows another one. After "..." it may have no
// beginning of its own.
func beginning(doc *ast.DocumentNode) int {
	switch {
	case doc.Start != nil:
		return doc.Start.Position.Line
	case doc.Body != nil:
		return doc.Body.GetToken().Position.Line
	}
	return 0
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
func parseYAML(text, what string) (docs []*ast.DocumentNode, err error) {
	defer func() {
		if r := recover(); r != nil {
			docs, err = nil, fmt.Errorf("the parser gave up (%v)", r)
		}
	}()
	tokens := lexer.Tokenize(text)
	if err := tooDeep(tokens, what); err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	return parsed.Docs, nil
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
func tooDeep(tokens token.Tokens, what string) error {
	if len(tokens) > maxTokens {
		return &shapeError{tokens[maxTokens], fmt.Sprintf("more than %d words and signs; %s has less", maxTokens, what)}
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
func (f *File) syntax(err error) {
	var at interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if !errors.As(err, &at) || at.GetToken() == nil {
		f.RejectAt(0, "", "not valid YAML: %v", err)
		return
	}
	line, msg := at.GetToken().Position.Line, at.GetMessage()
	// What lists hold most, @server and *, means something else to YAML.
	if strings.Contains(msg, "reserved character") || strings.Contains(msg, "alias") || strings.Contains(msg, "unexpected scalar") {
		msg += "; quote the value"
	}
	f.RejectAt(line, "", "not valid YAML: %s", msg)
}

// Word quotes a name that YAML would read as something else, such as 7 or null.
func Word(name string) string {
	docs, err := parseYAML(name, "a name")
	if err == nil && len(docs) == 1 {
		if s, ok := docs[0].Body.(*ast.StringNode); ok && s.Value == name {
			return name
		}
	}
	return strconv.Quote(name)
}
