package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
)

// Entry is an entry of the ledger. Body is what the hash is of.
type Entry struct {
	Hash string          `json:"hash" jsonschema:"SHA-256 of the body in canonical form (RFC 8785)"`
	Body json.RawMessage `json:"body" jsonschema:"agent, at, call, chain, data, kind, person, prev, seq"`
}

// LedgerReport is what verifying found.
type LedgerReport struct {
	Chain    string   `json:"chain"`
	Entries  int64    `json:"entries"`
	Last     string   `json:"last_hash"`
	Heads    int      `json:"heads"`
	Signed   int64    `json:"signed_through"`
	Unsigned int64    `json:"unsigned_tail" jsonschema:"entries after the newest head; a running daemon signs them within moments"`
	Witness  int      `json:"witnessed_heads"`
	From     int64    `json:"witnessed_from" jsonschema:"the first entry that a witnessed head speaks of"`
	Key      string   `json:"key"`
	Problems []string `json:"problems" jsonschema:"empty: it verifies"`
}

// Ledger lists the entries, the newest first.
func (c *Client) Ledger() List[Entry] { return list[Entry](c, "/v1/ledger") }

// LedgerAfter lists the entries after a sequence number, the oldest first.
func (c *Client) LedgerAfter(seq int64) List[Entry] {
	return list[Entry](c, "/v1/ledger", "after", strconv.FormatInt(seq, 10))
}

// LedgerTail is the last n entries, at most 1000, the oldest first.
func (c *Client) LedgerTail(ctx context.Context, n int) ([]Entry, error) {
	if n == 0 {
		return nil, nil
	}
	out, err := c.Ledger().Newest(ctx, n)
	slices.Reverse(out)
	return out, err
}

// LedgerCall lists the entries about one call, the oldest first.
func (c *Client) LedgerCall(id string) List[Entry] {
	return list[Entry](c, "/v1/ledger/calls/"+url.PathEscape(id))
}

// LedgerVerify verifies the daemon's ledger; with head, it must contain that hash.
func (c *Client) LedgerVerify(ctx context.Context, head string) (LedgerReport, error) {
	path := "/v1/ledger/verify"
	if head != "" {
		path += "?head=" + url.QueryEscape(head)
	}
	var out LedgerReport
	err := c.do(ctx, "GET", path, nil, &out)
	return out, err
}

// LedgerExport copies the whole ledger to w, as JSON Lines.
func (c *Client) LedgerExport(ctx context.Context, w io.Writer) error {
	resp, err := c.send(ctx, "GET", "/v1/ledger/export", nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the export is not whole: %w", err)
	}
	return nil
}
