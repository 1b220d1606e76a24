package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) upstreamCommand() *cobra.Command {
	c := Noun("upstream", "MCP servers behind the gateway",
		"  writ upstream add files --write /data -- /opt/mcp/files-server /data\n  writ upstream import ~/.cursor/mcp.json\n  writ upstream accept files --as alice\n  writ upstream list",
		a.upstreamAdd(), a.upstreamImport(), a.upstreamSet(), a.upstreamList(), a.upstreamShow(), a.upstreamTest(), a.upstreamRestart(), a.upstreamAccept(), a.upstreamRemove())
	c.Long = `MCP servers behind the gateway: programs that run in boxes of their own, or servers
that are reached over HTTP. Each is a file upstreams/NAME.yaml beside the
configuration, or a value of upstreams in it. Their tools are suspended until a
person accepts them.`
	return c
}

const aServer = "a server's name; 'writ upstream list' shows them"

func upstreamNames(ctx context.Context, c *client.Client) []string {
	var out []string
	all, _ := c.Upstreams().All(ctx)
	for _, u := range all {
		out = append(out, u.Name+"\t"+u.State)
	}
	return out
}

func (a *App) upstreamList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the servers and how each is doing", Args: Exactly(0, "no arguments"), Example: "  writ upstream list\n  writ upstream list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			all, err := daemon.Upstreams().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(all)
			}
			if len(all) == 0 {
				fmt.Printf("there are no servers; '%s upstream add' adds one\n", Self())
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tKIND\tSTATE\tACCEPTED\tSUSPENDED\tREFUSED\tPROTOCOL\tWHERE")
			for _, u := range all {
				held := len(u.Suspended())
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", u.Name, u.Kind, u.State, len(u.Tools)-held, held, len(u.Refused), cmp.Or(u.Protocol, "-"), OneLine(u.Where))
			}
			return w.Flush()
		},
	}
}

func (a *App) upstreamShow() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(upstreamNames),
		Use:               "show NAME", Short: "Show a server: its state, what its box reaches, its tools", Args: Exactly(1, aServer), Example: "  writ upstream show files",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			u, err := daemon.Upstream(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(u)
			}
			showUpstream(u)
			return nil
		},
	}
}

func showUpstream(u client.Upstream) {
	fmt.Printf("%s: %s", u.Name, u.State)
	if u.Protocol != "" {
		fmt.Printf(", protocol %s", OneLine(u.Protocol))
	}
	fmt.Println()
	row := func(key, value string) {
		if value != "" {
			fmt.Printf("  %-9s %s\n", key, OneLine(value))
		}
	}
	if u.Failed != "" {
		printLines("  failed    ", u.Failed)
		for _, hint := range outsideHint(u.Name, u.Outside) {
			printLines("            ", hint)
		}
	}
	for _, hint := range u.Hints {
		printLines("  note      ", hint)
	}
	if t, err := time.Parse(time.RFC3339Nano, u.Next); err == nil {
		row("next try", fmt.Sprintf("in %s, after %d that failed", shortly(max(time.Until(t), 0).Round(time.Second)), u.Failures))
	}
	row("written", u.Where)
	row("url", u.URL)
	row("headers", pairs(u.Headers))
	row("proven by", u.Auth)
	row("program", strings.Join(u.Command, " "))
	row("starts in", u.Dir)
	row("env", pairs(u.Env))
	row("secrets", pairs(u.SecretEnv))
	if u.Kind == "stdio" {
		row("box", fmt.Sprintf("driver %s; reads %s; writes %s; reaches %s", cmp.Or(u.Box, "auto"), reaches(u.Read, "the system's programs"), reaches(u.Write, "nothing"), reaches(u.Hosts, "no network")))
	}
	for i, c := range u.Changes {
		if i == 0 {
			fmt.Println("  changed since a person accepted its tools")
		}
		fmt.Printf("    - %s: %s\n    + %s: %s\n", OneLine(c.Key), OneLine(c.Was), OneLine(c.Key), OneLine(c.Is))
	}
	row("enabled", strings.Join(u.Enabled, ", "))
	row("disabled", strings.Join(u.Disabled, ", "))
	row("cacheable", strings.Join(u.Cacheable, ", "))
	row("relays", strings.Join(u.Relay, ", "))
	row("read as", u.ReadAction)
	row("waits", fmt.Sprintf("%s for a call, %s to connect", u.CallTimeout, u.ConnectTimeout))
	row("offers", fmt.Sprintf("%d tools, %d resources, %d prompts", len(u.Tools), u.Resources, u.Prompts))
	if len(u.Tools) > 0 {
		fmt.Println()
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "TOOL\tCLASS\tSTATE\tWHAT")
		for _, t := range u.Tools {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, described(t.Class, t.Dangerous), standing(t.State), safely(t.Title))
		}
		w.Flush()
	}
	for i, r := range u.Refused {
		if i == 0 {
			fmt.Println("\nrefused")
		}
		fmt.Printf("  %s: %s\n", safely(r.Name), safely(r.Why))
	}
	if n := len(u.Suspended()); n > 0 {
		fmt.Printf("\n%d suspended; a person accepts them: %s upstream accept %s\n", n, Self(), u.Name)
	}
	if u.Remedy != "" {
		fmt.Println(OneLine(u.Remedy))
	}
}

// standing is the state of a tool with what that comes to.
func standing(state string) string {
	if state == "new" || state == "changed" {
		return "suspended (" + state + ")"
	}
	return state
}

func pairs(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, " ")
}

func reaches(paths []string, none string) string {
	if len(paths) == 0 {
		return none
	}
	return strings.Join(paths, ", ")
}
