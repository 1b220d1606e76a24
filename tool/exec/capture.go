package exec

import (
	"sync"
	"unicode/utf8"

	"github.com/writ-run/writ/sandbox"
)

// captureLimit is what is kept of a job's output, both streams together.
const captureLimit = 1_000_000

// capture is the output of a job as it comes. Both streams are written to it, so
// that they are read in the order in which they came. Offsets count from the first
// byte that was ever written, kept or not. It is safe for concurrent use.
type capture struct {
	mu   sync.Mutex
	tail *sandbox.Tail
}

func newCapture() *capture { return &capture{tail: sandbox.NewTail(captureLimit)} }

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tail.Write(p)
}

func (c *capture) total() int64 { return c.tail.Total() }

// last is the end of what was written, at most n bytes of it, and where it starts.
func (c *capture) last(n int64) (text string, start, total int64) {
	kept, first, total := c.kept()
	start = max(first, total-n)
	return kept[start-first:], start, total
}

// after is what was written from an offset on, at most n bytes of it. It starts
// later where the offset is no longer kept, and is empty past the end.
func (c *capture) after(from, n int64) (text string, start, total int64) {
	kept, first, total := c.kept()
	start = min(max(from, first), total)
	return kept[start-first : min(start+n, total)-first], start, total
}

func (c *capture) kept() (text string, first, total int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, total = c.tail.String(), c.tail.Total()
	return text, total - int64(len(text)), total
}

// wholeRunes leaves out a character that has only begun at the end of s, so that
// whoever goes on there gets all of it. It leaves out nothing where nothing would
// be left, since that would be the same answer for ever.
func wholeRunes(s string) string {
	for i := len(s) - 1; i > 0 && i >= len(s)-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if utf8.FullRuneInString(s[i:]) {
				return s
			}
			return s[:i]
		}
	}
	return s
}
