package docker

import (
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
)

// Name is what the configuration calls this driver.
const Name = "docker"

// Options configure a Driver.
type Options struct {
	reach.Options
	Host     string  // the engine's socket; empty: DOCKER_HOST, or the first usual one that there is
	Image    string  // of every box: a name, a name with a digest, or an ID
	Runtime  string  // runc, runsc; empty: the engine's own choice
	Memory   int64   // bytes; swap is none
	CPU      float64 // how many processors
	Pids     int64   // processes and threads
	Tmpfs    int64   // bytes of each private directory
	ReadOnly bool    // what could be written can be read alone
	Leave    bool    // containers are stopped and not removed when their time is over
	// Deployment tells this daemon's containers from others'; of lower-case letters,
	// digits and dashes.
	Deployment string
	// State is a directory of the driver's own, which the engine can reach by the same path.
	State string
	// Program is this program's own file, whose main function calls Main. Empty: found.
	Program string
	// Outlet is the way out of boxes that reach hosts. Nil: none does.
	Outlet  sandbox.Outlet
	Sidecar Sidecar
}

// Sidecar sets what shares its network with a box that reaches hosts.
type Sidecar struct {
	Pids       int64 // processes and threads
	Tmpfs      int64 // bytes of its private directory
	NoNames    bool  // the box asks nobody about names
	NoLoopback bool  // and nothing in it reaches anything else in it
}

// Name implements sandbox.Driver.
func (d *Driver) Name() string { return Name }

var _ sandbox.Driver = (*Driver)(nil)
