package cgroup

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A control is a control file, held open so that using it costs one system call. The zero
// value stands for a file that is not there: reading it gives nothing, writing fails.
type control struct {
	fd   int
	path string
}

// openControl opens a control file of a group for reading and, where the kernel lets it
// be written, writing.
func openControl(dir, name string) control {
	path := dir + "/" + name
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	}
	if err != nil {
		return control{}
	}
	return control{fd: fd, path: path}
}

func (c control) there() bool { return c.path != "" }

func (c *control) close() {
	if c.there() {
		unix.Close(c.fd)
		*c = control{}
	}
}

func (c control) put(text string) error {
	if !c.there() {
		return unix.ENOENT
	}
	_, err := again(func() (int, error) { return unix.Pwrite(c.fd, []byte(text), 0) })
	if err != nil {
		return fmt.Errorf("write %s to %s: %w", text, c.path, err)
	}
	return nil
}

// again repeats a call that a signal interrupted: changing a limit gives way to any, and
// this program sends itself some to share the processors.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

func (c control) text() (string, error) {
	if !c.there() {
		return "", nil
	}
	var b [4096]byte
	n, err := again(func() (int, error) { return unix.Pread(c.fd, b[:], 0) })
	if err != nil {
		return "", fmt.Errorf("read %s: %w", c.path, err)
	}
	return string(b[:n]), nil
}

// number is the value behind a key, or the whole file as a number when the key is empty.
// Where there is no such file or key it is zero.
func (c control) number(key string) (int64, error) {
	text, err := c.text()
	if err != nil || text == "" {
		return 0, err
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if key == "" && len(f) == 1 {
			return c.parsed(f[0])
		}
		if len(f) == 2 && f[0] == key {
			return c.parsed(f[1])
		}
	}
	return 0, nil
}

func (c control) parsed(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s says %q, which is no number", c.path, s)
	}
	return n, nil
}
