-- What every store has: what it is, which keys it began with, shelves, and keys that must be destroyed.
CREATE TABLE store (role TEXT NOT NULL, store_id TEXT NOT NULL, keys_mark BYTEA NOT NULL);

CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied TIMESTAMPTZ NOT NULL DEFAULT now());

-- A shelf is a table `<kind>_<number>`: `held` batches of those it took still need it.
CREATE TABLE shelves (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task_id TEXT NOT NULL, kind TEXT NOT NULL,
    taken INTEGER NOT NULL, held INTEGER NOT NULL, bytes BIGINT NOT NULL, is_open BOOLEAN NOT NULL,
    touched TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX open_shelf ON shelves (task_id, kind) WHERE is_open;

CREATE TABLE doomed (key BYTEA PRIMARY KEY);
