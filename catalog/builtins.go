package catalog

import (
	"slices"

	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/admin"
	"github.com/writ-run/writ/tool/discover"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/tool/files"
	"github.com/writ-run/writ/tool/git"
	"github.com/writ-run/writ/tool/web"
)

// Sources are what the tools work with. With none, they are there to be looked at.
type Sources struct {
	Exec      exec.Options
	Web       web.Options
	Git       git.Options
	Disclosed discover.Source
	External  *external.Client
	Own       admin.Source
}

// Builtins are the tools of this program.
func Builtins(s Sources) ([]*tool.Tool, error) {
	var all []*tool.Tool
	for _, make := range []func() ([]*tool.Tool, error){
		files.Tools,
		func() ([]*tool.Tool, error) { return exec.Tools(s.Exec) },
		func() ([]*tool.Tool, error) { return git.Tools(s.Git) },
		func() ([]*tool.Tool, error) { return web.Tools(s.Web) },
		func() ([]*tool.Tool, error) { return discover.Tools(s.Disclosed) },
		func() ([]*tool.Tool, error) { return external.Tools(s.External) },
		func() ([]*tool.Tool, error) { return admin.Tools(s.Own) },
	} {
		made, err := make()
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, made)
	}
	return all, nil
}
