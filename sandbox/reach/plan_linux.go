package reach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/usage"
	"golang.org/x/sys/unix"
)

// A Plan is one box.
type Plan struct {
	Path string // the file to execute
	Argv []string
	Dir  string
	Env  []string

	Root     bool // this is root, and the box is to be UID and GID
	UID, GID int

	Own         []string // of Write, directories of the driver's own, in which nothing is protected
	Named       []string // within Write, what is not protected
	Read, Write []string // roots, without the parts that no box gets; none within another
	List        bool     // the whole tree may be listed
	System      []string // besides Read: what every box can read
	Programs    []string // with Listed: executable, one by one
	Listed      bool     // only listed programs
	Hide        []string

	Agent bool // programs find an agent of ssh

	Limits      Limits
	Wall, Grace time.Duration     // no Wall: as long as it takes
	Tmp         int64             // bytes that the private temporary directory holds
	Home        map[string]string // files in the private home, by name
}

// Protected is what can be written and has protected names.
func (p *Plan) Protected() []string {
	return slices.DeleteFunc(slices.Clone(p.Write), func(root string) bool { return slices.Contains(p.Own, root) })
}

// Limits are those of each process of a box, and their number; and what all of them may
// use together, which is watched.
type Limits struct {
	Address uint64 `json:"as"`
	Data    uint64 `json:"data"`
	Pids    uint64 `json:"nproc"`
	Files   uint64 `json:"nofile"`
	Size    uint64 `json:"fsize"`

	Disk int64         `json:"disk"` // bytes written
	CPU  time.Duration `json:"cpu"`  // zero: as much as there is in its time
}

// Together are the limits that are watched.
func (l Limits) Together() usage.Limits { return usage.Limits{Written: l.Disk, CPU: l.CPU} }

// A Limit is one of the kernel's, hard and soft.
type Limit struct {
	What int
	Max  uint64
}

// Spare reports whether it bounds what a box has no use for: real-time priority, queues and
// the like, which a kernel that keeps no such limit does not have either.
func (l Limit) Spare() bool {
	return slices.Contains([]int{unix.RLIMIT_MSGQUEUE, unix.RLIMIT_MEMLOCK, unix.RLIMIT_NICE, unix.RLIMIT_RTPRIO, unix.RLIMIT_SIGPENDING, unix.RLIMIT_NPROC}, l.What)
}

// All is every limit that a box gets, those that are the same for each included. What
// this process has less of stays so: raising would need a privilege, and never is the
// wish.
func (l Limits) All() ([]Limit, error) {
	all := []Limit{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_NICE, 0},
		{unix.RLIMIT_RTPRIO, 0},
		{unix.RLIMIT_SIGPENDING, 1024},
		{unix.RLIMIT_FSIZE, l.Size},
		{unix.RLIMIT_NOFILE, l.Files},
		{unix.RLIMIT_NPROC, l.Pids},
		{unix.RLIMIT_DATA, l.Data},
		{unix.RLIMIT_AS, l.Address},
	}
	for i := range all {
		var now unix.Rlimit
		if err := unix.Getrlimit(all[i].What, &now); err != nil {
			return nil, fmt.Errorf("limit %d: %w", all[i].What, err)
		}
		all[i].Max = min(all[i].Max, now.Max)
	}
	return all, nil
}

// serving is longer than any daemon runs.
const serving = 20 * 365 * 24 * time.Hour

// Of plans a box. shown are files that the driver itself puts into it.
func Of(w writ.Writ, spec sandbox.Spec, o Options, shown ...string) (*Plan, error) {
	c := w.Confinement()
	if err := checkRoots(c); err != nil {
		return nil, err
	}
	p := &Plan{
		Agent: len(c.SSH) > 0,
		Argv:  spec.Argv, Env: filterEnv(os.Environ(), c.Env, spec.Env, spec.Given, o), Hide: c.Hide,
		Grace: orDefault(c.Limits.Grace, defaultGrace), Tmp: defaultTmp,
		Wall: min(orDefault(spec.Timeout, orDefault(c.Limits.Wall, defaultWall)), sandbox.MaxWall),
	}
	if spec.Serves {
		p.Wall = serving
	}
	var err error
	if p.Dir, err = o.workDir(c, w.Call().Dir, spec.Dir, spec.Serves); err != nil {
		return nil, err
	}
	if p.UID, p.GID, p.Root, err = identity(c, p.Dir); err != nil {
		return nil, err
	}
	if p.Path, err = lookProgram(spec.Argv, p.Dir, p.Env, shown); err != nil {
		return nil, err
	}
	p.roots(c, o.PathPrefixes)
	p.Limits = limitsOf(c.Limits)
	return p, nil
}

// checkRoots refuses paths that are not what Confinement promises, and those
// that would undo another part of it.
func checkRoots(c writ.Confinement) error {
	for _, p := range slices.Concat(c.Read, c.Write, c.Hide, c.Exec.Files) {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) {
			return writ.Fail(writ.Invalid, fmt.Sprintf("the confinement names %q, which is not an absolute clean path", p), nil)
		}
	}
	for _, p := range slices.Concat(c.Read, c.Write) {
		if Within(p, "/proc") {
			return sandbox.Anywhere(writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+p+" shows other processes and cannot be opened to a box, which has a /proc of its own; leave it out", nil))
		}
	}
	for _, p := range slices.Concat(c.Read, c.Write) {
		if Within(p, "/sys") || Within(p, "/dev") && !Within(p, "/dev/shm") {
			return sandbox.Anywhere(writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+p+" is a part of the machine and cannot be opened to a box; leave it out", nil))
		}
	}
	for _, p := range c.Write {
		for _, h := range c.Hide {
			if Within(p, h) {
				return writ.Fail(writ.Invalid, p+" is to be writable but lies in "+h+", which is hidden; move the workspace", nil)
			}
		}
	}
	return nil
}

// workDir is where the command starts: the spec's directory, which has to lie in
// the workspace; else the call's, where it lies there; else the first directory the
// call may use; else, for one that uses no files, the private home.
func (o Options) workDir(c writ.Confinement, call, spec string, serves bool) (string, error) {
	// The workspace is what the call may write; a call that writes nothing starts
	// in what it may read.
	roots := c.Write
	if len(roots) == 0 {
		roots = c.Read
	}
	inside := func(p string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return Within(p, root) })
	}
	dir := spec
	if dir == "" && serves && len(c.Write) == 0 {
		return PrivateHome, nil // what it reads is its program, and no workspace
	}
	if dir == "" {
		if real, err := filepath.EvalSymlinks(call); call != "" && (err != nil || inside(real) || o.UnsafeAnyDir && len(roots) > 0) {
			dir = call
		} else if len(roots) > 0 {
			dir = roots[0]
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				dir = filepath.Dir(dir)
			}
			roots = append(slices.Clip(roots), dir)
		}
	}
	if dir == "" {
		return PrivateHome, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(dir) {
		return "", writ.Fail(writ.Invalid, "the working directory "+dir+" cannot be used; name an existing one by its absolute path", err)
	}
	if !inside(real) && !o.UnsafeAnyDir {
		return "", writ.Fail(writ.Denied, "denied: the working directory "+dir+" is outside the workspace; start inside it", nil)
	}
	return real, nil
}

// lookProgram finds the file to execute: an absolute path as it is, a path with
// a slash from the working directory, a name in the box's PATH.
func lookProgram(argv []string, dir string, env []string, shown []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", writ.Fail(writ.Invalid, "there is no command to run", nil)
	}
	name := argv[0]
	if slices.Contains(shown, name) {
		return name, nil
	}
	tries := []string{name}
	switch {
	case filepath.IsAbs(name):
	case strings.Contains(name, "/"):
		tries = []string{filepath.Join(dir, name)}
	default:
		tries = nil
		for _, kv := range env {
			if list, ok := strings.CutPrefix(kv, "PATH="); ok {
				for _, p := range filepath.SplitList(list) {
					if filepath.IsAbs(p) {
						tries = append(tries, filepath.Join(p, name))
					}
				}
			}
		}
	}
	for _, path := range tries {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0:
			return path, nil
		case !strings.Contains(name, "/"):
		case err != nil:
			return "", writ.Fail(writ.NotFound, fmt.Sprintf("there is no program %q: %v", name, reason(err)), nil)
		case info.IsDir():
			return "", writ.Fail(writ.NotFound, fmt.Sprintf("%q is a directory and no program", name), nil)
		default:
			return "", writ.Fail(writ.NotFound, fmt.Sprintf("%q is not executable; chmod +x it, or run its interpreter", name), nil)
		}
	}
	return "", writ.Fail(writ.NotFound, fmt.Sprintf("the program %q was not found in the box's PATH, or is not executable; install it, or name it by its absolute path", name), nil)
}

// reason is an error without the path, which is said already.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
