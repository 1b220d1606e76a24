package engine

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// Waiver is what a person lets a tool count as, less than it says or was.
type Waiver struct {
	Class        string // none, read_only or write; empty: as it is
	NotDangerous bool
	Reason       string
	Digest       string // of the definition that they were shown
}

// WaiveTool lets a tool count as less, as long as its definition is the one that was
// shown. It takes a person who operates; agents have no way here. What the operator's
// configuration says of the tool raises it all the same.
func (e *Engine) WaiveTool(ctx context.Context, name string, w Waiver, cred Credentials) error {
	if err := e.at().waivable(name); err != nil {
		return err
	}
	if err := checkReason(w.Reason); err != nil {
		return err
	}
	by, err := e.proven(ctx, cred, "operate")
	if err != nil {
		return err
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	r := e.at()
	if err := r.waivable(name); err != nil { // once more: another may have been quicker
		return err
	}
	was := r.registered[name]
	if was.Definition != w.Digest {
		return writ.Fail(writ.Changed, fmt.Sprintf("the definition of %s is not the one that was shown; look again: writ tool show %s", name, name), nil)
	}
	row, err := lowered(was, w)
	if err != nil {
		return err
	}
	row.Updated = e.ledger.Now()
	made := store.Waiver{ID: newID("waiver_"), Tool: name, Definition: was.Definition, Class: row.Class, Dangerous: row.Dangerous, Reason: w.Reason, By: by.Name, At: row.Updated}
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := still(tx, by, "operate"); err != nil {
			return ledger.Entry{}, err
		}
		if ok, err := tx.AddWaiver(made); err != nil || !ok {
			return ledger.Entry{}, orElse(err, waivedBefore(name))
		}
		return ledger.Entry{Kind: "tool.waived", Person: by.Name, Data: []wire.Field{
			wire.Str("waiver", made.ID), wire.Str("tool", name), wire.Str("definition", made.Definition), wire.Str("reason", made.Reason), wire.Str("factor", "passphrase"),
			wire.Str("class", made.Class), wire.Bool("dangerous", made.Dangerous), wire.Str("was_class", was.Unwaived), wire.Bool("was_dangerous", was.UnwaivedDangerous),
		}}, tx.Register(row)
	})
	if err != nil {
		return err
	}
	return e.change(ctx, r.cfg, r.loaded)
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func waivedBefore(name string) error {
	return writ.Fail(writ.Conflict, fmt.Sprintf("tool %s has a waiver already; end it first: writ tool waive %s --end", name, name), nil)
}

// waivable reports why a tool takes no waiver now, or nil.
func (r *rules) waivable(name string) error {
	if _, ok := r.catalog.Lookup(name); !ok {
		return tool.Missing(name, sortedNames(r.registered))
	}
	if r.held[name] != "" {
		return writ.Fail(writ.Conflict, fmt.Sprintf("tool %s is suspended, so nobody uses it; first: writ tool accept %s", name, name), nil)
	}
	if r.waivers[name].ID != "" {
		return waivedBefore(name)
	}
	return nil
}

// lowered is a registration as a waiver makes it. A waiver that lowers nothing, or
// raises, is refused: it would say something that is not so.
func lowered(row store.Registered, w Waiver) (store.Registered, error) {
	class := classOf(row.Unwaived)
	if w.Class != "" && class.UnmarshalText([]byte(w.Class)) != nil {
		known := []string{"none", "read_only", "write"}
		return row, writ.Fail(writ.Invalid, fmt.Sprintf("there is no class %q%s; there are %s", clip(w.Class), spell.Hint(w.Class, known), strings.Join(known, ", ")), nil)
	}
	is := described(classOf(row.Unwaived), row.UnwaivedDangerous)
	switch {
	case class < classOf(row.Unwaived):
		return row, writ.Fail(writ.Invalid, fmt.Sprintf("tool %s is %s, and a waiver only lowers; to raise it, write tools.%s.egress_class: %s in the configuration", row.Key, is, row.Key, class), nil)
	case w.NotDangerous && !row.UnwaivedDangerous:
		return row, writ.Fail(writ.Invalid, fmt.Sprintf("tool %s is %s, not dangerous; leave --not-dangerous out. What the configuration says is changed there", row.Key, is), nil)
	case class == classOf(row.Unwaived) && !w.NotDangerous:
		return row, writ.Fail(writ.Invalid, fmt.Sprintf("tool %s is %s, so there is nothing to waive; name a lower class, or --not-dangerous", row.Key, is), nil)
	}
	row.Class, row.Dangerous = class.String(), row.UnwaivedDangerous && !w.NotDangerous
	return row, nil
}

// checkReason keeps a reason to a line that shows: it goes into the record for ever.
func checkReason(s string) error {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if strings.TrimSpace(s) == "" || len(s) > 500 || strings.ContainsFunc(s, hidden) {
		return writ.Fail(writ.Invalid, "say why it may count as less, in a line of at most 500 bytes: --reason TEXT", nil)
	}
	return nil
}

// EndWaiver lets a tool count as what it is again. It narrows, so it takes nobody's
// passphrase.
func (e *Engine) EndWaiver(ctx context.Context, name string) error {
	ctx = context.WithoutCancel(ctx) // whoever asked may go; what was begun is carried out
	e.changing.Lock()
	defer e.changing.Unlock()
	all, err := e.store.Waivers(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, w := range all {
		if w.Tool == name && w.Ended == "" {
			ids = append(ids, w.ID)
		}
	}
	if len(ids) == 0 {
		return writ.Fail(writ.NotFound, fmt.Sprintf("tool %q has no waiver; 'writ tool waivers' lists them", clip(name)), nil)
	}
	now := e.ledger.Now()
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		for _, id := range ids {
			if _, err := tx.EndWaiver(id, now); err != nil {
				return ledger.Entry{}, err
			}
		}
		return ledger.Entry{Kind: "tool.waiver_ended", Data: []wire.Field{wire.Str("tool", name), wire.Str("waivers", strings.Join(ids, " "))}}, nil
	})
	if err != nil {
		return err
	}
	return e.change(ctx, e.at().cfg, e.at().loaded)
}

// Waivers lists every waiver there was, the oldest first.
func (e *Engine) Waivers(ctx context.Context) ([]store.Waiver, error) { return e.store.Waivers(ctx) }
