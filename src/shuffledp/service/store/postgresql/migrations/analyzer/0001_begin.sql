-- An analyzer's records. Ciphertexts are on shelves, tables of their own (`bodies_<n>`) that are dropped whole, each
-- body encrypted under a key that is outside the database.
CREATE TABLE tasks (task_id TEXT PRIMARY KEY, text TEXT NOT NULL, state TEXT);

CREATE TABLE batches (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task_id TEXT NOT NULL, batch_id TEXT NOT NULL,
    digest TEXT NOT NULL, bodies_shelf BIGINT, bodies_key BYTEA, total TEXT, dropped BIGINT NOT NULL DEFAULT 0,
    void BOOLEAN NOT NULL DEFAULT FALSE, UNIQUE (task_id, batch_id)
);
CREATE INDEX unread ON batches (number) WHERE bodies_key IS NOT NULL;

CREATE TABLE releases (
    task_id TEXT NOT NULL, "time" BIGINT NOT NULL, estimate TEXT NOT NULL, standard_error DOUBLE PRECISION,
    bound DOUBLE PRECISION, confidence DOUBLE PRECISION, dropped BIGINT NOT NULL, void BIGINT NOT NULL,
    PRIMARY KEY (task_id, "time")
);

CREATE TABLE models (
    campaign_id TEXT NOT NULL, number BIGINT NOT NULL, text TEXT NOT NULL, signature TEXT NOT NULL,
    PRIMARY KEY (campaign_id, number)
);
