"""One-liners: a column in, an estimate out that carries its plan."""

import inspect
import pydoc
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import shuffledp
from shuffledp import ParameterError, Privacy, RandomBits

PRIVATE = {"epsilon": 1, "delta": 1e-6}
NUMBERS = {"low": 0, "high": 100}
VALUES = np.tile([10.0, 20.0, 60.0], 1000)
BITS = np.arange(3000) % 3 == 0
CITIES = ["München", "北京", "القاهرة"] * 1000

ANSWERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "count": (BITS, {"method": "shares"}),
    "total": (VALUES, NUMBERS),
    "mean": (VALUES, NUMBERS),
    "variance": (VALUES, NUMBERS),
    "histogram": (CITIES, {"categories": ["München", "北京", "القاهرة", "Ulm"], "method": "decoys"}),
    "quantiles": (VALUES.astype(int), NUMBERS),
    "heavy_hitters": (CITIES, {"length": 16, "epsilon": 4}),
    "running_count": (BITS, {}),
}


def ask(name: str, **more: Any) -> Any:
    data, given = ANSWERS[name]
    return getattr(shuffledp, name)(data, **{**PRIVATE, **given, **more})


@cache
def careful(name: str) -> Any:
    """An answer that counts on nine tenths of the people, made once for all tests that look at it."""
    return ask(name, honest_fraction=0.9)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_carries_the_plan_that_protects_it(name: str) -> None:
    answer = careful(name)
    plan = answer.plan
    assert (plan.users, plan.honest_fraction) == (3000, 0.9)
    assert plan.privacy.epsilon == {**PRIVATE, **ANSWERS[name][1]}["epsilon"]
    assert plan.guarantee().holds
    assert not getattr(answer, "simulated", False)


@pytest.mark.parametrize(
    ("name", "truth"), [("count", 1000), ("total", 90_000), ("mean", 30), ("variance", 466.6666666666667)]
)
def test_numbers_are_right_up_to_their_bound(name: str, truth: float) -> None:
    """A bound of 95% is passed by twice its width in fewer than one run of a million, for any law with such tails."""
    answer = careful(name)
    assert abs(float(answer) - truth) <= 4 * answer.bound
    assert f"{float(answer):.3f}" == f"{answer:.3f}"


def test_distributions_are_right_up_to_their_bound() -> None:
    counts = careful("histogram")
    assert list(counts) == ["München", "北京", "القاهرة", "Ulm"]
    for name, truth in zip(counts, (1000, 1000, 1000, 0), strict=True):
        assert abs(float(counts[name]) - truth) <= 4 * counts[name].bound
    ranks = careful("quantiles")
    assert ranks[0.5].lower <= 20.1 and ranks[0.5].upper >= 19.9
    found = careful("heavy_hitters")
    assert set(found) <= set(CITIES) and found.as_dict().keys() == set(found)
    running = careful("running_count")
    assert abs(float(running[1500]) - 500) <= 4 * running.bound


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in ("heavy_hitters", "quantiles")])
def test_a_seed_repeats_and_says_that_it_protects_nobody(name: str) -> None:
    first, second, bits = ask(name, seed=3), ask(name, seed=3), ask(name, bits=RandomBits.seeded(3))
    assert str(first) == str(second) == str(bits)
    assert first.simulated
    with pytest.raises(ParameterError, match="seed and bits must not both be given"):
        ask(name, seed=3, bits=RandomBits.secure())


@pytest.mark.parametrize("name", ANSWERS)
def test_limits_reach_the_plan(name: str) -> None:
    with pytest.raises(ParameterError, match="epsilon must be > 0"):
        ask(name, epsilon=0)
    with pytest.raises(ParameterError, match="max_messages must be >= 1"):
        ask(name, max_messages=0)
    if "method" in inspect.signature(getattr(shuffledp, name)).parameters:
        with pytest.raises(ParameterError, match="method must be"):
            ask(name, method="none")


def test_values_outside_a_range_are_refused_or_clipped_and_never_counted() -> None:
    data = [5.0] * 500 + [1e9] * 500
    with pytest.raises(ParameterError, match="row 501"):
        shuffledp.mean(data, low=0, high=10, **PRIVATE)
    answer = shuffledp.mean(data, low=0, high=10, clip=True, **PRIVATE)
    assert abs(float(answer) - 7.5) < 1
    assert answer.clipped == 0 and "clipped" not in str(answer)


def test_a_mapping_of_columns_is_asked_by_name() -> None:
    frame = {"clicked": BITS, "city": CITIES}
    assert shuffledp.count(frame, "clicked", method="shares", **PRIVATE).plan.users == 3000
    named = shuffledp.histogram(frame, "city", categories=["München"], other="elsewhere", method="decoys", **PRIVATE)
    assert abs(float(named["elsewhere"]) - 2000) < 200


def test_people_without_a_value_report_something_public() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"clicked": [1, None, 0, None] * 500, "city": ["Köln", None, "Ulm", "Köln"] * 500})
    with pytest.raises(ParameterError, match="must have a value in every row"):
        shuffledp.count(table, "clicked", **PRIVATE)
    assert abs(float(shuffledp.count(table, "clicked", missing="default=1", method="shares", **PRIVATE)) - 1500) < 100
    cities = {"categories": ["Köln", "Ulm"], "method": "decoys", **PRIVATE}
    counts = shuffledp.histogram(table, "city", missing="other", **cities)
    assert list(counts) == ["Köln", "Ulm", "missing"] and abs(float(counts["missing"]) - 500) < 200
    assert list(shuffledp.histogram(table["city"], missing="other", other="?", **cities)) == ["Köln", "Ulm", "?"]
    with pytest.raises(ParameterError, match="needs a list of names"):
        shuffledp.histogram(table["clicked"], categories=2, missing="other", **PRIVATE)


def test_many_messages_are_drawn_from_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    from shuffledp.answers import asking

    seen = []
    simulate: Callable[..., Any] = asking.simulate

    def watched(*args: Any, fast: bool, **more: Any) -> Any:
        seen.append(fast)
        return simulate(*args, fast=fast, **more)

    monkeypatch.setattr(asking, "simulate", watched)
    ask("count")
    monkeypatch.setattr(asking, "_MOST_MESSAGES", 10)
    ask("count")
    assert seen == [False, True]


@pytest.mark.parametrize("name", ANSWERS)
def test_every_parameter_is_in_the_help(name: str) -> None:
    function = getattr(shuffledp, name)
    text = pydoc.render_doc(function, renderer=pydoc.plaintext)
    described = text.partition("Args:")[2].partition("Returns:")[0]
    for parameter in inspect.signature(function).parameters:
        assert f" {parameter}: " in described, parameter


@pytest.mark.parametrize("name", ["BinarySum", "Mean", "HeavyHitters", "RunningCount", "Histogram", "Ranges"])
def test_a_family_explains_its_parameters(name: str) -> None:
    family = getattr(shuffledp, name)
    text = pydoc.render_doc(family, renderer=pydoc.plaintext)
    own = {parameter.name for parameter in family.domain}
    for parameter in {"users", "privacy", "method", "honest_fraction", "max_messages", "constants", *own}:
        assert f" {parameter}: " in text, parameter
    assert all(parameter.meaning for parameter in family.domain)
    assert family.summary.replace("--", "") in repr(family)


def test_every_family_names_its_parameters_in_its_help() -> None:
    from shuffledp.protocols.catalogue import PROTOCOLS

    for family in PROTOCOLS.values():
        for parameter in family.domain:
            assert f" {parameter.name}: " in str(family.__doc__)


def test_privacy_may_be_a_pair() -> None:
    plan = shuffledp.BinarySum.plan(users=1000, privacy=(1, 1e-6))
    assert plan == shuffledp.BinarySum.plan(users=1000, privacy=Privacy(1, 1e-6))
    assert shuffledp.Counter.of(users=2000, shufflers=2, privacy=(1, 1e-6)).plan.privacy == Privacy(1, 1e-6)
    for wrong in (1, "1", (1,), (1, 1e-6, 3), None):
        with pytest.raises(ParameterError, match="privacy must be epsilon and delta"):
            shuffledp.BinarySum.plan(users=1000, privacy=wrong)


def test_weak_privacy_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="epsilon 20 is weak"):
        answer = shuffledp.count(BITS, epsilon=20, delta=1e-6, method="shares")
    assert "epsilon 20 is weak" in answer._repr_html_() and "epsilon 20 is weak" in answer.plan._repr_html_()
    with pytest.warns(UserWarning, match=r"delta 0.001 is not below 1/users"):
        shuffledp.count(BITS, epsilon=1, delta=1e-3, method="shares")


def test_a_difference_shows_itself() -> None:
    groups = np.where(np.arange(3000) % 2, "A", "<B>")
    found = shuffledp.difference(BITS, by=groups, groups=["A", "<B>"], method="decoys", **PRIVATE)
    shown = found._repr_html_()
    assert "for the population" in shown and "<svg" in shown and "&lt;B&gt;" in shown and "<B>" not in shown


@pytest.mark.parametrize("name", ANSWERS)
def test_what_must_be_given_and_is_not_is_one_sentence(name: str) -> None:
    """And not a TypeError that lists names."""
    function = getattr(shuffledp, name)
    given = {"epsilon": 1, "low": 0, "high": 1, "first": "A", "second": "B", "by": ["A"], "categories": ["a"]}
    known = {key: value for key, value in given.items() if key in inspect.signature(function).parameters}
    with pytest.raises(ParameterError, match=r"^delta must be given, got None: well below one over .*, 1e-6"):
        function([1, 0, 1], **known)
    with pytest.raises(ParameterError, match=r"^\w+ must be given, got None: "):
        function([1, 0, 1])
