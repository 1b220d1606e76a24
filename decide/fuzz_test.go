package decide_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/writ-run/writ"
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
// may do is exactly the meet of the chain. The first byte chooses the requests that
// are looked at: all of them would take the time of a hundred trees.
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
		pick := fromBytes(b)
		w.sample(pick(32), 32).hold(t, drawTree(pick, 8))
	})
}

// sample is the world with one request of each step, and every one without a target.
func (w *world) sample(from, step int) *world {
	out := *w
	out.requests = nil
	for i, c := range w.requests {
		if i%step == from || len(c.Targets) == 0 {
			out.requests = append(out.requests, c)
		}
	}
	return &out
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

// TestDelegationDrawn holds trees of fixed seeds.
func TestDelegationDrawn(t *testing.T) {
	const groups, each = 8, 20
	w := newWorld(t)
	for group := range groups {
		t.Run(fmt.Sprint(group), func(t *testing.T) {
			t.Parallel()
			var seen tally
			for seed := group * each; seed < (group+1)*each; seed++ {
				got := w.hold(t, drawTree(splitmix(uint64(seed)), 4))
				seen.free, seen.asked, seen.bounded = seen.free+got.free, seen.asked+got.asked, seen.bounded+got.bounded
			}
			if seen.free < 1000 || seen.asked < 1000 || seen.bounded < 1000 {
				t.Errorf("the trees say too little: %+v", seen)
			}
		})
	}
}

// TestDelegationNow changes one agent above others and shows that all below it
// follow: when it may nothing, when it may all, when it is gone.
func TestDelegationNow(t *testing.T) {
	w := newWorld(t)
	var wider, narrower atomic.Int64
	t.Cleanup(func() {
		if wider.Load() < 20 || narrower.Load() < 20 {
			t.Errorf("%d descendants were widened and %d narrowed: too few to show it", wider.Load(), narrower.Load())
		}
	})
	for seed := range 20 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w.sample(seed%4, 4).follow(t, splitmix(uint64(1000+seed)), seed%2, &wider, &narrower)
		})
	}
}

// follow draws a chain of three, changes the one at a place that has others below,
// and compares those before and after. It counts the descendants that changed.
func (w *world) follow(t *testing.T, pick chooser, place int, wider, narrower *atomic.Int64) {
	before, parent := tree{}, ""
	for i := range 3 {
		before = append(before, drawAgent(pick, nameOf(i), parent, 1))
		parent = nameOf(i)
	}
	name, wide := nameOf(place), nameOf(place)+" elevated code=process"
	if place > 0 {
		wide += " parent=" + nameOf(place-1)
	}
	before = before.with(wide + " autonomy=supervised terminal=restricted_commands net=none")
	first, opened := w.reached(t, before), w.reached(t, before.with(wide))
	shut, gone := w.reached(t, before.with(wide+" denied=*")), w.reached(t, before.with(name))
	for _, below := range []string{nameOf(1), nameOf(2)}[place:] {
		more, less := int64(0), int64(0)
		for i, c := range w.requests {
			if shut[below][i].effect != writ.Deny && c.Tool != "list_tools" || gone[below][i].effect != writ.Deny {
				t.Errorf("%s may %s, which %s may not any more", below, w.name(i), name)
			}
			if first[below][i].exceeds(opened[below][i]) {
				t.Errorf("%s may less of %s since %s may more", below, w.name(i), name)
			}
			if opened[below][i].exceeds(first[below][i]) {
				more = 1
			}
			if first[below][i].exceeds(shut[below][i]) {
				less = 1
			}
		}
		wider.Add(more)
		narrower.Add(less)
	}
}

// reached holds a tree against the definition and gives what each of its agents reaches.
func (w *world) reached(t *testing.T, lines tree) map[string][]reach {
	t.Helper()
	seen := w.hold(t, lines)
	if t.Failed() {
		t.FailNow()
	}
	return seen.reached
}
