-- +goose Up
-- What is open is what has not been completed, which a CHECK of the table says as well. An
-- index by that, and not by the status, stays as it is when a request is approved.
DROP INDEX invocations_open;
CREATE UNIQUE INDEX invocations_open ON tool_invocations (asked) WHERE asked <> '' AND completed_at = '';

-- As in 00004, but for how it looks for the same call.
DROP TRIGGER invocations_begin;
-- +goose StatementBegin
CREATE TRIGGER invocations_begin BEFORE INSERT ON tool_invocations
BEGIN
    SELECT RAISE(ABORT, 'an invocation cannot begin so')
    WHERE EXISTS (SELECT 1 FROM tool_invocations WHERE id = NEW.id) OR (NEW.n <> -1 AND NEW.n <> (SELECT coalesce(max(n), 0) + 1 FROM tool_invocations))
    OR (NEW.idempotency_key <> '' AND NEW.status <> 'denied' AND EXISTS (SELECT 1 FROM tool_invocations
        WHERE agent = NEW.agent AND idempotency_key = NEW.idempotency_key AND idempotency_key <> '' AND status <> 'denied' AND outcome NOT IN ('interrupted', 'granted')))
    OR (NEW.asked <> '' AND EXISTS (SELECT 1 FROM tool_invocations WHERE asked = NEW.asked AND asked <> '' AND completed_at = ''))
    OR NEW.replaced_by <> '' OR NEW.measured_micros IS NOT NULL OR NEW.measured_cpu_micros IS NOT NULL OR NEW.result_bytes IS NOT NULL OR NEW.escalations IS NOT 0
    OR (
        (NEW.status = 'denied' AND NEW.approval_status = 'not_required' AND NEW.completed_at <> '' AND NEW.sealed IS NULL AND NEW.asked = ''
            AND NEW.grant_id = '' AND NEW.fence = 0 AND NEW.worker = '' AND NEW.claimed_at = '' AND NEW.lease_until = '' AND NEW.started_at = ''
            AND NEW.decided_by = '' AND NEW.decided_at = '' AND NEW.approval_reason = '')
        OR (EXISTS (SELECT 1 FROM tools_registry r WHERE r.key = NEW.tool_key AND r.definition = NEW.definition AND r.dangerous <= NEW.dangerous
                AND (CASE r.egress_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END) <= (CASE NEW.egress_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END)
                AND (r.requires_approval = 0 OR NEW.approval_status <> 'not_required'))
            AND NEW.completed_at = '' AND NEW.outcome = '' AND NEW.approval_reason = ''
            AND (
                (NEW.status = 'pending' AND NEW.approval_status = 'pending' AND NEW.asked <> '' AND NEW.subject <> '' AND NEW.digest <> '' AND NEW.quorum > 0
                    AND NEW.sealed IS NOT NULL AND NEW.expires_at > NEW.requested_at AND NEW.decided_at = '' AND NEW.decided_by = '' AND NEW.grant_id = ''
                    AND NEW.started_at = '' AND NEW.claimed_at = '' AND NEW.worker = '' AND NEW.fence = 0 AND NEW.lease_until = '')
                OR (NEW.status = 'running' AND NEW.started_at <> '' AND NEW.worker <> '' AND NEW.fence = 1 AND NEW.lease_until > NEW.claimed_at
                    AND NEW.claimed_at = NEW.started_at AND NEW.sealed IS NULL AND NEW.asked = '' AND (
                    (NEW.approval_status = 'not_required' AND NEW.grant_id = '' AND NEW.egress_class IN ('none', 'read_only') AND NEW.dangerous = 0
                        AND NEW.decided_by = '' AND NEW.decided_at = '')
                    OR (NEW.approval_status = 'approved' AND NEW.dangerous = 0 AND NEW.decided_at = NEW.started_at AND EXISTS (SELECT 1 FROM grants g WHERE g.id = NEW.grant_id AND g.revoked_at = ''
                        AND g.used < g.max_uses AND g.made_at <= NEW.started_at AND g.expires_at > NEW.started_at AND g.agent = NEW.agent AND g.tool_key = NEW.tool_key
                        AND g.definition = NEW.definition AND g.egress_class = NEW.egress_class AND g.made_by = NEW.decided_by
                        AND EXISTS (SELECT 1 FROM people p WHERE p.name = g.made_by AND p.role IN ('approver', 'admin'))))))
            ))) IS NOT TRUE;
    UPDATE grants SET used = used + 1 WHERE id = NEW.grant_id AND NEW.grant_id <> '';
END;
-- +goose StatementEnd
