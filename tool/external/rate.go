package external

import (
	"sync"
	"time"
)

// rates counts the requests of each connection, over all agents: what a limit protects
// is the other side.
type rates struct {
	mu   sync.Mutex
	sent map[string][]time.Time // within the last minute, the oldest first
}

// take counts one more, or says how long until one is free.
func (r *rates) take(connection string, most int, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		r.sent = map[string][]time.Time{}
	}
	sent := r.sent[connection]
	for len(sent) > 0 && now.Sub(sent[0]) >= time.Minute {
		sent = sent[1:]
	}
	if len(sent) >= most {
		r.sent[connection] = sent
		return sent[len(sent)-most].Add(time.Minute).Sub(now)
	}
	r.sent[connection] = append(sent[:len(sent):len(sent)], now)
	return 0
}
