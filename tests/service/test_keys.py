"""The folder of keys: made whole, never overwritten, refused where others may read it."""

import json
import os
import stat
from pathlib import Path

import pytest

from shuffledp.errors import DataError, ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service import keys as module
from shuffledp.service.keys import (
    load_private_key,
    load_public_key,
    load_signing_key,
    load_token,
    load_tokens,
    load_verifying_key,
    make_keys,
)
from shuffledp.service.tokens import ROLES, Tokens

FILES = {
    *("analyzer.key", "analyzer.pub", "models.key", "models.pub", "tokens.json"),
    *(f"{role}.token" for role in ROLES),
}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    make_keys(tmp_path / "keys", bits=RandomBits.secure())
    return tmp_path / "keys"


def test_everything_is_there_and_fits_together(keys: Path) -> None:
    assert {file.name for file in keys.iterdir()} == FILES
    assert load_private_key(keys).public == load_public_key(keys) == load_public_key(keys / "analyzer.pub")
    assert load_signing_key(keys).public == load_verifying_key(keys) == load_verifying_key(keys / "models.pub")
    tokens = load_tokens(keys)
    assert tokens.secrets == {role: load_token(keys / f"{role}.token") for role in ROLES}
    assert len(set(tokens.secrets.values())) == len(ROLES)
    for name in FILES:
        if name.endswith((".key", ".pub", ".json")):
            assert json.loads((keys / name).read_text())["version"] == 1


def test_only_the_owner_may_look(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        make_keys(tmp_path / "keys", bits=RandomBits.secure())
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    for name in FILES - {"analyzer.pub", "models.pub"}:
        assert stat.S_IMODE((tmp_path / "keys" / name).stat().st_mode) == 0o600, name


def test_keys_are_never_overwritten(keys: Path, tmp_path: Path) -> None:
    before = {file.name: file.read_bytes() for file in keys.iterdir()}
    with pytest.raises(ParameterError, match="must be new or empty") as refused:
        make_keys(keys, bits=RandomBits.secure())
    assert refused.value.parameter == "folder"
    assert {file.name: file.read_bytes() for file in keys.iterdir()} == before
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="must be new or empty"):
        make_keys(tmp_path / "file", bits=RandomBits.secure())
    (tmp_path / "empty").mkdir()
    make_keys(tmp_path / "empty", bits=RandomBits.secure())
    with pytest.raises(ParameterError, match="must be in a directory that exists"):
        make_keys(tmp_path / "no" / "keys", bits=RandomBits.secure())
    with pytest.raises(ParameterError, match="must be secure"):
        make_keys(tmp_path / "seeded", bits=RandomBits.seeded(1))
    assert {file.name for file in tmp_path.iterdir()} == {"keys", "file", "empty"}


def test_nothing_is_left_where_making_them_failed(tmp_path: Path, monkeypatch) -> None:
    written = []

    def full(path: Path, text: str, mode: int) -> None:
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_secret", full)
    with pytest.raises(ParameterError, match="no space left on device: name another"):
        make_keys(tmp_path / "keys", bits=RandomBits.secure())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_private_key_that_others_may_read_is_refused(keys: Path, mode: int) -> None:
    (keys / "analyzer.key").chmod(mode)
    with pytest.raises(DataError, match=f"by its owner only, not have mode {mode:o}") as refused:
        load_private_key(keys)
    assert "chmod 600" in str(refused.value)
    load_public_key(keys)
    (keys / "tokens.json").chmod(mode)
    with pytest.raises(DataError, match=f"by its owner only, not have mode {mode:o}"):
        load_tokens(keys)


def test_what_is_wrong_is_said(keys: Path, tmp_path: Path) -> None:
    secret = json.loads((keys / "analyzer.key").read_text())["private_key"]
    for content, said in [
        ("nonsense", "must be a JSON document"),
        ("[]", "keys.version must be 1"),
        ('{"version": 2, "private_key": "x"}', "keys.version must be 1 in analyzer.key, got 2"),
        ('{"version": 1}', "must have a private_key"),
        ('{"version": 1, "private_key": "AAAA"}', "must be 32 bytes"),
    ]:
        (keys / "analyzer.key").write_text(content)
        with pytest.raises(DataError, match=said) as refused:
            load_private_key(keys)
        assert secret not in str(refused.value)
    with pytest.raises(ParameterError, match="must be there"):
        load_private_key(tmp_path / "nowhere")
    (keys / "tokens.json").write_text('{"version": 1, "enrol": "short"}')
    with pytest.raises(DataError, match="at least 32 characters"):
        load_tokens(keys)
    with pytest.raises(DataError, match="must hold one token"):
        load_token(keys / "analyzer.pub")
    with pytest.raises(ParameterError, match="can be read"):
        load_token(tmp_path / "nowhere")


def test_tokens_that_protect_too_little_are_refused() -> None:
    """One secret for two roles, a short one, none at all, or a role that is none."""
    good = dict(Tokens.generate(bits=RandomBits.secure()).secrets)
    assert Tokens.from_document(good).secrets == good
    roles = list(good)
    for change in ({roles[0]: good[roles[1]]}, {roles[0]: "a" * 31}, {roles[0]: None}, {"root": "a" * 64}):
        with pytest.raises(DataError, match="tokens"):
            Tokens.from_document(good | change)
    for nothing in ({}, None, [good]):
        with pytest.raises(DataError, match="tokens"):
            Tokens.from_document(nothing)
