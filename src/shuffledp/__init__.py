"""Differential privacy in the shuffle model.

People's devices randomize their own data, a shuffler that cannot read them permutes the messages of many, and an
analyzer gets statistics almost as accurate as a trusted curator's. The shuffler and the analyzer must not collude, and
enough of the people must follow the protocol; a plan says how many.

>>> from shuffledp import BinarySum, Privacy
>>> plan = BinarySum.plan(users=10_000, privacy=Privacy(epsilon=1, delta=1e-6))
>>> plan.method, round(plan.standard_error, 2)
('shares', 1.36)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from shuffledp.protocols.histogram import Histogram as Histogram
    from shuffledp.protocols.ranges import Ranges as Ranges
    from shuffledp.protocols.vector_sum import VectorSum as VectorSum
    from shuffledp.randomness import RandomBits as RandomBits
    from shuffledp.shuffle.pool import ShufflerPool as ShufflerPool
    from shuffledp.shuffle.shuffler import Shuffler as Shuffler
    from shuffledp.simulation.run import simulate as simulate

__version__ = "0.1.0"

# Lazy, so that a process that imports only the shuffler holds no code that understands a message.
_HOMES = {
    "Batch": "shuffledp.messages",
    "BinarySum": "shuffledp.protocols.binary_sum",
    "BoundedSum": "shuffledp.protocols.bounded_sum",
    "Counter": "shuffledp.continual.counter",
    "Estimate": "shuffledp.estimates",
    "Histogram": "shuffledp.protocols.histogram",
    "ParameterError": "shuffledp.errors",
    "Privacy": "shuffledp.privacy",
    "RandomBits": "shuffledp.randomness",
    "Ranges": "shuffledp.protocols.ranges",
    "Reports": "shuffledp.messages",
    "ShuffleDPError": "shuffledp.errors",
    "Shuffler": "shuffledp.shuffle.shuffler",
    "ShufflerPool": "shuffledp.shuffle.pool",
    "UniformityTest": "shuffledp.protocols.distribution_test",
    "VectorEstimate": "shuffledp.estimates",
    "VectorSum": "shuffledp.protocols.vector_sum",
    "load_plan": "shuffledp.protocols.catalogue",
    "simulate": "shuffledp.simulation.run",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'shuffledp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
