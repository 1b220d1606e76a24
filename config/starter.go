package config

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/writ-run/writ/strict"
)

//go:embed starter.yaml
var starter string

// Starter is a commented starting configuration for one agent in one workspace.
func Starter(agent, person, workspace string) string {
	return strings.NewReplacer("AGENT", strict.Word(agent), "PERSON", strict.Word(person), "WORKSPACE", strconv.Quote(workspace)).Replace(starter)
}
