package wrapped

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervise starts the command and outlives it. It ends after every process that the
// command left behind.
func supervise() {
	runtime.GOMAXPROCS(1) // its threads count as processes of the box
	// Nobody inside reads its memory, its descriptors or, through /proc, its program.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	unix.CloseRange(fdProgram, 1<<31-1, 0)
	unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)
	say := json.NewEncoder(os.NewFile(fdStatus, "status"))
	say.Encode(status{Up: true})
	control := bufio.NewReader(os.NewFile(fdControl, "control"))
	text, job, err := takeJob(control)
	if err != nil {
		unix.Exit(1) // the daemon has let go
	}
	cmd, why := begin(text)
	if why != nil {
		say.Encode(status{Failed: why})
		unix.Exit(1)
	}
	say.Encode(status{Started: true})
	go obey(control)
	var over atomic.Bool
	if len(job.Watch) > 0 {
		go watch(job.Watch, &over)
	}
	end := reap(cmd.Process.Pid)
	if over.Load() || full(job.Watch) {
		end.Limit = "temporary_space"
	}
	say.Encode(end)
	unix.Exit(0)
}

// begin starts what becomes the command, and returns when it has.
func begin(job []byte) (*exec.Cmd, *failure) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, failed(stepJob, err)
	}
	wrong, told, err := os.Pipe()
	if err != nil {
		return nil, failed(stepJob, err)
	}
	cmd := exec.Command(Self, os.Args[1], partBecome)
	cmd.Env = []string{}
	stdio := [3]*os.File{os.NewFile(fdStdin, ""), os.NewFile(fdStdin+1, ""), os.NewFile(fdStdin+2, "")}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio[0], stdio[1], stdio[2]
	cmd.ExtraFiles = []*os.File{in, told}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, failed(stepExec, err)
	}
	for _, f := range append(stdio[:], in, told) {
		f.Close()
	}
	if _, err := out.Write(job); err != nil {
		return nil, failed(stepJob, err)
	}
	out.Close()
	// Its end of the pipe is closed by executing the command, or when it ends.
	said, err := io.ReadAll(io.LimitReader(wrong, 1<<16))
	wrong.Close()
	var why failure
	switch {
	case err != nil:
		return nil, failed(stepJob, err)
	case string(said) == ready:
		return cmd, nil
	case json.Unmarshal(bytes.TrimPrefix(said, []byte(ready)), &why) != nil:
		return nil, failed(stepExec, fmt.Errorf("no report: %q", said))
	}
	return nil, &why
}

// obey does what the daemon says, until that is gone.
func obey(control io.ByteReader) {
	for {
		switch msg, err := control.ReadByte(); {
		case err != nil:
			unix.Kill(-1, unix.SIGKILL)
			return
		case msg == msgKill:
			unix.Kill(-1, unix.SIGKILL)
		case msg == msgTerm:
			unix.Kill(-1, unix.SIGTERM)
			unix.Kill(-1, unix.SIGCONT) // what was stopped does not hear it otherwise
		}
	}
}

// watch ends the box when its temporary files are more than it may have. What was written
// between two looks is beyond the bound.
func watch(dirs []string, over *atomic.Bool) {
	for range time.Tick(10 * time.Millisecond) {
		if full(dirs) {
			over.Store(true)
			unix.Kill(-1, unix.SIGKILL)
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
func reap(command int) status {
	end := status{Ended: true, Code: -1}
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no child is left, and orphans become children
			var all unix.Rusage
			if unix.Getrusage(unix.RUSAGE_CHILDREN, &all) == nil {
				end.CPU = time.Duration(all.Utime.Nano() + all.Stime.Nano())
			}
			return end
		case pid == command:
			end.Code = ws.ExitStatus()
			if ws.Signaled() {
				end.Code, end.Signal = -1, ws.Signal().String()
			}
			unix.Kill(-1, unix.SIGKILL)
		}
	}
}
