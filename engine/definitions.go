package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/define"
	"github.com/writ-run/writ/wire"
)

// ToolDiff is a definition as it is in its file against what a person accepted.
type ToolDiff struct {
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Digest   string   `json:"digest"`             // as it is now; accepting echoes it
	Accepted string   `json:"accepted,omitempty"` // the digest that was accepted; empty: none was
	By       string   `json:"accepted_by,omitempty"`
	At       string   `json:"accepted_at,omitempty"`
	Changes  []Change `json:"changes"`
	Stays    string   `json:"stays,omitempty"` // what accepting it does not lower
}

// Change is one value of a definition that differs. An empty side is not there.
type Change struct {
	Key string `json:"key"`
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}

// DiffTool shows what changed in a definition since a person accepted it; the whole
// of it where none was accepted.
func (e *Engine) DiffTool(name string) (ToolDiff, error) { return e.at().diff(name) }

func (r *rules) diff(name string) (ToolDiff, error) {
	t, ok := r.defined[name]
	if !ok {
		if _, built := r.catalog.Lookup(name); built {
			return ToolDiff{}, writ.Fail(writ.NotFound, fmt.Sprintf("tool %s is part of the program; only definitions from files are accepted", name), nil)
		}
		return ToolDiff{}, tool.Missing(name, sortedNames(r.defined))
	}
	was := r.accepted[name]
	d := ToolDiff{Name: name, File: r.files[name], Digest: t.Digest.String(), Accepted: was.Digest, By: was.By, At: was.Accepted, Changes: []Change{}}
	if was.Digest == d.Digest {
		return d, nil
	}
	d.Stays = r.stays(t)
	before, after := flat(was.Body), flat(t.Canonical())
	keys := slices.Concat(sortedNames(before), sortedNames(after))
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		if before[k] != after[k] {
			d.Changes = append(d.Changes, Change{k, before[k], after[k]})
		}
	}
	return d, nil
}

// flat is every leaf of a JSON text by its dotted path.
func flat(text string) map[string]string {
	out := map[string]string{}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return out
	}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				walk(strings.TrimPrefix(key+"."+k, "."), e)
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s[%d]", key, i), e)
			}
		default:
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false) // a person reads it
			enc.Encode(v)            // it was JSON
			out[key] = strings.TrimSuffix(b.String(), "\n")
		}
	}
	walk("", v)
	return out
}

// AcceptTool lets a definition be used as it is in its file now. It takes a person,
// and the digest of what they were shown.
func (e *Engine) AcceptTool(ctx context.Context, name, digest string, cred Credentials) error {
	if _, err := e.DiffTool(name); err != nil {
		return err
	}
	by, err := e.person(ctx, cred, "operate")
	if err != nil {
		return err
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	r := e.at()
	if _, err := r.diff(name); err != nil {
		return err
	}
	t, err := r.defined[name], error(nil)
	if !strings.HasPrefix(r.files[name], fromServer) { // of a server, what it offers now is what there is
		t, err = fresh(r.files[name], r.cfg.Types)
	}
	if err != nil {
		return writ.Fail(writ.Invalid, "the definition does not hold any more: "+err.Error(), nil)
	}
	if t.Digest.String() != digest || r.defined[name].Digest != t.Digest {
		return writ.Fail(writ.Changed, fmt.Sprintf("the definition of %s is not the one that was shown; 'writ config reload', then look again: writ tool diff %s", name, name), nil)
	}
	if r.accepted[name].Digest == digest {
		return writ.Fail(writ.Conflict, fmt.Sprintf("tool %s is accepted as it is already", name), nil)
	}
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		err := tx.AddDefinition(store.Definition{Name: name, Digest: digest, Body: t.Canonical(), Accepted: e.ledger.Now(), By: by})
		return ledger.Entry{Kind: "tool.accepted", Person: by, Data: []wire.Field{wire.Str("tool", name), wire.Str("definition", digest)}}, err
	})
	if err != nil {
		return err
	}
	return e.change(ctx, r.cfg, r.loaded)
}

// fresh is the tool of a definition's file as it is at this moment.
func fresh(file string, types *action.Registry) (*tool.Tool, error) {
	l, err := define.Load(file, types)
	if err != nil {
		return nil, err
	}
	return l.Tool(nil)
}
