-- +goose Up
-- The sandboxes that are kept between calls, and all that are containers: whose each is, and
-- what became of it. One that was live when its daemon was gone is lost.
CREATE TABLE sandboxes (
    n         INTEGER NOT NULL PRIMARY KEY CHECK (n > 0),
    id        TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    driver    TEXT    NOT NULL CHECK (driver <> ''),
    agent     TEXT    NOT NULL,
    acts_for  TEXT    NOT NULL,
    session   TEXT    NOT NULL,
    task      TEXT    NOT NULL,
    kept      INTEGER NOT NULL CHECK (kept IN (0, 1)),
    container TEXT    NOT NULL,
    sidecar   TEXT    NOT NULL,
    image     TEXT    NOT NULL,
    since     TEXT    NOT NULL CHECK (since <> ''),
    state     TEXT    NOT NULL CHECK (state = 'live' OR state = 'ended' OR state = 'lost'),
    calls     INTEGER NOT NULL CHECK (calls >= 0),
    used_at   TEXT    NOT NULL,
    ended_at  TEXT    NOT NULL,
    CHECK ((state = 'live') = (ended_at = ''))
) STRICT;
CREATE INDEX sandboxes_live ON sandboxes (n) WHERE state = 'live';

-- As in 00001, the trigger on INSERT is what stops REPLACE.
-- +goose StatementBegin
CREATE TRIGGER sandboxes_begin BEFORE INSERT ON sandboxes
WHEN EXISTS (SELECT 1 FROM sandboxes WHERE id = NEW.id) OR (NEW.n <> -1 AND NEW.n <> (SELECT coalesce(max(n), 0) + 1 FROM sandboxes)) OR NEW.state <> 'live'
BEGIN SELECT RAISE(ABORT, 'a sandbox begins once, and live'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sandboxes_steps BEFORE UPDATE ON sandboxes
WHEN OLD.state <> 'live' OR NEW.state = 'live' OR NEW.n IS NOT OLD.n OR NEW.id IS NOT OLD.id OR NEW.driver IS NOT OLD.driver OR NEW.agent IS NOT OLD.agent
    OR NEW.acts_for IS NOT OLD.acts_for OR NEW.session IS NOT OLD.session OR NEW.task IS NOT OLD.task OR NEW.kept IS NOT OLD.kept
    OR NEW.container IS NOT OLD.container OR NEW.sidecar IS NOT OLD.sidecar OR NEW.image IS NOT OLD.image OR NEW.since IS NOT OLD.since
BEGIN SELECT RAISE(ABORT, 'a sandbox ends once, and nothing else of it changes'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sandboxes_keep BEFORE DELETE ON sandboxes
BEGIN SELECT RAISE(ABORT, 'what sandboxes there were is kept'); END;
-- +goose StatementEnd
