"""What leaves an outbox is nowhere in its files: the database, its log and its index are read as raw bytes."""

from contextlib import closing
from pathlib import Path

import pytest

from shuffledp.service.store import open_outbox
from shuffledp.service.wire import SentReport

SECRET = b"ciphertext that is refused " * 40


def raw(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


@pytest.mark.parametrize("stream", [None, "people"])
@pytest.mark.parametrize("act", ["remove", "refuse"])
def test_bytes_that_left_are_in_no_file(tmp_path: Path, act: str, stream: str | None) -> None:
    """While the process still holds the file: nobody waits for it to be closed."""
    path = tmp_path / "outbox.db"
    with closing(open_outbox(path)) as outbox:
        kept = SentReport("11" * 16, "ee" * 16, b"this one waits " * 40)
        outbox.put("task", [SentReport("00" * 16, "ff" * 16, SECRET), kept], stream, (0, 1) if stream else ())
        assert SECRET[:60] in raw(path)
        getattr(outbox, act)(["00" * 16])
        assert SECRET[:60] not in raw(path) and SECRET[-60:] not in raw(path)
        assert outbox.waiting("task") == 1 and kept.body[:60] in raw(path)
