"""Fake users: every promise of a plan, the paper's figures, caps, twins that fail."""

import dataclasses
import math

import numpy as np
import pytest

from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.fake_users import FakeUsers
from shuffledp.randomness import RandomBits
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)
BAD_VALUES = [[0, 1, 5], [-1], [0.5], ["a"], [], [[1]]]


@pytest.mark.parametrize("fake_rows", [None, 5])
def test_keeps_every_promise(fake_rows: int | None) -> None:
    plan = FakeUsers.plan(users=60, privacy=TARGET, categories=5, fake_rows=fake_rows)
    check_protocol(plan, np.arange(60) ** 2 % 5, BAD_VALUES, runs=800)


def test_the_papers_constants() -> None:
    """Flips, n = 10,000, one fake row: 0.0494, a deviation of 34.0."""
    plan = FakeUsers.plan(users=10_000, privacy=TARGET, categories=10, constants="paper", fake_rows=1)
    assert plan.flip == pytest.approx(0.0494, abs=5e-5) and plan.standard_error == pytest.approx(34.0, abs=0.05)
    exact = FakeUsers.plan(users=10_000, privacy=TARGET, categories=10, fake_rows=1)
    assert exact.standard_error == pytest.approx(9.23, abs=0.01)
    assert exact.paper_standard_error == pytest.approx(plan.standard_error)


def test_more_fake_rows_cost_less() -> None:
    """As only ones are sent, fewer flips in more rows are fewer messages, and real rows add less to the error."""
    few, many = (FakeUsers.plan(users=10_000, privacy=TARGET, categories=100, fake_rows=k) for k in (1, 10))
    assert many.standard_error < 0.75 * few.standard_error
    assert many.messages_per_user_mean < few.messages_per_user_mean


@pytest.mark.parametrize(("users", "bins"), [(50, 3), (100_000, 1000)])
def test_a_fifth_less_noise_misses(users: int, bins: int) -> None:
    plan = FakeUsers.plan(users=users, privacy=TARGET, categories=bins)
    assert plan.guarantee().delta <= 1e-6
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, flip=0.8 * plan.flip)
    with pytest.raises(InfeasibleError):  # a cap that cuts too often is paid for in delta
        dataclasses.replace(plan, cap=plan.cap - 1)


def test_the_audit_catches_half_the_noise() -> None:
    plan = FakeUsers.plan(users=4, privacy=Privacy(1, 1e-2), categories=3, fake_rows=10)
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=40_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=40_000, sabotage=0.5).verdict == "refuted"


def test_reports_are_cut_at_the_cap() -> None:
    plan = FakeUsers.plan(users=200, privacy=TARGET, categories=6)
    short = object.__new__(FakeUsers)  # past the accountant, which would refuse it
    for field in dataclasses.fields(plan):
        object.__setattr__(short, field.name, 2 if field.name == "cap" else getattr(plan, field.name))
    whole, cut = (each.randomize(np.full(200, 3), bits=RandomBits.seeded(1)) for each in (plan, short))
    assert whole.sizes.max() > 2 and np.array_equal(cut.sizes, np.minimum(whole.sizes, 2))
    ends = np.cumsum(whole.sizes)
    first_two = [whole.payloads[end - size : end][:2] for end, size in zip(ends, whole.sizes, strict=True)]
    assert np.array_equal(cut.payloads, np.concatenate(first_two))


def test_refusals() -> None:
    with pytest.raises(InfeasibleError):
        FakeUsers.plan(users=1, privacy=Privacy(0.05, 1e-9), categories=3, fake_rows=1)
    plan = FakeUsers.plan(users=100, privacy=TARGET, categories=3)
    for change in ({"fake_rows": 0}, {"flip": 0.5}, {"cap": 0}):
        with pytest.raises(ParameterError):
            dataclasses.replace(plan, **change)


def test_columns_are_flipped_as_often_as_claimed() -> None:
    """Nobody is in the second bin: its messages are flips of all rows, on average `flip` of each."""
    plan = FakeUsers.plan(users=2000, privacy=TARGET, categories=2)
    reports = plan.randomize(np.zeros(2000, dtype=int), bits=RandomBits.seeded(5))
    cells = 2000 * (plan.fake_rows + 1)
    seen = int(np.count_nonzero(reports.payloads == 1))
    # False alarm 1e-9: 6.1 deviations.
    assert abs(seen - cells * plan.flip) <= 6.1 * math.sqrt(cells * plan.flip)
