"""The audit of a plan: its own randomizer, run on two neighbouring inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from shuffledp.accounting.dropouts import honest_users
from shuffledp.audit.events import Finding, Outcomes, find
from shuffledp.errors import ParameterError
from shuffledp.protocols.plan import Plan
from shuffledp.randomness import RandomBits

# Users randomized in all, both inputs together, unless the caller says otherwise; two messages count as one user.
_EFFORT = 600_000_000
_MOST_TRIALS, _FEWEST_TRIALS = 20_000_000, 20_000
# Users randomized at a time.
_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What the trials show beside what is claimed and what is exact."""

    epsilon_claimed: float
    epsilon_lower_bound: float
    epsilon_exact: float
    delta: float
    trials: int
    confidence: float
    finding: Finding

    @property
    def verdict(self) -> Literal["stands", "refuted"]:
        """Refuted if the lower bound passes the claim."""
        return "refuted" if self.epsilon_lower_bound > self.epsilon_claimed else "stands"


def audit_plan(
    plan: Plan,
    *,
    bits: RandomBits,
    trials: int | None = None,
    confidence: float = 0.999,
    sabotage: float = 1.0,
    honest_fraction: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AuditResult:
    """A lower bound on epsilon from `trials` runs on each of two inputs that differ in one user's value.

    Only the honest users report (dropouts are the worst that others can do), and what is kept of a run
    is what a permutation leaves. `sabotage` runs a twin with that part of
    the noise variance under the plan's claim.

    Args:
        plan: whose claim is tried.
        bits: where the noise of all runs comes from.
        trials: how many runs there are on each input; as many as a moderate effort allows if left out.
        confidence: the probability with which the lower bound is right.
        sabotage: the part of the noise variance that is left; 1 runs the plan as it is.
        honest_fraction: the part of the users who report; the plan's own if left out.
        progress: called with the runs that are done, and with all there are.

    Returns:
        The lower bound, what the exact epsilon is, and whether the claim stands.

    Raises:
        ParameterError: a confidence outside [0.5, 1), too few trials, or a part outside (0, 1].

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=50, privacy=Privacy(1, 1e-6))
    >>> audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict
    'stands'
    """
    if not 0.5 <= confidence < 1:
        raise ParameterError("confidence", confidence, "must lie in [0.5, 1)", "0.999 is a common choice")
    fraction = plan.honest_fraction if honest_fraction is None else honest_fraction
    honest = honest_users(plan.users, fraction)
    effort = plan.audited_effort(honest)
    wanted = max(_FEWEST_TRIALS, min(_MOST_TRIALS, _EFFORT // (2 * effort))) if trials is None else trials
    if wanted < 100:
        raise ParameterError("trials", wanted, "must be >= 100", "a hundred runs show nothing; take a million")
    runs = plan if sabotage == 1 else plan.twin(sabotage)
    sides = []
    for side in (0, 1):

        def tell(done: int, side: int = side) -> None:
            if progress is not None:
                progress(side * wanted + done, 2 * wanted)

        sides.append(_run(runs, side, wanted, honest, bits, tell))
    finding = find(sides[0], sides[1], delta=plan.privacy.delta, confidence=confidence)
    return AuditResult(
        epsilon_claimed=plan.privacy.epsilon,
        epsilon_lower_bound=finding.epsilon_lower_bound,
        epsilon_exact=plan.epsilon_with(fraction),
        delta=plan.privacy.delta,
        trials=wanted,
        confidence=confidence,
        finding=finding,
    )


def _run(plan: Plan, side: int, trials: int, honest: int, bits: RandomBits, tell: Callable[[int], None]) -> Outcomes:
    """What `trials` runs on one input show, as many at a time as fit; only tallies are kept."""
    at_a_time = max(2, _AT_A_TIME // plan.audited_effort(honest))
    parts = []
    for start in range(0, trials, at_a_time):
        here = min(at_a_time, trials - start)
        parts.append(Outcomes.of(plan.views(side, here, honest, bits=bits)))
        tell(start + here)
    return Outcomes.merge(parts)
