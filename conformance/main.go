// Command conformance runs the official conformance suite of the Model Context
// Protocol: against the SDK's example server, against the same server behind the
// gateway, and against a program that embeds the engine and has a fixture of its own.
// It prints one table, and fails where writ does worse than the server behind it, or
// other than expected.yaml says: 'make conformance'.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// bound is how long all of it may take.
const bound = 5 * time.Minute

func run(ctx context.Context) error {
	if len(os.Args) != 5 {
		return errors.New("usage: conformance WRIT EVERYTHING-SERVER NODE_MODULES EXPECTED.YAML; 'make conformance' gives them")
	}
	for i, p := range os.Args[1:] {
		abs, err := filepath.Abs(p)
		if err != nil {
			return err
		}
		if _, err := os.Stat(abs); err != nil {
			return fmt.Errorf("%w; run 'make conformance', which makes it", err)
		}
		os.Args[i+1] = abs
	}
	writ, everything, modules, baseline := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	expected, err := readExpected(baseline)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	dir, err := place()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	columns, end, err := servers(ctx, dir, writ, everything)
	defer end()
	if err != nil {
		return err
	}
	t := table{expected: expected}
	for _, c := range columns {
		for _, r := range runs {
			began := time.Now()
			results, passed, err := runSuite(ctx, modules, dir, c.url(r.version), r)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.name, r.version, err)
			}
			fmt.Fprintf(os.Stderr, "%s at %s: %d scenarios in %s\n", c.name, r.version, len(results), time.Since(began).Round(100*time.Millisecond))
			t.add(c.name, r, results, passed)
		}
	}
	t.print(os.Stdout)
	return t.judge()
}

// place is a directory for everything that runs: not below /tmp, which every box has
// of its own, and where the user that boxes run as can enter.
func place() (string, error) {
	base := "/srv"
	if os.Geteuid() != 0 {
		var err error
		if base, err = os.UserHomeDir(); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(base, "writ-conformance-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// column is a server that the suite is run against.
type column struct {
	name           string
	legacy, modern string // where it is reached; one URL, or one for each kind of version
}

func (c column) url(version string) string {
	if version >= modernFrom {
		return c.modern
	}
	return c.legacy
}

// servers starts everything. end is to be called also where it fails.
func servers(ctx context.Context, dir, writ, everything string) (columns []column, end func(), err error) {
	var ends []func()
	end = func() {
		for i := range ends {
			ends[len(ends)-1-i]()
		}
	}
	for _, start := range []func() (column, func(), error){
		func() (column, func(), error) { return direct(ctx, everything) },
		func() (column, func(), error) { return behind(ctx, dir, writ, everything) },
		func() (column, func(), error) { return own(ctx, dir, writ) },
	} {
		c, stop, err := start()
		if stop != nil {
			ends = append(ends, stop)
		}
		if err != nil {
			return nil, end, err
		}
		columns = append(columns, c)
	}
	return columns, end, nil
}
