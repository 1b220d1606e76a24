-- +goose Up
-- Every table is STRICT, so that a column holds its own type and nothing that
-- compares like it, and all but the ledger are WITHOUT ROWID, so that no row can
-- be pushed out by its hidden number.
CREATE TABLE ledger_chain (
    chain TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
    chain TEXT    NOT NULL,
    seq   INTEGER NOT NULL CHECK (seq > 0),
    kind  TEXT    NOT NULL,
    call  TEXT    NOT NULL,
    agent TEXT    NOT NULL,
    at    TEXT    NOT NULL,
    body  TEXT    NOT NULL,
    hash  BLOB    NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (seq)
) STRICT;
CREATE INDEX ledger_call ON ledger (call) WHERE call <> '';

CREATE TABLE ledger_heads (
    chain     TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    body      TEXT    NOT NULL,
    signature BLOB    NOT NULL CHECK (length(signature) = 64),
    PRIMARY KEY (chain, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE people (
    name       TEXT NOT NULL PRIMARY KEY,
    role       TEXT NOT NULL CHECK (role IN ('viewer', 'approver', 'operator', 'admin')),
    passphrase TEXT NOT NULL CHECK (passphrase LIKE '$argon2id$%'),
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id         TEXT NOT NULL PRIMARY KEY,
    agent      TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at TEXT NOT NULL,
    revoked_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE stops (
    agent  TEXT NOT NULL PRIMARY KEY,
    at     TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
    id           TEXT NOT NULL PRIMARY KEY,
    digest       TEXT NOT NULL,
    subject      TEXT NOT NULL,
    agent        TEXT NOT NULL,
    tool         TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'void', 'used')),
    requested_at TEXT NOT NULL,
    expires_at   TEXT NOT NULL,
    decided_at   TEXT NOT NULL,
    decided_by   TEXT NOT NULL,
    reason       TEXT NOT NULL,
    sealed       BLOB,
    CHECK (state NOT IN ('approved', 'rejected', 'used') OR (decided_by <> '' AND decided_at <> '' AND decided_at < expires_at)),
    CHECK ((state IN ('pending', 'approved')) = (sealed IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_state ON approvals (state, agent);
CREATE UNIQUE INDEX approvals_open ON approvals (subject) WHERE state IN ('pending', 'approved');

-- The triggers on INSERT are what stops REPLACE: it removes the rows in its way
-- without firing triggers on DELETE, unless the connection asked for that. They
-- repeat what constraints say, because a connection can switch CHECKs off.

-- +goose StatementBegin
CREATE TRIGGER ledger_chain_insert BEFORE INSERT ON ledger_chain
WHEN EXISTS (SELECT 1 FROM ledger_chain)
BEGIN SELECT RAISE(ABORT, 'a store has one chain'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_chain_update BEFORE UPDATE ON ledger_chain
BEGIN SELECT RAISE(ABORT, 'a store has one chain'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_chain_delete BEFORE DELETE ON ledger_chain
BEGIN SELECT RAISE(ABORT, 'a store has one chain'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER ledger_append_only_insert BEFORE INSERT ON ledger
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM ledger) OR NEW.chain IS NOT (SELECT chain FROM ledger_chain)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_append_only_update BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_append_only_delete BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_heads_append_only_insert BEFORE INSERT ON ledger_heads
WHEN NEW.chain IS NOT (SELECT chain FROM ledger_chain) OR NEW.seq <= (SELECT coalesce(max(seq), 0) FROM ledger_heads)
    OR NEW.seq > (SELECT coalesce(max(seq), 0) FROM ledger)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_heads_append_only_update BEFORE UPDATE ON ledger_heads
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_heads_append_only_delete BEFORE DELETE ON ledger_heads
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd

-- A token that was revoked stays revoked.
-- +goose StatementBegin
CREATE TRIGGER tokens_begin BEFORE INSERT ON tokens
WHEN NEW.revoked_at <> '' OR EXISTS (SELECT 1 FROM tokens WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM tokens WHERE hash = NEW.hash)
BEGIN SELECT RAISE(ABORT, 'a token is made once'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tokens_steps BEFORE UPDATE ON tokens
WHEN NEW.id IS NOT OLD.id OR NEW.agent IS NOT OLD.agent OR NEW.hash IS NOT OLD.hash OR NEW.created_at IS NOT OLD.created_at
    OR OLD.revoked_at <> '' OR NEW.revoked_at = ''
BEGIN SELECT RAISE(ABORT, 'a token can only be revoked'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tokens_keep BEFORE DELETE ON tokens
BEGIN SELECT RAISE(ABORT, 'tokens are kept'); END;
-- +goose StatementEnd

-- What was asked never changes, a state only moves forward, a person's answer
-- stays as it was given, and what was shown is there until the end and not after.
-- +goose StatementBegin
CREATE TRIGGER approvals_begin BEFORE INSERT ON approvals
WHEN NEW.state IS NOT 'pending' OR NEW.decided_at <> '' OR NEW.decided_by <> '' OR NEW.reason <> '' OR NEW.sealed IS NULL
    OR EXISTS (SELECT 1 FROM approvals WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM approvals WHERE subject = NEW.subject AND state IN ('pending', 'approved'))
BEGIN SELECT RAISE(ABORT, 'an approval begins pending'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER approvals_steps BEFORE UPDATE ON approvals
WHEN NEW.id IS NOT OLD.id OR NEW.digest IS NOT OLD.digest OR NEW.subject IS NOT OLD.subject OR NEW.agent IS NOT OLD.agent OR NEW.tool IS NOT OLD.tool
    OR NEW.requested_at IS NOT OLD.requested_at OR NEW.expires_at IS NOT OLD.expires_at
    OR NOT coalesce(
        (OLD.state = 'pending' AND NEW.state IN ('approved', 'rejected')
            AND NEW.decided_by <> '' AND NEW.decided_at <> '' AND NEW.decided_at < OLD.expires_at
            AND NEW.sealed IS CASE NEW.state WHEN 'approved' THEN OLD.sealed END)
        OR (((OLD.state = 'pending' AND NEW.state IN ('expired', 'void')) OR (OLD.state = 'approved' AND NEW.state IN ('used', 'expired', 'void')))
            AND NEW.decided_by IS OLD.decided_by AND NEW.decided_at IS OLD.decided_at AND NEW.reason IS OLD.reason AND NEW.sealed IS NULL), 0)
BEGIN SELECT RAISE(ABORT, 'an approval cannot take this step'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER approvals_keep BEFORE DELETE ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals are kept'); END;
-- +goose StatementEnd
