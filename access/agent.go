package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
)

// Autonomy is how much an agent does without asking. The zero value asks always.
type Autonomy uint8

const (
	Locked Autonomy = iota
	Supervised
	Semi
	FullAutonomy
)

var autonomyNames = []string{"locked", "supervised", "semi", "full"}

func (a Autonomy) String() string                { return autonomyNames[a] }
func (a Autonomy) MarshalText() ([]byte, error)  { return []byte(a.String()), nil }
func (a *Autonomy) UnmarshalText(b []byte) error { return enum(a, "autonomy", autonomyNames, b) }

// Autonomies lists them from the most to the least free.
func Autonomies() []Autonomy { return []Autonomy{FullAutonomy, Semi, Supervised, Locked} }

// Presets are the patterns of each autonomy as the product ships them.
func Presets(types *action.Registry) map[Autonomy]action.Lists {
	p := func(texts ...string) []action.Pattern { return mustPatterns(types, texts...) }
	return map[Autonomy]action.Lists{
		FullAutonomy: {Auto: p("all")},
		Semi: {
			Auto:  p("code", "test", "docs", "vcs", "comms:internal", "db:query", "memory", "browser", "web:read"),
			Human: p("deploy", "org", "budget", "comms:external", "tool", "vcs:push", "vcs:clone"),
		},
		Supervised: {Auto: p("code:read", "vcs:read", "test:run", "db:query", "memory:read")},
		Locked:     {Human: p("all")},
	}
}

// Role is a named bundle. Its allowed list, where it has one, stands in for the
// categories of the level: what neither it nor the agent's own list names, an
// agent of that role cannot use. An empty list is a list, and names nothing.
type Role struct {
	Name     string
	At       string
	Allowed  List
	Denied   List
	Level    *Set[Level]
	Autonomy *Set[Autonomy]
}

// Roles are the built-in ones.
func Roles() map[string]Role {
	list := func(words ...string) List {
		var l List
		for _, w := range words {
			e, err := ParseEntry(w)
			if err != nil {
				panic(err) // constant input
			}
			l = append(l, builtIn(e))
		}
		return l
	}
	return map[string]Role{
		"supervisor": {Name: "supervisor", At: BuiltIn, Allowed: list("@writ", "fs_read", "fs_list")},
		"developer":  {Name: "developer", At: BuiltIn, Allowed: list("@builtin", "fs_*", "execute_bash", "web_fetch", "@writ")},
		"reviewer":   {Name: "reviewer", At: BuiltIn, Allowed: list("@builtin", "fs_read", "fs_list", "@writ")},
	}
}

// Agent is one configured agent with everything resolved: level defaults,
// the role, and its own overrides laid over them.
type Agent struct {
	Name        string
	At          string
	Parent      string // whose reach bounds this one's, now and at every depth; empty: nobody's
	Person      string
	Workspace   Workspace
	Role        *Role
	Level       Set[Level]
	Autonomy    Set[Autonomy]
	Allowed     List
	Denied      List
	Constraints Constraints
	GateArgs    Set[bool] // enforce_tool_policies
	Servers     *Servers  // the upstream servers its profile declares; nil: any
}

// Servers is the upstream MCP servers that a profile declares. Tools of any other
// are not for its agent, whatever its lists say.
type Servers struct {
	Names []string
	At    string
}

func (s *Servers) withhold(tool string) bool {
	server, _, ok := strings.Cut(strings.ToLower(tool), "__")
	return ok && s != nil && !slices.ContainsFunc(s.Names, func(n string) bool { return strings.EqualFold(n, server) })
}

// Workspace is where an agent works: its own directory, and the project around
// it that the level project_directory opens. Both absolute, symlinks resolved.
type Workspace struct {
	Name    string
	Path    string
	Project string
}

// Permit decides whether the agent may use a tool at all: denied lists, its own
// and its role's, then its own allowed list, then its role's, then category by
// level, then no.
//
// An agent's own list can name a tool that its role does not. The operator wrote
// both, the agent's entry is the nearer, and a profile's list goes before a role
// at launch too; were it the other way round, giving one agent one more tool
// would mean widening a role for all. What must not be passed by is denied: a
// role's denied list holds whatever the agent's list says. Between a parent and
// its child, who have not one author, reach is an intersection instead (I11).
func (a *Agent) Permit(tool string, category action.Category) writ.Reason {
	if slices.Contains(Discovery, tool) {
		return writ.Reason{Effect: writ.Allow, Source: "discovery", Text: "discovery is always permitted", Where: BuiltIn}
	}
	denied := a.Denied
	if a.Role != nil {
		denied = slices.Concat(denied, a.Role.Denied)
	}
	if e, ok := denied.Match(tool); ok {
		return deny("denied_list", e.At, "tool %s is denied to agent %s by %q", tool, a.Name, e.V.Text)
	}
	if a.Servers.withhold(tool) {
		return deny("profile", a.Servers.At, "the profile of agent %s does not declare the server of tool %s", a.Name, tool)
	}
	if e, ok := a.Allowed.Match(tool); ok {
		return allow("allowed_list", e.At, "the allowed list names it by %q", e.V.Text)
	}
	if a.Role != nil && a.Role.Allowed != nil {
		if e, ok := a.Role.Allowed.Match(tool); ok {
			return allow("role", e.At, "role %s names it by %q", a.Role.Name, e.V.Text)
		}
		return deny("role", a.Role.At, "role %s does not include tool %s", a.Role.Name, tool)
	}
	if category == action.Deployment && !a.Constraints.Deployment.V {
		return deny("level", a.Constraints.Deployment.At, "deployment is not open to agent %s", a.Name)
	}
	if a.Level.V.Opens(category) {
		return allow("level", a.Level.At, "level %s opens category %s", a.Level.V, category)
	}
	return deny("level", a.Level.At, "level %s does not open category %s to agent %s", a.Level.V, category, a.Name)
}

func allow(source, at, format string, args ...any) writ.Reason {
	return writ.Reason{Effect: writ.Allow, Source: source, Text: fmt.Sprintf(format, args...), Where: at}
}

func deny(source, at, format string, args ...any) writ.Reason {
	return writ.Reason{Effect: writ.Deny, Source: source, Text: fmt.Sprintf(format, args...), Where: at}
}
