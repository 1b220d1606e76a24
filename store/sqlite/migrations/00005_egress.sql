-- +goose Up
-- What left boxes, and what was refused to. An index holds the number of its rows too,
-- so each finds a page in order.
CREATE TABLE egress_events (
    n             INTEGER NOT NULL PRIMARY KEY CHECK (n > 0),
    at            TEXT    NOT NULL CHECK (at <> ''),
    call          TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind <> ''),
    host          TEXT    NOT NULL,
    address       TEXT    NOT NULL,
    verdict       TEXT    NOT NULL CHECK (verdict <> ''),
    address_class TEXT    NOT NULL,
    rule          TEXT    NOT NULL,
    detail        TEXT    NOT NULL,
    sent          INTEGER NOT NULL CHECK (sent >= 0),
    received      INTEGER NOT NULL CHECK (received >= 0),
    micros        INTEGER NOT NULL CHECK (micros >= 0)
) STRICT;
CREATE INDEX egress_call ON egress_events (call);
CREATE INDEX egress_agent ON egress_events (agent);
CREATE INDEX egress_refused ON egress_events (n) WHERE verdict <> 'allowed';

-- As in 00001, the trigger on INSERT is what stops REPLACE, and repeats what
-- constraints say. Numbers have no gap, so that one shows.
-- +goose StatementBegin
CREATE TRIGGER egress_append_only_insert BEFORE INSERT ON egress_events
WHEN NEW.n IS NOT (SELECT coalesce(max(n), 0) + 1 FROM egress_events) OR NEW.at = '' OR NEW.kind = '' OR NEW.verdict = ''
    OR NEW.sent < 0 OR NEW.received < 0 OR NEW.micros < 0
BEGIN SELECT RAISE(ABORT, 'what left boxes is only added to'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER egress_append_only_update BEFORE UPDATE ON egress_events
BEGIN SELECT RAISE(ABORT, 'what left boxes is only added to'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER egress_append_only_delete BEFORE DELETE ON egress_events
BEGIN SELECT RAISE(ABORT, 'what left boxes is only added to'); END;
-- +goose StatementEnd
