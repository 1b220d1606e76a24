package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/prove"
	"github.com/writ-run/writ/spell"
)

// A proof is what the suite showed of one driver.
type proof struct {
	driverState
	Held         int            `json:"held"`
	Broken       int            `json:"broken"`
	Inconclusive int            `json:"inconclusive"`
	Skipped      int            `json:"skipped"`
	Results      []prove.Result `json:"results"`
}

// prove runs the suite in this process, on drivers made as a daemon makes them.
func (a *app) prove(ctx context.Context, only string) (err error) {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return err
	}
	if a.ConfigFlag != "" || os.Getenv("WRIT_CONFIG") != "" { // one that was named has to be there
		if _, err := catalog.Config(path); err != nil {
			return err
		}
	}
	if err := prove.Missing(); err != nil {
		return err
	}
	drivers, end, err := engine.Sandboxes(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if drivers, err = chosen(drivers, only); err != nil {
		return err
	}
	var proofs []proof
	for _, d := range drivers {
		p, err := a.proveOne(ctx, d)
		if ctx.Err() != nil {
			return fmt.Errorf("stopped on driver %s after %d of %d probes; the boxes have ended and their files are gone", d.Name(), len(p.Results), len(prove.All()))
		}
		if err != nil {
			return err
		}
		proofs = append(proofs, p)
		if !a.JSON {
			showProof(p)
		}
	}
	if a.JSON {
		if err := cli.PrintJSON(map[string]any{"version": writ.Version(), "config": path, "drivers": proofs}); err != nil {
			return err
		}
	}
	return verdictOf(proofs)
}

// chosen is the drivers, or the one that was named.
func chosen(all sandbox.Set, name string) (sandbox.Set, error) {
	if name == "" {
		return all, nil
	}
	var names []string
	for _, d := range all {
		if d.Name() == name {
			return sandbox.Set{d}, nil
		}
		names = append(names, d.Name())
	}
	return nil, noDriver(name, names)
}

func noDriver(name string, names []string) error {
	return cli.Usagef("there is no driver %q among %s%s", name, strings.Join(names, ", "), spell.Hint(name, names))
}

// proveOne runs the suite on one driver. One that cannot start boxes here is not an
// error: it says so, and what to do.
func (a *app) proveOne(ctx context.Context, d sandbox.Driver) (proof, error) {
	have, err := d.Probe(ctx)
	if err != nil {
		return proof{driverState: stateOf(d.Name(), nil, err.Error()), Results: []prove.Result{}}, nil
	}
	p := proof{driverState: stateOf(d.Name(), have, "")}
	total, shown := len(prove.All()), !a.JSON && cli.IsTerminal(os.Stderr)
	err = prove.Run(ctx, d, prove.Options{}, func(r prove.Result) {
		p.Results = append(p.Results, r)
		count := map[prove.Verdict]*int{prove.Held: &p.Held, prove.Broken: &p.Broken, prove.Inconclusive: &p.Inconclusive, prove.Skipped: &p.Skipped}
		*count[r.Verdict]++
		if shown {
			fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %d of %d, %s", d.Name(), len(p.Results), total, r.Group)
		}
	})
	if shown {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	return p, err
}

func showProof(p proof) {
	fmt.Printf("driver %s\n", p.Driver)
	if p.Error != "" {
		fmt.Println("  cannot be used here:", cli.Visible(p.Error))
	} else {
		fmt.Printf("  held %d, broken %d, inconclusive %d, skipped %d\n", p.Held, p.Broken, p.Inconclusive, p.Skipped)
	}
	for _, r := range p.Results {
		if r.Verdict == prove.Broken || r.Verdict == prove.Inconclusive {
			fmt.Printf("  %s %s: %s\n", strings.ToUpper(string(r.Verdict)), r.Name(), cli.OneLine(r.Detail))
		}
	}
	for _, r := range p.Remedies {
		fmt.Println("  remedy:", r)
	}
}

// verdictOf ends the program with 1 unless something was shown and all of it holds.
func verdictOf(proofs []proof) error {
	held := 0
	for _, p := range proofs {
		if p.Broken+p.Inconclusive > 0 {
			return cli.ExitCode(cli.ExitError)
		}
		held += p.Held
	}
	if held == 0 {
		return cli.ExitCode(cli.ExitError)
	}
	return nil
}
