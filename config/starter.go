package config

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed starter.yaml
var starter string

// Starter is a commented starting configuration for one agent in one workspace.
func Starter(agent, person, workspace string) string {
	return strings.NewReplacer("AGENT", agent, "PERSON", person, "WORKSPACE", strconv.Quote(workspace)).Replace(starter)
}
