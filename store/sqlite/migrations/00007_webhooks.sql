-- +goose Up
-- How far each webhook has been told of what the ledger says: entry seq and all before it,
-- and of the next entry its first events, part of them.
CREATE TABLE webhooks (
    name          TEXT    NOT NULL PRIMARY KEY CHECK (name <> ''),
    seq           INTEGER NOT NULL CHECK (seq >= 0),
    part          INTEGER NOT NULL CHECK (part >= 0),
    delivered_at  TEXT    NOT NULL,
    failing_since TEXT    NOT NULL,
    failure       TEXT    NOT NULL,
    stopped_at    TEXT    NOT NULL,
    CHECK ((failing_since = '') = (failure = '')),
    CHECK (stopped_at = '' OR failing_since <> '')
) STRICT;

-- Going back would say things twice, and beyond the ledger's end would keep them quiet. As
-- in 00001, the trigger on INSERT is what stops REPLACE.
-- +goose StatementBegin
CREATE TRIGGER webhooks_begin BEFORE INSERT ON webhooks
WHEN EXISTS (SELECT 1 FROM webhooks WHERE name = NEW.name) OR NEW.seq > (SELECT coalesce(max(seq), 0) FROM ledger)
BEGIN SELECT RAISE(ABORT, 'a webhook begins once, within the ledger'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER webhooks_forward BEFORE UPDATE ON webhooks
WHEN NEW.name <> OLD.name OR NEW.seq < OLD.seq OR NEW.seq = OLD.seq AND NEW.part < OLD.part
    OR NEW.seq > (SELECT coalesce(max(seq), 0) FROM ledger)
BEGIN SELECT RAISE(ABORT, 'a webhook goes forward, within the ledger'); END;
-- +goose StatementEnd
