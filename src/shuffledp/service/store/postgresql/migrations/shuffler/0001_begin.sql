-- A shuffler's records. Ciphertexts are on shelves, tables of their own (`parts_<n>`, `pieces_<n>`) that are dropped
-- whole, each body encrypted under a key that is outside the database. Nothing here keeps a report's own id: only its
-- keyed digest.
CREATE TABLE tasks (task_id TEXT PRIMARY KEY, number INTEGER GENERATED ALWAYS AS IDENTITY UNIQUE, text TEXT NOT NULL);

-- Apart from the text, as this row changes with every commit; whoever writes about a task locks it first.
CREATE TABLE taken (
    task_id TEXT PRIMARY KEY, number INTEGER NOT NULL, next_position BIGINT NOT NULL, reports BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE leases (
    task_id TEXT NOT NULL, position BIGINT NOT NULL, seat TEXT NOT NULL, ends DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (task_id, position)
);
CREATE INDEX ends ON leases (task_id, ends);

CREATE TABLE accepted (task INTEGER NOT NULL, name BYTEA NOT NULL, PRIMARY KEY (task, name));

-- state: 0 open, 1 sealed and to be sent, 2 sent and gone. A process holds a batch until `held_until`, by this
-- database's clock.
CREATE TABLE batches (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task_id TEXT NOT NULL, batch_id TEXT NOT NULL,
    size BIGINT NOT NULL, filled BIGINT NOT NULL, bytes BIGINT NOT NULL, state SMALLINT NOT NULL DEFAULT 0,
    parts_shelf BIGINT, parts_key BYTEA, pieces_shelf BIGINT, pieces_key BYTEA,
    holder TEXT, held_until TIMESTAMPTZ, UNIQUE (task_id, batch_id)
) WITH (fillfactor = 70);
CREATE INDEX full_ones ON batches (number) WHERE state = 0 AND filled = size;
CREATE INDEX to_be_sent ON batches (number) WHERE state = 1;
