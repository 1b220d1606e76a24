package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

// setup is what init does to a store: on the daemon when one runs, else on an
// engine of its own.
type setup interface {
	People(context.Context) ([]store.Person, error)
	AddFirstPerson(context.Context, engine.Credentials) error
	NewToken(ctx context.Context, agent string, by engine.Credentials) (token, id string, err error)
}

// running is a daemon that runs.
type running struct{ *client.Client }

func (r running) People(ctx context.Context) ([]store.Person, error) {
	var out []store.Person
	for p, err := range r.Client.People().Each(ctx) {
		if err != nil {
			return nil, err
		}
		out = append(out, store.Person{Name: p.Name, Role: p.Role, Created: p.Created})
	}
	return out, nil
}

func (r running) AddFirstPerson(ctx context.Context, by engine.Credentials) error {
	return r.Client.AddFirstPerson(ctx, client.Credentials(by))
}

func (r running) NewToken(ctx context.Context, agent string, by engine.Credentials) (token, id string, err error) {
	made, err := r.Client.NewToken(ctx, agent, client.Credentials(by))
	return made.Token, made.ID, err
}

func (a *app) initCommand() *cobra.Command {
	var src cli.PassphraseSource
	var workspace, agent string
	var noPerson bool
	c := &cobra.Command{
		Use:   "init",
		Short: "Set up: a commented configuration, yourself with a passphrase, an agent's token",
		Long: `Set up writ for your user. It writes a commented starting configuration unless
there is one, with a directory that the agent works in, which it makes unless it
is there; makes you the first person who can approve (choose a passphrase); and
makes a token for the agent, which is shown once. It changes nothing that is there
already, so it can be run again.`,
		Example: `  writ init
  writ init --workspace ~/src/app --agent coder
  pass show writ | writ init --passphrase-stdin`,
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !config.ValidName(agent) {
				return cli.Usagef("an agent's name has letters, digits, _ . and -")
			}
			if src.Name == "" {
				src.Name = cli.UserName()
			}
			if err := a.writeStarter(agent, src.Name, workspace); err != nil {
				return err
			}
			if noPerson {
				return nil
			}
			return a.setUp(cmd.Context(), &src)
		},
	}
	c.Flags().StringVar(&workspace, "workspace", "", "directory the agent works in (default "+defaultWorkspace()+")")
	c.Flags().StringVar(&agent, "agent", "coder", "name of the agent")
	c.Flags().BoolVar(&noPerson, "no-person", false, "write the configuration only")
	a.PersonFlags(c, &src)
	return c
}

// defaultWorkspace is outside root's home, which other users cannot enter: boxes
// never run as root.
func defaultWorkspace() string {
	home, err := os.UserHomeDir()
	if err != nil || os.Geteuid() == 0 {
		return "/srv/writ-workspace"
	}
	return filepath.Join(home, "writ-workspace")
}

func (a *app) writeStarter(agent, person, workspace string) error {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		fmt.Printf("configuration  %s (kept as it is)\n", path)
		if workspace != "" {
			fmt.Println("               --workspace is for a new configuration; edit this one instead")
		}
		return nil
	}
	if workspace == "" {
		workspace = defaultWorkspace()
	}
	if workspace, err = filepath.Abs(workspace); err != nil {
		return err
	}
	if err := makeWorkspace(workspace); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(config.Starter(agent, person, workspace))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if _, err := catalog.Config(path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	fmt.Printf("configuration  %s\nworkspace      %s\n", path, workspace)
	return nil
}

// nobody is the user that owns a workspace which root makes.
const nobody = 65534

func makeWorkspace(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	root, owner := os.Geteuid() == 0, ""
	if root {
		owner = ", and gives it to user nobody, whom commands run as because you are root"
	}
	fmt.Printf("this makes the directory %s for agents to work in%s; --workspace DIR names another\n", dir, owner)
	if err := os.MkdirAll(dir, 0o755); err != nil || !root {
		return err
	}
	return os.Chown(dir, nobody, nobody)
}

// setUp makes the first person and a token, through the daemon or without one.
func (a *app) setUp(ctx context.Context, src *cli.PassphraseSource) error {
	cfg, err := a.LoadConfig()
	if err != nil {
		return err
	}
	daemon := client.Dial(cfg.StatePath)
	if _, err := daemon.Health(ctx); err == nil {
		return a.setUpOn(ctx, running{daemon}, cfg, src)
	}
	e, err := engine.Open(ctx, engine.Options{Config: cfg.Path})
	if err != nil {
		return err
	}
	return errors.Join(a.setUpOn(ctx, e, cfg, src), e.Close())
}

func (a *app) setUpOn(ctx context.Context, s setup, cfg *config.Config, src *cli.PassphraseSource) error {
	people, err := s.People(ctx)
	if err != nil {
		return err
	}
	if len(people) > 0 {
		fmt.Printf("person         %s (there already)\n\n'%s agent token NAME' makes another token.\n", people[0].Name, cli.Self())
		return nil
	}
	pass, err := src.Chosen(ctx)
	if err != nil {
		return err
	}
	me := engine.Credentials{Name: src.Name, Passphrase: pass}
	if err := s.AddFirstPerson(ctx, me); err != nil {
		return err
	}
	fmt.Printf("person         %s, who can approve\n", me.Name)
	if len(cfg.Agents) == 0 {
		return nil
	}
	agent := cfg.Agents[0].Name
	token, id, err := s.NewToken(ctx, agent, me)
	if err != nil {
		return err
	}
	cli.ShowToken(agent, token, id)
	fmt.Print(strings.ReplaceAll(`Then try:
  SELF call write_file path=hello.txt content=hi     allowed
  SELF call read_file path=/etc/shadow               denied, and why
  SELF call delete_file path=hello.txt               asks: it waits until you approve it in another terminal with
      SELF approval list
      SELF approval approve ID
  SELF ledger verify                                 nothing was edited, removed or rolled back
`, "SELF", cli.Self()))
	return nil
}
