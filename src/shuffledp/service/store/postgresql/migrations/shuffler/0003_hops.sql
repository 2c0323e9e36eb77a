-- Batches that came from the hop before this one in a cascade: a second delivery must be the same bytes. Of one that comes
-- in pieces, which pieces are here; their bytes are on the batch's shelf.
CREATE TABLE received (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (task_id, batch_id)
);
CREATE TABLE incoming (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, piece BIGINT NOT NULL, digest TEXT NOT NULL, bytes BIGINT NOT NULL,
    PRIMARY KEY (task_id, batch_id, piece)
);
