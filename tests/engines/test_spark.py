"""The engine on Spark: what the local engine answers, bit for bit, over killed executors, and nothing in the clear."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from harness.dealing import PARTS, Dealing, both, kill_me, rows_of, seen
from harness.sealed import Sealed, write_sealed
from harness.sparks import (
    Cluster,
    KeyedByTheAttempt,
    KillsItsExecutor,
    KillsTheDriver,
    Says,
    SeenOverAKill,
    Whispering,
    require_spark,
    running_cluster,
)
from shuffledp import cli
from shuffledp.cli import answering, count_runs, fit_pieces, heavy_hitters, running
from shuffledp.engines import Gathered, JobKey, LocalEngine, counting, estimating, fitting
from shuffledp.engines.contract import Engine, Entrusted, Rows
from shuffledp.engines.spark import SparkEngine
from shuffledp.errors import DataError, ParameterError, WorkLostError
from shuffledp.jobs import opening, shuffling
from shuffledp.jobs.analyzing import analyze_files
from shuffledp.jobs.opening import open_files
from shuffledp.jobs.shuffling import shuffle_files

# pyspark leaves the sockets to its Java process to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

Deal = Callable[[tuple[int, int]], Iterable[tuple[int, Rows]]]
Look = Callable[[Gathered], dict[int, bytes]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(require_spark(), tmp_path_factory.mktemp("spark")) as found:
        yield found


def exchanged(
    engine: Engine, dealing: Callable[[Entrusted], Deal], look: Look = seen, parts: list[tuple[int, int]] = PARTS
) -> dict[int, bytes]:
    with engine.exchange(parts, dealing(engine.entrust(JobKey.seeded(1).raw)), 5) as buckets:
        return engine.fold(buckets, look, both)


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEngine]:
    with LocalEngine(processes=1) as engine:
        yield engine


@pytest.mark.parametrize("parts", [pytest.param(1, marks=pytest.mark.sweep), 2, 16])
def test_the_same_bits_as_here_by_any_number_of_parts(cluster: Cluster, local: LocalEngine, parts: int) -> None:
    some = [(number, 2_000 // parts + number) for number in range(parts)]
    assert exchanged(cluster.engine, Dealing, parts=some) == exchanged(local, Dealing, parts=some)


def test_some_buckets_are_folded_alone(cluster: Cluster, local: LocalEngine) -> None:
    found = []
    for engine in (local, cluster.engine):
        with engine.exchange(PARTS, Dealing(engine.entrust(JobKey.seeded(1).raw)), 5) as buckets:
            found.append(engine.fold(buckets.only([3, 1]), seen, both))
    assert found[0] == found[1] and set(found[0]) == {1, 3}


def test_many_tallies_are_merged_by_tasks_and_counted(cluster: Cluster) -> None:
    done: list[int] = []
    assert cluster.engine.fold(range(-18, 0), abs, sum, progress=done.append) == 171
    assert done == sorted(set(done)) and done[-1] == 18
    assert not cluster.shuffled()
    assert cluster.engine.tasks_at_once == 2
    # One task an executor, whose Python takes something for itself.
    assert 800 << 20 < cluster.engine.task_bytes < 1 << 30


def test_what_spark_writes_says_nothing_and_goes(cluster: Cluster) -> None:
    engine, key = cluster.engine, JobKey.generate().raw
    forms = [key, key.hex().encode(), repr(key).encode(), base64.b64encode(key), cluster.secret.encode()]
    in_the_clear = [row.tobytes() for row in rows_of(PARTS[5])[256:]]
    done: list[int] = []
    dealing = Whispering(engine.entrust(key), word="somebody dealt")
    with engine.exchange(PARTS, dealing, 5, progress=done.append) as buckets:
        assert engine.fold(buckets, seen, both) == engine.fold(buckets, seen, both)
        written, shuffled = dict(cluster.files()), cluster.shuffled()
        # A part's rows are a file of Spark's each, and its broadcasts are files, too.
        assert len(shuffled) == len(PARTS) and any("_python" in file.name for file in written)
    for file, data in written.items():
        assert not [form for form in forms if form in data], file
    assert not [row for file in shuffled for row in in_the_clear if row in written[file]]
    # Whatever is in the logs would be found: this is.
    assert any(b"somebody dealt" in data for file, data in written.items() if file.name == "stderr")
    assert any(b"spark.io.encryption" in data for file, data in written.items() if "events" in str(file))
    assert done[-1] == len(PARTS)
    assert not cluster.shuffled()
    with pytest.raises(ParameterError, match="fold them in their block"):
        engine.fold(buckets, seen, both)
    assert not [each for each in cluster.command_lines() if b"authenticate.secret" in each]


def test_what_a_task_raises_arrives_as_itself(cluster: Cluster) -> None:
    engine = cluster.engine
    refused, broken, missing = cluster.new_mark(), cluster.new_mark(), cluster.new_mark()
    said = DataError("column", "age", "must be there", "name another one")
    with pytest.raises(DataError) as raised:
        engine.fold([1], Says(said, refused), sum)
    assert (str(raised.value), raised.value.value) == (str(said), "age")
    with pytest.raises(ZeroDivisionError, match="nothing") as bug:
        engine.fold([1], Says(ZeroDivisionError("nothing"), broken), sum)
    assert "sparks.py" in "".join(bug.value.__notes__)
    # What another machine may have is asked for again, and then given up in a sentence.
    with pytest.raises(WorkLostError, match=r"^Spark gave the job up: FileNotFoundError: not here\. Nothing was rel"):
        engine.fold([1], Says(FileNotFoundError("not here"), missing), sum)
    assert [len(file.read_text().splitlines()) for file in (refused, broken, missing)] == [1, 1, 4]
    with pytest.raises(ParameterError, match=r"bucket must lie in 0\.\.2 and come once, got 3"):
        engine.exchange(PARTS[:1], Dealing(engine.entrust(bytes(32))), 3)
    with pytest.raises(WorkLostError, match=r"Spark gave the job up: .*Nothing was released"):
        engine.fold([1], kill_me, sum)


def test_a_spark_that_is_there_is_used_and_left(cluster: Cluster, local: LocalEngine) -> None:
    with SparkEngine() as guest:
        assert guest.fold([-3], abs, sum) == 3
        secret = guest.entrust(b"of a guest")
        assert (secret.open(), repr(secret)) == (b"of a guest", "Broadcasted()")
    assert cluster.engine.fold([-4], abs, sum) == 4
    with pytest.raises(ParameterError, match="master must be local-cluster"):
        SparkEngine(master="local[1]")
    with pytest.raises(ParameterError, match="settings are for a new Spark"):
        SparkEngine(settings={"spark.executor.cores": "2"})
    others = local.exchange(PARTS, Dealing(local.entrust(bytes(32))), 5)
    with others, pytest.raises(ParameterError, match="must be of this engine"):
        cluster.engine.fold(others, seen, both)
    with pytest.raises(ParameterError, match="parts must be at least one"):
        cluster.engine.fold([], abs, sum)
    with pytest.raises(ParameterError, match="buckets must be >= 1"):
        cluster.engine.exchange([1], iter, 0)  # type: ignore[arg-type]


def test_jobs_write_what_they_write_here(cluster: Cluster, tmp_path: Path) -> None:
    """From ciphertexts to an estimate: every file of every job has the same bytes."""
    sealed = Sealed.of(60)
    source = write_sealed(tmp_path / "in", b"".join(sealed.reports[:25]), b"".join(sealed.reports[25:]))
    found = []
    for engine in (LocalEngine(processes=1), cluster.engine):
        shuffled, opened = tmp_path / engine.name / "shuffled", tmp_path / engine.name / "opened"
        shuffled.parent.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            # Several parts and several buckets of so few messages.
            patch.setattr(shuffling, "PART_BYTES", 1 << 13)
            patch.setattr(shuffling, "bucket_size", lambda size: size // 3)
            patch.setattr(opening, "bucket_size", lambda size: size // 3)
            mixed = shuffle_files(source, shuffled, engine=engine, key=JobKey.seeded(1)).manifest
            keys = {"keys": (sealed.key,), "key": JobKey.seeded(2)}
            messages = open_files(shuffled, opened, task=sealed.task, engine=engine, **keys)
        answer = analyze_files(opened, sealed.task.plan, engine=engine).release
        assert len(mixed.files) > 2 and len(messages.files) > 2
        found.append((mixed, messages, answer))
        assert not list(tmp_path.rglob(".*"))
    assert found[0] == found[1]


SEEDED = ["--epsilon", "4", "--delta", "1e-6", "--seed", "7", "--json"]
COMMANDS = (
    ("few.npy", ["simulate", "--protocol", "histogram", "--users", "2000", "--categories", "90"]),
    ("few.npy", ["histogram", "--categories", "90"]),
    ("few.npy", ["quantile", "--domain", "0:127"]),
    ("many.npy", ["mean", "--low", "0", "--high", "90", "--fast"]),
    ("many.csv", ["heavy-hitters", "--length", "2"]),
)


def said_by_both(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[dict, dict]:
    """What a command says by the local engine and by Spark, without how long it took."""
    said = []
    for engine in (["local", "--processes", "1"], ["spark"]):
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, "--engine", *engine])
        out, err = capsys.readouterr()
        assert (ended.value.code, err) == (0, ""), out
        said.append(json.loads(out))
        assert said[-1].pop("seconds") > 0
    return said[0], said[1]


def test_commands_say_what_they_say_here(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimating, "_LITTLE", 0)
    monkeypatch.setattr(estimating, "STREAM_MESSAGES", 1 << 9)
    monkeypatch.setattr(estimating, "_TASKS_EACH", 1)
    for name, people in (("few.npy", 2_000), ("many.npy", 140_000)):
        np.save(tmp_path / name, np.arange(people) % 90)
    (tmp_path / "many.csv").write_text("word\n" + "ab\nab\ncd\nef\n" * 35_000)
    monkeypatch.setattr(running, "SMALL", 0)
    # Where tasks run is another folder: paths are this one's.
    monkeypatch.chdir(tmp_path)
    for module in (answering, heavy_hitters):
        # Tasks are handed the values of a few people, and read those of many from the file.
        monkeypatch.setattr(module, "SMALL", 3_000)
    for file, command in COMMANDS:
        here, there = said_by_both([command[0], file, *command[1:], *SEEDED], capsys)
        # Who did it, and in how many pieces, is said; nothing else differs.
        assert (here.pop("engine"), there.pop("engine")) == ("local", "spark")
        assert (here.pop("pieces"), there.pop("pieces")) == (1, 2)
        assert (here.pop("tasks_at_once"), there.pop("tasks_at_once")) == (1, 2)
        assert here == there


def test_a_running_count_is_the_one_that_is_made_here(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_runs, "SMALL", 1_000)
    # Several parts of so few people, whose batches begin in one and end in another.
    monkeypatch.setattr("shuffledp.cli.file_values._CELLS", 1 << 10)
    monkeypatch.setattr(counting, "_GRAIN_MESSAGES", 1 << 16)
    monkeypatch.setattr(counting, "_GRAINS", 1)
    np.save(tmp_path / "clicks.npy", np.arange(3_000) % 4 == 0)
    parts: list[int] = []

    class Seen(counting._Parts):
        def __len__(self) -> int:
            parts.append(super().__len__())
            return parts[-1]

    monkeypatch.setattr(counting, "_Parts", Seen)
    here, there = said_by_both(["count", str(tmp_path / "clicks.npy"), "--shufflers", "3", *SEEDED], capsys)
    assert (here.pop("engine"), there.pop("engine")) == ("local", "spark")
    assert here == there and set(parts) == {3}


def test_a_model_is_the_one_that_is_learned_here(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_pieces, "HELD", 1_000)
    monkeypatch.setattr(fitting, "_BUCKET_BYTES", 1 << 15)
    features = np.arange(1, 3_001)[:, np.newaxis] * np.sqrt([2, 3]) % 1
    np.save(tmp_path / "rows.npy", np.column_stack((features, features @ [1, -1] > 0)))
    words = ["fit", str(tmp_path / "rows.npy"), "--target", "3", "--classes", "0,1", "--bounds", "0:1"]
    how = ["--solver", "sgd", "--rounds-allowed", "2", "--count-clipped", "0"]
    here, there = said_by_both([*words, *how, *SEEDED], capsys)
    assert here == there and here["users"] == 3_000 and here["rounds"] == 2


def over_a_kill(cluster: Cluster, local: LocalEngine, dealing: Callable[[Entrusted], Deal]) -> None:
    """An executor is killed when some buckets are gathered and others are not: its parts are dealt again."""
    mark = cluster.new_mark()
    found = exchanged(cluster.engine, dealing, SeenOverAKill(mark))
    assert mark.exists()
    assert found == exchanged(local, Dealing)


def test_an_executor_that_is_killed_while_parts_are_dealt_changes_nothing(cluster: Cluster, local: LocalEngine) -> None:
    mark = cluster.new_mark()
    assert exchanged(cluster.engine, partial(KillsItsExecutor, mark=mark)) == exchanged(local, Dealing)
    assert mark.exists()


def test_an_executor_that_is_killed_while_buckets_are_gathered_changes_nothing(
    cluster: Cluster, local: LocalEngine
) -> None:
    over_a_kill(cluster, local, Dealing)


def test_parts_that_are_dealt_otherwise_the_second_time_are_found_out(cluster: Cluster, local: LocalEngine) -> None:
    """The wrong twin: without this, rows would be lost and others doubled, and nobody would know."""
    with pytest.raises(WorkLostError, match="has dealt its part otherwise than before"):
        over_a_kill(cluster, local, KeyedByTheAttempt)


def test_a_driver_that_is_killed_is_said_so_and_leaves_nobody_behind(cluster: Cluster) -> None:
    """The last test of this cluster: its end, in which nobody may be left, is looked at by whoever started it."""
    with pytest.raises(WorkLostError, match=r"^Spark at local-cluster.* has stopped .*Nothing was released\.$"):
        cluster.engine.fold([1, 2], KillsTheDriver(cluster.driver), sum)
