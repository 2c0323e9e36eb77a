"""Which rows of a table count where a person may have many."""

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.domains.repeated import RowCodes, RowCounts, RowSums
from shuffledp.protocols.domains.summed import BITS
from shuffledp.protocols.people.rows import contributions, kept_rows

OWNERS = ["x", "y", "x", "z", "x", "y", "x"]


@pytest.mark.parametrize("at_most", [1, 2, 3, 4, 10])
def test_nobody_has_more_rows_than_count_and_nobody_fewer_than_it_has(at_most: int) -> None:
    kept = kept_rows(OWNERS, at_most)
    assert np.bincount(kept.person).tolist() == [min(at_most, 4), min(at_most, 2), 1]
    assert kept.people == 3 and kept.all_rows == 7
    names = np.array(OWNERS)[kept.rows]
    assert (np.array(["x", "y", "z"])[kept.person] == names).all()
    assert len({*zip(kept.person.tolist(), kept.place.tolist(), strict=True)}) == kept.rows.size
    assert kept.place.max() < at_most


def test_the_first_rows_of_a_person_count_in_the_order_of_the_table() -> None:
    """No chance is in what counts: an error that is printed is the noise's alone."""
    kept = kept_rows(OWNERS, 2)
    assert kept.rows.tolist() == [0, 2, 1, 5, 3] and kept.place.tolist() == [0, 1, 0, 1, 0]
    assert kept.left_out == 2 and kept_rows(OWNERS, 4).left_out == 0


def test_which_rows_count_depends_on_their_owner_s_alone() -> None:
    """Whoever else's rows come between, the same of a person's own count."""
    own = [row for row, owner in enumerate(OWNERS) if owner == "x"]
    alone = kept_rows(["x"] * len(own), 2).rows
    kept = kept_rows(OWNERS, 2)
    assert [own[row] for row in alone.tolist()] == kept.rows[kept.person == 0].tolist()


def test_what_people_contribute() -> None:
    assert contributions(RowCounts(9), [1, 0, 1, 1, 0, 1, 1], OWNERS).tolist() == [3, 1, 1]
    numbers = [0.5, 1.0, 2.0, 0.25, 0.0, 1.5, 1.0]
    assert contributions(RowSums(0.0, 2.0, 9), numbers, OWNERS).tolist() == [3.5, 2.5, 0.25]
    codes = contributions(RowCodes(as_categories(["a", "b"]), 2), list("abbaaba"), OWNERS)
    assert codes.shape == (3, 2) and sorted(codes[1].tolist()) == [1, 1] and codes[2].tolist() == [0, 2]


def test_a_person_s_sum_never_leaves_its_range() -> None:
    """Ten times 0.1 is more than 1 in floats."""
    tenths = contributions(RowSums(0.0, 0.1, 10), [0.1] * 10, ["x"] * 10)
    assert RowSums(0.0, 0.1, 10).check_values(tenths).tolist() == tenths.tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: contributions(RowCounts(2), [1, 2], ["x", "y"]), "must be 0 or 1"),
        (lambda: contributions(RowCounts(2), [1], ["x", "y"]), "must be one a row"),
        (lambda: contributions(BITS, [1], ["x"]), "how many rows of one person"),
        (lambda: kept_rows(["x"], 0), "at_most must be a whole number"),
        (lambda: kept_rows([1.0, np.nan], 1), "must say whose every row is"),
        (lambda: RowCounts(2).encode([[1, 1, 1]]), "must have at most 2 rows"),
    ],
)
def test_what_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        wrong()  # type: ignore[operator]


def test_many_rows_are_grouped_at_once() -> None:
    """Many rows of many people: no loop over either."""
    owners = np.random.default_rng(1).integers(0, 20_000, 200_000)
    kept = kept_rows(owners, 3)
    assert kept.people == np.unique(owners).size
    assert np.bincount(kept.person, minlength=kept.people).max() == 3


def test_a_person_may_write_its_rows_in_a_line() -> None:
    """What `shuffledp report "b,a"` sends."""
    codes = RowCodes(as_categories(["a", "b"]), 3)
    assert codes.encode(np.array(["b,a", "b", ""])).tolist() == [[1, 0, 2], [1, 2, 2], [2, 2, 2]]
    with pytest.raises(ParameterError, match="at most 3 rows"):
        codes.encode(np.array(["a,a,a,a"]))
