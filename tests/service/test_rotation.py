"""Keys that are rotated: an overlap, no half set of keys at any crash, and no key destroyed that is needed."""

import hmac
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from harness.world import OpenerHere
from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.randomness import RandomBits
from shuffledp.service import rotation
from shuffledp.service.analyzer.needing import needed_keys
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.key_notes import retired_keys
from shuffledp.service.keys import (
    ANALYZER,
    MODELS,
    load_private_key,
    load_public_key,
    load_token,
    load_tokens,
    make_keys,
)
from shuffledp.service.problems import RefusedError
from shuffledp.service.rotation import (
    current_public_key,
    retire_keys,
    retire_tokens,
    rotate_keys,
    rotate_tokens,
    whereabouts,
)
from shuffledp.service.store import open_analyzer_store
from shuffledp.service.task import Task
from shuffledp.service.tokens import READ, ROLES

BITS = RandomBits.secure()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_keys(tmp_path / "keys", bits=BITS)
    return tmp_path / "keys"


def publics(folder: Path) -> list[str]:
    return [key.public.text for key in ANALYZER.ring(folder)]


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if file.suffix != ".lock"}


def test_a_rotation_leaves_both_pairs_and_the_new_one_is_current(folder: Path) -> None:
    before, signing = load_private_key(folder), MODELS.ring(folder)[0]
    usual = names(folder)
    new = rotate_keys(folder, bits=BITS)
    assert new == load_public_key(folder) == load_private_key(folder).public != before.public
    assert ANALYZER.ring(folder)[1:] == (before,) and MODELS.ring(folder)[1:] == (signing,)
    assert names(folder) - usual == {ANALYZER.older(before), MODELS.older(signing)}
    # Those who know the usual names only, as earlier versions do, find the current pair.
    assert json.loads((folder / "analyzer.key").read_text())["private_key"] == load_private_key(folder).text
    for file in folder.glob("*.key"):
        assert file.stat().st_mode & 0o777 == 0o600
    rotate_keys(folder, bits=BITS)
    assert len(publics(folder)) == 3 and publics(folder)[0] == load_public_key(folder).text
    with pytest.raises(ParameterError, match="must be secure"):
        rotate_keys(folder, bits=RandomBits.seeded(1))


def test_a_folder_that_lacks_a_half_is_not_rotated(folder: Path, tmp_path: Path) -> None:
    """Which key would be current, and which would be lost sight of, cannot be known."""
    for missing in ("analyzer.pub", "analyzer.key"):
        part = tmp_path / missing
        shutil.copytree(folder, part)
        (part / missing).unlink()
        with pytest.raises(ParameterError, match="must "):
            rotate_keys(part, bits=BITS)
        assert names(part) == names(folder) - {missing}
    make_keys(tmp_path / "other", bits=BITS)
    shutil.copy(tmp_path / "other" / "analyzer.pub", folder / "analyzer.pub")
    with pytest.raises(DataError, match="must have the secret half of analyzer"):
        rotate_keys(folder, bits=BITS)
    with pytest.raises(ParameterError, match="must be a folder of keys"):
        rotate_keys(tmp_path / "nowhere", bits=BITS)


def test_older_keys_that_others_may_read_are_refused(folder: Path) -> None:
    before = load_private_key(folder)
    rotate_keys(folder, bits=BITS)
    (folder / ANALYZER.older(before)).chmod(0o644)
    with pytest.raises(DataError, match="by its owner only, not have mode 644"):
        ANALYZER.ring(folder)


# --- crashes -------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


class Steps:
    """Everything that is done to a folder, counted; the process dies before a step, or in the middle of writing."""

    def __init__(self, dies_at: int) -> None:
        self.left = dies_at

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed

    def around(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*given: Any, **more: Any) -> Any:
            self.step()
            return act(*given, **more)

        return stepped

    def torn(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def half(path: Path, text: str, mode: int) -> None:
            self.left -= 1
            if self.left == 0:
                act(path, text[: len(text) // 2], mode)
                raise Killed
            act(path, text, mode)

        return half


def killed_at_each_step(folder: Path, act: Callable[[Path], Any]) -> Iterator[Path]:
    """The folder as each possible crash leaves it; in the end as it is when nothing crashed."""
    for number in range(1, 200):
        copy = folder.with_name(f"{folder.name}-{number}")
        shutil.copytree(folder, copy)
        steps = Steps(number)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rotation, "write_secret", steps.torn(rotation.write_secret))
            patch.setattr(rotation, "settle_name", steps.around(rotation.settle_name))
            for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "pwrite"), (os, "fsync")):
                patch.setattr(owner, name, steps.around(getattr(owner, name)))
            with suppress(Killed):
                act(copy)
        yield copy
        if steps.left > 0:
            return
    raise AssertionError("it never came to an end")


def test_no_crash_leaves_half_a_set_of_keys(folder: Path) -> None:
    """Wherever it dies: the old key is there, what new tasks name is there, and the next rotation goes well."""
    old, models = load_private_key(folder), MODELS.ring(folder)[0]
    seen = set()
    for left in killed_at_each_step(folder, lambda copy: rotate_keys(copy, bits=BITS)):
        assert old in ANALYZER.ring(left) and models in MODELS.ring(left)
        assert load_private_key(left).public == load_public_key(left) == current_public_key(left)
        seen.add(load_public_key(left) == old.public)
        new = rotate_keys(left, bits=BITS)
        assert load_public_key(left) == new and old in ANALYZER.ring(left) and models in MODELS.ring(left)
        assert not list(left.glob(".shuffledp*"))
    assert seen == {True, False}


def test_no_crash_loses_a_token(folder: Path) -> None:
    before = load_tokens(folder)
    for left in killed_at_each_step(folder, lambda copy: rotate_tokens(copy, bits=BITS)):
        tokens = load_tokens(left)
        for role in ROLES:
            assert tokens.check(f"Bearer {before.secrets[role]}", role) == role
            assert tokens.check(f"Bearer {load_token(left / f'{role}.token')}", role) == role


def test_no_crash_while_retiring_loses_a_key_that_is_needed(folder: Path) -> None:
    """Three pairs, of which the middle one is needed: it and the current one are there wherever it dies."""
    for _ in range(2):
        rotate_keys(folder, bits=BITS)
    ring = ANALYZER.ring(folder)
    current, needed, other = ring[0], *sorted(ring[1:], key=ANALYZER.older)
    needs = {needed.public.text: ["task abc"]}
    refused = retire_keys(folder, needs)
    assert refused.kept == {ANALYZER.older(needed): ("task abc",)} and refused.destroyed == ()
    assert ANALYZER.ring(folder) == ring and len(MODELS.ring(folder)) == 3
    only = [ANALYZER.older(other), *map(MODELS.older, MODELS.ring(folder)[1:])]
    for left in killed_at_each_step(folder, lambda copy: retire_keys(copy, needs, only)):
        assert {current, needed} <= set(ANALYZER.ring(left)) and load_private_key(left) == current
        retire_keys(left, needs, only)
        assert set(ANALYZER.ring(left)) == {current, needed} and len(MODELS.ring(left)) == 1
        assert whereabouts(left, other.public.text).startswith("was destroyed on 20")
        assert whereabouts(left, "elsewhere").startswith("is unknown in ")


# --- retiring ------------------------------------------------------------------------------------


def test_a_destroyed_key_is_overwritten_and_gone(folder: Path) -> None:
    before = load_private_key(folder)
    rotate_keys(folder, bits=BITS)
    file = folder / ANALYZER.older(before)
    with file.open("rb") as held:
        done = retire_keys(folder, {})
        assert set(done.destroyed) >= {file.name} and done.kept == {}
        assert not any(held.read()), "whoever has the file open can still read the key"
    assert not file.exists() and publics(folder) == [load_public_key(folder).text]
    assert before.text.encode() not in b"".join(each.read_bytes() for each in folder.iterdir())
    assert retire_keys(folder, {}).destroyed == ()


def test_the_current_key_is_never_retired(folder: Path) -> None:
    rotate_keys(folder, bits=BITS)
    current = load_private_key(folder)
    retire_keys(folder, {})
    assert load_private_key(folder) == current and current_public_key(folder) == current.public


def test_a_key_that_is_current_and_destroyed_is_refused_for_new_tasks(folder: Path, tmp_path: Path) -> None:
    """A copy of analyzer.pub from before the rotation was put back."""
    shutil.copy(folder / "analyzer.pub", tmp_path / "old.pub")
    rotate_keys(folder, bits=BITS)
    retire_keys(folder, {})
    shutil.copy(tmp_path / "old.pub", folder / "analyzer.pub")
    with pytest.raises(DataError, match=r"a key that was destroyed on 20.*put the current analyzer\.pub back"):
        current_public_key(folder)


def task_of(key: PrivateKey, users: int = 6) -> Task:
    plan = PROTOCOLS["binary-sum"].plan(users=users, privacy=Privacy(4, 1e-2), method="coins")
    return Task.create(plan, key.public, bits=BITS)


def test_each_task_is_opened_with_the_key_that_it_names(make_service: Callable[..., Any], key: PrivateKey) -> None:
    old = PrivateKey.generate()
    service = make_service(older=(old,))
    tasks = [service.add(task_of(each)) for each in (old, key, old)]
    for task in tasks:
        service.send(task, [1] * 6)
    service.work()
    for task in tasks:
        release, progress = service.analyzer.latest(task.id)
        assert release is not None and release.dropped == 0 and progress.batches_void == 0, task.public_key
        assert abs(release.estimate - 6) <= 6 * task.plan.standard_error


def test_a_key_is_needed_until_its_task_has_ended(make_service: Callable[..., Any], key: PrivateKey) -> None:
    old = PrivateKey.generate()
    service = make_service(older=(old,))
    task = service.add(task_of(old))
    needs = {old.public.text: [f"task {task.id[:12]}"]}
    read = service.analyzer._store.read
    assert read(needed_keys) == needs
    service.send(task, [1] * 5)
    service.work()
    assert read(needed_keys) == needs
    service.send(task, [1])
    service.shuffler.seal_full()
    assert service.shuffler.send_waiting() and read(needed_keys) == needs, "a batch waits to be read"
    service.analyzer.read_all()
    assert read(needed_keys) == {}


def test_a_task_whose_key_is_gone_is_refused_and_nothing_is_lost(tmp_path: Path, key: PrivateKey) -> None:
    """Else its batches would be opened with another key, and be counted as nothing but garbage."""
    old, path = PrivateKey.generate(), tmp_path / "analyzer.db"
    task = task_of(old)
    with closing(open_analyzer_store(path)) as store:
        AnalyzerServer(store, key=old, opener=OpenerHere(old)).add_task(task.text)
    before = path.read_bytes()
    for _ in range(2):
        with closing(open_analyzer_store(path)) as store:
            words = f"public_key must be in the folder of keys: task {task.id[:12]} of the store needs it"
            with pytest.raises(ParameterError, match=words):
                AnalyzerServer(store, key=key, opener=OpenerHere(key))
    assert path.read_bytes() == before
    with closing(open_analyzer_store(path)) as store:
        server = AnalyzerServer(store, key=key, opener=OpenerHere(key), older={old.public: OpenerHere(old)})
        assert server.task(task.id) == task
        with pytest.raises(ParameterError, match="must be this analyzer's"):
            server.add_task(task_of(PrivateKey.generate()).text)


def test_models_are_signed_with_the_key_that_their_campaign_names(make_service: Callable[..., Any]) -> None:
    from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
    from shuffledp.service.campaign import Campaign
    from shuffledp.service.models import checked_model

    older = SigningKey.generate()
    service = make_service(older_signing=(older,))
    policy = FixedBatches(arms=2, horizon=12, privacy=Privacy(4, 1e-2), batch=6, method="coins")
    for signing in (service.signing, older):
        campaign = Campaign.create(policy, service.key.public, signing.public, bits=BITS)
        service.add(campaign)
        assert checked_model(service.analyzer.newest_model(campaign.id), campaign).number == 0
        assert service.analyzer._store.read(needed_keys)[signing.public.text] == [f"campaign {campaign.id[:12]}"]


# --- tokens --------------------------------------------------------------------------------------


def test_older_tokens_are_taken_until_they_are_retired(folder: Path) -> None:
    first = load_tokens(folder)
    second, third = rotate_tokens(folder, bits=BITS), rotate_tokens(folder, bits=BITS)
    loaded = load_tokens(folder)
    assert loaded == third and loaded.secrets == {role: load_token(folder / f"{role}.token") for role in ROLES}
    for tokens in (first, second, third):
        assert loaded.check(f"Bearer {tokens.secrets[READ]}", READ) == READ
        with pytest.raises(RefusedError, match="needs a token for hop"):
            loaded.check(f"Bearer {tokens.secrets[READ]}", "hop")
    assert json.loads((folder / "tokens.json").read_text())["version"] == 2
    assert retire_tokens(folder) == 2 * len(ROLES) and retire_tokens(folder) == 0
    kept = load_tokens(folder)
    assert kept.check(f"Bearer {third.secrets[READ]}", READ) == READ
    for tokens in (first, second):
        with pytest.raises(RefusedError, match="unknown here"):
            kept.check(f"Bearer {tokens.secrets[READ]}", READ)
    assert json.loads((folder / "tokens.json").read_text()) == {"version": 1, **third.secrets}


def test_every_token_is_compared_whichever_matches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time says neither which role nor whether it is an older one."""
    rotate_tokens(folder, bits=BITS)
    tokens, compared = load_tokens(folder), []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, two: compared.append(two) or real(one, two))
    every = {*tokens.secrets.values(), *(secret for some in tokens.older.values() for secret in some)}
    for sent in (tokens.secrets["enrol"], tokens.older["admin"][0], "nobody's"):
        compared.clear()
        with suppress(RefusedError):
            tokens.check(f"Bearer {sent}", "enrol")
        assert {each.decode() for each in compared} == every and len(compared) == len(every)


def test_older_tokens_that_protect_too_little_are_refused(folder: Path) -> None:
    rotate_tokens(folder, bits=BITS)
    good = json.loads((folder / "tokens.json").read_text())
    for older in ({"read": [good["read"]]}, {"read": ["short"]}, {"root": ["a" * 64]}, {"read": "a" * 64}, ["a" * 64]):
        (folder / "tokens.json").write_text(json.dumps(good | {"older": older}))
        with pytest.raises(DataError, match="tokens"):
            load_tokens(folder)


def test_a_folder_of_keys_that_was_half_made_inside_is_no_hindrance(folder: Path) -> None:
    """A killed `shuffledp keys FOLDER/hop` leaves a hidden folder, which is not this rotation's."""
    (folder / ".shuffledp-0123456789abcdef.part").mkdir()
    before = load_public_key(folder)
    assert rotate_keys(folder, bits=BITS) == load_public_key(folder) != before


def test_two_rotations_at_once_wait_for_each_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "_WAIT_SECONDS", 0.0)
    with ExitStack() as held:
        held.enter_context(rotation.alone(folder))
        with pytest.raises(ParameterError, match="must be free, and process"):
            rotate_keys(folder, bits=BITS)
    assert len(publics(folder)) == 1 and retired_keys(folder) == {}
