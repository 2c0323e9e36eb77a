"""The local engine: the same answer by one process and by several, over killed ones, with nothing left on the disk."""

from pathlib import Path

import numpy as np
import pytest

from harness.dealing import PARTS, Dealing, both, joined, kill_me, own_number, rows_of, seen
from shuffledp.engines import JobKey, LocalEngine
from shuffledp.errors import ParameterError, WorkLostError


def exchanged(processes: int, folder: Path, killed: Path | None = None) -> dict[int, bytes]:
    with LocalEngine(processes=processes, folder=folder) as engine:
        key = engine.entrust(JobKey.seeded(1).raw)
        with engine.exchange(PARTS, Dealing(key, killed), 5) as buckets:
            return engine.fold(buckets, seen, both)


@pytest.fixture(scope="module")
def by_one(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    folder = tmp_path_factory.mktemp("one")
    found = exchanged(1, folder)
    assert not list(folder.iterdir())
    return found


def test_every_row_is_in_one_bucket(by_one: dict[int, bytes]) -> None:
    rows = np.concatenate([np.frombuffer(each, dtype=np.uint8).reshape(-1, 6) for each in by_one.values()])
    given = np.concatenate([rows_of(part) for part in PARTS])
    assert sorted(map(bytes, rows)) == sorted(map(bytes, given))
    assert min(map(len, by_one.values())) > 0


def test_processes_and_kills_change_nothing(by_one: dict[int, bytes], tmp_path: Path) -> None:
    spills, mark = tmp_path / "spills", tmp_path / "killed"
    spills.mkdir()
    assert exchanged(2, spills, mark) == by_one
    assert mark.exists()
    assert not list(spills.iterdir())


def test_processes_that_are_ready_are_those_that_work() -> None:
    with LocalEngine(processes=2) as engine:
        engine.get_ready(both, LocalEngine)
        pool = engine._pool
        engine.get_ready()
        assert engine._pool is pool is not None
        found = engine.fold(range(4), own_number, joined)
        assert len(pool._processes) == 2 and found <= set(pool._processes)
    assert LocalEngine(processes=1).get_ready(both) is None


def test_tasks_that_always_die_are_given_up() -> None:
    with LocalEngine(processes=2) as engine, pytest.raises(WorkLostError, match="ended 3 times before 2 of 2 parts"):
        engine.fold([1, 2], kill_me, sum)


def test_what_is_on_the_disk_cannot_be_read(tmp_path: Path) -> None:
    engine = LocalEngine(processes=1, folder=tmp_path)
    with engine.exchange(PARTS, Dealing(engine.entrust(JobKey.seeded(1).raw)), 5) as buckets:
        assert buckets.buckets == 5
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert len(files) == len(PARTS)
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
        written = b"".join(path.read_bytes() for path in files)
        # A row of zeros but for a few bytes: in the clear these would be all over the place.
        assert len(written) == sum(count for _, count in PARTS) * 6
        assert bytes(3) not in written or written.count(bytes(3)) < len(written) // 6 // 100


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"processes": 0}, "processes must be >= 1"), ({"memory": 1000}, "memory must be at least")],
)
def test_engines_that_cannot_work_are_refused(asked: dict[str, int], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        LocalEngine(**asked)


def test_nothing_to_do_is_refused() -> None:
    with pytest.raises(ParameterError, match="parts must be at least one"):
        LocalEngine(processes=1).fold([], abs, sum)
    with pytest.raises(ParameterError, match="buckets must be >= 1"):
        LocalEngine(processes=1).exchange([1], iter, 0)  # type: ignore[arg-type]


def test_a_folder_that_went_with_its_job_is_not_missed(tmp_path: Path) -> None:
    engine = LocalEngine(processes=1)
    engine.spill_to(tmp_path / "gone")
    with engine.exchange(PARTS, Dealing(engine.entrust(JobKey.seeded(1).raw)), 5) as buckets:
        assert len(engine.fold(buckets.only([2]), seen, both)) == 1
