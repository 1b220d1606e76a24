package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
)

// A lineReader reads lines of a bounded length.
type lineReader struct {
	r    *bufio.Reader
	most int
	long []byte // the beginning of a line that is longer than r's buffer
}

// next is the next line that is not empty, without its end. It is good until the next
// call.
func (l *lineReader) next() ([]byte, error) {
	for {
		raw, err := l.raw()
		if err != nil {
			return nil, err
		}
		if line := bytes.TrimSpace(raw); len(line) > 0 {
			return line, nil
		}
	}
}

// raw is the next line with its end. What has no end is no line.
func (l *lineReader) raw() ([]byte, error) {
	if cap(l.long) > 1<<20 { // one long answer must not hold its room for ever
		l.long = nil
	}
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.long)+len(part) > l.most+1 {
			return nil, fmt.Errorf("a line has more than %d bytes", l.most)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, part...)
			continue
		case err != nil:
			return nil, err
		case len(l.long) == 0:
			return part, nil
		}
		l.long = append(l.long, part...)
		return l.long, nil
	}
}
