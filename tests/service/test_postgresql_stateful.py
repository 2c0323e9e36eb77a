"""Three shufflers on one PostgreSQL under everything that can happen to them (`harness.postgresql_world`)."""

from pathlib import Path

import pytest

from harness.postgresql import Server
from harness.postgresql_world import run_postgresql
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.wire import CIPHERTEXT_BYTES

SEEDS, STEPS = 2, 250


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(1, SEEDS))])
def test_nothing_is_lost_or_doubled_by_three_shufflers_of_which_some_die(
    postgresql: Server, tmp_path: Path, seed: int
) -> None:
    told = run_postgresql(postgresql, tmp_path, seed, STEPS).told
    # A run in which nothing happened would prove nothing.
    assert told["acknowledged"] > 30 and told["sealed"] > 8 and told["tasks finished"] > 0, told
    assert sum(count for words, count in told.items() if "killed" in words) > 20, told


def test_nothing_is_lost_or_doubled_by_batches_in_pieces(postgresql: Server, tmp_path: Path) -> None:
    """Every batch is dealt to buckets, travels in pieces of four messages and is opened piece by piece."""
    unit = CIPHERTEXT_BYTES
    sizes = BatchSizes(whole=0, piece=4 * unit, dealt=7 * unit, bucket=5 * unit)
    machine = run_postgresql(postgresql, tmp_path, 7, STEPS // 2, sizes=sizes)
    assert machine.told["sealed"] > 4 and machine.world.network.manifests > 4, machine.told
