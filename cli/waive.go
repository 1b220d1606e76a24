package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/spell"
)

func (a *App) toolWaive() *cobra.Command {
	var src PassphraseSource
	var req client.WaiveRequest
	var end bool
	c := &cobra.Command{
		ValidArgsFunction: a.offer(toolNames),
		Use:               "waive NAME", Short: "Let a tool count as a lower egress class, or as not dangerous", Args: Exactly(1, "a tool's name; 'writ tool list' shows them"),
		Long: `Let a tool count as less than its definition says, or than it was before. Class
write, and what is dangerous, asks a person each time; a waiver is for a tool that
somebody has looked at and found to do less. It takes the passphrase of a person
with the role operator or admin, holds for exactly the definition that is shown,
and is recorded with its reason. A changed definition is not covered.

What the configuration says under tools.NAME raises the tool all the same, and so
do paths and hosts that a call asks for.

--end lets it count as what it is again, and takes nobody's passphrase.`,
		Example: `  writ tool waive publish_docs --class none --reason "writes to our own preview only"
  writ tool waive clean_cache --not-dangerous --reason "the cache is rebuilt"
  writ tool waive publish_docs --end`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := waiveUsage(cmd, req, end); err != nil {
				return err
			}
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if end {
				if err := daemon.EndWaiver(cmd.Context(), name); err != nil {
					return err
				}
				return a.said("ended the waiver of", name)
			}
			if err := src.who(cmd.Context(), daemon); err != nil {
				return err
			}
			t, err := daemon.Tool(cmd.Context(), name)
			if err != nil {
				return err
			}
			if !a.JSON {
				showWaived(t)
			}
			if req.Digest == "" {
				req.Digest = t.Digest
			}
			if req.By, err = src.credentials(cmd.Context()); err != nil {
				return err
			}
			if err := daemon.WaiveTool(cmd.Context(), name, req); err != nil {
				return err
			}
			return a.said("waived", name)
		},
	}
	a.PersonFlags(c, &src)
	c.Flags().StringVar(&req.Class, "class", "", "the class it counts as: none, read_only or write (default: as it is)")
	c.Flags().BoolVar(&req.NotDangerous, "not-dangerous", false, "it counts as not dangerous")
	c.Flags().StringVar(&req.Reason, "reason", "", fmt.Sprintf("why, for the record: a line of at most %d bytes", maxWaiverReason))
	c.Flags().StringVar(&req.Digest, "digest", "", "waive only if the definition has this digest (default: the one shown now)")
	c.Flags().BoolVar(&end, "end", false, "end the waiver")
	a.FlagWords(c, "class", waivable)
	return c
}

// waivable are the classes that a tool can count as.
var waivable = []string{"none", "read_only", "write"}

// maxWaiverReason is how many bytes the reason of a waiver can have.
const maxWaiverReason = 500

func waiveUsage(cmd *cobra.Command, req client.WaiveRequest, end bool) error {
	given := func(names ...string) bool {
		for _, n := range names {
			if cmd.Flags().Changed(n) {
				return true
			}
		}
		return false
	}
	switch {
	case end && given("class", "not-dangerous", "reason", "digest"):
		return Usagef("--end takes nothing besides; leave the other flags out")
	case end:
		return nil
	case !given("class", "not-dangerous"):
		return Usagef("say what it counts as: --class none|read_only|write, --not-dangerous, or both; --end ends a waiver")
	case given("class") && !slices.Contains(waivable, req.Class):
		return Usagef("there is no class %q%s; there are %s", req.Class, spell.Hint(req.Class, waivable), strings.Join(waivable, ", "))
	case strings.TrimSpace(req.Reason) == "":
		return Usagef("say why, for the record: --reason TEXT")
	}
	return bounded("reason", req.Reason, maxWaiverReason)
}

// showWaived prints what a person is about to waive.
func showWaived(t client.Tool) {
	fmt.Printf("tool %s: %s\n", t.Name, OneLine(t.Description))
	fmt.Printf("  its definition says  %s\n  it counts as         %s\n", described(t.Class, t.Dangerous), classText(t))
	fmt.Printf("  it declares          files read: %s, written: %s; network: %s; programs: %s\n",
		OneLine(stance(t.Policy.Files.Read.Mode, t.Policy.Files.Read.Globs)), OneLine(stance(t.Policy.Files.Write.Mode, t.Policy.Files.Write.Globs)),
		OneLine(stance(t.Policy.Network.Mode, t.Policy.Network.Hosts)), OneLine(t.Policy.Exec)+OneLine(Introduced("; is lent: ", strings.Join(t.Policy.Secrets, ", "))))
	fmt.Printf("  digest               %s\n", t.Digest)
}

func stance(mode string, listed []string) string {
	if len(listed) > 0 {
		return fmt.Sprint(listed)
	}
	return mode
}

func described(class string, dangerous bool) string {
	if dangerous {
		return class + ", dangerous"
	}
	return class
}

// classText is what a tool counts as, where that is known, in a few words.
func classText(t client.Tool) string {
	if t.Counts == nil {
		return described(t.Class, t.Dangerous)
	}
	text := described(t.Counts.Class, t.Counts.Dangerous)
	if t.Counts.Waiver != nil {
		text += " (waived)"
	}
	return text
}

// showStanding says why a tool counts as it does, where that is not what its
// definition says.
func showStanding(t client.Tool) {
	if t.Counts == nil {
		return
	}
	for _, r := range t.Counts.Reasons {
		fmt.Printf("            %s (%s)\n", OneLine(r.Text), OneLine(r.Where))
	}
	if w := t.Counts.Waiver; w != nil {
		fmt.Printf("  waiver    %s by %s %s: %s\n", w.ID, w.By, Ago(w.At), OneLine(w.Reason))
	}
	if t.Counts.Quorum > 1 {
		fmt.Printf("  quorum    %d people have to agree, where one has to\n", t.Counts.Quorum)
	}
}

func (a *App) toolWaivers() *cobra.Command {
	return &cobra.Command{
		Use: "waivers", Short: "List what people waived, ended ones too", Args: Exactly(0, "no arguments"), Example: "  writ tool waivers\n  writ tool waivers --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			all, err := daemon.Waivers().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(all)
			}
			if len(all) == 0 {
				fmt.Println("nothing is waived")
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "TOOL\tCOUNTS AS\tDEFINITION\tBY\tWHEN\tENDED\tWHY")
			for _, x := range all {
				ended := "-"
				if x.Ended != "" {
					ended = Ago(x.Ended)
				}
				fmt.Fprintf(w, "%s\t%s\t%.12s\t%s\t%s\t%s\t%s\n", x.Tool, described(x.Class, x.Dangerous), x.Definition, x.By, Ago(x.At), ended, OneLine(x.Reason))
			}
			return w.Flush()
		},
	}
}
