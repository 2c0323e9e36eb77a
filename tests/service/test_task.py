"""Tasks: one text, one id, bound into every ciphertext; edited ones are refused, and reports give nothing away."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.world import open_here, report_of
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import DataError, ParameterError, RandomnessError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.distinct_elements import DistinctElements
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.request import Request
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey, PublicKey, binding
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES

SECURE = RandomBits.secure()
TINY = {"users": 20, "privacy": Privacy(2, 1e-3)}
UNBOUNDED: dict[str, Callable[[], Plan]] = {
    "binary shares": lambda: BinarySum.plan(**TINY, method="shares"),
    "bounded shares": lambda: BoundedSum.plan(**TINY, low=-1, high=1, method="shares"),
    "vector shares": lambda: VectorSum.plan(**TINY, dimension=2, radius=1, method="shares"),
    "distinct elements": lambda: DistinctElements.plan(**TINY, categories=["red", "green", "blue"]),
    "running count, laplace": lambda: CounterPlan.plan(
        users=60, shufflers=2, privacy=Privacy(4, 1e-2), noise="laplace"
    ),
    "running count, skellam": lambda: CounterPlan.plan(
        users=60, shufflers=2, privacy=Privacy(4, 1e-2), noise="skellam"
    ),
}


def canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def fields_of(document: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in document.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from fields_of(value, (*path, name))


def edited(text: str, path: tuple[str, ...], value: Any) -> str:
    document = json.loads(text)
    at = document
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return canonical(document)


# --- every protocol --------------------------------------------------------------------------


def test_tasks_come_back_and_reports_have_their_seats_length(
    any_plan: tuple[Plan, list[Any]], make_task: Callable[..., Task], key: PrivateKey
) -> None:
    plan, values = any_plan
    task = make_task(plan)
    again = Task.from_text(task.text)
    assert again == task and again.id == task.id and again.plan.fingerprint == plan.fingerprint
    assert task.warnings == ()
    for position in np.linspace(0, plan.users - 1, 5, dtype=int).tolist():
        batches = task.routing.batches_of(position)
        for value in values:
            report = report_of(task, value, batches, bits=SECURE)
            # Neither the value nor the number of messages shows: they are filled up to the most there can be.
            assert len(report) == task.routing.report_bytes(position)
            start = 0
            for batch in batches:
                end = start + batch.messages * CIPHERTEXT_BYTES
                opened = open_here(key, report[start:end], task.id, batch.batch_id)
                assert opened.malformed == 0 and opened.payloads.size + opened.fillers == batch.messages
                start = end


@pytest.mark.parametrize("method", ["coins", "rr", "zsum", "poisson-bits", "correlated"])
def test_every_bounded_method_makes_a_task(make_task: Callable[..., Task], method: str) -> None:
    plan = BinarySum.plan(**TINY, method=method)
    task = make_task(plan)
    assert Task.from_text(task.text).plan.document() == plan.document()
    assert task.routing.messages == {20: plan.messages_per_user_max} and task.warnings == ()


def test_random_counts_of_messages_are_filled_up_to_the_most(make_task: Callable[..., Task], key: PrivateKey) -> None:
    task = make_task("binary poisson-bits")
    batches = task.routing.batches_of(0)
    seen = set()
    for _ in range(60):
        report = report_of(task, 1, batches, bits=SECURE)
        opened = open_here(key, report, task.id, "1.0.1")
        assert len(report) == task.plan.messages_per_user_max * CIPHERTEXT_BYTES
        assert opened.payloads.size + opened.fillers == task.plan.messages_per_user_max
        seen.add(int(opened.payloads.size))
    # 60 equal draws of a number that is random have a probability below 1e-9.
    assert len(seen) > 1


@pytest.mark.parametrize("name", UNBOUNDED)
def test_methods_that_one_client_can_void_are_refused_unless_allowed(name: str, make_task: Callable[..., Task]) -> None:
    plan = UNBOUNDED[name]()
    with pytest.raises(
        ParameterError, match=r"must not let one client spoil it for everybody .*--allow-unbounded"
    ) as told:
        make_task(plan)
    family = PROTOCOLS[plan.protocol]
    named = re.match(r"choose ([\w-]+), what plan --live takes", told.value.way_out)
    if named is None:
        assert told.value.way_out.startswith(f"no method of {plan.protocol} does better") and len(family.methods) == 1
    else:
        # The way out that a refusal names is one: the same question by that method makes a task.
        given = {parameter.name: getattr(plan, parameter.name, None) for parameter in family.domain}
        assert make_task(family.choice(Request(**plan.common), method=named[1], **given).plan).warnings == ()
    task = make_task(plan, allow_unbounded=True)
    (warning,) = Task.from_text(task.text).warnings
    assert warning == f"One client that lies {plan.lying_client}."
    value = {"bounded shares": 0.5, "vector shares": [0.1, 0.2], "distinct elements": "blue"}.get(name, 1)
    assert len(report_of(task, value, task.routing.batches_of(0), bits=SECURE)) == task.routing.report_bytes(0)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("binary coins", 2),
        ("binary coins", "x"),
        ("binary coins", [0, 1]),
        ("bounded bits", 1.01),
        ("bounded bits", float("nan")),
        ("vector bits", [1.0, 1.0]),
        ("vector bits", [1.0]),
        ("vector bits", 0.5),
        ("running count", -1),
        ("running count", 0.5),
        ("running sum", 1.5),
        ("running vector sum", [2.0, 0.0]),
        ("running histogram", 3),
        ("running histogram", 1.5),
    ],
)
def test_values_outside_the_domain_are_refused_before_anything_is_sent(
    make_task: Callable[..., Task], name: str, bad: Any
) -> None:
    task = make_task(name)
    with pytest.raises(ParameterError, match=r"must|values"):
        task.plan.check_values(task.plan.encode(np.asarray(bad)[np.newaxis]))
    with pytest.raises(ParameterError, match=r"must|values"):
        report_of(task, bad, task.routing.batches_of(0), bits=SECURE)


def test_clients_take_no_seeded_bits(make_task: Callable[..., Task]) -> None:
    task = make_task("binary coins")
    with pytest.raises(RandomnessError, match="secure bits only"):
        report_of(task, 1, task.routing.batches_of(0), bits=RandomBits.seeded(1))


# --- the text ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["binary coins", "bounded bits", "vector bits", "running count", "running histogram"])
def test_a_task_with_any_number_changed_is_refused(make_task: Callable[..., Task], name: str) -> None:
    task = make_task(name)
    document = json.loads(task.text)
    checked = 0
    for path in fields_of(document):
        # Another nonce is another task; the warnings are what the operator was told.
        if path[0] in ("nonce", "warnings"):
            continue
        for value in (-7, 0.123, "x", [], None):
            changed = edited(task.text, path, value)
            if changed == task.text:
                continue
            with pytest.raises(ParameterError, match=r", got .*: \w"):
                Task.from_text(changed)
            checked += 1
    assert checked > 100


def test_a_task_with_another_routing_than_its_plans_is_refused(make_task: Callable[..., Task]) -> None:
    task = make_task(BinarySum.plan(users=20, privacy=Privacy(1, 1e-6), method="coins"))
    document = json.loads(task.text)
    (size, count), *_ = document["routing"]["messages"].items()
    # A routing that is good in itself: half the people, or a message more.
    fewer = {"users": int(size) // 2, "slot_users": int(size) // 2, "messages": {str(int(size) // 2): count}}
    for other in (fewer, {"messages": {size: count + 1}}):
        text = canonical(document | {"routing": document["routing"] | other})
        assert Task(text).routing != task.routing
        with pytest.raises(DataError, match=r"^task.routing must be the plan's"):
            Task.from_text(text)


def test_a_task_whose_plan_says_more_or_less_is_refused(make_task: Callable[..., Task]) -> None:
    document = json.loads(make_task("binary coins").text)
    plan = document["plan"]
    for other in (plan | {"more": 1}, {key: value for key, value in plan.items() if key != "local_epsilon"}):
        with pytest.raises(DataError, match="plan"):
            Task.from_text(canonical(document | {"plan": other}))


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_refused_with_a_sentence(make_task: Callable[..., Task], version: Any) -> None:
    changed = edited(make_task("binary coins").text, ("version",), version)
    way_out = "use the shuffledp that wrote it or a newer one, or create" if isinstance(version, int) else "create"
    with pytest.raises(
        DataError, match=f"task.version must be 1, .* got {version}: {way_out} the task again with this"
    ):
        Task.from_text(changed)


def test_another_suite_is_refused(make_task: Callable[..., Task]) -> None:
    changed = edited(make_task("binary coins").text, ("suite",), "P256-HKDF-SHA256/AES-128-GCM")
    with pytest.raises(DataError, match="with X25519-HKDF-SHA256/AES-128-GCM"):
        Task.from_text(changed)


@pytest.mark.parametrize("key_text", ["", "AAAA", "!" * 44, "A" * 43 + "é", 7, None])
def test_what_is_no_key_is_refused(make_task: Callable[..., Task], key_text: Any) -> None:
    with pytest.raises(DataError, match="must be 32 bytes in base64url, got"):
        Task.from_text(edited(make_task("binary coins").text, ("public_key",), key_text))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: " " + text,
        lambda text: text + "\n",
        lambda text: json.dumps(json.loads(text), indent=1),
        lambda text: json.dumps(dict(reversed(json.loads(text).items())), separators=(",", ":")),
        lambda text: text[:-1],
        lambda text: text.replace('"nonce"', '"nonce":"0","nonce"'),
        lambda _: "",
        lambda _: "null",
        lambda _: "[]",
    ],
)
def test_a_task_has_one_spelling(make_task: Callable[..., Task], spoil: Callable[[str], str]) -> None:
    with pytest.raises(DataError, match=r"task.* must be .*"):
        Task.from_text(spoil(make_task("binary coins").text))


def test_files_come_back(tmp_path: Path, make_task: Callable[..., Task]) -> None:
    task = make_task("running count")
    task.save(tmp_path / "task.json")
    assert Task.load(tmp_path / "task.json").id == task.id
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name, words in (("none", "can be read"), ("bytes", "must be a task's file")):
        with pytest.raises(ParameterError, match=words):
            Task.load(tmp_path / name)


def test_two_tasks_of_one_plan_have_two_ids(make_task: Callable[..., Task]) -> None:
    assert len({make_task("binary coins").id for _ in range(5)}) == 5


# --- the binding ------------------------------------------------------------------------------


def test_messages_open_in_their_own_task_and_batch_only(make_task: Callable[..., Task], key: PrivateKey) -> None:
    task = make_task("running count")
    nonce = json.loads(task.text)["nonce"]
    twin = Task.from_text(edited(task.text, ("nonce",), ("1" if nonce[0] == "0" else "0") + nonce[1:]))
    batches = task.routing.batches_of(0)
    report = report_of(task, 1, batches, bits=SECURE)
    first = report[: batches[0].messages * CIPHERTEXT_BYTES]
    assert open_here(key, first, task.id, batches[0].batch_id).malformed == 0
    for task_id, batch in ((twin.id, batches[0].batch_id), (task.id, batches[1].batch_id), (task.id, "1.1.2")):
        opened = open_here(key, first, task_id, batch)
        assert (opened.payloads.size, opened.fillers, opened.malformed) == (0, 0, batches[0].messages)
    other = PrivateKey.generate()
    assert open_here(other, first, task.id, batches[0].batch_id).malformed == batches[0].messages
    assert open_here(key, first, task.id, batches[0].batch_id).malformed == 0


def test_the_hop_is_bound_too(key: PrivateKey) -> None:
    (sealed,) = key.public.seal([bytes(29)], binding("t", "1.0.1", hop=1))
    assert key.open(sealed, binding("t", "1.0.1", hop=1)) == bytes(29)
    assert key.open(sealed, binding("t", "1.0.1")) is None


def test_a_ciphertext_with_any_bit_changed_does_not_open(key: PrivateKey) -> None:
    info = binding("t", "1.0.1")
    (sealed,) = key.public.seal([bytes(29)], info)
    for place in range(len(sealed)):
        # The top bit of an X25519 point is ignored by its definition (RFC 7748), but HPKE hashes the key as it came.
        for flip in (1, 128):
            spoiled = sealed[:place] + bytes([sealed[place] ^ flip]) + sealed[place + 1 :]
            assert key.open(spoiled, info) is None
    for other in (sealed[:-1], sealed + b"\0", b"", bytes(77), b"\xff" * 77):
        assert key.open(other, info) is None


def test_every_message_has_an_encapsulation_of_its_own(make_task: Callable[..., Task]) -> None:
    task = make_task("running histogram")
    reports = b"".join(report_of(task, 1, task.routing.batches_of(0), bits=SECURE) for _ in range(4))
    keys = [reports[at : at + 32] for at in range(0, len(reports), CIPHERTEXT_BYTES)]
    assert len(set(keys)) == len(keys) > 30


def test_keys_come_back_and_secrets_stay_out_of_words(key: PrivateKey) -> None:
    assert PrivateKey.from_text(key.text) == key and PublicKey.from_text(key.public.text) == key.public
    for words in (repr(key), str(key), f"{key}", repr([key])):
        assert key.text not in words and key.raw.hex() not in words and repr(key.raw) not in words
