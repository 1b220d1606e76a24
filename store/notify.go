package store

import (
	"context"
	"database/sql"
)

// Webhook is how far one has been told of what the ledger says, and how that goes.
type Webhook struct {
	Name      string
	Seq       int64 // of the last entry that it has been told of whole
	Part      int   // how many events of the next entry are done with
	Delivered string
	Failing   string // since when; empty: it is not
	Failure   string // how the last attempt failed
	Stopped   string // when it was given up; empty: it was not
}

const webhookNames = `name, seq, part, delivered_at, failing_since, failure, stopped_at`

// Webhooks lists all that there is about webhooks, by name.
func (db *DB) Webhooks(ctx context.Context) ([]Webhook, error) {
	scan := func(rows *sql.Rows) (Webhook, error) {
		var w Webhook
		err := rows.Scan(&w.Name, &w.Seq, &w.Part, &w.Delivered, &w.Failing, &w.Failure, &w.Stopped)
		return w, err
	}
	return query(ctx, db, scan, `SELECT `+webhookNames+` FROM webhooks ORDER BY name`)
}

// AddWebhook begins one at the end of the ledger; it reports false when there is one of
// that name. What is gone comes back as new: nobody wants to be told of months at once.
func (tx *Tx) AddWebhook(name string) (bool, error) {
	return tx.changed(`INSERT INTO webhooks (`+webhookNames+`)
		SELECT $1, (SELECT coalesce(max(seq), 0) FROM ledger), 0, '', '', '', '' WHERE NOT EXISTS (SELECT 1 FROM webhooks WHERE name = $1)`, name)
}

// SetWebhook keeps how far one is. It reports false, having changed nothing, when that
// would go back, or beyond what the ledger says.
func (tx *Tx) SetWebhook(w Webhook) (bool, error) {
	return tx.changed(`UPDATE webhooks SET seq = $2, part = $3, delivered_at = $4, failing_since = $5, failure = $6, stopped_at = $7
		WHERE name = $1 AND (seq < $2 OR seq = $2 AND part <= $3) AND $2 <= (SELECT coalesce(max(seq), 0) FROM ledger)`,
		w.Name, w.Seq, w.Part, w.Delivered, w.Failing, w.Failure, w.Stopped)
}

// DropWebhook forgets one.
func (tx *Tx) DropWebhook(name string) error {
	return tx.exec(`DELETE FROM webhooks WHERE name = $1`, name)
}
