"""What a notebook shows of plans, answers and guarantees."""

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import shuffledp
from shuffledp import Privacy, RandomBits
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.simulation.run import simulate

DOMAINS: dict[str, dict[str, Any]] = {
    "binary-sum": {},
    "bounded-sum": {"low": 0, "high": 1},
    "mean": {"low": 0, "high": 1},
    "moments": {"low": 0, "high": 1},
    "vector-sum": {"dimension": 3, "radius": 1.0},
    "histogram": {"categories": ["<b>München</b>", "北京 & more", "c"]},
    "ranges": {"domain": (0, 63)},
    "distribution-test": {"categories": 20, "distance": 0.3},
    "counter": {"shufflers": 3},
}


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


@pytest.fixture(scope="module", params=DOMAINS)
def plan(request: pytest.FixtureRequest) -> Any:
    return PROTOCOLS[request.param].plan(users=2000, privacy=Privacy(1, 1e-6), **DOMAINS[request.param])


def test_a_plan_is_a_table_that_says_who_is_trusted_with_what(plan: Any) -> None:
    text = "".join(parsed(plan._repr_html_()).itertext())
    assert plan.question in text and "epsilon 1, delta 1e-06" in text
    assert "must not work together" in text
    assert plan.question in str(plan) and plan.method in str(plan)


def test_an_answer_is_a_table(plan: Any) -> None:
    values = plan.domain.synthesize(2000, np.random.default_rng(1))
    answer = simulate(plan, values, bits=RandomBits.secure(), fast=True)
    assert answer.plan is plan
    tree = parsed(answer._repr_html_())
    assert {"table"} <= {node.tag for node in tree.iter()}
    assert "b" not in {node.tag for node in tree.iter()} or "<b>München" not in answer._repr_html_()


def test_pictures_are_there_where_one_helps() -> None:
    private = {"epsilon": 1, "delta": 1e-6}
    answers = [
        shuffledp.count([0, 1] * 500, **private),
        shuffledp.histogram(["a", "b"] * 500, categories=["a", "b"], **private),
        shuffledp.quantiles([1, 2, 3, 4] * 250, low=0, high=10, **private),
        shuffledp.running_count([0, 1] * 5000, **private),
    ]
    for each in (*answers, answers[0].plan, answers[0].plan.guarantee()):
        assert "<svg" in each._repr_html_(), each


def test_names_of_categories_are_escaped() -> None:
    names = ["<script>x</script>", "b"]
    counts = shuffledp.histogram(names * 500, categories=names, epsilon=1, delta=1e-6)
    assert "<script>" not in counts._repr_html_() and "&lt;script&gt;" in counts._repr_html_()


def test_a_guarantee_says_that_it_holds_or_not() -> None:
    plan = shuffledp.BinarySum.plan(users=1000, privacy=(1, 1e-6))
    assert " holds: delta " in str(plan.guarantee())
    assert "does not hold" in str(plan.twin(0.5).guarantee())
    assert "does not hold" in "".join(parsed(plan.twin(0.5).guarantee()._repr_html_()).itertext())
