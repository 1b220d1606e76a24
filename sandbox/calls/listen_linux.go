package calls

import (
	"errors"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Listener hears of the calls that a filter leaves to this process. Each waits until it
// is answered here; none is ever handed on to the kernel, which would read its memory
// again, after whoever made the call has changed it. When a Listener is closed, or this
// process ends, such calls fail as those that no kernel knows. One goroutine uses it; any
// may close it.
type Listener struct{ file *os.File }

// NewListener takes over the descriptor that a filter came with.
func NewListener(fd int) (*Listener, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &Listener{os.NewFile(uintptr(fd), "calls")}, nil
}

// Close ends it.
func (l *Listener) Close() error { return l.file.Close() }

// A Call is one that waits.
type Call struct {
	notice
	heard *Listener
}

// notice is struct seccomp_notif.
type notice struct {
	id   uint64
	pid  uint32
	_    uint32
	Nr   int32
	_    uint32
	_    uint64
	Args [6]uint64
}

const (
	notifIDValid = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	notifAddFD   = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
)

// Next waits for a call. At the end, when nothing is left that could make one, it is io.EOF.
func (l *Listener) Next() (*Call, error) {
	c := &Call{heard: l}
	over := false
	raw, err := l.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	err = raw.Read(func(fd uintptr) bool {
		for {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(p, 0); n <= 0 && err != unix.EINTR {
				return false
			}
			if p[0].Revents&unix.POLLIN == 0 {
				over = p[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
				return over
			}
			c.notice = notice{}
			if ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&c.notice)) == 0 {
				return true
			} // else whoever made it was killed meanwhile
		}
	})
	if err == nil && over {
		err = io.EOF
	}
	return c, err
}

func ioctl(fd, request uintptr, with unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(with))
	return errno
}

func (c *Call) ioctl(request uintptr, with unsafe.Pointer) error {
	raw, err := c.heard.file.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) { errno = ioctl(fd, request, with) })
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

// Return ends the call: with 0, or with an error. An error of Return's own is that nobody
// waits for it any more.
func (c *Call) Return(errno unix.Errno) error {
	answer := struct { // struct seccomp_notif_resp
		id    uint64
		value int64
		errno int32
		flags uint32
	}{id: c.id, errno: -int32(errno)}
	return c.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
}

// Give ends the call with a descriptor: a copy of fd, under the lowest free number of the
// process that made the call. It is one step, so that none is left there when the call
// was interrupted.
func (c *Call) Give(fd int, closeOnExec bool) error {
	add := struct { // struct seccomp_notif_addfd
		id              uint64
		flags, from, to uint32
		fdFlags         uint32
	}{id: c.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, from: uint32(fd)}
	if closeOnExec {
		add.fdFlags = unix.O_CLOEXEC
	}
	return c.ioctl(notifAddFD, unsafe.Pointer(&add))
}

// maxMemory is longer than any argument that is looked at.
const maxMemory = 4096

// Memory is what the caller has at an address. It may say something else a moment later,
// and in another thread: whatever is decided by it must do no harm either way.
func (c *Call) Memory(at uint64, n uint32) ([]byte, error) {
	if n == 0 || n > maxMemory {
		return nil, unix.EINVAL
	}
	b := make([]byte, n)
	local := []unix.Iovec{{Base: &b[0], Len: uint64(n)}}
	got, err := unix.ProcessVMReadv(int(c.pid), local, []unix.RemoteIovec{{Base: uintptr(at), Len: int(n)}}, 0)
	if err == nil && got != int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	// The number of a process that is gone may be another's by now; then this was its memory.
	return b, c.ioctl(notifIDValid, unsafe.Pointer(&c.id))
}
