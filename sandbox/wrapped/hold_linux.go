package wrapped

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/writ-run/writ/sandbox/supervise"
	"golang.org/x/sys/unix"
)

// hold starts the command and outlives it. It ends after every process that the
// command left behind.
func hold() {
	runtime.GOMAXPROCS(1) // its threads count as processes of the box
	// Nobody inside reads its memory, its descriptors or, through /proc, its program.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.CloseRange(fdProgram, 1<<31-1, 0)
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)
	s, job := supervise.Up[Job]()
	cmd := exec.Command(self, os.Args[1], partBecome)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	var over atomic.Bool
	if len(job.Watch) > 0 {
		go watch(job.Watch, &over)
	}
	s.Run(cmd, supervise.Hands{
		Ask: func() {
			unix.Kill(-1, unix.SIGTERM)
			unix.Kill(-1, unix.SIGCONT) // what was stopped does not hear it otherwise
		},
		Kill: kill,
		End: func(command int) (how unix.WaitStatus, limit string) {
			how = reap(command)
			if over.Load() || full(job.Watch) {
				limit = "temporary_space"
			}
			return how, limit
		},
	})
}

// kill kills everything that is in the box.
func kill() { unix.Kill(-1, unix.SIGKILL) }

// watch ends the box when its temporary files are more than it may have. What was written
// between two looks is beyond the bound.
func watch(dirs []string, over *atomic.Bool) {
	for range time.Tick(10 * time.Millisecond) {
		if full(dirs) {
			over.Store(true)
			kill()
		}
	}
}

func full(dirs []string) bool {
	var space, files uint64
	for _, dir := range dirs {
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil {
			space += (fs.Blocks - fs.Bfree) * uint64(fs.Bsize)
			files += fs.Files - fs.Ffree
		}
	}
	return space > TemporaryBytes || files > temporaryFiles
}

// reap waits for the command, kills what is left, and waits for that.
func reap(command int) unix.WaitStatus {
	how := supervise.Unknown
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no child is left, and orphans become children
			return how
		case pid == command:
			how = ws
			kill()
		}
	}
}
