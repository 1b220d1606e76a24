package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/connect"
	"github.com/writ-run/writ/spell"
)

// connecting is what the flags of connect say.
type connecting struct {
	agent, scope                       string
	http, remove, replace, yes, dryRun bool
}

const connectLong = `Have an MCP client start writ as its server "writ". The files of Claude Code and
Codex are edited: what changes is shown first, everything else in the file stays as
it is, byte for byte, and the file as it was is kept beside it. For other clients it
prints what to paste, and where. Without a client it lists them.

--http has the client call the daemon over HTTP with the token in $WRIT_TOKEN, which
says who the agent is, instead of starting 'writ mcp'. Of what is printed, it is that
half alone.

Scopes of Claude Code: user (every project of yours), project (.mcp.json here, for
everybody who works on it), local (you, in this project).`

func (a *App) connectCommand() *cobra.Command {
	var o connecting
	c := &cobra.Command{
		Use: "connect [CLIENT]", Short: "Have an MCP client use writ: Claude Code, Codex and others", Long: connectLong,
		Example: `  writ connect                                  the clients there are
  writ connect claude-code
  writ connect claude-code --agent coder --scope project
  writ connect codex --dry-run                  only show what would change
  writ connect codex --remove                   take it out again
  writ connect cursor                           print what to paste`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return Usagef("expected one client; 'writ connect' lists them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listClients(cmd)
			}
			return a.connectClient(cmd, args[0], &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.agent, "agent", "", "the agent that the client is (default: the only one)")
	f.StringVar(&o.scope, "scope", "user", "whose configuration of Claude Code: "+strings.Join(connect.Scopes, ", "))
	f.BoolVar(&o.http, "http", false, "call the daemon over HTTP, with the token in $WRIT_TOKEN")
	f.BoolVar(&o.remove, "remove", false, "take the entry out again")
	f.BoolVar(&o.replace, "replace", false, `also an entry "writ" that is not of this program`)
	f.BoolVar(&o.yes, "yes", false, "write without asking")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show what would change")
	c.ValidArgsFunction = a.offer(clientNames)
	a.FlagWords(c, "scope", connect.Scopes)
	a.flagValues(c, "agent", func(context.Context, *client.Client) []string {
		if cfg, err := a.LoadConfig(); err == nil {
			return configured(cfg)
		}
		return nil
	})
	return c
}

func clientNames(context.Context, *client.Client) []string {
	var out []string
	for _, c := range connect.Clients {
		out = append(out, c.Name+"\t"+c.Title)
	}
	return out
}

func configured(cfg *config.Config) []string {
	var out []string
	for _, g := range cfg.Agents {
		out = append(out, g.Name)
	}
	return out
}

func (a *App) listClients(cmd *cobra.Command) error {
	if anyChanged(cmd, "agent", "scope", "http", "remove", "replace", "yes", "dry-run") != "" {
		return Usagef("expected a client; 'writ connect' alone lists them")
	}
	type row struct {
		Client string `json:"client"`
		Title  string `json:"title"`
		Writes bool   `json:"writes"`
		File   string `json:"file"`
	}
	var rows []row
	for _, c := range connect.Clients {
		rows = append(rows, row{c.Name, c.Title, !c.Printed(), c.File})
	}
	if a.JSON {
		return PrintJSON(rows)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLIENT\tNAME\tCONNECT\tFILE")
	for _, r := range rows {
		does := "prints"
		if r.Writes {
			does = "writes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Client, r.Title, does, r.File)
	}
	return w.Flush()
}

// anyChanged is the first of flags that was given, or "".
func anyChanged(cmd *cobra.Command, flags ...string) string {
	for _, f := range flags {
		if cmd.Flags().Changed(f) {
			return f
		}
	}
	return ""
}

func (a *App) connectClient(cmd *cobra.Command, name string, o *connecting) error {
	var known []string
	for _, c := range connect.Clients {
		if known = append(known, c.Name); c.Name != name {
			continue
		}
		if flag := anyChanged(cmd, "scope", "remove", "replace", "yes", "dry-run"); c.Printed() && flag != "" {
			return Usagef("--%s is for clients whose file is written; for %s it is printed what to paste", flag, c.Title)
		}
		if c.Printed() {
			return a.printClient(c, o)
		}
		if name != "claude-code" && cmd.Flags().Changed("scope") {
			return Usagef("--scope is for claude-code; %s has one file", c.Title)
		}
		return a.writeClient(cmd.Context(), c, o)
	}
	return Usagef("unknown client %q%s ('writ connect' lists them, and 'writ connect generic' is for any other)", name, spell.Hint(name, known))
}
