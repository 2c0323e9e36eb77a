"""Answers that are many numbers: a histogram, quantiles, frequent texts, a count as people come."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

from shuffledp.answers.asking import (
    answered,
    bits_for,
    clipped,
    codes_in,
    is_much,
    numbers_in,
    planned,
    says_what_is_missing,
    texts_in,
)
from shuffledp.answers.whose import Whose
from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.protocols.domains.axes import Days
from shuffledp.protocols.domains.categories import with_other
from shuffledp.protocols.domains.public_values import with_missing
from shuffledp.randomness import RandomBits
from shuffledp.tables.missing import Missing

_CELLS = 1024


@says_what_is_missing
def histogram(
    data: Any,
    column: str | None = None,
    *,
    categories: Any,
    epsilon: float,
    delta: float,
    other: str | None = None,
    method: str = "auto",
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = None,
    user: Any = None,
    at_most: int | None = None,
    by: Any = None,
    groups: Any = None,
    other_group: str | None = None,
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> VectorEstimate:
    """How many people have each category of a public list.

    Args:
        data: a value a person: a list, an array, a Series, or a table of pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        categories: all that anybody may have: names, a range such as range(18, 100), or how many codes 0, 1, ...
            there are. It is public; one that was read from the data would tell what occurs.
        epsilon: how private the answer is; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        other: the name of one more category, for everybody whose value is not in the list.
        method: the name of a method, or auto for the best one; `shuffledp.Histogram.methods` lists them.
        honest_fraction: the part of the people who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "other", or "default=NAME", or "refuse" to refuse them. Left out,
            they are in the category of `other`, and refused where there is none.
        user: where a person may have several rows, whose each is: a list, an array, or the name of a column.
        at_most: how many rows of one person count, the first in the order of the data; the rest count for nothing.
        by: a group a person, for a number of each group: a list, an array, or the name of a column. It stays private.
        groups: all groups there may be; public, and not read from the data.
        other_group: the name of one more group, for everybody whose group is not in the list.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        An estimate for each category, with one bound for all at once: `estimate["München"]`, `estimate.as_dict()`.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> cities = ["München"] * 600 + ["Köln"] * 400
    >>> estimate = histogram(cities, categories=["Köln", "München", "Ulm"], epsilon=1, delta=1e-6, seed=1)
    >>> round(float(estimate["München"]), -2)
    600.0
    """
    listed = with_missing(with_other(categories, other), Missing.of(missing))
    codes = codes_in(data, column, missing, listed)
    whose = Whose.of(data, user=user, at_most=at_most, by=by, groups=groups, other_group=other_group)
    told = {"categories": listed, **whose.domain}
    plan = planned("histogram", whose.people(codes), epsilon, delta, method, honest_fraction, max_messages, **told)
    found: VectorEstimate = answered(plan, whose.contributed(plan, codes, encoded=True), seed, bits)
    return found


@says_what_is_missing
def quantiles(
    data: Any,
    column: str | None = None,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    delta: float,
    at: Iterable[float] | float = (0.25, 0.5, 0.75),
    steps: int | None = None,
    clip: bool = False,
    method: str = "auto",
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = "refuse",
    user: Any = None,
    at_most: int | None = None,
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> Any:
    """Quantiles of everybody's number or day, or of everybody's rows, each with an interval that holds the true one.

    Args:
        data: a number a person: a list, an array, a Series, or a table of pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        low: the lowest value that anybody may have; known beforehand, not read from the data.
        high: the highest value that anybody may have. Two days, such as "2024-01-01" and "2024-12-31", are for a column
            of days or times; quantiles are then days in ISO form.
        epsilon: how private the answer is; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        at: the ranks to show, between 0 and 1; any other can be asked for later at no further cost.
        steps: how many cells low..high is cut into; None takes whole numbers one by one, and 1024 cells for others.
        clip: whether values outside low..high are brought to its ends, where they would be refused.
        method: the name of a method, or auto for the best one; `shuffledp.Ranges.methods` lists them.
        honest_fraction: the part of the people who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "default=0" or another public value; by default they are refused.
        user: where a person may have several rows, whose each is: a list, an array, or the name of a column. Quantiles
            are those of all rows that count, and how many they are stays private.
        at_most: how many rows of one person count, the first in the order of the data; the rest count for nothing.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        A `RangeEstimate`: `estimate[0.5]` is the median with its interval, `estimate.count(18, 30)` how many people
        lie in a range, `estimate.cdf()` the distribution function, `estimate.plan` what it was made by.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> ages = list(range(20, 60)) * 250
    >>> estimate = quantiles(ages, low=0, high=120, epsilon=1, delta=1e-6, seed=1)
    >>> 37 <= float(estimate[0.5]) <= 41
    True
    """
    ranks = tuple(at) if isinstance(at, Iterable) else (at,)
    if not ranks or not all(isinstance(rank, int | float) and 0 <= rank <= 1 for rank in ranks):
        raise ParameterError("at", list(ranks), "must be ranks between 0 and 1", "0.5 is the median")
    axis: Any
    if isinstance(low, str | date):
        values, axis = texts_in(data, column, missing), Days(str(low), str(high), steps)
    else:
        values = numbers_in(data, column, missing)
        are_whole = values.dtype.kind in "bui" and float(low).is_integer() and float(high).is_integer()
        cells = _CELLS if steps is None and not are_whole else steps
        axis = (int(low), int(high)) if cells is None else (low, high, cells)
    whose = Whose.of(data, user=user, at_most=at_most)
    people, told = whose.people(values), {"domain": axis, **whose.domain}
    plan: Any = planned("ranges", people, epsilon, delta, method, honest_fraction, max_messages, missing, **told)
    estimate = answered(plan, whose.contributed(plan, clipped(plan, values, clip)), seed, bits)
    return replace(plan.ranges(estimate), ranks=ranks)


@says_what_is_missing
def heavy_hitters(
    data: Any,
    column: str | None = None,
    *,
    epsilon: float,
    delta: float,
    top: int = 10,
    length: int = 16,
    alphabet: str | bytes | None = None,
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = "refuse",
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> Any:
    """The most frequent texts, where nobody can list what may occur.

    Args:
        data: a text a person: a list, an array, a Series, or a table of pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        epsilon: how private the answer is; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        top: how many texts to find at most.
        length: the bytes of a text that count, in UTF-8; longer ones are cut, and end in an ellipsis.
        alphabet: the letters that texts are made of, if that is known: fewer letters find rarer texts.
        honest_fraction: the part of the people who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "default=TEXT"; by default they are refused.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        What was found, most frequent first, with its count and interval: `estimate["München"]`, `estimate.as_dict()`.
        `estimate.plan.surely_found` says how many people a text needs to be found in 95% of runs, where it is among the
        `top` of the estimates.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> names = ["rot"] * 30_000 + ["grün"] * 20_000
    >>> list(heavy_hitters(names, epsilon=1, delta=1e-6, length=5, top=2, seed=1))
    ['rot', 'grün']
    """
    values = texts_in(data, column, missing)
    words = {"length": length, "top": top, "alphabet": alphabet}
    plan = planned("heavy-hitters", values, epsilon, delta, "auto", honest_fraction, max_messages, **words)
    return answered(plan, plan.check_values(values), seed, bits)


@says_what_is_missing
def running_count(
    data: Any,
    column: str | None = None,
    *,
    epsilon: float,
    delta: float,
    shufflers: int = 4,
    method: str = "auto",
    honest_fraction: float = 1.0,
    max_messages: int | None = None,
    missing: Any = "refuse",
    user: Any = None,
    at_most: int | None = None,
    seed: int | None = None,
    bits: RandomBits | None = None,
) -> Any:
    """How many people so far have the value 1 (or True), known after every person, in the order of the data.

    Args:
        data: a value a person: a list, an array, a Series, or a table of pandas, polars, pyarrow or DuckDB.
        column: the name of the column, where `data` is a table.
        epsilon: how private all estimates together are; 1 is a common choice, smaller is safer.
        delta: the probability that is left over; well below one over the number of people, 1e-6 for example.
        shufflers: how many shufflers may work at once.
        method: carried from batch to batch, or of every batch: laplace, skellam or coins; auto takes the best one.
        honest_fraction: the part of the people of every batch who are counted on to follow the protocol.
        max_messages: how many messages a person may send at most.
        missing: what people without a value report: "default=0" or another public value; by default they are refused.
        user: where a person may have several rows, whose each is: a list, an array, or the name of a column.
        at_most: how many rows of one person count, the first in the order of the data; the rest count for nothing.
        seed: a number for a repeatable simulation, which protects nobody; leave it out for real noise.
        bits: a source of randomness of your own, instead of a seed.

    Returns:
        A `RunningEstimates`: `estimates[5000]` after 5,000 people, `estimates.last` at the end, `estimates.every()`
        all of them as an array, `estimates.plan` what they were made by.

    Raises:
        ParameterError: a value outside what it may be; the sentence says which and what to do.
        InfeasibleError: no plan meets the limits.

    >>> counts = running_count([0, 1] * 5000, epsilon=1, delta=1e-6, seed=1)
    >>> abs(float(counts[5000]) - 2500) <= counts.bound
    True
    """
    values = numbers_in(data, column, missing)
    whose = Whose.of(data, user=user, at_most=at_most)
    people, told = whose.people(values), {"shufflers": shufflers, **whose.domain}
    plan: Any = planned("counter", people, epsilon, delta, method, honest_fraction, max_messages, missing, **told)
    return plan.learner().run(whose.contributed(plan, values), bits=bits_for(seed, bits), fast=is_much(plan))
