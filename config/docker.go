package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/strict"
)

// Docker sets the docker driver.
type Docker struct {
	Host           string    `yaml:"host"` // unix:///path; empty: DOCKER_HOST, or the first usual socket that there is
	Image          string    `yaml:"image"`
	Runtime        string    `yaml:"runtime"` // empty: the engine's own choice
	MemoryLimit    Bytes     `yaml:"memory_limit"`
	CPULimit       CPUs      `yaml:"cpu_limit"`
	TimeoutSeconds int       `yaml:"timeout_seconds"`
	PidsLimit      int       `yaml:"pids_limit"`
	TmpfsSize      Bytes     `yaml:"tmpfs_size"`
	MountMode      MountMode `yaml:"mount_mode"`
	AutoRemove     bool      `yaml:"auto_remove"`

	Network          DockerNetwork                     `yaml:"network"`
	NetworkOverrides map[action.Category]DockerNetwork `yaml:"network_overrides"`
	AllowedHosts     []string                          `yaml:"allowed_hosts"` // none: those that the agent may reach
	DNSAllowed       bool                              `yaml:"dns_allowed"`
	LoopbackAllowed  bool                              `yaml:"loopback_allowed"`
	SidecarPidsLimit int                               `yaml:"sidecar_pids_limit"`
	SidecarTmpfsSize Bytes                             `yaml:"sidecar_tmpfs_size"`
}

// Same reports whether two set the driver alike. What calls are decided by may differ.
func (s Docker) Same(o Docker) bool {
	s.Network, s.NetworkOverrides, s.AllowedHosts = o.Network, o.NetworkOverrides, o.AllowedHosts
	return reflect.DeepEqual(s, o)
}

// DockerNetwork is none, or bridge: what the agent may reach, by the way out, and never a
// bridge of the engine.
type DockerNetwork string

// UnmarshalText takes both.
func (n *DockerNetwork) UnmarshalText(b []byte) error {
	return word(n, "network of containers", b, "none", "bridge")
}

func dockerDefaults() Docker {
	return Docker{
		Image: "writ-sandbox:latest", MemoryLimit: 512 << 20, CPULimit: 1, TimeoutSeconds: 120, PidsLimit: 64, TmpfsSize: 64 << 20, MountMode: "ro", AutoRemove: true,
		Network: "none", NetworkOverrides: map[action.Category]DockerNetwork{action.Database: "bridge", action.Web: "bridge"}, DNSAllowed: true, LoopbackAllowed: true,
		SidecarPidsLimit: 32, SidecarTmpfsSize: 8 << 20,
	}
}

// MountMode says whether a container can write what its call may.
type MountMode string

// UnmarshalText takes both.
func (m *MountMode) UnmarshalText(b []byte) error { return word(m, "mount mode", b, "ro", "rw") }

// Bytes is written 1048576, 64k, 512m or 2g, or with the units that tools' limits have:
// 64KiB, 512MiB, 2GiB.
type Bytes int64

// UnmarshalText takes a number with a unit, or of bytes.
func (n *Bytes) UnmarshalText(b []byte) error {
	s := strings.TrimSuffix(strings.ToLower(string(b)), "b")
	shift := 0
	for i, unit := range []string{"k", "m", "g"} {
		for _, spelt := range []string{unit, unit + "i"} {
			if rest, ok := strings.CutSuffix(s, spelt); ok && shift == 0 {
				s, shift = rest, 10*(i+1)
			}
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < 0 || v > 1<<60>>shift {
		return fmt.Errorf("%q is no size; write 1048576, 64k, 512MiB or 2g", b)
	}
	*n = Bytes(v << shift)
	return nil
}

// Numeric lets bytes be written without quotes.
func (*Bytes) Numeric() {}

func (n Bytes) String() string { return strconv.FormatInt(int64(n), 10) }

// CPUs is how many processors, written 1.0 or 0.5.
type CPUs float64

// UnmarshalText takes a number.
func (n *CPUs) UnmarshalText(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || v != v {
		return fmt.Errorf("%q is no number of processors; write 1.0 or 0.5", b)
	}
	*n = CPUs(v)
	return nil
}

// Numeric lets it be written without quotes.
func (*CPUs) Numeric() {}

func (n CPUs) String() string { return strconv.FormatFloat(float64(n), 'f', -1, 64) }

// imageRef is what an image can be called: nothing that an engine or a shell would take for
// something else.
var (
	imageRef = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$`) })
	imageSum = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })
)

// isImage reports whether an engine could find an image by this: a name, or a whole digest.
func isImage(s string) bool {
	digest, by := strings.CutPrefix(s[strings.LastIndexByte(s, '@')+1:], "sha256:")
	return imageRef().MatchString(s) && (!by || imageSum().MatchString(digest))
}

func (c *Config) checkDocker(d *strict.File) {
	s, key := c.File.Sandboxing.Docker, "sandboxing.docker."
	within := func(name string, v, least, most int64, unit string) {
		if v < least || v > most {
			d.Reject(key+name, "must be %d%s to %d%s", least, unit, most, unit)
		}
	}
	if s.Host != "" && !strings.HasPrefix(s.Host, "unix:///") {
		d.Reject(key+"host", "must be a socket of this machine, written unix:///path: boxes are shown directories of it")
	}
	if !isImage(s.Image) {
		d.Reject(key+"image", "must be the name of an image, with a tag or a whole digest, or an ID (sha256: and 64 digits); 'writ image build sandbox' makes one")
	}
	if s.Runtime != "" && !imageRef().MatchString(s.Runtime) {
		d.Reject(key+"runtime", "must be the name of a runtime that the engine knows, such as runc or runsc")
	}
	within("memory_limit", int64(s.MemoryLimit)>>20, 16, 1<<20, "m")
	within("tmpfs_size", int64(s.TmpfsSize)>>10, 64, 1<<30, "k")
	within("pids_limit", int64(s.PidsLimit), 32, 1<<20, "")
	within("sidecar_pids_limit", int64(s.SidecarPidsLimit), 16, 1<<20, "")
	within("sidecar_tmpfs_size", int64(s.SidecarTmpfsSize)>>10, 64, 1<<30, "k")
	c.DockerHosts = nil
	for i, text := range s.AllowedHosts {
		p, err := host.ParsePattern(text)
		if err != nil {
			d.Reject(fmt.Sprintf("%sallowed_hosts[%d]", key, i), "%v", err)
			continue
		}
		c.DockerHosts = append(c.DockerHosts, p)
	}
	within("timeout_seconds", int64(s.TimeoutSeconds), 1, 600, "")
	if s.CPULimit < 0.01 || s.CPULimit > 1024 {
		d.Reject(key+"cpu_limit", "must be 0.01 to 1024")
	}
	if !s.AutoRemove {
		c.Warnings = append(c.Warnings, c.At(key+"auto_remove")+": auto_remove is false: containers stay on the disk, stopped, until the daemon starts again")
	}
}
