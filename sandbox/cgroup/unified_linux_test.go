package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writ-run/writ/need"
	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	const one = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
		"33 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory\n" +
		"34 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices\n" +
		"35 31 0:34 / /mnt/a\\040b rw,relatime - cgroup cgroup rw,pids\n"
	const two = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	const inContainer = "30 23 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n"
	for _, c := range []struct {
		name, mounts, groups string
		want                 []hierarchy
	}{
		{"version 1", one, "3:pids:/\n2:memory:/a/b\n1:cpu,cpuacct:/user.slice\n0::/\n", []hierarchy{
			{top: "/sys/fs/cgroup/memory", own: "/sys/fs/cgroup/memory/a/b", has: []string{memory}},
			{top: "/mnt/a b", own: "/mnt/a b", has: []string{pids}},
		}},
		{"version 2", two, "0::/user.slice/u.scope\n", []hierarchy{{unified: true, top: "/sys/fs/cgroup", own: "/sys/fs/cgroup/user.slice/u.scope"}}},
		{"a colon in the path", two, "0::/a:b\n", []hierarchy{{unified: true, top: "/sys/fs/cgroup", own: "/sys/fs/cgroup/a:b"}}},
		{"mounted twice", two + two, "0::/\n", []hierarchy{{unified: true, top: "/sys/fs/cgroup", own: "/sys/fs/cgroup"}}},
		{"a part of the tree", inContainer, "0::/docker/abc/x\n", []hierarchy{{unified: true, top: "/sys/fs/cgroup", own: "/sys/fs/cgroup/x"}}},
		{"another part", inContainer, "0::/docker/other\n", nil},
		{"outside the namespace", two, "0::/../other\n", nil},
		{"nothing", "22 1 0:20 / /proc rw - proc proc rw\n", "0::/\n", nil},
	} {
		if diff := cmp.Diff(c.want, parse(c.mounts, c.groups), cmp.AllowUnexported(hierarchy{})); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

// tree makes files that look like groups of version 2: for what is found where, which no
// kernel has to say.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	for name, text := range files {
		path := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func TestBaseUnified(t *testing.T) {
	all := "cpu io memory pids\n"
	for _, c := range []struct {
		name   string
		files  map[string]string
		own    string
		marked string
		base   string
		has    []string
		err    string
	}{
		{"the top of the machine", map[string]string{"cgroup.controllers": all, "cgroup.subtree_control": "memory pids"}, ".", "", ".", []string{memory, pids}, ""},
		{"the top hands nothing on", map[string]string{"cgroup.controllers": all, "cgroup.subtree_control": ""}, ".", "", "", nil,
			"TOP/cgroup.subtree_control names neither memory nor pids; write '+memory +pids' into it, or " + remedy},
		{"a unit with its subgroup", map[string]string{"u/d/cgroup.controllers": all, "u/d/cgroup.type": "domain", "u/cgroup.subtree_control": ""}, "u/d", "u", "", nil, ""},
		{"given away by hand", map[string]string{"u/d/cgroup.controllers": "pids", "u/d/cgroup.type": "domain", "u/cgroup.subtree_control": "pids"}, "u/d", "", "u", []string{pids}, ""},
		{"writ is in the unit itself", map[string]string{"cgroup.type": "domain", "cgroup.controllers": all}, ".", "", "", nil,
			"TOP: groups in it could have no limits, since writ itself is in it, and writ does not move itself; " + remedy},
		{"no controllers", map[string]string{"u/cgroup.type": "domain", "u/cgroup.controllers": "io\n"}, "u", "", "", nil,
			"TOP/u: neither memory nor pids is available in it; " + remedy},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := tree(t, c.files)
			if c.marked != "" {
				if err := unix.Setxattr(filepath.Join(top, c.marked), "user.delegate", []byte("1"), 0); err != nil {
					need.Lacking(t, "no extended attributes here: %v", err)
				}
			} else if _, err := os.Stat("/run/systemd/system"); err == nil && c.own == "u/d" {
				need.Lacking(t, "systemd is at work here")
			}
			base, has, err := hierarchy{unified: true, top: top, own: filepath.Join(top, c.own)}.base()
			if c.err != "" {
				if err == nil || strings.ReplaceAll(err.Error(), top, "TOP") != c.err {
					t.Errorf("got %s, %v; want the error %s", base, err, c.err)
				}
				return
			}
			if c.marked != "" { // a kernel lists what it was told to hand on; a file has what was written
				b, readErr := os.ReadFile(top + "/u/cgroup.subtree_control")
				if string(b) != "+memory +pids" || readErr != nil {
					t.Errorf("handed on: %q, %v", b, readErr)
				}
				return
			}
			if err != nil || base != filepath.Join(top, c.base) || !cmp.Equal(has, c.has) {
				t.Errorf("got %s %v, %v; want %s %v", base, has, err, c.base, c.has)
			}
		})
	}
}

// What is written to, and read from, the files of a group of version 2.
func TestFilesUnified(t *testing.T) {
	top := tree(t, map[string]string{
		"1/memory.max": "max", "1/memory.swap.max": "max", "1/memory.events": "low 0\nmax 7\noom 2\noom_kill 2\n",
		"1/pids.max": "max", "1/pids.events": "max 3\n", "1/cgroup.procs": "",
	})
	g := &Group{}
	g.files(place{unified: true, has: []string{memory, pids}}, top+"/1")
	if err := g.Limit(Limits{Memory: 1 << 30, Pids: 64}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory.max": "1073741824", "memory.swap.max": "0ax", "pids.max": "64x"} {
		if b, err := os.ReadFile(top + "/1/" + name); string(b) != want || err != nil { // a file keeps the end of what was there
			t.Errorf("%s is %q, %v; want %q", name, b, err, want)
		}
	}
	hit(t, g, "")
	for _, c := range []struct{ file, text, want string }{
		{"pids.events", "max 4\n", "pids"},
		{"memory.events", "low 0\nmax 7\noom 2\noom_kill 3\n", "memory"},
	} {
		if err := os.WriteFile(top+"/1/"+c.file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		hit(t, g, c.want)
	}
}

// Killing as one step, by the kernel's version 2, which needs no controller.
func TestKillUnified(t *testing.T) {
	all, err := find()
	if err != nil {
		need.Lacking(t, "%v", err)
	}
	for _, h := range all {
		dir := filepath.Join(h.own, fmt.Sprintf("writ-test-kill-%d", os.Getpid()))
		if !h.unified || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { remove(dir) })
		if _, err := os.Stat(dir + "/cgroup.kill"); err != nil {
			break
		}
		g := &Group{dirs: []string{dir}, procs: []control{openControl(dir, "cgroup.procs")}}
		sh, beside := begin(t, "", "/bin/sh", "-c", bomb), start(t, "echo")
		if err := g.Add(sh.Process.Pid); err != nil {
			t.Fatal(err)
		}
		sh.say("go")
		if out := sh.hear(t); out != "200" || count(t, g) < 200 {
			t.Errorf("%s of 200 processes were started, %d are there", out, count(t, g))
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
		beside.say("well?")
		beside.hear(t)
		return
	}
	need.Lacking(t, "no control groups of version 2 that can be killed here")
}
