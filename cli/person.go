package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/person"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/store"
)

func (a *App) personCommand() *cobra.Command {
	c := Noun("person", "People: who can decide, their roles and passphrases",
		"  writ person list\n  writ person add bob approver --as alice    bob chooses his passphrase\n  writ person role bob viewer --as alice     bob decides nothing any more",
		a.personAdd(), a.personList(), a.personRole(), a.personPassphrase(), a.personRecover())
	verb := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error {
		if slices.Contains([]string{"remove", "rm", "delete"}, first(args)) {
			return Usagef("people are never removed; as a viewer one decides nothing: writ person role %s viewer", cmp.Or(strings.Join(args[1:], " "), "NAME"))
		}
		return verb(cmd, args)
	}
	return c
}

const rolesHelp = `Roles: a viewer decides nothing, an approver answers requests, an operator makes
tokens, accepts tools and lifts stops, an admin does all of it and says who is what.`

// twoLines says what --passphrase-stdin reads where two passphrases are needed.
const twoLines = "read the passphrases from standard input: the first line is yours, the second the new one"

func (a *App) personAdd() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		Use: "add NAME ROLE", Short: "Add somebody who can decide",
		Long: `Add somebody. It takes an admin's passphrase; then the new person chooses their
own at the prompt. People are never removed: one who has gone is made a viewer.

` + rolesHelp,
		Example: "  writ person add bob approver\n  writ person add bob approver --as alice",
		Args:    nameAndRole,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, name, role := cmd.Context(), args[0], args[1]
			if !config.ValidName(name) {
				return Usagef("a person's name has letters, digits, _ . and -, at most 64")
			}
			daemon, err := a.connectAs(ctx, &src)
			if err != nil {
				return err
			}
			by, err := src.admin(ctx)
			if err != nil {
				return err
			}
			pass, err := src.chosenBy(ctx, name)
			if err != nil {
				return err
			}
			if err := daemon.AddPerson(ctx, client.NewPerson{Name: name, Role: role, Passphrase: pass}, by); err != nil {
				return err
			}
			return a.Tell(fmt.Sprintf("added %s, role %s", name, role), map[string]string{"status": "added", "name": name, "role": role})
		},
	}
	c.ValidArgsFunction = a.offerRole(nil)
	a.PersonFlags(c, &src)
	c.Flags().Lookup("passphrase-stdin").Usage = twoLines
	return c
}

func nameAndRole(_ *cobra.Command, args []string) error {
	if len(args) != 2 || args[0] == "" {
		return Usagef("expected a person's name and a role: %s", strings.Join(person.Roles, ", "))
	}
	if !slices.Contains(person.Roles, args[1]) {
		return Usagef("there is no role %q%s; there are %s", args[1], spell.Hint(args[1], person.Roles), strings.Join(person.Roles, ", "))
	}
	return nil
}

func (a *App) personList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List who can decide: names, roles, since when", Args: Exactly(0, "no arguments"), Example: "  writ person list\n  writ person list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			people, err := daemon.People().All(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(people)
			}
			if len(people) == 0 {
				fmt.Printf("there is nobody yet; '%s init' makes the first person\n", Self())
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tROLE\tSINCE")
			for _, p := range people {
				since := p.Created
				if t, err := time.Parse(time.RFC3339Nano, since); err == nil {
					since = t.UTC().Format(time.RFC3339)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", OneLine(p.Name), p.Role, since)
			}
			return w.Flush()
		},
	}
}

func (a *App) personRole() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		Use: "role NAME ROLE", Short: "Give somebody another role",
		Long: `Give somebody another role. It takes an admin's passphrase and holds from the next
decision on. The last admin stays one.

` + rolesHelp,
		Example: "  writ person role bob operator\n  writ person role bob viewer --as alice     bob decides nothing any more",
		Args:    nameAndRole,
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.connectAs(cmd.Context(), &src)
			if err != nil {
				return err
			}
			by, err := src.admin(cmd.Context())
			if err != nil {
				return err
			}
			if err := daemon.SetRole(cmd.Context(), args[0], args[1], by); err != nil {
				return err
			}
			return a.Tell(fmt.Sprintf("%s has the role %s now", args[0], args[1]), map[string]string{"status": "changed", "name": args[0], "role": args[1]})
		},
	}
	c.ValidArgsFunction = a.offerRole(personNames)
	a.PersonFlags(c, &src)
	return c
}

func (a *App) personPassphrase() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		Use: "passphrase [NAME]", Short: "Change your passphrase, or as an admin reset somebody else's",
		Long: `Change a passphrase. Your own takes the old one. With --as an admin resets the one
of NAME, who then chooses a new one at the prompt. Lost, and no other admin there:
writ person recover.`,
		Example: "  writ person passphrase                   yours, when you are the only person\n  writ person passphrase bob               bob's own, with his old one\n  writ person passphrase bob --as alice    alice, an admin, resets bob's",
		Args:    atMostOne("at most one name; 'writ person list' shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			return a.changePassphrase(cmd.Context(), daemon, first(args), &src)
		},
	}
	c.ValidArgsFunction = a.offer(personNames)
	a.PersonFlags(c, &src)
	c.Flags().Lookup("as").Usage = "who you are (default: NAME, else the only person there is)"
	c.Flags().Lookup("passphrase-stdin").Usage = twoLines
	return c
}

func (a *App) changePassphrase(ctx context.Context, daemon *client.Client, whose string, src *PassphraseSource) error {
	people, err := daemon.People().All(ctx)
	if err != nil {
		return err
	}
	if whose = cmp.Or(whose, src.Name); whose == "" {
		if len(people) != 1 {
			return Usagef("there are %d people; name one: writ person passphrase NAME", len(people))
		}
		whose = people[0].Name
	}
	if !slices.ContainsFunc(people, func(p client.Person) bool { return p.Name == whose }) {
		return fmt.Errorf("there is no person %q; 'writ person list' shows who there is", whose)
	}
	src.Name = cmp.Or(src.Name, whose)
	var by client.Credentials
	var pass string
	if src.Name == whose {
		by.Name = whose
		if by.Passphrase, err = src.read(ctx, fmt.Sprintf("Old passphrase of %s: ", OneLine(whose))); err != nil {
			return err
		}
		pass, err = src.Chosen(ctx)
	} else {
		if by, err = src.admin(ctx); err != nil {
			return err
		}
		pass, err = src.chosenBy(ctx, whose)
	}
	if err != nil {
		return err
	}
	if err := daemon.SetPassphrase(ctx, whose, pass, by); err != nil {
		return err
	}
	return a.Tell("changed the passphrase of "+whose, map[string]string{"status": "changed", "name": whose})
}

func (a *App) personRecover() *cobra.Command {
	var src PassphraseSource
	c := &cobra.Command{
		Use: "recover NAME", Short: "Set a lost passphrase anew, with the daemon stopped",
		Long: `Set a new passphrase for NAME without the old one, where no admin can reset it.
What stands for the old one is access to the store's files, so the daemon must be
stopped, and it is written down: everybody who reads the ledger sees it.`,
		Example: "  writ serve --stop\n  writ person recover alice",
		Args:    Exactly(1, "a person's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.store == nil {
				return handOver()
			}
			name := args[0]
			path, err := config.Path(a.ConfigFlag)
			if err != nil {
				return err
			}
			err = a.store.Recover(cmd.Context(), path, name, func() (string, error) { return src.chosenBy(cmd.Context(), name) })
			if errors.Is(err, store.ErrLocked) {
				return fmt.Errorf("%w: a passphrase is recovered while no daemon runs; '%s serve --stop' ends it", err, Self())
			}
			if err != nil {
				return err
			}
			return a.Tell(fmt.Sprintf("set a new passphrase for %s; the old one is good no more\nthe ledger has it as person.recovered", name),
				map[string]string{"status": "recovered", "name": name, "recorded": "person.recovered"})
		},
	}
	c.ValidArgsFunction = a.offer(personNames)
	c.Flags().BoolVar(&src.Stdin, "passphrase-stdin", false, "read the new passphrase from standard input, for password managers")
	return c
}

// admin reads the passphrase of whoever acts, where another is asked for as well.
func (p *PassphraseSource) admin(ctx context.Context) (client.Credentials, error) {
	prompt := "Your passphrase, as an admin: "
	if p.Name != "" {
		prompt = fmt.Sprintf("Passphrase of %s, as an admin: ", OneLine(p.Name))
	}
	pass, err := p.read(ctx, prompt)
	return client.Credentials{Name: p.Name, Passphrase: pass}, err
}

// chosenBy is chosen, by somebody who may not be the one at the keyboard.
func (p *PassphraseSource) chosenBy(ctx context.Context, name string) (string, error) {
	if !p.Stdin {
		fmt.Fprintf(os.Stderr, "%s chooses a passphrase now, which nobody else should see.\n", OneLine(name))
	}
	return p.Chosen(ctx)
}

// Tell says what was done, to a person or as JSON.
func (a *App) Tell(text string, v any) error {
	if a.JSON {
		return PrintJSON(v)
	}
	fmt.Println(text)
	return nil
}
