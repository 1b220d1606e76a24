package engine

import (
	"slices"
	"testing"

	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/store"
)

// Every event that there is can be asked for, and nothing that never comes.
func TestWebhooksKnowEveryEvent(t *testing.T) {
	var happens, known []string
	for _, e := range []store.Entry{
		{Kind: "approval.requested"}, {Kind: "approval.approved"}, {Kind: "approval.rejected"}, {Kind: "approval.expired"}, {Kind: "call.started"}, {Kind: "call.refused"}, {Kind: "call.cancelled"},
		{Kind: "call.finished", Body: `{"data":{"status":"completed"}}`}, {Kind: "call.finished", Body: `{"data":{"status":"failed"}}`}, {Kind: "call.unknown", Body: `{"data":{"status":"unknown"}}`},
	} {
		if e.Body == "" {
			e.Body = "{}"
		}
		for _, ev := range approval.Events(e) {
			happens = append(happens, ev.Name)
		}
	}
	for _, e := range (config.Webhook{}).InForce().Events {
		known = append(known, string(e))
	}
	slices.Sort(happens)
	slices.Sort(known)
	if happens = slices.Compact(happens); !slices.Equal(happens, known) {
		t.Errorf("there are\n%v\nand known are\n%v", happens, known)
	}
}
