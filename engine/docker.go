package engine

import (
	"io"
	"path/filepath"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/docker"
	"github.com/writ-run/writ/sandbox/reach"
)

// dockerOptions is what the configuration says of containers.
func (e *Engine) dockerOptions(cfg *config.Config, every reach.Options, program string) docker.Options {
	d := cfg.File.Sandboxing.Docker
	return docker.Options{
		Options: every, Host: d.Host, Image: d.Image, Runtime: d.Runtime, Memory: int64(d.MemoryLimit), CPU: float64(d.CPULimit),
		Pids: int64(d.PidsLimit), Tmpfs: int64(d.TmpfsSize), ReadOnly: dockerReadOnly(cfg).V, Leave: !d.AutoRemove,
		Deployment: deployment(cfg.StatePath), State: filepath.Join(cfg.StatePath, "docker"), Program: program, Outlet: e.dockerOutlet,
		Sidecar: docker.Sidecar{Pids: int64(d.SidecarPidsLimit), Tmpfs: int64(d.SidecarTmpfsSize), NoNames: !d.DNSAllowed, NoLoopback: !d.LoopbackAllowed},
	}
}

// dockerOutside is what it says of the hosts that containers reach.
func dockerOutside(cfg *config.Config) *decide.Outside {
	const key = "sandboxing.docker."
	d := cfg.File.Sandboxing.Docker
	o := &decide.Outside{
		Driver: docker.Name, Open: access.Set[bool]{V: d.Network == "bridge", At: cfg.At(key + "network")}, ByCategory: map[action.Category]access.Set[bool]{},
	}
	for c, n := range d.NetworkOverrides {
		o.ByCategory[c] = access.Set[bool]{V: n == "bridge", At: cfg.At(key + "network_overrides." + string(c))}
	}
	o.Hosts.V, o.Hosts.At = cfg.DockerHosts, cfg.At(key+"allowed_hosts")
	return o
}

// dockerReadOnly is whether containers read alone what their calls might write.
func dockerReadOnly(cfg *config.Config) access.Set[bool] {
	return access.Set[bool]{V: cfg.File.Sandboxing.Docker.MountMode == "ro", At: cfg.At("sandboxing.docker.mount_mode")}
}

// dockerOutlet is the way out of containers. What was decided before anybody knew that it
// would be a container (backend auto), or by nobody (servers), is held against what the
// operator says of those here.
func (e *Engine) dockerOutlet(w writ.Writ, m sandbox.Mouth) (io.Closer, error) {
	if r := e.at(); r != nil {
		category, net, says := action.MCP, w.Confinement().Network, dockerOutside(r.cfg)
		if t, ok := r.catalog.Lookup(w.Call().Tool); ok {
			category = t.Category
		}
		for _, to := range slices.Concat(net.Hosts, net.Reads) {
			if why := says.Refuses(category, to); why.Source != "" {
				return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+why.Text, nil)
			}
		}
	}
	return e.outlet(w, m)
}
