package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/calls"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/wrapped"
)

const runsc = "runsc"

// build describes the container of a plan. Nothing of it is a string that somebody else
// has a say in but paths, which have a field of their own.
func (p *plan) build(ctx context.Context, show map[string]string) error {
	d := p.driver
	engine, err := d.talk()
	if err != nil {
		return err
	}
	own, err := d.own()
	if err != nil {
		return err
	}
	program, err := d.program()
	if err != nil {
		return err
	}
	image, err := engine.ImageInspect(ctx, d.opts.Image)
	if err != nil {
		return d.failed(doingImage, err)
	}
	profile, err := calls.Profile()
	if err != nil {
		return writ.Fail(writ.Internal, "the box could not be described", err)
	}
	p.config = &container.Config{
		Image: image.ID, // whatever the name comes to mean meanwhile
		User:  p.owner(), WorkingDir: "/", Hostname: "box", Env: small,
		Entrypoint: []string{inBox, probe.Verb, partIdle}, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		OpenStdin: true, StdinOnce: true, AttachStdin: true, NetworkDisabled: true, StopSignal: "SIGKILL",
	}
	d.mu.Lock()
	engineRoot, apparmor, podman := d.root, d.apparmor, d.podman
	d.mu.Unlock()
	pids := d.opts.Pids + ownPids
	p.host = &container.HostConfig{
		NetworkMode: "none", IpcMode: "private", CgroupnsMode: "private", Runtime: d.opts.Runtime,
		ReadonlyRootfs: true, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges:true", "seccomp=" + profile},
		AutoRemove: !p.leaves(), LogConfig: container.LogConfig{Type: "none"}, ShmSize: d.opts.Tmpfs,
		Resources: container.Resources{Memory: d.opts.Memory, MemorySwap: d.opts.Memory, NanoCPUs: int64(d.opts.CPU * 1e9), PidsLimit: &pids,
			// Those of single processes are set inside; an engine's own may be more than it can give.
			Ulimits: []*container.Ulimit{{Name: "nofile", Soft: 16384, Hard: 16384}, {Name: "nproc", Soft: 32768, Hard: 32768}, {Name: "core"}}},
		Tmpfs: map[string]string{},
	}
	if apparmor { // no command mounts anything: its own filter of system calls says so
		p.host.SecurityOpt = append(p.host.SecurityOpt, "apparmor=unconfined")
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		p.host.Tmpfs[dir] = tmpfs(d.opts.Tmpfs, "rw,exec")
	}
	if image.Config != nil {
		p.deny(image.Config.Env, image.Config.Labels, image.Config.Volumes)
	}
	if podman {
		p.host.SecurityOpt[1] = "seccomp=" + own.calls
		for dir, how := range p.host.Tmpfs { // it has no word for the number of files, and begins with what was there
			p.host.Tmpfs[dir] = strings.TrimSuffix(how, inodes) + ",notmpcopyup"
		}
	}
	if d.opts.Runtime == runsc { // the supervisor's, in a kernel of the container's own; the command has none (job.apart)
		p.config.User, p.host.CapAdd = "0:0", []string{"SETUID", "SETGID", "SETPCAP", "KILL", "SYS_ADMIN", "DAC_READ_SEARCH"}
	}
	p.bind(program, inBox, true)
	p.bind(own.names, "/etc/resolv.conf", true)
	p.bind(own.hosts, "/etc/hosts", true)
	for at, from := range show {
		p.bind(from, at, true)
	}
	if err := p.showAll(engineRoot); err != nil {
		return err
	}
	return p.hideAll(own)
}

// ownPids are for the processes and threads of this program in a container. Commands are
// kept to theirs by a limit of their own user namespace, so that these are there when they
// are needed: by what has to end a command that starts as many as it can.
const ownPids = 32

// small is the environment of this program in a container.
var small = []string{"GOGC=off", "GOMAXPROCS=1", "GODEBUG=", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"} // whatever an image says

const inodes = ",nr_inodes=65536"

func tmpfs(size int64, how string) string {
	return fmt.Sprintf("nosuid,nodev,%s,size=%d,mode=1777", how, size) + inodes
}

// bind shows a file or directory of this machine. What is mounted below one that is
// read-only is left out: the flag is of that mount alone.
func (p *plan) bind(from, at string, readOnly bool) {
	p.host.Mounts = append(p.host.Mounts, bound(from, at, readOnly))
}

func bound(from, at string, readOnly bool) mount.Mount {
	return mount.Mount{
		Type: mount.TypeBind, Source: from, Target: at, ReadOnly: readOnly,
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: readOnly},
	}
}

// showAll binds what the confinement names, but for the engine's own files, which it shows
// nobody. The system is the image's.
func (p *plan) showAll(engineRoot string) error {
	for _, root := range p.Write {
		for _, path := range bindable(root, engineRoot) {
			if err := p.root(path, p.readOnly()); err != nil {
				return err
			}
		}
	}
	for _, root := range p.Read {
		if _, err := os.Lstat(root); err != nil || reach.InAny(root, reach.SystemDirs) {
			continue
		}
		for _, path := range bindable(root, engineRoot) {
			if err := p.root(path, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindable is a root, or what lies below it without the engine's own files. An engine goes
// by letters: it takes /a for what is around /a-b.
func bindable(root, engineRoot string) []string {
	var out []string
	for _, path := range reach.Without(root, []string{engineRoot}) {
		if engineRoot == "" || !strings.HasPrefix(engineRoot, path) {
			out = append(out, path)
			continue
		}
		entries, _ := os.ReadDir(path)
		for _, e := range entries {
			if e.Type()&os.ModeSymlink == 0 {
				out = append(out, filepath.Join(path, e.Name()))
			}
		}
	}
	return out
}

func (p *plan) root(path string, readOnly bool) error {
	is, err := wrapped.Seen(path)
	if err == nil && is.Mode&os.ModeSymlink != 0 {
		err = errors.New("it is a symlink now")
	}
	if err != nil {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: show "+path+": each root must exist and be reached without symlinks", err)
	}
	p.bind(path, path, readOnly)
	p.shown = append(p.shown, is)
	return nil
}

// hideAll covers what is out of reach whatever else is shown; and the engine's socket.
func (p *plan) hideAll(own *files) error {
	hide := append(slices.Clone(p.Hide), strings.TrimPrefix(Host(p.driver.opts.Host), "unix://"))
	visible := slices.DeleteFunc(hide, func(path string) bool { return !reach.InAny(path, slices.Concat(p.Read, p.Write)) })
	hidden, err := wrapped.ToHide(p.Plan, visible)
	if err != nil {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
	}
	p.hidden = hidden
	for _, f := range hidden {
		p.host.Mounts = slices.DeleteFunc(p.host.Mounts, func(m mount.Mount) bool { return m.Target == f.Path })
		p.shown = slices.DeleteFunc(p.shown, func(s wrapped.File) bool { return s.Path == f.Path })
		if f.Mode.IsDir() { // no tmpfs: Podman fills one with what it covers
			p.bind(own.empty, f.Path, true)
		} else {
			p.bind(own.nothing, f.Path, true)
		}
	}
	return nil
}
