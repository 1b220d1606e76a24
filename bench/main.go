// Command bench measures writ beside what it stands on, on one machine in one
// run, and prints a table of numbers and ratios: 'make bench'. It asserts
// nothing; docs/benchmarks.md keeps the numbers.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var table = tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)

func row(what, value, beside string) { fmt.Fprintf(table, "%s\t%s\t%s\n", what, value, beside) }

func run() error {
	if is, err := part(os.Args); is {
		return err
	}
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: bench PROGRAM (the built writ)")
	}
	program, err := filepath.Abs(os.Args[1])
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	row("WHAT", "MEASURED", "BESIDE")
	switch os.Getenv("BENCH") { // a part of it
	case "boxes":
		return errors.Join(boxes(program), table.Flush())
	case "mcp":
		return errors.Join(mcp(program, dir), disclosure(), table.Flush())
	case "docker":
		return errors.Join(containers(program), table.Flush())
	case "egress":
		return egressPart(program, dir)
	case "gate":
		return errors.Join(gate(dir), table.Flush())
	}
	if err := decision(); err != nil {
		return err
	}
	if err := gate(dir); err != nil {
		return err
	}
	if err := boxes(program); err != nil {
		return err
	}
	if err := containers(program); err != nil {
		return err
	}
	if err := binary(program, dir); err != nil {
		return err
	}
	if err := errors.Join(mcp(program, dir), disclosure()); err != nil {
		return err
	}
	return errors.Join(table.Flush(), egressPart(program, dir))
}

// median runs f n times and returns the middle duration.
func median(n int, f func() error) (time.Duration, error) {
	ds := make([]time.Duration, n)
	for i := range ds {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		ds[i] = time.Since(began)
	}
	slices.Sort(ds)
	return ds[n/2], nil
}

func ratio(a, b time.Duration) string {
	return strconv.FormatFloat(float64(a)/float64(b), 'f', 2, 64) + "x"
}

func rss(pid int) (kib int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
		}
	}
	return 0, fmt.Errorf("no VmRSS of %d", pid)
}

// whole is the program with everything, beside the one that people type.
func whole(program string) string { return filepath.Join(filepath.Dir(program), "writd") }

// binary measures the built program from outside.
func binary(program, dir string) error {
	help, err := median(20, func() error { return exec.Command(program, "--help").Run() })
	if err != nil {
		return err
	}
	plain, err := median(20, func() error { return exec.Command("/bin/true").Run() })
	if err != nil {
		return err
	}
	row("writ --help, p50", help.Round(10*time.Microsecond).String(), "/bin/true "+plain.Round(10*time.Microsecond).String())
	return daemon(program, dir, plain)
}

// daemon measures an idle daemon's memory, and a call through it from the CLI.
func daemon(program, dir string, plain time.Duration) error {
	base := dir
	if os.Geteuid() == 0 {
		var err error
		if base, err = os.MkdirTemp("/srv", "writ-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(base)
		if err := os.Chmod(base, 0o755); err != nil {
			return err
		}
	}
	env := append(os.Environ(), "HOME="+base, "XDG_CONFIG_HOME="+base+"/.config", "XDG_STATE_HOME="+base+"/.state", "WRIT_CONFIG=")
	init := exec.Command(program, "init", "--passphrase-stdin", "--workspace", filepath.Join(base, "ws"))
	init.Env, init.Stdin = env, strings.NewReader("correct horse\n")
	out, err := init.CombinedOutput()
	if err != nil {
		return fmt.Errorf("init: %w: %s", err, out)
	}
	_, rest, _ := strings.Cut(string(out), "WRIT_TOKEN=")
	token, _, _ := strings.Cut(rest, "\n")
	env = append(env, "WRIT_TOKEN="+token)
	serve := exec.Command(program, "serve")
	serve.Env = env
	if err := serve.Start(); err != nil {
		return err
	}
	defer func() { serve.Process.Signal(os.Interrupt); serve.Wait() }()
	call := func(args ...string) error {
		cmd := exec.Command(program, append([]string{"call"}, args...)...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
		return nil
	}
	for range 100 { // until it answers
		if err = call("stat", "path=."); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	small, err := median(30, func() error { return call("stat", "path=.") })
	if err != nil {
		return err
	}
	row("writ call stat (CLI, daemon, two durable records), p50", small.Round(10*time.Microsecond).String(), "")
	box, err := median(30, func() error { return call("shell_command", "command=true") })
	if err != nil {
		return err
	}
	row("writ call shell_command true, p50", box.Round(10*time.Microsecond).String(), ratio(box-small+plain, plain)+" of a plain exec, call overhead taken off")
	time.Sleep(time.Second)
	kib, err := rss(serve.Process.Pid)
	if err != nil {
		return err
	}
	row("idle daemon after those calls, resident", fmt.Sprintf("%.1f MiB", float64(kib)/1024), "")
	return nil
}
