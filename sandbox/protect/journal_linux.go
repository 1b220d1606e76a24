package protect

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A journal lists the paths at which placeholders may be, written before the first is made
// there: once for a path and not for each run, so that a run waits for no disk. What was
// left by a killed process is found by it and told by its looks, which it has from its
// making on; nothing else is ever removed.
type journal struct {
	file  *os.File
	known map[string]bool
	once  bool // for one run, which does not wait for the disk: what a machine leaves that stops in the middle of it, the next run in that directory takes over by its looks
}

// openJournal removes what was left, and begins anew.
func openJournal(state string, once bool) (*journal, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("journal of placeholders: %w; give writ a state directory that it can write", err)
	}
	path := filepath.Join(state, "placeholders")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal of placeholders: %w; give writ a state directory that it can write", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is in use by another process; stop that, or use another state directory", path)
	}
	j := &journal{file: f, known: map[string]bool{}, once: once}
	left, err := j.read()
	var needed []string // by another process
	if err == nil {
		for _, p := range left {
			gone, failed := removeLeft(p)
			if err = errors.Join(err, failed); !gone {
				needed = append(needed, p)
			}
		}
	}
	if err == nil {
		err = errors.Join(f.Truncate(0), seekStart(f), j.note(needed))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("remove placeholders that were left behind: %w", err)
	}
	return j, nil
}

func seekStart(f *os.File) error {
	_, err := f.Seek(0, 0)
	return err
}

// read lists the paths, one quoted on a line. A last line without an end was being written
// when the process was killed, before its placeholder was made.
func (j *journal) read() ([]string, error) {
	var out []string
	for in := bufio.NewReader(j.file); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return out, nil
		}
		p, err := strconv.Unquote(string(bytes.TrimSuffix(line, []byte("\n"))))
		if err != nil || !filepath.IsAbs(p) || filepath.Clean(p) != p {
			return nil, fmt.Errorf("%s: the line %q is no path; remove the line", j.file.Name(), line)
		}
		out = append(out, p)
	}
}

// note writes paths down before placeholders are made there.
func (j *journal) note(paths []string) error {
	var b []byte
	for _, p := range paths {
		if !j.known[p] {
			b = append(strconv.AppendQuote(b, p), '\n')
		}
	}
	if len(b) == 0 {
		return nil
	}
	if _, err := j.file.Write(b); err != nil {
		return fmt.Errorf("journal of placeholders: %w", err)
	}
	if !j.once {
		if err := j.file.Sync(); err != nil {
			return fmt.Errorf("journal of placeholders: %w", err)
		}
	}
	for _, p := range paths {
		j.known[p] = true
	}
	return nil
}

// close leaves the paths at which placeholders are still needed, by others.
func (j *journal) close(needed []string) error {
	clear(j.known)
	return errors.Join(j.file.Truncate(0), seekStart(j.file), j.note(needed), j.file.Close())
}
