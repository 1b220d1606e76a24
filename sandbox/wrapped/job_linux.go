package wrapped

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
)

// A Job is what becomes of the process inside. All paths are those of the box.
type Job struct {
	supervise.Command
	Grants   []restrict.Grant // what Landlock allows
	Make     []string         // directories of the box's own, made before all else
	Bound    []string         // temporary file systems whose number of files is to be bounded
	Watch    []string         // those that grow without bound: the box ends when they are full
	NoExec   []string         // mounts to be without programs, with what is below them
	Exec     []string         // mounts below those that have one
	Hidden   []File           // not to be found at their paths
	Sealed   []uint64         // file systems that are read-only wherever they are mounted,
	Writable []string         // but here
}

// Temporary file systems hold so much: bytes, and files.
const (
	TemporaryBytes = 64 << 20
	temporaryFiles = 1 << 16
)

// A File is one that was seen at a path.
type File struct {
	Path     string
	Dev, Ino uint64
	Mode     fs.FileMode // its type alone
}

// Seen is what is at a path now, without following symlinks at its end.
func Seen(path string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return File{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	return File{path, uint64(st.Dev), st.Ino, info.Mode().Type()}, nil
}

// ToHide are the files at the paths that a plan hides: those that have to be covered. The
// box's own directories are its own already; what only the box could make there, or a
// symlink, cannot be kept hidden.
func ToHide(p *reach.Plan, paths []string) ([]File, error) {
	var out []File
	for _, path := range paths {
		if slices.Contains(reach.PrivateDirs, path) {
			continue
		}
		is, err := Seen(path)
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
			if reach.InAny(path, p.Write) {
				return nil, fmt.Errorf("hide %s: it does not exist and the box could create it; create it, or hide its directory", path)
			}
		case errors.Is(err, os.ErrPermission): // this user cannot get there, so neither can the box
		case err != nil:
			return nil, fmt.Errorf("hide %s: %w", path, err)
		case is.Mode == fs.ModeSymlink:
			return nil, fmt.Errorf("hide %s: it is a symlink now; hide what it leads to", path)
		default:
			out = append(out, is)
		}
	}
	return out, nil
}

// unmoved reports whether each file is still where it was seen.
func unmoved(files []File) error {
	for _, was := range files {
		if now, err := Seen(was.Path); err != nil || now != was {
			return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: hide "+was.Path+": something moved it while the box was made; try again", err)
		}
	}
	return nil
}

// The parts that this program plays, after the verb. The first is also what people see
// inside as the first process.
const (
	partSupervise = "writ-box"
	partBecome    = "become"
)

const (
	fdProgram = supervise.FirstFile // this program, for a supervisor
	// FirstFile is where the files of a Shape begin.
	FirstFile = fdProgram + 1
)

// self is this program for what is inside.
const self = "/proc/self/exe"

// command is what a wrapper is to run inside. The program is named by its descriptor: it
// need not be shown in the box, nor be reachable for the user of the box.
var command = []string{fmt.Sprintf("/proc/self/fd/%d", fdProgram), probe.Verb, partSupervise}
