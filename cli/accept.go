package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *App) toolDiff() *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: a.offer(toolNames),
		Use:               "diff NAME", Short: "Show what changed in a definition since a person accepted it", Args: Exactly(1, "a tool's name; 'writ tool list' shows them"),
		Long:    "Show what changed in a tool's definition file since a person accepted it; all of it\nwhere nobody has. Changes take effect for looking after 'writ config reload'.",
		Example: "  writ tool diff run_tests",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			d, err := c.DiffTool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(d)
			}
			showDiff(d)
			return nil
		},
	}
}

func showDiff(d client.ToolDiff) {
	switch {
	case d.Accepted == "":
		fmt.Printf("tool %s (%s) is new; nobody has accepted it\n", d.Name, d.File)
	case d.Accepted == d.Digest:
		fmt.Printf("tool %s (%s) is as %s accepted it %s\n", d.Name, d.File, d.By, Ago(d.At))
	default:
		fmt.Printf("tool %s (%s) changed since %s accepted it %s\n", d.Name, d.File, d.By, Ago(d.At))
	}
	for _, c := range d.Changes {
		showValue("-", c.Key, c.Was)
		showValue("+", c.Key, c.Is)
	}
	if d.Stays != "" {
		fmt.Println(OneLine(d.Stays))
	}
	fmt.Printf("digest %s\n", d.Digest)
}

// showValue prints one side of a change; a text of several lines, such as a script,
// as lines, so that a person can read what they accept.
func showValue(sign, key, value string) {
	if value == "" {
		return
	}
	var text string
	if json.Unmarshal([]byte(value), &text) != nil || !strings.Contains(text, "\n") {
		fmt.Printf("%s %s: %s\n", sign, OneLine(key), OneLine(value))
		return
	}
	fmt.Printf("%s %s:\n", sign, OneLine(key))
	for line := range strings.Lines(text) {
		fmt.Printf("%s     %s\n", sign, Visible(strings.TrimRight(line, "\n")))
	}
}

func (a *App) toolAccept() *cobra.Command {
	var src PassphraseSource
	var digest string
	c := &cobra.Command{
		ValidArgsFunction: a.offer(toolNames),
		Use:               "accept NAME", Short: "Let a tool be used as its definition is now", Args: Exactly(1, "a tool's name; 'writ tool list' shows them"),
		Long: `Accept a definition from a file. New and changed definitions are suspended until
then: whoever can change a tool after it was looked at decides what it does. It
takes the passphrase of a person with the role operator or admin.`,
		Example: "  writ tool diff run_tests\n  writ tool accept run_tests",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connectAs(cmd.Context(), &src)
			if err != nil {
				return err
			}
			d, err := c.DiffTool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !a.JSON {
				showDiff(d)
			}
			if digest == "" {
				digest = d.Digest
			}
			by, err := src.credentials(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.AcceptTool(cmd.Context(), args[0], client.AcceptRequest{Digest: digest, By: by}); err != nil {
				return err
			}
			return a.said("accepted", args[0])
		},
	}
	a.PersonFlags(c, &src)
	c.Flags().StringVar(&digest, "digest", "", "accept only if the definition has this digest (default: the one shown now)")
	return c
}
