// Package sandbox says what a driver is: something that starts a command inside
// a box that reaches exactly what a writ allows, or starts nothing.
//
// Drivers live in packages below this one, named for their technology. The
// interface is the same for a process on this host, a namespace of its own, a
// container behind a daemon's socket and a pod in a cluster: the Spec says what
// to run, the Writ says what it may reach, and neither holds host-only things
// such as descriptors or process ids. Package sandboxtest is the suite every
// driver passes.
package sandbox

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
)

// Driver starts boxes. It is safe for concurrent use.
type Driver interface {
	// Name is what the configuration calls it.
	Name() string
	// Probe really starts a box, really tries forbidden things, and reports
	// what held. An error means that the driver cannot start boxes here at all;
	// it says what is missing and how to get it.
	Probe(context.Context) (Features, error)
	// Start starts the command inside a box confined as the writ says, or
	// returns an error with nothing left running. It refuses a confinement it
	// cannot enforce whole with a writ.SandboxUnavailable that names what is
	// missing (I5).
	Start(context.Context, writ.Writ, Spec) (Box, error)
}

// An Examiner is a driver whose probe is remembered though what it depends on can go away:
// an engine. Examine probes anew, and what it finds is what is remembered.
type Examiner interface {
	Examine(context.Context) (Features, error)
}

// Examine probes a driver as it is now.
func Examine(ctx context.Context, d Driver) (Features, error) {
	if x, ok := d.(Examiner); ok {
		return x.Examine(ctx)
	}
	return d.Probe(ctx)
}

// Box is one running command. Whoever started it calls Wait exactly once.
type Box interface {
	// Wait returns how the command ended, after every process of the box is
	// gone. Ending the context kills the box first.
	Wait(context.Context) (Exit, error)
}

// Spec says what to run.
type Spec struct {
	Argv    []string          // Argv[0] is looked up in the box's PATH unless absolute
	Dir     string            // working directory; empty: the call's
	Env     map[string]string // added to the environment, through the driver's filter
	Given   map[string]string // added too, by an operator for this program: names may carry secrets
	Timeout time.Duration     // instead of the confinement's Wall, at most MaxWall; zero: Wall
	Alone   bool              // it goes on after its call, and shares a box with no other
	Serves  bool              // it ends when its starter does, and not after a time
	Stdin   io.Reader         // nil: empty
	Stdout  io.Writer         // nil: discarded; written as output comes
	Stderr  io.Writer
}

// MaxWall is the longest that one run may take.
const MaxWall = 600 * time.Second

// Exit is how a command ended.
type Exit struct {
	Code    int           // exit status; -1 when a signal ended it
	Signal  string        // the signal that ended it, such as "killed"
	Limit   string        // what ended it: timeout, cancelled, memory, pids, file size, disk; empty: it ended by itself
	Met     string        // a limit that it came up against, whatever ended it
	Undone  []string      // what it left among protected names, and where that is now
	Elapsed time.Duration // wall clock
	CPU     time.Duration // user and system time of all its processes

	Container *Container // that it ran in; nil where a driver has none
}

// Feature is one property of a box.
type Feature string

const (
	FileRead      Feature = "file_read"       // nothing outside Read and Write can be read
	FileWrite     Feature = "file_write"      // nothing outside Write can be changed: content, names, modes, owners, times
	StateHidden   Feature = "state_hidden"    // Hide is out of reach, also at level full
	ProtectedName Feature = "protected_names" // names that other programs obey stay as they are in what can be written
	ExecListed    Feature = "exec_listed"     // only listed programs can be executed
	NoNetwork     Feature = "no_network"      // no socket of any family leads out
	HostAllowlist Feature = "host_allowlist"  // named hosts, and only those, can be reached
	SSHAgent      Feature = "ssh_agent"       // programs sign in by ssh with keys that are outside, and no other socket with a path is to be had
	OwnProcesses  Feature = "own_processes"   // processes outside cannot be signalled, traced or read
	ProcessTable  Feature = "process_table"   // processes outside cannot be seen
	WholeTreeDies Feature = "whole_tree_dies"
	Unprivileged  Feature = "unprivileged" // no root, no capabilities, no way to regain them
	Containerized Feature = "containerized"
	GVisor        Feature = "gvisor" // system calls are answered by gVisor's kernel, not by the machine's
	LimitWall     Feature = "limit_wall"
	LimitMemory   Feature = "limit_memory"
	LimitPids     Feature = "limit_pids"
	LimitOutput   Feature = "limit_output"
)

// NoAgent is why a driver does not claim SSHAgent.
const NoAgent = "not claimed: a box opens no socket with a path, not even to an agent of ssh; driver native has one: sandboxing.overrides, or leave the agent out of egress.ssh.hosts"

// Finding is what the probe saw of one feature.
type Finding struct {
	Feature  Feature `json:"feature"`
	Enforced bool    `json:"enforced"`
	Evidence string  `json:"evidence"` // what was tried and what happened, or why it is not claimed
}

// Features is the result of a probe: declared against enforced.
type Features []Finding

// Has reports whether the probe showed f to be enforced.
func (fs Features) Has(f Feature) bool {
	return slices.ContainsFunc(fs, func(x Finding) bool { return x.Feature == f && x.Enforced })
}

// Demands lists the features that a confinement needs of a driver. A box that
// reaches nothing still needs these held, so most of them are always demanded.
func Demands(c writ.Confinement) []Feature {
	need := []Feature{FileRead, FileWrite, StateHidden, OwnProcesses, WholeTreeDies, Unprivileged, LimitWall, LimitOutput}
	switch c.Network.Mode {
	case writ.NetworkNone:
		need = append(need, NoNetwork)
	default:
		need = append(need, HostAllowlist)
	}
	if len(c.SSH) > 0 {
		need = append(need, SSHAgent)
	}
	if c.Exec.Mode != writ.ExecAny {
		need = append(need, ExecListed)
	}
	if c.Isolation == writ.Containerized {
		need = append(need, Containerized)
	}
	return need
}

// Admit refuses a writ that a driver may not, or cannot, start a box for.
func Admit(ctx context.Context, d Driver, w writ.Writ) error {
	if !w.Valid() {
		return writ.Fail(writ.Denied, "denied: there is no valid writ, so nothing runs", nil)
	}
	c := w.Confinement()
	if c.Backend != "" && c.Backend != d.Name() {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the call is to run on driver "+c.Backend+", not "+d.Name(), nil)
	}
	have, err := d.Probe(ctx)
	if err != nil {
		return err
	}
	return Unmet(d.Name(), have, c)
}

// Unmet is the error for a confinement that a driver cannot enforce whole, or
// nil when it can. For each thing that is missing it says why, as the probe found.
func Unmet(driver string, have Features, c writ.Confinement) error {
	var missing []string
	for _, f := range Demands(c) {
		if !have.Has(f) {
			missing = append(missing, string(f)+have.why(f))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	msg := fmt.Sprintf("sandbox_unavailable: driver %s does not enforce %s; 'writ doctor --driver %[1]s' says what it does, and an operator chooses another with sandboxing.overrides", driver, strings.Join(missing, ", "))
	return writ.Fail(writ.SandboxUnavailable, msg, nil)
}

func (fs Features) why(f Feature) string {
	for _, x := range fs {
		if x.Feature == f {
			return " (" + strings.TrimPrefix(x.Evidence, "not claimed: ") + ")"
		}
	}
	return ""
}

// ContainerEnded is the limit of a run whose container somebody else ended.
const ContainerEnded = "container ended"

// Meaning says what a limit that ended a run means for whoever reads of it; the name itself
// where it says enough.
func Meaning(limit string) string {
	switch limit {
	case "memory":
		return "all of it together used more memory than it may"
	case "pids":
		return "it began more processes than it may"
	case "file size":
		return "it wrote a file larger than it may"
	case "disk":
		return "it wrote more to the disk than it may"
	case "cpu":
		return "it used more time on the processors than it may"
	case ContainerEnded:
		return "its container was ended from outside, and all that ran in it"
	case "unmeasured":
		return "what it uses could not be measured"
	}
	return limit
}
