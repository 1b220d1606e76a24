package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// enroll brings the store's registry in step with the tools of rules that are about to
// be served, in one transaction. The store takes no call of a tool that is not
// registered as it is, so rules whose tools cannot be registered are not served. What
// is suspended nobody calls, and it is registered when a person has accepted it.
func (e *Engine) enroll(ctx context.Context, r *rules) error {
	known, err := e.store.Registry(ctx)
	if err != nil {
		return err
	}
	waivers, err := e.store.Waivers(ctx)
	if err != nil {
		return err
	}
	there := map[string]store.Registered{}
	for _, k := range known {
		there[k.Key] = k
	}
	var changed []store.Registered
	for _, t := range r.catalog.All() {
		row := registration(t, known)
		if w, ok := live(waivers, t); ok {
			row.Class, row.Dangerous, r.waivers[t.Name] = w.Class, w.Dangerous, w
			e.upstreams.govern(t, classOf(w.Class), w.Dangerous)
		}
		row.RequiresApproval = row.Class == writ.ClassWrite.String() || row.Dangerous || t.Constraints.RequiresApproval
		r.registered[t.Name] = row
		was := there[t.Name]
		if row.Registered, row.Updated = was.Registered, was.Updated; row != was && r.held[t.Name] == "" {
			changed = append(changed, row)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) { return register(tx, changed, e.ledger.Now()) })
}

// registration is a tool as it counts without a waiver: the highest of what its
// definition says and of what its name, in whatever letters, was registered as (R5).
func registration(t *tool.Tool, known []store.Registered) store.Registered {
	class, dangerous := t.Declared()
	for _, k := range known {
		if strings.EqualFold(k.Key, t.Name) {
			class, dangerous = min(class, classOf(k.Unwaived)), dangerous || k.UnwaivedDangerous
		}
	}
	return store.Registered{Key: t.Name, Definition: t.Digest.String(), Class: class.String(), Dangerous: dangerous, Unwaived: class.String(), UnwaivedDangerous: dangerous}
}

// live finds the waiver of exactly this definition.
func live(waivers []store.Waiver, t *tool.Tool) (store.Waiver, bool) {
	for _, w := range waivers {
		if w.Ended == "" && w.Tool == t.Name && w.Definition == t.Digest.String() {
			return w, true
		}
	}
	return store.Waiver{}, false
}

// classOf reads a class of the store; what does not read is the strictest.
func classOf(text string) writ.Class {
	var c writ.Class
	if c.UnmarshalText([]byte(text)) != nil {
		return writ.ClassWrite
	}
	return c
}

func register(tx *store.Tx, rows []store.Registered, now string) (ledger.Entry, error) {
	type entry struct {
		Tool       string `json:"tool"`
		Definition string `json:"definition"`
		Class      string `json:"class"`
		Dangerous  bool   `json:"dangerous"`
	}
	var list []entry
	for _, row := range rows {
		row.Updated = now
		if err := tx.Register(row); err != nil {
			return ledger.Entry{}, err
		}
		list = append(list, entry{row.Key, row.Definition, row.Class, row.Dangerous})
	}
	text, err := wire.Marshal(list)
	if err != nil { // of rows that are in the transaction already, so none of it may stay
		return ledger.Entry{}, writ.Fail(writ.StoreUnavailable, "the registration of tools could not be written down", err)
	}
	return ledger.Entry{Kind: "tool.registered", Data: []wire.Field{wire.Raw("tools", text)}}, nil
}

// standings is what deciding needs of the registry.
func (r *rules) standings() map[string]decide.Registered {
	out := make(map[string]decide.Registered, len(r.registered))
	for name, row := range r.registered {
		out[name] = decide.Registered{Class: classOf(row.Class), Dangerous: row.Dangerous, Waiver: r.waivers[name].ID}
	}
	return out
}

// Standing is what a tool counts as, and the waiver that this rests on, if any; its ID
// is empty where there is none.
func (e *Engine) Standing(name string) (decide.Standing, store.Waiver) {
	r := e.at()
	s, _ := r.decider.Standing(name)
	return s, r.waivers[name]
}

// stays says what accepting a definition does not lower, or "".
func (r *rules) stays(t *tool.Tool) string {
	class, dangerous := t.Declared()
	row, waived := r.registered[t.Name], r.waivers[t.Name].ID != ""
	var flags []string
	if was := classOf(row.Class); was < class {
		flags = append(flags, "--class "+class.String())
	}
	if row.Dangerous && !dangerous {
		flags = append(flags, "--not-dangerous")
	}
	if waived || len(flags) == 0 {
		return ""
	}
	return fmt.Sprintf("it was %s and says %s now; accepted, it stays what it was until a person waives that: writ tool waive %s %s",
		described(classOf(row.Class), row.Dangerous), described(class, dangerous), t.Name, strings.Join(flags, " "))
}

func described(c writ.Class, dangerous bool) string {
	if dangerous {
		return "class " + c.String() + " and dangerous"
	}
	return "class " + c.String()
}
