package native

import (
	"sync"
	"time"
)

// A pool is the runners that were made ahead: for the views that were asked for lately,
// in boxes that nobody has used and that are used once. Its zero value is empty.
type pool struct {
	mu     sync.Mutex
	stock  map[string]*shelf // by view
	total  int
	closed bool
}

// A shelf is the runners of one view.
type shelf struct {
	runners []*runner
	stamp   string  // what the view's names led to when they were made
	recipe  *recipe // by which
	filling bool    // somebody is making more
	used    time.Time
}

const (
	ahead    = 4  // how many of a view are kept ready
	most     = 32 // and of all views together
	idleTime = 5 * time.Minute
)

// take takes a runner for a view, where there is one; and gives the recipe of others,
// where that is known.
func (p *pool) take(v view) (*runner, *recipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stock[v.key]
	if s == nil {
		return nil, nil
	}
	s.used = time.Now()
	if s.stamp != v.stamp { // a name leads elsewhere by now
		p.clear(s)
		return nil, nil
	}
	n := len(s.runners)
	if n == 0 {
		return nil, s.recipe
	}
	r := s.runners[n-1]
	s.runners = s.runners[:n-1]
	p.total--
	return r, s.recipe
}

// recipe is how boxes of a view are made, where one was made before.
func (p *pool) recipe(v view) *recipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.stock[v.key]; s != nil && s.stamp == v.stamp {
		return s.recipe
	}
	return nil
}

// wants reports whether more should be made of a view; whoever asked does so.
func (p *pool) wants(v view) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.stock == nil {
		p.stock = map[string]*shelf{}
	}
	s := p.stock[v.key]
	if s == nil {
		s = &shelf{stamp: v.stamp, used: time.Now()}
		p.stock[v.key] = s
		time.AfterFunc(idleTime, func() { p.expire(v.key) })
	}
	if s.filling || len(s.runners) >= ahead {
		return false
	}
	if s.stamp != v.stamp {
		p.clear(s)
		s.stamp, s.recipe = v.stamp, nil
	}
	s.filling = true
	return true
}

// put puts one that was made with those that are ready, and reports whether there is
// room for more. Of the views, the one that nobody asked for the longest makes room.
func (p *pool) put(v view, r *runner, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stock[v.key]
	if err == nil && (p.closed || s == nil || s.stamp != v.stamp) {
		r.end()
		err = errUnwanted
	}
	if err == nil {
		for p.total >= most && p.dropOldest(s) {
		}
		s.runners, s.recipe = append(s.runners, r), r.cell.recipe
		p.total++
	}
	more := err == nil && len(s.runners) < ahead && p.total < most
	if s != nil {
		s.filling = more
	}
	return more
}

// dropOldest ends the runners of the view that was used the longest ago.
func (p *pool) dropOldest(but *shelf) bool {
	var oldest *shelf
	for _, s := range p.stock {
		if s != but && len(s.runners) > 0 && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest != nil {
		p.clear(oldest)
	}
	return oldest != nil
}

func (p *pool) clear(s *shelf) {
	for _, r := range s.runners {
		r.end()
	}
	p.total -= len(s.runners)
	s.runners = nil
}

// expire forgets a view that nobody asked for in a while.
func (p *pool) expire(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stock[key]
	if s == nil {
		return
	}
	if left := time.Until(s.used.Add(idleTime)); left > 0 || s.filling {
		time.AfterFunc(max(left, time.Second), func() { p.expire(key) })
		return
	}
	p.clear(s)
	delete(p.stock, key)
}

// empty ends all of them.
func (p *pool) empty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.stock {
		p.clear(s)
	}
}

// close ends all of them, for good.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.empty()
}
