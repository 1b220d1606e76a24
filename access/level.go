// Package access decides who may use which tool: access levels and the
// categories they open, the six sub-constraints, roles, and allow and deny lists
// in one vocabulary. It is pure; what it decides is enforced elsewhere, where the
// thing happens.
package access

import (
	"slices"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
)

// Set is a value together with where it was set: "writ.yaml:12", or "built in".
type Set[T any] struct {
	V  T
	At string
}

// BuiltIn marks a value that no configuration wrote.
const BuiltIn = "built in"

func builtIn[T any](v T) Set[T] { return Set[T]{v, BuiltIn} }

// Level is an access level. The zero value opens nothing.
type Level uint8

const (
	Custom Level = iota // no category; only the allowed list
	Sandboxed
	Restricted
	Standard
	Elevated
)

var levelNames = []string{"custom", "sandboxed", "restricted", "standard", "elevated"}

func (l Level) String() string               { return levelNames[l] }
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l *Level) UnmarshalText(b []byte) error { return enum(l, "level", levelNames, b) }

// Levels lists the levels in the order a configuration prints them.
func Levels() []Level { return []Level{Sandboxed, Restricted, Standard, Elevated, Custom} }

var sandboxedCategories = []action.Category{action.FileSystem, action.CodeExecution, action.VersionControl, action.Memory}

// Opens reports whether the level opens a category by itself. No level opens
// one that does not exist (I2).
func (l Level) Opens(c action.Category) bool {
	switch l {
	case Elevated:
		return c.Known()
	case Standard:
		return c == action.Terminal || c == action.Analytics || c == action.Browser || Restricted.Opens(c)
	case Restricted:
		return c == action.Web || Sandboxed.Opens(c)
	case Sandboxed:
		return slices.Contains(sandboxedCategories, c)
	}
	return false
}

// The six dimensions. In each, the zero value is the strictest.

// FileScope bounds which files can be reached.
type FileScope uint8

const (
	WorkspaceOnly FileScope = iota
	ProjectDirectory
	FullFileSystem
)

var fileScopeNames = []string{"workspace_only", "project_directory", "full"}

func (s FileScope) String() string                { return fileScopeNames[s] }
func (s FileScope) MarshalText() ([]byte, error)  { return []byte(s.String()), nil }
func (s *FileScope) UnmarshalText(b []byte) error { return enum(s, "file_system", fileScopeNames, b) }

// NetworkMode bounds which hosts can be reached.
type NetworkMode uint8

const (
	NoNetwork NetworkMode = iota
	AllowlistOnly
	OpenNetwork
)

var networkNames = []string{"none", "allowlist_only", "open"}

func (m NetworkMode) String() string                { return networkNames[m] }
func (m NetworkMode) MarshalText() ([]byte, error)  { return []byte(m.String()), nil }
func (m *NetworkMode) UnmarshalText(b []byte) error { return enum(m, "network", networkNames, b) }

// GitMode bounds what git may do with remotes.
type GitMode uint8

const (
	GitLocalOnly GitMode = iota
	GitReadAndBranch
	GitFull
)

var gitNames = []string{"local_only", "read_and_branch", "full"}

func (m GitMode) String() string                { return gitNames[m] }
func (m GitMode) MarshalText() ([]byte, error)  { return []byte(m.String()), nil }
func (m *GitMode) UnmarshalText(b []byte) error { return enum(m, "git", gitNames, b) }

// CodeMode is the least isolation for running code.
type CodeMode uint8

const (
	CodeContainerized CodeMode = iota
	CodeProcess
)

var codeNames = []string{"containerized", "process"}

func (m CodeMode) String() string                { return codeNames[m] }
func (m CodeMode) MarshalText() ([]byte, error)  { return []byte(m.String()), nil }
func (m *CodeMode) UnmarshalText(b []byte) error { return enum(m, "code_execution", codeNames, b) }

// TerminalMode bounds which programs a shell may run.
type TerminalMode uint8

const (
	NoTerminal TerminalMode = iota
	RestrictedCommands
	FullTerminal
)

var terminalNames = []string{"none", "restricted_commands", "full"}

func (m TerminalMode) String() string                { return terminalNames[m] }
func (m TerminalMode) MarshalText() ([]byte, error)  { return []byte(m.String()), nil }
func (m *TerminalMode) UnmarshalText(b []byte) error { return enum(m, "terminal", terminalNames, b) }

// Constraints are the six sub-constraints of a level or of an agent, each with
// where it was set. Deployment admits or removes that category.
type Constraints struct {
	FileSystem       Set[FileScope]
	Network          Set[NetworkMode]
	Allowlist        Set[host.Patterns] // with AllowlistOnly
	Git              Set[GitMode]
	CodeExecution    Set[CodeMode]
	Terminal         Set[TerminalMode]
	RequiresApproval Set[[]action.Pattern]
	Deployment       Set[bool]
}

// Defaults are the constraints of a level as the product ships it.
func Defaults(l Level, types *action.Registry) Constraints {
	c := Constraints{ // the strictest, which is also what custom starts from
		FileSystem: builtIn(WorkspaceOnly), Network: builtIn(NoNetwork), Allowlist: builtIn(host.Patterns(nil)),
		Git: builtIn(GitLocalOnly), CodeExecution: builtIn(CodeContainerized), Terminal: builtIn(NoTerminal),
		RequiresApproval: builtIn([]action.Pattern(nil)), Deployment: builtIn(l == Elevated),
	}
	switch l {
	case Restricted:
		c.FileSystem, c.Network, c.Git = builtIn(ProjectDirectory), builtIn(AllowlistOnly), builtIn(GitReadAndBranch)
		c.RequiresApproval = builtIn(mustPatterns(types, "deploy:*", "db:mutate"))
	case Standard:
		c.FileSystem, c.Network, c.Git = builtIn(ProjectDirectory), builtIn(OpenNetwork), builtIn(GitFull)
		c.Terminal = builtIn(RestrictedCommands)
	case Elevated:
		c.FileSystem, c.Network, c.Git = builtIn(FullFileSystem), builtIn(OpenNetwork), builtIn(GitFull)
		c.Terminal = builtIn(FullTerminal)
	}
	return c
}

// mustPatterns is for patterns over built-in types, which every registry has.
func mustPatterns(types *action.Registry, texts ...string) []action.Pattern {
	var ps []action.Pattern
	for _, t := range texts {
		p, err := types.ParsePattern(t)
		if err != nil {
			panic(err)
		}
		ps = append(ps, p)
	}
	return ps
}

func enum[T ~uint8](dst *T, what string, names []string, b []byte) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return &action.UnknownError{What: what, Got: string(b), Known: names}
	}
	*dst = T(i)
	return nil
}

// Within is the stricter of each of the six, for showing what a child reaches
// under its parent. The zero value of each is the strictest.
func (c Constraints) Within(above Constraints) Constraints {
	c.FileSystem = stricter(c.FileSystem, above.FileSystem)
	c.Network = stricter(c.Network, above.Network)
	c.Git = stricter(c.Git, above.Git)
	c.CodeExecution = stricter(c.CodeExecution, above.CodeExecution)
	c.Terminal = stricter(c.Terminal, above.Terminal)
	for _, p := range above.RequiresApproval.V {
		if !slices.ContainsFunc(c.RequiresApproval.V, func(q action.Pattern) bool { return q.Text == p.Text }) {
			c.RequiresApproval.V = append(slices.Clip(c.RequiresApproval.V), p)
		}
	}
	c.Deployment.V = c.Deployment.V && above.Deployment.V
	return c
}

func stricter[T ~uint8](a, b Set[T]) Set[T] {
	if b.V < a.V {
		return b
	}
	return a
}
