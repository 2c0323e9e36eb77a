"""Files of messages that a job writes: the messages, and nothing about where they came from or when."""

import hashlib
import os
from pathlib import Path
from typing import Any

from shuffledp.engines.contract import Rows
from shuffledp.files import create_part, settle_name
from shuffledp.jobs.manifest import DataFile
from shuffledp.jobs.parts import opened
from shuffledp.jobs.rows import RowFormat

# Cut at a fixed number of rows: where a group of rows ends says nothing about what is in it.
GROUP_ROWS = 1 << 20


def write_part(folder: Path, name: str, rows_format: RowFormat, rows: Rows) -> DataFile:
    """Write rows as one Parquet file of a folder, whole or not at all, forced to disk.

    Statistics, the writer's view of its schema and metadata of its own are left out.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = rows_format.unpacked(rows)
    # No message is missing: whoever reads them need not look for that, which is a third of their reading.
    fields = [pa.field(name, each.type, nullable=False) for name, each in zip(rows_format.names, cells, strict=True)]
    table = pa.Table.from_arrays(cells, schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    # Parquet has no numbers of one byte: without a dictionary each would take four.
    as_they_are = {"use_dictionary": rows_format.kind == "messages", "compression": "NONE"}
    pq.write_table(table, sink, row_group_size=GROUP_ROWS, write_statistics=False, store_schema=False, **as_they_are)
    content: Any = sink.getvalue()
    # Machines that share a folder run a task twice at times, and processes of two of them may have one number.
    descriptor, part = create_part(folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(folder / name)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    settle_name(folder / name)
    return DataFile(name, len(content), len(rows), hashlib.sha256(content).hexdigest())


def written_before(folder: Path, name: str) -> DataFile | None:
    """A file that an earlier run of the same job has finished; None if it has not."""
    path = folder / name
    if not path.exists():
        return None
    content = path.read_bytes()
    with opened(str(path)) as parquet:
        rows = int(parquet.metadata.num_rows)
    return DataFile(name, len(content), rows, hashlib.sha256(content).hexdigest())
