"""The local model's running count: everybody answers for itself, and the answers are added up."""

import math

from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import check_users, chernoff_bound, failure_of
from shuffledp.references.local import LocalRandomizedResponse

# Beyond this rate e^rate would leave the floats.
_LARGEST_RATE = 700.0


def local_error_bound(users: int, privacy: Privacy, confidence: float, *, numbers: bool = False) -> float:
    """What no running sum of unbiased randomized responses is off by more in the whole horizon, but for 1 - confidence.

    Doob's maximal inequality, not a union over the times. Let S_t be the sum of the first t answers less
    their means. Its steps are independent with mean 0, so by Jensen e^(rate S_t) is a submartingale, and

        P[max_t S_t >= a]  <=  e^(-rate a) E[e^(rate S_n)]  <=  e^(-rate a + n psi(rate)),

    psi being the larger of the two values' log E[e^(rate step)]. The steps of the values 0 and 1 are each
    other's negatives in law, so the same bounds -S_t; both signs make the factor 2 in the cost. A number in [0, 1] is
    rounded to one of them at random first: an answer is then 1 with a probability p in [lie, 1 - lie], psi is concave
    in p, and its largest value at p = 1/rate - 1/(e^rate - 1), or at the nearer end, is the one to take.

    Args:
        users: how many come.
        privacy: what each answer keeps by itself.
        confidence: with which the bound holds at all times.
        numbers: whether values are numbers in [0, 1], and not bits.

    Reference: [004] section 3.1 for the answers.

    >>> round(local_error_bound(1_000_000, Privacy(1, 1e-6), 0.95))
    2607
    """
    check_users(users)
    failure = failure_of(confidence)
    lie = LocalRandomizedResponse(users=1, privacy=privacy).lie_probability

    def of_probability(chance: float, rate: float) -> float:
        return math.log1p(chance * math.expm1(rate)) - rate * chance

    def log_moment(rate: float) -> float:
        worst = [lie, 1 - lie]
        if numbers and rate > 1e-6:
            worst.append(min(max(1 / rate - 1 / math.expm1(rate), lie), 1 - lie))
        elif numbers:
            worst.append(0.5)
        return users * max(of_probability(chance, rate) for chance in worst)

    return chernoff_bound(log_moment, math.log(2 / failure), _LARGEST_RATE) / (1 - 2 * lie)
