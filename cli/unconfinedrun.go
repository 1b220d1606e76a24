package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/writ-run/writ/client"
)

// unconfinedRun is the command as it is written down and as it is started. Of its
// arguments there is a digest only: what they say may be secret.
func unconfinedRun(dir string, argv []string) (run client.UnconfinedRequest, child *exec.Cmd, err error) {
	if dir != "" {
		if dir, err = place(dir); err == nil {
			err = os.Chdir(dir)
		}
		if err != nil {
			return run, nil, fmt.Errorf("--dir: %w", err)
		}
	}
	at, err := os.Getwd()
	if err != nil {
		return run, nil, err
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return run, nil, fmt.Errorf("the program %q cannot be executed: %w; check its name and your PATH", argv[0], errors.Unwrap(err))
	}
	child = exec.Command(program)
	child.Args, child.Dir = argv, dir // with a directory, the command's PWD is that
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	if program, err = filepath.Abs(program); err != nil {
		return run, nil, err
	}
	who := "uid " + strconv.Itoa(os.Getuid()) // of one whom the system does not name
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	whole := strings.Join(argv, "\x00") + "\x00"
	sum := sha256.Sum256([]byte(whole))
	return client.UnconfinedRequest{User: text(who), UID: os.Getuid(), Program: text(program), Dir: text(at),
		Argv: hex.EncodeToString(sum[:]), Args: len(argv), Bytes: len(whole)}, child, nil
}

// text is a name as JSON can hold it.
func text(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// runAlong runs the command in this process's place in the terminal: it stops, goes
// on and ends with the same keys. err: it could not be executed.
func runAlong(child *exec.Cmd) (end client.UnconfinedEnd, err error) {
	signals := make(chan os.Signal, 8)
	for _, s := range passedOn {
		if !signal.Ignored(s) { // nohup's stays ignored, for the command too
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return client.UnconfinedEnd{ExitCode: ExitNotStarted, NotStarted: true}, err
	}
	over := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if !heardByAll(s) {
					child.Process.Signal(s)
				}
			case <-over:
				return
			}
		}
	}()
	child.Wait() // its error says what the state does
	close(over)
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return client.UnconfinedEnd{ExitCode: 128 + int(status.Signal()), Signal: int(status.Signal())}, nil
	}
	return client.UnconfinedEnd{ExitCode: child.ProcessState.ExitCode()}, nil
}

// heardByAll reports whether the command got a signal as well: a key sends it to all
// in the terminal's foreground, and passed on it would be heard twice.
func heardByAll(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil { // not Linux
		return IsTerminal(os.Stdin)
	}
	_, rest, _ := strings.Cut(string(b), ") ") // state, parent, group, session, terminal, its foreground group
	f := strings.Fields(rest)
	return len(f) > 5 && f[2] == f[5]
}
