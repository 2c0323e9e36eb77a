"""What a question costs the people it is put to, over all of them: charged to a ledger, or counted and warned about."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.ledger import Entry, Ledger
from shuffledp.errors import FittedScalingWarning, ParameterError, RepeatedFitWarning
from shuffledp.learn.callers import warn_caller
from shuffledp.learn.fit_register import REGISTER
from shuffledp.learn.optimize import OptimizationGuarantee, Solver
from shuffledp.learn.optimize.outlook import warn_if_too_few
from shuffledp.protocols.ledger_entries import entry_of, with_pair
from shuffledp.protocols.plan import Plan

Floats = NDArray[np.float64]
Budget = Ledger | Path | str | None
"""Whose budget pays, or its file; None for nobody's."""

# Means and variances that are as near as this to 0 and 1 were made so from the data.
_EXACTLY = 1e-9


@dataclass(frozen=True, slots=True)
class FitSpending:
    """What was charged for one fit: how many fits had some of its people, itself included, and where it is written.

    Attributes:
        entries: the costs of all these fits, this one last.
        ledger: whose budget was charged; None where fits are only counted.
    """

    entries: tuple[Entry, ...]
    ledger: Ledger | None = None

    @property
    def fits(self) -> int:
        """Fits so far that had some of these people, this one included."""
        return len(self.entries)

    def together(self) -> tuple[float, float]:
        """(epsilon, delta) of all these fits together.

        Gaussian pairs, which is what fits have, compose exactly: shifts add up as squares. What was charged by its
        bare claim is added to that. Delta is twice the sum of the claims', as what lies outside of pairs adds up.
        """
        shifts = [entry.pair.shift for entry in self.entries if isinstance(entry.pair, GaussianPair)]
        bare = [entry.claim for entry in self.entries if not isinstance(entry.pair, GaussianPair)]
        delta = 2 * math.fsum(entry.claim.delta for entry in self.entries)
        epsilon = math.fsum(claim.epsilon for claim in bare)
        if shifts:
            outside = math.fsum([*(entry.extra_delta for entry in self.entries), *(claim.delta for claim in bare)])
            epsilon += epsilon_at(GaussianPair(math.hypot(*shifts)), delta - outside)
        return min(epsilon, math.fsum(entry.claim.epsilon for entry in self.entries)), delta

    @property
    def history(self) -> str:
        """What other fits add to this one, in words; scalers and evaluations count as fits."""
        where = "" if self.ledger is None else f"; {charged_to(self.ledger)}"
        if self.fits == 1:
            return f"of this fit; 1 fit so far that is known of here{where}"
        epsilon, delta = self.together()
        words = f"of this fit; {self.fits} fits so far of some of these people, as far as is known here, together "
        return f"{words}epsilon {epsilon:.3g}, delta {delta:.3g}{where}"

    def said_of(self, guarantee: OptimizationGuarantee) -> OptimizationGuarantee:
        """The guarantee of this fit, which says what other fits add to it."""
        return replace(guarantee, history=self.history)


def charge(ledger: Budget, solver: Solver, people: Any, *, asks_else: bool = False) -> FitSpending:
    """Charge a fit before its first question, and warn of what is allowed and hardly meant.

    Args:
        ledger: whose budget pays, or its file; None counts the fits of this process and warns from the second on.
        solver: planned, and not yet run.
        people: their rows as they came, before they are prepared.
        asks_else: whether some of them are asked something else instead, with the same epsilon and delta.

    Raises:
        InfeasibleError: the ledger's budget does not cover this fit; nothing is spent.
    """
    warn_if_too_few(solver)
    entry = entry_of_solver(solver, asks_else=asks_else)
    return FitSpending(()) if entry is None else charge_entry(ledger, entry, people, learned=True)


def charge_unseen(ledger: Budget, solver: Solver, *, asks_else: bool = False) -> FitSpending:
    """As `charge`, of people whose rows this process does not hold: a ledger is charged, and nobody is recognised.

    Args:
        ledger: whose budget pays, or its file; None for nobody's.
        solver: planned, and not yet run.
        asks_else: whether some of them are asked something else instead, with the same epsilon and delta.

    Raises:
        InfeasibleError: the ledger's budget does not cover this fit; nothing is spent.
    """
    warn_if_too_few(solver)
    entry = entry_of_solver(solver, asks_else=asks_else)
    if entry is None:
        return FitSpending(())
    book = None if ledger is None else _opened(ledger)
    if book is not None:
        book.spend(entry)
    return FitSpending((entry,), book)


def charge_plan(ledger: Budget, plan: Plan, people: Any, description: str) -> FitSpending:
    """Charge one question by a plan, each person's only one, before it is asked.

    Args:
        ledger: whose budget pays, or its file; None counts the questions of this process.
        plan: by which every one of these people is asked; where they are more than its users, in groups of as many.
        people: rows of those who are asked, as they came.
        description: what is asked, for the ledger.

    Raises:
        InfeasibleError: the ledger's budget does not cover it; nothing is spent.
    """
    entry = replace(entry_of(plan, datetime.now(UTC)), users=np.shape(people)[0], description=description)
    return charge_entry(ledger, entry, people, learned=False)


def charge_entry(ledger: Budget, entry: Entry, people: Any, *, learned: bool) -> FitSpending:
    """Charge an entry to a ledger, or count it and warn where some of these people were asked before.

    Args:
        ledger: whose budget pays, or its file; None counts what is asked in this process.
        entry: what it costs.
        people: rows of those who are asked, as they came.
        learned: whether a model learns from them.
    """
    sketch = REGISTER.sketch(people)
    before = REGISTER.overlapping(sketch)
    book = None if ledger is None else _opened(ledger)
    spending = FitSpending((*before, entry), book)
    if book is not None:
        book.spend(entry)
    elif before:
        epsilon, delta = spending.together()
        warn_caller(
            f"This is {'fit' if learned else 'question'} {spending.fits} in this process of some of these people: each "
            f"costs them epsilon {entry.claim.epsilon:g} again, together epsilon {epsilon:.3g}, delta {delta:.3g}. "
            "Pass ledger= to charge a budget, choose parameters on other people, or on public data.",
            RepeatedFitWarning,
        )
    REGISTER.add(sketch, entry, learned=learned)
    return spending


def entry_of_solver(solver: Solver, *, asks_else: bool = False) -> Entry | None:
    """What running a solver once costs its people; None where nobody is protected.

    The solver's own pair says nothing of people who are asked something else: where there are any, the claim is
    charged, which holds for both.
    """
    guarantee = solver.guarantee()
    if guarantee.privacy is None or guarantee.pair is None:
        return None
    claim_only = Entry.of_claim(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        fingerprint=solver.fingerprint,
        users=solver.users,
        description=f"a model by {solver.name}",
        claim=guarantee.privacy,
    )
    return claim_only if asks_else else with_pair(claim_only, guarantee.pair, guarantee.terms)


def warn_if_scaled_by_data(features: Floats) -> None:
    """Warn of columns whose mean and variance, or least and largest value, are exactly what scalers make of data.

    The check reads the data without noise, and its result is a warning to whoever holds them: no part of a model or
    of a guarantee depends on it.
    """
    if not isinstance(features, np.ndarray) or features.dtype.kind != "f" or len(features) < 3:
        return
    means, deviations = features.mean(axis=0), features.std(axis=0)
    standardized = (np.abs(means) < _EXACTLY) & (np.abs(deviations - 1) < _EXACTLY)
    numbers = ~np.array([np.isin(column, (0.0, 1.0)).all() for column in features.T], dtype=np.bool_)
    # Of one person each: many at both ends are a scale that ends there.
    ends = [np.count_nonzero(np.abs(features - end) < _EXACTLY, axis=0) == 1 for end in (0.0, 1.0)]
    ranged = (features.min(axis=0) == 0) & ends[0] & ends[1] & (np.abs(features.max(axis=0) - 1) < _EXACTLY) & numbers
    found, how = np.count_nonzero(standardized), "mean 0 and variance 1"
    if not found and numbers.any() and ranged[numbers].all():
        found, how = np.count_nonzero(ranged), "least value 0 and largest 1"
    if found:
        warn_caller(
            f"{found} of {features.shape[1]} features have exactly {how}, as a scaler that was fitted on these people "
            "makes them: what it read is not covered by the guarantee. Declare bounds, fit it on public data, or take "
            "ShuffleScaler. (Read without noise, for whoever holds the rows; no part of the model.)",
            FittedScalingWarning,
        )


def charged_to(ledger: Ledger) -> str:
    """Whose budget was charged, and how much of it is spent."""
    spent, budget = ledger.left().epsilon_spent, ledger.account.budget
    return f"charged to the ledger of {ledger.account.population}: epsilon {spent:.3g} of {budget.epsilon:g} is spent"


def _opened(ledger: Any) -> Ledger:
    if isinstance(ledger, Ledger):
        return ledger
    if isinstance(ledger, Path | str):
        return Ledger.load(ledger)
    raise ParameterError("ledger", ledger, "must be a Ledger or its file", "make one with Ledger.open")
