"""A gateway's keys in a folder: made once, rotated with an overlap, retired; other keys are left alone."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shuffledp.errors import DataError, ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service import rotation
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.key_notes import retired_keys
from shuffledp.service.keys import GATEWAY, GATEWAY_CONFIGS, load_private_key, make_hop_keys, make_keys
from shuffledp.service.oblivious import gateway_keys as keeping
from shuffledp.service.oblivious.encapsulation import seal_request
from shuffledp.service.oblivious.gateway_keys import (
    gateway_keys,
    gateway_of,
    has_gateway_key,
    make_gateway_key,
    retire_gateway_keys,
    rotate_gateway_key,
)
from shuffledp.service.oblivious.key_config import KeyConfig, decode_configs, load_configs
from shuffledp.service.rotation import retire_keys, rotate_keys, rotate_tokens

SECURE = RandomBits.secure()


@pytest.fixture(params=["analyzer's", "hop's", "tokens only"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A shuffler's folder of keys: a copy of the service's, a hop's, or one with tokens."""
    kept = tmp_path / "keys"
    (make_hop_keys if request.param == "hop's" else make_keys)(kept, bits=SECURE)
    if request.param == "tokens only":
        for file in (*kept.glob("*.key"), *kept.glob("*.pub")):
            file.unlink()
    return kept


def test_they_are_made_rotated_and_retired_in_any_shufflers_folder(folder: Path) -> None:
    assert not has_gateway_key(folder) and gateway_of(folder) is None
    first = make_gateway_key(folder)
    assert load_configs(folder / GATEWAY_CONFIGS) == (first,) == tuple(key.config for key in gateway_keys(folder))
    assert stat.S_IMODE((folder / "gateway.key").stat().st_mode) == 0o600
    with pytest.raises(ParameterError, match=r"must have no gateway's key.*rotate FOLDER --gateway"):
        make_gateway_key(folder)
    second = rotate_gateway_key(folder)
    assert load_configs(folder / GATEWAY_CONFIGS) == (second,) and second.key_id != first.key_id
    assert [key.config for key in gateway_keys(folder)] == [second, first]
    gateway = gateway_of(folder)
    assert gateway is not None and decode_configs(gateway.configs) == (second, first)
    old = gateway_keys(folder)[1]
    assert old.open(seal_request(first, b"by who has not got the new one")[0]) is not None
    done = retire_gateway_keys(folder)
    assert len(done.destroyed) == 1 and first.public.text in retired_keys(folder)
    assert [key.config for key in gateway_keys(folder)] == [second]
    assert retire_gateway_keys(folder).destroyed == ()


def test_other_keys_are_left_alone_and_leave_these_alone(tmp_path: Path) -> None:
    kept = tmp_path / "keys"
    make_keys(kept, bits=SECURE)
    make_gateway_key(kept)
    analyzers, own = load_private_key(kept), gateway_keys(kept)[0].config
    rotate_gateway_key(kept)
    assert load_private_key(kept) == analyzers
    rotate_keys(kept, bits=SECURE)
    rotate_tokens(kept, bits=SECURE)
    assert not any("gateway" in file for file in retire_keys(kept, {}).destroyed)
    assert [key.config for key in gateway_keys(kept)][1] == own


def test_no_two_keys_have_one_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "keys"
    make_keys(kept, bits=SECURE)
    first = make_gateway_key(kept)
    drawn = []

    def generate() -> PrivateKey:
        # The first one drawn is the very one that is there.
        drawn.append(gateway_secret if not drawn else real())
        return drawn[-1]

    gateway_secret, real = GATEWAY.ring(kept)[0], PrivateKey.generate
    monkeypatch.setattr(PrivateKey, "generate", generate)
    second = rotate_gateway_key(kept)
    assert len(drawn) >= 2 and second.key_id != first.key_id
    monkeypatch.setattr(PrivateKey, "generate", real)
    monkeypatch.setattr(keeping, "_MOST_KEYS", 2)
    with pytest.raises(ParameterError, match=r"fewer than 2 gateway's keys.*retire FOLDER --gateway"):
        rotate_gateway_key(kept)


def test_a_kill_between_two_steps_leaves_a_gateway_that_knows_every_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever clients were ever given is served, and the next rotation mends what was left."""
    kept = tmp_path / "keys"
    make_keys(kept, bits=SECURE)
    real, calls = rotation.put_file, [0]

    def killed_at(step: int) -> Callable[..., None]:
        def put(file: Path, *more: Any, **named: Any) -> None:
            calls[0] += 1
            if calls[0] > step:
                raise KeyboardInterrupt
            real(file, *more, **named)

        return put

    def killed(work: Callable[[Path], Any], step: int) -> None:
        calls[0] = 0
        for module in (rotation, keeping):
            monkeypatch.setattr(module, "put_file", killed_at(step))
        with pytest.raises(KeyboardInterrupt):
            work(kept)
        for module in (rotation, keeping):
            monkeypatch.setattr(module, "put_file", real)

    for step in range(2):
        killed(make_gateway_key, step)
    given = {make_gateway_key(kept)}
    for step in range(3):
        killed(rotate_gateway_key, step)
        given.add(load_configs(kept / GATEWAY_CONFIGS)[0])
        assert given <= {key.config for key in gateway_keys(kept)}
    newest = rotate_gateway_key(kept)
    assert load_configs(kept / GATEWAY_CONFIGS) == (newest,) and gateway_keys(kept)[0].config == newest
    assert given <= {key.config for key in gateway_keys(kept)}


def test_a_folder_that_is_none_or_lost_half_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="must be a folder of keys"):
        make_gateway_key(tmp_path / "none")
    kept = tmp_path / "keys"
    make_keys(kept, bits=SECURE)
    with pytest.raises(ParameterError, match=r"must have gateway\.pub.*shuffler's machine"):
        rotate_gateway_key(kept)
    make_gateway_key(kept)
    (kept / "gateway.key").chmod(0o644)
    with pytest.raises(DataError, match="must be readable by its owner only"):
        gateway_of(kept)


def test_a_keys_number_follows_from_it() -> None:
    public = PrivateKey.generate().public
    assert KeyConfig.of(public) == KeyConfig.of(public) and 0 <= KeyConfig.of(public).key_id < 256
