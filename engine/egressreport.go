package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// personsCommand is whose what people's commands do is, in the log.
const personsCommand = "writ run"

// Bounds of a report.
const (
	mostReported = 1000
	longReported = 300
)

// ReportEgress adds to the log what a command did that a person ran beside the daemon. It
// is what the command's own supervisor says, so it is no call's and no agent's.
func (e *Engine) ReportEgress(ctx context.Context, rows []store.Egress) error {
	if len(rows) == 0 || len(rows) > mostReported {
		return writ.Fail(writ.Invalid, fmt.Sprintf("a report has 1 to %d events", mostReported), nil)
	}
	for i := range rows {
		r := &rows[i]
		if why := unreportable(*r); why != "" {
			return writ.Fail(writ.Invalid, fmt.Sprintf("events[%d]: %s", i, why), nil)
		}
		r.N, r.Call, r.Agent = 0, "", personsCommand
	}
	t := &told{e: e, agent: personsCommand}
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) { return t.entry(rows), tx.AddEgress(rows) })
}

func unreportable(r store.Egress) string {
	for name, v := range map[string]string{"host": r.Host, "address": r.Address, "address_class": r.Class, "rule": r.Rule, "detail": r.Detail} {
		if len(v) > longReported {
			return name + " is too long"
		}
	}
	switch _, err := time.Parse(ledger.TimeFormat, r.At); {
	case err != nil:
		return "at is no time"
	case !slices.Contains([]string{"connect", "dns", "http", "ssh"}, r.Kind):
		return "kind is connect, dns, http or ssh"
	case !slices.Contains(egress.Verdicts(), egress.Verdict(r.Verdict)):
		return "verdict is none that there is"
	case r.Sent < 0 || r.Received < 0 || r.Micros < 0:
		return "sent, received and took_micros are not below zero"
	}
	return ""
}

// Unmet says whether the rule of a row is one that is missing, and would allow it.
func Unmet(r store.Egress) bool { return egress.Verdict(r.Verdict).Unmet() }
