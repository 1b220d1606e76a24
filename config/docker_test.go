package config

import (
	"os"
	"strings"
	"testing"

	"github.com/writ-run/writ/action"
)

// The block that others have loads as it is written; what this version does not have is
// refused by name.
func TestSandboxingAsOthersWriteIt(t *testing.T) {
	text, err := os.ReadFile("testdata/sandboxing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	whole, k8s, _ := strings.Cut("version: 1\n"+string(text), "  k8s:")
	s := p.mustLoad(t, whole).File.Sandboxing
	d := s.Docker
	if s.Overrides[action.Terminal] != "docker" || d.Image != "synthorg-sandbox:latest" || d.Network != "none" || d.NetworkOverrides[action.Database] != "bridge" || d.NetworkOverrides[action.Web] != "bridge" ||
		len(d.AllowedHosts) != 0 || !d.DNSAllowed || !d.LoopbackAllowed || d.MemoryLimit != 512<<20 || d.CPULimit != 1 || d.TimeoutSeconds != 120 || d.PidsLimit != 64 || d.TmpfsSize != 64<<20 ||
		d.SidecarPidsLimit != 32 || d.SidecarTmpfsSize != 8<<20 || d.MountMode != "ro" || !d.AutoRemove {
		t.Errorf("%+v", s)
	}
	// All of it but the image is what there is without it.
	want := dockerDefaults()
	want.Image = d.Image
	if !d.Same(want) {
		t.Errorf("%+v, built in are %+v", d, want)
	}
	if _, err := p.load(t, whole+"  k8s:"+k8s, 0o600); err == nil || !strings.Contains(err.Error(), "sandboxing.k8s") || strings.Contains(err.Error(), "\n") {
		t.Errorf("k8s: %v", err)
	}
}

// TestBytes: a size has the units of an engine and those of tools' limits, and nothing
// that only looks like one.
func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"1048576": 1 << 20, "0": 0, "64k": 64 << 10, "512m": 512 << 20, "512MB": 512 << 20, "512MiB": 512 << 20, "2GiB": 2 << 30, "1KiB": 1 << 10, "2g": 2 << 30, "7b": 7,
		"": -1, "512i": -1, "512iB": -1, "1mk": -1, "1kiki": -1, "1.5g": -1, "-1m": -1, "512 MiB": -1, "10 megs": -1, "99999999999g": -1,
	} {
		var n Bytes
		if err := n.UnmarshalText([]byte(text)); (err != nil) != (want < 0) || err == nil && n != want {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
}
