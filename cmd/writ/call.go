package main

import (
	"context"
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

func (a *app) callCommand() *cobra.Command {
	var argsFlag, tokenFile, session, task string
	var noWait bool
	c := &cobra.Command{
		Use:   "call TOOL [KEY=TEXT | KEY:=JSON]...",
		Short: "Call a tool as an agent",
		Long: `Call a tool as the agent whose token is in $WRIT_TOKEN. Where a person has to
agree, the call waits; Ctrl-C leaves the request pending, and making the same
call again takes it up. The daemon is started when it is down.`,
		Example: `  writ call read_file path=README.md start_line:=1 end_line:=5
  writ call shell_command --args '{"command":"ls | wc -l"}'
  writ call write_file --args - < call.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected a tool's name; 'writ tool list' shows them")
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
			daemon, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			daemon.Token = token
			return a.call(cmd.Context(), daemon, client.CallRequest{Tool: words[0], Args: args, Session: session, Task: task}, noWait)
		},
	}
	c.ValidArgsFunction = a.offer(toolNames)
	c.Flags().StringVar(&argsFlag, "args", "", "arguments as a JSON object; - reads them from standard input")
	c.Flags().StringVar(&tokenFile, "token-file", "", "file that holds the agent's token (default $WRIT_TOKEN)")
	c.Flags().StringVar(&session, "session", os.Getenv("WRIT_SESSION"), "the session this call belongs to (default $WRIT_SESSION, else the token's session of the day)")
	c.Flags().StringVar(&task, "task", os.Getenv("WRIT_TASK"), "the task, by id or name; a name opens one (default $WRIT_TASK, else the session)")
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for a person")
	return c
}

// callArgs puts the arguments together from --args or from KEY=TEXT words.
func callArgs(flag string, words []string) (json.RawMessage, error) {
	if flag != "" && len(words) > 0 {
		return nil, usagef("give the arguments with --args or as KEY=TEXT, not both")
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
			return nil, usagef("--args is not JSON")
		}
		return json.RawMessage(flag), nil
	}
	args := map[string]json.RawMessage{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		raw := strings.HasSuffix(key, ":")
		key = strings.TrimSuffix(key, ":")
		if !ok || key == "" {
			return nil, usagef("%q is not KEY=TEXT or KEY:=JSON", w)
		}
		if _, twice := args[key]; twice {
			return nil, usagef("%s is given twice", key)
		}
		if raw {
			if !json.Valid([]byte(value)) {
				return nil, usagef("the value of %s is not JSON; for text write %s=TEXT", key, key)
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

// patience is how long one request to the daemon waits; then it is made again.
const patience = 60 * time.Second

func (a *app) call(ctx context.Context, daemon *client.Client, req client.CallRequest, noWait bool) error {
	wait, id := time.Duration(0), ""
	for {
		reply, err := daemon.Call(ctx, req, wait)
		var p *client.Problem
		pending := errors.As(err, &p) && p.Kind == writ.Pending
		switch {
		case pending && noWait:
			if a.json {
				return errors.Join(a.print(p), exitCode(exitPending))
			}
			return a.leftPending(p.Approval)
		case pending:
			if id != p.Approval {
				fmt.Fprintf(os.Stderr, "waiting for a person: writ approval show %s\n", p.Approval)
			}
			wait, id = patience, p.Approval
		case ctx.Err() != nil && id != "":
			return a.leftPending(id)
		case err != nil && p == nil && id != "":
			return fmt.Errorf("the daemon ended while request %s waited; it is still pending, make the same call again", id)
		case err != nil:
			if a.json && p != nil {
				return errors.Join(a.print(p), exitCode(codeOf(err)))
			}
			return brokenOff(ctx, err)
		default:
			return a.showReply(reply)
		}
	}
}

// brokenOff says what became of a call whose answer did not come.
func brokenOff(ctx context.Context, err error) error {
	var p *client.Problem
	switch {
	case errors.As(err, &p):
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted; the call was cancelled, and what it ran is ended: 'writ ledger tail' shows how far it came")
	}
	return fmt.Errorf("the daemon went away during the call (%w); 'writ ledger tail' shows how far it came", err)
}

func (a *app) leftPending(id string) error {
	fmt.Fprintf(os.Stderr, "left pending %s; make the same call again to take it up\n", id)
	return exitCode(exitPending)
}

func (a *app) showReply(reply client.CallReply) error {
	if a.json {
		if err := a.print(reply); err != nil {
			return err
		}
	} else {
		text := reply.Content
		if isTerminal(os.Stdout) {
			text = visible(text)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		fmt.Print(text)
	}
	if reply.IsError {
		return exitCode(exitError)
	}
	return nil
}
