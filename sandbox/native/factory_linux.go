package native

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/writ-run/writ/sandbox/cgroup"
	"github.com/writ-run/writ/sandbox/mounted"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// A factory is the launcher that boxes are forked from. Both kinds of root are prepared
// in it when one is first asked for, with the host beside them.
type factory struct {
	launcher
	any  skeleton // with all programs of the system
	only skeleton // with none, for boxes with a list
	box  message  // that begins one

	makers makers
	groups *cgroup.Root // for what is made here; nil: none
	life   life

	mu sync.Mutex // it is told one thing at a time
}

// namespaces are what each box has of its own.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// startFactory starts one.
func startFactory() (*factory, error) {
	l, err := startLauncher()
	if err != nil {
		return nil, err
	}
	return newFactory(l)
}

// newFactory makes a launcher one.
func newFactory(l launcher) (*factory, error) {
	f := &factory{launcher: l, any: skeletonFor(false), only: skeletonFor(true), makers: newMakers()}
	err := l.apart()
	var now *mounted.Table
	if err == nil {
		now, err = mounted.Now()
	}
	if err != nil {
		return nil, f.end(err)
	}
	if now != f.mounts {
		f.life.doubt = now.Since(f.mounts)
	}
	var s script
	s.doing(stepLeave)
	s.call(unix.SYS_PRCTL, num(unix.PR_SET_NO_NEW_PRIVS), num(1), num(0), num(0), num(0))
	s.call(unix.SYS_MOUNT, num(0), s.text("/"), num(0), num(unix.MS_REC|unix.MS_PRIVATE), num(0))
	s.tmpfs("/tmp", 0, tiny)
	s.call(unix.SYS_CHDIR, s.text("/tmp"))
	s.mkdir(newRoot[1:], 0o755)
	s.mkdir(oldRoot[1:], 0o755)
	s.call(unix.SYS_PIVOT_ROOT, s.text("."), s.text(oldRoot[1:]))
	s.call(unix.SYS_CHDIR, s.text("/"))
	s.doing(stepLimits)
	s.file(oldRoot+"/proc/self/oom_score_adj", []byte("500")) // boxes go first when memory runs out
	s.watching(oldRoot, 1)
	if os.Geteuid() == 0 { // whose keyring is not for those whom its boxes run as; anybody else may have few
		s.callMay(unix.ENOSYS, unix.SYS_KEYCTL, num(unix.KEYCTL_JOIN_SESSION_KEYRING), num(0))
	}
	if err = s.descriptors(); err == nil {
		err = f.do(&s)
	}
	if err == nil {
		f.box, err = beginning()
	}
	if err != nil {
		return nil, f.end(err)
	}
	return f, nil
}

// descriptors lets this process have as many as it may. The kernel counts those that any
// process of a user has sent and nobody taken, and refuses whoever may have fewer to send one:
// a box could keep launchers from it.
func (s *script) descriptors() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return err
	}
	s.limits([]reach.Limit{{What: unix.RLIMIT_NOFILE, Max: now.Max}})
	return nil
}

// end lets the launcher go, and everything with it.
func (f *factory) end(err error) error {
	f.life.ending.Do(func() {
		f.conn.close()
		f.makers.end()
		for failed := error(syscall.EINTR); failed == syscall.EINTR; { // it was told to go, and has nothing to say
			_, failed = syscall.Wait4(f.pid, nil, 0, nil)
		}
		f.life.ended.Store(true)
	})
	return err
}

// errFactory says that the factory does not answer any more.
var errFactory = errors.New("the factory is gone")

// gone is an error of talking to the factory, as what it means.
func gone(err error) error {
	var failed *failure
	if err != nil && !errors.As(err, &failed) {
		err = errors.Join(errFactory, err)
	}
	return err
}

// aside has the factory do a script in a child, which answers by itself.
func (f *factory) aside(m message, in *template) (*conn, error) {
	ours, theirs, err := newPair()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	err = gone(f.conn.ask(m, theirs, in))
	f.mu.Unlock()
	if err != nil {
		ours.close()
		return nil, err
	}
	return ours, nil
}

// ask passes a request on, and where it is answered.
func (c *conn) ask(m message, answer int, in *template) error {
	fds := []int{answer}
	if in != nil {
		fds = append(fds, int(in.space.Fd()))
	}
	err := c.pass(m.encoded, fds)
	runtime.KeepAlive(in)
	unix.Close(answer) // or a launcher that is gone would be waited for
	return err
}

// unsaid is an error of waiting for what was done aside, where nothing was even said why.
func (f *factory) unsaid(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.Join(err, f.answers())
	}
	return err
}

// answers asks the factory whether it is there.
func (f *factory) answers() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.do(&script{})
}

// do has the factory do a script in place. The caller holds the lock.
func (f *factory) do(s *script) error {
	err := f.conn.send(s, inPlace, 0, "", "")
	if err == nil {
		_, err = f.conn.expect(saysDone, s)
	}
	return gone(err)
}

// beginning begins a box, which takes requests on the socket that is passed along.
func beginning() (message, error) {
	s := &script{}
	s.doing(stepSpace)
	s.call(unix.SYS_SETHOSTNAME, s.text("localhost"), num(len("localhost"))) // a name of its own that every machine's files know
	s.loopback()
	s.doing(stepDrop)
	for c := range capabilities() {
		s.callMay(unix.EINVAL, unix.SYS_PRCTL, num(unix.PR_CAPBSET_DROP), num(c), num(0), num(0), num(0)) // past the last one
	}
	s.serve(passed(0))
	uid, gid := everybody()
	b, err := s.encode(aBox, namespaces, uid, gid)
	return message{s, b}, err
}

// capabilities is how many this kernel knows; where it does not say, as many as there can be.
func capabilities() int {
	text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if last, failed := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && failed == nil && last > 0 && last < 64 {
		return last + 1
	}
	return 64
}

// prepare makes a skeleton, once.
func (f *factory) prepare(k *skeleton) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k.built {
		return nil
	}
	var s script
	*k = skeletonFor(k.listed) // whatever an attempt before has come to
	k.build(&s)
	return f.add(k, &s)
}

// add has a skeleton that is worked out made. The caller holds the lock.
func (f *factory) add(k *skeleton, s *script) error {
	err := f.do(s)
	k.built = err == nil
	return err
}

// kind is the skeleton of boxes with a list of programs, or without.
func (f *factory) kind(listed bool) *skeleton {
	if listed {
		return &f.only
	}
	return &f.any
}

// watched are what the kernel gives each user few of, for watching files, and the most of
// it that all boxes may have together. The rest is for the daemon and everything else that
// the user runs: a box that has taken all of it stops their tools from starting.
var watched = []struct {
	file string
	most int
}{
	{"/proc/sys/user/max_inotify_instances", 64}, // one a program: vite, tsc --watch, tail -f
	{"/proc/sys/user/max_inotify_watches", 65536},
}

// watching bounds the user namespace of this process, and all within it: to a part of what
// may be had together, which is at most half of what the host has. A kernel without these
// files has no bounds that depend on a namespace. They are looked for below base.
func (s *script) watching(base string, part int) {
	for _, w := range watched {
		text, err := os.ReadFile(w.file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		most := w.most
		if host, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			most = min(most, host/2)
		}
		bound := strconv.Itoa(most / part)
		fd := s.call(unix.SYS_OPENAT, here, s.text(base+w.file), num(unix.O_WRONLY|unix.O_CLOEXEC), num(0))
		s.call(unix.SYS_WRITE, fd, s.text(bound), num(len(bound)))
		s.call(unix.SYS_CLOSE, fd)
	}
}

// loopback brings up the one network device that a box has.
func (s *script) loopback() {
	request := make([]byte, 40) // struct ifreq
	copy(request, "lo")
	request[16] = unix.IFF_UP
	fd := s.call(unix.SYS_SOCKET, num(unix.AF_INET), num(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), num(0))
	s.call(unix.SYS_IOCTL, fd, num(unix.SIOCSIFFLAGS), s.bytes(request))
	s.call(unix.SYS_CLOSE, fd)
}
