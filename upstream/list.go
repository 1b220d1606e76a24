package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/wire"
)

// The bounds of what is read of a server's lists.
const (
	mostTools     = 1000
	mostResources = 10_000
	mostTemplates = 1000
	mostPrompts   = 1000
	mostPages     = 100     // of one list
	mostListBytes = 8 << 20 // of one list
	listTime      = 30 * time.Second
)

// read asks a server for everything it offers.
func read(ctx context.Context, c *Conn, wanted func(toolName string) bool) (Offer, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	o := Offer{Version: c.Version(), Instructions: display.Visible(cut(string(c.o.Hide([]byte(c.about.Instructions))), mostDescription))}
	if c.about.ServerInfo != nil {
		info, err := json.Marshal(c.about.ServerInfo)
		if err == nil {
			info, err = clean(c.o.Hide(info))
		}
		if err != nil {
			o.refuse("server information", c.about.ServerInfo.Name, err)
		} else {
			o.ServerInfo = info
		}
	}
	lists := make([][]json.RawMessage, 4)
	for i, l := range []struct {
		list, method, key string
		most              int
	}{
		{"tools", "tools/list", "tools", mostTools},
		{"resources", "resources/list", "resources", mostResources},
		{"resources", "resources/templates/list", "resourceTemplates", mostTemplates},
		{"prompts", "prompts/list", "prompts", mostPrompts},
	} {
		if !c.has(l.list) {
			continue
		}
		var err error
		if lists[i], err = o.pages(ctx, c, l.method, l.key, l.most); err != nil {
			return Offer{}, fmt.Errorf("%s: %w", l.method, err)
		}
	}
	lists[0] = slices.DeleteFunc(lists[0], func(raw json.RawMessage) bool {
		m, err := entry(raw)
		return err == nil && !wanted(text(m["name"]))
	})
	o.tools(lists[0])
	o.resources(lists[1], "resource", "uri", &o.Resources)
	o.resources(lists[2], "resource template", "uriTemplate", &o.Templates)
	o.prompts(lists[3])
	o.seal(lists...)
	return o, nil
}

// pages reads one list to its end, or to one of the bounds: then what was read until
// there counts, and the offer says that there was more.
func (o *Offer) pages(ctx context.Context, c *Conn, method, key string, most int) ([]json.RawMessage, error) {
	var all []json.RawMessage
	size, seen := 0, map[string]bool{}
	stop := func(format string, args ...any) ([]json.RawMessage, error) {
		o.refuse("the rest of", method, fmt.Errorf(format, args...))
		return all, nil
	}
	var cursor []byte
	for page := 0; ; page++ {
		if page == mostPages {
			return stop("it has more than %d pages", mostPages)
		}
		var params []byte
		if cursor != nil {
			params = append(append([]byte(`{"cursor":`), cursor...), '}')
		}
		result, err := c.Call(ctx, method, params, nil)
		var said *ServerError
		if errors.As(err, &said) && said.Code == codeMethod {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if size += len(result); size > mostListBytes {
			return stop("it has more than %d bytes", mostListBytes)
		}
		found, err := elements(field(result, key))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if all = append(all, found...); len(all) > most {
			all = all[:most]
			return stop("it has more than %d entries", most)
		}
		next := field(result, "nextCursor")
		if len(next) == 0 || string(next) == "null" || string(next) == `""` {
			return all, nil
		}
		if next[0] != '"' || seen[string(next)] {
			return stop("its pages lead back to one that was read")
		}
		seen[string(next)] = true
		cursor = bytes.Clone(next)
	}
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// callParams are the parameters of tools/call.
func callParams(name string, args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	b := wire.AppendString([]byte(`{"name":`), name)
	return append(append(append(b, `,"arguments":`...), args...), '}')
}
