-- +goose Up
-- Every index that a step of a call changes is a page more to write before it may go on.

-- Without the worker, whose name would have the index written again when one takes up what
-- was approved. What runs is little, and is looked at row by row.
DROP INDEX invocations_running;
CREATE INDEX invocations_running ON tool_invocations (n) WHERE status = 'running';

-- Where the entries about a call are, through the last signed head. It is written with
-- the head, for many entries at once; the few after it are looked at one by one.
DROP INDEX ledger_call;
CREATE TABLE ledger_calls (
    call TEXT    NOT NULL CHECK (call <> ''),
    seq  INTEGER NOT NULL,
    PRIMARY KEY (call, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger_calls (call, seq)
    SELECT call, seq FROM ledger WHERE call <> '' AND seq <= (SELECT coalesce(max(seq), 0) FROM ledger_heads);

-- As in 00001, but for how it finds the last head: by its key.
DROP TRIGGER ledger_heads_append_only_insert;
-- +goose StatementBegin
CREATE TRIGGER ledger_heads_append_only_insert BEFORE INSERT ON ledger_heads
WHEN NEW.chain IS NOT (SELECT chain FROM ledger_chain) OR NEW.seq <= (SELECT coalesce(max(seq), 0) FROM ledger_heads WHERE chain = NEW.chain)
    OR NEW.seq > (SELECT coalesce(max(seq), 0) FROM ledger)
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_heads_calls AFTER INSERT ON ledger_heads
BEGIN
    INSERT INTO ledger_calls (call, seq) SELECT call, seq FROM ledger
        WHERE seq > (SELECT coalesce(max(seq), 0) FROM ledger_heads WHERE chain = NEW.chain AND seq < NEW.seq) AND seq <= NEW.seq AND call <> ''
            AND NOT EXISTS (SELECT 1 FROM ledger_calls c WHERE c.call = ledger.call AND c.seq = ledger.seq);
END;
-- +goose StatementEnd
-- A row says nothing but where an entry is: one more that is true, or is there already,
-- tells nobody anything else.
-- +goose StatementBegin
CREATE TRIGGER ledger_calls_append_only_insert BEFORE INSERT ON ledger_calls
WHEN NEW.call IS NOT (SELECT call FROM ledger WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_calls_append_only_update BEFORE UPDATE ON ledger_calls
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_calls_append_only_delete BEFORE DELETE ON ledger_calls
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- +goose StatementEnd
