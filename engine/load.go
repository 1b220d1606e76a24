package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/define"
)

// LoadConfig reads and checks a configuration and the definitions beside it, as far
// as that can be done without starting anything; with files of servers as they are
// planned to be, and not yet written.
func LoadConfig(path string, planned ...config.ServerFile) (*config.Config, error) {
	cfg, _, err := load(path, nil, planned...)
	return cfg, err
}

// load reads everything there is on disk, and checks that it holds together.
func load(path string, registered []*tool.Tool, planned ...config.ServerFile) (*config.Config, []*define.Loaded, error) {
	built, err := builtins(nil, nil, nil)
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
		return sortedNames(names), nil
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
				return fmt.Errorf("%stool %s: constraints.only_after names %q, and there is no such tool%s", files[t.Name], t.Name, name, spell.Hint(name, sortedNames(after)))
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
