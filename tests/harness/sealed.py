"""People's sealed reports for tests of jobs: a task of one batch, its key, and ciphertexts as devices send them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shuffledp.jobs.collecting import sealed_reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES


@dataclass(frozen=True)
class Sealed:
    """A task, the key that opens it, and each person's ciphertexts."""

    task: Task
    key: PrivateKey
    reports: tuple[bytes, ...]

    @classmethod
    def of(cls, users: int, *, method: str = "coins", honest_fraction: float = 1.0) -> "Sealed":
        """Bits of so many people, every third of which is a 1."""
        privacy = Privacy(1, 1e-6)
        plan = BinarySum.plan(users=users, privacy=privacy, method=method, honest_fraction=honest_fraction)
        key, bits = PrivateKey.generate(), RandomBits.secure()
        task = Task.create(plan, key.public, bits=bits)
        reports = sealed_reports(task, np.arange(users) % 3 == 0, bits=bits)
        return cls(task, key, tuple(reports))

    @property
    def messages(self) -> int:
        """Ciphertexts of a report."""
        return len(self.reports[0]) // CIPHERTEXT_BYTES


def write_sealed(folder: Path, *files: bytes) -> Path:
    """A folder of files of these ciphertexts, with times beside them."""
    folder.mkdir(parents=True)
    for number, body in enumerate(files):
        cells = [body[at : at + CIPHERTEXT_BYTES] for at in range(0, len(body), CIPHERTEXT_BYTES)]
        table = pa.table({"ciphertext": pa.array(cells, pa.binary()), "at": np.arange(len(cells))})
        pq.write_table(table, folder / f"{number:03}.parquet", row_group_size=50)
    return folder


def messages_in(folder: Path, name: str = "payload") -> list[int]:
    """A column of a folder's messages, file by file."""
    return [each for path in sorted(folder.glob("*.parquet")) for each in pq.read_table(path).column(name).to_pylist()]
