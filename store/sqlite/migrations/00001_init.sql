-- +goose Up
CREATE TABLE ledger_chain (
    chain TEXT NOT NULL PRIMARY KEY
);

CREATE TABLE ledger (
    chain TEXT    NOT NULL,
    seq   INTEGER NOT NULL,
    kind  TEXT    NOT NULL,
    call  TEXT    NOT NULL,
    agent TEXT    NOT NULL,
    at    TEXT    NOT NULL,
    body  TEXT    NOT NULL,
    hash  BLOB    NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (seq)
);
CREATE INDEX ledger_call ON ledger (call) WHERE call <> '';

CREATE TABLE ledger_heads (
    chain     TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    body      TEXT    NOT NULL,
    signature BLOB    NOT NULL CHECK (length(signature) = 64),
    PRIMARY KEY (chain, seq)
);

CREATE TABLE people (
    name       TEXT NOT NULL PRIMARY KEY,
    role       TEXT NOT NULL CHECK (role IN ('viewer', 'approver', 'operator', 'admin')),
    passphrase TEXT NOT NULL CHECK (passphrase LIKE '$argon2id$%'),
    created_at TEXT NOT NULL
);

CREATE TABLE tokens (
    id         TEXT NOT NULL PRIMARY KEY,
    agent      TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at TEXT NOT NULL,
    revoked_at TEXT NOT NULL
);

CREATE TABLE stops (
    agent  TEXT NOT NULL PRIMARY KEY,
    at     TEXT NOT NULL,
    reason TEXT NOT NULL
);

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
    CHECK (state NOT IN ('approved', 'rejected', 'used') OR (decided_by <> '' AND decided_at <> ''))
);
CREATE INDEX approvals_state ON approvals (state, agent);
CREATE UNIQUE INDEX approvals_open ON approvals (subject) WHERE state IN ('pending', 'approved');

-- +goose StatementBegin
CREATE TRIGGER ledger_append_only_update BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_append_only_delete BEFORE DELETE ON ledger
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

-- What was asked never changes, and a state only moves forward.
-- +goose StatementBegin
CREATE TRIGGER approvals_steps BEFORE UPDATE ON approvals
WHEN NEW.id <> OLD.id OR NEW.digest <> OLD.digest OR NEW.subject <> OLD.subject OR NEW.agent <> OLD.agent OR NEW.tool <> OLD.tool
    OR NEW.requested_at <> OLD.requested_at OR NEW.expires_at <> OLD.expires_at
    OR (NEW.decided_by <> OLD.decided_by AND OLD.decided_by <> '')
    OR NOT ((OLD.state = 'pending' AND NEW.state IN ('approved', 'rejected', 'expired', 'void'))
         OR (OLD.state = 'approved' AND NEW.state IN ('used', 'expired', 'void')))
BEGIN SELECT RAISE(ABORT, 'an approval cannot take this step'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER approvals_begin BEFORE INSERT ON approvals
WHEN NEW.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'an approval begins pending'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER approvals_keep BEFORE DELETE ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals are kept'); END;
-- +goose StatementEnd
