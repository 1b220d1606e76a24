package store

import (
	"context"
	"database/sql"
	"strings"
)

// Invocation is one call and its whole life. Status is pending, running, completed,
// failed, rejected, expired, cancelled, unknown or denied; Approval is not_required,
// pending, approved, rejected or expired. The schema refuses any step but a legal
// one, and any change of what was asked.
type Invocation struct {
	N          int64 // its place among all
	ID         string
	Tool       string
	Definition string
	Agent      string
	Person     string // whom the agent acts for
	Token      string
	Session    string
	Task       string
	Door       string
	Action     string
	Risk       string
	Class      string
	Dangerous  bool
	Reads      bool // it changes nothing, and may be run again
	ArgsDigest string
	ArgsBytes  int64
	Key        string // of a caller that wants it at most once; empty: none
	Cost       *float64

	Asked     string // digest of the call as it was asked; empty: nobody was
	Subject   string // digest of the call as it is agreed to
	Digest    string // what an approver echoes
	Quorum    int
	NotBy     string // four eyes: who may not approve it
	EditOf    string // the request whose arguments a person edited
	Requested string
	Expires   string

	Status      string
	Approval    string
	Reason      string // a person's words
	Escalations int
	Decided     string
	By          string
	Grant       string

	Started   string
	Claimed   string
	Completed string
	Worker    string
	Fence     int64
	Lease     string
	Outcome   string
	Replaced  string // the request that a person made of this one by editing it
	Micros    *int64
	CPU       *int64
	Bytes     *int64

	Sealed []byte // the call as it is shown, encrypted; emptied when it ends
}

const invocationNames = `id, tool_key, definition, agent, acts_for, token, session, task, door, action, risk, egress_class, dangerous, reads,
	args_sha256, args_bytes, idempotency_key, cost_estimate, asked, subject, digest, quorum, not_by, edit_of, requested_at, expires_at,
	status, approval_status, approval_reason, escalations, decided_at, decided_by, grant_id, started_at, claimed_at, completed_at,
	worker, fence, lease_until, outcome, replaced_by, measured_micros, measured_cpu_micros, result_bytes`

const (
	invocationColumns = `SELECT n, ` + invocationNames + `, sealed FROM tool_invocations`
	listedColumns     = `SELECT n, ` + invocationNames + `, NULL FROM tool_invocations` // without what it shows
)

func (i *Invocation) fields() []any {
	return []any{&i.ID, &i.Tool, &i.Definition, &i.Agent, &i.Person, &i.Token, &i.Session, &i.Task, &i.Door, &i.Action, &i.Risk, &i.Class, &i.Dangerous, &i.Reads,
		&i.ArgsDigest, &i.ArgsBytes, &i.Key, &i.Cost, &i.Asked, &i.Subject, &i.Digest, &i.Quorum, &i.NotBy, &i.EditOf, &i.Requested, &i.Expires,
		&i.Status, &i.Approval, &i.Reason, &i.Escalations, &i.Decided, &i.By, &i.Grant, &i.Started, &i.Claimed, &i.Completed,
		&i.Worker, &i.Fence, &i.Lease, &i.Outcome, &i.Replaced, &i.Micros, &i.CPU, &i.Bytes}
}

func scanInvocation(rows *sql.Rows) (Invocation, error) {
	var i Invocation
	err := rows.Scan(append(append([]any{&i.N}, i.fields()...), &i.Sealed)...)
	return i, err
}

// Invocation finds one by id; ok is false when there is none.
func (db *DB) Invocation(ctx context.Context, id string) (i Invocation, ok bool, err error) {
	return first(look(ctx, db, scanInvocation, invocationColumns+` WHERE id = $1`, id))
}

// Standing is Invocation without what it shows, which can be large: for whoever waits.
func (db *DB) Standing(ctx context.Context, id string) (i Invocation, ok bool, err error) {
	return first(look(ctx, db, scanInvocation, listedColumns+` WHERE id = $1`, id))
}

// askedNames is what an answer, and taking up what was approved, look at: each column
// costs time, and these two are waited for.
const askedNames = `id, tool_key, definition, agent, session, task, risk, egress_class, dangerous, args_sha256, idempotency_key,
	asked, subject, digest, quorum, not_by, edit_of, requested_at, expires_at, status, decided_by, worker`

func scanAsked(rows *sql.Rows) (i Invocation, err error) {
	err = rows.Scan(&i.ID, &i.Tool, &i.Definition, &i.Agent, &i.Session, &i.Task, &i.Risk, &i.Class, &i.Dangerous, &i.ArgsDigest, &i.Key,
		&i.Asked, &i.Subject, &i.Digest, &i.Quorum, &i.NotBy, &i.EditOf, &i.Requested, &i.Expires, &i.Status, &i.By, &i.Worker, &i.Sealed)
	return i, err
}

// AskedInvocation is Invocation with no more than an answer to it needs.
func (db *DB) AskedInvocation(ctx context.Context, id string) (i Invocation, ok bool, err error) {
	return first(look(ctx, db, scanAsked, `SELECT `+askedNames+`, sealed FROM tool_invocations WHERE id = $1`, id))
}

// OpenInvocation finds the one that is asked about, or runs, for a call as it was
// asked: no more than taking it up needs, with what it shows where it is approved and
// nobody has.
func (db *DB) OpenInvocation(ctx context.Context, asked string) (i Invocation, ok bool, err error) {
	return first(look(ctx, db, scanAsked, `SELECT `+askedNames+`, CASE WHEN status = 'running' AND worker = '' THEN sealed END FROM tool_invocations
		WHERE asked = $1 AND asked <> '' AND completed_at = ''`, asked))
}

// There is what may do for a call that is asked about, instead of a new request: the same
// call open, an outcome that waits for it, a grant of its tool. Each is then looked at by
// itself.
type There struct{ Open, Outcome, Grant bool }

const there = `SELECT EXISTS (SELECT 1 FROM tool_invocations WHERE asked = $1 AND asked <> '' AND completed_at = ''),
	EXISTS (SELECT 1 FROM invocation_results WHERE asked = $1 AND asked <> '' AND delivered_at = ''),
	EXISTS (SELECT 1 FROM grants WHERE agent = $2 AND tool_key = $3 AND revoked_at = '')`

// There looks for all at once.
func (db *DB) There(ctx context.Context, asked, agent, tool string) (t There, err error) {
	scan := func(rows *sql.Rows) (t There, err error) { return t, rows.Scan(&t.Open, &t.Outcome, &t.Grant) }
	t, _, err = first(look(ctx, db, scan, there, asked, agent, tool))
	return t, err
}

// There is the same as it is in this transaction, and how many requests the agent, with
// those it delegated to, has waiting. What is over counts until somebody ends it: sweep
// first.
func (tx *Tx) There(asked, agent, tool string) (t There, waiting int, err error) {
	base, _, _ := strings.Cut(agent, "/") // a child's name begins with its parent's
	// "0" comes right after "/", so the range is every name below base.
	err = tx.row(tx.ctx, there+`, (SELECT count(*) FROM tool_invocations WHERE status = 'pending' AND agent = $4)
		+ (SELECT count(*) FROM tool_invocations WHERE status = 'pending' AND agent > $5 AND agent < $6)`,
		asked, agent, tool, base, base+"/", base+"0").Scan(&t.Open, &t.Outcome, &t.Grant, &waiting)
	if err != nil {
		return t, 0, tx.db.unavailable(err)
	}
	return t, waiting, nil
}

// KeyedInvocation finds the one that an agent made with a key of its own, or that was
// one with it; without what it shows.
func (db *DB) KeyedInvocation(ctx context.Context, agent, key string) (i Invocation, ok bool, err error) {
	i, ok, err = first(query(ctx, db, scanInvocation, listedColumns+` WHERE agent = $1 AND idempotency_key = $2 AND idempotency_key <> '' AND status <> 'denied' AND outcome NOT IN ('interrupted', 'granted')`, agent, key))
	if err != nil || ok {
		return i, ok, err
	}
	return first(query(ctx, db, scanInvocation, listedColumns+` WHERE id = (SELECT invocation FROM invocation_keys WHERE agent = $1 AND idempotency_key = $2)`, agent, key))
}

// SessionWaits reports whether something in a session waits for a person, or was agreed
// to and has not begun.
func (db *DB) SessionWaits(ctx context.Context, session string) (bool, error) {
	n, err := query(ctx, db, func(rows *sql.Rows) (n int, err error) { return n, rows.Scan(&n) },
		`SELECT EXISTS (SELECT 1 FROM tool_invocations WHERE status = 'pending' AND session = $1)
		OR EXISTS (SELECT 1 FROM tool_invocations WHERE status = 'running' AND worker = '' AND session = $1)`, session)
	if err != nil {
		return false, err
	}
	return n[0] == 1, nil
}

// OverInvocations lists requests whose time is over and approved calls that nobody
// took up in time.
func (db *DB) OverInvocations(ctx context.Context, now string) ([]Invocation, error) {
	late, err := query(ctx, db, scanInvocation, listedColumns+` WHERE status = 'pending' AND expires_at <= $1 LIMIT 1000`, now)
	if err != nil {
		return nil, err
	}
	left, err := query(ctx, db, scanInvocation, listedColumns+` WHERE status = 'running' AND worker = '' AND expires_at <= $1 LIMIT 1000`, now)
	return append(late, left...), err
}

// UnclaimedInvocations lists what is approved and nobody runs, the oldest first.
func (db *DB) UnclaimedInvocations(ctx context.Context) ([]Invocation, error) {
	fresh, err := query(ctx, db, scanInvocation, invocationColumns+` WHERE status = 'running' AND worker = '' AND fence = 0 ORDER BY n LIMIT 100`)
	if err != nil {
		return nil, err
	}
	again, err := query(ctx, db, scanInvocation, invocationColumns+` WHERE status = 'running' AND worker = '' AND fence > 0 ORDER BY n LIMIT 100`)
	return append(fresh, again...), err
}

// HeldInvocations lists what other workers than this one hold.
func (db *DB) HeldInvocations(ctx context.Context, worker string) ([]Invocation, error) {
	return query(ctx, db, scanInvocation, invocationColumns+` WHERE status = 'running' AND worker <> '' AND worker <> $1 ORDER BY n LIMIT 1000`, worker)
}

// PendingInvocations lists requests that wait and have escalated less than they
// might have: those made before a time.
func (db *DB) PendingInvocations(ctx context.Context, before string) ([]Invocation, error) {
	return query(ctx, db, scanInvocation, listedColumns+` WHERE status = 'pending' AND requested_at <= $1 ORDER BY n LIMIT 10000`, before)
}

// LedTo lists what an agent did just before one of its calls in a task, the newest
// first.
func (db *DB) LedTo(ctx context.Context, i Invocation, n int) ([]Invocation, error) {
	return query(ctx, db, scanInvocation, listedColumns+` WHERE n < $1 AND n > $2 AND agent = $3 AND task = $4 ORDER BY n DESC LIMIT $5`, i.N, i.N-ledToWithin, i.Agent, i.Task, n)
}

// ledToWithin bounds how many calls of everybody are looked at for LedTo.
const ledToWithin = 500

const insertInvocation = `INSERT INTO tool_invocations (` + invocationNames + `, sealed)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30,
	$31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45)`

// startInvocation is the same for a call that runs at once, with what every such call
// has in common written out: this is what most calls wait for.
const startInvocation = `INSERT INTO tool_invocations (` + invocationNames + `, sealed)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13, $14, $15, $16, $17, '', '', '', 0, '', '', $18, '',
	'running', 'not_required', '', 0, '', '', '', $18, $18, '', $19, 1, $20, '', '', NULL, NULL, NULL, NULL)`

// askInvocation is the same for a request.
const askInvocation = `INSERT INTO tool_invocations (` + invocationNames + `, sealed)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26,
	'pending', 'pending', '', 0, '', '', '', '', '', '', '', 0, '', '', '', NULL, NULL, NULL, $27)`

// AddInvocation adds one as it begins: pending, running or denied. It reports false,
// having changed nothing, when the database refuses it: its tool is not registered as
// it was decided about, or counts as more by now.
func (tx *Tx) AddInvocation(i *Invocation) (bool, error) {
	if i.Status == "running" && i.Approval == "not_required" && !i.Dangerous {
		return tx.taken(startInvocation, i.ID, i.Tool, i.Definition, i.Agent, i.Person, i.Token, i.Session, i.Task, i.Door, i.Action, i.Risk, i.Class, i.Reads,
			i.ArgsDigest, i.ArgsBytes, i.Key, deref(&i.Cost), i.Started, i.Worker, i.Lease)
	}
	args := i.fields()
	for n, p := range args {
		args[n] = deref(p)
	}
	if i.Status == "pending" && i.Approval == "pending" {
		return tx.taken(askInvocation, append(args[:26:26], i.Sealed)...)
	}
	return tx.taken(insertInvocation, append(args, i.Sealed)...)
}

// deref turns a pointer to a field into its value, as a driver takes it.
func deref(p any) any {
	switch v := p.(type) {
	case *string:
		return *v
	case *int64:
		return *v
	case *int:
		return *v
	case *bool:
		return *v
	case **float64:
		if *v != nil {
			return **v
		}
	case **int64:
		if *v != nil {
			return **v
		}
	}
	return nil
}

// Asked counts the requests that an agent, with those it delegated to, made since a
// time.
func (tx *Tx) Asked(agent, since string) (int, error) {
	base, _, _ := strings.Cut(agent, "/")
	own, err := tx.count(`SELECT count(*) FROM tool_invocations WHERE asked <> '' AND agent = $1 AND requested_at > $2`, base, since)
	if err != nil {
		return 0, err
	}
	below, err := tx.count(`SELECT count(*) FROM tool_invocations WHERE asked <> '' AND agent > $1 AND agent < $2 AND requested_at > $3`, base+"/", base+"0", since)
	return own + below, err
}

func (tx *Tx) count(text string, args ...any) (n int, err error) {
	if err := tx.row(tx.ctx, text, args...).Scan(&n); err != nil {
		return 0, tx.db.unavailable(err)
	}
	return n, nil
}

// IsOpen reports whether a call, as it was asked, is asked about or runs.
func (tx *Tx) IsOpen(asked string) (bool, error) {
	n, err := tx.count(`SELECT count(*) FROM tool_invocations WHERE asked = $1 AND asked <> '' AND completed_at = ''`, asked)
	return n > 0, err
}

// Keyed is the id of what an agent made with a key of its own, or that was one with it,
// and the digests of its tool and arguments; empty: it made nothing.
func (tx *Tx) Keyed(agent, key string) (id, definition, args string, err error) {
	for _, which := range []string{
		`agent = $1 AND idempotency_key = $2 AND idempotency_key <> '' AND status <> 'denied' AND outcome NOT IN ('interrupted', 'granted')`,
		`id = (SELECT invocation FROM invocation_keys WHERE agent = $1 AND idempotency_key = $2)`,
	} {
		err = tx.row(tx.ctx, `SELECT id, definition, args_sha256 FROM tool_invocations WHERE `+which, agent, key).Scan(&id, &definition, &args)
		if err == nil {
			return id, definition, args, nil
		}
		if err != sql.ErrNoRows {
			return "", "", "", tx.db.unavailable(err)
		}
	}
	return "", "", "", nil
}

// AddKey says that a call with this key is one with an invocation; false: the key
// stands for another already.
func (tx *Tx) AddKey(agent, key, id string) (bool, error) {
	return tx.taken(`INSERT INTO invocation_keys (agent, idempotency_key, invocation) VALUES ($1, $2, $3)`, agent, key, id)
}

// EscalateInvocation says that a request is now asked about higher up.
func (tx *Tx) EscalateInvocation(id string, step int) (bool, error) {
	return tx.changed(`UPDATE tool_invocations SET escalations = $1 WHERE id = $2 AND status = 'pending' AND escalations = $3`, step, id, step-1)
}

// ExpireInvocation ends a request whose time is over, or an approved call that
// nobody took up in time.
func (tx *Tx) ExpireInvocation(id, now string) (bool, error) {
	ok, err := tx.changed(`UPDATE tool_invocations SET status = 'expired', approval_status = 'expired', completed_at = $1, outcome = 'expired', sealed = NULL
		WHERE id = $2 AND status = 'pending' AND expires_at <= $3`, now, id, now)
	if err != nil || ok {
		return ok, err
	}
	return tx.changed(`UPDATE tool_invocations SET status = 'cancelled', completed_at = $1, outcome = 'expired', sealed = NULL
		WHERE id = $2 AND status = 'running' AND worker = '' AND expires_at <= $3`, now, id, now)
}

// CancelInvocation ends one that nobody holds, and says why in a word.
func (tx *Tx) CancelInvocation(id, why, now string) (bool, error) {
	return tx.changed(`UPDATE tool_invocations SET status = 'cancelled', completed_at = $1, outcome = $2, sealed = NULL
		WHERE id = $3 AND status IN ('pending', 'running') AND worker = ''`, now, why, id)
}

// ReplaceInvocation ends a request whose arguments a person edited.
func (tx *Tx) ReplaceInvocation(id, by, now string) (bool, error) {
	return tx.changed(`UPDATE tool_invocations SET status = 'cancelled', completed_at = $1, outcome = 'edited', replaced_by = $2, sealed = NULL
		WHERE id = $3 AND status = 'pending' AND expires_at > $4`, now, by, id, now)
}

// CancelInvocations ends all that an agent, or everybody under "*", has asked for
// and nobody holds; within a session or a task, where one is named. It lists
// what it ended.
func (tx *Tx) CancelInvocations(agent, session, task, why, now string) ([]Invocation, error) {
	const end, whose = `UPDATE tool_invocations SET status = 'cancelled', completed_at = $1, outcome = $2, sealed = NULL WHERE `,
		` AND ($3 = '*' OR agent = $3) AND ($4 = '' OR session = $4) AND ($5 = '' OR task = $5) RETURNING id, agent, tool_key`
	var out []Invocation
	for _, which := range []string{`status = 'pending'`, `status = 'running' AND worker = ''`} {
		rows, err := tx.db.writer.QueryContext(tx.ctx, end+which+whose, now, why, agent, session, task)
		if err != nil {
			return nil, tx.db.unavailable(err)
		}
		ended, err := collect(tx.db, rows, func(rows *sql.Rows) (i Invocation, err error) { return i, rows.Scan(&i.ID, &i.Agent, &i.Tool) })
		if err != nil {
			return nil, err
		}
		out = append(out, ended...)
	}
	return out, nil
}

// Waiting counts the requests that a person can answer now.
func (db *DB) Waiting(ctx context.Context, now string) (n int, err error) {
	err = db.row(ctx, `SELECT count(*) FROM tool_invocations WHERE status = 'pending' AND expires_at > $1`, now).Scan(&n)
	if err != nil {
		return 0, db.unavailable(err)
	}
	return n, nil
}
