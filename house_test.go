package writ_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/writ-run/writ"

// edges is the architecture: which of our packages each may import, and why it
// needs them. A new edge is a change of design: add it here with its reason.
var edges = map[string]struct {
	may []string
	why string
}{
	"":                    {nil, "the nouns: imports nothing of ours"},
	"spell":               {nil, "pure"},
	"host":                {nil, "pure"},
	"action":              {nil, "pure"},
	"display":             {nil, "pure: what a person sees of what others wrote"},
	"wire":                {[]string{""}, "digests and errors are nouns"},
	"access":              {[]string{"", "action", "host"}, "reasons, categories, network allowlists"},
	"policy":              {[]string{"", "action", "host"}, "targets, risk, network stance"},
	"tool":                {[]string{"", "action", "policy", "spell", "wire"}, "a definition is made of these"},
	"tool/files":          {[]string{"", "action", "policy", "tool"}, "a family of tools"},
	"tool/exec":           {[]string{"", "action", "policy", "sandbox", "tool"}, "a family of tools that runs in boxes"},
	"tool/web":            {[]string{"", "action", "display", "egress", "host", "policy", "tool"}, "a family of tools that reaches out by the broker, whose refusals it words; what pages say is shown as it is"},
	"tool/git":            {[]string{"", "action", "host", "policy", "sandbox", "sandbox/trust", "tool", "tool/exec"}, "a family of tools that runs in boxes as shell_command does, and goes to the host of a URL whose certificate the system trusts"},
	"tool/define":         {[]string{"", "access", "action", "host", "policy", "sandbox", "strict", "tool", "tool/exec", "wire"}, "reads definitions that run in boxes as shell_command does"},
	"disclose":            {[]string{"", "display"}, "errors are nouns; what tools say of themselves is shown as a person sees it"},
	"tool/admin":          {[]string{"", "action", "policy", "tool", "wire"}, "a family of tools; envelopes are canonical"},
	"tool/discover":       {[]string{"", "action", "disclose", "tool"}, "a family of tools"},
	"profile":             {[]string{"strict"}, "reads an agent's profile"},
	"decide":              {[]string{"", "access", "action", "host", "policy", "tool", "wire"}, "composes the pure packages"},
	"store":               {[]string{""}, "digests and errors are nouns"},
	"store/sqlite":        {[]string{"", "store"}, "an engine of the store"},
	"store/storetest":     {[]string{"", "ledger", "need", "store"}, "the suite engines pass; changes go through the ledger"},
	"ledger":              {[]string{"", "store", "wire"}, "writes the store, in canonical form"},
	"approval":            {[]string{"", "ledger", "policy", "store", "wire"}, "invocations are rows and entries; a grant's paths are globs"},
	"notify":              {[]string{"", "approval", "display", "store"}, "what the ledger says of calls, as messages to others"},
	"need":                {nil, "what tests cannot do without"},
	"person":              {[]string{""}, "errors"},
	"sandbox":             {[]string{""}, "a box takes a writ"},
	"egress":              {[]string{"", "host", "sandbox"}, "what leaves a box, by what a writ says of hosts"},
	"egress/gitssh":       {[]string{"egress"}, "says what it refused as the way out does"},
	"egress/sshagent":     {[]string{"egress", "egress/gitssh"}, "tells what it signs as the way out does; keys of servers, and how private ones are read"},
	"egress/divert":       {[]string{"sandbox"}, "a network namespace that leads to two sockets, which are where a box ends"},
	"egress/lab":          {[]string{"need"}, "a network for tests"},
	"sandbox/reach":       {[]string{"", "sandbox", "sandbox/usage"}, "what a writ and a spec come to on this host"},
	"sandbox/calls":       {nil, "system calls, by name"},
	"sandbox/restrict":    {[]string{"sandbox/calls", "sandbox/reach"}, "what a process gives up before it becomes a command"},
	"sandbox/supervise":   {[]string{"", "sandbox", "sandbox/calls", "sandbox/reach", "sandbox/restrict", "sandbox/usage"}, "the daemon's and the supervisor's ends of a box, and the last steps inside"},
	"sandbox/unasked":     {[]string{""}, "a writ for what a program does on its own account"},
	"sandbox/probe":       {[]string{"", "sandbox", "sandbox/reach", "sandbox/restrict", "sandbox/unasked"}, "attacks boxes of a driver"},
	"sandbox/subprocess":  {[]string{"", "sandbox", "sandbox/probe", "sandbox/reach", "sandbox/restrict", "sandbox/supervise"}, "a driver"},
	"sandbox/native":      {[]string{"", "egress/divert", "sandbox", "sandbox/calls", "sandbox/cgroup", "sandbox/mounted", "sandbox/probe", "sandbox/protect", "sandbox/reach", "sandbox/trust", "sandbox/unasked", "sandbox/usage"}, "a driver"},
	"sandbox/mounted":     {nil, "what is mounted where on the host"},
	"sandbox/wrapped":     {[]string{"", "sandbox", "sandbox/mounted", "sandbox/probe", "sandbox/reach", "sandbox/restrict", "sandbox/supervise"}, "the driver of those that leave namespaces to a program of the system"},
	"sandbox/bwrap":       {[]string{"", "sandbox", "sandbox/reach", "sandbox/restrict", "sandbox/supervise", "sandbox/wrapped"}, "a driver"},
	"sandbox/firejail":    {[]string{"", "sandbox", "sandbox/mounted", "sandbox/reach", "sandbox/restrict", "sandbox/supervise", "sandbox/wrapped"}, "a driver"},
	"sandbox/docker":      {[]string{"", "egress/divert", "sandbox", "sandbox/calls", "sandbox/mounted", "sandbox/probe", "sandbox/protect", "sandbox/reach", "sandbox/restrict", "sandbox/supervise", "sandbox/trust", "sandbox/unasked", "sandbox/usage", "sandbox/wrapped"}, "a driver"},
	"sandbox/seatbelt":    {[]string{"", "sandbox", "sandbox/unasked"}, "a driver; its profile is pure"},
	"sandbox/trust":       {nil, "files in which programs look whom to trust"},
	"sandbox/cgroup":      {nil, "limits of a whole box, by the kernel's groups"},
	"sandbox/usage":       {nil, "what processes have used, where no limit of the kernel counts them together"},
	"sandbox/protect":     {[]string{"policy", "sandbox/mounted"}, "which mounts keep the protected names of a workspace"},
	"sandbox/confine":     {[]string{"", "policy", "sandbox", "sandbox/subprocess", "sandbox/unasked"}, "one command of a Go program, without an engine"},
	"sandbox/prove":       {[]string{"", "sandbox", "sandbox/unasked"}, "attacks boxes of a driver, in tests and for doctor --prove"},
	"sandbox/sandboxtest": {[]string{"", "need", "sandbox", "sandbox/prove"}, "the suite as tests"},
	"sandbox/image":       {[]string{""}, "images of containers: errors are nouns"},
	"sandbox/rig":         {[]string{"need", "sandbox/image"}, "a Docker Engine for tests, with an image as it is built for boxes"},
	"strict":              {[]string{"action", "spell"}, "pure: names unknown words and the nearest known"},
	"secret":              {[]string{""}, "errors are nouns"},
	"tool/external":       {[]string{"", "action", "egress", "policy", "secret", "tool"}, "a family of tools over connections: what is refused on the way out it puts into words"},
	"config":              {[]string{"", "access", "action", "disclose", "host", "policy", "profile", "secret", "spell", "strict", "tool", "tool/external", "tool/web", "wire"}, "builds the values deciding and tools work with"},
	"engine":              {[]string{"*"}, "the one place that joins everything"},
	"client":              {[]string{""}, "the wire and the nouns on it: a program that only calls stays small"},
	"oauth":               {[]string{"", "config", "host"}, "errors; addresses are held to the configuration's rules"},
	"connect":             {nil, "edits configuration files of MCP clients; knows nothing of writ's own"},
	"upstream":            {[]string{"", "action", "display", "tool", "wire"}, "the client's side of the protocol: what a server offers, as definitions, and what it answers, as results"},
	"mcpserver":           {[]string{"", "engine", "tool", "wire"}, "a front door of the engine, mounted by api"},
	"api":                 {[]string{"", "action", "approval", "client", "config", "display", "engine", "host", "ledger", "mcpserver", "oauth", "sandbox", "secret", "store", "tool", "wire"}, "a front door of the engine, which shows boxes as they are; what crosses it is the client's; an unknown word is answered with the known ones"},
	"catalog":             {[]string{"", "action", "config", "egress/gitssh", "policy", "sandbox", "secret", "spell", "tool", "tool/admin", "tool/define", "tool/discover", "tool/exec", "tool/external", "tool/files", "tool/git", "tool/web"}, "joins the tools there are and the configuration, with nothing started"},
	"cli":                 {[]string{"", "access", "action", "catalog", "client", "config", "connect", "display", "egress", "egress/sshagent", "host", "ledger", "person", "policy", "sandbox", "sandbox/native", "sandbox/protect", "sandbox/prove", "sandbox/reach", "sandbox/unasked", "secret", "spell", "store", "strict", "tool", "wire"}, "what people type, without the engine: it begins fast"},
	"cmd/writ":            {[]string{"cli"}, "the program that people type"},
	"cmd/writd":           {[]string{"*"}, "the program with everything"},
	"bench":               {[]string{"*"}, "measures everything"},
	"conformance":         {[]string{"*"}, "holds the program against the protocol's own suite"},
}

// pure packages do no I/O: what they decide depends on their arguments alone.
var pure = []string{"", "spell", "host", "action", "display", "access", "policy", "decide", "disclose", "strict", "wire"}

// bannedInPure would let a decision depend on something else.
var bannedInPure = []string{"os", "os/exec", "net", "net/http", "time/tzdata", "database/sql", "io/ioutil", "log", "log/slog", "math/rand"}

// owners is who may import what: third-party code has one owner each, and so has
// what could start or reach something behind the gate's back.
var owners = map[string]struct {
	may []string
	why string
}{
	"github.com/gowebpki/jcs":                {[]string{"wire"}, "one canonical form"},
	"github.com/bmatcuk/doublestar/v4":       {[]string{"policy", "tool/files"}, "one glob dialect; the file tools match names with it"},
	"github.com/google/jsonschema-go":        {[]string{"tool", "api"}, "one reading of schemas; the API's document is made of Go types with it"},
	"github.com/goccy/go-yaml":               {[]string{"strict"}, "one reading of what people write"},
	"github.com/spf13/cobra":                 {[]string{"cli", "cmd/writd"}, "the command line"},
	"modernc.org/sqlite":                     {[]string{"store/sqlite"}, "one engine"},
	"github.com/pressly/goose/v3":            {[]string{"store/sqlite"}, "migrations"},
	"github.com/landlock-lsm/go-landlock":    {[]string{"sandbox/native", "sandbox/restrict"}, "confinement"},
	"github.com/elastic/go-seccomp-bpf":      {[]string{"sandbox/calls"}, "the numbers of system calls"},
	"github.com/go-jose/go-jose/v4":          {[]string{"oauth"}, "signs tokens in tests"},
	"github.com/yosida95/uritemplate/v3":     {[]string{"upstream"}, "URI templates of resources"},
	"github.com/miekg/dns":                   {[]string{"egress", "egress/lab"}, "answering questions about names"},
	"github.com/google/nftables":             {[]string{"egress/divert"}, "the rules of a network namespace"},
	"github.com/mdlayher/netlink":            {[]string{"egress/divert"}, "messages to the kernel"},
	"golang.org/x/crypto":                    {[]string{"egress/gitssh", "egress/sshagent", "person"}, "ssh to servers of repositories, and signing in at others; argon2id"},
	"github.com/zalando/go-keyring":          {[]string{"secret"}, "keyrings of operating systems"},
	"golang.org/x/term":                      {[]string{"cli", "cmd/writd"}, "typing a passphrase"},
	"golang.org/x/net":                       {[]string{"host", "sandbox/calls", "tool/web"}, "IDNA and public suffixes; filters as the kernel takes them; HTML and its encodings"},
	"golang.org/x/sys":                       {[]string{"egress/divert", "egress/lab", "sandbox/bwrap", "sandbox/calls", "sandbox/cgroup", "sandbox/docker", "sandbox/mounted", "sandbox/native", "sandbox/probe", "sandbox/protect", "sandbox/prove", "sandbox/reach", "sandbox/restrict", "sandbox/subprocess", "sandbox/supervise", "sandbox/wrapped", "tool/files", "api"}, "system calls: boxes, renameat, peer credentials"},
	"github.com/containerd/errdefs":          {[]string{"sandbox/docker", "sandbox/image", "sandbox/rig"}, "what an engine's errors are"},
	"github.com/moby/moby":                   {[]string{"bench", "cmd/writ", "sandbox/docker", "sandbox/image", "sandbox/rig"}, "speaking to engines of containers"},
	"github.com/google/go-cmp":               {[]string{"*"}, "tests"},
	"github.com/rogpeppe/go-internal":        {[]string{"cmd/writ"}, "scripts of the command line, in tests"},
	"os/exec":                                {[]string{"egress/lab", "sandbox/docker", "sandbox/image", "sandbox/native", "sandbox/probe", "sandbox/prove", "sandbox/rig", "sandbox/seatbelt", "sandbox/subprocess", "sandbox/supervise", "sandbox/wrapped", "sandbox/confine", "cli", "bench", "conformance"}, "starting programs is for drivers and the command line"},
	"unsafe":                                 {[]string{"bench", "wire", "sandbox/calls", "sandbox/mounted", "sandbox/prove", "sandbox/restrict"}, "hashing a string without copying it; asking the kernel about mounts; handing a filter to the kernel; answering the calls that one leaves to us; parties of a bench that cost next to nothing"},
	"github.com/modelcontextprotocol/go-sdk": {[]string{"conformance", "mcpserver", "upstream"}, "the protocol"},
	"net/http":                               {[]string{"api", "bench", "client", "conformance", "egress", "egress/lab", "mcpserver", "notify", "oauth", "sandbox/docker", "secret", "tool/external", "tool/web", "upstream"}, "serving is for the front door, dialling for its client and for the way out; the engine of containers is a socket, whose answers are waited for so long; notify, secret, tool/external and tool/web make requests for a way that they are given"},
	"plugin":                                 {nil, "code that nobody decided about"},
	"math/rand":                              {nil, "predictable names and keys"},
	"math/rand/v2":                           {nil, "predictable names and keys"},
}

// imports lists what each package imports: from its code, or from its tests.
func imports(t *testing.T, tests bool) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	each(t, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") != tests {
			return
		}
		if out[dir] == nil {
			out[dir] = map[string]bool{}
		}
		for _, spec := range f.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			out[dir][p] = true
		}
	})
	return out
}

// each parses every Go file of the module.
func each(t *testing.T, visit func(dir, file string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (strings.HasPrefix(e.Name(), ".") && p != "." || e.Name() == "testdata" || strings.HasPrefix(e.Name(), "bypass-")) {
			return fs.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(p))
		if dir == "." {
			dir = ""
		}
		visit(dir, p, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportEdges(t *testing.T) {
	used := map[string]bool{}
	for dir, imps := range imports(t, false) {
		rule, ok := edges[dir]
		if !ok {
			t.Errorf("package %q is not in the architecture: add it to edges with its reason", dir)
			continue
		}
		used[dir] = true
		for imp := range imps {
			if imp != module && !strings.HasPrefix(imp, module+"/") {
				continue
			}
			to := strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")
			if !slices.Contains(rule.may, to) && !slices.Contains(rule.may, "*") {
				t.Errorf("%q imports %q, which is not an edge (%s)", dir, to, rule.why)
			}
		}
	}
	for dir := range edges {
		if !used[dir] {
			t.Errorf("edges names %q, which does not exist: delete it", dir)
		}
	}
}

func TestPurePackagesDoNoIO(t *testing.T) {
	all := imports(t, false)
	for _, dir := range pure {
		for _, banned := range bannedInPure {
			if all[dir][banned] {
				t.Errorf("%q is pure and imports %s", dir, banned)
			}
		}
	}
	for imp := range all[""] {
		if strings.Contains(imp, ".") {
			t.Errorf("package writ imports %s; it uses the standard library only", imp)
		}
	}
}

func TestOwners(t *testing.T) {
	check := func(dir, imp string, test bool) {
		for prefix, rule := range owners {
			if imp != prefix && !strings.HasPrefix(imp, prefix+"/") {
				continue
			}
			if !slices.Contains(rule.may, dir) && !slices.Contains(rule.may, "*") {
				t.Errorf("%q imports %s, which belongs to %v (%s)", dir, imp, rule.may, rule.why)
			}
			return
		}
		if !test && strings.Contains(strings.Split(imp, "/")[0], ".") && !strings.HasPrefix(imp, module) {
			t.Errorf("%q imports %s, which has no owner: the default answer to a new dependency is no", dir, imp)
		}
	}
	for dir, imps := range imports(t, false) {
		for imp := range imps {
			check(dir, imp, false)
		}
	}
}

func TestPackageComments(t *testing.T) {
	comments := map[string]int{}
	names := map[string]string{}
	each(t, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		names[dir] = f.Name.Name
		if f.Doc != nil {
			comments[dir]++
			if want := "Package " + f.Name.Name + " "; f.Name.Name != "main" && !strings.HasPrefix(f.Doc.Text(), want) {
				t.Errorf("%s: the package comment does not begin with %q", file, want)
			}
		}
	})
	for dir, name := range names {
		if comments[dir] != 1 {
			t.Errorf("package %q (%s) has %d package comments, want 1", dir, name, comments[dir])
		}
		for _, vague := range []string{"util", "common", "helper", "manager", "service", "handler", "types", "models", "base", "core"} {
			if strings.Contains(path.Base(dir), vague) {
				t.Errorf("package %q is named for nothing", dir)
			}
		}
		if strings.Count(dir, "/") > 1 {
			t.Errorf("package %q lies deeper than two", dir)
		}
	}
}

// Gate.Do fits on a screen.
func TestGateFitsOnAScreen(t *testing.T) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "gate.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "Do" {
			if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line; n > 50 {
				t.Errorf("Gate.Do has %d lines", n)
			}
			return
		}
	}
	t.Error("there is no Gate.Do")
}

// What the project says stands on its own: no machine's paths, no registry hosts.
func TestNoMachinePaths(t *testing.T) {
	err := filepath.WalkDir(".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "bin") {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() || p == "house_test.go" || p == "go.sum" {
			return nil
		}
		b, err := os.ReadFile(p)
		for _, bad := range []string{"/work" + "/main", "proxy.golang" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org"} {
			if strings.Contains(string(b), bad) {
				t.Errorf("%s names %s", p, bad)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStartsAtOnce: people and hooks start this program all day, and a pattern that is
// compiled while it starts costs each of them, whatever they came for.
func TestStartsAtOnce(t *testing.T) {
	each(t, func(dir, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			v, ok := d.(*ast.GenDecl)
			if !ok || v.Tok != token.VAR {
				continue
			}
			ast.Inspect(v, func(n ast.Node) bool {
				if _, later := n.(*ast.FuncLit); later {
					return false
				}
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "MustCompile" {
					t.Errorf("%s compiles a pattern when the program starts: put it into sync.OnceValue", file)
				}
				return true
			})
		}
	})
}

// TestFrontIsLight: what the daemon needs, and its parts, begin with every program that has
// them, and the one that people type begins all day.
func TestFrontIsLight(t *testing.T) {
	of := imports(t, false)
	heavy := []string{"github.com/moby/moby", "modernc.org/sqlite", "github.com/modelcontextprotocol/go-sdk", "encoding/gob"}
	found := func(program string) map[string]bool {
		out, seen := map[string]bool{}, map[string]bool{}
		var walk func(string)
		walk = func(dir string) {
			if seen[dir] {
				return
			}
			seen[dir] = true
			for p := range of[dir] {
				if own, ok := strings.CutPrefix(p, module); ok {
					walk(strings.TrimPrefix(own, "/"))
				}
				for _, h := range heavy {
					if p == h || strings.HasPrefix(p, h+"/") {
						out[h] = true
					}
				}
			}
		}
		walk(program)
		return out
	}
	if got := found("cmd/writd"); len(got) != len(heavy) {
		t.Errorf("cmd/writd has only %v", got)
	}
	if got := found("cmd/writ"); len(got) != 0 {
		t.Errorf("cmd/writ has %v; whatever needs it belongs into cmd/writd", got)
	}
}
