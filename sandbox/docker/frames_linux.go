package docker

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// What a frame holds. Those of a supervisor come from it, the others go to it.
const (
	frameStatus = 's'
	frameOut    = 'o'
	frameErr    = 'e'
	frameTook   = 't' // it has passed a piece of input on, and the next one may come

	frameControl = 'c'
	frameIn      = 'i' // a piece of input; empty: its end
	frameBeat    = 'b'
)

// maxFrame bounds a frame; a job is the longest.
const maxFrame = 32 << 20

// frames writes frames to one stream, for several writers.
type frames struct {
	mu   sync.Mutex
	to   io.Writer
	last []byte // whose room the next one takes: a supervisor passes on more than it has memory
}

func (f *frames) send(kind byte, b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = append(binary.BigEndian.AppendUint32(append(f.last[:0], kind), uint32(len(b))), b...)
	_, err := f.to.Write(f.last)
	return err
}

// as is a writer whose every write is a frame of a kind.
func (f *frames) as(kind byte) io.Writer { return frameWriter{f, kind} }

type frameWriter struct {
	frames *frames
	kind   byte
}

func (w frameWriter) Write(b []byte) (int, error) {
	if err := w.frames.send(w.kind, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// receive hands every frame of a stream on until that ends, or one is none.
func receive(from io.Reader, take func(kind byte, b []byte) error) error {
	var head [5]byte
	for {
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n > maxFrame {
			return errors.New("a frame is too long")
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(from, b); err != nil {
			return err
		}
		if err := take(head[0], b); err != nil {
			return err
		}
	}
}
