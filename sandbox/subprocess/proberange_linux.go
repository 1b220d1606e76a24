package subprocess

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
)

const (
	probeKept  = 64 << 10
	probeFlood = 1 << 20
)

// targets are what a probe attacks, named for the process inside the box.
type targets struct {
	Write, Read    string // roots that it has
	Secret         string // a file outside
	Host           string // a file of the host that every user can read; empty: none found
	Hidden         string // a directory in Read with a file "canary" and a socket "sock"
	HiddenFile     string // a file in Read
	Victim         int    // a process outside of the same user; 0: none
	True, Unlisted string // a program that is listed, one that is not
	Sleep          string // listed
}

// A probeRange is the place that a probe attacks.
type probeRange struct {
	targets targets
	self    string
	dir     string
	socket  net.Listener
	victim  *exec.Cmd
	hold    io.Closer
}

// newRange makes one. Everything in it belongs to the user of the box, so that
// modes and owners alone would stop nothing.
func newRange(launcher []string) (r *probeRange, err error) {
	r = &probeRange{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.self, err = executable(launcher); err != nil {
		return nil, err
	}
	if r.self, err = filepath.EvalSymlinks(r.self); err != nil {
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
	if r.socket, err = net.Listen("unix", filepath.Join(r.targets.Hidden, "sock")); err != nil {
		return nil, err
	}
	if err := r.giveAway(); err != nil {
		return nil, err
	}
	r.targets.True, r.targets.Sleep, r.targets.Unlisted = program("true"), program("sleep"), program("id")
	return r, r.startVictim()
}

// giveAway makes the user of the box the owner.
func (r *probeRange) giveAway() error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(r.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
}

// startVictim starts a process outside that the user of the box could signal.
func (r *probeRange) startVictim() error {
	cat := program("cat")
	if cat == "" {
		return nil
	}
	r.victim = exec.Command(cat)
	r.victim.Env = []string{"CANARY=1"}
	if os.Geteuid() == 0 {
		r.victim.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
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

func (r *probeRange) close() {
	if r.hold != nil {
		r.hold.Close()
	}
	if r.victim != nil {
		r.victim.Process.Kill()
		r.victim.Wait()
	}
	if r.socket != nil {
		r.socket.Close()
	}
	if r.dir != "" {
		os.RemoveAll(r.dir)
	}
}

func (r *probeRange) confinement(wall time.Duration) writ.Confinement {
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
	if raceBuild {
		c.Limits.Memory = 1 << 60
	}
	return c
}

// show puts this program into the box, wherever it is installed.
func (r *probeRange) show() []mount {
	return []mount{{From: r.self, At: probeAt, ReadOnly: true}}
}

// program is a program of the system by its real path; empty: not there.
func program(name string) string {
	for _, dir := range systemPath {
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
