package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

func (a *App) batchCommand() *cobra.Command {
	var req client.BatchRequest
	wait := lasting{most: 5 * time.Minute}
	parallel := number{least: 1, most: 1000}
	c := &cobra.Command{
		Use:   "batch FILE|-",
		Short: "Make several calls of one turn as an agent",
		Long: `Make the calls of a JSON array, each {"tool": …, "args": {…}}, as the agent of
$WRIT_TOKEN. Results keep the order of the calls, and one that fails does not stop
the others. Consecutive calls that only read run at once, a call that changes
something runs alone; with --order concurrent all run at once. A call that waits for
a person holds back only the later changes; with the --wait over, they are refused.

Exit code: 0 when every call ran, else that of the first that did not.`,
		Example: `  echo '[{"tool":"stat","args":{"path":"a"}},{"tool":"read_file","args":{"path":"b"}}]' | writ batch -
  writ batch calls.json --max-concurrency 4 --wait 60s`,
		Args: Exactly(1, "a file, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.MaxConcurrency = parallel.n
			var err error
			if req.Calls, err = readCalls(args[0]); err != nil {
				return err
			}
			c, err := a.agentClient(cmd.Context())
			if err != nil {
				return err
			}
			reply, err := c.Batch(cmd.Context(), req, wait.Duration)
			if err != nil {
				return brokenOff(cmd.Context(), err)
			}
			return a.showBatch(req.Calls, reply)
		},
	}
	c.Flags().StringVar(&req.Order, "order", "in_order", "in_order or concurrent")
	c.Flags().Var(&parallel, "max-concurrency", "how many run at once (default: as many as there are)")
	c.Flags().StringVar(&req.Session, "session", os.Getenv("WRIT_SESSION"), "the session (default $WRIT_SESSION, else the token's session of the day)")
	c.Flags().StringVar(&req.Task, "task", os.Getenv("WRIT_TASK"), "the task (default $WRIT_TASK, else the session)")
	c.Flags().Var(&wait, "wait", "how long to wait for a person, at most 5m")
	a.flagValues(c, "order", func(context.Context, *client.Client) []string { return []string{"in_order", "concurrent"} })
	return c
}

func readCalls(path string) ([]client.BatchCall, error) {
	in := os.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, 20<<20))
	if err != nil {
		return nil, err
	}
	var calls []client.BatchCall
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&calls); err != nil {
		return nil, Usagef(`%s is not a JSON array of {"tool": …, "args": {…}}; nothing was called`, path)
	}
	return calls, nil
}

func (a *App) showBatch(calls []client.BatchCall, reply client.BatchReply) error {
	if a.JSON {
		if err := PrintJSON(reply); err != nil {
			return err
		}
	}
	code := ExitOK
	for i, r := range reply.Results {
		if !a.JSON {
			showResult(i, calls[i].Tool, r)
		}
		if code == ExitOK && r.Error != nil {
			code = codeOf(&client.Problem{Kind: r.Error.Kind})
		}
	}
	if code != ExitOK {
		return ExitCode(code)
	}
	return nil
}

func showResult(i int, tool string, r client.BatchResult) {
	state := "ok"
	switch {
	case r.Error != nil && r.Error.Kind == writ.Pending:
		state = "waits for a person: " + r.Error.Approval
	case r.Error != nil:
		state = string(r.Error.Kind)
	case r.IsError:
		state = "failed"
	}
	fmt.Printf("[%d] %s: %s\n", i+1, OneLine(tool), state)
	for line := range strings.Lines(Visible(r.Content)) {
		fmt.Printf("    %s\n", strings.TrimRight(line, "\n"))
	}
}
