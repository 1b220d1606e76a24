package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/store"
)

// maxSeq is the largest sequence number that every JSON reader takes exactly.
const maxSeq = 1 << 53

func entryView(e store.Entry) client.Entry {
	return client.Entry{Hash: e.Hash.String(), Body: json.RawMessage(e.Body)}
}

// listLedger goes back from the newest entry; with after it goes forward from that
// one. The cursor holds which.
func listLedger(x *exchange) (any, error) {
	seq, forward, err := x.placeIn("ledger")
	if err != nil {
		return nil, err
	}
	direction, read := "back", x.engine.Store().EntriesBefore
	if forward {
		direction, read = "forward", x.engine.Store().After
	}
	rows, err := read(x.r.Context(), seq, x.limit()+1)
	place := func(e store.Entry) string { return cursor("ledger", direction, strconv.FormatInt(e.Seq, 10)) }
	return pageOf(rows, x.limit(), entryView, place), err
}

// placeIn is where a list of numbered rows goes on, and which way: back from the newest, or
// forward from the one that after names.
func (x *exchange) placeIn(list string) (n int64, forward bool, err error) {
	at, err := x.at(list, 2)
	if err != nil {
		return 0, false, err
	}
	if _, forward = x.query["after"]; at == nil {
		return x.number("after", 0), forward, nil
	}
	if forward {
		return 0, false, writ.Fail(writ.Invalid, "after and cursor are both given; the cursor holds the place, leave after out", nil)
	}
	forward = at[0] == "forward"
	if n, err = strconv.ParseInt(at[1], 10, 64); err != nil || !forward && at[0] != "back" {
		return 0, false, writ.Fail(writ.Invalid, "the cursor is not one that this list gave; leave it out to begin again", nil)
	}
	return n, forward, nil
}

func ledgerCall(x *exchange) (any, error) {
	at, err := x.at("ledger of a call", 1)
	if err != nil {
		return nil, err
	}
	rows, err := x.engine.Store().OfCall(x.r.Context(), x.r.PathValue("id"))
	if err == nil && len(rows) == 0 {
		err = writ.Fail(writ.NotFound, "the ledger has nothing about such a call; 'writ ledger tail' shows ids", nil)
	}
	for at != nil && len(rows) > 0 && strconv.FormatInt(rows[0].Seq, 10) != at[0] {
		rows = rows[1:]
	}
	if at != nil && len(rows) > 0 {
		rows = rows[1:]
	}
	place := func(e store.Entry) string { return cursor("ledger of a call", strconv.FormatInt(e.Seq, 10)) }
	return pageOf(rows[:min(len(rows), x.limit()+1)], x.limit(), entryView, place), err
}

func verifyLedger(x *exchange) (any, error) {
	head := x.query["head"]
	if _, err := writ.ParseDigest(head); err != nil && head != "" {
		return nil, writ.Fail(writ.Invalid, "head: "+err.Error(), nil)
	}
	r, err := x.engine.Ledger().Verify(x.r.Context(), x.engine.Config().Witness, head)
	if err != nil {
		return nil, err
	}
	return client.LedgerReport(*r), nil
}

// exportLedger streams: a ledger can be larger than memory.
func exportLedger(x *exchange) error {
	x.w.Header().Set("Content-Type", x.route.media)
	if err := x.engine.Ledger().Export(x.r.Context(), x.w); err != nil {
		x.log.Error("export broke off", "request", x.w.Header().Get("X-Request-ID"), "err", err)
		panic(http.ErrAbortHandler) // the reader must see that it is not whole
	}
	return nil
}
