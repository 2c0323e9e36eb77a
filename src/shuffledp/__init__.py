"""Differential privacy in the shuffle model.

People's devices randomize their own data, a shuffler permutes the messages of many without being able to read them,
and an analyst who never learns whose message is whose gets statistics almost as accurate as a trusted curator's. The
shuffler and the analyst must not work together, and most people's devices must follow the protocol.

>>> from shuffledp import BinarySum, Privacy
>>> plan = BinarySum.plan(users=10_000, privacy=Privacy(epsilon=1, delta=1e-6))
>>> plan.method, round(plan.standard_error, 2)
('shares', 1.36)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.answers import count as count
    from shuffledp.answers import difference as difference
    from shuffledp.answers import heavy_hitters as heavy_hitters
    from shuffledp.answers import histogram as histogram
    from shuffledp.answers import mean as mean
    from shuffledp.answers import quantiles as quantiles
    from shuffledp.answers import running_count as running_count
    from shuffledp.answers import total as total
    from shuffledp.answers import variance as variance
    from shuffledp.continual.counter import Counter as Counter
    from shuffledp.errors import ParameterError as ParameterError
    from shuffledp.errors import ShuffleDPError as ShuffleDPError
    from shuffledp.estimates import Estimate as Estimate
    from shuffledp.estimates import VectorEstimate as VectorEstimate
    from shuffledp.messages import Batch as Batch
    from shuffledp.messages import Reports as Reports
    from shuffledp.privacy import Privacy as Privacy
    from shuffledp.protocols.binary_sum import BinarySum as BinarySum
    from shuffledp.protocols.bounded_sum import BoundedSum as BoundedSum
    from shuffledp.protocols.catalogue import load_plan as load_plan
    from shuffledp.protocols.distribution_test import UniformityTest as UniformityTest
    from shuffledp.protocols.family import Family
    from shuffledp.protocols.histogram import Histogram as Histogram
    from shuffledp.protocols.ranges import Ranges as Ranges
    from shuffledp.protocols.vector_sum import VectorSum as VectorSum
    from shuffledp.randomness import RandomBits as RandomBits
    from shuffledp.shuffle.pool import ShufflerPool as ShufflerPool
    from shuffledp.shuffle.shuffler import Shuffler as Shuffler
    from shuffledp.simulation.run import simulate as simulate

    HeavyHitters: Family[Any]
    Mean: Family[Any]
    Moments: Family[Any]
    RunningCount: Family[Any]

__version__ = "0.1.0"

# Where each name is, and what it is called there if it is not the same.
# Lazy, so that a process that imports only the shuffler holds no code that understands a message.
_HOMES = {
    "Batch": "shuffledp.messages",
    "BinarySum": "shuffledp.protocols.binary_sum",
    "BoundedSum": "shuffledp.protocols.bounded_sum",
    "Counter": "shuffledp.continual.counter",
    "Estimate": "shuffledp.estimates",
    "HeavyHitters": "shuffledp.protocols.heavy_hitters",
    "Histogram": "shuffledp.protocols.histogram",
    "Mean": "shuffledp.protocols.statistics:MeanFamily",
    "Moments": "shuffledp.protocols.statistics:MomentsFamily",
    "ParameterError": "shuffledp.errors",
    "Privacy": "shuffledp.privacy",
    "RandomBits": "shuffledp.randomness",
    "Ranges": "shuffledp.protocols.ranges",
    "Reports": "shuffledp.messages",
    "RunningCount": "shuffledp.continual.family:RunningSum",
    "ShuffleDPError": "shuffledp.errors",
    "Shuffler": "shuffledp.shuffle.shuffler",
    "ShufflerPool": "shuffledp.shuffle.pool",
    "UniformityTest": "shuffledp.protocols.distribution_test",
    "VectorEstimate": "shuffledp.estimates",
    "VectorSum": "shuffledp.protocols.vector_sum",
    "count": "shuffledp.answers",
    "difference": "shuffledp.answers",
    "heavy_hitters": "shuffledp.answers",
    "histogram": "shuffledp.answers",
    "load_plan": "shuffledp.protocols.catalogue",
    "mean": "shuffledp.answers",
    "quantiles": "shuffledp.answers",
    "running_count": "shuffledp.answers",
    "simulate": "shuffledp.simulation.run",
    "total": "shuffledp.answers",
    "variance": "shuffledp.answers",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module, _, there = _HOMES[name].partition(":")
        return getattr(import_module(module), there or name)
    raise AttributeError(f"module 'shuffledp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
