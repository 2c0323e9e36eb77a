"""Sweeps: every cell once, the same results in any order, after a stop, and whatever was half written."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from shuffledp.engines import LocalEngine
from shuffledp.engines.sweeping import Finished, cell_fingerprint, code_fingerprint, sweep
from shuffledp.errors import DataError, ParameterError
from shuffledp.experiments.counter import ErrorTask
from shuffledp.experiments.resumed import measured
from shuffledp.randomness import RandomBits


@dataclass(frozen=True)
class Drawn:
    users: int
    seed: int


RAN: list[Drawn] = []
CELLS = [Drawn(users, seed) for users in (1, 3) for seed in range(3)]


def draw(cell: Drawn) -> list[int]:
    RAN.append(cell)
    if cell.seed == 99:
        raise KeyboardInterrupt
    return [int(word) for word in RandomBits.seeded(cell.seed).words(cell.users)]


@pytest.fixture
def engine() -> LocalEngine:
    RAN.clear()
    return LocalEngine(processes=1)


def test_results_stand_in_the_order_of_cells_and_each_is_run_once(engine: LocalEngine) -> None:
    found = sweep(engine, [*CELLS, CELLS[0]], draw, code="")
    assert found == [*(draw(cell) for cell in CELLS), found[0]]
    assert len(RAN) == 2 * len(CELLS)
    assert sweep(engine, CELLS[::-1], draw, code="") == found[:-1][::-1]


def test_a_stop_loses_nothing_and_repeats_nothing(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shuffledp.engines.sweeping._TOGETHER", 1)
    file = tmp_path / "cells"
    whole = sweep(engine, CELLS, draw, code="")
    with pytest.raises(KeyboardInterrupt):
        sweep(engine, [*CELLS[:4], Drawn(1, 99)], draw, finished=Finished(file, resume=True), code="")
    # The line of a fifth cell, of which half was written.
    line = file.read_bytes().splitlines(keepends=True)[0]
    with file.open("ab") as stream:
        stream.write(line[: len(line) // 2])
    RAN.clear()
    assert sweep(engine, CELLS, draw, finished=Finished(file, resume=True), code="") == whole
    assert CELLS[4:] == RAN
    assert len(file.read_bytes().splitlines()) == len(CELLS)


def test_other_parameters_and_other_code_are_measured_again(engine: LocalEngine, tmp_path: Path) -> None:
    file = tmp_path / "cells"
    sweep(engine, CELLS[:1], draw, finished=Finished(file, resume=True), code="a")
    for cell, code, again in ((CELLS[0], "a", 0), (CELLS[0], "b", 1), (CELLS[1], "a", 1)):
        RAN.clear()
        sweep(engine, [cell], draw, finished=Finished(file, resume=True), code=code)
        assert len(RAN) == again
    assert cell_fingerprint(CELLS[0], "") != cell_fingerprint({"users": 1, "seed": 0}, "")
    own = tmp_path / "own.py"
    own.write_text("1")
    before = code_fingerprint(str(own))
    code_fingerprint.cache_clear()
    own.write_text("2")
    assert code_fingerprint(str(own)) != before


def test_files_that_are_there_or_are_no_cells_are_refused(engine: LocalEngine, tmp_path: Path) -> None:
    file = tmp_path / "cells"
    sweep(engine, CELLS[:1], draw, finished=Finished(file, resume=False), code="")
    with pytest.raises(ParameterError, match=r"must be a new file.*go on with it by --resume"):
        Finished(file, resume=False)
    file.write_text("hello\n")
    with pytest.raises(DataError, match="must be lines of finished cells"):
        Finished(file, resume=True)
    assert file.read_text() == "hello\n"


def test_experiments_find_the_same_rows(engine: LocalEngine, tmp_path: Path) -> None:
    tasks = [ErrorTask(shufflers=1, users=users, runs=2, seed=1) for users in (1000, 2000)]
    rows, file = measured(tasks), tmp_path / "cells"
    assert measured(tasks, engine=engine, cells=file) == rows
    assert measured(tasks, engine=engine, cells=file) == rows
    assert len(file.read_bytes().splitlines()) == 2
