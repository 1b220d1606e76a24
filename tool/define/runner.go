package define

import (
	"encoding/json"
	"fmt"

	"github.com/writ-run/writ/strict"
)

// runnerSource is exactly one way to run.
type runnerSource struct {
	Process *processSource `yaml:"process"`
	Script  *scriptSource  `yaml:"script"`
}

type processSource struct {
	Argv      []element   `yaml:"argv"`
	Stdin     stdinSource `yaml:"stdin"`
	Directory *argument   `yaml:"directory"`
}

type scriptSource struct {
	Language language     `yaml:"language"`
	Code     strict.Block `yaml:"code"`
	File     string       `yaml:"file"`
}

// element of an argv is a literal, or an argument's value with or without a flag.
type element struct {
	literal string
	from    *flagged
}

type flagged struct {
	Flag string `yaml:"flag" json:"flag,omitempty"`
	Arg  string `yaml:"arg" json:"arg"`
}

func (e *element) Shape(k strict.Kind) (any, string) {
	switch k {
	case strict.Text:
		return &e.literal, ""
	case strict.Mapping:
		e.from = &flagged{}
		return e.from, ""
	}
	return nil, "text in quotes or a mapping of flag and arg"
}

// MarshalJSON writes an element as it is written in YAML.
func (e element) MarshalJSON() ([]byte, error) {
	if e.from != nil {
		return json.Marshal(e.from)
	}
	return json.Marshal(e.literal)
}

type argument struct {
	Arg string `yaml:"arg" json:"arg"`
}

type stdinSource struct {
	word jsonWord
	from *argument
}

func (s *stdinSource) Shape(k strict.Kind) (any, string) {
	switch k {
	case strict.Text:
		return &s.word, ""
	case strict.Mapping:
		s.from = &argument{}
		return s.from, ""
	}
	return nil, "json or a mapping with arg"
}

type jsonWord bool

func (j *jsonWord) UnmarshalText(b []byte) error {
	if *j = string(b) == "json"; !*j {
		return fmt.Errorf("%q is not an input; write json, or a mapping with arg", b)
	}
	return nil
}

// interpreters run a script's text, which is appended. Python's -I keeps modules of
// the working directory, where agents write, from standing in for its own.
var interpreters = map[language][]string{
	"python":     {"python3", "-I", "-c"},
	"javascript": {"node", "-e"},
	"bash":       {"bash", "-o", "pipefail", "-c"},
}

type language string

func (l *language) UnmarshalText(b []byte) error {
	*l = language(b)
	_, err := pick("language", b, "python", "javascript", "bash")
	return err
}
