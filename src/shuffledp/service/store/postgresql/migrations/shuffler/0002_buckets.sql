-- Large batches are permuted in two passes: what the first has dealt to buckets lies on a shelf (`buckets_<n>`) under a
-- key of its own, until the batch is sealed.
ALTER TABLE batches ADD COLUMN buckets_shelf BIGINT, ADD COLUMN buckets_key BYTEA;
