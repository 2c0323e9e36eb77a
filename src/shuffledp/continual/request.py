"""What is asked of a running sum: how many people and shufflers, how private, of which values, and how sure."""

from dataclasses import dataclass
from typing import Any, Literal

from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.summed import BITS, SummedDomain
from shuffledp.protocols.request import Request
from shuffledp.protocols.states import is_real
from shuffledp.protocols.sums.noise import FAMILIES

Estimator = Literal["completed", "combined"]
"""How completed batches make an estimate: a sum of them, or with second opinions where two close together."""
ESTIMATORS: tuple[Estimator, ...] = ("completed", "combined")
# Of the probability with which the bound may fail: for rounding.
ROUNDING_FAILURE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRequest(Request):
    """What every plan of a running sum is asked for, beside what any plan is.

    Attributes:
        shufflers: how many shufflers may hold open batches at once.
        noise: laplace, skellam or coins; auto takes the best.
        confidence: with which the error bound holds, over the whole horizon.
        domain: what is added up; bits if left out.
        estimator: completed, combined, or auto.
        silent_slots: so many slots in a row may be false where noise is carried on; other noise asks for none.
    """

    shufflers: int
    noise: str = "auto"
    confidence: float = 0.95
    domain: SummedDomain = BITS
    estimator: Estimator | Literal["auto"] = "auto"
    silent_slots: int = 0

    def __post_init__(self) -> None:
        Request.__post_init__(self)
        check_shufflers(self.shufflers)
        check_confidence(self.confidence)
        if self.constants != "exact":
            raise ParameterError("constants", self.constants, "are not given for running sums", "leave it out")
        if self.noise != "auto" and self.noise not in FAMILIES:
            raise ParameterError("noise", self.noise, f"must be auto, {' or '.join(FAMILIES)}", "auto picks the best")
        check_estimator(self.estimator, ("auto",))
        if isinstance(self.silent_slots, bool) or not isinstance(self.silent_slots, int) or self.silent_slots < 0:
            raise ParameterError("silent_slots", self.silent_slots, "must be a whole number >= 0", "leave it out")

    @property
    def failure(self) -> float:
        """The probability with which the noise of one coordinate may pass its bound."""
        return noise_failure(self.domain, self.confidence)

    @property
    def surplus(self) -> float:
        """About how much more noise than is counted on a batch has when everybody follows the protocol."""
        return min(1 / self.honest_fraction, float(self.users))


def noise_failure(domain: SummedDomain, confidence: float) -> float:
    """The probability with which the noise of one coordinate may pass its bound, rounding's part left aside."""
    return (1 - confidence) * (1 - ROUNDING_FAILURE if domain.rounds else 1.0) / domain.coordinates


def check_shufflers(shufflers: Any) -> None:
    """Refuse what is no number of shufflers."""
    if isinstance(shufflers, bool) or not isinstance(shufflers, int) or shufflers < 1:
        raise ParameterError("shufflers", shufflers, "must be a whole number >= 1", "four are a good choice")


def check_estimator(estimator: Any, also: tuple[str, ...] = ()) -> None:
    """Refuse what is no estimator."""
    known = (*also, *ESTIMATORS)
    if estimator not in known:
        raise ParameterError("estimator", estimator, f"must be {' or '.join(known)}", "leave it out")


def check_confidence(confidence: Any) -> None:
    """Refuse what is no confidence."""
    if not is_real(confidence) or not 0.5 <= confidence < 1:
        raise ParameterError("confidence", confidence, "must lie in [0.5, 1)", "0.95 is a common choice")
