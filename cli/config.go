package cli

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/config"
)

func (a *App) configCommand() *cobra.Command {
	return Noun("config", "The configuration",
		"  writ config check\n  writ config show --effective\n  writ config reload",
		a.configCheck(), a.configShow(), a.configReload())
}

func (a *App) configCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check the configuration without starting anything", Args: Exactly(0, "no arguments"), Example: "  writ config check\n  writ config check --config new.yaml",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.LoadConfig()
			if err != nil {
				return err
			}
			if a.JSON {
				return PrintJSON(map[string]any{"path": cfg.Path, "digest": cfg.Digest, "warnings": cfg.Warnings})
			}
			for _, w := range cfg.Warnings {
				fmt.Println("warning:", w)
			}
			fmt.Printf("%s holds: %d agents\n", cfg.Path, len(cfg.Agents))
			return nil
		},
	}
}

func (a *App) configShow() *cobra.Command {
	var effective bool
	c := &cobra.Command{
		Use: "show", Short: "Show the values of the configuration and where each came from", Args: Exactly(0, "no arguments"),
		Example: "  writ config show\n  writ config show --effective     also what is built in",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.LoadConfig()
			if err != nil {
				return err
			}
			var values []config.Value
			for _, v := range cfg.Effective() {
				if effective || v.From != access.BuiltIn {
					values = append(values, v)
				}
			}
			if a.JSON {
				return PrintJSON(values)
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			for _, v := range values {
				fmt.Fprintf(w, "%s\t%s\t%s\n", v.Key, OneLine(v.Value), v.From)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&effective, "effective", false, "also what is built in")
	return c
}
