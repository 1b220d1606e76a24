-- +goose Up
-- Secrets, sealed with a key that is not in the database. A sealed value is never
-- shorter than its nonce and tag with a byte between them, so a value that somebody
-- put here as it is, and is short, is refused.
CREATE TABLE secrets (
    name   TEXT NOT NULL PRIMARY KEY CHECK (name <> '' AND length(name) <= 64),
    sealed BLOB NOT NULL CHECK (length(sealed) > 28),
    set_at TEXT NOT NULL CHECK (set_at <> ''),
    set_by TEXT NOT NULL CHECK (set_by <> '')
) STRICT;
