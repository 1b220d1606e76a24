package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/sandbox/image"
)

func (a *app) imagePrune(host *string) *cobra.Command {
	var o image.PruneOptions
	c := &cobra.Command{
		Use: "prune", Short: "Remove images that were built here and that nothing uses any more", Args: cli.Exactly(0, "no arguments"),
		Long: `Remove images that were built here by a recipe that is stale, and that no container uses,
running or not. With --all those of today's recipes go too. An image that others are built
on stays with them, and so does what the configuration (sandboxing.docker.image) or --keep
names. Images of others are never touched.`,
		Example: `  writ image prune --dry-run
  writ image prune --all --keep writ-sandbox:latest`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			said, err := a.containerKeys() // one that does not load names who knows which image
			if err != nil {
				return err
			}
			if said.Image != "" {
				o.Keep = append(o.Keep, said.Image)
			}
			e, err := a.containerEngine(cmd.Context(), *host)
			if err != nil {
				return err
			}
			defer e.Close()
			all, err := e.Prune(cmd.Context(), o)
			if shown := a.tellPruned(all, o); shown != nil && err == nil {
				err = shown
			}
			return err
		},
	}
	c.Flags().BoolVar(&o.All, "all", false, "remove those of today's recipes too")
	c.Flags().StringArrayVar(&o.Keep, "keep", nil, "a tag or an id to keep; can be given more than once")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be removed")
	err := c.RegisterFlagCompletionFunc("keep", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.imageTags(cmd, *host), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // a flag that does not exist: a programming error
	}
	return c
}

// imageTags are the names of the images that were built here; nothing to offer is no error.
func (a *app) imageTags(cmd *cobra.Command, host string) (out []string) {
	e, err := a.containerEngine(cmd.Context(), host)
	if err != nil {
		return nil
	}
	defer e.Close()
	all, _ := e.List(cmd.Context())
	for _, i := range all {
		out = append(out, i.Tags...)
	}
	return out
}

func (a *app) tellPruned(all []image.Pruned, o image.PruneOptions) error {
	removed, kept := []imageShown{}, []imageShown{}
	for _, p := range all {
		s := shownImage(p.Image)
		if s.Kept = p.Kept; s.Kept != "" {
			kept = append(kept, s)
		} else {
			removed = append(removed, s)
		}
	}
	if a.JSON {
		return cli.PrintJSON(struct {
			Removed []imageShown `json:"removed"`
			Kept    []imageShown `json:"kept"`
			DryRun  bool         `json:"dry_run"`
		}{removed, kept, o.DryRun})
	}
	did := "removed"
	if o.DryRun {
		did = "would remove"
	}
	for _, s := range removed {
		fmt.Printf("%s %s %s (%s, %s)\n", did, cli.OneLine(s.Name), cli.ShortID(s.ID), tagsOf(s), megabytes(s.Size))
	}
	for _, s := range kept {
		fmt.Printf("kept %s %s (%s): %s\n", cli.OneLine(s.Name), cli.ShortID(s.ID), tagsOf(s), s.Kept)
	}
	if len(removed) == 0 {
		fmt.Println("there is nothing to remove")
	}
	return nil
}
