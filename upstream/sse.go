package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// An eventReader reads a stream of server-sent events, each of a bounded size.
type eventReader struct {
	lines lineReader
	most  int
	piece []byte // what is left of lines that came in one piece, divided by carriage returns
	more  bool   // there is a line in it, perhaps an empty one

	last  string        // the id of the last event that had one
	retry time.Duration // how long the server wants us to wait before we come back
}

func newEventReader(r io.Reader, most int) *eventReader {
	return &eventReader{lines: lineReader{r: bufio.NewReader(r), most: most}, most: most}
}

// mostIdle is how many bytes of comments and the like may stand between two events.
const mostIdle = 1 << 20

// next is the data of the next event that has any, good until the next call.
func (e *eventReader) next() ([]byte, error) {
	var data []byte
	has, idle, message := false, 0, true
	for {
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if has && message {
				return data, nil
			}
			data, has, message = data[:0], false, true
			idle++
			if idle > mostIdle {
				return nil, fmt.Errorf("more than %d bytes of a stream without an event", mostIdle)
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if has {
				data = append(data, '\n')
			}
			data, has = append(data, value...), true
			if len(data) > e.most {
				return nil, fmt.Errorf("an event has more than %d bytes", e.most)
			}
			continue
		case "event":
			message = len(value) == 0 || string(value) == "message"
		case "id":
			if len(value) <= 1024 && bytes.IndexByte(value, 0) < 0 {
				e.last = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = min(time.Duration(ms)*time.Millisecond, longestWait)
			}
		}
		if idle += len(line) + 1; idle > mostIdle {
			return nil, fmt.Errorf("more than %d bytes of a stream without an event", mostIdle)
		}
	}
}

// line is the next line, empty ones included. A line ends with a line feed, a
// carriage return, or both.
func (e *eventReader) line() ([]byte, error) {
	if !e.more {
		raw, err := e.lines.raw()
		if err != nil {
			return nil, err
		}
		e.piece = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	}
	// One at a time: a list of the lines of a piece that is carriage returns alone would
	// be 24 times as large.
	line, rest, more := bytes.Cut(e.piece, []byte("\r"))
	e.piece, e.more = rest, more
	return line, nil
}

var errCut = errors.New("the stream ended before the answer")
