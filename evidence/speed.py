"""Speed as ratios of CPU time in one run, never seconds: another machine has other seconds."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from evidence.accuracy import TARGET, VALUES, shares
from evidence.claims import Claim, Effort, Measured, Says
from evidence.measuring import cpu_ratio
from evidence.printed import Printed
from evidence.running import MILLION, planned
from evidence.siblings import benchmark
from shuffledp import RandomBits, simulate
from shuffledp.sampling.coins import fair_coin_sums

COMPARE = "docs/compare.md"
MACHINES = "Caches and instructions differ between machines: the ratio may be worse by the slack that is named here."


def law_beside_messages(effort: Effort) -> Measured:
    """How many times faster the estimate's law is than all messages."""
    plan, bits = shares(), RandomBits.seeded(effort.seed)
    return cpu_ratio(
        lambda: simulate(plan, VALUES, bits=bits),
        lambda: simulate(plan, VALUES, bits=bits, fast=True),
        rounds=effort.of(15, 101),
        times=20,
    )


def words(effort: Effort) -> Measured:
    """How many times numpy's generator takes as long as AES for as many random words."""
    bits, generator = RandomBits.secure(), np.random.PCG64(effort.seed)
    return cpu_ratio(lambda: generator.random_raw(MILLION), lambda: bits.words(MILLION), rounds=effort.of(15, 101))


def coins(effort: Effort) -> Measured:
    """How many times numpy takes as long for binomial numbers in floating point as we for exact ones."""
    bits, generator = RandomBits.secure(), np.random.default_rng(effort.seed)
    return cpu_ratio(
        lambda: generator.binomial(64, 0.5, MILLION),
        lambda: fair_coin_sums(64, MILLION, bits=bits),
        rounds=effort.of(9, 51),
    )


def counted(effort: Effort) -> Measured:
    """How many times a private running count takes as long as numpy's cumsum of the same people."""
    users = effort.of(10 * MILLION, 100 * MILLION)
    values = (np.random.default_rng(effort.seed).random(users, dtype=np.float32) < 0.3).view(np.uint8)
    learner = planned(users, 4, TARGET, "carried").learner()
    bits = RandomBits.seeded(effort.seed)
    return cpu_ratio(lambda: learner.run(values, bits=bits), lambda: np.cumsum(values), rounds=effort.of(5, 9))


@cache
def cascades(users: int) -> dict[int, Any]:
    """One batch through one shuffler, two hops and three, as benchmarks/cascade.py runs them."""
    runs = benchmark("cascade").Run
    with tempfile.TemporaryDirectory() as place:
        return {hops: runs(Path(place), users, hops) for hops in (1, 2, 3)}


def hop_beside_analyzer(effort: Effort) -> Measured:
    """The CPU of a hop that opens its layer, permutes and seals, beside the analyzer's opening."""
    run = cascades(effort.of(200, 1_500))[3]
    ratios = sorted(seconds / run.reading for seconds in run.sealing)
    return Measured(ratios[1], ratios[0], ratios[-1], f"three hops, {run.messages:,} messages")


def layer_bytes(effort: Effort) -> Measured:
    """How many bytes a message grows by with a hop."""
    users = effort.of(200, 1_500)
    runs = cascades(users)
    added = {(runs[hops].bytes - runs[hops - 1].bytes) * users / runs[hops].messages for hops in (3,)}
    return Measured.exact(max(added), "two hops and three")


CLAIMS = [
    Claim(
        name="Drawing an estimate from its law is so many times as fast as making, shuffling and reading messages",
        printed=(Printed("docs/tutorial/first-count.md", r"about (\d+) times as fast for these 10,000 people"),),
        how="CPU time of `simulate` and of `simulate(fast=True)`, 10,000 people by shares, in turn.",
        because=MACHINES,
        says=Says.AT_LEAST,
        slack=0.3,
        measure=law_beside_messages,
    ),
    Claim(
        name="Random bits by AES-256-CTR, as numpy's PCG64 takes so many times as long",
        printed=(Printed(COMPARE, r"\| random bits, AES-256-CTR \| [^|]*\| ([\d.]+) \|"),),
        how="CPU time of a million words of 64 bits of both, in turn.",
        because=MACHINES + " AES needs the processor's own instruction.",
        says=Says.AT_LEAST,
        slack=0.4,
        measure=words,
    ),
    Claim(
        name="Exact binomial noise: numpy's approximate one takes so many times as long",
        printed=(Printed(COMPARE, r"\| exact sums of 64 coins \| [^|]*\| ([\d.]+) \|"),),
        how="CPU time of a million numbers of both, in turn.",
        because=MACHINES,
        says=Says.AT_LEAST,
        slack=0.4,
        measure=coins,
    ),
    Claim(
        name="A private running count takes so many times as long as a plain one",
        printed=(Printed(COMPARE, r"\| a running count by four shufflers, by its law \| [^|]*\| 1/([\d.]+) \|"),),
        how="CPU time over ten million people (a hundred if not quick) and of np.cumsum, in turn.",
        because=MACHINES,
        says=Says.AT_MOST,
        slack=0.4,
        measure=counted,
    ),
    Claim(
        name="A hop of a cascade needs about the CPU that the analyzer needs to open a batch",
        printed=(
            Printed("docs/howto/run-a-cascade.md", r"on every hop about what the analyzer needs to open", means=1.0),
        ),
        how="CPU time of three hops' opening, permuting and sealing through the analyzer's reading of the same batch.",
        because=MACHINES + " It says about: a third more or less.",
        slack=0.35,
        measure=hop_beside_analyzer,
    ),
    Claim(
        name="Bytes that a hop adds to a message",
        printed=(Printed("docs/howto/run-a-cascade.md", r"what it costs: (\d+) bytes and one more encryption"),),
        how="Lengths of reports that were made for two hops and for three.",
        because="Nothing is drawn.",
        measure=layer_bytes,
    ),
]
