package native

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLocked: the launcher of a kept box is under the filter of its commands, and does with
// its key what that refuses without: to a script that does not show it, or shows another.
func TestLocked(t *testing.T) {
	f := begun(t)
	by, err := f.newRecipe(simply(false), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.newCell(by, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.end()
	does := func(shows arg, nr uintptr, args func(*script) []arg) error {
		s := &script{}
		s.call(nr, args(s)...)
		o := &s.ops[0]
		o.Kinds, o.Args[5] = o.Kinds&^(15<<20)|shows.kind<<20, shows.value
		if err := c.conn.send(s, inPlace, 0, "", ""); err != nil {
			return err
		}
		_, err := c.conn.expect(saysDone, s)
		return err
	}
	if err := c.conn.settle(); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
		t.Errorf("the launcher has no filter: %v\n%s", err, status)
	}
	theKey := arg{5, 0}
	for _, call := range []struct {
		name string
		nr   uintptr
		args func(*script) []arg
	}{
		{"unshare", unix.SYS_UNSHARE, func(*script) []arg { return []arg{num(unix.CLONE_NEWUTS)} }},
		{"mount", unix.SYS_MOUNT, func(s *script) []arg {
			return []arg{s.text("tmpfs"), s.text("/tmp"), s.text("tmpfs"), num(0), s.text("size=4k")}
		}},
		{"open_tree", unix.SYS_OPEN_TREE, func(s *script) []arg {
			return []arg{here, s.text("/usr"), num(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)}
		}},
	} {
		for name, shows := range map[string]arg{"nothing": num(0), "all bits": num(uint64(1<<64 - 1)), "another number": num(uint64(0x5eed))} {
			if err := does(shows, call.nr, call.args); !errors.Is(err, unix.EPERM) {
				t.Errorf("%s, showing %s: %v", call.name, name, err)
			}
		}
		if err := does(theKey, call.nr, call.args); err != nil {
			t.Errorf("inconclusive: %s, with the key: %v", call.name, err)
		}
	}
	// What is no launcher's business is refused to it as well.
	if err := does(theKey, unix.SYS_CHROOT, func(s *script) []arg { return []arg{s.text("/")} }); !errors.Is(err, unix.EPERM) {
		t.Errorf("chroot, with the key: %v", err)
	}
}

// TestKeys: each launcher makes up a key of its own.
func TestKeys(t *testing.T) {
	f := begun(t)
	seen := map[string]bool{}
	for range 8 {
		m, err := f.newRecipe(simply(false), nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.newCell(m, true, nil)
		if err == nil {
			err = c.conn.settle()
		}
		if err != nil {
			t.Fatal(err)
		}
		key := keyOf(t, c)
		if seen[key] || strings.Trim(key, "\x00") == "" || key != keyOf(t, c) {
			t.Errorf("the key %x", key)
		}
		seen[key] = true
		c.end()
	}
}

// keyOf has a launcher tell its key, which scripts of ours never do.
func keyOf(t *testing.T, c *cell) string {
	t.Helper()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	s := &script{}
	to := s.bytes(make([]byte, 8))
	s.add(op{Kind: opKey, Args: [6]uint64{to.value, to.value + 4}})
	s.call(unix.SYS_WRITE, passed(0), to, num(8))
	m, err := s.message(inPlace, 0)
	if err == nil {
		err = c.conn.pass(m.encoded, pipe[1:])
	}
	unix.Close(pipe[1])
	if err == nil {
		_, err = c.conn.expect(saysDone, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 8)
	if n, err := unix.Read(pipe[0], key); n != 8 {
		t.Fatal(n, err)
	}
	return string(key)
}
