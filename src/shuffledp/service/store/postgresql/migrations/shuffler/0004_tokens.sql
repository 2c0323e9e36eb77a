-- Tokens that seats were given for: of each a keyed digest and how many seats it got, by the number of its task or
-- campaign; and which token a seat is of, as long as it waits for its report.
CREATE TABLE redeemed (
    task INTEGER NOT NULL, name BYTEA NOT NULL, seats SMALLINT NOT NULL, PRIMARY KEY (task, name)
) WITH (fillfactor = 80);
CREATE TABLE held (
    task_id TEXT NOT NULL, position BIGINT NOT NULL, seat TEXT NOT NULL, name BYTEA NOT NULL,
    PRIMARY KEY (task_id, position)
);
CREATE INDEX held_by ON held (name);
