"""Processes that a test starts, and that do not outlive it: one that does not end by itself is killed."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def child(words: Sequence[str], **how: Any) -> "Iterator[subprocess.Popen[Any]]":
    """A process, until the block ends: `Popen` itself would wait for it, for ever if it hangs."""
    process = subprocess.Popen(words, **how)
    try:
        yield process
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        process.wait(timeout=60)
