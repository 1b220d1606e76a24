//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox/prove"
)

// TestProve runs the suite from the program that people have, on the driver that they
// have by default, with no daemon.
func TestProve(t *testing.T) {
	if err := prove.Missing(); err != nil {
		need.Lacking(t, "%v", err)
	}
	w := newWorld(t, "", "")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "doctor", "--prove", "--driver", "native", "--json")
	cmd.Env, cmd.Dir = w.env(), w.home
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var doc struct {
		Version string
		Drivers []struct {
			Driver, Error                       string
			Held, Broken, Inconclusive, Skipped int
			Results                             []prove.Result
		}
	}
	if jsonErr := json.Unmarshal(out, &doc); jsonErr != nil || len(doc.Drivers) != 1 || doc.Version == "" {
		t.Fatalf("%v, %v: %s%s", err, jsonErr, out, errs.String())
	}
	d := doc.Drivers[0]
	if strings.Contains(d.Error, "no launcher") {
		need.Lacking(t, "%s", d.Error)
	}
	for _, r := range d.Results {
		if r.Verdict == prove.Broken || r.Verdict == prove.Inconclusive {
			t.Errorf("%s is %s: %s", r.Name(), r.Verdict, r.Detail)
		}
	}
	if err != nil || d.Driver != "native" || d.Held < 120 || d.Held+d.Broken+d.Inconclusive+d.Skipped != len(prove.All()) || len(d.Results) != len(prove.All()) {
		t.Errorf("%v: held %d, broken %d, inconclusive %d, skipped %d, %d results, of %d probes", err, d.Held, d.Broken, d.Inconclusive, d.Skipped, len(d.Results), len(prove.All()))
	}
	if !unlocked(w.state("writ.db.lock")) {
		t.Error("a daemon was started")
	}
}

// TestProveInterrupted: Ctrl-C ends the run, and nothing of it is left.
func TestProveInterrupted(t *testing.T) {
	t.Parallel()
	if err := prove.Missing(); err != nil {
		need.Lacking(t, "%v", err)
	}
	w := newWorld(t, "", "")
	cmd := exec.Command(program, "doctor", "--prove")
	cmd.Env, cmd.Dir = w.env(), w.home
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var scratch string
	for end := time.Now().Add(time.Minute); scratch == ""; time.Sleep(5 * time.Millisecond) {
		// The second world: the suite is under way.
		if dir := scratchOf(cmd.Process.Pid); dir != "" && exists(filepath.Join(dir, "w2")) {
			scratch = dir
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v\n%s", err, errs.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatal("it never began")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errs.String(), "the boxes have ended and their files are gone") {
			t.Errorf("%v: %s", err, errs.String())
		}
	case <-time.After(time.Minute):
		syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
		t.Fatal("it does not end")
	}
	if exists(scratch) {
		t.Errorf("%s is left", scratch)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte("BASE="+scratch)) {
			t.Errorf("%s still runs", filepath.Dir(path))
		}
	}
}

// scratchOf is the directory that a run of the suite has its files in, by a file in it
// that it keeps open; empty: none yet.
func scratchOf(pid int) string {
	all, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd/*"))
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && filepath.Base(to) == "leaked" {
			return filepath.Dir(to)
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestDoctorUsage: what is asked for wrongly is said exactly, and the table has its
// columns.
func TestDoctorUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", "")
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"doctor", "--driver", "nativ"}, cli.ExitUsage, `there is no driver "nativ" among native, `},
		{[]string{"doctor", "--prove", "--driver", "nativ"}, cli.ExitUsage, `there is no driver "nativ" among native, `},
		{[]string{"doctor", "--prove", "x"}, cli.ExitUsage, "expected no arguments"},
	} {
		if o := w.run("", tc.args...); o.code != tc.code || !strings.Contains(o.err, tc.says) {
			t.Errorf("%v: exit %d, %q; want %d and %q", tc.args, o.code, o.err, tc.code, tc.says)
		}
	}
	out := w.must("", "doctor")
	for _, want := range [][]string{{"feature", "declared", "enforced", "evidence"}, {"host_allowlist", "no", "no", "not"}, {"file_read", "yes", "yes"}} {
		found := false
		for line := range strings.Lines(out) {
			words := strings.Fields(line)
			found = found || len(words) >= len(want) && strings.Join(words[:len(want)], " ") == strings.Join(want, " ")
		}
		if !found {
			t.Errorf("no line %v in\n%s", want, out)
		}
	}
	if out := w.must("", "doctor", "--driver", "native"); !strings.Contains(out, "\ndriver native\n") || strings.Count(out, "\ndriver ") != 1 {
		t.Errorf("one driver:\n%s", out)
	}
	var doc struct {
		Config  string
		Drivers []struct {
			Findings []struct{ Declared bool }
		}
	}
	if err := json.Unmarshal([]byte(w.must("", "doctor", "--json")), &doc); err != nil || doc.Config != w.config || len(doc.Drivers) < 2 || len(doc.Drivers[0].Findings) < 15 || !doc.Drivers[0].Findings[0].Declared {
		t.Errorf("%v: %+v", err, doc)
	}
}

// On a machine where nothing is set up, doctor examines what 'writ run' would use.
func TestDoctorBare(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program, "doctor")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "there is no configuration yet: 'writ run' and 'writ shell' work without") || !strings.Contains(string(out), "driver native\n") {
		t.Errorf("%v: %s", err, out)
	}
	cmd = exec.Command(program, "doctor", "--config", "/nowhere/writ.yaml")
	cmd.Env = []string{"HOME=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("one that was named has to be there: %s", out)
	}
}
