"""Tasks on Spark: a cluster, or all cores of this machine by way of Java.

Needs the extra `spark` (pyspark) and Java 17 or later; nothing of both is looked for before an engine is made.
"""

from shuffledp.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
