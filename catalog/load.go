// Package catalog is the tools that come with the program, and the configuration that holds
// together with them: as much as can be known without starting anything.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/egress/gitssh"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/define"
)

// Config is what Load reads, without the definitions.
func Config(path string, planned ...config.ServerFile) (*config.Config, error) {
	cfg, _, err := Load(path, nil, planned...)
	return cfg, err
}

// Load reads and checks a configuration and the definitions beside it, as far as that can be
// done without starting anything; with tools that a program registers, and with files of
// servers as they are planned to be, and not yet written.
func Load(path string, registered []*tool.Tool, planned ...config.ServerFile) (*config.Config, []*define.Loaded, error) {
	built, err := Builtins(Sources{})
	if err != nil {
		return nil, nil, err
	}
	tools := slices.Concat(built, registered)
	var loaded []*define.Loaded
	cfg, err := config.Load(path, func(types *action.Registry) ([]string, error) {
		if loaded, err = definitions(path, types); err != nil {
			return nil, err
		}
		names := map[string]bool{}
		for _, t := range tools {
			names[t.Name] = true
		}
		for _, l := range loaded {
			names[l.Definition.Name] = true
		}
		return slices.Sorted(maps.Keys(names)), nil
	}, planned...)
	if err != nil {
		return nil, nil, err
	}
	if err := usable(cfg.SSH); err != nil {
		return nil, nil, err
	}
	cfg.Warnings = append(cfg.Warnings, strangers(cfg.SSH)...)
	if err := known(cfg.Types, registered); err != nil {
		return nil, nil, err
	}
	for _, l := range loaded {
		t, err := l.Tool(nil)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.File, err)
		}
		tools = append(tools, t)
	}
	if _, err := tool.NewCatalog(tools...); err != nil {
		return nil, nil, err
	}
	return cfg, loaded, orderly(cfg, tools, loaded)
}

// definitions reads those beside a configuration, in tools, where no agent can
// write. Nobody has to have any.
func definitions(configPath string, types *action.Registry) ([]*define.Loaded, error) {
	dir := filepath.Join(filepath.Dir(configPath), "tools")
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return define.Dir(dir, types)
}

// known refuses registered tools of a category or an action type that there is not:
// no rule would speak of them.
func known(types *action.Registry, registered []*tool.Tool) error {
	for _, t := range registered {
		if !t.Category.Known() {
			return fmt.Errorf("tool %s: there is no category %q", t.Name, t.Category)
		}
		for _, a := range t.Actions() {
			if !types.Has(a) {
				var all []string
				for _, k := range types.Types() {
					all = append(all, string(k))
				}
				return fmt.Errorf("tool %s: there is no action type %q%s", t.Name, a, spell.Hint(string(a), all))
			}
		}
	}
	return nil
}

// orderly refuses tools that could never run: after one that is not there, or
// after each other.
func orderly(cfg *config.Config, tools []*tool.Tool, loaded []*define.Loaded) error {
	after, files := map[string][]string{}, map[string]string{}
	for _, l := range loaded {
		files[l.Definition.Name] = l.File + ": "
	}
	for _, t := range tools {
		after[t.Name] = slices.Concat(t.Constraints.OnlyAfter, cfg.Limits[t.Name].OnlyAfter)
	}
	for _, t := range tools {
		for _, name := range t.Constraints.OnlyAfter {
			if _, ok := after[name]; !ok {
				return fmt.Errorf("%stool %s: constraints.only_after names %q, and there is no such tool%s", files[t.Name], t.Name, name, spell.Hint(name, slices.Sorted(maps.Keys(after))))
			}
		}
	}
	var walk func(name string, path []string) error
	walk = func(name string, path []string) error {
		if slices.Contains(path, name) {
			return fmt.Errorf("tools %s: each runs only after the next, so none could ever run; remove one from only_after", strings.Join(append(path, name), " → "))
		}
		for _, n := range after[name] {
			if err := walk(n, append(path[:len(path):len(path)], name)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, t := range tools {
		if err := walk(t.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// strangers are the servers that nobody could sign in at, since their keys are not known. One
// may be made known while the daemon runs, so that is no error yet.
func strangers(said config.SSH) []string {
	var out []string
	for at, l := range said.Hosts {
		if _, err := gitssh.KnownOf(at.String(), said.KnownHosts); err != nil {
			out = append(out, fmt.Sprintf("%s: %v", l.At, err))
		}
	}
	slices.Sort(out)
	return out
}

// usable refuses keys in files that could not be used when they are needed. What is kept
// elsewhere may come later.
func usable(said config.SSH) error {
	for _, l := range said.Hosts {
		if l.Key.Backend != "file" {
			continue
		}
		v, err := secret.File{}.Read(context.Background(), l.Key)
		if err == nil {
			_, err = gitssh.ParseKey(v.Reveal())
		}
		if err != nil {
			return fmt.Errorf("%s: the key %s: %w", l.At, l.Key, err)
		}
	}
	return nil
}
