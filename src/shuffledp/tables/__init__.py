"""Tables on disk: one column of a CSV, Parquet or .npy file in, whole files out.

`columns.read_column` reads, `whole.whole_file` writes. Nothing is imported here, and `pyarrow` only
when a table is read: a command's help need not wait for it.
"""
