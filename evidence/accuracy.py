"""How accurate one count, histogram, mean or sum is, beside a curator, the local model and the papers' constants."""

import io
import math
import re
from contextlib import redirect_stderr
from functools import cache
from typing import Any

import numpy as np

from evidence.claims import Claim, Effort, LeftOutError, Measured, Says, normal_quantile
from evidence.measuring import part, ratio, root_mean_square
from evidence.printed import Printed
from evidence.siblings import benchmark
from shuffledp import BinarySum, BoundedSum, Privacy, RandomBits, VectorSum, simulate
from shuffledp.messages import Batch
from shuffledp.references.curator import CuratorDiscreteLaplace
from shuffledp.references.local import LocalRandomizedResponse

TARGET = Privacy(1, 1e-6)
USERS = 10_000
VALUES = (np.arange(USERS) % 10 < 3).astype(np.int64)
TRUTH = int(VALUES.sum())
SIZES = (1_000, 10_000, 100_000, 1_000_000)
BY_LAW = (
    "Root mean square error of runs that are drawn from the estimate's law, which the suite holds equal to messages."
)
INTERVAL = "Only what chance does to so many runs is allowed, 99.99% of it, and half of the last printed digit."
EXACT = "Nothing is drawn: only half of the last printed digit is allowed."


def shares() -> Any:
    """The count that the README begins with."""
    return BinarySum.plan(users=USERS, privacy=TARGET)


def live() -> Any:
    """The count that devices report to the service, by default."""
    return BinarySum.plan(users=USERS, privacy=TARGET, live=True)


@cache
def errors(plan: Any, runs: int, seed: int) -> tuple[float, ...]:
    """Errors of so many estimates of the same people by their law."""
    return tuple(plan.sample_estimate(VALUES, bits=bits).value - TRUTH for bits in RandomBits.seeded(seed).spawn(runs))


def by_law(plan: Any, effort: Effort) -> Measured:
    """The error of a plan."""
    return root_mean_square(errors(plan, effort.of(20_000, 100_000), effort.seed))


def with_messages(effort: Effort) -> Measured:
    """The error of a count whose messages are all made, shuffled and read."""
    plan, runs = shares(), effort.of(1_000, 10_000)
    found = [simulate(plan, VALUES, bits=bits).value - TRUTH for bits in RandomBits.seeded(effort.seed).spawn(runs)]
    return root_mean_square(found, f"{runs:,} runs, {plan.messages_per_user_max} messages a person")


def local(effort: Effort) -> Measured:
    """The error of as many people who answer for themselves alone."""
    reference = LocalRandomizedResponse(users=USERS, privacy=TARGET)
    generator, runs = np.random.default_rng(effort.seed), effort.of(1_500, 10_000)
    return root_mean_square([reference.sample_estimate(VALUES, generator=generator).value - TRUTH for _ in range(runs)])


def curator(effort: Effort) -> Measured:
    """The error of somebody who holds all values."""
    reference = CuratorDiscreteLaplace(privacy=TARGET)
    generator, runs = np.random.default_rng(effort.seed), effort.of(20_000, 100_000)
    return root_mean_square([reference.sample_estimate(VALUES, generator=generator).value - TRUTH for _ in range(runs)])


def covered(effort: Effort) -> Measured:
    """The part of counts that are within the bound that is printed."""
    plan = shares()
    found = np.abs(errors(plan, effort.of(20_000, 100_000), effort.seed))
    return part(int(np.count_nonzero(found <= plan.error_bound)), found.size)


def lied(effort: Effort) -> Measured:
    """How far one device moves the live count: all its messages ones, and then zeros."""
    plan = live()
    honest = plan.randomize(VALUES[1:], bits=RandomBits.seeded(effort.seed)).payloads
    most = plan.messages_per_user_max
    ends = [
        plan.analyze(Batch(np.concatenate((honest, np.full(most, bit, honest.dtype))), USERS)).value for bit in (0, 1)
    ]
    return Measured.exact(abs(ends[1] - ends[0]), f"{most} messages that are all ones, and all zeros")


def saved(method: str, users: int) -> float:
    """How many times the noise of the paper's own constants an exact plan has not."""
    plan = BinarySum.plan(users=users, privacy=TARGET, method=method)
    paper = plan.reference()["paper_standard_error"]
    return (math.nan if paper is None else float(paper)) / plan.standard_error


def summed(family: Any, domain: dict[str, Any], method: str, effort: Effort) -> Measured:
    """The error of a sum of numbers or vectors, a coordinate."""
    plan = family.plan(users=1_000, privacy=TARGET, method=method, **domain)
    values = plan.domain.synthesize(1_000, np.random.default_rng(effort.seed))
    truth, spawned = plan.true_value(values), RandomBits.seeded(effort.seed).spawn(effort.of(1_500, 10_000))
    return root_mean_square([plan.sample_estimate(values, bits=bits).value - truth for bits in spawned])


NUMBERS, VECTORS = {"low": 0, "high": 1}, {"dimension": 10, "radius": 1}


@cache
def peers(runs: int) -> tuple[dict[tuple[str, str], dict[str, Any]], dict[str, str]]:
    """Everybody's errors in one run of the benchmark that the table is from, and who is left out."""
    with redirect_stderr(io.StringIO()):
        rows, skipped = benchmark("peers").measured(runs)
    return {(row["who"], row["what"]): row for row in rows}, skipped


def beside_peers(who: str, what: str, effort: Effort) -> Measured:
    """A cell of the table."""
    rows, skipped = peers(effort.of(1_000, 4_000))
    found = next((row for (name, asked), row in rows.items() if name.startswith(who) and asked == what), None)
    if found is None:
        raise LeftOutError(f"{who}: {skipped.get(who.lower(), 'not measured')}")
    around = normal_quantile() * found["spread"]
    return Measured(found["error"], found["error"] - around, found["error"] + around, f"{found['runs']:,} runs")


def _peer_claims() -> list[Claim]:
    """The cells of docs/compare.md's table, which says each with its own standard error."""
    rows = {
        "ShuffleDP, any number of messages": "shuffledp, at most 10,000",
        "ShuffleDP, at most 32 messages a person": "shuffledp, at most 32 ",
        "ShuffleDP, at most 2 messages a person": "shuffledp, at most 2 ",
        "OpenDP, a curator": "OpenDP",
        "diffprivlib, a curator": "diffprivlib",
        "local noise, nobody but yourself": "local noise",
    }
    found = []
    for printed, who in rows.items():
        for place, what in enumerate(("count", "histogram", "mean") if who != "local noise" else ("count",)):
            words = rf"\| {re.escape(printed)}[^|]*\|" + r"[^|\n]*\|" * place + r" ([\d.,]+) ± ([\d.]+)"
            found.append(
                Claim(
                    name=f"{printed}: the error of a {what}",
                    printed=(Printed("docs/compare.md", words),),
                    how="benchmarks/peers.py again, with fewer runs: root mean square error of one question.",
                    because="Both runs' chance is allowed: 3.9 standard errors of the printed run and of this one.",
                    measure=lambda effort, who=who, what=what: beside_peers(who, what, effort),  # type: ignore[misc]
                )
            )
    return found


CLAIMS = [
    Claim(
        name="A count of 10,000 people by shares: its standard error",
        printed=(
            Printed("README.md", r"2,998\.0 ± ([\d.]+) \(within"),
            Printed("README.md", r"The ± ([\d.]+) of `shares`"),
        ),
        how=BY_LAW,
        because=INTERVAL,
        measure=lambda effort: by_law(shares(), effort),
    ),
    Claim(
        name="The same with every message made, shuffled and read",
        printed=(Printed("README.md", r"The ± ([\d.]+) of `shares`"),),
        how="Root mean square error of runs in which all people's messages are made, permuted and added up.",
        because=INTERVAL,
        measure=with_messages,
    ),
    Claim(
        name="By shares a count is as good as the trusted curator's: the ratio of their errors",
        printed=(
            Printed("README.md", r"by `shares` it is the trusted curator's own", means=1.0),
            Printed("docs/compare.md", r"the price of not trusting a curator is nothing for a count", means=1.0),
        ),
        how="Both errors in one run: ours by its law, the curator's discrete Laplace noise.",
        because=INTERVAL,
        measure=lambda effort: ratio(by_law(shares(), effort), curator(effort)),
    ),
    Claim(
        name="So many in a hundred counts are within the bound",
        printed=(Printed("README.md", r"\(within 3 with ([\d.]+)% confidence", percent=True),),
        how="The part of the same runs that are within the plan's bound.",
        because="The bound promises a part or more; Clopper and Pearson's interval of so many runs may lie above it.",
        says=Says.AT_LEAST,
        measure=covered,
    ),
    Claim(
        name="That bound",
        printed=(Printed("README.md", r"\(within (\d+) with 95% confidence"),),
        how="From the plan.",
        because=EXACT,
        measure=lambda _: Measured.exact(shares().error_bound),
    ),
    Claim(
        name="Messages that everybody sends for it",
        printed=(Printed("README.md", r"\('shares', (\d+)\)"),),
        how="Counted in reports that were made.",
        because=EXACT,
        measure=lambda effort: Measured.exact(
            float(shares().randomize(VALUES[:100], bits=RandomBits.seeded(effort.seed)).sizes.max()), "100 reports"
        ),
    ),
    Claim(
        name="The live service's count: its standard error",
        printed=(
            Printed("README.md", r"▶ 3,004 ± ([\d.]+)"),
            Printed("README.md", r"\('poisson-bits', ([\d.]+), "),
            Printed("README.md", r"is ± ([\d.]+) here, and one liar"),
        ),
        how=BY_LAW,
        because=INTERVAL,
        measure=lambda effort: by_law(live(), effort),
    ),
    Claim(
        name="One liar moves it by so much at most",
        printed=(
            Printed("README.md", r"\('poisson-bits', [\d.]+, ([\d.]+)\)"),
            Printed("README.md", r"one liar moves it by (\d+) at most"),
        ),
        how="All messages that one device may send are made ones, then zeros; the estimates differ by that.",
        because=EXACT,
        measure=lied,
    ),
    Claim(
        name="Noise on every device alone: its error beside ours",
        printed=(
            Printed("README.md", r"For a count of 10,000 people that is (\d+) times the error"),
            Printed("docs/compare.md", r"even a shuffler\nis a factor of (\d+)\."),
        ),
        how="Root mean square errors of randomized response and of `shares`, in one run.",
        because=INTERVAL,
        measure=lambda effort: ratio(local(effort), by_law(shares(), effort)),
    ),
    Claim(
        name="Exact accounting alone leaves one part in so many of the published noise",
        printed=(Printed("README.md", r"that alone leaves a (\d+)th"),),
        how="The paper's standard error through that of `coins`, its protocol: the least of four sizes.",
        because=EXACT,
        measure=lambda _: Measured.exact(min(saved("coins", users) for users in SIZES)),
    ),
    Claim(
        name="The best protocol of all leaves one part in so many",
        printed=(Printed("README.md", r"`shares` instead of that protocol a (\d+)th"),),
        how="The same with `shares`: the largest ratio for 1,000 to 1,000,000 people.",
        because=EXACT,
        measure=lambda _: Measured.exact(max(saved("shares", users) for users in SIZES)),
    ),
    Claim(
        name="Without a shuffler the error grows with the crowd: a hundred times the people, so many times the error",
        printed=(Printed("README.md", r"Without a shuffler \(local model\) it grows with the crowd", means=10.0),),
        how="The local model's standard error for 1,000,000 people through that for 10,000.",
        because=EXACT,
        measure=lambda _: Measured.exact(
            math.prod(
                LocalRandomizedResponse(users=users, privacy=TARGET).standard_error ** sign
                for users, sign in ((1_000_000, 1), (10_000, -1))
            )
        ),
    ),
    Claim(
        name="With one it does not: a hundred times the people, the same error",
        printed=(Printed("README.md", r"with one it\ndoes not", means=1.0),),
        how="The exact plans' standard errors for 1,000,000 people through those for 10,000, by `coins`.",
        because="What `coins` still gains by larger crowds is less than 1%.",
        slack=0.01,
        measure=lambda _: Measured.exact(
            BinarySum.plan(users=1_000_000, privacy=TARGET, method="coins").standard_error
            / BinarySum.plan(users=10_000, privacy=TARGET, method="coins").standard_error
        ),
    ),
    Claim(
        name="A sum of numbers by bits: its error beside that of shares",
        printed=(Printed("docs/howto/sum-numbers-and-vectors.md", r"Numbers: (\d+) times the error of shares"),),
        how="Root mean square errors of 1,000 people's sums, both by their law.",
        because=INTERVAL,
        measure=lambda effort: ratio(
            summed(BoundedSum, NUMBERS, "bits", effort), summed(BoundedSum, NUMBERS, "shares", effort)
        ),
    ),
    Claim(
        name="A sum of vectors by shares: the error of a coordinate",
        printed=(Printed("docs/howto/sum-numbers-and-vectors.md", r"curator's Gaussian noise \(([\d.]+)\)"),),
        how="Root mean square error of 1,000 people's sums of 10 numbers.",
        because=INTERVAL,
        measure=lambda effort: summed(VectorSum, VECTORS, "shares", effort),
    ),
    Claim(
        name="The same by bits",
        printed=(Printed("docs/howto/sum-numbers-and-vectors.md", r"`bits` within 10% of it\n\(([\d.]+)\)"),),
        how="Root mean square error of 1,000 people's sums of 10 numbers.",
        because=INTERVAL,
        measure=lambda effort: summed(VectorSum, VECTORS, "bits", effort),
    ),
    *_peer_claims(),
]
