package sandbox

import (
	"strings"
	"sync"
	"testing"
)

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		max    int64
		writes []string
		want   string
		cut    string
	}{
		{4, nil, "", ""},
		{4, []string{"ab", "cd"}, "abcd", ""},
		{4, []string{"ab", "cde"}, "bcde", "the last 4 of 5 bytes"},
		{4, []string{"abcdefgh"}, "efgh", "the last 4 of 8 bytes"},
		{4, []string{"abc", "d", "e", "fg"}, "defg", "the last 4 of 7 bytes"},
		{4, []string{"abcde", "f", "ghijkl", "m"}, "jklm", "the last 4 of 13 bytes"},
		{0, []string{"abc"}, "", "the last 0 of 3 bytes"},
		{-1, []string{"abc"}, "", "the last 0 of 3 bytes"},
	} {
		tail := NewTail(tc.max)
		for _, w := range tc.writes {
			if n, err := tail.Write([]byte(w)); n != len(w) || err != nil {
				t.Fatalf("Write(%q) = %d, %v", w, n, err)
			}
		}
		if got := tail.String(); got != tc.want || tail.Cut() != tc.cut {
			t.Errorf("max %d, %q: kept %q cut %q, want %q cut %q", tc.max, tc.writes, got, tail.Cut(), tc.want, tc.cut)
		}
	}
}

// Every split of a long text keeps the same end.
func TestTailSplits(t *testing.T) {
	text := strings.Repeat("0123456789", 9)
	for size := 1; size < len(text); size++ {
		tail := NewTail(17)
		for rest := text; rest != ""; {
			k := min(size, len(rest))
			tail.Write([]byte(rest[:k]))
			rest = rest[k:]
		}
		if got := tail.String(); got != text[len(text)-17:] || tail.Total() != int64(len(text)) {
			t.Fatalf("in pieces of %d: kept %q of %d", size, got, tail.Total())
		}
	}
}

func TestTailConcurrent(t *testing.T) {
	tail := NewTail(100)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				tail.Write([]byte("xyz"))
				_ = tail.String()
			}
		})
	}
	wg.Wait()
	if tail.Total() != 2400 || len(tail.String()) != 100 {
		t.Errorf("total %d, kept %d", tail.Total(), len(tail.String()))
	}
}
