package sandbox

import (
	"io"
	"time"
)

// Container is what a driver of containers tells of the one that a command ran in.
type Container struct {
	ID      string // as the engine knows it
	Image   string // the name that the operator gave
	ImageID string // and what it stood for when the container was made
	// ReadOnly says that what its call might have written could be read alone.
	ReadOnly bool
	// Bounds is how much a limit of the container is and which key sets it, by the names
	// that Exit has for limits.
	Bounds  map[string]string
	Sidecar string // the ID of the container that is its way out; empty: it had none
	// Said is what the sidecar has to say of this command, one JSON object a line, the last
	// of them after the command's end. Nil: nothing. The sidecar is there until it has been
	// read or closed. Boxes reads and closes it, within bounds, and puts what it found into
	// Lines, which has what was said before the end until then.
	Said  io.ReadCloser
	Lines Lines
}

// listen reads what the sidecar said. It takes no longer than it may, and what had come by
// then counts: closing the reader ends a read that is under way.
func (c *Container) listen(within time.Duration, most int64) error {
	said := c.Said
	c.Said = nil
	late := time.AfterFunc(within, func() { said.Close() })
	lines, err := ReadLines(said, most)
	c.Lines = lines
	if late.Stop() {
		said.Close()
	}
	return err
}
