"""Logs in the formats of Open Bandit Pipeline: the Open Bandit Dataset's files, and its dictionaries of feedback.

A file `all.csv` has a row a recommendation: `item_id`, `position`, `click`, `propensity_score`, words `user_feature_*`
and a number `user-item_affinity_J` for each item; `item_context.csv` beside it has `item_id` and the items' features,
of which `item_feature_0` is a number. A dictionary has `context`, `action`, `reward`, `pscore` and `n_actions`.

Reference: Saito, Aihara, Matsutani, Narita 2020.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.errors import DataError
from shuffledp.learn.bandits.logged import Floats, read_rounds
from shuffledp.learn.bandits.replay import LoggedRounds
from shuffledp.learn.spec import check_whole
from shuffledp.tables.matrices import read_matrix
from shuffledp.tables.reading import Reading
from shuffledp.tables.texts import read_texts

COLUMNS = ("item_id", "position", "click", "propensity_score")
_AFFINITY = re.compile(r"user-item_affinity_(\d+)")


def is_open_bandit(path: Path) -> bool:
    """Whether a table has the columns of an Open Bandit Dataset's log; its propensities may be missing."""
    return {"item_id", "click"} <= set(Reading().open(path).names)


@dataclass(frozen=True, eq=False)
class OpenBanditLog:
    """A log of the Open Bandit Dataset.

    Attributes:
        log: its rounds; a context is the affinities of all items, then every user feature's words as 0 and 1.
        items: a number for each item, from `item_context.csv`, or 0 where there is no such file.
        columns: what the numbers of a context are.
    """

    log: LoggedRounds
    items: Floats
    columns: tuple[str, ...]

    @classmethod
    def read(cls, path: Path, *, position: int | None = None) -> "OpenBanditLog":
        """Read a log, and `item_context.csv` beside it if there is one.

        Args:
            path: the log, CSV or Parquet.
            position: only recommendations at this place of the page, from 1; all of them if left out.

        Raises:
            DataError: a column is missing, or a row is not of this kind.
        """
        names = Reading().open(path).names
        if "propensity_score" not in names:
            problem = "must say with which probability each item was shown"
            raise DataError("propensity_score", f"no such column in {path.name}", problem, "log it when choosing")
        affinities = sorted((name for name in names if _AFFINITY.fullmatch(name)), key=lambda name: int(name[19:]))
        table = read_rounds(path, [*COLUMNS, *affinities])
        items = _items(path.with_name("item_context.csv"))
        arms = max(len(affinities), len(items), int(table[:, 0].max()) + 1)
        parts, columns = [table[:, len(COLUMNS) :]], list(affinities)
        for name in (name for name in names if name.startswith("user_feature_")):
            texts = read_texts(path, name)
            parts.append((texts.where[:, np.newaxis] == np.arange(len(texts.distinct))).astype(np.float64))
            columns += [f"{name}={word}" for word in texts.distinct.tolist()]
        contexts = np.hstack(parts)
        if not contexts.shape[1]:
            contexts, columns = np.ones((len(table), 1)), ["1"]
        kept = np.ones(len(table), dtype=bool)
        if position is not None:
            kept = table[:, 1] == check_whole("position", position, 1, 100, "the first is 1")
            if not kept.any():
                raise DataError("position", position, f"must be one of {path.name}", "leave it out for all")
        log = LoggedRounds.of(contexts[kept], table[kept, 0], table[kept, 2], table[kept, 3], arms=arms)
        numbers = np.zeros(arms)
        numbers[: len(items)] = items[:arms]
        return cls(log, numbers, tuple(columns))

    def features(self, contexts: Floats) -> Floats:
        """Three numbers for each item: 1, the user's affinity to it, and the item's own, all within [-1, 1]/sqrt(3).

        Numbers beyond 1 count as 1.
        """
        rounds, arms = len(contexts), self.log.arms
        found = np.ones((rounds, arms, 3))
        width = sum(1 for name in self.columns if _AFFINITY.fullmatch(name))
        found[:, :, 1] = 0.0
        found[:, :width, 1] = np.clip(contexts[:, :width], -1, 1)
        found[:, :, 2] = np.clip(self.items, -1, 1)
        return np.asarray(found / np.sqrt(3))


def _items(path: Path) -> Floats:
    if not path.exists():
        return np.zeros(0)
    table = read_matrix(path, ["item_id", "item_feature_0"])
    places = table[:, 0].astype(np.int64)
    if (places < 0).any() or places.max() >= 1_000_000:
        raise DataError("item_id", f"{table[:, 0].min():g}", "must count items from 0", "mend item_context.csv")
    found = np.zeros(int(places.max()) + 1)
    found[places] = table[:, 1]
    return found


def from_feedback(feedback: Mapping[str, Any], **declared: Any) -> LoggedRounds:
    """Logged rounds from a dictionary as Open Bandit Pipeline's datasets make it.

    Args:
        feedback: with `context`, `action`, `reward`, `pscore` and `n_actions`; other entries are not read.
        **declared: the rewards' range, `lowest` and `highest`.

    Raises:
        DataError: an entry is missing, or a row is not of this kind.

    >>> taken = {"context": [[0.1], [0.2]], "action": [0, 1], "reward": [1, 0], "pscore": [0.5, 0.5], "n_actions": 2}
    >>> from_feedback(taken).arms
    2
    """
    for name in ("context", "action", "reward", "pscore", "n_actions"):
        if feedback.get(name) is None:
            raise DataError(name, "none", "must be an entry of the feedback", "nothing can be estimated without")
    columns = (feedback[name] for name in ("context", "action", "reward", "pscore"))
    return LoggedRounds.of(*columns, arms=int(feedback["n_actions"]), **declared)
