package engine

import (
	"fmt"
	"strings"
	"sync"
)

// wordsKept is how many bytes are kept of each end of what a program says.
const wordsKept = 1 << 10

// words keeps the beginning and the end of what a program said on its standard error: the
// first lines usually say what went wrong. Safe for concurrent use.
type words struct {
	mu         sync.Mutex
	head, tail []byte
	between    int // bytes that were not kept
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(b), wordsKept-len(w.head))
	w.head = append(w.head, b[:n]...)
	w.tail = append(w.tail, b[n:]...)
	if over := len(w.tail) - wordsKept; over > 0 {
		w.between += over
		w.tail = append([]byte(nil), w.tail[over:]...)
	}
	return len(b), nil
}

// after is what was said, on lines of its own below an introduction; empty where it was
// nothing.
func (w *words) after(introduction string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	between := ""
	if w.between > 0 {
		between = fmt.Sprintf("\n… (%d bytes)\n", w.between)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(w.head)+between+string(w.tail), "?"))
	if text == "" {
		return ""
	}
	return introduction + "\n" + text
}
