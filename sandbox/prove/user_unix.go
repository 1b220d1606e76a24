//go:build unix

package prove

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// asBoxUser makes cmd run as the user that the boxes of the suite have, in a group of
// processes of its own.
func asBoxUser(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
}

func owner(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(st.Uid, ":", st.Gid)
	}
	return ""
}

// id tells a file from others, as stat prints it.
func id(path string) string {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return "none"
	}
	return fmt.Sprint(st.Dev, ":", st.Ino)
}

// numbered is what is in a directory, each with what tells it from another of its name.
func numbered(dir string) string {
	entries, _ := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			out = append(out, fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino, ":", e.Name()), changed(info)+":"+e.Name())
		}
	}
	return strings.Join(out, " ")
}

// fifo makes a pipe that anyone may write to, and keeps it open for reading.
func (w *world) fifo(path string) error {
	if err := errors.Join(syscall.Mkfifo(path, 0o666), os.Chmod(path, 0o666)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		w.later(func() { f.Close() })
	}
	return err
}
