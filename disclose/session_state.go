package disclose

import "slices"

// Callable reports whether a model may call the tool, as far as loading goes.
func (s *Session) Callable(name string) bool {
	if Discovery(name) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.loaded, func(l loaded) bool { return l.name == name })
}

// Loaded names what is loaded, the oldest first.
func (s *Session) Loaded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return namesOf(s.loaded)
}

// Used is how many tokens of the budget are taken.
func (s *Session) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tokensOf(s.loaded)
}

// Version changes exactly when the set of loaded tools does, or the definition of one:
// what a client was shown at the same version still holds.
func (s *Session) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func tokensOf(tools []loaded) int {
	sum := 0
	for _, l := range tools {
		sum += l.tokens
	}
	return sum
}

func namesOf(tools []loaded) []string {
	var names []string
	for _, l := range tools {
		names = append(names, l.name)
	}
	return names
}
