-- Batches that come piece by piece. Pieces, and what was found in each, lie on shelves (`pieces_<n>`, `results_<n>`) under
-- keys of their own. A batch that has a digest was received, and is read sooner or later; `result` is the place of what
-- was found in a piece.
CREATE TABLE incoming (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task_id TEXT NOT NULL, batch_id TEXT NOT NULL, digest TEXT,
    shelf BIGINT NOT NULL, key BYTEA NOT NULL, results_shelf BIGINT, results_key BYTEA, results BIGINT NOT NULL DEFAULT 0,
    bytes BIGINT NOT NULL DEFAULT 0, UNIQUE (task_id, batch_id)
);

CREATE TABLE pieces (
    batch BIGINT NOT NULL, piece BIGINT NOT NULL, digest TEXT NOT NULL, result BIGINT,
    PRIMARY KEY (batch, piece)
);
