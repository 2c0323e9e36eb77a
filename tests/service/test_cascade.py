"""A cascade end to end: every message once, of one length at each hop, and what a hop must refuse or replace."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cascade import BITS, Cascade, cut, numbered
from shuffledp import BinarySum, Privacy
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.making import make_reports
from shuffledp.service.cost import MeasuredCost, TaskCost
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.delivery import Sending
from shuffledp.service.models import round_of_model, unchecked_model
from shuffledp.service.onion import add_layers
from shuffledp.service.problems import RefusedError
from shuffledp.service.shuffler.ending import end_task, purge
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.layers import Suspects, copies_in
from shuffledp.service.store import open_alone
from shuffledp.service.task import Task

USERS, MESSAGES = 12, 3
BATCH = "1.0.1"
SMALL = BatchSizes(whole=1000, piece=700, dealt=1500, bucket=600)
"""So small that a batch of a few people is mixed in two passes and travels in pieces."""


def small_plan() -> Any:
    return BinarySum.plan(users=USERS, privacy=Privacy(8, 0.1), method="coins", max_messages=MESSAGES)


def task_of(cascade: Cascade) -> Task:
    return cascade.serve(Task.create(small_plan(), cascade.key.public, bits=BITS, hops=cascade.public))


def everybody(task: Task) -> list[int]:
    """The numbers of all messages, when people send numbered ones."""
    messages = task.routing.longest_report_messages
    return sorted(1000 * person + message for person in range(USERS) for message in range(messages))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Cascade]]:
    made: list[Cascade] = []

    def one(**more: Any) -> Cascade:
        made.append(Cascade(tmp_path / f"cascade {len(made)}", **more))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.mark.parametrize("sizes", [None, SMALL], ids=["whole", "in pieces"])
@pytest.mark.parametrize("hops", [2, 3])
def test_every_message_arrives_once(
    make: Callable[..., Cascade], store_address: Callable[[str], str], hops: int, sizes: BatchSizes | None
) -> None:
    cascade = make(hops=hops, sizes=sizes, address=store_address)
    task = task_of(cascade)
    cascade.report(task, [numbered(task, person) for person in range(USERS)])
    cascade.work()
    assert cascade.malformed == 0
    assert cascade.payloads == everybody(task)
    assert cascade.analyzer.progress(task.id).batches_read == 1
    for number, server in cascade.servers.items():
        counts = server.counts(task.id)
        assert (counts["batches_open"], counts["batches_waiting"], counts["batches_sent"]) == (0, 0, 1), number
    requests = [len(cascade.sent[number]) for number in cascade.sent]
    assert all(count == 1 for count in requests) if sizes is None else all(count > 3 for count in requests)


def test_a_message_has_one_length_at_each_hop(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=3)
    task = task_of(cascade)
    assert [task.routing.at_hop(hop).ciphertext_bytes for hop in (1, 2, 3)] == [221, 173, 125]
    sent = cascade.report(task, [numbered(task, person) for person in range(USERS)])
    cascade.work()
    messages = task.routing.longest_report_messages
    assert {len(body) for body in sent} == {messages * 221}
    bodies = [body for hop in (1, 2, 3) for _, _, body in cascade.sent[hop]]
    assert [len(body) for body in bodies] == [USERS * messages * length for length in (173, 125, 77)]


def test_a_clients_own_reports_go_through(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=2)
    task = task_of(cascade)
    values = np.array([person % 2 for person in range(USERS)])

    def make_one(person: int) -> Callable[..., bytes]:
        return lambda batches: make_reports(task, values[person : person + 1], [batches], bits=BITS)[0]

    cascade.report(task, [make_one(person) for person in range(USERS)])
    cascade.work()
    release, progress = cascade.analyzer.latest(task.id)
    assert release is not None and release.dropped == 0 and progress.batches_void == 0


# --- the end --------------------------------------------------------------------------------------


def purge_hop(cascade: Cascade, number: int) -> list[str]:
    """The ids of what is purged at a hop, which then starts again."""
    cascade.servers[number].stop()
    with closing(open_alone(cascade.path(number))[1]) as store:
        purged = [each.task_id for each in purge(store)]
    cascade.start(number)
    return purged


def test_a_later_hop_knows_when_a_task_is_over(
    make: Callable[..., Cascade], store_address: Callable[[str], str]
) -> None:
    """It counts batches, as it sees no reports: none has come, some have not left, all have left."""
    cascade = make(hops=2, address=store_address)
    task = task_of(cascade)
    assert purge_hop(cascade, 2) == []
    cascade.report(task, [numbered(task, person) for person in range(USERS)])
    assert cascade.pass_on(1) and purge_hop(cascade, 2) == []
    assert cascade.pass_on(2) and purge_hop(cascade, 2) == [task.id] == purge_hop(cascade, 1)
    assert purge_hop(cascade, 2) == [] and cascade.servers[2].has_ended(task.id)


def test_a_hop_that_has_ended_a_task_knows_a_batch_that_comes_again(
    make: Callable[..., Cascade], store_address: Callable[[str], str]
) -> None:
    """The answer was lost, and hop 2 was purged before hop 1 sent it again."""
    cascade = make(hops=2, address=store_address)
    task = task_of(cascade)
    cascade.report(task, [numbered(task, person) for person in range(USERS)])
    cascade.fate = lambda: "answer lost"
    assert not cascade.pass_on(1)
    cascade.fate = lambda: "delivered"
    assert cascade.pass_on(2)
    cascade.servers[2].stop()
    with closing(open_alone(cascade.path(2))[1]) as store:
        end_task(store, task.id, drop=False)
    cascade.start(2)
    [(task_id, batch_id, body)] = cascade.sent[1]
    with pytest.raises(RefusedError, match="was delivered with other bytes"):
        cascade.servers[2].deliver(task_id, batch_id, body[::-1])
    with pytest.raises(RefusedError, match="has ended here"):
        cascade.servers[2].deliver(task_id, "1.1.2", body)
    assert cascade.pass_on(1) and cascade.servers[1].counts(task.id)["batches_waiting"] == 0
    assert cascade.servers[2].seal_full() and len(cascade.sent[2]) == 1


# --- what does not open, and copies ---------------------------------------------------------------


def test_what_does_not_open_gives_way_and_holds_up_nobody(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=3)
    task = task_of(cascade)
    marked = b"\x55" * 221

    def spoiled(batches: Any) -> bytes:
        return marked + numbered(task, 0)(batches)[221:]

    cascade.report(task, [spoiled, *(numbered(task, person) for person in range(1, USERS))])
    cascade.work()
    assert cascade.malformed == 1
    assert cascade.payloads == everybody(task)[1:]
    # Nothing of it went on: neither at hop 1 nor later.
    assert not [body for hop in (1, 2, 3) for _, _, body in cascade.sent[hop] if marked[:16] in body]
    replaced = [server.sealer.replaced.labels("unopened")._value.get() for server in cascade.servers.values()]
    assert replaced == [1, 1, 1]


def test_what_gives_way_is_drawn_anew_at_every_hop(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=2)
    task = task_of(cascade)
    cascade.report(task, [lambda batches: bytes(task.routing.report_bytes(0))] * USERS)
    cascade.work()
    first, second = (cut(cascade.sent[hop][0][2], length) for hop, length in ((1, 125), (2, 77)))
    assert len(set(first)) == len(first) and len(set(second)) == len(second)
    assert not {row[:8] for row in first} & {row[:8] for row in second}
    assert cascade.payloads == [] and cascade.malformed == len(second)


@pytest.mark.parametrize("sizes", [None, SMALL], ids=["whole", "in pieces"])
def test_a_hop_that_doubles_a_message_marks_nothing(make: Callable[..., Cascade], sizes: BatchSizes | None) -> None:
    """Hop 1 puts a victim's message in the place of another: it would be what comes out twice."""
    cascade = make(hops=3, sizes=sizes)
    task = task_of(cascade)
    cascade.report(task, [numbered(task, person) for person in range(USERS)])
    assert cascade.servers[1].seal_full()
    body = cascade.servers[1]._store.read(lambda records: records.sealed(task.id, BATCH))
    rows = cut(body, 173)
    doubled = [*rows[:-1], rows[0]]
    if sizes is None:
        assert cascade.servers[2].deliver(task.id, BATCH, b"".join(doubled))
    else:
        # The copy in another piece than its original, which is not in memory at the same time.
        half, sending = len(rows) // 2, Sending()
        for number, piece in enumerate((b"".join(doubled[:half]), b"".join(doubled[half:]))):
            sending.add(piece)
            assert cascade.servers[2].take_piece(task.id, BATCH, number, piece)
        assert cascade.servers[2].take_manifest(task.id, BATCH, sending.manifest())
    for hop in (2, 3):
        assert cascade.pass_on(hop)
    cascade.analyzer.read_all()
    assert cascade.malformed == 1
    assert len(set(cascade.payloads)) == len(cascade.payloads) == len(rows) - 1
    out = b"".join(body for _, _, body in cascade.sent[2] if not body.startswith(b'{"version"'))
    assert len(set(cut(out, 125))) == len(rows)
    assert cascade.servers[2].sealer.replaced.labels("copy")._value.get() == 1


def test_a_message_of_another_batch_task_or_hop_does_not_open(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=2)
    task, other = task_of(cascade), task_of(cascade)
    strangers = [
        (other.id, BATCH, task.hops),
        (task.id, "1.0.2", task.hops),
        (task.id, BATCH, tuple(reversed(task.hops))),
    ]

    def strange(task_id: str, batch_id: str, hops: Any) -> Callable[..., bytes]:
        sealed = cascade.key.public.seal([bytes(29)], binding(task.id, BATCH))
        return lambda batches: add_layers(sealed, hops, task_id, batch_id)[0] + numbered(task, 0)(batches)[173:]

    def of_another_hop(batches: Any) -> bytes:
        """For hop 1's key, but bound to hop 2."""
        inner = cascade.public[1].seal([bytes(77)], binding(task.id, BATCH, 2))
        return cascade.public[0].seal(inner, binding(task.id, BATCH, 2))[0] + numbered(task, 0)(batches)[173:]

    rest = [numbered(task, person) for person in range(len(strangers) + 1, USERS)]
    cascade.report(task, [*(strange(*each) for each in strangers), of_another_hop, *rest])
    cascade.work()
    assert cascade.malformed == len(strangers) + 1
    assert cascade.servers[1].sealer.replaced.labels("unopened")._value.get() == len(strangers) + 1


# --- counts and repeats ---------------------------------------------------------------------------


def sealed_at_hop_1(cascade: Cascade) -> tuple[Task, list[bytes]]:
    task = task_of(cascade)
    cascade.report(task, [numbered(task, person) for person in range(USERS)])
    assert cascade.servers[1].seal_full()
    body = cascade.servers[1]._store.read(lambda records: records.sealed(task.id, BATCH))
    return task, cut(body, 125)


@pytest.mark.parametrize("change", ["one fewer", "one more", "half a message"])
def test_another_number_of_messages_is_refused_and_nothing_is_lost(make: Callable[..., Cascade], change: str) -> None:
    cascade = make(hops=2)
    task, rows = sealed_at_hop_1(cascade)
    wrong = {"one fewer": rows[1:], "one more": [*rows, rows[0]], "half a message": [*rows[1:], rows[0][:60]]}[change]
    with pytest.raises(RefusedError, match=f"must have {125 * len(rows)} at hop 2") as refused:
        cascade.servers[2].deliver(task.id, BATCH, b"".join(wrong))
    assert refused.value.kind.status == 422
    assert cascade.servers[2].counts(task.id)["batches_open"] == 0
    cascade.work()
    assert cascade.payloads == everybody(task) and cascade.malformed == 0


def test_a_batch_is_taken_once_whatever_is_sent_again(
    make: Callable[..., Cascade], store_address: Callable[[str], str]
) -> None:
    cascade = make(hops=2, address=store_address)
    task, rows = sealed_at_hop_1(cascade)
    body, other = b"".join(rows), b"".join(rows[1:] + rows[:1])
    hop = cascade.servers[2]
    assert hop.deliver(task.id, BATCH, body) is True
    for moment in ("received", "sealed", "sent"):
        assert hop.deliver(task.id, BATCH, body) is False, moment
        with pytest.raises(RefusedError, match="delivered with other bytes"):
            hop.deliver(task.id, BATCH, other)
        if moment == "received":
            assert hop.seal_full()
        else:
            assert hop.send_waiting()
    cascade.work()
    assert len(cascade.sent[2]) == 1 and cascade.payloads == everybody(task)


def test_pieces_are_taken_once_and_the_manifest_counts_them(
    make: Callable[..., Cascade], store_address: Callable[[str], str]
) -> None:
    cascade = make(hops=2, sizes=SMALL, address=store_address)
    task, rows = sealed_at_hop_1(cascade)
    hop, half = cascade.servers[2], len(rows) // 2
    pieces = [b"".join(rows[:half]), b"".join(rows[half:])]
    assert hop.take_piece(task.id, BATCH, 0, pieces[0]) is True
    assert hop.take_piece(task.id, BATCH, 0, pieces[0]) is False
    with pytest.raises(RefusedError, match="delivered with other bytes"):
        hop.take_piece(task.id, BATCH, 0, pieces[1])
    with pytest.raises(RefusedError, match="whole ciphertexts of 125"):
        hop.take_piece(task.id, BATCH, 1, pieces[1][:-1])
    assert hop.seal_full() and hop.counts(task.id)["batches_waiting"] == 0, "half a batch was sealed"
    # The whole in one body, after some of it came in pieces: these are forgotten.
    assert hop.deliver(task.id, BATCH, b"".join(rows)) is True
    assert hop.take_piece(task.id, BATCH, 1, pieces[1]) is False
    cascade.work()
    assert cascade.payloads == everybody(task)


def test_a_batch_that_the_next_hop_refuses_waits(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=2)
    task = cascade.serve(Task.create(small_plan(), cascade.key.public, bits=BITS, hops=cascade.public))
    cascade.servers[2].desk.routings.pop(task.id)  # type: ignore[attr-defined]
    cascade.servers[2].incoming.desk.routings.pop(task.id, None)  # type: ignore[attr-defined]
    before = cascade.servers[2]._store
    before.write(lambda records: records.db.execute("DELETE FROM tasks"))
    cascade.report(task, [numbered(task, person) for person in range(USERS)])
    assert cascade.pass_on(1) is False
    assert cascade.servers[1].counts(task.id)["batches_waiting"] == 1
    cascade.servers[2].add_task(task.text)
    cascade.work()
    assert cascade.payloads == everybody(task)
    # The same bytes both times.
    assert len({body for _, _, body in cascade.sent[1]}) == 1


# --- who is which hop -----------------------------------------------------------------------------


def test_people_and_batches_come_to_their_own_hops(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=2)
    task = task_of(cascade)
    with pytest.raises(RefusedError, match="hop 2 of 2, which takes batches of hop 1 only: report to hop 1") as refused:
        cascade.servers[2].take_seats(task.id, 1).result(timeout=5)
    assert (refused.value.kind.name, refused.value.kind.status) == ("hop-wrong", 409)
    with pytest.raises(RefusedError, match="hop 1, which takes reports"):
        cascade.servers[1].deliver(task.id, BATCH, b"")
    with pytest.raises(RefusedError, match=r"no batch 9\.9\.9"):
        cascade.servers[2].deliver(task.id, "9.9.9", b"")


def test_hops_in_another_order_or_with_other_keys_are_refused(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=2)
    task = Task.create(small_plan(), cascade.key.public, bits=BITS, hops=tuple(reversed(cascade.public)))
    for number, server in cascade.servers.items():
        with pytest.raises(ParameterError, match=f"must be the task's hop {number}, whose key is"):
            server.add_task(task.text)
    three = Task.create(
        small_plan(), cascade.key.public, bits=BITS, hops=[*cascade.public, PrivateKey.generate().public]
    )
    assert cascade.servers[2].add_task(three.text)[1] is True
    plain = Task.create(small_plan(), cascade.key.public, bits=BITS)
    # Hop 2 would take none of its batches: they would wait at hop 1 for ever.
    with pytest.raises(ParameterError, match="hop must be left out: the task is for one shuffler"):
        cascade.servers[1].add_task(plain.text)
    with pytest.raises(ParameterError, match="hop must be 1 in this task, got 2"):
        cascade.servers[2].add_task(plain.text)


def test_a_store_opens_as_the_hop_that_it_began_as(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=2)
    task, rows = sealed_at_hop_1(cascade)
    assert cascade.servers[2].deliver(task.id, BATCH, b"".join(rows))
    cascade.servers[2].stop()
    for wrong in ({"key": PrivateKey.generate()}, {"hop": 1}):
        with pytest.raises(ParameterError, match=r"must be hop 2 with the key .* as the store began"):
            cascade.start(2, **wrong)
    cascade.start(2)
    cascade.work()
    assert cascade.payloads == everybody(task) and cascade.malformed == 0


# --- documents ------------------------------------------------------------------------------------


def test_the_task_names_its_hops_and_is_immutable() -> None:
    analyzer, first, second = (PrivateKey.generate().public for _ in range(3))
    task = Task.create(small_plan(), analyzer, bits=BITS, hops=[first, second])
    assert task.hops == (first, second) and task.document["version"] == 2 and task.routing.layers == 2
    assert Task.from_text(task.text) == task
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda document: document.pop("hops"),
        lambda document: document.update(version=1),
        lambda document: document["hops"].pop(),
        lambda document: document["hops"].reverse(),
        lambda document: document.update(hops=[]),
        lambda document: document["routing"].update(layers=1),
        lambda document: document["routing"].update(hop=2),
        lambda document: document["routing"].update(ciphertext_bytes=77),
        lambda document: document["hops"][1].update(public_key=first.text),
        lambda document: document["hops"][0].update(name="a"),
    ]
    for change in changes:
        document = json.loads(task.text)
        change(document)
        with pytest.raises(ParameterError):
            Task.from_text(json.dumps(document, sort_keys=True, separators=(",", ":")))


def test_a_task_without_hops_is_what_it_was() -> None:
    task = Task.create(small_plan(), PrivateKey.generate().public, bits=BITS)
    assert task.hops == () and task.document["version"] == 1 and "hops" not in task.document
    assert not {"layers", "hop"} & set(task.document["routing"]) and task.routing.ciphertext_bytes == 77


def test_too_few_too_many_or_equal_hops_are_refused() -> None:
    keys = [PrivateKey.generate().public for _ in range(5)]
    for hops in ([keys[1]], keys[1:]):
        with pytest.raises(ParameterError, match="hop must be 2 or 3 in a cascade"):
            Task.create(small_plan(), keys[0], bits=BITS, hops=hops)
    for hops in ([keys[1], keys[1]], [keys[0], keys[1]]):
        with pytest.raises(ParameterError, match="must differ from the analyzer's and from every other hop's"):
            Task.create(small_plan(), keys[0], bits=BITS, hops=hops)
    with pytest.raises(DataError):
        Task.from_text("{}")


def test_the_cost_counts_layers() -> None:
    keys = [PrivateKey.generate().public for _ in range(4)]
    plain, three = (Task.create(small_plan(), keys[0], bits=BITS, hops=hops) for hops in ([], keys[1:]))
    costs = [TaskCost.of(task.routing) for task in (plain, three)]
    assert costs[1].upload_bytes * 77 == costs[0].upload_bytes * 221
    assert costs[1].largest_batch_bytes == costs[0].largest_batch_bytes
    measured = [MeasuredCost.of(cost) for cost in costs]
    assert measured[0].hop_seconds == 0 < measured[1].hop_seconds
    assert measured[1].device_seconds / measured[1].seal_seconds == pytest.approx(4 * costs[0].messages)
    # What a table calls a message has all its layers.
    for cost, each, words in zip(costs, measured, ("a message,", "a message with its 4 layers,"), strict=True):
        said = each.speed_in_words(cost)
        assert words in said and float(said.split()[1]) == pytest.approx(1e3 * each.device_seconds / cost.messages, 0.1)


def test_a_hop_that_doubles_everything_costs_a_bounded_number_of_bytes_a_message() -> None:
    """Every second message is a copy, found in whatever part it is: of the n / 2 others 25 bytes each are kept."""
    count, length, parts = 20_000, 8, 10
    messages = np.repeat(np.arange(count // 2, dtype=np.uint64), 2)
    messages = messages[uniform_permutation(count, bits=RandomBits.seeded(7))]
    bodies = [each.tobytes() for each in np.split(messages, parts)]
    tracemalloc.start()
    try:
        suspects = Suspects(bits=RandomBits.seeded(8))
        for body in bodies:
            suspects.look(body, length)
        found = [suspects.copies_in(body, length) + place * count // parts for place, body in enumerate(bodies)]
        copies = np.concatenate(found)
        del found
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert copies.size == count // 2 and np.array_equal(copies, copies_in(b"".join(bodies), length))
    # The copies' own places are the caller's.
    assert 12.5 * count <= kept - copies.nbytes < 13.5 * count


def test_messages_that_share_a_hash_by_chance_are_no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    suspects = Suspects(bits=RandomBits.seeded(9))
    digest = suspects._digest
    monkeypatch.setattr(suspects, "_digest", lambda message, size: bytes(8) if size == 8 else digest(message, size))
    suspects.look(b"abcxyzabcuvwxyzabc", 3)
    assert suspects.copies_in(b"abcxyzabc", 3).tolist() == [2]
    assert suspects.copies_in(b"uvwxyzabc", 3).tolist() == [1, 2]


# --- campaigns ------------------------------------------------------------------------------------


def test_a_campaigns_rounds_pass_all_hops(make: Callable[..., Cascade]) -> None:
    cascade = make(hops=3)
    policy = FixedBatches(arms=2, horizon=60, privacy=Privacy(8, 0.1), batch=USERS, method="coins")
    keys = cascade.key.public, cascade.signing.public
    made = Campaign.create(policy, *keys, bits=BITS, hops=cascade.public)
    campaign = cascade.serve(Campaign.from_text(made.text))
    for number in range(2):
        task = round_of_model(campaign, unchecked_model(cascade.analyzer.newest_model(campaign.id)))
        assert task is not None and task.hops == tuple(cascade.public)
        ones = np.ones(1, dtype=np.int64)

        def make_one(batches: Any, task: Any = task, ones: Any = ones) -> bytes:
            return make_reports(task, ones, [batches], bits=BITS)[0]

        cascade.report(task, [make_one] * USERS)
        cascade.work()
        assert unchecked_model(cascade.analyzer.newest_model(campaign.id)).number == number + 1
    assert cascade.malformed == 0
