"""Mean and variance of the test statistics, exactly where users are uniform and from above everywhere else.

With q = p - u, where p is the users' law over the bins and u the uniform one, and D = sum of q_j^2, every statistic
here has mean `signal` D and variance at most `level` + `slope` D + `steep` D^(3/2), with equality at D = 0. Proofs:
docs/theory/distribution-tests.md.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScoreMoments:
    """A statistic whose mean is signal * D and whose variance is at most level + slope D + steep D^(3/2)."""

    signal: float
    level: float
    slope: float
    steep: float

    @property
    def deviation(self) -> float:
        """The standard deviation where users are uniform, exactly."""
        return math.sqrt(self.level)

    def variance(self, distance_squared: float) -> float:
        """The largest variance that the statistic can have where D is this."""
        return self.level + self.slope * distance_squared + self.steep * distance_squared * math.sqrt(distance_squared)

    def miss(self, score: float, distance_squared: float) -> float:
        """The probability that the statistic stays below `score` deviations, at most, for every D at least this large.

        Cantelli's inequality; V(D) / (signal D - t)^2 falls in D, so the smallest D is the worst.

        >>> balls_moments(1600, 4270, 100).miss(1.414, 4 * 0.25**2 / 100) < 1 / 3
        True
        """
        gap = self.signal * distance_squared - score * self.deviation
        if gap <= 0:
            return 1.0
        variance = self.variance(distance_squared)
        return variance / (variance + gap**2)


def balls_moments(users: int, decoys: int, bins: int) -> ScoreMoments:
    """The moments of sum_j s_j (s_j - 1) - N (N - 1) / bins, where s counts N messages, users' own and decoys."""
    n, f, share = float(users), float(decoys), 1 / bins
    pairs, messages = n * (n - 1), n + f
    return ScoreMoments(
        signal=pairs,
        level=2 * messages * (messages - 1) * share * (1 - share),
        slope=2 * pairs * (1 - 2 * share) + 4 * pairs * (n - 2) * share + 4 * f * pairs * share,
        steep=4 * pairs * max(0.0, n - 2),
    )


def rows_moments(users: int, kept: float, spurious: float, bins: int) -> ScoreMoments:
    """The moments of sum_j [N_j (N_j - 1) - 2 (n - 1) h N_j + n (n - 1) h^2], where N sums rows of bits.

    A bit is 1 with probability `kept` at a user's own bin and `spurious` elsewhere; h is a column's mean where users
    are uniform.

    Reference: Canonne, Lyu 2022, for any two probabilities.
    """
    n, share, gap = float(users), 1 / bins, (kept - spurious) ** 2
    elsewhere = spurious * (1 - spurious)
    own = max(0.0, kept * (1 - kept) - elsewhere)
    pairs, crowd = n * (n - 1), share * (1 - share)
    frobenius = (
        elsewhere**2 * bins
        + 2 * elsewhere * own
        + own**2 * share
        + 2 * gap * (elsewhere * (1 - share) + own * crowd)
        + gap**2 * crowd
    )
    return ScoreMoments(
        signal=pairs * gap,
        level=2 * pairs * frobenius,
        slope=2 * pairs * (own**2 + (2 * gap * own + gap**2) * (1 - 2 * share))
        + 4 * pairs * (n - 1) * gap * (elsewhere + (own + gap) * share),
        steep=4 * pairs * (n - 1) * gap * (own + gap),
    )


def poissonised_variance(mean_users: float, bins: int, noise_variance: float, square_variance: float) -> float:
    """The variance of Z = (d/m) sum_j [(c_j - m/d)^2 - c_j] - (d^2/m) s2, for Poisson(m) uniform users and noise.

    The noise is independent in each bin; s2 is the noise's variance and `square_variance` that of its square.

    Reference: [004] equation (1), with the noise's known bias taken off.

    >>> round(poissonised_variance(800, 100, *symmetric_bits_moments(85.3)))
    2729
    """
    m, d = mean_users, bins
    return 2 * d + d**3 / m**2 * (square_variance + noise_variance) + 4 * d**2 / m * noise_variance


def fixed_users_variance(users: int, bins: int, noise_variance: float, square_variance: float) -> float:
    """The variance of sum_j (c_j - n/d)^2 - n (1 - 1/d) - d s2, for n uniform users and symmetric noise in each bin.

    With a fixed number of users the term - c_j of the Poisson form would only add the noises' sum, and is left out.
    """
    n, share = users, 1 / bins
    multinomial = 2 * n * (n - 1) * share * (1 - share)
    return multinomial + 4 * noise_variance * n * (1 - share) + bins * square_variance


def symmetric_bits_moments(rate: float) -> tuple[float, float]:
    """Variance of (A - B)/2 and of its square, where A, B ~ Poisson(rate/2): a bin's noise by symmetric bits.

    Reference: [004] footnote 5.

    >>> symmetric_bits_moments(16.0)
    (4.0, 33.0)
    """
    variance = rate / 4
    return variance, 2 * variance**2 + rate / 16


def smallest_distance_squared(distance: float, bins: int) -> float:
    """The least sum of (p_j - 1/bins)^2 where the total variation distance from uniform is at least `distance`.

    By Cauchy and Schwarz: 2 distance <= sqrt(bins D).
    """
    return 4 * distance**2 / bins
