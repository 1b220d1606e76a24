package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ/tool"
)

// The bounds of names. A tool's whole name fits what every model API takes.
const (
	mostName  = 64
	separator = "__"
)

// Name is what writ calls a server's tool: server__tool. A tool's own name that models
// could not write is changed, and one too long is cut; a hash of the whole then keeps
// it apart from others.
func Name(server, original string) string {
	return named64(server+separator, server, original)
}

// BareName is the tool's name without the server's, for a server with prefix: none.
func BareName(server, original string) string {
	return named64("", server, original)
}

func named64(prefix, server, original string) string {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && tool.ValidName(string(r)) {
			return r
		}
		return '_'
	}, original)
	if plain == original && plain != "" && len(prefix)+len(plain) <= mostName {
		return prefix + plain
	}
	sum := sha256.Sum256([]byte(server + "\x00" + original))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return prefix + plain[:min(len(plain), mostName-len(prefix)-len(suffix))] + suffix
}

// Origin is whose tool a name stands for.
type Origin struct {
	Server string
	Tool   string // as the server calls it
	Bare   bool   // the server has prefix: none
}

func (o Origin) name() string {
	if o.Bare {
		return BareName(o.Server, o.Tool)
	}
	return Name(o.Server, o.Tool)
}

// Names maps writ's names to tools of servers and back. Immutable once made.
type Names struct {
	origins map[string]Origin
	names   map[Origin]string
}

// Intrudes reports whether a tool without its server's name has a name as one of servers
// gives its own: it would be taken for that server's, and rules about that for its.
func (o Origin) Intrudes(servers []string) bool {
	before, _, ok := strings.Cut(strings.ToLower(o.name()), separator)
	return ok && o.Bare && before != o.Server && slices.Contains(servers, before)
}

// NewNames gives every tool its name. Tools that would share one, in whatever case,
// or whose name is reserved, are all left out and listed as refused: taking one of
// them would be choosing for the caller. One that intrudes among the tools of another of
// the servers is left out alone, so that no server takes another's away.
func NewNames(tools []Origin, servers []string, reserved ...string) (*Names, []Refusal) {
	folded := map[string][]Origin{}
	intrudes := func(o Origin) bool { return o.Intrudes(servers) }
	for _, name := range reserved {
		folded[strings.ToLower(name)] = append(folded[strings.ToLower(name)], Origin{})
	}
	for _, o := range slices.DeleteFunc(slices.Clone(tools), intrudes) {
		key := strings.ToLower(o.name())
		folded[key] = append(folded[key], o)
	}
	n := &Names{origins: map[string]Origin{}, names: map[Origin]string{}}
	var refused []Refusal
	for _, o := range tools {
		name := o.name()
		if intrudes(o) {
			refused = append(refused, Refusal{Name: short(o.Server + ": " + o.Tool), Why: fmt.Sprintf("its name %s is as another server's tools are named; rename or disable it", name)})
			continue
		}
		if sharing := folded[strings.ToLower(name)]; len(sharing) > 1 {
			refused = append(refused, o.clash(name, sharing))
			continue
		}
		n.origins[name], n.names[o] = o, name
	}
	return n, refused
}

// clash is why a tool is left out whose name others have.
func (o Origin) clash(name string, sharing []Origin) Refusal {
	r := Refusal{Name: short(o.Server + ": " + o.Tool), Why: fmt.Sprintf("its name %s is another tool's too; rename or disable one of them", name)}
	for _, s := range sharing {
		if s.Server != "" && s.Server != o.Server {
			r.With = s.Server
			r.Why = fmt.Sprintf("its name %s is that of a tool of server %s too, and neither can be used; disable one, or have their servers' names stand before them (prefix: name)", name, s.Server)
		}
	}
	return r
}

// Origin is the tool that a name of writ's stands for.
func (n *Names) Origin(name string) (Origin, bool) {
	o, ok := n.origins[name]
	return o, ok
}

// Of is the name of a server's tool.
func (n *Names) Of(o Origin) (string, bool) {
	name, ok := n.names[o]
	return name, ok
}
