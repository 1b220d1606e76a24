//go:build unix

package sandboxtest

import (
	"os"
	"os/exec"
	"syscall"
)

// asBoxUser makes cmd run as the user that the boxes of the suite have.
func asBoxUser(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}
