package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Examine the set-up: what is enforced on this machine, with evidence", Args: exactly(0, "no arguments"),
		Long: `Examine the set-up. Each sandbox driver starts a real box, tries forbidden things
in it and reports what held.`,
		Example: "  writ doctor\n  writ doctor --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			d, err := daemon.Doctor(cmd.Context())
			if err != nil {
				return err
			}
			short, err := tooFewPeople(cmd.Context(), daemon)
			if err != nil {
				return err
			}
			d.Warnings = append(d.Warnings, short...)
			if a.json {
				return printJSON(d)
			}
			return showDoctor(d)
		},
	}
}

// tooFewPeople names every quorum in force that is larger than the number of people
// who may approve. The configuration alone cannot tell: people are kept in the store.
func tooFewPeople(ctx context.Context, daemon *client.Client) ([]string, error) {
	people, err := daemon.People().All(ctx)
	if err != nil || len(people) == 0 { // which is said anyway
		return nil, err
	}
	people = slices.DeleteFunc(people, func(p client.Person) bool { return p.Role != "approver" && p.Role != "admin" })
	var out []string
	for v, err := range daemon.Config().Each(ctx) {
		if err != nil {
			return nil, err
		}
		quorum, err := strconv.Atoi(v.Value)
		if strings.HasSuffix(v.Key, ".quorum") && err == nil && quorum > len(people) {
			out = append(out, fmt.Sprintf("%s: %s is %d, and %d may approve, so nothing that takes it is ever approved; add somebody: writ person add NAME approver", v.From, v.Key, quorum, len(people)))
		}
	}
	return out, nil
}

func showDoctor(d client.Doctor) error {
	fmt.Printf("writ %s\nmode           %s\nconfiguration  %s\nstate          %s\n", d.Version, d.Mode, d.Config, d.State)
	if d.People == 0 {
		fmt.Println("people         none: nobody can approve; run 'writ init'")
	}
	for _, w := range d.Warnings {
		fmt.Println("warning       ", w)
	}
	for _, r := range d.Drivers {
		fmt.Printf("\ndriver %s\n", r.Driver)
		if r.Error != "" {
			fmt.Println("  cannot be used here:", visible(r.Error))
		}
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		for _, f := range r.Findings {
			held := "enforced"
			if !f.Enforced {
				held = "NOT"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Feature, held, visible(f.Evidence))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
