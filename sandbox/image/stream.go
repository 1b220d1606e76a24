package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moby/moby/api/types/jsonstream"
)

// kept is how many lines of what was said an error repeats.
const kept = 15

// follow reads what an engine says while it works, and gives the id of what it made.
func follow(from io.ReadCloser, say func(Line)) (id string, err error) {
	defer from.Close()
	var last tail
	for in := json.NewDecoder(from); ; {
		var m jsonstream.Message
		switch err := in.Decode(&m); {
		case errors.Is(err, io.EOF):
			return id, nil
		case err != nil:
			return "", fmt.Errorf("the engine stopped speaking: %w", err)
		case m.Error != nil:
			return "", errors.New(last.before(m.Error.Message))
		}
		if m.Aux != nil {
			var made struct{ ID string }
			if json.Unmarshal(*m.Aux, &made) == nil && made.ID != "" {
				id = made.ID
			}
		}
		for text := range strings.Lines(m.Stream + m.Status) {
			text = strings.Join(strings.Fields(text), " ")
			if text == "" {
				continue
			}
			if last.add(text); strings.HasPrefix(m.Status, "sha256:") { // of an import
				id = text
			}
			say(Line{Text: text, Step: strings.HasPrefix(text, "Step ") || strings.HasPrefix(text, "STEP ")})
		}
	}
}

// tail is the last lines of what was said.
type tail []string

func (t *tail) add(line string) {
	if *t = append(*t, line); len(*t) > kept {
		*t = (*t)[1:]
	}
}

// before is an error after what was said last, where that says more than the error.
func (t tail) before(err string) string {
	if len(t) == 0 {
		return err
	}
	return err + "; before that:\n  " + strings.Join(t, "\n  ")
}
