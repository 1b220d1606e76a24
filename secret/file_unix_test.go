//go:build unix

package secret

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string, mode os.FileMode, text string) Ref {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		os.Chmod(p, mode)
		return Ref{Backend: "file", Name: p}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	set := Set{"file": File{}}
	for name, c := range map[string]struct {
		ref  Ref
		want string // the value, or what the error says
		ok   bool
	}{
		"plain":           {at("a", 0o600, value), value, true},
		"read only":       {at("b", 0o400, value), value, true},
		"one line break":  {at("c", 0o600, value+"\n"), value, true},
		"of windows":      {at("d", 0o600, value+"\r\n"), value, true},
		"only one is cut": {at("e", 0o600, value+"\n\n"), value + "\n", true},
		"for the group":   {at("f", 0o640, value), "chmod 600", false},
		"for others":      {at("g", 0o604, value), "chmod 600", false},
		"to be written":   {at("h", 0o602, value), "chmod 600", false},
		"empty":           {at("i", 0o600, "\n"), "it is empty", false},
		"large":           {at("j", 0o600, strings.Repeat("x", MaxBytes+1)), "more than 64 KiB", false},
		"as large as can": {at("k", 0o600, strings.Repeat("x", MaxBytes)+"\n"), strings.Repeat("x", MaxBytes), true},
		"nothing":         {Ref{Backend: "file", Name: filepath.Join(dir, "none")}, "there is no such file", false},
		"a directory":     {Ref{Backend: "file", Name: dir}, "not a regular file", false},
		"a pipe":          {Ref{Backend: "file", Name: fifo}, "not a regular file", false},
		"another backend": {Ref{Backend: "keyring", Name: "x"}, "no such backend", false},
		"the zero one":    {Ref{}, "no such backend", false},
		"somebody else's": {stranger(t, at("l", 0o600, value)), "belongs to somebody else", os.Geteuid() != 0},
	} {
		v, err := set.Resolve(context.Background(), c.ref)
		if c.ok && name != "somebody else's" && (err != nil || v.Reveal() != c.want) || !c.ok && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d bytes, %v", name, len(v.Reveal()), err)
		}
		if err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("%s: the error has it: %v", name, err)
		}
	}
}

// stranger gives a file away, where this process can.
func stranger(t *testing.T, r Ref) Ref {
	t.Helper()
	if os.Geteuid() == 0 {
		if err := os.Chown(r.Name, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	return r
}
