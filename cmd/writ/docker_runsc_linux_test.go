package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/writ-run/writ/sandbox/rig"
)

// With runtime runsc a call runs on a kernel of its own, as the owner of the workspace, which
// it reads; the next one has the same container. Nothing takes another runtime's place.
func TestDockerRunsc(t *testing.T) {
	t.Parallel()
	e := rig.Runsc(t)
	in := func(keys string) *world {
		return newWorld(t, inDocker, fmt.Sprintf("sandboxing: {default_backend: docker, docker: {host: %q, image: %q, %s}}\n", e.Host, e.Image, keys)).init()
	}
	w, c := in("runtime: runsc"), talks(t, e)
	w.mine("file")
	o := w.shell(`cat /proc/version file; echo $$; echo left >/tmp/left; touch x`)
	if o.code == 0 || !strings.Contains(o.out, "Linux version 4.4.0") || !strings.Contains(o.out, "mine\n1\n") || !strings.Contains(o.out+o.err, "Read-only file system") {
		t.Fatalf("%+v", o)
	}
	if o := w.shell(`[ ! -e /tmp/left ] && echo fresh; exit 0`); o.code != 0 || o.out != "fresh\n" {
		t.Errorf("the next call: %+v", o)
	}
	ours := w.containersOf(c)
	if len(ours) != 1 {
		t.Fatalf("%d containers", len(ours))
	}
	is, err := c.ContainerInspect(t.Context(), ours[0].ID, client.ContainerInspectOptions{})
	if err != nil || is.Container.HostConfig.Runtime != "runsc" {
		t.Errorf("the runtime is %q, %v", is.Container.HostConfig.Runtime, err)
	}
	w.must("", "serve", "--stop")
	waitFor(t, func() bool { return len(w.containersOf(c)) == 0 })

	if o := in("runtime: runsc, mount_mode: rw").shell("touch x"); o.code == 0 || !strings.Contains(o.out+o.err, "mount_mode: ro") {
		t.Errorf("what may be written has protected names: %+v", o)
	}
	w = in("runtime: runsc-2")
	if o := w.shell("true"); o.code == 0 || !strings.Contains(o.out+o.err, "no runtime runsc-2; install it and add it to the engine's settings") || len(w.containersOf(c)) != 0 {
		t.Errorf("a runtime that is missing: %+v", o)
	}
}
