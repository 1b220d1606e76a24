-- +goose Up
-- The registry of tools with their egress class, what people waived, every call as
-- an invocation with its whole life, what people said of it, and standing grants.
-- Requests of the table that this replaces end here: they are asked anew.
DROP TABLE approvals;

-- What a tool counts as, and what it would without a waiver: the highest that any
-- definition of that name ever was, which never goes down.
CREATE TABLE tools_registry (
    key                TEXT    NOT NULL PRIMARY KEY,
    definition         TEXT    NOT NULL CHECK (length(definition) = 64),
    egress_class       TEXT    NOT NULL CHECK (egress_class = 'none' OR egress_class = 'read_only' OR egress_class = 'write'),
    dangerous          INTEGER NOT NULL CHECK (dangerous IN (0, 1)),
    unwaived_class     TEXT    NOT NULL CHECK (unwaived_class = 'none' OR unwaived_class = 'read_only' OR unwaived_class = 'write'),
    unwaived_dangerous INTEGER NOT NULL CHECK (unwaived_dangerous IN (0, 1)),
    requires_approval  INTEGER NOT NULL CHECK (requires_approval IN (0, 1)),
    registered_at      TEXT    NOT NULL,
    updated_at         TEXT    NOT NULL,
    CHECK (requires_approval = 1 OR (egress_class <> 'write' AND dangerous = 0)),
    CHECK (dangerous <= unwaived_dangerous AND (CASE egress_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END)
        <= (CASE unwaived_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END))
) STRICT, WITHOUT ROWID;

-- A person lets one exact definition count as less than it says, or than it was.
CREATE TABLE class_waivers (
    id           TEXT    NOT NULL PRIMARY KEY,
    tool_key     TEXT    NOT NULL,
    definition   TEXT    NOT NULL CHECK (length(definition) = 64),
    egress_class TEXT    NOT NULL CHECK (egress_class = 'none' OR egress_class = 'read_only' OR egress_class = 'write'),
    dangerous    INTEGER NOT NULL CHECK (dangerous IN (0, 1)),
    reason       TEXT    NOT NULL CHECK (reason <> ''),
    waived_by    TEXT    NOT NULL CHECK (waived_by <> ''),
    waived_at    TEXT    NOT NULL,
    ended_at     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX class_waivers_live ON class_waivers (tool_key, definition) WHERE ended_at = '';

-- Words are compared one by one: of a list the engine would make a table first, for
-- every row.
CREATE TABLE tool_invocations (
    n                   INTEGER NOT NULL PRIMARY KEY CHECK (n > 0),
    id                  TEXT    NOT NULL UNIQUE,
    tool_key            TEXT    NOT NULL,
    definition          TEXT    NOT NULL,
    agent               TEXT    NOT NULL,
    acts_for            TEXT    NOT NULL,
    token               TEXT    NOT NULL,
    session             TEXT    NOT NULL,
    task                TEXT    NOT NULL,
    door                TEXT    NOT NULL,
    action              TEXT    NOT NULL,
    risk                TEXT    NOT NULL,
    egress_class        TEXT    NOT NULL CHECK (egress_class = 'none' OR egress_class = 'read_only' OR egress_class = 'write'),
    dangerous           INTEGER NOT NULL CHECK (dangerous IN (0, 1)),
    reads               INTEGER NOT NULL CHECK (reads IN (0, 1)),
    args_sha256         TEXT    NOT NULL,
    args_bytes          INTEGER NOT NULL CHECK (args_bytes >= 0),
    idempotency_key     TEXT    NOT NULL,
    cost_estimate       REAL,
    asked               TEXT    NOT NULL,
    subject             TEXT    NOT NULL,
    digest              TEXT    NOT NULL,
    quorum              INTEGER NOT NULL CHECK (quorum >= 0),
    not_by              TEXT    NOT NULL,
    edit_of             TEXT    NOT NULL,
    requested_at        TEXT    NOT NULL CHECK (requested_at <> ''),
    expires_at          TEXT    NOT NULL,
    status              TEXT    NOT NULL CHECK (status = 'pending' OR status = 'running' OR status = 'completed' OR status = 'failed' OR status = 'rejected' OR status = 'expired' OR status = 'cancelled' OR status = 'unknown' OR status = 'denied'),
    approval_status     TEXT    NOT NULL CHECK (approval_status = 'not_required' OR approval_status = 'pending' OR approval_status = 'approved' OR approval_status = 'rejected' OR approval_status = 'expired'),
    approval_reason     TEXT    NOT NULL,
    escalations         INTEGER NOT NULL CHECK (escalations >= 0),
    decided_at          TEXT    NOT NULL,
    decided_by          TEXT    NOT NULL,
    grant_id            TEXT    NOT NULL,
    started_at          TEXT    NOT NULL,
    claimed_at          TEXT    NOT NULL,
    completed_at        TEXT    NOT NULL,
    worker              TEXT    NOT NULL,
    fence               INTEGER NOT NULL CHECK (fence >= 0),
    lease_until         TEXT    NOT NULL,
    outcome             TEXT    NOT NULL,
    replaced_by         TEXT    NOT NULL,
    measured_micros     INTEGER CHECK (measured_micros >= 0),
    measured_cpu_micros INTEGER CHECK (measured_cpu_micros >= 0),
    result_bytes        INTEGER CHECK (result_bytes >= 0),
    sealed              BLOB,
    -- Nothing of class write runs, and nothing dangerous, without a person's word.
    CHECK (approval_status <> 'not_required' OR status = 'denied' OR (egress_class <> 'write' AND dangerous = 0)),
    CHECK ((status <> 'running' AND status <> 'completed' AND status <> 'failed' AND status <> 'unknown') OR approval_status IN ('not_required', 'approved')),
    CHECK ((status = 'pending') <= (approval_status = 'pending')),
    CHECK ((status = 'rejected') = (approval_status = 'rejected')),
    CHECK ((status = 'expired') = (approval_status = 'expired')),
    CHECK (approval_status NOT IN ('approved', 'rejected') OR (decided_by <> '' AND decided_at <> '' AND decided_at < expires_at)),
    CHECK (approval_status IN ('not_required', 'expired') OR expires_at > requested_at),
    CHECK (approval_status = 'not_required' OR grant_id <> '' OR (asked <> '' AND subject <> '' AND digest <> '' AND quorum > 0)),
    CHECK ((status <> 'running' AND status <> 'completed' AND status <> 'failed' AND status <> 'unknown') OR started_at <> ''),
    CHECK ((status <> 'completed' AND status <> 'failed' AND status <> 'unknown') OR fence > 0),
    -- What was cut off, or ended in favour of a grant, frees its key: only what changes
    -- nothing may be the first, and only what never ran the second.
    CHECK (outcome <> 'interrupted' OR (status = 'failed' AND reads = 1 AND egress_class <> 'write')),
    CHECK (outcome <> 'granted' OR (status = 'cancelled' AND fence = 0)),
    CHECK ((status IN ('pending', 'running')) = (completed_at = '')),
    CHECK (worker = '' OR (fence > 0 AND claimed_at <> '' AND lease_until > claimed_at)),
    -- What was shown is there while it can be needed, and not after.
    CHECK (sealed IS NULL OR status IN ('pending', 'running')),
    CHECK (sealed IS NOT NULL OR status NOT IN ('pending', 'running') OR approval_status = 'not_required' OR grant_id <> '')
) STRICT;
CREATE UNIQUE INDEX invocations_open ON tool_invocations (asked) WHERE asked <> '' AND status IN ('pending', 'running');
CREATE UNIQUE INDEX invocations_key ON tool_invocations (agent, idempotency_key) WHERE idempotency_key <> '' AND status <> 'denied' AND outcome NOT IN ('interrupted', 'granted');
CREATE INDEX invocations_pending ON tool_invocations (n, expires_at) WHERE status = 'pending';
CREATE INDEX invocations_pending_agent ON tool_invocations (agent) WHERE status = 'pending';
CREATE INDEX invocations_running ON tool_invocations (n, worker) WHERE status = 'running';
CREATE INDEX invocations_unknown ON tool_invocations (n) WHERE status = 'unknown';
CREATE INDEX invocations_asked ON tool_invocations (agent, requested_at) WHERE asked <> '';

-- Keys of callers whose call was one with another's that was there already.
CREATE TABLE invocation_keys (
    agent           TEXT NOT NULL,
    idempotency_key TEXT NOT NULL CHECK (idempotency_key <> ''),
    invocation      TEXT NOT NULL,
    PRIMARY KEY (agent, idempotency_key)
) STRICT, WITHOUT ROWID;

-- Each person's own answer; an approval takes as many as its quorum says.
CREATE TABLE tool_approvals (
    invocation TEXT NOT NULL,
    person     TEXT NOT NULL CHECK (person <> ''),
    decision   TEXT NOT NULL CHECK (decision IN ('approve', 'reject')),
    digest     TEXT NOT NULL CHECK (digest <> ''),
    factor     TEXT NOT NULL CHECK (factor <> ''),
    at         TEXT NOT NULL,
    proof      BLOB NOT NULL, -- that the daemon took it, with a key that is not in here
    PRIMARY KEY (invocation, person)
) STRICT, WITHOUT ROWID;

-- A standing approval, as narrow as the person made it.
CREATE TABLE grants (
    id           TEXT    NOT NULL PRIMARY KEY,
    invocation   TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    tool_key     TEXT    NOT NULL,
    definition   TEXT    NOT NULL,
    policy       TEXT    NOT NULL,
    confinement  TEXT    NOT NULL,
    egress_class TEXT    NOT NULL CHECK (egress_class = 'none' OR egress_class = 'read_only' OR egress_class = 'write'),
    max_uses     INTEGER NOT NULL CHECK (max_uses > 0),
    used         INTEGER NOT NULL CHECK (used >= 0 AND used <= max_uses),
    made_at      TEXT    NOT NULL,
    made_by      TEXT    NOT NULL CHECK (made_by <> ''),
    expires_at   TEXT    NOT NULL CHECK (expires_at > made_at),
    revoked_at   TEXT    NOT NULL,
    revoked_by   TEXT    NOT NULL,
    sealed       BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_live ON grants (agent, tool_key) WHERE revoked_at = '';

-- What came of a call that somebody may still come back for, encrypted.
CREATE TABLE invocation_results (
    invocation   TEXT NOT NULL PRIMARY KEY,
    asked        TEXT NOT NULL,
    kept_at      TEXT NOT NULL,
    delivered_at TEXT NOT NULL,
    sealed       BLOB NOT NULL
) STRICT;
CREATE INDEX invocation_results_waiting ON invocation_results (asked) WHERE asked <> '' AND delivered_at = '';
CREATE INDEX invocation_results_age ON invocation_results (kept_at);

-- What a person found out about an outcome that could not be known.
CREATE TABLE invocation_resolutions (
    invocation  TEXT NOT NULL PRIMARY KEY,
    happened    TEXT NOT NULL CHECK (happened = 'yes' OR happened = 'no' OR happened = 'partly'),
    note        TEXT NOT NULL,
    resolved_by TEXT NOT NULL CHECK (resolved_by <> ''),
    resolved_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Of class write, and of what is dangerous, a false is rewritten to true. The row
-- is put in as it must be, and the statement that brought it otherwise is dropped.
-- +goose StatementBegin
CREATE TRIGGER trg_tools_registry_egress_guard BEFORE INSERT ON tools_registry
WHEN NEW.requires_approval IS NOT 1 AND (NEW.egress_class IS NOT 'none' AND NEW.egress_class IS NOT 'read_only' OR NEW.dangerous IS NOT 0)
BEGIN
    INSERT INTO tools_registry (key, definition, egress_class, dangerous, unwaived_class, unwaived_dangerous, requires_approval, registered_at, updated_at)
    VALUES (NEW.key, NEW.definition, NEW.egress_class, NEW.dangerous, NEW.unwaived_class, NEW.unwaived_dangerous, 1, NEW.registered_at, NEW.updated_at);
    SELECT RAISE(IGNORE);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER trg_tools_registry_egress_guard_update BEFORE UPDATE ON tools_registry
WHEN NEW.requires_approval IS NOT 1 AND (NEW.egress_class IS NOT 'none' AND NEW.egress_class IS NOT 'read_only' OR NEW.dangerous IS NOT 0)
BEGIN
    UPDATE tools_registry SET key = NEW.key, definition = NEW.definition, egress_class = NEW.egress_class, dangerous = NEW.dangerous,
        unwaived_class = NEW.unwaived_class, unwaived_dangerous = NEW.unwaived_dangerous, requires_approval = 1,
        registered_at = NEW.registered_at, updated_at = NEW.updated_at WHERE key = OLD.key;
    SELECT RAISE(IGNORE);
END;
-- +goose StatementEnd
-- A tool is registered once, unwaived, and as no less than the same name in other
-- letters: a new spelling is no way around a class.
-- +goose StatementBegin
CREATE TRIGGER tools_registry_begin BEFORE INSERT ON tools_registry
WHEN EXISTS (SELECT 1 FROM tools_registry WHERE key = NEW.key) OR NEW.egress_class NOT IN ('none', 'read_only', 'write')
    OR NEW.egress_class IS NOT NEW.unwaived_class OR NEW.dangerous IS NOT NEW.unwaived_dangerous
    OR EXISTS (SELECT 1 FROM tools_registry r WHERE lower(r.key) = lower(NEW.key) AND (r.unwaived_dangerous > NEW.unwaived_dangerous
        OR (CASE r.unwaived_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END)
            > (CASE NEW.unwaived_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END)))
BEGIN SELECT RAISE(ABORT, 'a tool is registered once, as no less than it was'); END;
-- +goose StatementEnd
-- Neither a new name for the row nor a lower class without a live waiver of that very
-- definition: what was waived of one definition does not pass to the next.
-- +goose StatementBegin
CREATE TRIGGER tools_registry_steps BEFORE UPDATE ON tools_registry
WHEN NEW.key IS NOT OLD.key OR NEW.registered_at IS NOT OLD.registered_at OR NEW.unwaived_dangerous < OLD.unwaived_dangerous
    OR NEW.egress_class NOT IN ('none', 'read_only', 'write') OR NEW.unwaived_class NOT IN ('none', 'read_only', 'write')
    OR (CASE NEW.unwaived_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END)
        < (CASE OLD.unwaived_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END)
    OR ((NEW.egress_class IS NOT NEW.unwaived_class OR NEW.dangerous IS NOT NEW.unwaived_dangerous)
        AND NOT EXISTS (SELECT 1 FROM class_waivers w WHERE w.tool_key = NEW.key AND w.definition = NEW.definition AND w.ended_at = ''
            AND w.egress_class = NEW.egress_class AND w.dangerous = NEW.dangerous))
BEGIN SELECT RAISE(ABORT, 'a class is lowered by a waiver only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tools_registry_keep BEFORE DELETE ON tools_registry
BEGIN SELECT RAISE(ABORT, 'registered tools are kept'); END;
-- +goose StatementEnd

-- A waiver is of a definition as it is registered, and lowers it.
-- +goose StatementBegin
CREATE TRIGGER class_waivers_begin BEFORE INSERT ON class_waivers
WHEN NEW.ended_at <> '' OR NEW.waived_by = '' OR NEW.reason = '' OR EXISTS (SELECT 1 FROM class_waivers WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM class_waivers WHERE tool_key = NEW.tool_key AND definition = NEW.definition AND ended_at = '')
    OR NOT EXISTS (SELECT 1 FROM people WHERE name = NEW.waived_by AND role IN ('operator', 'admin'))
    OR NOT EXISTS (SELECT 1 FROM tools_registry r WHERE r.key = NEW.tool_key AND r.definition = NEW.definition AND NEW.dangerous <= r.unwaived_dangerous
        AND (CASE NEW.egress_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END)
            <= (CASE r.unwaived_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END))
BEGIN SELECT RAISE(ABORT, 'a waiver is made once, by an operator, of what is registered'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER class_waivers_steps BEFORE UPDATE ON class_waivers
WHEN NEW.id IS NOT OLD.id OR NEW.tool_key IS NOT OLD.tool_key OR NEW.definition IS NOT OLD.definition OR NEW.egress_class IS NOT OLD.egress_class
    OR NEW.dangerous IS NOT OLD.dangerous OR NEW.reason IS NOT OLD.reason OR NEW.waived_by IS NOT OLD.waived_by OR NEW.waived_at IS NOT OLD.waived_at
    OR OLD.ended_at <> '' OR NEW.ended_at = ''
BEGIN SELECT RAISE(ABORT, 'a waiver can only end'); END;
-- +goose StatementEnd
-- What it lowered goes up again with it.
-- +goose StatementBegin
CREATE TRIGGER class_waivers_end AFTER UPDATE ON class_waivers
WHEN NEW.ended_at <> ''
BEGIN
    UPDATE tools_registry SET egress_class = unwaived_class, dangerous = unwaived_dangerous, updated_at = NEW.ended_at,
        requires_approval = max(requires_approval, unwaived_class = 'write', unwaived_dangerous)
        WHERE key = NEW.tool_key AND definition = NEW.definition AND (egress_class <> unwaived_class OR dangerous <> unwaived_dangerous);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER class_waivers_keep BEFORE DELETE ON class_waivers
BEGIN SELECT RAISE(ABORT, 'waivers are kept'); END;
-- +goose StatementEnd

-- IS NOT TRUE, and not a function around it, lets the engine stop at the first answer:
-- these two run for every call.

-- An invocation begins as a request that waits; or running, where its tool as it is
-- registered needs nobody or a live grant covers it; or as a call that was refused.
-- It takes the next place (-1: the engine gives it one), neither one that is taken nor
-- one far off, after which there would be no order.
-- +goose StatementBegin
CREATE TRIGGER invocations_begin BEFORE INSERT ON tool_invocations
BEGIN
    SELECT RAISE(ABORT, 'an invocation cannot begin so')
    WHERE EXISTS (SELECT 1 FROM tool_invocations WHERE id = NEW.id) OR (NEW.n <> -1 AND NEW.n <> (SELECT coalesce(max(n), 0) + 1 FROM tool_invocations))
    OR (NEW.idempotency_key <> '' AND NEW.status <> 'denied' AND EXISTS (SELECT 1 FROM tool_invocations
        WHERE agent = NEW.agent AND idempotency_key = NEW.idempotency_key AND idempotency_key <> '' AND status <> 'denied' AND outcome NOT IN ('interrupted', 'granted')))
    OR (NEW.asked <> '' AND EXISTS (SELECT 1 FROM tool_invocations WHERE asked = NEW.asked AND asked <> '' AND status IN ('pending', 'running')))
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

-- What was asked never changes. Its guard is one by itself, since the engine leaves it
-- out where a statement does not name these columns: then no call pays for it.
-- +goose StatementBegin
CREATE TRIGGER invocations_fixed BEFORE UPDATE OF id, tool_key, definition, agent, acts_for, token, session, task, door, action, risk, egress_class, dangerous, reads, args_sha256, args_bytes,
    idempotency_key, cost_estimate, asked, subject, digest, quorum, not_by, edit_of, requested_at, expires_at, grant_id ON tool_invocations
WHEN NEW.id IS NOT OLD.id OR NEW.tool_key IS NOT OLD.tool_key OR NEW.definition IS NOT OLD.definition OR NEW.agent IS NOT OLD.agent OR NEW.acts_for IS NOT OLD.acts_for OR
    NEW.token IS NOT OLD.token OR NEW.session IS NOT OLD.session OR NEW.task IS NOT OLD.task OR NEW.door IS NOT OLD.door OR NEW.action IS NOT OLD.action OR NEW.risk IS NOT
    OLD.risk OR NEW.egress_class IS NOT OLD.egress_class OR NEW.dangerous IS NOT OLD.dangerous OR NEW.reads IS NOT OLD.reads OR NEW.args_sha256 IS NOT OLD.args_sha256 OR
    NEW.args_bytes IS NOT OLD.args_bytes OR NEW.idempotency_key IS NOT OLD.idempotency_key OR NEW.cost_estimate IS NOT OLD.cost_estimate OR NEW.asked IS NOT OLD.asked OR
    NEW.subject IS NOT OLD.subject OR NEW.digest IS NOT OLD.digest OR NEW.quorum IS NOT OLD.quorum OR NEW.not_by IS NOT OLD.not_by OR NEW.edit_of IS NOT OLD.edit_of OR
    NEW.requested_at IS NOT OLD.requested_at OR NEW.expires_at IS NOT OLD.expires_at OR NEW.grant_id IS NOT OLD.grant_id
BEGIN SELECT RAISE(ABORT, 'an invocation cannot take this step'); END;
-- +goose StatementEnd
-- A status only moves forward, a person's answer stays as it was given, a claim is its
-- worker's alone, and what has ended never changes. Before the step, since a temporary
-- trigger of somebody's own can keep one after it from running.
-- +goose StatementBegin
CREATE TRIGGER invocations_steps BEFORE UPDATE ON tool_invocations
WHEN NEW.n IS NOT OLD.n
    OR (OLD.status IN ('pending', 'running')
        AND (NEW.outcome <> 'interrupted' OR (NEW.status = 'failed' AND OLD.reads = 1 AND OLD.egress_class <> 'write'))
        AND (NEW.outcome <> 'granted' OR (NEW.status = 'cancelled' AND NEW.fence = 0))
        AND (NEW.escalations = OLD.escalations OR NEW.status = 'pending')
        AND (NEW.approval_reason = OLD.approval_reason OR NEW.status = 'rejected')
        AND (NEW.replaced_by = '' OR (OLD.status = 'pending' AND NEW.status = 'cancelled'))
        AND (NEW.status = 'running' OR (NEW.worker = OLD.worker AND NEW.fence = OLD.fence AND NEW.claimed_at = OLD.claimed_at AND NEW.lease_until = OLD.lease_until))
        AND ((OLD.worker <> '' AND NEW.status <> 'running')
            OR (NEW.measured_micros IS NULL AND NEW.measured_cpu_micros IS NULL AND NEW.result_bytes IS NULL))
        AND (
        -- the run ends, by the word of the worker that holds it
        (OLD.status = 'running' AND OLD.worker <> '' AND (NEW.status = 'completed' OR NEW.status = 'failed' OR NEW.status = 'cancelled' OR NEW.status = 'unknown') AND NEW.completed_at <> '' AND NEW.outcome <> '' AND NEW.sealed IS NULL
            AND NEW.approval_status = OLD.approval_status AND NEW.decided_by = OLD.decided_by AND NEW.decided_at = OLD.decided_at
            AND NEW.started_at = OLD.started_at)
        -- it is asked about higher up
        OR (OLD.status = 'pending' AND NEW.status = 'pending' AND NEW.approval_status = 'pending' AND NEW.escalations = OLD.escalations + 1
            AND NEW.sealed IS OLD.sealed AND NEW.decided_by = '' AND NEW.decided_at = '' AND NEW.started_at = '' AND NEW.fence = 0 AND NEW.worker = ''
            AND NEW.claimed_at = '' AND NEW.approval_reason = '' AND NEW.outcome = '' AND NEW.replaced_by = '' AND NEW.completed_at = '')
        -- enough people who may still do so agreed, in time, and one of them now
        OR (OLD.status = 'pending' AND NEW.status = 'running' AND NEW.approval_status = 'approved' AND NEW.decided_by <> '' AND NEW.decided_at <> ''
            AND NEW.decided_at < OLD.expires_at AND NEW.started_at = NEW.decided_at AND NEW.sealed IS OLD.sealed AND NEW.escalations = OLD.escalations
            AND NEW.fence = 0 AND NEW.worker = '' AND NEW.claimed_at = '' AND NEW.lease_until = '' AND NEW.outcome = '' AND NEW.completed_at = ''
            AND EXISTS (SELECT 1 FROM tool_approvals v WHERE v.invocation = OLD.id AND v.person = NEW.decided_by AND v.decision = 'approve')
            AND (SELECT count(*) FROM tool_approvals v JOIN people p ON p.name = v.person AND p.role IN ('approver', 'admin')
                WHERE v.invocation = OLD.id AND v.decision = 'approve' AND v.digest = OLD.digest) >= OLD.quorum)
        -- somebody said no
        OR (OLD.status = 'pending' AND NEW.status = 'rejected' AND NEW.approval_status = 'rejected' AND NEW.decided_by <> '' AND NEW.decided_at <> ''
            AND NEW.decided_at < OLD.expires_at AND NEW.completed_at = NEW.decided_at AND NEW.sealed IS NULL AND NEW.started_at = ''
            AND EXISTS (SELECT 1 FROM tool_approvals v WHERE v.invocation = OLD.id AND v.person = NEW.decided_by AND v.decision = 'reject' AND v.digest = OLD.digest))
        -- its time is over
        OR (OLD.status = 'pending' AND NEW.status = 'expired' AND NEW.approval_status = 'expired' AND NEW.completed_at >= OLD.expires_at AND NEW.sealed IS NULL
            AND NEW.decided_by = '' AND NEW.decided_at = '' AND NEW.started_at = '')
        -- it is not wanted any more, while nobody holds it
        OR (OLD.worker = '' AND NEW.status = 'cancelled' AND NEW.approval_status = OLD.approval_status AND NEW.completed_at <> '' AND NEW.sealed IS NULL
            AND NEW.decided_by = OLD.decided_by AND NEW.decided_at = OLD.decided_at AND NEW.started_at = OLD.started_at)
        -- a worker takes it up, before the approval is over, if its tool is what was approved
        OR (OLD.status = 'running' AND NEW.status = 'running' AND OLD.worker = '' AND NEW.worker <> '' AND NEW.fence = OLD.fence + 1
            AND NEW.claimed_at >= OLD.started_at AND NEW.claimed_at >= OLD.claimed_at AND NEW.claimed_at < OLD.expires_at AND NEW.lease_until > NEW.claimed_at
            AND EXISTS (SELECT 1 FROM tools_registry r WHERE r.key = OLD.tool_key AND r.definition = OLD.definition AND r.dangerous <= OLD.dangerous
                AND (CASE r.egress_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END) <= (CASE OLD.egress_class WHEN 'none' THEN 0 WHEN 'read_only' THEN 1 ELSE 2 END))
            AND NEW.sealed IS OLD.sealed AND NEW.approval_status = OLD.approval_status AND NEW.decided_by = OLD.decided_by AND NEW.decided_at = OLD.decided_at
            AND NEW.started_at = OLD.started_at AND NEW.outcome = '' AND NEW.replaced_by = '' AND NEW.completed_at = '')
        -- it goes on holding it
        OR (OLD.status = 'running' AND NEW.status = 'running' AND OLD.worker <> '' AND NEW.worker = OLD.worker AND NEW.fence = OLD.fence AND NEW.lease_until > OLD.lease_until
            AND NEW.claimed_at = OLD.claimed_at AND NEW.sealed IS OLD.sealed AND NEW.approval_status = OLD.approval_status AND NEW.decided_by = OLD.decided_by
            AND NEW.decided_at = OLD.decided_at AND NEW.started_at = OLD.started_at AND NEW.outcome = ''
            AND NEW.replaced_by = '' AND NEW.completed_at = '')
        -- a worker is gone, and what it ran changes nothing: another may
        OR (OLD.status = 'running' AND NEW.status = 'running' AND OLD.worker <> '' AND NEW.worker = '' AND OLD.reads = 1 AND OLD.egress_class <> 'write'
            AND NEW.fence = OLD.fence AND NEW.claimed_at = OLD.claimed_at AND NEW.lease_until = OLD.lease_until AND NEW.sealed IS OLD.sealed AND OLD.sealed IS NOT NULL AND NEW.approval_status = OLD.approval_status
            AND NEW.decided_by = OLD.decided_by AND NEW.decided_at = OLD.decided_at AND NEW.started_at = OLD.started_at
            AND NEW.outcome = '' AND NEW.replaced_by = '' AND NEW.completed_at = '')
    )) IS NOT TRUE
BEGIN SELECT RAISE(ABORT, 'an invocation cannot take this step'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invocations_keep BEFORE DELETE ON tool_invocations
BEGIN SELECT RAISE(ABORT, 'invocations are kept'); END;
-- +goose StatementEnd

-- A key stands for one call of its agent, for ever.
-- +goose StatementBegin
CREATE TRIGGER invocation_keys_begin BEFORE INSERT ON invocation_keys
WHEN NEW.idempotency_key = '' OR EXISTS (SELECT 1 FROM invocation_keys WHERE agent = NEW.agent AND idempotency_key = NEW.idempotency_key)
    OR EXISTS (SELECT 1 FROM tool_invocations WHERE agent = NEW.agent AND idempotency_key = NEW.idempotency_key AND idempotency_key <> '' AND status <> 'denied' AND outcome NOT IN ('interrupted', 'granted'))
    OR NOT EXISTS (SELECT 1 FROM tool_invocations WHERE id = NEW.invocation AND agent = NEW.agent AND asked <> '')
BEGIN SELECT RAISE(ABORT, 'a key stands for one call'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invocation_keys_steps BEFORE UPDATE ON invocation_keys
BEGIN SELECT RAISE(ABORT, 'a key stands for one call'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invocation_keys_keep BEFORE DELETE ON invocation_keys
BEGIN SELECT RAISE(ABORT, 'keys are kept'); END;
-- +goose StatementEnd

-- Only somebody who may approve answers, once, in time, about what was shown, and
-- not about what was asked for them where four eyes are called for.
-- +goose StatementBegin
CREATE TRIGGER tool_approvals_begin BEFORE INSERT ON tool_approvals
WHEN NEW.decision NOT IN ('approve', 'reject') OR NEW.factor = '' OR EXISTS (SELECT 1 FROM tool_approvals WHERE invocation = NEW.invocation AND person = NEW.person)
    OR NOT EXISTS (SELECT 1 FROM people WHERE name = NEW.person AND role IN ('approver', 'admin'))
    OR NOT EXISTS (SELECT 1 FROM tool_invocations i WHERE i.id = NEW.invocation AND i.status = 'pending' AND i.digest = NEW.digest
        AND i.requested_at <= NEW.at AND i.expires_at > NEW.at
        AND (NEW.decision = 'reject' OR i.not_by <> NEW.person))
BEGIN SELECT RAISE(ABORT, 'this answer does not count'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tool_approvals_steps BEFORE UPDATE ON tool_approvals
BEGIN SELECT RAISE(ABORT, 'an answer is given once'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tool_approvals_keep BEFORE DELETE ON tool_approvals
BEGIN SELECT RAISE(ABORT, 'answers are kept'); END;
-- +goose StatementEnd

-- A grant comes from a request that its maker just approved alone, one from each; it
-- is never for what is dangerous or takes more than one pair of eyes.
-- +goose StatementBegin
CREATE TRIGGER grants_begin BEFORE INSERT ON grants
WHEN NEW.used IS NOT 0 OR NEW.max_uses < 1 OR NEW.expires_at <= NEW.made_at OR NEW.revoked_at <> '' OR NEW.revoked_by <> ''
    OR EXISTS (SELECT 1 FROM grants WHERE id = NEW.id OR invocation = NEW.invocation)
    OR NOT EXISTS (SELECT 1 FROM people WHERE name = NEW.made_by AND role IN ('approver', 'admin'))
    OR NOT EXISTS (SELECT 1 FROM tool_invocations i WHERE i.id = NEW.invocation AND i.status = 'running' AND i.fence = 0 AND i.approval_status = 'approved' AND i.decided_by = NEW.made_by
        AND i.grant_id = '' AND i.dangerous = 0 AND i.quorum = 1 AND i.not_by = '' AND i.agent = NEW.agent AND i.tool_key = NEW.tool_key
        AND i.definition = NEW.definition AND i.egress_class = NEW.egress_class)
BEGIN SELECT RAISE(ABORT, 'a grant comes from a request that its maker approved'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER grants_steps BEFORE UPDATE ON grants
WHEN NEW.id IS NOT OLD.id OR NEW.invocation IS NOT OLD.invocation OR NEW.agent IS NOT OLD.agent OR NEW.tool_key IS NOT OLD.tool_key
    OR NEW.definition IS NOT OLD.definition OR NEW.policy IS NOT OLD.policy OR NEW.confinement IS NOT OLD.confinement OR NEW.egress_class IS NOT OLD.egress_class
    OR NEW.max_uses IS NOT OLD.max_uses OR NEW.made_at IS NOT OLD.made_at OR NEW.made_by IS NOT OLD.made_by OR NEW.expires_at IS NOT OLD.expires_at
    OR NEW.sealed IS NOT OLD.sealed OR OLD.revoked_at <> ''
    OR NOT coalesce((NEW.used = OLD.used + 1 AND NEW.used <= OLD.max_uses AND NEW.revoked_at = '' AND NEW.revoked_by = '')
        OR (NEW.used = OLD.used AND NEW.revoked_at <> ''), 0)
BEGIN SELECT RAISE(ABORT, 'a grant can only be used up or revoked'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER grants_keep BEFORE DELETE ON grants
BEGIN SELECT RAISE(ABORT, 'grants are kept'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER invocation_results_begin BEFORE INSERT ON invocation_results
WHEN EXISTS (SELECT 1 FROM invocation_results WHERE invocation = NEW.invocation)
    OR NOT EXISTS (SELECT 1 FROM tool_invocations WHERE id = NEW.invocation AND (status = 'completed' OR status = 'failed' OR status = 'cancelled' OR status = 'unknown' OR status = 'rejected')
        AND (NEW.asked = '' OR NEW.asked = asked))
BEGIN SELECT RAISE(ABORT, 'an outcome is kept once, when it is there'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invocation_results_steps BEFORE UPDATE ON invocation_results
WHEN NEW.invocation IS NOT OLD.invocation OR NEW.asked IS NOT OLD.asked OR NEW.kept_at IS NOT OLD.kept_at OR NEW.sealed IS NOT OLD.sealed
    OR OLD.delivered_at <> '' OR NEW.delivered_at = ''
BEGIN SELECT RAISE(ABORT, 'an outcome is handed over once'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER invocation_resolutions_begin BEFORE INSERT ON invocation_resolutions
WHEN (NEW.happened <> 'yes' AND NEW.happened <> 'no' AND NEW.happened <> 'partly') OR EXISTS (SELECT 1 FROM invocation_resolutions WHERE invocation = NEW.invocation)
    OR NOT EXISTS (SELECT 1 FROM tool_invocations WHERE id = NEW.invocation AND status = 'unknown')
    OR NOT EXISTS (SELECT 1 FROM people WHERE name = NEW.resolved_by AND (role = 'operator' OR role = 'approver' OR role = 'admin'))
BEGIN SELECT RAISE(ABORT, 'what is unknown is resolved once, by a person'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invocation_resolutions_steps BEFORE UPDATE ON invocation_resolutions
BEGIN SELECT RAISE(ABORT, 'what was found out is kept'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invocation_resolutions_keep BEFORE DELETE ON invocation_resolutions
BEGIN SELECT RAISE(ABORT, 'what was found out is kept'); END;
-- +goose StatementEnd
