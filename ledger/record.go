package ledger

import (
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

// EntryOf is the entry that says what became of a call.
func EntryOf(ev writ.Event) Entry {
	c, d := &ev.Call, &ev.Decision
	e := Entry{Kind: string(ev.Kind), Call: c.ID, Agent: c.Agent}
	e.Data = append(make([]wire.Field, 0, 16), wire.Str("tool", c.Tool))
	switch a := ev.Approval; {
	case a.Grant != "":
		e.Data = append(e.Data, wire.Str("grant", a.Grant))
	case a.ID != "":
		e.Data = append(e.Data, wire.Str("approval", a.ID))
	}
	if ev.Kind == writ.EventFinished {
		e.Data = append(e.Data, outcome(ev)...)
		return e
	}
	e.Data = append(e.Data,
		wire.Str("definition", c.Definition.String()), wire.Str("args_sha256", c.ArgsDigest.String()), wire.Int("args_bytes", int64(len(c.Args))),
		wire.Str("session", c.Session), wire.Str("task", c.Task), wire.Str("acts_for", c.Person), wire.Str("door", c.Door),
		wire.Str("action", d.Action), wire.Str("risk", d.Risk), wire.Str("class", d.Class.String()), wire.Str("policy", d.Policy.String()))
	if ev.Kind == writ.EventRefused {
		kind, _ := writ.Public(ev.Err)
		return with(e, wire.Str("error", string(kind)), wire.Str("because", sources(d)))
	}
	return with(e, wire.Raw("reach", string(reach(&d.Confine))))
}

func with(e Entry, fields ...wire.Field) Entry {
	e.Data = append(e.Data, fields...)
	return e
}

// sources names the rules that denied. Their texts quote arguments, so they stay out.
func sources(d *writ.Decision) string {
	var said []string
	for _, r := range d.Reasons {
		if r.Effect == writ.Deny {
			said = append(said, r.Source)
		}
	}
	return strings.Join(said, " ")
}

// Outcome is how a call ended, in a word: ok, tool_error, or the kind of its error.
func Outcome(ev writ.Event) string {
	switch {
	case ev.Err != nil:
		return string(writ.KindOf(ev.Err))
	case ev.Result.IsError:
		return "tool_error"
	}
	return "ok"
}

func outcome(ev writ.Event) []wire.Field {
	fields := []wire.Field{
		wire.Str("outcome", Outcome(ev)),
		wire.Int("micros", ev.Duration.Microseconds()),
		wire.Int("result_bytes", int64(len(ev.Result.Content))),
		wire.Str("result_sha256", wire.Digest(ev.Result.Content).String()),
	}
	for _, key := range []string{"driver", "exit_code", "limit", "container_id"} {
		if v, ok := ev.Result.Metadata[key]; ok && (key != "container_id" || v != "") { // it ran in none
			fields = append(fields, wire.Str(key, fmt.Sprint(v)))
		}
	}
	return fields
}

// reach is the confinement in short: what it could touch.
func reach(c *writ.Confinement) []byte {
	b := append(make([]byte, 0, 256), `{"backend":`...)
	b = wire.AppendString(b, c.Backend)
	b = append(b, `,"exec":"`+c.Exec.Mode.String()+`","isolation":"`+c.Isolation.String()+`","network":`...)
	b = appendStrings(b, c.Network.Hosts)
	b = append(b, `,"read":`...)
	b = appendStrings(b, c.Read)
	if len(c.Network.Reads) > 0 {
		b = appendStrings(append(b, `,"reads":`...), c.Network.Reads)
	}
	if c.Server != nil { // which reaches what the configuration gives it
		b = wire.AppendString(append(b, `,"server":`...), c.Server.Name)
	}
	b = append(b, `,"write":`...)
	b = appendStrings(b, c.Write)
	return append(b, '}')
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, s)
	}
	return append(b, ']')
}
