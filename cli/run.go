package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/reach"
)

// Exit codes of 'writ run' besides the command's own.
const (
	ExitTimeout    = 124
	ExitNotStarted = 125
)

// runLimits hold for a command that a person runs, where no policy says less: what a
// build on a large machine needs, and far more than a tool's call gets.
var runLimits = writ.Limits{Pids: 4096, Files: 1 << 14, Size: 1 << 40}

// confined is what a person lets a command reach.
type confined struct {
	read, write, env, programs []string
	hosts, reads, ranges, ssh  []string
	six                        bool
	dir                        string
	timeout                    lasting
	limits                     writ.Limits
	noCaches                   bool
	policy                     string
}

const runLong = `Run any command in a sandbox, without a daemon. It can read the system and the
current directory, change the current directory, and nothing else: no network, no
other process, a home and a /tmp of its own that are gone afterwards.

--allow-host lets it reach a host by TCP. Programs need no settings for that. Names are
resolved outside, TLS and HTTP must be to the host that was named, and what is refused is
told on standard error with what would allow it. Where there is a configuration, the
daemon keeps it for 'writ egress log', and is started for that.

Its home has your name and address for git and nothing else of yours. Package caches
that you have (Go modules, npm, cargo) can be read; what it builds is cached for this
directory alone (writ/build in your cache directory). Package managers are told where
there is no network. Its PATH has the system's directories, and those of yours that it
can reach. With a terminal, the command has one of its own: full-screen programs and
job control within it work, and Ctrl-C reaches it; it cannot be suspended itself.
Without one for its output, or in the background, it has no input from the keyboard.
Input from a pipe or a file is the command's, read ahead: in a loop that reads lines, use
</dev/null.

--ssh [USER@]HOST lets it reach a server and sign in there by ssh, as that user, with the
keys of your own agent (SSH_AUTH_SOCK). They sign for nothing else: only to be that user,
on a server that shows a key which your known_hosts has for it.

--policy reads the same from a file: read, write, env, programs, hosts, reads, ranges, ssh,
ipv6, timeout, memory_mib, pids. Flags add to it, and its paths are from where it lies.

Exit code: the command's; 128 and the signal's number where one ended it; 124 after
--timeout; 125 if it was not started, or its output could not be written; 2 if the
command line is wrong.`

func (a *App) runCommand() *cobra.Command {
	var c confined
	cmd := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG...]", Short: "Run a command in a sandbox", Long: runLong,
		Example: `  writ run -- make test
  writ run --write ../shared -- ./build.sh
  writ run --read ~/data --env LANG -- python3 analyse.py
  writ run --allow-host example.com -- curl https://example.com/
  writ run --read-host example.com -- curl https://example.com/
  writ run --ssh git@github.com -- git push
  writ run --timeout 10m -- go test ./...
  writ run --policy ci.yaml -- npm ci`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef("expected a command: writ run -- COMMAND [ARG...]")
			}
			return a.meant(cmd, &c)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runConfined(cmd.Context(), &c, args) },
	}
	cmd.Flags().SetInterspersed(false)
	c.flags(cmd)
	a.offerUnconfined(cmd, &c)
	return cmd
}

func (a *App) shellCommand() *cobra.Command {
	var c confined
	cmd := &cobra.Command{
		Use: "shell [flags]", Short: "Look around in the sandbox that 'writ run' makes",
		Long:    "Start a shell in the sandbox that 'writ run' makes with the same flags.",
		Example: "  writ shell\n  writ shell --read ~/data",
		Args:    Exactly(0, "no arguments; 'writ run -- COMMAND' runs one"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.meant(cmd, &c); err != nil {
				return err
			}
			shell := []string{"/bin/bash", "--norc", "--noprofile"}
			if IsTerminal(os.Stdin) { // else it would write its prompts between what a script says
				c.env = append(c.env, `PS1=(writ) \w\$ `) // so that one knows where one is
				shell = append(shell, "-i")
			}
			return a.runConfined(cmd.Context(), &c, shell)
		},
	}
	c.flags(cmd)
	return cmd
}

// meant refuses flags that would do nothing.
func (a *App) meant(cmd *cobra.Command, c *confined) error {
	if a.JSON {
		return Usagef("--json: what is printed is the command's own; leave it out, or write it behind the command")
	}
	if c.policy == "" && cmd.Flags().Changed("policy") { // such as "$UNSET"
		return Usagef("--policy is empty; name a file")
	}
	return nil
}

func (c *confined) flags(cmd *cobra.Command) {
	c.timeout.most, c.timeout.once = 7*24*time.Hour, true
	f := cmd.Flags()
	f.StringArrayVar(&c.read, "read", nil, "a file or directory that it can read as well (again for more)")
	f.StringArrayVar(&c.write, "write", nil, "a file or directory that it can change as well (again for more)")
	f.StringArrayVar(&c.env, "env", nil, "a variable of yours that it gets, or NAME=VALUE (again for more)")
	f.StringArrayVar(&c.programs, "program", nil, "only these programs can be executed, besides the command (again for more)")
	f.StringArrayVar(&c.hosts, "allow-host", nil, "a host that it can reach: HOST, HOST:PORT, *.DOMAIN, ADDRESS/BITS:PORT, * for all; port 443 unless said (again for more)")
	f.StringArrayVar(&c.reads, "read-host", nil, "a host that it can only read from: GET, HEAD and OPTIONS, also within TLS (again for more)")
	f.StringArrayVar(&c.ssh, "ssh", nil, "a server that it can reach, and sign in at by your own agent of ssh: [USER@]HOST[:PORT], as who you are here unless said (again for more)")
	f.BoolVar(&c.six, "ipv6", false, "reach those hosts by IPv6 too, where this machine can")
	f.StringArrayVar(&c.ranges, "allow-range", nil, "addresses that are not public which those hosts may have, such as 10.0.0.0/8 (again for more)")
	c.dir = "."
	f.Var(&single{to: &c.dir}, "dir", "directory to run in, and to let it change")
	f.Var(&c.timeout, "timeout", "end it after this long")
	f.BoolVar(&c.noCaches, "no-caches", false, "without your package caches and the build cache")
	f.Var(&single{to: &c.policy}, "policy", "a file that says what it can reach")
	if err := cmd.MarkFlagDirname("dir"); err != nil {
		panic(err)
	}
	for _, name := range []string{"allow-host", "read-host", "ssh", "allow-range", "timeout"} { // none of them is a file
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions); err != nil {
			panic(err) // a flag that does not exist: a programming error
		}
	}
}

// single is a text that is given once: of two, one would be forgotten without a word.
type single struct {
	to  *string
	set bool
}

func (s *single) String() string {
	if s.to == nil {
		return ""
	}
	return *s.to
}

var errTwice = errors.New("it was given already; give it once")

func (s *single) Type() string { return "string" }

func (s *single) Set(text string) error {
	if s.set {
		return errTwice
	}
	*s.to, s.set = text, true
	return nil
}

// absolute is a path that a person named, from the root.
func absolute(path string) (string, error) {
	if path == "" {
		return "", errors.New("is empty; name a file or a directory")
	}
	if rest, ok := strings.CutPrefix(path+"/", "~/"); ok { // where no shell did it
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, rest)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the directory that you are in is gone (%w); change to another one", err)
	}
	return abs, nil
}

// place is one path that a person named, as it really is.
func place(path string) (string, error) {
	abs, err := absolute(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("%s: there is no such file or directory; make it first", path)
	}
	return real, nil
}

// places are those that a flag names. The command finds each by the name that it really has.
func places(flag string, paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		real, err := place(p)
		if err != nil {
			return nil, fmt.Errorf("%s %w", flag, err)
		}
		if abs, err := absolute(p); err == nil && abs != real {
			fmt.Fprintf(os.Stderr, "writ run: %s %s leads to %s by a symlink: the command finds it there, and not by the other name\n", flag, Visible(p), Visible(real))
		}
		out = append(out, real)
	}
	return out, nil
}

// ownInBoxes are directories that every box has for itself.
var ownInBoxes = []string{"/tmp", "/var/tmp", "/dev/shm"}

// confinement is what the flags come to.
func (c *confined) confinement() (out writ.Confinement, dir string, err error) {
	if c.dir == "" { // such as "$UNSET"
		return out, "", Usagef("--dir is empty; name a directory")
	}
	if dir, err = place(c.dir); err != nil {
		return out, "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return out, "", fmt.Errorf("--dir %s: it is not a directory", dir)
	}
	read, err := places("--read", c.read)
	if err != nil {
		return out, "", err
	}
	write, err := places("--write", c.write)
	if err != nil {
		return out, "", err
	}
	for _, w := range append([]string{dir}, write...) {
		if w == "/" {
			return out, "", errors.New("the root directory cannot be changed by a command; run it in a directory of its own")
		}
		if slices.Contains(ownInBoxes, w) {
			return out, "", fmt.Errorf("a box has a %s of its own, and what it writes there is gone afterwards; use a directory in it, or elsewhere", w)
		}
	}
	for _, w := range write {
		if err := changeable(w, dir); err != nil {
			return out, "", err
		}
	}
	for _, r := range read {
		if slices.Contains(ownInBoxes, r) {
			return out, "", fmt.Errorf("--read %s: a box has one of its own, so that nothing of it would be seen; name what is in it", r)
		}
		if slices.ContainsFunc(append([]string{dir}, write...), func(w string) bool { return reach.Within(r, w) }) {
			fmt.Fprintf(os.Stderr, "writ run: --read %s: the command can change it, since it can change what it is in\n", Visible(r))
		}
	}
	out = writ.Confinement{Read: read, Write: append([]string{dir}, write...), Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Containerized, Limits: runLimits}
	out.Limits.Memory, out.Limits.Pids = c.limits.Memory, cmp.Or(c.limits.Pids, runLimits.Pids)
	if len(c.programs) > 0 {
		out.Exec = writ.Exec{Mode: writ.ExecListed}
		for _, p := range c.programs {
			file, err := findProgram(p)
			if err != nil {
				return out, "", fmt.Errorf("--program %w", err)
			}
			out.Exec.Files = append(out.Exec.Files, file)
		}
	}
	return out, dir, nil
}

func findProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := place(name); err != nil {
			return "", err
		}
		dir, err := place(filepath.Dir(name)) // the name stays, which may be a symlink
		return filepath.Join(dir, filepath.Base(name)), err
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: there is no such program in your PATH", name)
}

// variables are those that the command gets besides the usual ones.
func (c *confined) variables() (named []string, given map[string]string, err error) {
	given = map[string]string{}
	for _, v := range c.env {
		name, value, has := strings.Cut(v, "=")
		if name == "" {
			return nil, nil, Usagef("--env %q: write NAME or NAME=VALUE", v)
		}
		if why := reach.NotGiven(name); why != "" {
			return nil, nil, Usagef("--env %s: it would not reach the command: %s; leave it out", name, why)
		}
		if name == "PATH" {
			return nil, nil, Usagef("--env PATH: its PATH has the system's directories, and those of yours that it can reach; leave it out, and use --read for more")
		}
		if has {
			given[name] = value
		} else if _, there := os.LookupEnv(name); there {
			named = append(named, name)
		} else {
			return nil, nil, Usagef("--env %s: there is no such variable in your environment; write %s=VALUE", name, name)
		}
	}
	return named, given, nil
}
