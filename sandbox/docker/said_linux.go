package docker

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Said is what a sidecar said: a line of JSON each.
type Said struct {
	Lines   []json.RawMessage // the first ones
	Skipped int               // that were no JSON, or too long
	Dropped int               // beyond the first ones
}

const (
	saidLines = 1000
	saidBytes = 16 << 10 // of a line
)

// A said takes lines as they come. It is a writer that never fails: what a sidecar says is
// not what it is there for.
type said struct {
	mu   sync.Mutex
	all  Said
	part []byte // of a line that has not ended
	long bool   // and is too long to be kept
	hear func(msg string, line []byte)
}

// Write implements io.Writer.
func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := b; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if s.long = s.long || len(s.part)+len(line) > saidBytes; s.long {
			s.part = s.part[:0]
		} else {
			s.part = append(s.part, line...)
		}
		if ended {
			s.line()
		}
		rest = after
	}
	return len(b), nil
}

// line takes up a whole one.
func (s *said) line() {
	var is struct{ Msg string }
	line := bytes.TrimSpace(s.part)
	switch {
	case s.long || len(line) > 0 && json.Unmarshal(line, &is) != nil:
		s.all.Skipped++
	case len(line) == 0:
	case len(s.all.Lines) == saidLines:
		s.all.Dropped++
	default:
		s.all.Lines = append(s.all.Lines, bytes.Clone(line))
		s.hear(is.Msg, line)
	}
	s.part, s.long = s.part[:0], false
}

func (s *said) so() Said {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.all
	out.Lines = append([]json.RawMessage(nil), out.Lines...)
	return out
}
