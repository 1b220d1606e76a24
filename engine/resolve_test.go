package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/policy"
)

func resolved(p string) (string, error) { return follow(p, os.Lstat, os.Readlink) }

// tree makes what is named: "d/" a directory, "f" a file, "l -> x" a symlink.
func tree(t testing.TB, entries ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, to, link := strings.Cut(e, " -> ")
		full := filepath.Join(root, name)
		switch {
		case link:
			err = os.Symlink(strings.ReplaceAll(to, "$", root), full)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFollow(t *testing.T) {
	root := tree(t, "d/", "d/e/", "d/f", "f", "out/", "out/x/",
		"toD -> d", "toE -> d/e", "toF -> d/f", "abs -> $/d/e", "up -> ../", "dangling -> d/new", "danglingAbs -> $/out/new/deep", "danglingDir -> nowhere",
		"loop -> loop", "ping -> pong", "pong -> ping", "chain -> toE", "d/back -> ../out/x", "slash -> d/e/", "danglingUp -> nowhere/../f", "dots -> ./d/./e/../e")
	for _, row := range []struct{ path, want, problem string }{
		{"d/e", "d/e", ""},
		{"d/./e//", "d/e", ""},
		{"d/e/..", "d", ""},
		{"toD/e", "d/e", ""},
		{"toE/..", "d", ""}, // not the directory that holds toE
		{"toE/../f", "d/f", ""},
		{"abs/../f", "d/f", ""},
		{"chain/..", "d", ""},
		{"d/back/..", "out", ""},
		{"slash", "d/e", ""},
		{"dots", "d/e", ""},
		{"toF", "d/f", ""},
		{"dangling", "d/new", ""},
		{"danglingAbs", "out/new/deep", ""},
		{"danglingDir/x/y", "nowhere/x/y", ""},
		{"new", "new", ""},
		{"new/deeper/still", "new/deeper/still", ""},
		{"new/", "new", ""},
		{"toD/new", "d/new", ""},
		{"loop", "", "too many symlinks on the way"},
		{"ping/x", "", "too many symlinks on the way"},
		// What stands there now decides what .. means later.
		{"new/../f", "", `it goes up with .. from something that does not exist; write the path without going up`},
		{"new/deeper/../../f", "", `it goes up with .. from something that does not exist; write the path without going up`},
		{"danglingDir/../f", "", `it goes up with .. from something that does not exist; write the path without going up`},
		{"danglingUp", "", `it goes up with .. from something that does not exist; write the path without going up`},
		// A file is no directory.
		{"f/x", "", "it cannot be looked up: not a directory"},
		{"f/..", "", "it cannot be looked up: not a directory"},
		{"f/../d", "", "it cannot be looked up: not a directory"},
		{"f/.", "", "it cannot be looked up: not a directory"},
		{"f/", "", "it cannot be looked up: not a directory"},
		{"toF/", "", "it cannot be looked up: not a directory"},
		{"toF/../f", "", "it cannot be looked up: not a directory"},
		{strings.Repeat("n", 300), "", "it cannot be looked up: file name too long"},
	} {
		got, err := resolved(root + "/" + row.path)
		if row.problem != "" {
			if err == nil || err.Error() != row.problem {
				t.Errorf("%s: %q, %v, want %q", row.path, got, err, row.problem)
			}
			continue
		}
		if want := filepath.Join(root, row.want); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", row.path, got, err, want)
		}
	}
	if got, err := resolved("/../.."); got != "/" || err != nil {
		t.Errorf("above the root: %q, %v", got, err)
	}
}

// The kernel takes forty symlinks and not one more.
func TestFollowCountsAsTheKernel(t *testing.T) {
	root := tree(t, "f", "l0 -> f")
	for i := 1; i <= 45; i++ {
		if err := os.Symlink(fmt.Sprintf("l%d", i-1), fmt.Sprintf("%s/l%d", root, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 46 {
		p := fmt.Sprintf("%s/l%d", root, i)
		_, kernel := os.Stat(p)
		if _, err := resolved(p); (err == nil) != (kernel == nil) {
			t.Errorf("%d links: %v, the kernel says %v", i+1, err, kernel)
		}
	}
}

// Links that double at each level are followed a bounded number of times.
func TestFollowExpansion(t *testing.T) {
	root := tree(t, "d/", "l0 -> d/../d")
	for i := 1; i < 40; i++ {
		to := fmt.Sprintf("l%d/../l%d", i-1, i-1)
		if err := os.Symlink(to, fmt.Sprintf("%s/l%d", root, i)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if got, err := resolved(root + "/l39"); err == nil {
		t.Errorf("%q", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestFollowProc(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Lacking(t, "/proc is of Linux")
	}
	self := fmt.Sprintf("/proc/%d", os.Getpid())
	cwd, err := filepath.EvalSymlinks(".")
	if err != nil {
		t.Fatal(err)
	}
	cwd, _ = filepath.Abs(cwd)
	for p, want := range map[string]string{
		"/proc/self/root/etc": "/etc", "/proc/self/environ": self + "/environ", "/proc/self/cwd": cwd, "/proc/self/cwd/..": filepath.Dir(cwd), "/dev/fd": self + "/fd",
	} {
		if got, err := resolved(p); got != want || err != nil {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
}

// Against the kernel, in random trees: where an open succeeds, follow has named
// the file that was opened; where it fails for want of a last element, follow
// has named where that would be; where the way itself is broken, follow refuses
// or stays where nothing exists.
func TestFollowAsTheKernel(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		root := tree(t)
		names := []string{"a", "b", "c"}
		paths := []string{""}
		for range 25 {
			p := filepath.Join(paths[rnd.IntN(len(paths))], names[rnd.IntN(3)])
			switch full := filepath.Join(root, p); rnd.IntN(5) {
			case 0, 1:
				if os.Mkdir(full, 0o755) == nil {
					paths = append(paths, p)
				}
			case 2:
				f, err := os.OpenFile(full, os.O_CREATE|os.O_EXCL, 0o644)
				if err == nil {
					f.Close()
				}
			default:
				to := wander(rnd, names, 1+rnd.IntN(4))
				if rnd.IntN(3) == 0 {
					to = root + "/" + to
				}
				os.Symlink(to, full) // may be there already
			}
		}
		for range 150 {
			compare(t, root, wander(rnd, names, 1+rnd.IntN(6)), seed)
		}
	}
}

func wander(rnd *rand.Rand, names []string, n int) string {
	var parts []string
	for range n {
		parts = append(parts, append(names, "..", ".", "")[rnd.IntN(len(names)+3)])
	}
	return strings.Join(parts, "/")
}

func compare(t *testing.T, root, rel string, seed uint64) {
	t.Helper()
	p := root + "/" + rel
	got, err := resolved(p)
	info, kernel := os.Stat(p)
	switch {
	case kernel == nil:
		there, lerr := os.Lstat(got)
		if err != nil || lerr != nil || !os.SameFile(info, there) || there.Mode()&fs.ModeSymlink != 0 {
			t.Errorf("seed %d, %s: %q, %v; the kernel opens it", seed, p, got, err)
		}
		if real, rerr := filepath.EvalSymlinks(p); rerr == nil && real != got {
			t.Errorf("seed %d, %s: %q, EvalSymlinks says %q", seed, p, got, real)
		}
	case errors.Is(kernel, syscall.ENOENT):
		if _, lerr := os.Lstat(got); err == nil && !errors.Is(lerr, fs.ErrNotExist) {
			t.Errorf("seed %d, %s: %q is there; the kernel does not find it", seed, p, got)
		}
	default:
		if err == nil {
			t.Errorf("seed %d, %s: %q; the kernel says %v", seed, p, got, kernel)
		}
	}
	// What would be made there is made where follow says.
	if err == nil && errors.Is(kernel, syscall.ENOENT) && policy.Below(got, root) {
		f, cerr := os.OpenFile(p, os.O_CREATE|os.O_WRONLY, 0o600)
		if cerr != nil {
			return
		}
		made, _ := f.Stat()
		f.Close()
		there, lerr := os.Lstat(got)
		if lerr != nil || !os.SameFile(made, there) {
			t.Errorf("seed %d, %s: %q; the kernel makes it elsewhere", seed, p, got)
		}
		os.Remove(got)
	}
}

func TestTargets(t *testing.T) {
	root := tree(t, "d/", "l -> d")
	got := targets([]policy.Candidate{
		{Pointer: "/a", Value: "l/x", Side: writ.SideWrite, Relative: true},
		{Pointer: "/b", Value: "a\x00b", Relative: true},
		{Pointer: "/c", Value: "example.com", Kind: writ.TargetHost},
		{Pointer: "/d", Value: "https://example.com/x", Kind: writ.TargetHost, URL: true},
		{Pointer: "/e", Value: "exa mple", Kind: writ.TargetHost},
		{Pointer: "/f", Value: "~nobody/x"},
	}, root, "/home/me")
	want := []struct {
		path, host string
		problem    bool
	}{{root + "/d/x", "", false}, {"", "", true}, {"", "example.com:443", false}, {"", "example.com:443", false}, {"", "", true}, {"", "", true}}
	for i, w := range want {
		if g := got[i]; g.Path != w.path || g.Host != w.host || (g.Problem != "") != w.problem {
			t.Errorf("%d: %+v", i, g)
		}
	}
}

// Where the argument means the name itself, only the way to it is followed.
func TestTargetsOfLinks(t *testing.T) {
	root := tree(t, "d/", "d/f", "l -> d", "lf -> d/f", "dangling -> none")
	for value, want := range map[string]string{
		"lf": "lf", "dangling": "dangling", "l": "l", "l/f": "d/f", "./lf": "lf", "d/../lf": "lf", "d/f": "d/f",
		"l/": "d", "l/.": "d", "l/..": "", "new": "new", "d/f/x": "-", "d/new/../x": "-",
	} {
		got := targets([]policy.Candidate{{Pointer: "/p", Value: value, Link: true}}, root, "")[0]
		if want == "-" && got.Problem == "" || want != "-" && got.Path != filepath.Join(root, want) {
			t.Errorf("%s: %+v", value, got)
		}
	}
}

// Each target costs look-ups and is held against every rule; a call that names
// too many is denied, not cut short.
func TestTargetsAreBounded(t *testing.T) {
	found := make([]policy.Candidate, 100_000)
	for i := range found {
		found[i] = policy.Candidate{Pointer: fmt.Sprintf("/%d", i), Value: "/tmp"}
	}
	got := targets(found, "/", "/")
	last := got[len(got)-1]
	if len(got) > maxTargets+1 || last.Problem == "" {
		t.Errorf("%d targets, the last %+v", len(got), last)
	}
	if got := targets(found[:maxTargets], "/", "/"); len(got) != maxTargets || got[maxTargets-1].Problem != "" {
		t.Errorf("control: %d targets, the last %+v", len(got), got[len(got)-1])
	}
}

// fakeFile is what a fuzzed lstat says of a name.
type fakeFile struct{ mode fs.FileMode }

func (fakeFile) Name() string        { return "" }
func (fakeFile) Size() int64         { return 0 }
func (f fakeFile) Mode() fs.FileMode { return f.mode }
func (fakeFile) ModTime() time.Time  { return time.Time{} }
func (f fakeFile) IsDir() bool       { return f.mode.IsDir() }
func (fakeFile) Sys() any            { return nil }

func FuzzFollow(f *testing.F) {
	f.Add("/a/b/../c", "a/../b\n/\n..\nx", byte(3))
	f.Add("//", "", byte(0))
	f.Add("/l/l/l", "l/l", byte(1))
	f.Fuzz(func(t *testing.T, p, links string, kinds byte) {
		to := strings.Split(links, "\n")
		calls := 0
		kind := func(name string) int {
			if calls++; calls > 1_000_000 {
				t.Fatal("it does not end")
			}
			return (len(name)*7 + int(kinds)) % 5
		}
		lstat := func(name string) (fs.FileInfo, error) {
			if !strings.HasPrefix(name, "/") || filepath.Clean(name) != name {
				t.Fatalf("looked at %q", name)
			}
			switch kind(name) {
			case 0:
				return nil, &fs.PathError{Op: "lstat", Err: fs.ErrNotExist}
			case 1:
				return fakeFile{fs.ModeSymlink}, nil
			case 2:
				return fakeFile{}, nil
			}
			return fakeFile{fs.ModeDir}, nil
		}
		got, err := follow("/"+p, lstat, func(name string) (string, error) { return to[len(name)%len(to)], nil })
		if err != nil {
			if got != "" || strings.Contains(err.Error(), p) && len(p) > 20 {
				t.Errorf("%q, %v", got, err)
			}
			return
		}
		if !strings.HasPrefix(got, "/") || filepath.Clean(got) != got {
			t.Errorf("%q", got)
		}
	})
}
