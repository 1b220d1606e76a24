package image

import (
	"io"
	"os"
	"strings"
	"testing"
)

// Every recipe has its file, builds on another or on a base, and has a digest that no
// other has.
func TestRecipes(t *testing.T) {
	seen := map[string]string{}
	for _, r := range Recipes() {
		steps, err := chain(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		if steps[len(steps)-1].Name != r.Name || steps[0].on != "" {
			t.Errorf("%s is built in the steps %v", r.Name, steps)
		}
		digest := Digest(r.Name)
		if seen[digest] != "" || !strings.HasPrefix(digest, "sha256:") {
			t.Errorf("%s and %q have the digest %q", r.Name, seen[digest], digest)
		}
		seen[digest] = r.Name
		if !strings.Contains(string(r.dockerfile()), "FROM ${BASE}\n") {
			t.Errorf("%s is not built on what is named", r.Name)
		}
	}
	if got := Digest("nothing"); got != "" {
		t.Errorf("what there is not has the digest %q", got)
	}
	if _, err := chain("nothing"); err == nil || !strings.Contains(err.Error(), "there are sandbox, sandbox-go, browser, desktop") {
		t.Errorf("what there is not: %v", err)
	}
}

// What an engine says is followed to its end; an error comes with what was said before it.
func TestFollow(t *testing.T) {
	for _, c := range []struct{ name, says, id, err, heard string }{
		{"a build", `{"stream":"Step 1/2 : FROM x\n"}{"stream":"\n"}{"aux":{"ID":"sha256:ab"}}{"stream":"Successfully built ab\n"}`, "sha256:ab", "", "+Step 1/2 : FROM x|Successfully built ab|"},
		{"an import", `{"status":"sha256:cd"}`, "sha256:cd", "", "sha256:cd|"},
		{"an error", `{"stream":"E: no  such\tpackage\n"}{"errorDetail":{"code":100,"message":"it returned 100"},"error":"it returned 100"}`, "", "it returned 100; before that:\n  E: no such package", "E: no such package|"},
		{"cut off", `{"stream":"a\n"}{"stre`, "", "the engine stopped speaking: unexpected EOF", "a|"},
	} {
		var heard strings.Builder
		id, err := follow(io.NopCloser(strings.NewReader(c.says)), func(l Line) {
			if l.Step {
				heard.WriteString("+")
			}
			heard.WriteString(l.Text + "|")
		})
		said := ""
		if err != nil {
			said = err.Error()
		}
		if id != c.id || said != c.err || heard.String() != c.heard {
			t.Errorf("%s: id %q, error %q, heard %q", c.name, id, said, heard.String())
		}
	}
}

// Without a name, the engine of the environment is asked and no other; a name comes first.
func TestOpen(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere/env.sock")
	_, err := Open(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "no container engine answers at unix:///nowhere/env.sock") {
		t.Errorf("of the environment: %v", err)
	}
	_, err = Open(t.Context(), "unix:///nowhere/named.sock")
	if err == nil || !strings.Contains(err.Error(), "no container engine answers at unix:///nowhere/named.sock") || !strings.Contains(err.Error(), "--host") {
		t.Errorf("by name: %v", err)
	}
	os.Unsetenv("DOCKER_HOST")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	if got := strings.Join(sockets(), " "); got != "/var/run/docker.sock /run/podman/podman.sock /run/user/7/docker.sock /run/user/7/podman/podman.sock" {
		t.Errorf("looks at %s", got)
	}
}

// A name that no engine takes is refused before anything is fetched or made.
func TestTag(t *testing.T) {
	for _, tag := range []string{"ours/sandbox:2", "sandbox", "host.example:5000/a/b_c:V1.2", "a-b"} {
		if !named().MatchString(tag) {
			t.Errorf("%q is refused", tag)
		}
	}
	for _, tag := range []string{"Ours", "a b", "a:", "a:b:c", "/a", "a/", "-a", "a:.b", "a@sha256:00"} {
		_, err := new(Engine).Build(t.Context(), Request{Name: "sandbox", Tag: tag})
		if err == nil || !strings.Contains(err.Error(), "is no name of an image; write one such as") {
			t.Errorf("%q: %v", tag, err)
		}
	}
}
