package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/sandbox/prove"
)

const unconfinedFlag = "unsafe-unconfined"

const unconfinedLong = `

--unsafe-unconfined runs the command with no sandbox at all, as you and with your
environment. It says so, and the ledger has it before it starts and when it has ended
('writ ledger tail'): who, which program, where, a digest of the arguments. What cannot
be recorded is not run. Of the other flags only --dir goes with it.`

// offerUnconfined lets a command be run with nothing around it instead.
func (a *App) offerUnconfined(cmd *cobra.Command, c *confined) {
	var unconfined bool
	cmd.Flags().BoolVar(&unconfined, unconfinedFlag, false, "no sandbox: nothing is limited, and the ledger has it")
	cmd.Long += unconfinedLong
	cmd.Example += "\n  writ run --unsafe-unconfined -- ./install.sh"
	inSandbox := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if unconfined {
			return a.runUnconfined(cmd, c, args)
		}
		return inSandbox(cmd, args)
	}
}

// runUnconfined runs a command with nothing around it: written down first, or not
// at all.
func (a *App) runUnconfined(cmd *cobra.Command, c *confined, argv []string) error {
	if err := onlyUnconfined(cmd); err != nil {
		return err
	}
	if a.store == nil {
		a.ahead.End()
		return handOver()
	}
	a.ahead.Drop()
	path, err := config.Path(a.ConfigFlag) // before the directory changes
	if err != nil {
		return notRun(err)
	}
	run, child, err := unconfinedRun(c.dir, argv)
	if err != nil {
		return notRun(err)
	}
	var id string
	err = a.recordUnconfined(cmd.Context(), path, a.ConfigFlag != "" || os.Getenv("WRIT_CONFIG") != "", func(ctx context.Context, to UnconfinedRecord) (err error) {
		id, err = to.StartUnconfined(ctx, run)
		return err
	})
	if err != nil {
		return notRun(fmt.Errorf("it could not be recorded: %w", err))
	}
	_, said := fmt.Fprintf(os.Stderr, "writ: UNCONFINED: nothing limits what %s reads, writes or reaches (--%s; recorded as %s)\n", OneLine(argv[0]), unconfinedFlag, id)
	end, started := client.UnconfinedEnd{ExitCode: ExitNotStarted, NotStarted: true}, said
	if said == nil { // who runs it has to see it
		end, started = runAlong(child)
	}
	err = a.recordUnconfined(context.WithoutCancel(cmd.Context()), path, false, func(ctx context.Context, to UnconfinedRecord) error {
		return to.EndUnconfined(ctx, id, end)
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "writ: the end of %s could not be recorded: %s\n", id, Visible(message(err)))
	}
	if started != nil {
		return notRun(started)
	}
	if end.ExitCode != 0 {
		return ExitCode(end.ExitCode)
	}
	return nil
}

// besideUnconfined are flags that mean the same without a sandbox, and aboutSandbox
// those that are named in the error about any other.
var (
	besideUnconfined = []string{unconfinedFlag, "dir", "config", "json"}
	aboutSandbox     = []string{"read", "write", "env", "program", "policy", "timeout", "no-caches"}
)

// onlyUnconfined refuses flags that say what a command may reach: they would be
// dropped, and whoever wrote them believes that they hold.
func onlyUnconfined(cmd *cobra.Command) error {
	others := cmd.Flags().NFlag()
	for _, name := range besideUnconfined {
		if cmd.Flags().Changed(name) {
			others--
		}
	}
	if others == 0 {
		return nil
	}
	var with []string
	for _, name := range aboutSandbox {
		if cmd.Flags().Changed(name) {
			with = append(with, "--"+name)
		}
	}
	return Usagef("--%s confines nothing, so %s would mean nothing; leave one or the other out", unconfinedFlag, cmp.Or(strings.Join(with, ", "), "another flag"))
}

// notRun says that the command never ran, and why.
func notRun(err error) error {
	fmt.Fprintln(os.Stderr, "writ run: not started: "+Visible(message(err)))
	return ExitCode(ExitNotStarted)
}

// anyMachine is what a box needs, where no setting is found that is in its way.
const anyMachine = "boxes need user namespaces: allow them to ordinary users (user.max_user_namespaces, kernel.unprivileged_userns_clone, an AppArmor profile with 'userns,'), in a container give CAP_SYS_ADMIN or a seccomp profile that allows unshare and mount"

// orUnconfined adds to an error of a sandbox that cannot be had what this machine
// lacks, and the way to do without one.
func orUnconfined(err error) error {
	var e *writ.Error
	if !errors.As(err, &e) || e.Kind != writ.SandboxUnavailable {
		return err
	}
	lines := []string{err.Error()}
	if !strings.Contains(e.Msg, "namespaces") && !strings.Contains(e.Msg, "Landlock") && !strings.Contains(e.Msg, "launcher") {
		return err // it is about this command, and says by itself what to do
	}
	if e.Err != nil { // a step failed
		if strings.HasSuffix(e.Msg, e.Err.Error()) { // once is enough
			lines[0] = e.Msg
		}
		for _, remedy := range prove.Remedies(nil, true) {
			if !strings.Contains(remedy, "; driver subprocess needs") { // which is not used here
				lines = append(lines, remedy)
			}
		}
		if len(lines) == 1 {
			lines = append(lines, anyMachine)
		}
	}
	lines = append(lines, "'writ doctor' shows what works here; to run it with nothing confined, which is recorded: writ run --"+unconfinedFlag+" -- COMMAND")
	return writ.Fail(e.Kind, strings.Join(lines, "\n  "), nil)
}
