-- +goose Up
-- Who may decide: people are kept, each is who they were added as, and somebody is
-- always an admin. As in 00001, the triggers repeat what constraints say, and the
-- one on INSERT is what stops REPLACE.

-- +goose StatementBegin
CREATE TRIGGER people_begin BEFORE INSERT ON people
WHEN EXISTS (SELECT 1 FROM people WHERE name = NEW.name) OR NEW.name = '' OR NEW.created_at = ''
    OR NEW.role NOT IN ('viewer', 'approver', 'operator', 'admin') OR substr(NEW.passphrase, 1, 10) IS NOT '$argon2id$'
    OR (NEW.role IS NOT 'admin' AND NOT EXISTS (SELECT 1 FROM people WHERE role = 'admin'))
BEGIN SELECT RAISE(ABORT, 'a person is added once, with a role, the first as an admin'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER people_steps BEFORE UPDATE ON people
WHEN NEW.name IS NOT OLD.name OR NEW.created_at IS NOT OLD.created_at
    OR NEW.role NOT IN ('viewer', 'approver', 'operator', 'admin') OR substr(NEW.passphrase, 1, 10) IS NOT '$argon2id$'
BEGIN SELECT RAISE(ABORT, 'of a person only the role and the passphrase change'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER people_last_admin BEFORE UPDATE ON people
WHEN OLD.role = 'admin' AND NEW.role IS NOT 'admin' AND NOT EXISTS (SELECT 1 FROM people WHERE role = 'admin' AND name <> OLD.name)
BEGIN SELECT RAISE(ABORT, 'the last admin stays one'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER people_keep BEFORE DELETE ON people
BEGIN SELECT RAISE(ABORT, 'people are kept'); END;
-- +goose StatementEnd
