package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/secret"
)

func (a *App) secretCommand() *cobra.Command {
	c := Noun("secret", "Credentials that connections use, by reference",
		"  writ secret set github-token --as alice\n  writ secret list\n  writ secret check vault:team/github#token\n  writ secret remove github-token",
		a.secretSet(), a.secretList(), a.secretRemove(), a.secretCheck())
	c.Long = `Credentials that connections use. The configuration names one by where it is kept:

  env:NAME           a variable of the daemon's environment
  file:/abs/path     a file of the daemon's user, mode 0600
  keyring:NAME       the keyring of the daemon's user, under the service writ
  store:NAME         encrypted in writ's store; set, listed and removed here
  vault:PATH#FIELD   the KV engine of Vault or OpenBao (secrets.vault)

No command shows a value.`
	return c
}

const aSecret = "a secret's name; 'writ secret list' shows them"

// secretRefs offers the kinds of references, and those of the store whole.
func secretRefs(ctx context.Context, c *client.Client) []string {
	var out []string
	for _, kind := range secret.Backends {
		if kind != "store" {
			out = append(out, kind+":")
		}
	}
	for _, name := range secretNames(ctx, c) {
		out = append(out, "store:"+name)
	}
	return out
}

func secretNames(ctx context.Context, c *client.Client) []string {
	var out []string
	all, _ := c.Secrets().All(ctx)
	for _, s := range all {
		out = append(out, s.Name+"\tset by "+s.By)
	}
	return out
}

func (a *App) secretSet() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		Use: "set NAME", Short: "Keep a secret in the store, encrypted",
		Long: `Keep a secret in the store, instead of the one of that name before. The value is
typed without being shown, or read from standard input when that is no terminal; a line
break at its end is left out. It is never an argument, which others could see. It takes
the passphrase of a person with the role operator or admin: with the secret, agents can
use what it opens.`,
		Example: "  writ secret set github-token\n  pass show github | writ secret set github-token --as alice",
		Args:    Exactly(1, "a name for the secret; its value is typed, or comes from standard input"), ValidArgsFunction: a.offer(secretNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name := cmd.Context(), args[0]
			if !secret.ValidName(name) {
				return Usagef("a secret's name has letters, digits, _ . and -, at most 64; the value comes from standard input")
			}
			daemon, err := a.connectAs(ctx, &src)
			if err != nil {
				return err
			}
			by, err := src.credentials(ctx)
			if err != nil {
				return err
			}
			if err := WithholdMemory(); err != nil {
				return err
			}
			value, err := src.secretValue(ctx, name)
			if err != nil {
				return err
			}
			if err := daemon.SetSecret(ctx, name, client.SecretRequest{Value: value, By: by}); err != nil {
				return err
			}
			return a.Tell(fmt.Sprintf("set %s; a configuration names it store:%s", name, name), map[string]string{"status": "set", "id": name})
		},
	}
	a.PersonFlags(c, &src)
	c.Flags().Lookup("passphrase-stdin").Usage = "read the passphrase from the first line of standard input, and the value from the rest"
	return c
}

// secretValue reads a value: what is left of standard input, or typed.
func (p *PassphraseSource) secretValue(ctx context.Context, name string) (string, error) {
	if !p.Stdin && IsTerminal(os.Stdin) {
		return p.read(ctx, "Value of "+OneLine(name)+": ")
	}
	var in io.Reader = os.Stdin
	if p.lines != nil {
		in = p.lines
	}
	text, err := io.ReadAll(io.LimitReader(in, secret.MaxBytes+3))
	if err != nil {
		return "", fmt.Errorf("read the value from standard input: %w", err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		return "", errors.New("there is no value on standard input; pipe it in, or run the command in a terminal to type it")
	}
	return value, nil
}

func (a *App) secretList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the secrets in the store: names, when and by whom each was set", Args: Exactly(0, "no arguments"), Example: "  writ secret list\n  writ secret list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			all, err := daemon.Secrets().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(all)
			}
			if len(all) == 0 {
				fmt.Printf("there are no secrets in the store; '%s secret set NAME' sets one\n", Self())
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tSET\tBY")
			for _, s := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\n", OneLine(s.Name), Ago(s.Set), OneLine(s.By))
			}
			return w.Flush()
		},
	}
}

func (a *App) secretRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Forget a secret of the store", Args: Exactly(1, aSecret), Example: "  writ secret remove github-token", ValidArgsFunction: a.offer(secretNames),
		Long: `Forget a secret of the store. It takes nobody's passphrase. Connections and
servers that name it cannot be used any more, nobody signs in by ssh with it, and webhooks
send nothing; which those are is said.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			users, err := secretUsers(cmd.Context(), daemon, "store:"+args[0])
			if err != nil {
				return err
			}
			users = append(users, a.serversBy("store:"+args[0])...)
			if err := daemon.RemoveSecret(cmd.Context(), args[0]); err != nil {
				return err
			}
			if len(users) > 0 {
				fmt.Fprintf(os.Stderr, "writ: without it these do not work: %s; set it again with '%s secret set %s', or change the configuration\n", OneLine(strings.Join(users, ", ")), Self(), OneLine(args[0]))
			}
			return a.said("removed", args[0])
		},
	}
}

// serversBy are the servers of ssh whose key is kept there, by the configuration as it is written;
// one that does not hold says nothing.
func (a *App) serversBy(reference string) []string {
	cfg, err := a.LoadConfig()
	if err != nil {
		return nil
	}
	var out []string
	for at, l := range cfg.SSH.Hosts {
		if l.Key.String() == reference {
			out = append(out, "egress.ssh.hosts "+at.String())
		}
	}
	slices.Sort(out)
	return out
}

// secretUsers are the connections, webhooks and servers that name a secret.
func secretUsers(ctx context.Context, daemon *client.Client, reference string) ([]string, error) {
	connections, err := daemon.Connections().All(ctx)
	if err != nil {
		return nil, err
	}
	webhooks, err := daemon.Webhooks().All(ctx)
	if err != nil {
		return nil, err
	}
	servers, err := daemon.Upstreams().All(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range connections {
		if slices.Contains(c.Secrets, reference) {
			out = append(out, "connection "+c.Name)
		}
	}
	for _, w := range webhooks {
		if w.Secret == reference {
			out = append(out, "webhook "+w.Name)
		}
	}
	for _, u := range servers {
		if slices.Contains(u.Secrets, reference) {
			out = append(out, "server "+u.Name)
		}
	}
	return out, nil
}

func (a *App) secretCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check REFERENCE", Short: "Say whether a secret can be had, and about how long it is", Args: Exactly(1, "a reference, such as "+secret.Forms),
		Example:           "  writ secret check env:GITHUB_TOKEN\n  writ secret check file:/etc/writ/github\n  writ secret check vault:team/github#token --json",
		ValidArgsFunction: a.offer(secretRefs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := secret.ParseRef(args[0]); err != nil {
				return Usagef("%v", err)
			}
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			got, err := daemon.CheckSecret(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				if err := PrintJSON(got); err != nil || got.Found {
					return err
				}
				return ExitCode(ExitError)
			}
			if !got.Found {
				return errors.New(OneLine(got.Why))
			}
			fmt.Printf("found %s: %s\n", got.Reference, got.Length)
			return nil
		},
	}
}
