"""Plans made quieter on purpose, to see whether the audit notices."""

import dataclasses
import math
from typing import Any

from shuffledp.accounting.curves import smallest_real
from shuffledp.errors import ParameterError
from shuffledp.protocols.binary_sum.coins import Coins, smallest_fair_coins
from shuffledp.protocols.binary_sum.correlated import Correlated
from shuffledp.protocols.binary_sum.poisson_bits import PoissonBits
from shuffledp.protocols.binary_sum.pure import Pure
from shuffledp.protocols.binary_sum.response import Response
from shuffledp.protocols.binary_sum.shares import Shares
from shuffledp.protocols.binary_sum.zsum import ZSum
from shuffledp.protocols.bounded_sum.bits import BoundedBits
from shuffledp.protocols.bounded_sum.shares import BoundedShares
from shuffledp.protocols.distinct_elements import Parities
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.ranges.base import RangesPlan
from shuffledp.protocols.vector_sum.bits import VectorBits
from shuffledp.protocols.vector_sum.shares import VectorShares


def sabotaged(plan: Plan, part: float) -> Plan:
    """A twin with this part of the least noise variance that the plan needs; it protects nobody.

    The twin still claims what the plan claims: it is built past the accountant, which would refuse it.
    """
    if not 0 < part <= 1:
        raise ParameterError("sabotage", part, "must lie in (0, 1]", "0.5 halves the noise variance")
    return _past_the_accountant(plan, **_quieter(plan, part))


def _quieter(plan: Plan, part: float) -> dict[str, Any]:
    if isinstance(plan, HistogramPlan | Parities | RangesPlan):
        return plan.quieter(part)
    if isinstance(plan, Coins):
        needed = smallest_fair_coins(plan.privacy) / plan.honest_users / plan.bits_per_user / 4
        least = min(needed, 0.25) if plan.probability == 0.5 else plan.probability * (1 - plan.probability)
        return {"probability": _probability_with(part * least)}
    if isinstance(plan, BoundedBits | VectorBits):
        return {"probability": _probability_with(part * _least_coin_variance(plan))}
    if isinstance(plan, VectorShares):
        return {"variance": part * plan.variance}
    if isinstance(plan, Shares | Correlated | BoundedShares):
        return {"ratio": _ratio_with(part * _laplace_variance(plan.ratio))}
    if isinstance(plan, Response):
        return {"random_probability": 2 * _probability_with(part * plan.lie * (1 - plan.lie))}
    if isinstance(plan, ZSum):
        return {"silence": _probability_with(part * plan.silence * (1 - plan.silence))}
    if isinstance(plan, PoissonBits):
        return {"rate": part * plan.rate}
    if isinstance(plan, Pure):
        return {"random_probability": part * plan.random_probability}
    raise ParameterError("method", plan.method, "cannot be sabotaged", "audit it as it is")


def _least_coin_variance(plan: BoundedBits | VectorBits) -> float:
    """The least variance of one coin with which the plan still keeps its word."""

    def enough(variance: float) -> bool:
        if variance >= plan.probability * (1 - plan.probability):
            return True
        return _past_the_accountant(plan, probability=_probability_with(variance)).guarantee().holds

    return min(smallest_real(enough, 0.0, 0.01, relative=1e-4), plan.probability * (1 - plan.probability))


def _probability_with(variance: float) -> float:
    """The p <= 1/2 with p (1 - p) = variance."""
    return (1 - math.sqrt(1 - 4 * variance)) / 2


def _laplace_variance(ratio: float) -> float:
    return 2 * ratio / (1 - ratio) ** 2


def _ratio_with(variance: float) -> float:
    return smallest_real(lambda ratio: ratio >= 1 or _laplace_variance(ratio) >= variance, 0.0, 0.01, relative=1e-9)


def _past_the_accountant(plan: Plan, **changes: Any) -> Plan:
    twin: Plan = object.__new__(type(plan))
    for field in dataclasses.fields(plan):
        object.__setattr__(twin, field.name, changes.get(field.name, getattr(plan, field.name)))
    return twin
