"""Opening piece by piece, by whoever takes a lease, says what opening the whole batch says."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest

from harness.campaigns import some_arms
from shuffledp.errors import BatchError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer import app
from shuffledp.service.analyzer.leasing import unpack_lease
from shuffledp.service.analyzer.remote import RemoteOpener, doubt_of_keys
from shuffledp.service.analyzer.results import PieceResult, copies_among, ids_in, tally_of
from shuffledp.service.client.calls import AnswerError, Calls
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.rounds import round_id
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, MESSAGE_BYTES, pack_messages, unpack_messages

BITS = RandomBits.secure()
SMALL = BatchSizes(whole=0, piece=4 * CIPHERTEXT_BYTES, dealt=30 * CIPHERTEXT_BYTES, bucket=16 * CIPHERTEXT_BYTES)


# --- pieces and the whole ---------------------------------------------------------------------


def some_messages(plan: Plan, users: int, choice: np.random.Generator) -> list[bytes]:
    """Messages of honest users and of others: fillers, nonsense, payloads and labels that nobody may have, copies."""
    payloads = choice.integers(0, 5, 60, dtype=np.uint64)
    payloads[choice.random(60) < 0.1] = np.uint64(2**63 + 5)
    labels = choice.integers(0, 4, 60, dtype=np.uint32) if plan.is_labelled or choice.random() < 0.3 else None
    rows = pack_messages(payloads, labels, 70, bits=BITS)
    # A flag that is neither "counts" nor "only fills up".
    rows += [row[:16] + b"\x07" + row[17:] for row in pack_messages(payloads[:3], None, 3, bits=BITS)]
    chosen = [rows[at] for at in choice.permutation(len(rows))]
    for _ in range(int(choice.integers(0, 12))):
        copy, other = (chosen[int(at)] for at in choice.integers(0, len(chosen), 2))
        # A copy of the whole message, or of its id with another payload.
        chosen.insert(int(choice.integers(0, len(chosen))), copy if choice.random() < 0.5 else copy[:16] + other[16:])
    return chosen


def whole(plan: Plan, users: int, messages: list[bytes], unopened: int) -> Tally | None:
    unpacked = unpack_messages(b"".join(messages))
    try:
        return tally_of(plan, users, replace(unpacked, malformed=unpacked.malformed + unopened), users)
    except BatchError:
        return None


def in_pieces(plan: Plan, users: int, messages: list[bytes], cuts: list[int]) -> tuple[Tally | None, int]:
    """The pieces' tally, as the analyzer finds it, and their malformed messages; three did not open in the first."""
    pieces = [b"".join(part) for part in np.split(np.array(messages, dtype=f"V{MESSAGE_BYTES}"), cuts)]

    def opened(number: int, without: bytes = b"") -> bytes:
        unopened = 3 if number == 0 else 0
        piece = pieces[number]
        return PieceResult.of(plan, users, piece, unopened, is_first=number == 0, without=without).to_bytes()

    found = {number: opened(number) for number in range(len(pieces))}
    rounds = 0

    def ids() -> Iterator[tuple[int, bytes]]:
        return ((number, ids_in(found[number])) for number in sorted(found))

    while copies := copies_among(ids, len(messages), bits=BITS):
        found |= {number: opened(number, without) for number, without in copies.items()}
        rounds += 1
        assert rounds == 1, "copies were found again after they were left out"
    results = [PieceResult.from_bytes(each) for each in found.values()]
    malformed = sum(result.malformed for result in results)
    tallies = [result.tally for result in results if result.tally is not None]
    return (Tally.merge(tallies) if len(tallies) == len(results) else None), malformed


def check_equal(plan: Plan, seed: int, trials: int = 6) -> None:
    choice = np.random.default_rng(seed)
    size = max(plan.layout.messages)
    for _ in range(trials):
        messages = some_messages(plan, size, choice)
        cuts = sorted(choice.integers(0, len(messages) + 1, int(choice.integers(1, 9))).tolist())
        expected, (found, malformed) = whole(plan, size, messages, 3), in_pieces(plan, size, messages, cuts)
        assert malformed == unpack_messages(b"".join(messages)).malformed + 3
        assert (expected is None) == (found is None)
        if expected is not None and found is not None:
            assert found.document() == expected.document() and found.counts.dtype == expected.counts.dtype


def test_any_cut_of_a_batch_gives_the_tally_of_the_whole(any_plan: tuple[Plan, list[Any]]) -> None:
    check_equal(any_plan[0], 61)


@pytest.mark.parametrize(
    ("family", "method", "more"),
    [
        ("binary-sum", "shares", {}),
        ("bounded-sum", "shares", {"low": 0, "high": 2}),
        ("vector-sum", "shares", {"dimension": 2, "radius": 1}),
        ("counter", "carried", {"shufflers": 3}),
    ],
)
def test_shares_in_pieces_add_up_to_the_whole(family: str, method: str, more: dict[str, Any]) -> None:
    check_equal(PROTOCOLS[family].plan(users=30, privacy=Privacy(8, 1e-2), method=method, **more), 62)


# --- openers elsewhere ------------------------------------------------------------------------


class Elsewhere:
    """A service whose batches come in pieces, and whose analyzer has no workers of its own."""

    def __init__(self, service: Any, task: Task) -> None:
        self.service, self.task = service, service.add(task)
        users = task.routing.users
        service.send(self.task, [1] * users)
        service.shuffler.seal_full()
        assert service.shuffler.send_waiting()

    def opener(self, role: str = "open", key: PrivateKey | None = None, **more: Any) -> RemoteOpener:
        calls = Calls("http://test", self.service.tokens.secrets[role], self.service.at("analyzer"), BITS, patience=1.0)
        return RemoteOpener(calls, [key or self.service.key], wait=lambda seconds: None, **more)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """The analyzer's chore, in a thread, until all is read."""
        thread = threading.Thread(target=self.service.analyzer.read_all)
        thread.start()
        yield
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def elsewhere(make_service: Callable[..., Any], make_task: Callable[..., Task]) -> Elsewhere:
    return Elsewhere(make_service(sizes=SMALL, workers=0), make_task("binary coins"))


def open_until_read(elsewhere: Elsewhere, openers: list[RemoteOpener]) -> int:
    counted = 0
    while elsewhere.service.analyzer.progress(elsewhere.task.id).batches_read == 0:
        counted += sum(opener.open_one() for opener in openers)
    return counted


def test_openers_elsewhere_give_the_estimate_of_a_whole_batch(
    elsewhere: Elsewhere, make_service: Callable[..., Any]
) -> None:
    opener, other = elsewhere.opener(), elsewhere.opener()
    with elsewhere.reading():
        counted = open_until_read(elsewhere, [opener, other])
    assert counted == elsewhere.service.analyzer.metrics.registry.get_sample_value(
        "shuffledp_analyzer_pieces_opened_total"
    )
    pieces = [path for path in elsewhere.service.posted if "/pieces/" in path]
    assert counted == len(pieces) > 5
    [release] = elsewhere.service.analyzer.history(elsewhere.task.id, 0, 10)
    calm = make_service()
    calm.add(elsewhere.task)
    body = b"".join(elsewhere.service.posted[path] for path in pieces)
    assert calm.analyzer.deliver(elsewhere.task.id, "1.0.1", body)
    calm.analyzer.read_all()
    assert [release] == calm.analyzer.history(elsewhere.task.id, 0, 10)
    assert not opener.open_one()


def test_an_opener_with_another_services_keys_is_told_before_a_piece_comes(make_service: Callable[..., Any]) -> None:
    """It is refused with none of the analyzer's keys, and warned with some; one that does not say is not doubted."""
    older, foreign = PrivateKey.generate(), PrivateKey.generate()
    service = make_service(older=(older,))

    def doubt(*keys: PrivateKey, role: str = "open", server: str = "analyzer") -> str | None:
        calls = Calls("http://test", service.tokens.secrets[role], service.at(server), BITS, patience=0.0)
        return doubt_of_keys(calls, keys)

    assert service.analyzer.public_keys == [service.key.public.text, older.public.text]
    assert doubt(service.key, older) is None and doubt(older, foreign, service.key) is None
    words = doubt(service.key, foreign)
    assert words is not None and older.public.text in words and service.key.public.text not in words
    with pytest.raises(ParameterError, match="keys must be the analyzer's, which has") as refused:
        doubt(foreign)
    assert refused.value.value == foreign.public.text and service.key.public.text in refused.value.problem
    assert doubt(foreign, server="shuffler") is None and doubt(foreign, role="read") is None


def test_late_lost_and_foreign_answers_are_refused(elsewhere: Elsewhere) -> None:
    asking = elsewhere.service.at("analyzer", "open")
    openings = elsewhere.service.analyzer.work.openings
    with elsewhere.reading():
        while not (answer := asking.post("/v1/openings")).content:
            pass
        piece = unpack_lease(answer.content)
        assert elsewhere.service.analyzer.work.openings.held(piece.lease).piece == piece.piece
        result = elsewhere.opener()._open(piece).to_bytes()
        binary = {"Content-Type": "application/octet-stream"}
        path = f"/v1/openings/{piece.lease}"
        for wrong in (b"", b"x", result[:-16], result + bytes(16) * 5000):
            refused = asking.post(path, content=wrong, headers=binary)
            assert refused.status_code == 400, refused.text
        # Its time is over, as a clock that has gone on says: another has the piece, and it is counted once.
        openings._leased[piece.lease] = replace(openings._leased[piece.lease], ends=0.0)
        assert asking.post(path, content=result, headers=binary).json()["type"].endswith("lease-lost")
        again = unpack_lease(asking.post("/v1/openings").content)
        assert again.piece == piece.piece and again.lease != piece.lease
        assert asking.post(path, content=result, headers=binary).status_code == 409
        assert asking.delete(path).json() == {"given_back": False}
        assert asking.delete(f"/v1/openings/{again.lease}").json() == {"given_back": True}
        open_until_read(elsewhere, [elsewhere.opener()])
    [release] = elsewhere.service.analyzer.history(elsewhere.task.id, 0, 10)
    assert release["dropped"] == release["void"] == 0


def test_an_opener_waits_for_an_analyzer_that_is_away_and_stops_when_told(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener = elsewhere.opener()
    once, failures = Calls.once, [httpx.ConnectError("away")] * 3

    def away(self: Calls, method: str, path: str, *given: Any, **more: Any) -> httpx.Response:
        if failures:
            raise failures.pop()
        return once(self, method, path, *given, **more)

    with elsewhere.reading():
        monkeypatch.setattr(Calls, "once", away)
        assert not opener.open_one_or_wait()
        while not opener.open_one_or_wait():
            pass
        # Told to stop in the middle of a piece, it gives it back.
        held = len(elsewhere.service.analyzer.work.openings._leased)
        assert not elsewhere.opener(is_stopping=lambda: True).open_one_or_wait()
        assert len(elsewhere.service.analyzer.work.openings._leased) == held
        open_until_read(elsewhere, [opener])
    assert elsewhere.service.analyzer.history(elsewhere.task.id, 0, 10)[0]["dropped"] == 0


def test_a_wrong_token_or_key_is_an_error_and_not_a_wait(elsewhere: Elsewhere) -> None:
    with elsewhere.reading():
        with pytest.raises(AnswerError, match="needs a token for open"):
            elsewhere.opener(role="hop").open_one_or_wait()
        lost = elsewhere.opener()
        lost._calls = replace(lost._calls, http=elsewhere.service.at("shuffler"))
        with pytest.raises(ParameterError, match="analyzer must be an analyzer"):
            lost.open_one_or_wait()
        with pytest.raises(ParameterError, match="keys must be the task's"):
            while True:
                elsewhere.opener(key=PrivateKey.generate()).open_one_or_wait()
        # Who has another key gives its piece back.
        assert not elsewhere.service.analyzer.work.openings._leased
        open_until_read(elsewhere, [elsewhere.opener()])


def test_rounds_of_campaigns_are_opened_elsewhere_too(elsewhere: Elsewhere) -> None:
    campaign = elsewhere.service.campaign(some_arms())
    opener, task_id = elsewhere.opener(), round_id(campaign.id, 0, 0)
    found, expected = opener._task(task_id), campaign.round_of_id(task_id)
    assert expected is not None and found.plan == expected.plan and found.id == task_id
    with elsewhere.reading():
        open_until_read(elsewhere, [opener])


def test_a_batch_too_large_for_memory_is_not_taken_in_one_body(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LARGEST_WHOLE_BYTES", 10 * CIPHERTEXT_BYTES)
    headers = {"Content-Type": "application/octet-stream"}
    path, body = f"/v1/tasks/{elsewhere.task.id}/batches/1.0.1", bytes(11 * CIPHERTEXT_BYTES)
    answer = elsewhere.service.at("analyzer", "hop").post(path, content=body, headers=headers)
    assert answer.status_code == 413 and "send less at a time" in answer.json()["detail"]
    with elsewhere.reading():
        open_until_read(elsewhere, [elsewhere.opener()])


@pytest.mark.parametrize("workers", [0, 1])
def test_pieces_of_a_task_from_before_a_rotation_are_opened_by_its_own_key(
    make_service: Callable[..., Any], make_task: Callable[..., Task], workers: int
) -> None:
    """By the analyzer's own workers, and by openers that have both keys."""
    old = PrivateKey.generate()
    task = Task.create(make_task("binary coins").plan, old.public, bits=BITS)
    elsewhere = Elsewhere(make_service(sizes=SMALL, workers=workers, older=(old,)), task)
    if workers:
        elsewhere.service.analyzer.read_all()
    else:
        with elsewhere.reading():
            stranger, both = elsewhere.opener(), elsewhere.opener()
            both._keys[old.public] = old
            with pytest.raises(ParameterError, match="keys must be the task's"):
                while True:
                    stranger.open_one()
            while elsewhere.service.analyzer.progress(task.id).batches_read == 0:
                both.open_one_or_wait()
    progress = elsewhere.service.analyzer.progress(task.id)
    assert (progress.batches_read, progress.dropped, progress.batches_void) == (1, 0, 0)
