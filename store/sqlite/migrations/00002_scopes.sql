-- +goose Up
-- Sessions and tasks, what constraints count within them, the definitions people
-- accepted, and what agents delegated.
CREATE TABLE sessions (
    id        TEXT NOT NULL PRIMARY KEY,
    token     TEXT NOT NULL,
    agent     TEXT NOT NULL,
    name      TEXT NOT NULL,
    opened_at TEXT NOT NULL,
    ended_at  TEXT NOT NULL,
    why       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_open ON sessions (agent) WHERE ended_at = '';

CREATE TABLE tasks (
    id        TEXT NOT NULL PRIMARY KEY,
    session   TEXT NOT NULL,
    agent     TEXT NOT NULL,
    name      TEXT NOT NULL,
    opened_at TEXT NOT NULL,
    ended_at  TEXT NOT NULL,
    why       TEXT NOT NULL,
    rating    INTEGER CHECK (rating BETWEEN 0 AND 10),
    rated_by  TEXT NOT NULL,
    CHECK ((rating IS NULL) = (rated_by = ''))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tasks_open ON tasks (session, name) WHERE ended_at = '';

-- Each counted call is numbered among those of its tool in its session, in its task
-- and of its agent, so that a quota costs one look, however high it is.
CREATE TABLE uses (
    call       TEXT    NOT NULL PRIMARY KEY,
    agent      TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    task       TEXT    NOT NULL,
    at         TEXT    NOT NULL,
    of_session INTEGER NOT NULL CHECK (of_session > 0),
    of_task    INTEGER NOT NULL CHECK (of_task > 0),
    of_agent   INTEGER NOT NULL CHECK (of_agent > 0),
    done       INTEGER NOT NULL CHECK (done IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX uses_session ON uses (session, tool, of_session);
CREATE UNIQUE INDEX uses_task ON uses (task, tool, of_task);
CREATE UNIQUE INDEX uses_agent ON uses (agent, tool, of_agent);
CREATE INDEX uses_done ON uses (task, tool) WHERE done = 1;

CREATE TABLE definitions (
    name        TEXT NOT NULL,
    digest      TEXT NOT NULL CHECK (length(digest) = 64),
    body        TEXT NOT NULL,
    accepted_at TEXT NOT NULL,
    accepted_by TEXT NOT NULL CHECK (accepted_by <> ''),
    PRIMARY KEY (name, accepted_at)
) STRICT, WITHOUT ROWID;

CREATE TABLE delegations (
    name         TEXT NOT NULL PRIMARY KEY,
    parent       TEXT NOT NULL,
    parent_token TEXT NOT NULL,
    session      TEXT NOT NULL,
    task         TEXT NOT NULL,
    token        TEXT NOT NULL,
    request      TEXT NOT NULL,
    made_at      TEXT NOT NULL,
    expires_at   TEXT NOT NULL,
    ended_at     TEXT NOT NULL,
    why          TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX delegations_parent ON delegations (parent) WHERE ended_at = '';

-- What has ended does not begin again, and what it was never changes.
-- +goose StatementBegin
CREATE TRIGGER sessions_begin BEFORE INSERT ON sessions
WHEN NEW.ended_at <> '' OR NEW.why <> '' OR EXISTS (SELECT 1 FROM sessions WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a session is opened once'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sessions_steps BEFORE UPDATE ON sessions
WHEN NEW.id IS NOT OLD.id OR NEW.token IS NOT OLD.token OR NEW.agent IS NOT OLD.agent OR NEW.name IS NOT OLD.name
    OR NEW.opened_at IS NOT OLD.opened_at OR OLD.ended_at <> '' OR NEW.ended_at = '' OR NEW.why = ''
BEGIN SELECT RAISE(ABORT, 'a session can only end'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sessions_keep BEFORE DELETE ON sessions
BEGIN SELECT RAISE(ABORT, 'sessions are kept'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER tasks_begin BEFORE INSERT ON tasks
WHEN NEW.ended_at <> '' OR NEW.why <> '' OR NEW.rating IS NOT NULL OR NEW.rated_by <> '' OR EXISTS (SELECT 1 FROM tasks WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM tasks WHERE session = NEW.session AND name = NEW.name AND ended_at = '')
    OR NOT EXISTS (SELECT 1 FROM sessions WHERE id = NEW.session AND agent = NEW.agent AND ended_at = '')
BEGIN SELECT RAISE(ABORT, 'a task is opened once, in an open session of its agent'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tasks_steps BEFORE UPDATE ON tasks
WHEN NEW.id IS NOT OLD.id OR NEW.session IS NOT OLD.session OR NEW.agent IS NOT OLD.agent OR NEW.name IS NOT OLD.name OR NEW.opened_at IS NOT OLD.opened_at
    OR NOT coalesce(
        (OLD.ended_at = '' AND NEW.ended_at <> '' AND NEW.why <> '' AND NEW.rating IS OLD.rating AND NEW.rated_by IS OLD.rated_by)
        OR (NEW.ended_at IS OLD.ended_at AND NEW.why IS OLD.why AND NEW.rating BETWEEN 0 AND 10 AND NEW.rated_by <> ''), 0)
BEGIN SELECT RAISE(ABORT, 'a task can only end or be rated'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tasks_keep BEFORE DELETE ON tasks
BEGIN SELECT RAISE(ABORT, 'tasks are kept'); END;
-- +goose StatementEnd

-- A use that was counted stays counted.
-- +goose StatementBegin
CREATE TRIGGER uses_begin BEFORE INSERT ON uses
WHEN NEW.done IS NOT 0 OR EXISTS (SELECT 1 FROM uses WHERE call = NEW.call)
    OR NEW.of_session IS NOT (SELECT coalesce(max(of_session), 0) + 1 FROM uses WHERE session = NEW.session AND tool = NEW.tool)
    OR NEW.of_task IS NOT (SELECT coalesce(max(of_task), 0) + 1 FROM uses WHERE task = NEW.task AND tool = NEW.tool)
    OR NEW.of_agent IS NOT (SELECT coalesce(max(of_agent), 0) + 1 FROM uses WHERE agent = NEW.agent AND tool = NEW.tool)
BEGIN SELECT RAISE(ABORT, 'a call is counted once, when it starts'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER uses_steps BEFORE UPDATE ON uses
WHEN NEW.call IS NOT OLD.call OR NEW.agent IS NOT OLD.agent OR NEW.tool IS NOT OLD.tool OR NEW.session IS NOT OLD.session
    OR NEW.task IS NOT OLD.task OR NEW.at IS NOT OLD.at OR OLD.done IS NOT 0 OR NEW.done IS NOT 1
    OR NEW.of_session IS NOT OLD.of_session OR NEW.of_task IS NOT OLD.of_task OR NEW.of_agent IS NOT OLD.of_agent
BEGIN SELECT RAISE(ABORT, 'a counted call can only succeed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER uses_keep BEFORE DELETE ON uses
BEGIN SELECT RAISE(ABORT, 'what was counted is kept'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER definitions_begin BEFORE INSERT ON definitions
WHEN NEW.accepted_by = '' OR EXISTS (SELECT 1 FROM definitions WHERE name = NEW.name AND accepted_at >= NEW.accepted_at)
BEGIN SELECT RAISE(ABORT, 'a definition is accepted by a person, after the one before'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER definitions_steps BEFORE UPDATE ON definitions
BEGIN SELECT RAISE(ABORT, 'what was accepted is kept'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER definitions_keep BEFORE DELETE ON definitions
BEGIN SELECT RAISE(ABORT, 'what was accepted is kept'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER delegations_begin BEFORE INSERT ON delegations
WHEN NEW.ended_at <> '' OR NEW.why <> '' OR EXISTS (SELECT 1 FROM delegations WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'a delegation is made once'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER delegations_steps BEFORE UPDATE ON delegations
WHEN NEW.name IS NOT OLD.name OR NEW.parent IS NOT OLD.parent OR NEW.parent_token IS NOT OLD.parent_token OR NEW.token IS NOT OLD.token
    OR NEW.session IS NOT OLD.session OR NEW.task IS NOT OLD.task
    OR NEW.request IS NOT OLD.request OR NEW.made_at IS NOT OLD.made_at OR NEW.expires_at IS NOT OLD.expires_at
    OR OLD.ended_at <> '' OR NEW.ended_at = '' OR NEW.why = ''
BEGIN SELECT RAISE(ABORT, 'a delegation can only end'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER delegations_keep BEFORE DELETE ON delegations
BEGIN SELECT RAISE(ABORT, 'delegations are kept'); END;
-- +goose StatementEnd
