package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/wire"
)

// clientEntry is one server in an MCP client's file, as the client has it.
type clientEntry struct {
	name string
	raw  map[string]json.RawMessage
}

// clientServers reads the servers of a client's file, in the order of their names. The
// file has to be JSON that every reader reads the same.
func clientServers(text []byte) ([]clientEntry, error) {
	if err := wire.Check(text); err != nil {
		return nil, fmt.Errorf("%w (a file with comments has to be without them)", err)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, errors.New("it is not a JSON object; name a client's file with mcpServers or servers")
	}
	var found []string
	for _, key := range []string{"mcpServers", "servers"} {
		if _, ok := file[key]; ok {
			found = append(found, key)
		}
	}
	switch {
	case len(found) == 0:
		return nil, errors.New("it has neither mcpServers nor servers at its top; name a client's file that has")
	case len(found) == 2:
		return nil, errors.New("it has both mcpServers and servers; remove one")
	}
	var servers map[string]json.RawMessage
	if err := json.Unmarshal(file[found[0]], &servers); err != nil {
		return nil, fmt.Errorf("%s is not an object; it names servers, each with a command or a url", found[0])
	}
	var out []clientEntry
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		e := clientEntry{name: name}
		if err := json.Unmarshal(servers[name], &e.raw); err != nil || e.raw == nil {
			return nil, fmt.Errorf("%s.%s is not an object with a command or a url", found[0], name)
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s is empty", found[0])
	}
	return out, nil
}

// pointless are keys of clients that say nothing of the server: what it may do here is
// decided here.
var pointless = []string{"alwaysAllow", "autoApprove", "description", "gallery", "icon", "timeout", "trust", "version"}

// server is the entry as writ has it, or why it is left out.
func (e clientEntry) server() (u config.Upstream, skip string, err error) {
	var kind, cwd string
	var off bool
	for _, key := range slices.Sorted(maps.Keys(e.raw)) {
		into, known := map[string]any{
			"type": &kind, "transport": &kind, "command": new(string), "args": new([]string), "env": &u.Env, "cwd": &cwd, "url": &u.URL, "headers": &u.Headers, "disabled": &off,
		}[key]
		switch {
		case slices.Contains(pointless, key):
			continue
		case !known:
			return u, "", fmt.Errorf("its key %s is not known here, so what the server is cannot be told; add it with 'writ upstream add'", key)
		}
		if err := json.Unmarshal(e.raw[key], into); err != nil {
			return u, "", fmt.Errorf("its key %s has a value of another type than clients take", key)
		}
		switch v := into.(type) {
		case *string:
			if key == "command" {
				u.Command = append([]string{*v}, u.Command...)
			}
		case *[]string:
			u.Command = append(u.Command, *v...)
		}
	}
	switch {
	case off:
		return u, "it is disabled in the client", nil
	case e.isWrit(u):
		return u, "it is writ itself", nil
	case (e.raw["command"] == nil) == (u.URL == ""):
		return u, "", errors.New("it has to have a command or a url, and one of them alone")
	}
	if err := e.transport(kind, u); err != nil {
		return u, "", err
	}
	if cwd != "" && !filepath.IsAbs(cwd) {
		return u, "", errors.New("its cwd is not an absolute path; write it out")
	}
	if u.Dir = cwd; u.URL == "" && strings.Contains(u.Command[0], "/") && !filepath.IsAbs(u.Command[0]) {
		return u, "", errors.New("its command is a relative path; write it out")
	}
	return u, "", nil
}

// isWrit tells an entry that starts writ as a server: behind itself it would be a loop.
func (e clientEntry) isWrit(u config.Upstream) bool {
	if len(u.Command) < 2 {
		return false
	}
	base := path.Base(strings.ReplaceAll(u.Command[0], `\`, "/"))
	return strings.TrimSuffix(base, ".exe") == "writ" && u.Command[1] == "mcp"
}

func (e clientEntry) transport(kind string, u config.Upstream) error {
	over := map[string]bool{"http": true, "streamable-http": true, "streamableHttp": true, "streamable_http": true}
	switch {
	case kind == "sse":
		return errors.New("its transport is sse, which newer protocols replaced and writ does not speak; where the server has an address for streamable HTTP: writ upstream add NAME --url URL")
	case kind == "", kind == "stdio" && u.URL == "", over[kind] && u.URL != "":
		return nil
	}
	return fmt.Errorf("its type is %q, and it has to be stdio with a command or http with a url", kind)
}

// references refuses what only the client fills in. The daemon has none of its variables,
// and taking the text as it is would start the server with something else.
func references(u config.Upstream, cwd string) error {
	texts := map[string]string{"url": u.URL, "cwd": cwd}
	for i, a := range u.Command {
		texts[fmt.Sprintf("args[%d]", i-1)] = a
		if i == 0 {
			delete(texts, "args[-1]")
			texts["command"] = a
		}
	}
	for k, v := range u.Env {
		texts["env."+k] = v
	}
	for k, v := range u.Headers {
		texts["headers."+k] = v
	}
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		_, rest, found := strings.Cut(texts[at], "${")
		if !found {
			continue
		}
		name, _, _ := strings.Cut(rest, "}")
		return fmt.Errorf("its %s refers to ${%s}, which only its client fills in; name the server after the file and give the value: --env, or --secret-env and --bearer for one that 'writ secret set' keeps; or put it in a copy of the file", at, name)
	}
	return nil
}
