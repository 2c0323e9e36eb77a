"""Where big work runs: all cores of this machine, or a Spark cluster. Two verbs, `fold` and `exchange`.

An engine knows parts, tallies and buckets, and nothing of a protocol: what is done with a part is a function that is
handed to it.
"""

from shuffledp.engines.contract import Engine, Entrusted, Exchanged, Gathered
from shuffledp.engines.keyed import JobKey
from shuffledp.engines.local import LocalEngine

__all__ = ["Engine", "Entrusted", "Exchanged", "Gathered", "JobKey", "LocalEngine"]
