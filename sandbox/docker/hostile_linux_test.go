package docker

import (
	"context"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/sandboxtest"
)

// What an image says of itself changes nothing about a box (group I): neither who runs in it,
// nor what, nor where, nor with which environment, labels and volumes.
func TestHostileImage(t *testing.T) {
	o := options(t)
	c, err := client.New(client.WithHost(o.Host))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o.Image = hostile(t, c, o.Image)
	d, ws := driver(t, o), workspace(t)
	confined := writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process}
	before := volumes(t, c)
	got := sandboxtest.Command(t, d, confined, sandbox.Spec{Argv: []string{"bash", "-c", `id -u; pwd; env; stat -f -c %T /data; touch /data/x || echo no; cat /proc/1/cmdline | tr '\0' ' '; ls -la /ran`}, Dir: ws})
	if got.Error != nil {
		t.Fatal(got)
	}
	for _, want := range []string{"1000\n" + ws + "\n", "tmpfs\n", inBox + " "} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is missing:\n%s", want, got.Out)
		}
	}
	for _, not := range []string{"LD_PRELOAD", "EVIL", "/ran\n"} {
		if strings.Contains(got.Out, not) {
			t.Errorf("%q is there:\n%s", not, got.Out)
		}
	}
	said, _, err := keptIn(t, d, ws, `for dir in /tmp /var/tmp /dev/shm; do cp /bin/true $dir/left && echo $dir; done; /tmp/left && echo runs; touch /tmp/cache/left 2>/dev/null; touch /data/left 2>/dev/null; stat -c %a /tmp /dev/shm | uniq`, `find /tmp /var/tmp /dev/shm /data -name left`)
	if want := "/tmp\n/var/tmp\n/dev/shm\nruns\n1777\n"; err != nil || strings.Join(said, "") != want {
		t.Errorf("%v %q", err, said)
	}
	if now := volumes(t, c); now > before {
		t.Errorf("%d volumes, %d before", now, before)
	}
}

// The labels of an image are not its containers': schedulers, proxies and updaters of an
// engine do what labels say.
func TestHostileLabels(t *testing.T) {
	o := options(t)
	c, err := client.New(client.WithHost(o.Host))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o.Image, o.Outlet = hostile(t, c, o.Image), (&greeter{}).open
	d, ws := driver(t, o), workspace(t)
	begun(t, d, ws, "read; echo here; read", func(b *box, say func() string) {
		if said := say(); said != "here\n" {
			t.Errorf("it said %q", said)
		}
		beside, _ := b.Sidecar()
		for id, part := range map[string]string{b.in.id: "", beside: "sidecar"} {
			is, err := c.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if l := is.Container.Config.Labels; l["scheduler.job"] != "" || l[labelPart] != part || l[labelOwner] == "somebody" || l[labelProof] != d.proof(strings.TrimPrefix(is.Container.Name, "/")) {
				t.Errorf("labels %v", l)
			}
		}
	})
}

// hostile is an image made of another, that wants everything to be otherwise.
func hostile(t *testing.T, c *client.Client, from string) string {
	t.Helper()
	ctx := context.Background()
	made, err := c.ContainerCreate(ctx, client.ContainerCreateOptions{Config: &container.Config{Image: from, Cmd: []string{"true"}}, HostConfig: &container.HostConfig{NetworkMode: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.ContainerRemove(ctx, made.ID, client.ContainerRemoveOptions{Force: true})
	image, err := c.ContainerCommit(ctx, made.ID, client.ContainerCommitOptions{Config: &container.Config{
		User: "0:0", WorkingDir: "/proc/self/fd/8", Entrypoint: []string{"/bin/touch", "/ran"}, Cmd: []string{"--privileged"},
		Env: []string{"LD_PRELOAD=/evil.so", "EVIL=1", "PATH=/evil"}, Volumes: map[string]struct{}{"/data": {}, "/tmp/cache": {}, "/var/tmp/": {}, "/dev/shm": {}},
		Healthcheck: &container.HealthConfig{Test: []string{"CMD", "/bin/touch", "/ran"}, Interval: 1e9},
		Labels:      map[string]string{labelManaged: "true", labelDeployment: "test", labelProof: "anything", labelOwner: "somebody", labelPart: "sidecar", "scheduler.job": "bash -c id"}, OnBuild: []string{"RUN touch /ran"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.ImageRemove(context.Background(), image.ID, client.ImageRemoveOptions{Force: true}) })
	return image.ID
}

func volumes(t *testing.T, c *client.Client) int {
	t.Helper()
	all, err := c.VolumeList(context.Background(), client.VolumeListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(all.Items)
}
