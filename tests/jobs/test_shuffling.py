"""A data set is permuted uniformly, exactly, by whatever number of parts and processes, and nothing else is left."""

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from math import factorial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.messages import ciphertexts, numbers_in, write_ciphertexts
from shuffledp.engines import JobKey, LocalEngine
from shuffledp.errors import DataError, ParameterError, TooFewReportsError
from shuffledp.jobs import shuffling
from shuffledp.jobs.manifest import DataManifest
from shuffledp.jobs.shuffling import shuffle_files
from shuffledp.randomness import RandomBits
from shuffledp.shuffle import two_passes


def shuffled(source: Path, out: Path, *, processes: int = 1, seed: int | None = 1, **more: object) -> DataManifest:
    key = None if seed is None else JobKey.seeded(seed)
    with LocalEngine(processes=processes) as engine:
        return shuffle_files(source, out, engine=engine, key=key, **more).manifest


@pytest.fixture
def in_buckets(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let data sets be dealt to so many buckets, however small they are."""

    def choose(buckets: int) -> None:
        monkeypatch.setattr(shuffling, "bucket_size", lambda size: -(-size // buckets))

    return choose


# --- the law -------------------------------------------------------------------------------------


class Told:
    """Stands for a stream of bits: it knows what it is for."""

    def __init__(self, purpose: str, number: int, row: int) -> None:
        self.purpose, self.number, self.row = purpose, number, row


def exact_law(
    monkeypatch: pytest.MonkeyPatch, folder: Path, sizes: tuple[int, ...], labels: list[tuple[int, ...]]
) -> dict[tuple[int, ...], Fraction]:
    """The exact probability of every order of messages in files of these sizes, over all choices and permutations."""
    source, law = write_ciphertexts(folder / "in", sizes, group=2), Counter()
    starts = np.cumsum((0, *sizes))
    monkeypatch.setattr(shuffling, "RUN_ROWS", 2)
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr(JobKey, "bits", lambda self, purpose, number, mark, row: Told(purpose, number, row))
    buckets = range(max(max(label) for label in labels) + 1)
    for label in labels:
        held = {bucket: label.count(bucket) for bucket in buckets}

        def below(modulus: int, size: int, *, bits: Told, label=label) -> np.ndarray:
            assert bits.purpose == "deal" and modulus == len(buckets)
            first = starts[bits.number] + bits.row
            # A whole run is drawn even where the file ends in it.
            end = min(first + size, starts[bits.number + 1])
            return np.array([*label[first:end], *[0] * (first + size - end)], dtype=np.uint8)

        monkeypatch.setattr(shuffling, "uniform_below", below)
        for orders in product(*(permutations(range(size)) for size in held.values())):

            def permutation(size: int, *, bits: Told, orders=orders) -> np.ndarray:
                assert bits.purpose == "permute" and size == len(orders[bits.number])
                return np.array(orders[bits.number], dtype=np.intp)

            monkeypatch.setattr(two_passes, "uniform_permutation", permutation)
            out = folder / f"out-{sum(law.values(), Fraction(0)).numerator}-{len(list(folder.iterdir()))}"
            shuffled(source, out)
            weight = Fraction(1, len(labels))
            for size in held.values():
                weight /= factorial(size)
            law[tuple(numbers_in(out))] += weight
    return dict(law)


@pytest.mark.parametrize(
    ("sizes", "buckets"),
    [((1, 2), 2), pytest.param((1, 2), 3, marks=pytest.mark.sweep), pytest.param((3, 1), 2, marks=pytest.mark.sweep)],
)
def test_every_order_has_the_same_probability(
    monkeypatch: pytest.MonkeyPatch, in_buckets, tmp_path: Path, sizes: tuple[int, ...], buckets: int
) -> None:
    in_buckets(buckets)
    law = exact_law(monkeypatch, tmp_path, sizes, list(product(range(buckets), repeat=sum(sizes))))
    assert set(law.values()) == {Fraction(1, factorial(sum(sizes)))} and len(law) == factorial(sum(sizes))


def test_files_as_buckets_are_no_permutation(monkeypatch: pytest.MonkeyPatch, in_buckets, tmp_path: Path) -> None:
    """A twin that permutes inside partitions only."""
    in_buckets(2)
    law = exact_law(monkeypatch, tmp_path, (2, 1), [(1, 1, 0), (0, 0, 1)])
    assert sum(law.values()) == 1 and set(law.values()) != {Fraction(1, 6)}


def test_a_large_data_set_has_no_memory_of_how_it_came(
    monkeypatch: pytest.MonkeyPatch, in_buckets, tmp_path: Path, assert_uniform_orders: Callable[..., None]
) -> None:
    in_buckets(7)
    source = write_ciphertexts(tmp_path / "in", (25_000, 1, 14_999), group=4_000)
    orders = []
    for seed in (1, 2):
        shuffled(source, tmp_path / f"out-{seed}", seed=seed)
        orders.append(numbers_in(tmp_path / f"out-{seed}"))
    assert_uniform_orders(orders)
    twin = lambda key, part, buckets: np.full(part.rows, part.first_row // 4_000)  # noqa: E731
    monkeypatch.setattr(shuffling, "chosen_buckets", twin)
    monkeypatch.setattr(shuffling, "PART_BYTES", 4_000 * 9)
    shuffled(source, tmp_path / "twin")
    with pytest.raises(AssertionError, match="not uniformly random"):
        assert_uniform_orders([numbers_in(tmp_path / "twin")])


def test_parts_and_processes_change_nothing(monkeypatch: pytest.MonkeyPatch, in_buckets, tmp_path: Path) -> None:
    in_buckets(5)
    source = write_ciphertexts(tmp_path / "in", (70_000, 3, 90_000), group=30_000)
    found = []
    for number, (processes, part_rows) in enumerate(((1, 1 << 20), (1, 10_007), (2, 40_000))):
        monkeypatch.setattr(shuffling, "PART_BYTES", part_rows * 9)
        found.append(shuffled(source, tmp_path / f"out-{number}", processes=processes))
    assert found[0] == found[1] == found[2]
    assert sorted(numbers_in(tmp_path / "out-2")) == list(range(160_003))
    assert shuffled(source, tmp_path / "other", seed=2) != found[0]
    # The operating system's own.
    assert shuffled(source, tmp_path / "new", seed=None) != shuffled(source, tmp_path / "newer", seed=None)


def test_choices_of_rows_do_not_depend_on_the_part() -> None:
    key, rows = JobKey.seeded(3), shuffling.RUN_ROWS
    part = shuffling.FilePart(2, "", b"f", 0, (0, 1), 0, 3 * rows)
    whole = shuffling.chosen_buckets(key, part, 100)
    for first, count in ((0, 5), (rows - 1, 2), (rows + 7, 2 * rows - 7)):
        some = shuffling.FilePart(2, "", b"f", first, (0, 1), first, count)
        assert np.array_equal(shuffling.chosen_buckets(key, some, 100), whole[first : first + count])
    # Every run has a stream of its own.
    assert not np.array_equal(whole[:rows], whole[rows : 2 * rows])
    other = shuffling.FilePart(3, "", b"f", 0, (0, 1), 0, rows)
    assert not np.array_equal(shuffling.chosen_buckets(key, other, 100), whole[:rows])
    assert isinstance(key.bits("deal", 0, b"", 0), RandomBits)


# --- what is left --------------------------------------------------------------------------------


def test_nothing_but_messages_is_left(tmp_path: Path) -> None:
    source = write_ciphertexts(tmp_path / "in", (300, 200))
    with LocalEngine(processes=1) as engine:
        found = shuffle_files(source, tmp_path / "out", engine=engine, reports=500)
    assert found.dropped == ("received_at", "address") and found.manifest.reports == 500
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert set(written) == {"part-000000.parquet", "manifest.json"}
    everything = b"".join(written.values())
    for trace in (b"received_at", b"address", b"198.51.100.7", b"uploaded", b"2026", b"hour-", str(tmp_path).encode()):
        assert trace not in everything
    assert not re.search((1_790_000_007).to_bytes(8, "little"), everything)
    parquet = pq.ParquetFile(tmp_path / "out" / "part-000000.parquet")
    assert parquet.schema_arrow.names == ["ciphertext"] and not parquet.schema_arrow.metadata
    assert not parquet.metadata.row_group(0).column(0).is_stats_set
    numbers = numbers_in(tmp_path / "out")
    assert sorted(numbers) == list(range(500)) and numbers != sorted(numbers)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.uint32()])
def test_numbers_and_labels_stay_together(tmp_path: Path, kind: pa.DataType) -> None:
    numbers = np.arange(256) % 250
    table = pa.table({"n": pa.array(numbers, kind), "who": numbers, "l": pa.array(numbers * 3, pa.uint16())})
    pq.write_table(table, tmp_path / "in.parquet")
    manifest = shuffled(tmp_path / "in.parquet", tmp_path / "out", column="n", label="l")
    found = pq.read_table(tmp_path / "out" / "part-000000.parquet")
    assert found.column_names == ["payload", "label"] and manifest.rows.document() == {
        "payload": f"u{kind.bit_width // 8}",
        "label": "u2",
    }
    payloads, labels = (np.array(found.column(name).to_pylist()) for name in ("payload", "label"))
    assert np.array_equal(labels, payloads * 3) and sorted(payloads) == sorted(numbers)


def test_byte_strings_may_be_of_any_kind_of_one_length(tmp_path: Path) -> None:
    rows = [bytes(each) for each in ciphertexts(np.arange(40))]
    for number, kind in enumerate((pa.binary(), pa.large_binary(), pa.binary(9))):
        pq.write_table(pa.table({"sealed": pa.array(rows, kind)}), tmp_path / f"{number}.parquet")
        shuffled(tmp_path / f"{number}.parquet", tmp_path / f"out-{number}", column="sealed")
        assert sorted(numbers_in(tmp_path / f"out-{number}")) == list(range(40))


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "words", "more"),
    [
        ({"x": [1]}, "column must be one of .* got x: name one of x with --column", {}),
        ({"payload": ["a"]}, "must be whole numbers or byte strings, and is string", {}),
        ({"payload": pa.array([1, None], pa.int64())}, "payload must be there in every row, got 1 rows without", {}),
        ({"payload": [3, -7]}, "payload must be whole numbers >= 0, got -7", {}),
        ({"ciphertext": [b"abc", b"ab"]}, "ciphertext must be of 3 bytes everywhere, got one of 2 bytes", {}),
        ({"ciphertext": [b"abc", None]}, "ciphertext must be there in every row", {}),
        ({"payload": [1], "label": ["a"]}, "label must be a column of whole numbers", {}),
        ({"ciphertext": [b"a"], "k": [1]}, "label is in the clear", {"label": "k"}),
        ({"payload": pa.array([], pa.uint8())}, "in must have at least one message", {}),
        ({"payload": [1]}, "reports must be >= 0, got -1", {"reports": -1}),
    ],
)
def test_what_is_no_message_is_refused(tmp_path: Path, table: dict, words: str, more: dict) -> None:
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    with pytest.raises(ParameterError, match=words):
        shuffled(tmp_path / "in.parquet", tmp_path / "out", **more)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_reports_that_are_too_few_are_not_mixed(tmp_path: Path) -> None:
    source = write_ciphertexts(tmp_path / "in", (5,))
    with pytest.raises(TooFewReportsError, match="reports must be 5, got 4"):
        shuffled(source, tmp_path / "out", reports=4, at_least=5)
    with pytest.raises(ParameterError, match="reports must be given where there must be enough of them"):
        shuffled(source, tmp_path / "out", at_least=5)
    assert shuffled(source, tmp_path / "out", reports=5, at_least=5).messages == 5


def test_an_output_among_the_input_is_refused(tmp_path: Path) -> None:
    source = write_ciphertexts(tmp_path / "in", (5,))
    with pytest.raises(ParameterError, match="out must not be in"):
        shuffled(source, source / "out")


def test_too_little_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_ciphertexts(tmp_path / "in", (5,))
    monkeypatch.setattr(LocalEngine, "task_bytes", 100)
    with pytest.raises(ParameterError, match="memory must leave each task"):
        shuffled(source, tmp_path / "out")


def test_a_lost_message_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_ciphertexts(tmp_path / "in", (50,))
    monkeypatch.setattr(shuffling, "dealt_to", lambda rows, chosen, buckets: [(0, rows[1:])])
    with pytest.raises(DataError, match="messages must be all 50, got 49"):
        shuffled(source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_more_reports_than_messages_are_refused(tmp_path: Path) -> None:
    source = write_ciphertexts(tmp_path / "in", (3,))
    with pytest.raises(ParameterError, match="reports must be at most the messages that were sent, 3, got 1,000,000"):
        shuffled(source, tmp_path / "out", reports=10**6, at_least=10**6)
    assert not (tmp_path / "out").exists() and shuffled(source, tmp_path / "out", reports=3).reports == 3
    # Of opened messages those that only filled up were sent, too; what else a manifest says is left out.
    few = tmp_path / "few"
    few.mkdir()
    pq.write_table(pa.table({"payload": np.zeros(3, dtype=np.uint8)}), few / "0.parquet")
    with LocalEngine(processes=1) as engine:
        data = shuffling.DataSet.at(few, engine, reports=6).manifest
    DataManifest(data.rows, data.files, 6, {"fillers": 2, "malformed": 1, "received": "noon"}).save(few)
    assert shuffled(few, tmp_path / "more").facts == {"fillers": 2, "malformed": 1}
    DataManifest(data.rows, data.files, 7, {"fillers": 2, "malformed": 1}).save(few)
    with pytest.raises(ParameterError, match="sent, 6, got 7"):
        shuffled(few, tmp_path / "none")
