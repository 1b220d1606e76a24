package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/api"
	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/prove"
)

func (a *app) doctorCommand() *cobra.Command {
	var full bool
	var driver string
	c := &cobra.Command{
		Use: "doctor", Short: "Examine the set-up: what is enforced on this machine, with evidence", Args: cli.Exactly(0, "no arguments"),
		Long: `Examine the set-up. Each sandbox driver starts a real box, tries forbidden things
in it and reports what it declares, what held, and what to do where something is
missing. It exits with 1 if a driver that the configuration names cannot be used.

With --prove the whole suite runs instead: hundreds of attacks on boxes of each
driver, every one with a control that must work. It takes about a minute a driver,
needs bash and python3 but no daemon, and leaves nothing behind. It exits with 1 if
anything is broken or inconclusive.`,
		Example: `  writ doctor
  writ doctor --driver docker             one driver alone
  writ doctor --prove                     run every attack on every driver
  writ doctor --prove --driver native     on one driver
  writ doctor --prove --json              one document with all results`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if driver == "" && cmd.Flags().Changed("driver") { // such as "$UNSET"
				return cli.Usagef("--driver is empty; name one, or leave it out for all")
			}
			if full {
				return a.prove(cmd.Context(), driver)
			}
			return a.examine(cmd.Context(), driver)
		},
	}
	c.Flags().BoolVar(&full, "prove", false, "run the whole suite of attacks on this machine")
	c.Flags().StringVar(&driver, "driver", "", "only this driver")
	a.FlagWords(c, "driver", config.Drivers())
	return c
}

func (a *app) examine(ctx context.Context, only string) error {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return err
	}
	if _, missing := os.Stat(path); errors.Is(missing, os.ErrNotExist) && a.ConfigFlag == "" && os.Getenv("WRIT_CONFIG") == "" {
		return a.examineBare(ctx, path, only)
	}
	daemon, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	d, err := daemon.Doctor(ctx)
	if err != nil {
		return err
	}
	short, err := cli.TooFewPeople(ctx, daemon)
	if err != nil {
		return err
	}
	d.Warnings = append(d.Warnings, short...)
	return a.tellDoctor(d, only)
}

// tellDoctor prints what was found of all drivers, or of one. What the configuration names
// and cannot be used is an error.
func (a *app) tellDoctor(d client.Doctor, only string) error {
	var names []string
	for _, r := range d.Drivers {
		names = append(names, r.Driver)
	}
	if only != "" && !slices.Contains(names, only) {
		return noDriver(only, names)
	}
	d.Drivers = slices.DeleteFunc(d.Drivers, func(r client.DriverReport) bool { return only != "" && r.Driver != only })
	var err error
	if a.JSON {
		err = cli.PrintJSON(withRemedies(d))
	} else {
		err = showDoctor(d)
	}
	for _, r := range d.Drivers {
		if r.Error != "" && len(r.Chosen) > 0 {
			err = errors.Join(err, fmt.Errorf("driver %s cannot be used, and %s names it", r.Driver, strings.Join(r.Chosen, ", ")))
		}
	}
	return err
}

// examineBare examines a machine on which nothing is set up: 'writ run' works there.
func (a *app) examineBare(ctx context.Context, path, only string) (err error) {
	drivers, end, err := engine.Sandboxes(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	d := client.Doctor{Version: writ.Version(), Mode: api.Mode, Config: path, State: config.StateOf(path),
		Warnings: []string{"there is no configuration yet: 'writ run' and 'writ shell' work without; 'writ init' makes one for agents"}}
	for _, r := range engine.Reports(ctx, drivers) {
		d.Drivers = append(d.Drivers, api.DriverView(r))
	}
	return a.tellDoctor(d, only)
}

// A driverState is a driver as doctor shows it.
type driverState struct {
	Driver   string         `json:"driver"`
	Error    string         `json:"error,omitempty"`
	Chosen   []string       `json:"chosen,omitempty"`
	Findings []findingState `json:"findings"`
	Remedies []string       `json:"remedies,omitempty"`
}

type findingState struct {
	Feature  sandbox.Feature `json:"feature"`
	Declared bool            `json:"declared"`
	Enforced bool            `json:"enforced"`
	Evidence string          `json:"evidence"`
}

func stateOf(driver string, have sandbox.Features, failure string) driverState {
	s := driverState{Driver: driver, Error: failure, Findings: []findingState{}, Remedies: prove.Remedies(have, failure != "")}
	for _, f := range have {
		s.Findings = append(s.Findings, findingState{f.Feature, prove.Declared(f), f.Enforced, f.Evidence})
	}
	return s
}

func statesOf(d client.Doctor) []driverState {
	var out []driverState
	for _, r := range d.Drivers {
		var have sandbox.Features
		for _, f := range r.Findings {
			have = append(have, sandbox.Finding{Feature: sandbox.Feature(f.Feature), Enforced: f.Enforced, Evidence: f.Evidence})
		}
		s := stateOf(r.Driver, have, r.Error)
		s.Chosen = r.Chosen
		out = append(out, s)
	}
	return out
}

// withRemedies is what the daemon found and what to do about it.
func withRemedies(d client.Doctor) any {
	return struct {
		client.Doctor
		Drivers []driverState `json:"drivers"`
	}{d, statesOf(d)}
}

func showDoctor(d client.Doctor) error {
	fmt.Printf("writ %s\nmode           %s\nconfiguration  %s\nstate          %s\n", d.Version, d.Mode, d.Config, d.State)
	if d.People == 0 {
		fmt.Println("people         none: nobody can approve; run 'writ init'")
	}
	for _, w := range d.Warnings {
		fmt.Println("warning       ", w)
	}
	for _, s := range statesOf(d) {
		fmt.Printf("\ndriver %s%s\n", s.Driver, cli.Introduced(", in force by ", strings.Join(s.Chosen, ", ")))
		if s.Error != "" {
			fmt.Println("  cannot be used here:", cli.Visible(s.Error))
		}
		if err := showFindings(s.Findings); err != nil {
			return err
		}
		for _, r := range s.Remedies {
			fmt.Println("  remedy:", r)
		}
	}
	return nil
}

func showFindings(all []findingState) error {
	if len(all) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  feature\tdeclared\tenforced\tevidence")
	for _, f := range all {
		enforced := "yes"
		if !f.Enforced {
			enforced = "NO"
		}
		declared := "yes"
		if !f.Declared {
			declared, enforced = "no", strings.ToLower(enforced)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", f.Feature, declared, enforced, cli.Visible(f.Evidence))
	}
	return w.Flush()
}
