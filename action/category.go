package action

import "slices"

// Category is the family a tool belongs to.
type Category string

const (
	FileSystem     Category = "file_system"
	CodeExecution  Category = "code_execution"
	VersionControl Category = "version_control"
	Web            Category = "web"
	Database       Category = "database"
	Terminal       Category = "terminal"
	Design         Category = "design"
	Communication  Category = "communication"
	Analytics      Category = "analytics"
	Deployment     Category = "deployment"
	Memory         Category = "memory"
	Browser        Category = "browser"
	ExternalData   Category = "external_data"
	Desktop        Category = "desktop"
	MCP            Category = "mcp"
	Ontology       Category = "ontology"
	Other          Category = "other"
)

// defaults is the action type of a tool that names none.
var defaults = map[Category]Type{
	FileSystem: "code:write", CodeExecution: "code:write", VersionControl: "vcs:commit", Web: "comms:external",
	Database: "db:query", Terminal: "code:write", Design: "docs:write", Communication: "comms:internal",
	Analytics: "code:read", Deployment: "deploy:staging", Memory: "memory:read", Ontology: "memory:read",
	MCP: "comms:external", Browser: "browser:navigate", ExternalData: "external_data:request",
	Desktop: "desktop:launch", Other: "code:read",
}

// Default is the action type of a tool of this category that names none.
func (c Category) Default() Type { return defaults[c] }

// Known reports whether c is one of the seventeen.
func (c Category) Known() bool { _, ok := defaults[c]; return ok }

// Categories lists all seventeen in order.
func Categories() []Category {
	all := make([]Category, 0, len(defaults))
	for c := range defaults {
		all = append(all, c)
	}
	slices.Sort(all)
	return all
}

// UnmarshalText takes a category's name; git is the seeds' word for version_control.
func (c *Category) UnmarshalText(b []byte) error {
	s := string(b)
	if s == "git" {
		s = string(VersionControl)
	}
	if !Category(s).Known() {
		known := []string{"git"}
		for _, k := range Categories() {
			known = append(known, string(k))
		}
		return &UnknownError{What: "category", Got: s, Known: known}
	}
	*c = Category(s)
	return nil
}
