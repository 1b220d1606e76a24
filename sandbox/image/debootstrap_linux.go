package image

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/writ-run/writ"
)

// debootstrap gives a root file system of a suite, as an archive that ends in an error
// unless all of it was made: an engine would take half of one for an image.
func debootstrap(ctx context.Context, r *Request) (io.ReadCloser, error) {
	if os.Geteuid() != 0 {
		return nil, writ.Fail(writ.SandboxUnavailable, "debootstrap makes devices and owners, which takes root; run this with sudo, or build on an image that is there with --from IMAGE", nil)
	}
	sbin := os.Getenv("PATH") + ":/usr/sbin:/sbin"
	if _, err := exec.LookPath("debootstrap"); err != nil {
		if _, err := os.Stat("/usr/sbin/debootstrap"); err != nil {
			return nil, writ.Fail(writ.SandboxUnavailable, "debootstrap is not installed; install it (apt install debootstrap), or build on an image that is there with --from IMAGE", nil)
		}
	}
	// A process namespace ends whole with its first process, and that with unshare.
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", string(baseScript()), "base", r.Suite)
	cmd.Env = append(os.Environ(), "PATH="+sbin, "LC_ALL=C.UTF-8")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // Ctrl-C is ours to answer
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe() // not cmd's: waiting would close it before all is read
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig is about the thread that started it
		err := cmd.Start()
		in.Close()
		started <- err
		if err != nil {
			return
		}
		var last tail
		for lines := bufio.NewScanner(said); lines.Scan(); {
			last.add(lines.Text())
			r.Progress(Line{Text: strings.TrimPrefix(lines.Text(), "I: ")})
		}
		if err := cmd.Wait(); err != nil {
			ended <- errors.New(last.before(fmt.Sprintf("debootstrap of %q failed (%v)", r.Suite, err)))
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		out.Close()
		return nil, fmt.Errorf("start debootstrap: %w", err)
	}
	return &made{out, cmd, ended}, nil
}

// made is the output of a command, which ends well only if the command did.
type made struct {
	out   *os.File
	cmd   *exec.Cmd
	ended chan error
}

func (m *made) Read(p []byte) (int, error) {
	n, err := m.out.Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	if failed := <-m.ended; failed != nil {
		return 0, failed
	}
	return 0, err
}

// Close ends the command if it runs.
func (m *made) Close() error {
	m.cmd.Process.Kill()
	for range m.ended {
	}
	return m.out.Close()
}
