package disclose

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
)

// sized is a tool whose full text takes about so many tokens.
func sized(name string, tokens int) *Entry {
	return &Entry{Name: name, Description: strings.Repeat("word ", tokens), Schema: json.RawMessage(`{"type":"object"}`)}
}

func settings(budget int) Settings {
	s := Defaults()
	s.L2Budget = budget
	return s
}

func index(t *testing.T, entries ...*Entry) *Index {
	t.Helper()
	x, err := NewIndex(entries)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func load(t *testing.T, s *Session, e *Entry, unloaded ...string) {
	t.Helper()
	got, err := s.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unloaded, got); diff != "" {
		t.Errorf("loading %s unloaded: %s", e.Name, diff)
	}
}

func TestBudgetUnloadsTheOldest(t *testing.T) {
	one, two, three, large := sized("one", 400), sized("two", 400), sized("three", 400), sized("large", 700)
	each := Tokens(one.Full())
	s := NewSession(settings(3*each + 20))
	load(t, s, one)
	load(t, s, two)
	load(t, s, three)
	if diff := cmp.Diff([]string{"one", "two", "three"}, s.Loaded()); diff != "" {
		t.Error(diff)
	}
	load(t, s, large, "one", "two")
	if !s.Callable("large") || !s.Callable("three") || s.Callable("one") {
		t.Errorf("loaded: %v", s.Loaded())
	}
	if s.Used() > 3*each+20 {
		t.Errorf("%d tokens used", s.Used())
	}
	load(t, s, three) // again: it is the newest now
	load(t, s, two, "large")
	if diff := cmp.Diff([]string{"three", "two"}, s.Loaded()); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutUnloadingLoadIsRefused(t *testing.T) {
	one := sized("one", 400)
	with := settings(2 * Tokens(one.Full()))
	with.AutoUnload = false
	s := NewSession(with)
	load(t, s, one)
	load(t, s, sized("two", 300))
	unloaded, err := s.Load(sized("three", 400))
	kind, msg := writ.Public(err)
	if kind != writ.Conflict || msg != fmt.Sprintf("three takes %d tokens, %d more than there is room for; unload one first", Tokens(sized("three", 400).Full()), s.Used()+Tokens(sized("three", 400).Full())-with.L2Budget) || unloaded != nil {
		t.Errorf("%s: %s", kind, msg)
	}
	if _, err := s.Report(99); err != nil || len(s.Loaded()) != 2 {
		t.Errorf("%v, %v", s.Loaded(), err)
	}
	if !s.Unload("one") || s.Unload("one") {
		t.Error("one was there once")
	}
	load(t, s, sized("three", 400))
}

func TestTooLargeForTheBudget(t *testing.T) {
	for _, s := range []*Session{NewSession(settings(100)), NewSession(Settings{})} {
		_, err := s.Load(sized("large", 400))
		kind, msg := writ.Public(err)
		if want := fmt.Sprintf("large takes %d tokens and all loaded tools together may take %d; ask the operator to raise l2_token_budget", Tokens(sized("large", 400).Full()), s.settings.L2Budget); kind != writ.TooLarge || msg != want {
			t.Errorf("%s: %s", kind, msg)
		}
		if s.Callable("large") || s.Version() != 0 {
			t.Error("it was loaded all the same")
		}
	}
}

func TestFullContextUnloads(t *testing.T) {
	s := NewSession(Defaults())
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		load(t, s, sized(name, 10))
	}
	report := func(fill float64, want ...string) {
		t.Helper()
		got, err := s.Report(fill)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at %v %%: %s", fill, diff)
		}
	}
	report(80)
	report(80.1, "a")
	report(100, "b")
	load(t, s, sized("f", 10), "c") // the context is still said to be full
	report(79)
	load(t, s, sized("g", 10))
	report(90, "d")
	report(90, "e")
	report(90, "f")
	report(90) // never the newest
	if diff := cmp.Diff([]string{"g"}, s.Loaded()); diff != "" {
		t.Error(diff)
	}
	load(t, s, sized("g", 10))
	for _, bad := range []float64{-1, 100.1, math.NaN(), math.Inf(1)} {
		if _, err := s.Report(bad); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestDiscoveryIsAlwaysCallable(t *testing.T) {
	s := NewSession(Settings{})
	for _, e := range DiscoveryTools() {
		if !s.Callable(e.Name) || s.Unload(e.Name) || !json.Valid(e.Schema) {
			t.Error(e.Name)
		}
		_, err := s.Load(e)
		if kind, msg := writ.Public(err); kind != writ.Invalid || msg != e.Name+" is always loaded; call it" {
			t.Errorf("%s: %s", kind, msg)
		}
	}
	if s.Callable("read_file") || s.Used() != 0 || len(s.Loaded()) != 0 {
		t.Error("something is loaded")
	}
	kind, msg := writ.Public(NotLoaded("read_file"))
	if kind != writ.Conflict || msg != "read_file is not loaded; call load_tool with tool_name read_file, then call it again" {
		t.Errorf("%s: %s", kind, msg)
	}
}

func TestSyncDropsWhatIsNotWhatWasLoaded(t *testing.T) {
	s := NewSession(Defaults())
	for _, name := range []string{"same", "gone", "changed", "resource"} {
		load(t, s, sized(name, 10))
	}
	changed, resource := sized("changed", 11), sized("resource", 10)
	resource.Resources = []Resource{{Name: "guide"}}
	before := s.Version()
	got := s.Sync(index(t, sized("same", 10), changed, resource, sized("new", 10)))
	if diff := cmp.Diff([]string{"gone", "changed", "resource"}, got); diff != "" || s.Version() != before+1 {
		t.Errorf("version %d to %d: %s", before, s.Version(), diff)
	}
	if got := s.Sync(index(t, sized("same", 10))); got != nil || s.Version() != before+1 || !s.Callable("same") {
		t.Errorf("%v, version %d", got, s.Version())
	}
}

func TestDigestTellsEntriesApart(t *testing.T) {
	seen := map[[32]byte]int{}
	for i, e := range []*Entry{
		{}, {Name: "a"}, {Title: "a"}, {Description: "a"}, {Category: "a"}, {Tier: "a"}, {Schema: json.RawMessage("a")}, {Failures: []string{"a"}}, {Failures: []string{"a", ""}},
		{Failures: []string{"a", "b"}}, {Examples: []Example{{What: "a"}}}, {Examples: []Example{{Args: json.RawMessage("a")}}}, {Examples: []Example{{What: "a"}, {What: "a"}}},
		{Resources: []Resource{{Name: "a"}}}, {Resources: []Resource{{Title: "a"}}}, {Resources: []Resource{{Text: "a"}}}, {Name: "a", Title: "b"}, {Name: "ab"},
	} {
		if other, twice := seen[e.digest()]; twice {
			t.Errorf("entries %d and %d have one digest", i, other)
		}
		seen[e.digest()] = i
	}
}

// model is a session as one would write it down: a list, looked through each time.
type model struct {
	names   []string
	content map[string]*Entry
	counted map[*Entry]int
	fill    float64
}

func (m *model) tokens() int {
	sum := 0
	for _, name := range m.names {
		sum += m.counted[m.content[name]]
	}
	return sum
}

func (m *model) load(e *Entry, s Settings) bool {
	names, content := slices.Clone(m.names), m.content[e.Name]
	m.names = append(slices.DeleteFunc(m.names, func(n string) bool { return n == e.Name }), e.Name)
	m.content[e.Name] = e
	before := len(m.names)
	for m.tokens() > s.L2Budget && s.AutoUnload && len(m.names) > 1 {
		m.names = m.names[1:]
	}
	if m.tokens() > s.L2Budget {
		m.names, m.content[e.Name] = names, content
		return false
	}
	if s.AutoUnload && m.fill > s.Threshold && len(m.names) == before && before > 1 {
		m.names = m.names[1:]
	}
	return true
}

func TestSessionAgainstModel(t *testing.T) {
	var tools []*Entry
	for i := range 8 {
		tools = append(tools, sized(fmt.Sprintf("t%d", i), 50+100*i), sized(fmt.Sprintf("t%d", i), 60+100*i))
	}
	counted := map[*Entry]int{}
	for _, e := range tools {
		counted[e] = Tokens(e.Full())
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		with := settings(500 + r.IntN(2000))
		with.AutoUnload = seed%3 != 0
		s, m := NewSession(with), &model{content: map[string]*Entry{}, counted: counted}
		for step := range 60 {
			before, version := holds(s), s.Version()
			e := tools[r.IntN(len(tools))]
			switch r.IntN(6) {
			case 0:
				s.Unload(e.Name)
				m.names = slices.DeleteFunc(m.names, func(n string) bool { return n == e.Name })
			case 1:
				m.fill = float64(r.IntN(101))
				if _, err := s.Report(m.fill); err != nil {
					t.Fatal(err)
				}
				if with.AutoUnload && m.fill > with.Threshold && len(m.names) > 1 {
					m.names = m.names[1:]
				}
			default:
				_, err := s.Load(e)
				if ok := m.load(e, with); ok != (err == nil) {
					t.Fatalf("seed %d, step %d: model %v, %v", seed, step, ok, err)
				}
			}
			if !slices.Equal(s.Loaded(), m.names) || s.Used() != m.tokens() {
				t.Fatalf("seed %d, step %d: loaded %v of %d tokens, want %v of %d", seed, step, s.Loaded(), s.Used(), m.names, m.tokens())
			}
			if changed := !cmp.Equal(before, holds(s)); changed != (version != s.Version()) {
				t.Fatalf("seed %d, step %d: version %d to %d, changed %v", seed, step, version, s.Version(), changed)
			}
		}
	}
}

// holds is the set of what is loaded, whatever its order.
func holds(s *Session) map[string][32]byte {
	set := map[string][32]byte{}
	for _, l := range s.loaded {
		set[l.name] = l.digest
	}
	return set
}
