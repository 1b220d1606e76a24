package subprocess

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/writ-run/writ/sandbox/reach"
)

// A job is everything about one box, worked out by the daemon and handed down to
// the supervisor and the confiner as one line of JSON.
type job struct {
	Launcher []string `json:"launcher"`
	HostMnt  string   `json:"host_mnt"` // the mount namespace that a confiner must not be in

	Path string   `json:"path"` // the file to execute
	Argv []string `json:"argv"`
	Dir  string   `json:"dir"`
	Env  []string `json:"env"`

	Root bool `json:"root"` // the daemon is root: become UID and GID
	UID  int  `json:"uid"`
	GID  int  `json:"gid"`

	Mounts   []mount      `json:"mounts"`
	Hide     []string     `json:"hide"`
	Writable []string     `json:"writable"` // where a Hide path that does not exist cannot be kept hidden
	Grants   []grant      `json:"grants"`
	Listed   bool         `json:"listed"` // only listed programs
	Limits   reach.Limits `json:"limits"`

	Grace time.Duration `json:"grace"`
	Wall  time.Duration `json:"-"` // watched by the daemon
}

// A mount shows From, as it was before anything was changed, at At.
type mount struct {
	From     string `json:"from"`
	At       string `json:"at"`
	ReadOnly bool   `json:"ro"`
	NoExec   bool   `json:"noexec"`
}

// A grant is one Landlock rule. A path that is not there grants nothing.
type grant struct {
	Path   string `json:"path"`
	Read   bool   `json:"r"`
	Write  bool   `json:"w"`
	Exec   bool   `json:"x"`
	List   bool   `json:"ls"`   // names in directories only
	Device bool   `json:"dev"`  // a harmless device: reading, writing, ioctl
	Strict bool   `json:"root"` // named by the confinement: no symlink on the way
}

// A status is what a supervisor tells the daemon: first that the command was
// started or why not, then how it ended.
type status struct {
	Started bool          `json:"started,omitempty"`
	Failed  *failure      `json:"failed,omitempty"`
	Code    int           `json:"code"`
	Signal  string        `json:"signal,omitempty"`
	CPU     time.Duration `json:"cpu,omitempty"`
}

// A failure is a step that kept a box from starting.
type failure struct {
	Step  string `json:"step"`
	Cause string `json:"cause"`
}

func (f *failure) Error() string { return f.Step + ": " + f.Cause }

// failed wraps the cause of a step that went wrong; nil stays nil.
func failed(step string, err error) error {
	if err == nil {
		return nil
	}
	return &failure{step, err.Error()}
}

// The steps, which are also what a message to people is chosen by.
const (
	stepSpace    = "namespaces"
	stepMount    = "mount"
	stepHide     = "hide"
	stepLandlock = "landlock"
	stepDrop     = "drop privileges"
	stepLimits   = "limits"
	stepSeccomp  = "seccomp"
	stepDir      = "change directory"
	stepExec     = "execute"
	stepProtocol = "protocol"
)

// maxJob bounds what a supervisor reads; arguments and environment of a Linux
// process fit in two mebibytes.
const maxJob = 8 << 20

// readJob reads one line of JSON.
func readJob(r *bufio.Reader) (job, []byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if err != bufio.ErrBufferFull || len(line) > maxJob {
			return job{}, nil, fmt.Errorf("read the job: %w", noEOF(err))
		}
	}
	var j job
	err := json.Unmarshal(line, &j)
	return j, line, err
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
