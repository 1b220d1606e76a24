package confine_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox/confine"
	"github.com/writ-run/writ/sandbox/subprocess"
)

func TestMain(m *testing.M) {
	subprocess.Main()
	os.Exit(m.Run())
}

// place is a directory that boxes can use, and one beside it.
func place(t testing.TB) (mine, other string) {
	t.Helper()
	need.Programs(t, "bash", "cat")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mine, other = filepath.Join(dir, "mine"), filepath.Join(dir, "other")
	for _, d := range []string{mine, other} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(d, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	}
	return mine, other
}

func run(t testing.TB, c *confine.Command, script string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	exit, err := c.Run(t.Context(), "bash", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return exit.Code, out.String()
}

func TestForWritableRoots(t *testing.T) {
	mine, other := place(t)
	if err := confine.Supported(); err != nil {
		t.Fatal(err)
	}
	c, err := confine.ForWritableRoots([]string{mine}, map[string]string{"GREETING": "hi"}, mine)
	if err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, c, `echo $GREETING > here; cat here; pwd`); code != 0 || out != "hi\n"+mine+"\n" {
		t.Errorf("%d %s", code, out)
	}
	for _, script := range []string{"echo x > " + other + "/x", "exec 3<>/dev/tcp/127.0.0.1/80", "ls " + other} {
		if code, out := run(t, c, script); code == 0 {
			t.Errorf("%s went through: %s", script, out)
		}
	}
	if code, _ := run(t, c, "exit 7"); code != 7 {
		t.Errorf("exit status %d", code)
	}
	if _, err := confine.ForWritableRoots([]string{"relative"}, nil, ""); err == nil {
		t.Error("a relative root")
	}
}

func TestForPolicy(t *testing.T) {
	mine, other := place(t)
	for dir, text := range map[string]string{mine: "mine", other: "other"} {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := confine.ForPolicy(policy.Policy{Files: policy.Files{Read: policy.Paths(mine + "/**")}, Exec: policy.All})
	if err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, c, "cat f"); code != 0 || out != "mine" {
		t.Errorf("%d %s", code, out)
	}
	for _, script := range []string{"cat " + other + "/f", "echo x > f", "echo x > new"} {
		if code, out := run(t, c, script); code == 0 {
			t.Errorf("%s went through: %s", script, out)
		}
	}
	alone, err := confine.ForPolicy(policy.Policy{Files: policy.Files{Read: policy.Paths(mine + "/**")}})
	if err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, alone, "cat f"); code == 0 {
		t.Errorf("without exec another program ran: %s", out)
	}
	if code, out := run(t, alone, "echo $(<f)"); code != 0 || out != "mine\n" {
		t.Errorf("control: %d %s", code, out)
	}
	hosts, err := host.ParsePattern("example.com")
	if err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]policy.Policy{
		"a command confined here reaches no hosts": {Network: policy.Network{Stance: policy.Listed, Hosts: host.Patterns{hosts}}},
		"whole directories":                        {Files: policy.Files{Read: policy.Paths("/srv/*.txt")}},
		"cannot be opened":                         {Files: policy.Files{Read: policy.Paths("/not/there/**")}},
	} {
		if _, err := confine.ForPolicy(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The zero policy reaches nothing; the zero Command, which nobody made, runs nothing.
func TestZero(t *testing.T) {
	mine, _ := place(t)
	c, err := confine.ForPolicy(policy.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, c, "echo x > "+mine+"/x || echo "+mine+"/*"); code != 0 || !strings.Contains(out, "bash: line 1: "+mine+"/x: ") || !strings.Contains(out, mine+"/*\n") {
		t.Errorf("it reached something: %d %s", code, out)
	}
	c.Dir = mine
	if _, err := c.Run(t.Context(), "true"); writ.KindOf(err) != writ.Denied {
		t.Errorf("a directory outside: %v", err)
	}
	var zero confine.Command
	if _, err := zero.Run(t.Context(), "true"); writ.KindOf(err) != writ.SandboxUnavailable {
		t.Errorf("the zero Command: %v", err)
	}
	var out bytes.Buffer
	zero.Unsafe, zero.Stdout = true, &out // and now it is written down
	if exit, err := zero.Run(t.Context(), "bash", "-c", "echo loose; exit 3"); err != nil || exit.Code != 3 || out.String() != "loose\n" {
		t.Errorf("unsafe: %+v %v %q", exit, err, out.String())
	}
}

func Example() {
	// main calls subprocess.Main() first.
	dir, err := os.MkdirTemp("", "build-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chown(dir, 65534, 65534) // boxes never run as root
	c, err := confine.ForWritableRoots([]string{dir}, nil, dir)
	if err != nil {
		log.Fatal(err)
	}
	exit, err := c.Run(context.Background(), "bash", "-c", "echo built > out; echo x > /etc/x")
	out, _ := os.ReadFile(filepath.Join(dir, "out"))
	fmt.Printf("%s%d %v\n", out, exit.Code, err)
	// Output:
	// built
	// 1 <nil>
}
