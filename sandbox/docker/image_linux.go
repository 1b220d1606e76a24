package docker

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/sandbox/reach"
)

// deny takes back what an image says of its containers and what would be so unless something
// else is said. Whoever looks after an engine may do what labels say: run commands by the
// clock, lead visitors in, update. A volume would be on the disk, unbounded; it is there and
// empty, and as little to be written as the rest of the image, so that nothing stays in it
// for the next command.
func (p *plan) deny(env []string, labels map[string]string, volumes map[string]struct{}) {
	var unset []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		unset = append(unset, name+"=")
	}
	p.config.Env = slices.Concat(unset, p.config.Env)
	for name := range labels {
		p.labels[name] = ""
	}
	for dir := range volumes {
		how := "ro,noexec"
		if slices.Contains(reach.PrivateDirs, filepath.Clean(dir)) { // which are the box's own whatever an image says
			how = "rw,exec"
		}
		p.host.Tmpfs[dir] = tmpfs(p.driver.opts.Tmpfs, how)
	}
}
