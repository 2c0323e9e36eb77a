"""What Spark's workers do, without Spark: blocks that come in any order, and parts that are dealt again."""

import errno
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from harness.dealing import PARTS, Dealing, both, seen
from shuffledp.engines import JobKey, LocalEngine
from shuffledp.engines.contract import Rows
from shuffledp.engines.spark.tasks import Block, DealingOut, DealtRows, Gathering, Merging, Raised, digest, tried
from shuffledp.errors import DataError, ParameterError, WorkLostError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation

BUCKETS = 5


def dealing() -> Dealing:
    return Dealing(LocalEngine(processes=1).entrust(JobKey.seeded(1).raw))


def sent(parts: Sequence[tuple[int, tuple[int, int]]]) -> tuple[DealtRows, dict[int, list[Block]]]:
    """What parts send: what they say they have dealt, and the blocks by bucket."""
    told: list[DealtRows] = []
    blocks: dict[int, list[Block]] = {bucket: [] for bucket in range(BUCKETS)}
    for bucket, each in DealingOut(dealing(), BUCKETS, lambda _: None)(parts):
        (told if bucket == BUCKETS else blocks[bucket]).append(each)  # type: ignore[attr-defined]
    (dealt,) = Merging(DealtRows.merge)(told)
    return dealt, blocks


def gathered(dealt: DealtRows, blocks: dict[int, list[Block]]) -> list[dict[int, bytes] | Raised]:
    gathering = Gathering(seen, dealt, lambda _: None)
    return [each for bucket, some in blocks.items() for each in gathering(bucket, ((bucket, one) for one in some))]


def test_blocks_are_put_together_in_the_order_of_the_parts() -> None:
    dealt, blocks = sent(list(enumerate(PARTS)))
    bits = RandomBits.seeded(1)
    for bucket, some in blocks.items():
        blocks[bucket] = [some[place] for place in uniform_permutation(len(some), bits=bits)]
    assert [part for part, _, _ in blocks[0]] != sorted(part for part, _, _ in blocks[0])
    engine = LocalEngine(processes=1)
    with engine.exchange(PARTS, dealing(), BUCKETS) as buckets:
        assert both(gathered(dealt, blocks)) == engine.fold(buckets, seen, both)  # type: ignore[arg-type]


def _swapped(blocks: list[Block]) -> list[Block]:
    """As many rows, one of which is another part's."""
    (part, width, data), *rest = blocks
    return [(part, width, rest[0][2][:width] + data[width:]), *rest]


@pytest.mark.parametrize(
    "wrong",
    [lambda blocks: blocks[1:], lambda blocks: [*blocks, blocks[0]], _swapped],
    ids=["lost", "doubled", "swapped"],
)
def test_a_bucket_that_holds_other_rows_than_were_dealt_is_refused(wrong) -> None:
    dealt, blocks = sent(list(enumerate(PARTS)))
    right, raised = gathered(dealt, {0: blocks[0], 1: wrong(blocks[1])})
    assert not isinstance(right, Raised) and isinstance(raised, Raised)
    assert isinstance(raised.error, WorkLostError) and raised.part == 1


def test_a_block_is_known_by_its_part_its_width_and_its_rows() -> None:
    assert len({digest(each) for each in [(1, 2, b"ab"), (2, 2, b"ab"), (1, 1, b"ab"), (1, 2, b"ba")]}) == 4


def test_empty_buckets_have_rows_of_the_common_width() -> None:
    told = DealtRows(7, np.array([0, 1]), np.array([0, digest((0, 7, bytes(7)))], dtype=np.uint64))
    shapes = Gathering(lambda found: found.rows.shape, told, lambda _: None)
    assert [*shapes(0, []), *shapes(1, [(1, (0, 7, bytes(7)))]), *shapes(2, [])] == [(0, 7), (1, 7)]


def test_parts_of_different_widths_are_refused() -> None:
    def by_width(width: int) -> Iterable[tuple[int, Rows]]:
        return [(0, np.zeros((2, width), dtype=np.uint8))]

    told = [each for bucket, each in DealingOut(by_width, 1, lambda _: None)([(0, 3), (1, 4)]) if bucket == 1]
    (merged,) = Merging(DealtRows.merge)(told)
    assert isinstance(merged, Raised) and "one width, got [3, 4]" in str(merged.error)


def test_of_several_errors_the_first_parts_is_raised() -> None:
    errors = [Raised(part, ParameterError("part", part, "is wrong", "none")) for part in (4, 2, 3)]
    (first,) = Merging(sum)([1, *errors, 5])
    assert str(first.again()) == "part is wrong, got 2: none."


class UnpicklableError(Exception):
    """Made of two things, and pickled as if of one."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def test_errors_travel_or_say_what_they_were() -> None:
    def fail(error: Exception) -> None:
        raise error

    refused = tried(1, fail, DataError("file", "a", "is missing", "name another"))
    assert (type(refused.error), refused.trace) == (DataError, "")
    odd = tried(1, fail, UnpicklableError(1, 2)).again()
    assert (type(odd), str(odd)) == (RuntimeError, "UnpicklableError: 1 and 2")
    assert "in fail" in odd.__notes__[0]
    full = tried(1, fail, OSError(errno.ENOSPC, "no room")).again()
    assert isinstance(full, OSError) and full.errno == errno.ENOSPC
    # What another try may mend is Spark's.
    for each in (OSError("busy"), MemoryError()):
        with pytest.raises(type(each)):
            tried(1, fail, each)


def test_paths_mean_in_a_task_what_they_mean_for_whoever_asks(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("found")
    before = Path.cwd()
    assert tried(1, lambda: Path("here.txt").read_text(), folder=str(tmp_path)) == "found"
    assert isinstance(tried(1, lambda: 1 / 0, folder=str(tmp_path)), Raised)
    # A folder that this machine does not have is none; and nobody stays in one.
    assert tried(1, Path.cwd, folder=str(tmp_path / "missing")) == before == Path.cwd()
