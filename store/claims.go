package store

// ClaimInvocation takes up an approved one for a worker, before its approval is
// over; fence is its fencing token. It reports false when somebody else has, when it
// ended, when it is about something else, or when its tool is not registered any more
// as it was approved (A13, A14).
func (tx *Tx) ClaimInvocation(id, subject, worker, now, lease string) (fence int64, ok bool, err error) {
	const claim = `UPDATE tool_invocations SET worker = $1, fence = fence + 1, claimed_at = $2, lease_until = $3
		WHERE id = $4 AND subject = $5 AND status = 'running' AND worker = '' AND expires_at > $6
		AND EXISTS (SELECT 1 FROM tools_registry r WHERE r.key = tool_invocations.tool_key AND r.definition = tool_invocations.definition AND r.dangerous <= tool_invocations.dangerous
		AND (CASE r.egress_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END) <= (CASE tool_invocations.egress_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END))`
	// Nearly always it is the first, and the token known. RETURNING would have the engine
	// make a table for one number.
	ok, err = tx.changed(claim+` AND fence = 0`, worker, now, lease, id, subject, now)
	if err != nil || ok {
		return 1, ok, err
	}
	ok, err = tx.changed(claim, worker, now, lease, id, subject, now)
	if err != nil || !ok {
		return 0, false, err
	}
	if err := tx.row(tx.ctx, `SELECT fence FROM tool_invocations WHERE id = $1`, id).Scan(&fence); err != nil {
		return 0, false, tx.db.unavailable(err)
	}
	return fence, true, nil
}

// RenewInvocations keeps a worker's hold on all that it runs.
func (tx *Tx) RenewInvocations(worker, lease string) error {
	return tx.exec(`UPDATE tool_invocations SET lease_until = $1 WHERE status = 'running' AND worker = $2 AND lease_until < $3`, lease, worker, lease)
}

// ReleaseInvocation gives up the hold of a worker that is gone on something that
// changes nothing, so that it can be run again.
func (tx *Tx) ReleaseInvocation(id, worker string) (bool, error) {
	return tx.changed(`UPDATE tool_invocations SET worker = '' WHERE id = $1 AND worker = $2 AND status = 'running' AND reads = 1 AND egress_class <> 'write' AND sealed IS NOT NULL`, id, worker)
}

// Ended is how a run ended.
type Ended struct {
	ID      string
	Worker  string
	Fence   int64
	Status  string // completed, failed, cancelled or unknown
	Outcome string
	At      string
	Micros  *int64
	CPU     *int64
	Bytes   *int64
}

const finishInvocation = `UPDATE tool_invocations SET status = $1, outcome = $2, completed_at = $3, measured_micros = $4, measured_cpu_micros = $5, result_bytes = $6, sealed = NULL
	WHERE id = $7 AND worker = $8 AND worker <> '' AND fence = $9 AND status = 'running'`

// FinishInvocation ends a run, for the worker that holds it and nobody else.
func (tx *Tx) FinishInvocation(e Ended) (bool, error) {
	return tx.changed(finishInvocation, e.Status, e.Outcome, e.At, deref(&e.Micros), deref(&e.CPU), deref(&e.Bytes), e.ID, e.Worker, e.Fence)
}
