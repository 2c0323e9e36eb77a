"""What benchmarks over many seeds share: `--engine`, `--processes` and `--resume FILE` for their cells."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shuffledp.cli.engine_options import engine_of
from shuffledp.engines.sweeping import Finished, code_fingerprint, sweep


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where cells run, and which file keeps them."""
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--processes", type=int, default=1, help="that run at once; times are best with one")
    parser.add_argument("--resume", type=Path, default=None, metavar="FILE", help="keep cells, and skip those in it")


class Cells:
    """Runs cells, each known by its parameters and by the code of the package and of the benchmark."""

    def __init__(self, engine: Any, finished: Finished, code: str) -> None:
        self._engine, self._finished, self._code = engine, finished, code

    def run(self, cells: list[Any], measure: Any) -> list[Any]:
        """What becomes of every cell, in their order."""
        return sweep(self._engine, cells, measure, finished=self._finished, code=self._code)


@contextmanager
def cells_of(asked: argparse.Namespace, file: str) -> Iterator[Cells]:
    """The cells of a benchmark, whose own file is this."""
    finished = Finished(asked.resume, resume=True)
    with engine_of(asked.engine, processes=asked.processes if asked.engine == "local" else None) as engine:
        yield Cells(engine, finished, code_fingerprint(file))
