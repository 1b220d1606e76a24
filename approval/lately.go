package approval

import "sync"

// lately remembers some of what was seen before. Nothing depends on it but time: what it
// has forgotten is looked for where it is kept.
type lately[V any] struct {
	most int

	mu   sync.Mutex
	seen map[string]V
}

func (l *lately[V]) add(what string, v V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil || len(l.seen) >= l.most {
		l.seen = map[string]V{}
	}
	l.seen[what] = v
}

func (l *lately[V]) get(what string) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok = l.seen[what]
	return v, ok
}
