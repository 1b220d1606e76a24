package cli

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/ledger"
)

func (a *App) ledgerCommand() *cobra.Command {
	return Noun("ledger", "The record of everything",
		"  writ ledger tail -f\n  writ ledger show call_abc123\n  writ ledger verify",
		a.ledgerTail(), a.ledgerShow(), a.ledgerVerify(), a.ledgerExport())
}

func (a *App) ledgerTail() *cobra.Command {
	n := number{n: 20, least: 1, most: 1000}
	var follow bool
	c := &cobra.Command{
		Use: "tail", Short: "Show the last entries", Args: Exactly(0, "no arguments"), Example: "  writ ledger tail -n 50\n  writ ledger tail -f",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			entries, err := daemon.LedgerTail(cmd.Context(), n.n)
			if err != nil {
				return err
			}
			last, err := a.showEntries(entries, 0)
			if err != nil || !follow {
				return err
			}
			return a.followLedger(cmd.Context(), daemon, last)
		},
	}
	c.Flags().VarP(&n, "lines", "n", "how many, at most 1000")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on as entries are added")
	return c
}

// followLedger shows entries as they are committed, until it is interrupted.
func (a *App) followLedger(ctx context.Context, daemon *client.Client, last int64) error {
	for e, err := range daemon.Events(ctx, last) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := a.showEntries([]client.Entry{e.Entry}, last); err != nil {
			return err
		}
	}
	return nil
}

// entryBody is what a line shows of an entry.
type entryBody struct {
	At     string         `json:"at"`
	Kind   string         `json:"kind"`
	Seq    int64          `json:"seq"`
	Agent  string         `json:"agent"`
	Call   string         `json:"call"`
	Person string         `json:"person"`
	Data   map[string]any `json:"data"`
}

func (a *App) showEntries(entries []client.Entry, last int64) (int64, error) {
	for _, e := range entries {
		var b entryBody
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return last, err
		}
		last = b.Seq
		if a.JSON {
			if err := json.NewEncoder(os.Stdout).Encode(e); err != nil {
				return last, err
			}
			continue
		}
		fmt.Printf("%6d  %s  %-20s %s%s\n", b.Seq, b.At[:min(19, len(b.At))], b.Kind, OneLine(b.who()), OneLine(b.what()))
	}
	return last, nil
}

func (b entryBody) who() string {
	switch {
	case b.Person != "" && b.Agent != "":
		return b.Person + " for " + b.Agent
	case b.Person != "":
		return b.Person
	}
	return b.Agent
}

func (b entryBody) what() string {
	out := ""
	for _, key := range []string{"tool", "outcome", "error", "because", "approval", "token", "reason", "policy", "user", "program", "server", "box", "secret", "connection", "webhook"} {
		if v, ok := b.Data[key]; ok && v != "" && !(key == "policy" && b.Call != "") {
			out += fmt.Sprintf("  %s=%v", key, v)
		}
	}
	if b.Call != "" {
		out += "  " + b.Call
	}
	return out
}

func (a *App) ledgerShow() *cobra.Command {
	return &cobra.Command{
		Use: "show CALL-ID", Short: "Show everything recorded about one call", Args: Exactly(1, "the id of a call; 'writ ledger tail' shows them"), Example: "  writ ledger show call_abc123",
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			entries, err := daemon.LedgerCall(args[0]).All(cmd.Context())
			if err != nil {
				return err
			}
			return PrintJSON(entries)
		},
	}
}

func (a *App) ledgerVerify() *cobra.Command {
	var file, key, head string
	c := &cobra.Command{
		Use: "verify", Short: "Check every entry, link, signature and witnessed head", Args: Exactly(0, "no arguments"),
		Long: `Check the ledger: that no entry was edited, removed or reordered, that the signed
heads match it, and that it is not behind its witness. With --head it must also
contain the hash that you noted earlier. With --file an export is checked
without a daemon, under the key that you name.`,
		Example: "  writ ledger verify\n  writ ledger verify --head 5f1c…\n  writ ledger verify --file ledger.jsonl --key 9a0b…",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.verify(cmd.Context(), file, key, head)
			if err != nil {
				return err
			}
			return a.showReport(r)
		},
	}
	c.Flags().StringVar(&file, "file", "", "an export to check instead of the daemon's ledger")
	c.Flags().StringVar(&key, "key", "", "the public key heads are signed with (with --file)")
	c.Flags().StringVar(&head, "head", "", "a hash that the ledger must contain")
	return c
}

func (a *App) verify(ctx context.Context, file, key, head string) (ledger.Report, error) {
	if _, err := writ.ParseDigest(head); err != nil && head != "" {
		return ledger.Report{}, Usagef("--head: %v", err)
	}
	if file == "" {
		daemon, err := a.Connect(ctx)
		if err != nil {
			return ledger.Report{}, err
		}
		r, err := daemon.LedgerVerify(ctx, head)
		return ledger.Report(r), err
	}
	pub, err := hex.DecodeString(key)
	if err != nil || len(pub) != ed25519.PublicKeySize {
		return ledger.Report{}, Usagef("name the public key with --key, 64 hexadecimal digits; 'writ ledger verify' prints it")
	}
	f, err := os.Open(file)
	if err != nil {
		return ledger.Report{}, err
	}
	defer f.Close()
	src, err := ledger.ReadExport(f)
	if err != nil {
		return ledger.Report{}, fmt.Errorf("%s: %w", file, err)
	}
	src.Expect = head
	r, err := ledger.Verify(src, pub)
	if err != nil {
		return ledger.Report{}, err
	}
	return *r, nil
}

func (a *App) showReport(r ledger.Report) error {
	if a.JSON {
		if err := PrintJSON(r); err != nil {
			return err
		}
	} else {
		fmt.Printf("entries    %d\nlast hash  %s\nheads      %d signed, through entry %d; %d witnessed\nkey        %s\n", r.Entries, r.Last, r.Heads, r.Signed, r.Witness, r.Key)
		if r.Unsigned > 0 {
			fmt.Printf("unsigned   the last %d entries are not signed yet\n", r.Unsigned)
		}
		for _, p := range r.Problems {
			fmt.Println("PROBLEM   ", Visible(p))
		}
	}
	if !r.OK() {
		return errors.New("the ledger does not verify")
	}
	if !a.JSON {
		fmt.Println("the ledger verifies")
	}
	return nil
}

func (a *App) ledgerExport() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "export", Short: "Write the whole ledger as JSON Lines", Args: Exactly(0, "no arguments"), Example: "  writ ledger export -o ledger.jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if out == "" {
				return daemon.LedgerExport(cmd.Context(), os.Stdout)
			}
			f, err := os.OpenFile(out, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
			if err != nil {
				return err
			}
			return errors.Join(daemon.LedgerExport(cmd.Context(), f), f.Close())
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "file to write (default standard output)")
	return c
}
