"""What SQLite is asked in one statement for many reports: none is left out, however many and wherever they sit."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shuffledp.randomness import RandomBits
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.store.contract import BatchPart, Lease
from shuffledp.service.wire import new_id, new_seat

TASK, OTHER = "ab" * 32, "cd" * 32


@pytest.mark.parametrize("count", [0, 1, 3, 256, 257, 600])
def test_every_report_of_a_commit_is_remembered_and_its_seat_gone(tmp_path: Path, count: int) -> None:
    bits = RandomBits.seeded(count)
    # Half of them side by side, the others far apart; each has a neighbour who has not reported.
    places = [place if place < count // 2 else 1000 * place for place in range(count)]
    near, apart = places[: count // 2], places[count // 2 :]
    leases = [Lease(new_seat(2 * place, bits=bits), 2 * place, 9.5) for place in places]
    waiting = [Lease(new_seat(lease.position + 1, bits=bits), lease.position + 1, 9.5) for lease in leases]
    ids, unknown = ([new_id(bits=bits) for _ in range(count + 1)] for _ in range(2))
    ids.pop()
    with closing(open_shuffler_store(tmp_path / "s.db")) as store:

        def keep(records: Any) -> None:
            for task_id in (TASK, OTHER):
                records.add_task(task_id, "{}")
                for lease in leases + waiting:
                    records.add_lease(task_id, lease)
            some = {lease.seat: lease for lease in leases}
            assert records.leases(TASK, list(some)) == some
            for part in (near, apart):
                asked = {lease.seat: lease for lease in leases if lease.position // 2 in part}
                assert records.leases(TASK, [*asked, *(new_seat(2 * place, bits=bits) for place in part)]) == asked
            assert records.accepted_among(TASK, ids + unknown) == set()
            records.keep(TASK, ids, list(some), [])

        store.write(keep)

        def look(records: Any) -> None:
            seats = [lease.seat for lease in leases + waiting]
            assert records.accepted_among(TASK, unknown + ids) == set(ids)
            assert records.accepted_among(OTHER, ids) == set()
            assert records.leases(TASK, seats) == {lease.seat: lease for lease in waiting}
            assert len(records.leases(OTHER, seats)) == 2 * count
            assert records.counts(TASK).reports == count

        store.read(look)


@pytest.mark.parametrize("count", [1, 16, 17, 40])
def test_every_part_of_a_commit_is_in_its_batch(tmp_path: Path, count: int) -> None:
    """Also where a statement fills one batch twice, the next one goes on with it, and the batch was begun before."""
    kept: dict[str, list[BatchPart]] = {"a": [], "b": [], "c": []}
    with closing(open_shuffler_store(tmp_path / "s.db")) as store:
        store.write(lambda records: records.add_task(TASK, "{}"))
        for commit in range(2):
            parts = []
            for number in range(count):
                name = "abcb"[number % 4]
                body = bytes([commit, number, *range(number)])
                parts.append(BatchPart(name, len(kept[name]), 1 + number % 3, 1000, body))
                kept[name].append(parts[-1])
            store.write(lambda records, given=parts: records.keep(TASK, [], [], given))
        fills = {each.batch_id: each.reports for each in store.read(lambda records: records.open_batches(TASK))}
        assert fills == {name: sum(part.reports for part in some) for name, some in kept.items() if some}
        for name in fills:
            found = store.read(lambda records, name=name: records.parts(TASK, name))
            assert found == [part.body for part in kept[name]]
