-- Batches that came whole, from the hop before this one in a cascade: a second delivery must be the same bytes.
CREATE TABLE received (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (task_id, batch_id)
);
