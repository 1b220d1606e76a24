package disclose

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/writ-run/writ"
)

// A Session is what one agent has loaded in one session. It may be used concurrently.
type Session struct {
	settings Settings

	mu      sync.Mutex
	loaded  []loaded // the oldest first
	fill    float64  // of the context, in percent, as the client last reported it
	version uint64
}

type loaded struct {
	name   string
	tokens int
	digest [sha256.Size]byte
}

// NewSession is a session in which nothing is loaded.
func NewSession(s Settings) *Session { return &Session{settings: s} }

// Load makes a tool callable, as the newest, also when it was loaded before. What had
// to go for it is returned, oldest first: as much as the budget takes, and at least one
// while the context is too full. On error nothing has changed.
func (s *Session) Load(e *Entry) (unloaded []string, err error) {
	if Discovery(e.Name) {
		return nil, writ.Fail(writ.Invalid, e.Name+" is always loaded; call it", nil)
	}
	add := loaded{name: e.Name, tokens: Tokens(e.Full()), digest: e.digest()}
	s.mu.Lock()
	defer s.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(s.loaded), func(l loaded) bool { return l.name == add.name })
	over := tokensOf(others) + add.tokens - s.settings.L2Budget
	n := oldest(others, over)
	switch {
	case add.tokens > s.settings.L2Budget:
		return nil, writ.Fail(writ.TooLarge, fmt.Sprintf("%s takes %d tokens and all loaded tools together may take %d; ask the operator to raise l2_token_budget",
			label(e.Name, 64), add.tokens, s.settings.L2Budget), nil)
	case n > 0 && !s.settings.AutoUnload:
		return nil, writ.Fail(writ.Conflict, fmt.Sprintf("%s takes %d tokens, %d more than there is room for; unload %s first",
			label(e.Name, 64), add.tokens, over, strings.Join(namesOf(others[:n]), ", ")), nil)
	case n == 0 && s.pressed():
		n = min(1, len(others))
	}
	if n > 0 || !slices.Contains(s.loaded, add) {
		s.version++
	}
	s.loaded = append(others[n:], add)
	return namesOf(others[:n]), nil
}

// oldest is how many of the tools, oldest first, hold so many tokens.
func oldest(tools []loaded, tokens int) int {
	n := 0
	for ; n < len(tools) && tokens > 0; n++ {
		tokens -= tools[n].tokens
	}
	return n
}

// pressed reports whether the context is too full to leave what is loaded as it is.
func (s *Session) pressed() bool {
	return s.settings.AutoUnload && s.fill > s.settings.Threshold
}

// Report takes how full the client's context is, in percent. Over the threshold the
// oldest tool is unloaded, one a report, because only the next report can say whether
// that was enough. The newest stays.
func (s *Session) Report(fill float64) (unloaded []string, err error) {
	if !(fill >= 0 && fill <= 100) {
		return nil, writ.Fail(writ.Invalid, "the context's fill is in percent; report a number from 0 to 100", nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fill = fill
	if !s.pressed() || len(s.loaded) < 2 {
		return nil, nil
	}
	return s.drop(func(l loaded) bool { return l.name == s.loaded[0].name }), nil
}

// Unload makes a tool not callable until it is loaded again, and reports whether it was.
func (s *Session) Unload(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.drop(func(l loaded) bool { return l.name == name })) > 0
}

// Sync unloads what the agent may not see any more, and what is not what it loaded: a
// model must not call a tool by the definition of another.
func (s *Session) Sync(visible *Index) (unloaded []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(func(l loaded) bool {
		i, ok := visible.byName[l.name]
		return !ok || visible.digests[i] != l.digest
	})
}

// drop unloads what gone reports, and returns its names, oldest first.
func (s *Session) drop(gone func(loaded) bool) (names []string) {
	var kept []loaded
	for _, l := range s.loaded {
		if gone(l) {
			names = append(names, l.name)
		} else {
			kept = append(kept, l)
		}
	}
	if len(names) > 0 {
		s.loaded = kept
		s.version++
	}
	return names
}
