package probe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return bare(err)
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return bare(err)
}

// readThe reads a file, if it is that one.
func readThe(path, is string, gvisor bool) error {
	if here := which(path, gvisor); here != "" && here != is {
		return errors.New("it has one of its own there")
	}
	return read(path)
}

// which tells a file from others; empty: it cannot be looked at.
func which(path string, gvisor bool) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	if gvisor { // which numbers files itself
		return fmt.Sprint(st.Ctim.Nano())
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

func list(path string) error {
	_, err := os.ReadDir(path)
	return bare(err)
}

func connect(path string) error { return dial(unix.AF_UNIX, &unix.SockaddrUnix{Name: path}) }

func dial(family int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

func dialDatagram(to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), 0, to)
}

// leave leaves a process behind, in a session of its own, that holds a lock.
func leave(t targets) error {
	f, err := os.Create(t.lock())
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	cmd := exec.Command(t.Sleep, "60")
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

func run(argv ...string) error {
	if argv[0] == "" {
		return errors.New("no such program here")
	}
	return bare(exec.Command(argv[0], argv[1:]...).Run())
}

func mapMemory(n int) error {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err == nil {
		unix.Munmap(b)
	}
	return err
}

// bare is an error without the path in it, which the evidence names already.
func bare(err error) error {
	var p *os.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// first reports whether this is process 1, by its own number and by what /proc calls it,
// which could be of another table.
func first() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == "1" && os.Getpid() == 1
}

// asked is what gVisor says when it is asked for what it does not write in a status.
func asked(name string) string {
	switch name {
	case "NoNewPrivs":
		if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil {
			return strconv.Itoa(set)
		}
	case "CapAmb":
		// Whether one is set is an invalid question only where there are no such things.
		if _, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, unix.CAP_CHOWN, 0, 0); err == unix.EINVAL {
			return "0"
		}
	}
	return ""
}

// field is the value of one line of /proc/self/status.
func field(status, name string) string {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
