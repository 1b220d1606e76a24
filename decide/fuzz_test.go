package decide_test

import (
	"fmt"
	"strings"
	"testing"
)

// chooser picks one of n. Trees are drawn through it, so that a seed and the
// bytes of a fuzzer make them alike.
type chooser func(n int) int

// splitmix is the generator of that name: the same trees on every machine.
func splitmix(seed uint64) chooser {
	return func(n int) int {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return int((z ^ z>>31) % uint64(n))
	}
}

// fromBytes picks by one byte at a time, and the first once they have run out.
func fromBytes(b []byte) chooser {
	return func(n int) int {
		if len(b) == 0 {
			return 0
		}
		v := int(b[0]) % n
		b = b[1:]
		return v
	}
}

// settings are what an agent of a drawn tree can override. The first of each
// leaves it as it is.
var settings = [][]string{
	{"", "autonomy=semi", "autonomy=supervised", "autonomy=locked"},
	{"", "fs=full", "fs=project_directory", "fs=workspace_only"},
	{"", "net=open", "net=allowlist_only hosts=*.example.com", "net=allowlist_only hosts=api.example.com,www.example.org", "net=allowlist_only hosts=", "net=none"},
	{"", "git=full", "git=read_and_branch", "git=local_only"},
	{"", "code=process", "code=containerized"},
	{"", "terminal=full", "terminal=restricted_commands", "terminal=none"},
	{"", "approve=code:delete,db:mutate", "approve=all", "approve=code"},
	{"", "deployment=true", "deployment=false"},
	{"", "allowed=fs_read,remember", "allowed=*", "allowed=execute_bash,deploy,github__issue", "allowed=f*"},
	{"", "denied=shell_command,fetch", "denied=fs_write", "denied=b*", "denied=@github"},
	{"", "role=developer", "role=reviewer", "role=supervisor"},
	{"", "gate=false"},
	{"", "ws=/ws/lib:/ws", "ws=/srv/other:/srv/other", "ws=/ws/app/out:/ws/app", "ws=/ws:/ws", "ws=/srv/other:/srv"},
	{"", "servers=github", "servers=gitlab"},
}

var levels = []string{"elevated", "standard", "restricted", "sandboxed", "custom"}

// drawAgent writes one agent; the greater change is, the more it differs from an
// elevated one.
func drawAgent(pick chooser, name, parent string, change int) string {
	words := []string{name, "elevated"}
	if pick(8) < change {
		words[1] = levels[pick(len(levels))]
	}
	if parent != "" {
		words = append(words, "parent="+parent)
	}
	for _, options := range settings {
		if pick(8) < change {
			if word := options[pick(len(options))]; word != "" {
				words = append(words, word)
			}
		}
	}
	return strings.Join(words, " ")
}

// drawTree makes two to most agents. Some trees hang on an agent that is not
// there, and some chains bite their own tail.
func drawTree(pick chooser, most int) tree {
	n, change := 2+pick(most-1), 1+pick(4)
	var out tree
	for i := range n {
		parent := ""
		switch {
		case i > 0 && pick(3) > 0:
			parent = nameOf(i - 1)
		case i > 0:
			parent = nameOf(pick(i))
		}
		switch pick(40) {
		case 38:
			parent = "ghost"
		case 39:
			parent = nameOf(n - 1)
		}
		out = append(out, drawAgent(pick, nameOf(i), parent, change))
	}
	return out
}

func nameOf(i int) string { return fmt.Sprintf("agent-%d", i) }

// FuzzDelegation: whatever the tree, nobody exceeds anybody above, and what each
// may do is exactly the meet of the chain.
func FuzzDelegation(f *testing.F) {
	for seed := range uint64(8) {
		pick := splitmix(seed)
		b := make([]byte, 64)
		for i := range b {
			b[i] = byte(pick(256))
		}
		f.Add(b)
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		w.hold(t, drawTree(fromBytes(b), 5))
	})
}

// hold checks one tree and prints it where it does not hold, as the corpus writes
// it.
func (w *world) hold(t *testing.T, lines tree) tally {
	t.Helper()
	agents, err := w.build(lines)
	if err != nil {
		t.Fatal(err)
	}
	seen, problems := w.check(agents)
	if len(problems) > 0 {
		t.Errorf("agent %s\n%s", strings.Join(lines, "\nagent "), strings.Join(problems, "\n"))
	}
	return seen
}

// TestDelegationDrawn holds two hundred trees of a fixed seed.
func TestDelegationDrawn(t *testing.T) {
	w := newWorld(t)
	var seen tally
	for seed := range uint64(200) {
		seen.add(w.hold(t, drawTree(splitmix(seed), 8)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%+v", seen)
}
