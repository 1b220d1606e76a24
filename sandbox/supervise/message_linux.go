package supervise

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"io"
	"time"
)

// Descriptors that a supervisor has besides 0, 1 and 2, which are those of whatever
// started it. What becomes the command has the first two, for its job and its report.
const (
	fdControl = 3 // in: the job, then messages; its end is msgKill
	fdStatus  = 4 // out
	fdStdin   = 5 // of the command, and two more
	// FirstFile is where the files of a Launch begin.
	FirstFile = 8
)

// Messages to a supervisor.
const (
	msgTerm = 't' // ask the processes to end
	msgKill = 'k'
)

// A status is what a supervisor says, one a line.
type status struct {
	Up      bool     `json:",omitempty"` // whatever started it has done its work
	Started bool     `json:",omitempty"`
	Failed  *Failure `json:",omitempty"`
	End     *end     `json:",omitempty"`
}

// An end is how a command ended, and everything with it.
type end struct {
	Code   int
	Signal string
	Limit  string // of the job, that ended it
	Met    string // that it came up against, whatever ended it
	CPU    time.Duration
}

// maxJob bounds a job; arguments alone may have 2 MiB.
const maxJob = 16 << 20

// encode is a job as it goes to the supervisor: its length, and then itself. Not as JSON:
// names of files and arguments are bytes, and need not be text.
func encode(job any) ([]byte, error) {
	var out bytes.Buffer
	out.Write(make([]byte, 4))
	if err := gob.NewEncoder(&out).Encode(job); err != nil {
		return nil, err
	}
	text := out.Bytes()
	if len(text) > maxJob {
		return nil, errors.New("the job is too long")
	}
	binary.NativeEndian.PutUint32(text, uint32(len(text)-4))
	return text, nil
}

// take reads a job: as it came, to be passed on, and what it says.
func take[J any](from io.Reader) (text []byte, j J, err error) {
	text = make([]byte, 4)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, j, err
	}
	n := binary.NativeEndian.Uint32(text)
	if n > maxJob {
		return nil, j, errors.New("the job is too long")
	}
	text = append(text, make([]byte, n)...)
	if _, err := io.ReadFull(from, text[4:]); err != nil {
		return nil, j, err
	}
	return text, j, gob.NewDecoder(bytes.NewReader(text[4:])).Decode(&j)
}
