"""What a server tells its operator: a log without addresses, and figures for Prometheus."""

import json
import logging
import sys
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LOG = logging.getLogger("shuffledp.service")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class JsonLines(logging.Formatter):
    """One JSON object a line: what happened, never who from."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said: dict[str, Any] = {"time": round(record.created, 3), "level": record.levelname.lower()}
        said["event"] = record.getMessage()
        said |= getattr(record, "facts", {})
        if record.exc_info and record.exc_info[0] is not None:
            said["error"] = record.exc_info[0].__name__
        return json.dumps(said)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send the service's log to standard error, a JSON object a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    # What uvicorn has to say goes the same way; it knows addresses, so only its warnings do. A database's driver warns
    # of every lost connection, which is reported by who lost it.
    others = ((logging.getLogger("uvicorn"), logging.WARNING), (logging.getLogger("psycopg"), logging.ERROR))
    for logger, least in ((LOG, level), *others):
        logger.handlers[:] = [handler]
        logger.setLevel(least)
        logger.propagate = False


def log_nothing() -> None:
    """Write no log at all: of a relay, whatever is written down may be somebody's address."""
    for name in (LOG.name, "uvicorn", "asyncio", "httpx", "httpcore"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]
        logger.propagate = False


def log(event: str, *, level: int = logging.INFO, **facts: Any) -> None:
    """Write one line about what happened; no address, no header, no body may be among the facts."""
    LOG.log(level, event, extra={"facts": facts})


class Metrics:
    """What Prometheus reads of one server.

    Args:
        role: the server's, which all names begin with.
    """

    def __init__(self, role: str) -> None:
        self.role, self.registry = role, CollectorRegistry()
        self.requests = self.counter("requests", "Requests answered.", "route", "status")
        name = f"shuffledp_{role}_request_seconds"
        self.seconds = Histogram(name, "Time to answer.", ["route"], buckets=_BUCKETS, registry=self.registry)

    def counter(self, name: str, words: str, *labels: str) -> Counter:
        """A number that only grows."""
        return Counter(f"shuffledp_{self.role}_{name}", words, labels, registry=self.registry)

    def gauge(self, name: str, words: str, *labels: str) -> Gauge:
        """A number that comes and goes."""
        return Gauge(f"shuffledp_{self.role}_{name}", words, labels, registry=self.registry)
