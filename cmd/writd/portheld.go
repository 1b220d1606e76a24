package main

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
)

// portHeld is why a daemon did not start, said better where another daemon has its port:
// one that was started with another state, which is what differs then, not the port.
func (a *app) portHeld(ctx context.Context, cause error) error {
	if !strings.Contains(cause.Error(), syscall.EADDRINUSE.Error()) {
		return cause
	}
	cfg, err := a.LoadConfig()
	if err != nil || !writAnswers(ctx, cfg) {
		return cause
	}
	at := netip.MustParseAddrPort(cfg.File.Listen.Address) // it answered there
	who, same := "whose state cannot be seen from here", "the XDG_STATE_HOME, or the store.path,"
	if pid, state := holder(at.Port()); state != "" {
		who = fmt.Sprintf("process %d, with its state in %s", pid, state)
		same = fmt.Sprintf("store.path: %s", state)
		if filepath.Base(state) == "writ" {
			same = fmt.Sprintf("XDG_STATE_HOME=%s, or store.path: %s,", filepath.Dir(state), state)
		}
	}
	return fmt.Errorf("another daemon answers on %s (%s), and this one would have its state in %s; to use that one, say %s as it was told; to have two, give one of them another port with 'listen' in %s",
		at, who, cfg.StatePath, same, cfg.Path)
}

// writAnswers reports whether a daemon answers where this configuration has agents come in.
func writAnswers(ctx context.Context, cfg *config.Config) bool {
	url, err := cli.MCPURL(cfg)
	if err != nil {
		return false
	}
	c, err := client.New(strings.TrimSuffix(url, "/mcp"), "", nil)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	h, err := c.Health(ctx)
	return err == nil && h.Policy != ""
}
