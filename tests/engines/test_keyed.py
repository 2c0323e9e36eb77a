"""Streams of a job's key: repeated by the same rows, others everywhere else."""

import pytest

from shuffledp.engines import JobKey
from shuffledp.errors import ParameterError

HERE = ("randomize", 3, b"f" * 32, 65_536)
ELSEWHERE = [
    ("deal", 3, b"f" * 32, 65_536),
    ("randomize", 4, b"f" * 32, 65_536),
    ("randomize", 3, b"g" * 32, 65_536),
    ("randomize", 3, b"f" * 32, 0),
    # The same bytes end to end.
    ("randomizef", 3, b"f" * 31, 65_536),
]


def test_the_same_rows_get_the_same_bits_and_no_others_do() -> None:
    key = JobKey.seeded(1)
    drawn = [tuple(key.bits(*where).words(4)) for where in (HERE, HERE, *ELSEWHERE)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == len(ELSEWHERE) + 1
    assert tuple(JobKey.seeded(2).bits(*HERE).words(4)) not in drawn


def test_only_a_key_of_the_operating_system_is_secure() -> None:
    for key, secure in ((JobKey.generate(), True), (JobKey.seeded(1), False)):
        assert key.is_secure is key.bits(*HERE).is_secure is secure
        assert key.raw.hex() not in repr(key)
        assert str(key.raw) not in repr(key)
    assert len({JobKey.generate().raw for _ in range(3)}) == 3


@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_numbers_that_no_file_has_are_refused(number: int) -> None:
    with pytest.raises(ParameterError, match="file must lie in"):
        JobKey.seeded(1).bits("deal", number, b"", 0)
    with pytest.raises(ParameterError, match="row must lie in"):
        JobKey.seeded(1).bits("deal", 0, b"", number)
    with pytest.raises(ParameterError, match="job key must be 32 bytes"):
        JobKey(b"short", True)
