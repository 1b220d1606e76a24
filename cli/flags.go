package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ/config"
)

// lasting is a flag for a length of time, written as in the configuration.
type lasting struct {
	time.Duration // zero: not given
	most          time.Duration
	once          bool // of two, one would be forgotten without a word
}

func (l *lasting) Set(s string) error {
	var d config.Duration
	if err := d.UnmarshalText([]byte(s)); err != nil || time.Duration(d) > l.most {
		return fmt.Errorf("write a time from 1s to %s, in s, m, h or d", shortly(l.most))
	}
	if l.once && l.Duration != 0 {
		return errTwice
	}
	l.Duration = time.Duration(d)
	return nil
}

func (l *lasting) String() string {
	if l.Duration == 0 {
		return ""
	}
	return shortly(l.Duration)
}

func (l *lasting) Type() string { return "time" }

// shortly is a length of time without the units that it has none of.
func shortly(d time.Duration) string {
	const day = 24 * time.Hour
	if d > day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// number is a flag for a whole number; one that is not given may lie outside.
type number struct{ n, least, most int }

func (n *number) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(v) != s || v < n.least || v > n.most {
		return fmt.Errorf("write a whole number from %d to %d", n.least, n.most)
	}
	n.n = v
	return nil
}

func (n *number) String() string { return strconv.Itoa(n.n) }
func (n *number) Type() string   { return "number" }

// maxWords is how many bytes a reason or a note can have: it is kept for ever.
const MaxWords = 2000

func bounded(flag, text string, most int) error {
	if len(text) > most {
		return Usagef("--%s has %d bytes; write at most %d", flag, len(text), most)
	}
	return nil
}
