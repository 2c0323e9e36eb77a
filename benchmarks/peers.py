"""A count, a histogram and a mean beside OpenDP's and diffprivlib's, in one run: errors, and whom one must trust.

Both libraries trust a curator with everybody's data; this package does not. A library that is not installed is left
out, and the table says so: pip install opendp diffprivlib 'scikit-learn<1.6', outside of the project's environment.

Everybody is compared at epsilon 1 where one person's value is replaced. In OpenDP's terms that is a symmetric distance
of 2 (one removed, one added); diffprivlib's histogram counts one person added or removed, which is half of it, and is
asked for epsilon 1/2.
"""

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import shuffledp
from shuffledp import Privacy, RandomBits
from shuffledp.protocols.catalogue import PROTOCOLS

LIMITS = (10_000, 32, 2)
USERS, EPSILON, DELTA = 10_000, 1.0, 1e-6
CITIES = ("Berlin", "Köln", "München", "Ulm")
LOW, HIGH = 0.0, 100.0
SECONDS = 30.0
FOLDER = Path(__file__).parents[1] / "build" / "bench"

Answer = Callable[[], Any]


def data() -> dict[str, Any]:
    generator = np.random.default_rng(16)
    return {
        "count": (generator.random(USERS) < 0.3).astype(np.int64),
        "histogram": generator.choice(len(CITIES), USERS, p=(0.4, 0.3, 0.2, 0.1)),
        "mean": generator.beta(2, 5, USERS) * (HIGH - LOW) + LOW,
    }


def truths(values: dict[str, Any]) -> dict[str, Any]:
    counts = np.bincount(values["histogram"], minlength=len(CITIES))
    return {"count": values["count"].sum(), "histogram": counts, "mean": values["mean"].mean()}


def ours(values: dict[str, Any]) -> Iterator[tuple[str, str, Answer]]:
    """The most accurate plan of any number of messages, of at most 32 and of at most 2 a user."""
    families = {
        "count": ("binary-sum", {}),
        "histogram": ("histogram", {"categories": len(CITIES)}),
        "mean": ("mean", {"low": LOW, "high": HIGH}),
    }
    for what, (family, domain) in families.items():
        for limit in LIMITS:
            asked = {"users": USERS, "privacy": Privacy(EPSILON, DELTA), "max_messages": limit, **domain}
            try:
                plan = PROTOCOLS[family].plan(**asked)
            except shuffledp.ParameterError as refusal:
                print(f"shuffledp, at most {limit} messages, {what}: {refusal}", file=sys.stderr)
                continue
            bits, encoded = RandomBits.secure(), plan.encode(values[what])
            print(f"{what}, at most {limit:,} messages: {plan.method}, {plan.sends}", file=sys.stderr)

            def answer(plan: Any = plan, encoded: Any = encoded, bits: RandomBits = bits) -> Any:
                return plan.sample_estimate(encoded, bits=bits).value

            yield f"shuffledp, at most {limit:,} messages a user", what, answer


def local(values: dict[str, Any]) -> Iterator[tuple[str, str, Answer]]:
    """Noise on everybody's device and no shuffler: what the plans' references say, drawn as normal."""
    from shuffledp.references.local import LocalRandomizedResponse

    reference = LocalRandomizedResponse(users=USERS, privacy=Privacy(EPSILON, DELTA))
    generator, truth = np.random.default_rng(1), truths(values)["count"]
    yield "local noise", "count", lambda: truth + generator.normal(scale=reference.standard_error)


def opendp(values: dict[str, Any]) -> Iterator[tuple[str, str, Answer]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")

    def asked(kind: Any, held: list[Any]) -> Any:
        """A context of its own for each run: its one query spends all of epsilon."""
        return dp.Context.compositor(
            data=held,
            privacy_unit=dp.unit_of(contributions=2),
            privacy_loss=dp.loss_of(epsilon=EPSILON),
            split_evenly_over=1,
            domain=dp.vector_domain(kind, size=USERS),
        ).query()

    bits, numbers = values["count"].tolist(), values["mean"].tolist()
    words = [CITIES[code] for code in values["histogram"]]
    whole, real, text = dp.atom_domain(T=int), dp.atom_domain(T=float, nan=False), dp.atom_domain(T=str)
    name, listed = f"OpenDP {version('opendp')}", {"categories": list(CITIES), "null_category": False}
    yield name, "count", lambda: asked(whole, bits).clamp((0, 1)).sum().laplace().release()
    yield name, "histogram", lambda: asked(text, words).count_by_categories(**listed).laplace().release()
    yield name, "mean", lambda: asked(real, numbers).clamp((LOW, HIGH)).mean().laplace().release()


def diffprivlib(values: dict[str, Any]) -> Iterator[tuple[str, str, Answer]]:
    from diffprivlib import tools

    name = f"diffprivlib {version('diffprivlib')}"
    places = (-0.5, len(CITIES) - 0.5)
    asked = {"epsilon": EPSILON / 2, "bins": len(CITIES), "range": places}
    yield name, "count", lambda: tools.count_nonzero(values["count"], epsilon=EPSILON)
    yield name, "histogram", lambda: tools.histogram(values["histogram"], **asked)[0]
    yield name, "mean", lambda: tools.mean(values["mean"], epsilon=EPSILON, bounds=(LOW, HIGH))


PEERS = {"shuffledp": ours, "local": local, "opendp": opendp, "diffprivlib": diffprivlib}


def squared_errors(answer: Answer, truth: Any, runs: int) -> Iterator[float]:
    """Of so many runs, or of fewer if they take longer than the time that each answer has, but of 100 at least."""
    began = time.process_time()
    for run in range(runs):
        if run >= 100 and time.process_time() - began > SECONDS:
            return
        yield float(np.mean(np.square(np.asarray(answer()) - truth)))


def measured(runs: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Root mean square errors over the runs, and why a library is left out."""
    values = data()
    truth = truths(values)
    rows: list[dict[str, Any]] = []
    skipped: dict[str, str] = {}
    for peer, answers in PEERS.items():
        try:
            for name, what, answer in answers(values):
                squares = list(squared_errors(answer, truth[what], runs))
                error = math.sqrt(float(np.mean(squares)))
                spread = float(np.std(squares)) / (2 * error * math.sqrt(len(squares)))
                rows.append({"who": name, "what": what, "error": error, "spread": spread, "runs": len(squares)})
        except (ImportError, PackageNotFoundError) as gone:
            skipped[peer] = f"not installed, or not with these versions: {gone}"
    return rows, skipped


def main(runs: int = 4000) -> int:
    warnings.simplefilter("ignore")
    rows, skipped = measured(runs)
    names = list(dict.fromkeys(row["who"] for row in rows))
    found = {(row["who"], row["what"]): f"{row['error']:.3g} ± {row['spread']:.1g}" for row in rows}
    print(f"{USERS:,} people, epsilon {EPSILON:g}, one value replaced; root mean square error of up to {runs:,} runs\n")
    print(f"{'':<44}{'count':>18}{'histogram':>18}{'mean':>20}")
    for name in names:
        cells = [found.get((name, what), "-") for what in ("count", "histogram", "mean")]
        print(f"{name:<44}{cells[0]:>18}{cells[1]:>18}{cells[2]:>20}")
    for peer, why in skipped.items():
        print(f"{peer} is left out: {why}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    document = {"schema": 1, "users": USERS, "epsilon": EPSILON, "runs": runs, "rows": rows, "skipped": skipped}
    (FOLDER / "peers.json").write_text(json.dumps(document, indent=2) + "\n")
    print("written to build/bench/peers.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
