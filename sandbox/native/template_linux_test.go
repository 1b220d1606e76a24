package native

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTemplate: a cell that begins in a view made before sees that and nothing of the host,
// and cannot, with every capability that its launcher has, take away what came with it.
func TestTemplate(t *testing.T) {
	f := begun(t)
	by, err := f.newRecipe(simple(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var spaces []string
	for range 2 {
		in, err := covers(nil).template(by)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.newCell(by, false, in)
		if err == nil {
			defer c.end()
			s := &script{}
			s.settle(by.root)
			if err = c.conn.send(s, inPlace, 0, "", ""); err == nil {
				_, err = c.conn.expect(saysDone, s)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", c.pid))
		space, failed := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", c.pid))
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		spaces = append(spaces, space)
		if text := string(mounts); strings.Contains(text, oldRoot+" ") || strings.Contains(text, newRoot+" ") || strings.Contains(text, " "+oldRoot+"/") || strings.Count(text, " - proc ") != 2 {
			t.Errorf("mounts of the cell:\n%s", text)
		}
		for _, try := range []struct {
			what string
			do   func(*script)
			want unix.Errno
		}{
			{"take its own /proc away", func(s *script) { s.call(unix.SYS_UMOUNT2, s.text("/proc"), num(0)) }, 0},
			{"take away the one beneath", func(s *script) { s.call(unix.SYS_UMOUNT2, s.text("/proc"), num(0)) }, unix.EINVAL},
			{"take away /usr", func(s *script) { s.call(unix.SYS_UMOUNT2, s.text("/usr"), num(unix.MNT_DETACH)) }, unix.EINVAL},
			{"make /usr writable", func(s *script) {
				s.call(unix.SYS_MOUNT_SETATTR, here, s.text("/usr"), num(0), s.bytes(words(0, unix.MOUNT_ATTR_RDONLY, 0, 0)), num(attrSize))
			}, unix.EPERM},
			{"copy /usr, and make that writable", func(s *script) {
				tree := s.copyOf("/usr")
				s.call(unix.SYS_MOUNT_SETATTR, tree, s.text(""), num(unix.AT_EMPTY_PATH), s.bytes(words(0, unix.MOUNT_ATTR_RDONLY, 0, 0)), num(attrSize))
			}, unix.EPERM},
			{"find somebody in the one beneath", func(s *script) { s.call(unix.SYS_FACCESSAT, here, s.text("/proc/1"), num(0)) }, unix.ENOENT},
		} {
			s := &script{}
			s.doing(try.what)
			try.do(s)
			err := c.conn.send(s, inPlace, 0, "", "")
			if err == nil {
				_, err = c.conn.expect(saysDone, s)
			}
			var failed *failure
			if try.want == 0 && err != nil || try.want != 0 && (!errors.As(err, &failed) || failed.Errno != try.want) {
				t.Errorf("%s: %v, want errno %d", try.what, err, try.want)
			}
		}
	}
	if spaces[0] == spaces[1] {
		t.Errorf("two cells have the same mounts, %s", spaces[0])
	}
}

// TestTemplateThatFails: what a view lacks is told, by its step, and a factory that is gone
// as what it is.
func TestTemplateThatFails(t *testing.T) {
	f := begun(t)
	by, err := f.newRecipe(simple(), nil)
	if err != nil {
		t.Fatal(err)
	}
	by.root.script = failing()
	var failed *failure
	if _, err := covers(nil).template(by); !errors.As(err, &failed) || failed.Step != "lead nowhere" || failed.Errno != unix.ENOENT {
		t.Error(err)
	}
	if by, err = f.newRecipe(simple(), nil); err != nil {
		t.Fatal(err)
	}
	unix.Kill(f.pid, unix.SIGKILL)
	if _, err := covers(nil).template(by); !errors.Is(err, errFactory) {
		t.Error(err)
	}
}
