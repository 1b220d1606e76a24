package config

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

//go:embed starter.yaml
var starter string

// Starter is a commented starting configuration for one agent in one workspace.
func Starter(agent, person, workspace string) string {
	return strings.NewReplacer("AGENT", word(agent), "PERSON", word(person), "WORKSPACE", strconv.Quote(workspace)).Replace(starter)
}

// word quotes a name that YAML would read as something else, such as 7 or null.
func word(name string) string {
	docs, err := parseYAML(name)
	if err == nil && len(docs) == 1 {
		if s, ok := docs[0].Body.(*ast.StringNode); ok && s.Value == name {
			return name
		}
	}
	return strconv.Quote(name)
}
