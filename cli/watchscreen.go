package cli

import (
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/writ-run/writ/display"
)

// What a terminal is told. Nothing else that is written holds an escape: whatever an
// agent wrote has gone through package display.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // a screen of its own, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	bell        = "\a"
)

// The least that something can be read on.
const (
	leastWidth  = 40
	leastHeight = 8
)

// screen is a terminal that is drawn on. What was there before comes back with leave.
type screen struct {
	in, out *os.File
	color   bool

	before *term.State // nil: nothing is drawn
	last   string      // the frame that stands
}

func (s *screen) enter() error {
	before, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return err
	}
	s.before, s.last = before, ""
	_, err = s.out.WriteString(enterScreen)
	return err
}

// leave may be called twice, and when a panic goes by.
func (s *screen) leave() {
	if s.before == nil {
		return
	}
	_, _ = s.out.WriteString(leaveScreen)
	_ = term.Restore(int(s.in.Fd()), s.before)
	s.before = nil
}

// size is that of the terminal, 0 by 0 where it does not say.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// show draws rows, none wider than the terminal and no more than it has, and reports
// whether they stand there now.
func (s *screen) show(rows []string) bool {
	frame := toTop + strings.Join(rows, clearLine+"\r\n") + clearLine + clearBelow
	if frame == s.last {
		return true
	}
	s.last = frame
	_, err := s.out.WriteString(frame)
	return err == nil
}

// again has the next frame drawn, also where it is the same: the terminal may have
// moved what stood there.
func (s *screen) again() { s.last = "" }

func (s *screen) paint(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// clip is the beginning of safe text of one line, at most so many columns wide, which
// are at least 16. What is cut ends in "…".
func clip(safe string, columns int) string {
	if row, all := firstRow(safe, columns); all {
		return row
	}
	row, _ := firstRow(safe, columns-2) // "…" is two wide on some terminals
	return row + "…"
}

// rowMargin is what a page has before the text of its only line.
const rowMargin = 5

func firstRow(safe string, columns int) (row string, all bool) {
	p := display.Paginate(safe, 1, columns+rowMargin)
	_, row, _ = strings.Cut(strings.TrimSuffix(p.Page(1), "\n"), "│ ")
	return row, p.Count() == 1
}

// key is a key of the keyboard: its byte, or one of those below.
type key int

const (
	keyUp key = iota + 256
	keyDown
	keyPageUp
	keyPageDown
	keyOther
)

const (
	ctrlC     key = 3
	enter     key = '\r'
	escape    key = 27
	backspace key = 127
)

// sequences are keys that send more than a byte, after the escape.
var sequences = map[string]key{
	"[A": keyUp, "OA": keyUp, "[B": keyDown, "OB": keyDown, "[5~": keyPageUp, "[6~": keyPageDown, "[D": backspace, "OD": backspace, "[C": enter, "OC": enter,
}

// keys makes keys of bytes.
type keys struct{ sequence string }

// next takes a byte and gives a key, once it is whole.
func (k *keys) next(b byte) (key, bool) {
	switch {
	case k.sequence == "" && key(b) == escape:
		k.sequence = string(rune(escape))
		return 0, false
	case k.sequence == "":
		return key(b), true
	case len(k.sequence) == 1 && b != '[' && b != 'O': // the escape key, and another
		k.sequence = ""
		return k.next(b)
	}
	k.sequence += string(rune(b))
	if len(k.sequence) == 2 || b < 0x40 && len(k.sequence) < 16 { // a final byte ends it
		return 0, false
	}
	known, ok := sequences[k.sequence[1:]]
	if k.sequence = ""; !ok {
		known = keyOther
	}
	return known, true
}
