package wrapped

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"io"
)

// maxJob bounds a job; arguments alone may have 2 MiB.
const maxJob = 16 << 20

// encode is a job as it goes to the supervisor: its length, and then itself. Not as JSON:
// names of files and arguments are bytes, and need not be text.
func (j Job) encode() ([]byte, error) {
	var out bytes.Buffer
	out.Write(make([]byte, 4))
	if err := gob.NewEncoder(&out).Encode(j); err != nil {
		return nil, err
	}
	text := out.Bytes()
	if len(text) > maxJob {
		return nil, errors.New("the job is too long")
	}
	binary.NativeEndian.PutUint32(text, uint32(len(text)-4))
	return text, nil
}

// takeJob reads a job: as it came, to be passed on, and what it says.
func takeJob(from io.Reader) (text []byte, j Job, err error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, j, err
	}
	n := binary.NativeEndian.Uint32(size[:])
	if n > maxJob {
		return nil, j, errors.New("the job is too long")
	}
	text = make([]byte, n)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, j, err
	}
	return text, j, gob.NewDecoder(bytes.NewReader(text)).Decode(&j)
}
