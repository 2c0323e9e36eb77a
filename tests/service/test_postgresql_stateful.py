"""Three shufflers on one PostgreSQL under everything that can happen to them (`harness.postgresql_world`)."""

from pathlib import Path

import pytest

from harness.postgresql import Server
from harness.postgresql_world import run_postgresql

SEEDS, STEPS = 2, 250


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_or_doubled_by_three_shufflers_of_which_some_die(
    postgresql: Server, tmp_path: Path, seed: int
) -> None:
    told = run_postgresql(postgresql, tmp_path, seed, STEPS).told
    # A run in which nothing happened would prove nothing.
    assert told["acknowledged"] > 30 and told["sealed"] > 8 and told["tasks finished"] > 0, told
    assert sum(count for words, count in told.items() if "killed" in words) > 20, told
