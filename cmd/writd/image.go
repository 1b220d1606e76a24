package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/sandbox/image"
	"github.com/writ-run/writ/spell"
)

func (a *app) imageCommand() *cobra.Command {
	var host string
	c := cli.Noun("image", "Container images that sandboxes run in: build, list, prune",
		"  writ image build sandbox\n  writ image build browser --from-debootstrap\n  writ image list\n  writ image prune --dry-run",
		a.imageBuild(&host), a.imageList(&host), a.imagePrune(&host))
	var about strings.Builder
	for _, r := range image.Recipes() {
		fmt.Fprintf(&about, "  %-11s %s\n", r.Name, r.About)
	}
	c.Long = `Container images that sandboxes of the driver docker run in, made by Docker or Podman
on this machine, the one that the configuration means or --host. They are yours to make: no agent
can. These can be built:

` + about.String() + `
Images that were made here carry the label writ.managed=true. No others are listed or
removed, nor are those that somebody built on one of them.`
	c.PersistentFlags().StringVar(&host, "host", "", "where the engine listens, such as unix:///run/podman/podman.sock (default sandboxing.docker.host of the configuration, else $DOCKER_HOST, else the sockets of Docker and Podman)")
	return c
}

// containerEngine is the one that the driver docker uses too, unless another is named.
func (a *app) containerEngine(ctx context.Context, host string) (*image.Engine, error) {
	if host == "" {
		said, err := a.containerKeys()
		if err != nil {
			return nil, err
		}
		host = said.Host
	}
	return image.Open(ctx, host)
}

// containerKeys is what the configuration says of containers, where there is one.
func (a *app) containerKeys() (config.Docker, error) {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return config.Docker{}, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && a.ConfigFlag == "" && os.Getenv("WRIT_CONFIG") == "" {
		return config.Docker{}, nil
	}
	cfg, err := a.LoadConfig()
	if err != nil {
		return config.Docker{}, err
	}
	return cfg.File.Sandboxing.Docker, nil
}

// longestBuild is when a build has hung: a mirror that says nothing ends it.
const longestBuild = 2 * time.Hour

func (a *app) imageBuild(host *string) *cobra.Command {
	var r image.Request
	var verbose bool
	c := &cobra.Command{
		Use: "build NAME", Short: "Build an image, and say what to write into the configuration",
		Long: `Build an image. It is built on debian:bookworm-slim, which is pulled where it is not
there; --from names another image of Debian or one like it, --from-debootstrap makes one
of Debian's packages on this machine, which takes root and no registry. What others are
built on is built first. Ctrl-C ends a build; the next one goes on from where it was.

The answer has the image's id. In a configuration the id is this image and no other,
whatever becomes of the tag.`,
		Example: `  writ image build sandbox
  writ image build sandbox --from debian:trixie-slim --tag ours/sandbox:2
  writ image build browser --from-debootstrap
  writ image build sandbox --from-debootstrap=trixie --no-cache`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && cmd.Flags().Changed("from-debootstrap") {
				return cli.Usagef("write the suite behind an equals sign: --from-debootstrap=%s", args[1])
			}
			return cli.Exactly(1, "what to build: "+strings.Join(recipeNames(), ", "))(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var out []string
			for _, r := range image.Recipes() {
				out = append(out, r.Name+"\t"+r.About)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(recipeNames(), args[0]) {
				return cli.Usagef("there is no image %q to build%s; there are %s", args[0], spell.Hint(args[0], recipeNames()), strings.Join(recipeNames(), ", "))
			}
			if r.From != "" && r.Suite != "" {
				return cli.Usagef("an image is built on one base: leave out --from or --from-debootstrap")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), longestBuild)
			defer cancel()
			e, err := a.containerEngine(ctx, *host)
			if err != nil {
				return err
			}
			defer e.Close()
			began := time.Now()
			show := newProgress(os.Stderr, verbose)
			r.Name, r.Progress = args[0], show.line
			built, err := e.Build(ctx, r)
			show.end()
			if err != nil {
				return err
			}
			return a.tellBuilt(built, *host, time.Since(began))
		},
	}
	c.Flags().StringVar(&r.From, "from", "", "the image to build on (default "+image.DefaultBase+")")
	c.Flags().StringVar(&r.Suite, "from-debootstrap", "", "make the base on this machine with debootstrap, of this suite of Debian (bookworm where none is written)")
	c.Flags().Lookup("from-debootstrap").NoOptDefVal = "bookworm"
	c.Flags().StringVar(&r.Tag, "tag", "", "name and tag of the image (default writ-NAME:latest)")
	c.Flags().BoolVar(&r.Fresh, "no-cache", false, "use nothing that was made before, so that every package is the newest")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show all that the steps say")
	return c
}

func recipeNames() []string {
	var out []string
	for _, r := range image.Recipes() {
		out = append(out, r.Name)
	}
	return out
}

type builtShown struct {
	Name    string  `json:"name"`
	Tag     string  `json:"tag"`
	ID      string  `json:"id"`
	Base    string  `json:"base"`
	Size    int64   `json:"size"`
	Seconds float64 `json:"seconds"`
}

func (a *app) tellBuilt(b image.Built, host string, took time.Duration) error {
	if host != "" { // other than the one that is looked for without a word
		host = "\n    host: " + cli.OneLine(host)
	}
	return a.Tell(fmt.Sprintf(`built %s: %s, %s
In the configuration, under sandboxing, it is:

  docker:%s
    image: %s`, cli.OneLine(b.Tag), megabytes(b.Size), cli.Span(took), host, cli.OneLine(b.ID)),
		builtShown{b.Name, b.Tag, b.ID, b.Base, b.Size, took.Seconds()})
}

// megabytes is a size as engines show it: a million bytes each.
func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

type imageShown struct {
	Name    string   `json:"name"`
	Tags    []string `json:"tags"`
	ID      string   `json:"id"`
	Size    int64    `json:"size"`
	Created string   `json:"created"`
	Recipe  string   `json:"recipe"`
	Used    int      `json:"containers"`
	Kept    string   `json:"kept,omitempty"`
}

func shownImage(i image.Image) imageShown {
	recipe := "stale"
	if i.Current {
		recipe = "current"
	}
	tags := i.Tags
	if tags == nil {
		tags = []string{}
	}
	return imageShown{Name: i.Kind, Tags: tags, ID: i.ID, Size: i.Size, Created: i.Created.UTC().Format(time.RFC3339), Recipe: recipe, Used: i.Used}
}

func (a *app) imageList(host *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the images that were built here, the newest first", Args: cli.Exactly(0, "no arguments"),
		Long: `List the images that were built here. The recipe of one is stale when this program would
build it otherwise now; it still works. Sizes count layers that images share in each.`,
		Example: "  writ image list\n  writ image list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.containerEngine(cmd.Context(), *host)
			if err != nil {
				return err
			}
			defer e.Close()
			all, err := e.List(cmd.Context())
			if err != nil {
				return err
			}
			shown := []imageShown{}
			for _, i := range all {
				shown = append(shown, shownImage(i))
			}
			if a.JSON {
				return cli.PrintJSON(shown)
			}
			if len(shown) == 0 {
				fmt.Printf("there are none at %s; '%s image build sandbox' makes one\n", cli.OneLine(e.Host), cli.Self())
				return nil
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tTAG\tID\tSIZE\tCREATED\tRECIPE\tCONTAINERS")
			for _, s := range shown {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", cli.OneLine(s.Name), tagsOf(s), cli.ShortID(s.ID), megabytes(s.Size), cli.Ago(s.Created), s.Recipe, s.Used)
			}
			return w.Flush()
		},
	}
}

func tagsOf(s imageShown) string {
	if len(s.Tags) == 0 {
		return "-"
	}
	return cli.OneLine(strings.Join(s.Tags, " "))
}
