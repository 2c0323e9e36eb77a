"""Means, variances and weighted means: what bounded and vector sums say, divided, with error bars.

No privacy is argued here: a plan of BoundedSum or VectorSum is asked once, and what is made of its answer
is a post-processing. The number of users is public, since neighbours replace a value and keep the number.

Moments and weighted means are one vector sum with noise like a Gaussian's. For two numbers that beats two bounded
sums at half the budget each by the method bits, but not by shares, whose noise is Laplace's: see
docs/howto/means-and-variances.md.
"""

from shuffledp.protocols.statistics.mean import Mean
from shuffledp.protocols.statistics.moments import Moments, MomentsEstimate
from shuffledp.protocols.statistics.weighted import WeightedMean, WeightedMeanEstimate

__all__ = ["Mean", "Moments", "MomentsEstimate", "WeightedMean", "WeightedMeanEstimate"]
