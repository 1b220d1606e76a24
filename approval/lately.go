package approval

import "sync"

// lately remembers some of what was seen before. Nothing depends on it but time: what it
// has forgotten is looked for where it is kept.
type lately struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

const manySeen = 10_000

func (l *lately) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil || len(l.seen) >= manySeen {
		l.seen = map[string]struct{}{}
	}
	l.seen[what] = struct{}{}
}

func (l *lately) has(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.seen[what]
	return ok
}
