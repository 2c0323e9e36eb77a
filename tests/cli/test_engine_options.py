"""The options of an engine: sizes as people type them, contradictions, and an engine that is not installed."""

import builtins
from typing import Any

import pytest

from shuffledp.cli.engine_options import ENGINE, EngineAsked, engine_of, in_words, memory_of
from shuffledp.errors import ParameterError


def asked(**typed: Any) -> EngineAsked:
    return EngineAsked.of({name: default for name, (_, default) in ENGINE.items()} | typed)


@pytest.mark.parametrize(
    ("text", "size"), [("1GB", 1 << 30), ("500 MB", 500 << 20), ("1.5gib", 3 << 29), ("2T", 2 << 40), ("7", 7)]
)
def test_sizes_are_read_as_they_are_typed(text: str, size: int) -> None:
    assert memory_of(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1GB", "1GX", "GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="500MB or 4GB"):
        memory_of(text)


@pytest.mark.parametrize("size", [1, 1 << 20, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, 7 << 33])
def test_a_size_in_words_is_enough_when_it_is_typed(size: int) -> None:
    assert size <= memory_of(in_words(size)) <= 1.2 * size + (1 << 20)


def test_what_is_typed_is_the_engine() -> None:
    with asked(processes=1, memory="300MB").open() as engine:
        assert (engine.name, engine.tasks_at_once) == ("local", 1)
    with pytest.raises(ParameterError, match="--engine spark"):
        asked(master="spark://host:7077")
    with pytest.raises(ParameterError, match="leave it out beside Spark"):
        asked(engine="spark", processes=2)


def test_spark_that_is_not_installed_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *given: Any) -> Any:
        if name.startswith("shuffledp.engines.spark"):
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
        return real(name, *given)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ParameterError, match=r"needs pyspark.*shuffledp\[spark\]"):
        engine_of("spark")
