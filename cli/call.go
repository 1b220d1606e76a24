package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

func (a *App) callCommand() *cobra.Command {
	var argsFlag, tokenFile, session, task, key string
	var noWait bool
	c := &cobra.Command{
		Use:   "call TOOL [KEY=TEXT | KEY:=JSON]...",
		Short: "Call a tool as an agent",
		Long: `Call a tool as the agent whose token is in $WRIT_TOKEN. Where a person has to
agree, the call waits; Ctrl-C leaves the request pending, and making the same
call again takes it up. The daemon is started when it is down, also when it goes
away meanwhile: the call is then asked about again under its key, and what ran is
not run twice. Where nobody can know whether it ran, that is said (exit code 1),
and 'writ invocation resolve' settles it.`,
		Example: `  writ call read_file path=README.md start_line:=1 end_line:=5
  writ call shell_command --args '{"command":"ls | wc -l"}'
  writ call write_file --args - < call.json
  writ call write_file --key release-7 path=notes.txt content=done`,
		Args: func(_ *cobra.Command, args []string) error {
			if first(args) == "" {
				return Usagef("expected a tool's name; 'writ tool list' shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			args, err := callArgs(argsFlag, words[1:])
			if err != nil {
				return err
			}
			token, err := agentToken(tokenFile)
			if err != nil {
				return err
			}
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			daemon.Token = token
			return a.call(cmd.Context(), daemon, client.CallRequest{Tool: words[0], Args: args, Session: session, Task: task, Key: cmp.Or(key, ownKey())}, noWait)
		},
	}
	c.ValidArgsFunction = a.offer(toolNames)
	c.Flags().StringVar(&argsFlag, "args", "", "arguments as a JSON object; - reads them from standard input")
	c.Flags().StringVar(&tokenFile, "token-file", "", "file that holds the agent's token (default $WRIT_TOKEN)")
	c.Flags().StringVar(&session, "session", os.Getenv("WRIT_SESSION"), "the session this call belongs to (default $WRIT_SESSION, else the token's session of the day)")
	c.Flags().StringVar(&task, "task", os.Getenv("WRIT_TASK"), "the task, by id or name; a name opens one (default $WRIT_TASK, else the session)")
	c.Flags().StringVar(&key, "key", "", "idempotency key: calls of the agent with the same key are one, which runs at most once; within a day it gives the same answer (default: a new one)")
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for a person: print the request's id (exit code 4)")
	return c
}

// callArgs puts the arguments together from --args or from KEY=TEXT words.
func callArgs(flag string, words []string) (json.RawMessage, error) {
	if flag != "" && len(words) > 0 {
		return nil, Usagef("give the arguments with --args or as KEY=TEXT, not both")
	}
	if flag == "-" {
		b, err := io.ReadAll(io.LimitReader(os.Stdin, 20<<20))
		flag = string(b)
		if err != nil {
			return nil, err
		}
	}
	if flag != "" {
		if !json.Valid([]byte(flag)) {
			return nil, Usagef("--args is not JSON")
		}
		return json.RawMessage(flag), nil
	}
	args := map[string]json.RawMessage{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		raw := strings.HasSuffix(key, ":")
		key = strings.TrimSuffix(key, ":")
		if !ok || key == "" {
			return nil, Usagef("%q is not KEY=TEXT or KEY:=JSON", w)
		}
		if _, twice := args[key]; twice {
			return nil, Usagef("%s is given twice", key)
		}
		if raw {
			if !json.Valid([]byte(value)) {
				return nil, Usagef("the value of %s is not JSON; for text write %s=TEXT", key, key)
			}
			args[key] = json.RawMessage(value)
			continue
		}
		b, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		args[key] = b
	}
	return json.Marshal(args)
}

func agentToken(file string) (string, error) {
	if file != "" {
		b, err := os.ReadFile(file)
		return strings.TrimSpace(string(b)), err
	}
	if t := os.Getenv("WRIT_TOKEN"); t != "" {
		return t, nil
	}
	return "", errors.New("there is no agent token; 'writ agent token NAME' makes one, then: export WRIT_TOKEN=writ_…")
}

// ownKey is a key that no other call has.
func ownKey() string { return "cli_" + strings.ToLower(rand.Text()) }

// patience is how long one request to the daemon waits; then it is made again.
const patience = 60 * time.Second

// call makes a call until there is an answer. It is the same call each time, by its
// key, so a connection that is lost costs nothing: what ran is not run again.
func (a *App) call(ctx context.Context, daemon *client.Client, req client.CallRequest, noWait bool) error {
	w := waiter{app: a, token: daemon.Token, began: time.Now()}
	defer w.quiet()
	wait := time.Duration(0)
	for {
		reply, err := daemon.Call(ctx, req, wait)
		var p *client.Problem
		refused := errors.As(err, &p)
		switch {
		case err == nil:
			w.quiet()
			return a.showReply(reply)
		case refused && p.Kind == writ.Pending && noWait:
			if a.JSON {
				return errors.Join(PrintJSON(p), ExitCode(ExitPending))
			}
			fmt.Println(p.Approval) // alone, for ID=$(writ call … --no-wait)
			return a.leftPending(p.Approval)
		case refused && p.Kind == writ.Pending:
			w.waits(ctx, daemon, p.Approval)
			wait = patience
		case ctx.Err() != nil && w.id != "":
			w.quiet()
			return a.interrupted(ctx, daemon, w.id)
		case ctx.Err() == nil && !refused:
			if daemon, err = w.comeBack(ctx, err, req.Key); err != nil {
				return err
			}
			wait = 0 // it says at once what it waits for
		case refused && w.lost > 0 && cutOffRead(ctx, daemon, p):
			req.Key = ownKey() // its key has that end now
		default:
			w.quiet()
			return brokenOff(ctx, err)
		}
	}
}

// cutOffRead reports whether a call has no outcome because the daemon was cut off in
// the middle of it, and can be made again because it changes nothing.
func cutOffRead(ctx context.Context, daemon *client.Client, p *client.Problem) bool {
	if p.Kind != writ.Cancelled {
		return false
	}
	i, err := daemon.Invocation(ctx, p.CallID, 0)
	return err == nil && i.Status == "failed" && i.Outcome == "interrupted"
}

// brokenOff says what became of a call whose answer did not come.
func brokenOff(ctx context.Context, err error) error {
	var p *client.Problem
	if !errors.As(err, &p) && ctx.Err() != nil {
		return errors.New("interrupted; the call was cancelled, and what it ran is ended: 'writ ledger tail' shows how far it came")
	}
	return err
}

// interrupted says what is left of a call that somebody does not wait for any more.
func (a *App) interrupted(ctx context.Context, daemon *client.Client, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if r, err := daemon.Approval(ctx, id); err == nil && r.State == "used" {
		return fmt.Errorf("interrupted; %s was approved and had begun: 'writ invocation show %s' says what became of it", id, id)
	}
	return a.leftPending(id)
}

func (a *App) leftPending(id string) error {
	fmt.Fprintf(os.Stderr, "left pending %s; make the same call again to take it up\n", id)
	return ExitCode(ExitPending)
}

func (a *App) showReply(reply client.CallReply) error {
	if a.JSON {
		if err := PrintJSON(reply); err != nil {
			return err
		}
	} else {
		text := reply.Content
		if IsTerminal(os.Stdout) {
			text = Visible(text)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		fmt.Print(text)
	}
	if reply.IsError {
		return ExitCode(ExitError)
	}
	return nil
}
