package probe

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
)

const (
	kept    = 64 << 10
	flooded = 1 << 20
)

// targets are what a probe attacks, named for the process inside the box.
type targets struct {
	Write, Read    string // roots that it has
	Secret         string // a file outside
	Host           string // a file of the host that every user can read; empty: none found
	HostIs         string // which one it is: a box may have one of its own there
	Hidden         string // a directory in Read with a file "canary" and a socket "sock"
	HiddenFile     string // a file in Read
	Victim         int    // a process outside of the same user; 0: none
	True, Unlisted string // a program that is listed, one that is not
	Sleep          string // listed
	Port           int    // where something of the host listens on its loopback
	Abstract       string // and on an abstract socket
	Socket         string // and on one with a path, in Write
	GVisor         bool   // its kernel answers: it has less to say of a process
}

// lock is held by what the command leaves behind.
func (t targets) lock() string { return filepath.Join(t.Write, "lock") }

// A attackRange is the place that a probe attacks.
type attackRange struct {
	targets targets
	self    string
	dir     string
	sockets []net.Listener
	victim  *exec.Cmd
	hold    io.Closer
}

// newRange makes one. Everything in it belongs to the user of the box, so that
// modes and owners alone would stop nothing.
func newRange(self string) (r *attackRange, err error) {
	r = &attackRange{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.self, err = filepath.EvalSymlinks(self); err != nil {
		return nil, err
	}
	made, err := os.MkdirTemp("", "writ-probe-")
	if err != nil {
		return nil, err
	}
	r.dir = made
	if r.dir, err = filepath.EvalSymlinks(made); err != nil {
		return nil, err
	}
	read := filepath.Join(r.dir, "read")
	r.targets = targets{
		Write: filepath.Join(r.dir, "write"), Read: read, Secret: filepath.Join(r.dir, "secret"), Host: hostFile(),
		Hidden: filepath.Join(read, "hidden"), HiddenFile: filepath.Join(read, "hiddenfile"),
	}
	for _, dir := range []string{r.targets.Write, read, r.targets.Hidden} {
		err = errors.Join(err, os.Mkdir(dir, 0o755))
	}
	for _, file := range []string{r.targets.Secret, r.targets.HiddenFile, filepath.Join(read, "file"), filepath.Join(r.targets.Hidden, "canary")} {
		err = errors.Join(err, os.WriteFile(file, []byte("canary"), 0o644))
	}
	if err != nil {
		return nil, err
	}
	if err := r.listen(); err != nil {
		return nil, err
	}
	if err := r.giveAway(); err != nil {
		return nil, err
	}
	r.targets.True, r.targets.Sleep, r.targets.Unlisted = program("true"), program("sleep"), program("id")
	return r, r.startVictim()
}

// listen listens where a box must not get to.
func (r *attackRange) listen() error {
	t := &r.targets
	t.Abstract, t.Socket = "@"+filepath.Base(r.dir), filepath.Join(t.Write, "sock")
	for _, at := range [][2]string{{"unix", filepath.Join(t.Hidden, "sock")}, {"unix", t.Socket}, {"unix", t.Abstract}, {"tcp", "127.0.0.1:0"}} {
		l, err := net.Listen(at[0], at[1])
		if err != nil {
			return err
		}
		r.sockets = append(r.sockets, l)
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			t.Port = tcp.Port
		}
	}
	return nil
}

// giveAway makes the user of the box the owner.
func (r *attackRange) giveAway() error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(r.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, reach.Nobody, reach.Nobody))
	})
}

// startVictim starts a process outside that the user of the box could signal.
func (r *attackRange) startVictim() error {
	cat := program("cat")
	if cat == "" {
		return nil
	}
	r.victim = exec.Command(cat)
	r.victim.Env = []string{"CANARY=1"}
	if os.Geteuid() == 0 {
		r.victim.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: reach.Nobody, Gid: reach.Nobody}}
	}
	in, err := r.victim.StdinPipe()
	if err != nil {
		return err
	}
	r.hold = in
	if err := r.victim.Start(); err != nil {
		r.victim = nil
		return err
	}
	r.targets.Victim = r.victim.Process.Pid
	return nil
}

func (r *attackRange) close() {
	if r.hold != nil {
		r.hold.Close()
	}
	if r.victim != nil {
		r.victim.Process.Kill()
		r.victim.Wait()
	}
	for _, s := range r.sockets {
		s.Close()
	}
	if r.dir != "" {
		os.RemoveAll(r.dir)
	}
}

func (r *attackRange) confinement(wall time.Duration) writ.Confinement {
	t := r.targets
	c := writ.Confinement{
		Read: []string{t.Read}, Write: []string{t.Write}, Hide: []string{t.Hidden, t.HiddenFile},
		Exec:      writ.Exec{Mode: writ.ExecListed},
		Isolation: writ.Process,
		Limits:    writ.Limits{Wall: wall, Grace: 10 * time.Millisecond},
	}
	for _, file := range []string{t.True, t.Sleep} {
		if file != "" {
			c.Exec.Files = append(c.Exec.Files, file)
		}
	}
	if restrict.RaceBuild {
		c.Limits.Memory = 1 << 60
	}
	return c
}

// program is a program of the system by its real path; empty: not there.
func program(name string) string {
	for _, dir := range reach.SystemPath {
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			return real
		}
	}
	return ""
}

// hostFile is a file that anyone on the host can read and no box is given.
func hostFile() string {
	for _, path := range []string{"/etc/fstab", "/etc/machine-id", "/etc/login.defs", "/etc/hostname", "/etc/crontab"} {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o004 != 0 {
			return path
		}
	}
	return ""
}
