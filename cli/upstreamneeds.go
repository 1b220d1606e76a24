package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/catalog"
)

// fetchers are programs that fetch what they run over the network, by what stands first in
// their arguments; none: always.
var fetchers = map[string][]string{
	"npx": nil, "bunx": nil, "uvx": nil, "npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "pipx": {"run"}, "uv": {"tool", "run"},
}

// unboxable is why a command will not do in a box, with what does; empty: nothing is known
// against it.
func unboxable(name string, command, hosts []string) string {
	if len(command) == 0 {
		return ""
	}
	program := filepath.Base(command[0])
	words, fetches := fetchers[program]
	switch {
	case program == "docker" || program == "podman":
		return fmt.Sprintf("%s: %s has its containers started outside the box, which a box does not reach; install the server itself and name its program: %s upstream add %s -- PROGRAM", name, program, Self(), name)
	case !fetches || len(hosts) > 0 || len(words) > 0 && (len(command) < 2 || !slices.Contains(words, command[1])):
		return ""
	}
	install := "npm install PACKAGE in a directory of its own"
	run := "node DIR/node_modules/PACKAGE/dist/index.js"
	if strings.HasPrefix(program, "uv") || program == "pipx" {
		install, run = "make a virtual environment and pip install PACKAGE in it", "DIR/bin/PROGRAM"
	}
	return fmt.Sprintf("%s: %s fetches what it runs over the network, which a box does not have; %s, and name its file: %s upstream add %s --read DIR -- %s", name, program, install, Self(), name, run)
}

// foretell says what is known of servers before they are written: what was made of what was
// said, what will not do in a box, and what a command names that its box does not reach.
// That is not given without being asked for: a client's file names whole homes.
func foretell(plans []planned) {
	for _, p := range plans {
		for _, n := range p.notes {
			fmt.Fprintln(os.Stderr, "note:", Visible(p.name+": "+n))
		}
		why := unboxable(p.name, p.server.Command, p.server.Hosts)
		if why != "" {
			fmt.Fprintln(os.Stderr, "warning:", Visible(why))
			continue
		}
		for _, path := range catalog.Outside(p.server) {
			fmt.Fprintln(os.Stderr, "note:", Visible(fmt.Sprintf("%s: its command names %s, which is not in its box; where it needs it: --read %s or --write %s", p.name, path, path, path)))
		}
	}
}

// outsideHint offers what a command names and its box does not reach.
func outsideHint(name string, paths []string) []string {
	var out []string
	for _, p := range paths {
		p = OneLine(p)
		out = append(out, fmt.Sprintf("%s is not in its box; where it needs it: %s upstream set %s --read %s (or --write)", p, Self(), name, p))
	}
	return out
}

// printLines prints a text of several lines below each other, after a key.
func printLines(key, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Println(key + Visible(strings.TrimRight(line, "\r")))
		key = strings.Repeat(" ", len(key))
	}
}

// safely is text on one line that the daemon has made safe already; what is not after all
// is spelled out.
func safely(s string) string {
	if plain := strings.ReplaceAll(s, "<U+", "<U-"); OneLine(plain) == plain {
		return s
	}
	return OneLine(s)
}
