package rig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os/exec"
	"testing"

	"github.com/moby/moby/client"
)

const (
	reference = "writ-sandbox:test"
	label     = "writ.test.recipe"
)

// recipe writes a root file system on standard output. It is made in memory: dpkg waits
// for the disk after each file, which takes most of the time. The mount is in a namespace
// of its own and is gone with the last of these processes, however they end.
const recipe = `set -e
mount -t tmpfs -o mode=755 writ-rig /mnt
debootstrap --variant=minbase --include=python3,git,ripgrep,jq,procps,ca-certificates,curl bookworm /mnt/root >&2
rm -rf /mnt/root/var/cache/apt/archives/*.deb /mnt/root/var/lib/apt/lists/*
tar -C /mnt/root -c .
`

// image gives the image of the tests, made where there is none of this recipe.
func image(t testing.TB, e Engine) string {
	t.Helper()
	c := dial(t, e)
	defer c.Close()
	sum := sha256.Sum256([]byte(recipe))
	want := hex.EncodeToString(sum[:])
	if got, err := c.ImageInspect(t.Context(), reference); err == nil && got.Config != nil && got.Config.Labels[label] == want {
		return reference
	}
	t.Logf("making %s with debootstrap: a few minutes, once", reference)
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "sh", "-c", recipe)
	var said bytes.Buffer
	cmd.Stderr = &said
	root, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := c.ImageImport(t.Context(), client.ImageImportSource{Source: root, SourceName: "-"}, reference, client.ImageImportOptions{
		Changes: []string{"LABEL " + label + "=" + want, "ENV PATH=/usr/local/bin:/usr/bin:/bin", `CMD ["/bin/bash"]`},
	})
	if err == nil {
		_, err = io.Copy(io.Discard, out)
		out.Close()
	}
	if waited := cmd.Wait(); waited != nil || err != nil {
		t.Fatalf("make %s: %v %v\n%s", reference, err, waited, said.Bytes()[max(0, said.Len()-4000):])
	}
	got, err := c.ImageInspect(t.Context(), reference)
	if err != nil || got.Config == nil || got.Config.Labels[label] != want {
		t.Fatalf("%s was imported and is not there: %v", reference, err)
	}
	return reference
}
