"""How often a model is said not to be told from noise: of labels that are noise, and of clear ones.

People have five uniform features, or rows of scikit-learn's breast cancer table, drawn with replacement; labels that
are noise have the shares 0.5, 0.63 and 0.9. `noise_alone_` is a test by rehearsal, so that its rates are measured here.
"""

import argparse
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from report import figure, report, shown
from sklearn.datasets import load_breast_cancer
from sweeps import Cells, add_options, cells_of

from shuffledp.learn import ShuffleLogisticRegression

SHARES = (0.5, 0.63, 0.9)
# People, whether they are asked often, and whether they are enough for clear labels to be told from noise.
SIZES = (
    (341, False, False), (2000, False, False), (8000, False, False), (30_000, False, True),
    (341, True, False), (4000, True, True),
)  # fmt: skip


def uniform(generator: np.random.Generator, people: int) -> tuple[np.ndarray, np.ndarray, object]:
    """Rows, clear labels and bounds."""
    rows = generator.uniform(0, 1, (people, 5))
    scores = 6 * rows @ np.linspace(1, -1, 5)
    return rows, (scores + generator.logistic(size=people) > 0).astype(int), (0, 1)


def cancer(generator: np.random.Generator, people: int) -> tuple[np.ndarray, np.ndarray, object]:
    """Rows, labels and bounds that are a tenth wider than the table."""
    found = load_breast_cancer()
    drawn = generator.integers(0, len(found.target), people)
    return found.data[drawn], found.target[drawn], [(0, high) for high in np.ceil(found.data.max(axis=0) * 11) / 10]


TABLES = {"uniform": uniform, "cancer": cancer}


@dataclass(frozen=True)
class Fit:
    """One model: of which people, whether they are asked often, and the share of labels that are noise, if they are."""

    table: str
    people: int
    often: bool
    share: float | None
    seed: int


def is_noise(fit: Fit) -> bool:
    """Whether a model is said not to be told from noise."""
    warnings.simplefilter("ignore")
    generator = np.random.default_rng(fit.seed)
    rows, labels, bounds = TABLES[fit.table](generator, fit.people)
    if fit.share is not None:
        labels = (generator.random(fit.people) < fit.share).astype(int)
    model = ShuffleLogisticRegression(feature_bounds=bounds, classes=[0, 1], random_state=fit.seed)
    model.set_params(visits=None if fit.often else 1)
    return bool(model.fit(rows, labels).noise_alone_.is_all)


def measured(runs: int, cells: Cells) -> list[dict]:
    """Of every table, size and share."""
    rows = []
    for table in TABLES:
        for people, often, enough in SIZES:
            name = f"{table}, {people:,} people, asked {'often' if often else 'once'}"
            print(f"{name} ...", file=sys.stderr, flush=True)
            shares = (*SHARES, None)
            fits = [Fit(table, people, often, share, seed) for share in shares for seed in range(runs)]
            found = np.array(cells.run(fits, is_noise)).reshape(len(shares), runs)
            *noise, clear = (float(np.mean(each)) for each in found)
            note = ", ".join(f"{part:.0%} at share {share}" for share, part in zip(SHARES, noise, strict=True))
            note = f"{note}, in {runs} runs each"
            rows.append(figure(f"{name}: noise is called noise", float(np.mean(noise)), ">=", 0.85, note))
            named, note = f"{name}: clear labels are", f"in {runs} runs"
            rows.append(figure(named, clear, "<=", 0.05, note) if enough else shown(named, clear, note))
            for row in rows[-2:]:
                print(f"  {row['name']} {row['value']:.3f}, {row['note']}", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="6 runs")
    parser.add_argument("--runs", type=int, default=40, help="of every table, size and share; 40 are 5 minutes of CPU")
    add_options(parser)
    asked = parser.parse_args()
    runs = 6 if asked.quick else asked.runs
    with cells_of(asked, __file__) as cells:
        found = measured(runs, cells)
    sys.exit(report("Learned or noise", found))
