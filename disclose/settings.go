package disclose

import (
	"errors"
	"fmt"
	"math"
)

// Many is how many tools an agent has before they are disclosed one by one.
const Many = 30

// Mode says when tools are disclosed progressively.
type Mode string

const (
	Auto   Mode = "" // when there are more than Many
	Always Mode = "always"
	Never  Mode = "never"
)

// UnmarshalText takes auto, always and never.
func (m *Mode) UnmarshalText(b []byte) error {
	switch s := Mode(b); s {
	case "auto":
		*m = Auto
	case Always, Never:
		*m = s
	default:
		return fmt.Errorf("%q is none of auto, always, never", b)
	}
	return nil
}

// Settings are the budgets of a session, in tokens. The zero one lists a line at a
// time and loads nothing.
type Settings struct {
	Active     Mode
	L1Budget   int     // of one page of the list
	L2Budget   int     // of what is loaded together
	AutoUnload bool    // under pressure the oldest goes; otherwise what does not fit is refused
	Threshold  float64 // in percent: a context fuller than this is under pressure
}

// Defaults is what holds where nothing is configured.
func Defaults() Settings {
	return Settings{L1Budget: 3000, L2Budget: 15000, AutoUnload: true, Threshold: 80}
}

// On reports whether an agent with so many tools, discovery not counted, sees them
// progressively.
func (s Settings) On(tools int) bool {
	return s.Active == Always || s.Active == Auto && tools > Many
}

// Validate refuses budgets under which some tool could not be listed or loaded.
func (s Settings) Validate() error {
	if s.Active != Auto && s.Active != Always && s.Active != Never {
		return fmt.Errorf("active: %q is none of auto, always, never", s.Active)
	}
	if s.L1Budget < pageTokens+LineTokens {
		return fmt.Errorf("l1_token_budget: %d is less than one line takes; write at least %d", s.L1Budget, pageTokens+LineTokens)
	}
	if s.L2Budget < FullTokens {
		return fmt.Errorf("l2_token_budget: %d is less than one tool may take; write at least %d", s.L2Budget, FullTokens)
	}
	if math.IsNaN(s.Threshold) || s.Threshold <= 0 || s.Threshold > 100 {
		return errors.New("unload_threshold_percent: write a number over 0, at most 100")
	}
	return nil
}
