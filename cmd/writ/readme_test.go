package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
)

// printed is one command of the README's tour, as it is printed.
type printed struct {
	text, comment string
	third         bool // it is typed in the third terminal, not in the second
}

// printedTour is every command of the README's tour, in order.
func printedTour(t *testing.T) []printed {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tour, begins := strings.Cut(string(b), "\n## A tour\n")
	tour, _, ends := strings.Cut(tour, "\n## ")
	if !begins || !ends {
		t.Fatal("the README has no tour")
	}
	var out []printed
	for n, part := range strings.Split(tour, "```") {
		code, sh := strings.CutPrefix(part, "sh\n")
		if n%2 == 0 || !sh {
			continue
		}
		third := strings.HasSuffix(strings.Split(tour, "```")[n-1], "In a third terminal:\n\n")
		for code != "" {
			var c string
			c, code = oneCommand(code)
			text, comment, _ := strings.Cut(c, " # ")
			out = append(out, printed{strings.TrimSpace(text), comment, third})
		}
	}
	return out
}

// oneCommand cuts the first command off a text: a line, with those that it goes on in.
func oneCommand(code string) (command, rest string) {
	end := "\n"
	if line, _, _ := strings.Cut(code, "\n"); strings.HasSuffix(line, "<<'END'") {
		end = "\nEND\n"
	}
	command, rest, _ = strings.Cut(code, end)
	if strings.HasSuffix(command, "\\") {
		more, after := oneCommand(rest)
		return command + "\n" + more, after
	}
	return command + end, rest
}

// The README's tour runs as it is printed, in its order, with the second person that it
// adds: every command ends with the exit code that it is said to.
func TestReadmeTour(t *testing.T) {
	need.Programs(t, "bash", "curl")
	w := newWorld(t, "", "")
	if err := errors.Join(os.Remove(w.config), os.Mkdir(filepath.Join(w.home, "bin"), 0o755), os.Symlink(program, filepath.Join(w.home, "bin", "writ"))); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	passphrases := regexp.MustCompile(`^writ (init|person add|approval (approve|reject|edit|grant)|stop --lift|tool accept)( |$)`)
	said := regexp.MustCompile(`\(exit code (\d)`)
	exports := map[bool]string{} // by terminal
	waiting := make(chan outcome, 1)
	ran, waits := 0, false
	for _, c := range printedTour(t) {
		if !c.third && waits { // what waited in the second terminal
			if o := <-waiting; o.code != 0 {
				t.Errorf("what waited: %+v", o)
			}
			waits = false
		}
		text, stdin := strings.NewReplacer("writ_…", w.token, "--as NAME", "--as alice", "127.0.0.1:7323", address).Replace(c.text), ""
		if strings.HasPrefix(text, "export ") {
			exports[c.third] += text + "\n"
			continue
		}
		if regexp.MustCompile(`\bID\b`).MatchString(text) {
			text = strings.Replace(text, "ID", w.pending(), 1)
		}
		if strings.HasPrefix(text, "writ init") {
			text += " --as alice --workspace " + filepath.Join(w.home, "work")
		}
		if passphrases.MatchString(text) {
			text, stdin = text+" --passphrase-stdin", pass+"\n"+passphraseOf("bob")+"\n"
			if strings.Contains(text, "--as bob") {
				stdin = passphraseOf("bob") + "\n"
			}
		}
		ran++
		if strings.Contains(c.comment, "it waits for you") {
			script := exports[c.third] + text
			go func() { waiting <- w.bash(script, "") }()
			waitFor(t, func() bool { return len(w.waitingIDs()) == 1 })
			waits = true
			continue
		}
		code := 0
		if strings.Contains(text, "--no-wait") {
			code = cli.ExitPending
		}
		if m := said.FindStringSubmatch(c.comment); m != nil {
			code = int(m[1][0] - '0')
		}
		o := w.bash(exports[c.third]+text, stdin)
		if o.code != code {
			t.Fatalf("%s\nexit %d, want %d\n%s%s", text, o.code, code, o.out, o.err)
		}
		if strings.HasPrefix(text, "writ init") {
			_, token, _ := strings.Cut(o.out, "WRIT_TOKEN=")
			w.token, _, _ = strings.Cut(token, "\n")
			w.edit("127.0.0.1:7323", address)
		}
		for of, want := range map[string]string{"/v1/calls": `"call_id"`, "count_words file=a": "1 ", "approval grants": " live ", "person list": "bob    approver"} {
			if strings.Contains(text, of) && !strings.Contains(o.out, want) {
				t.Errorf("%s\n%+v\nwant %s", text, o, want)
			}
		}
	}
	if got := w.roles(); ran < 40 || got != "alice admin, bob approver" {
		t.Errorf("%d commands were run, and there are %s", ran, got)
	}
	w.verifies()
}

// bash runs what somebody types into a shell, without a terminal to ask on.
func (w *world) bash(script, stdin string) outcome {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Env, cmd.Dir, cmd.Stdin = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, w.home, strings.NewReader(stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); cmd.ProcessState == nil {
		w.t.Errorf("bash: %v", err)
		return outcome{code: -1}
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}
