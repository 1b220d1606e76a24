package sandbox

import (
	"io"
	"sync"
)

// Feed copies a caller's input to a box. It ends at the latest when the box has ended
// and the next piece of input comes.
func Feed(to io.WriteCloser, from io.Reader) {
	defer to.Close()
	if from != nil {
		io.Copy(to, from) // a box that does not read its input is not an error
	}
}

// pieces are what output is passed on in: most of it is a piece or none.
var pieces = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Drain passes a box's output on as it comes, until it ends. After a failed write it
// goes on reading, so that the box is not stopped by a full pipe, and returns the
// failure in the end.
func Drain(to io.Writer, from io.ReadCloser) error {
	defer from.Close()
	if to == nil {
		to = io.Discard
	}
	var failed error
	buf := pieces.Get().(*[32 << 10]byte)
	defer pieces.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				to, failed = io.Discard, werr
			}
		}
		if err != nil {
			return failed
		}
	}
}
