package cli

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/connect"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/spell"
)

// agentFor is the agent that the client is to be.
func (a *App) agentFor(o *connecting) (*config.Config, string, error) {
	cfg, err := a.LoadConfig()
	if err != nil {
		return nil, "", err
	}
	names := configured(cfg)
	switch {
	case len(names) == 0:
		return nil, "", fmt.Errorf("%s has no agents; add one below the key agents", cfg.Path)
	case o.agent == "" && len(names) > 1:
		return nil, "", Usagef("there are several agents; name one with --agent: %s", strings.Join(names, ", "))
	case o.agent == "":
		return cfg, names[0], nil
	case !slices.Contains(names, o.agent):
		return nil, "", Usagef("%s has no agent %q, but %s%s", cfg.Path, o.agent, strings.Join(names, ", "), spell.Hint(o.agent, names))
	}
	return cfg, o.agent, nil
}

// stdioServer is this program as a client starts it. A configuration and a state that
// are not where HOME alone leads are named: of this environment, clients such as Codex
// pass on little more than that.
func (a *App) stdioServer(cfg *config.Config, agent string) (connect.Server, error) {
	program, err := programPath(cfg)
	if err != nil {
		return connect.Server{}, err
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"} {
		if policy.Below(program, dir) {
			fmt.Fprintf(os.Stderr, "warning: %s lies in a directory for temporary files and may be gone one day; install writ, then connect again\n", program)
			break
		}
	}
	args := []string{"mcp", "--agent", agent}
	if a.configElsewhere(cfg) {
		args = append(args, "--config", cfg.Path)
	}
	return connect.Server{Command: program, Args: args, State: stateElsewhere(cfg)}, nil
}

// configElsewhere reports whether something else than HOME says where the configuration is.
func (a *App) configElsewhere(cfg *config.Config) bool {
	if a.ConfigFlag != "" || os.Getenv("WRIT_CONFIG") != "" {
		return true
	}
	home, err := os.UserHomeDir()
	return os.Getenv("XDG_CONFIG_HOME") != "" && (err != nil || cfg.Path != filepath.Join(home, ".config", "writ", "writ.yaml"))
}

// stateElsewhere is the variable by which the state is found, or "" where the
// configuration or HOME alone says where it is.
func stateElsewhere(cfg *config.Config) string {
	dir := os.Getenv(connect.StateVariable)
	home, err := os.UserHomeDir()
	if cfg.File.Store.Path != "" || !filepath.IsAbs(dir) || err == nil && filepath.Clean(dir) == filepath.Join(home, ".local", "state") {
		return ""
	}
	return dir
}

// programPath is how this program was found, where that is the same file: what is
// behind a link of a package manager moves with every version. A link in a workspace is
// its agent's to move, and not taken.
func programPath(cfg *config.Config) (string, error) {
	me, _, err := programs()
	if err != nil {
		return "", err
	}
	real, err := os.Stat(me)
	if err != nil {
		return "", fmt.Errorf("this program is not where it was started from any more: %w; install writ, then connect again", err)
	}
	found, _ := exec.LookPath(front)
	for _, p := range []string{found, os.Args[0]} {
		abs, err := filepath.Abs(p)
		if err != nil || !strings.ContainsRune(p, filepath.Separator) || inWorkspace(cfg, abs) != "" {
			continue
		}
		if info, err := os.Stat(abs); err == nil && os.SameFile(info, real) {
			return abs, nil
		}
	}
	return me, nil
}

// MCPURL is where the daemon answers MCP clients.
func MCPURL(cfg *config.Config) (string, error) {
	at, err := netip.ParseAddrPort(cfg.File.Listen.Address)
	if err != nil || at.Port() == 0 {
		return "", fmt.Errorf("%s: listen is %s, which no client can be told; give it a port, such as 127.0.0.1:7323", cfg.Path, cfg.File.Listen.Address)
	}
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port())
	}
	scheme := "http"
	if cfg.File.Listen.Certificate != "" {
		scheme = "https"
	}
	return scheme + "://" + at.String() + "/mcp", nil
}
