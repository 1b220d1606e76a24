package subprocess

import (
	"syscall"

	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
)

// A job is everything about one box, worked out by the daemon and handed down to
// the supervisor and the confiner.
type job struct {
	supervise.Command
	Launcher []string
	HostMnt  string              // the mount namespace that a confiner must not be in
	As       *syscall.Credential // the daemon is root: become this user
	UID, GID int                 // of the box

	Mounts   []mount
	Hide     []string
	Writable []string // where a Hide path that does not exist cannot be kept hidden
	Grants   []restrict.Grant
}

// A mount shows From, as it was before anything was changed, at At.
type mount struct {
	From, At string
	ReadOnly bool
	NoExec   bool
}
