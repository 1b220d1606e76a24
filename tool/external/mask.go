package external

import (
	"bytes"
	"io"
	"net/url"
	"slices"
)

// plain are the forms as they stand in a stream that is not text alone, such as git's:
// no letter is folded there, and nothing in between is passed over.
func (r redactor) plain() [][]byte {
	var out [][]byte
	for _, form := range r.forms {
		for _, f := range []string{form, url.QueryEscape(form), url.PathEscape(form)} {
			if !slices.ContainsFunc(out, func(o []byte) bool { return string(o) == f }) {
				out = append(out, []byte(f))
			}
		}
	}
	return out
}

// masked is a stream in which each form is overwritten. What it says keeps its length,
// since git's packets say theirs; a packed object that has one in it breaks.
type masked struct {
	from  io.ReadCloser
	hide  [][]byte
	held  []byte // read; of it the first ready bytes were looked at whole
	ready int
	err   error
}

const readAtOnce = 64 << 10

func (m *masked) Read(b []byte) (int, error) {
	for m.ready == 0 && m.err == nil {
		m.fill()
	}
	n := copy(b, m.held[:m.ready])
	m.held, m.ready = m.held[n:], m.ready-n
	if n == 0 {
		return 0, m.err
	}
	return n, nil
}

// fill reads more, and looks at it together with the end of what was there, in which a
// form may have begun. A form that stood whole in there is gone already.
func (m *masked) fill() {
	longest := 1
	for _, form := range m.hide {
		longest = max(longest, len(form))
	}
	buffer := make([]byte, len(m.held)+readAtOnce)
	n := copy(buffer, m.held)
	var more int
	more, m.err = m.from.Read(buffer[n:])
	m.held = buffer[:n+more]
	for _, form := range m.hide {
		for at := 0; ; {
			i := bytes.Index(m.held[at:], form)
			if i < 0 {
				break
			}
			at += i + len(form)
			copy(m.held[at-len(form):at], bytes.Repeat([]byte("*"), len(form)))
		}
	}
	if m.ready = max(0, len(m.held)-longest+1); m.err != nil {
		m.ready = len(m.held)
	}
}

func (m *masked) Close() error { return m.from.Close() }
