"""What the pages of tasks and those of campaigns are made from."""

from dataclasses import dataclass
from pathlib import Path

from shuffledp.service.analyzer.server import AnalyzerServer


@dataclass
class AnalyzerPages:
    """Pages of what an analyzer serves.

    Attributes:
        server: the analyzer.
        ledger: the budget that it charges; None where it charges none.
    """

    server: AnalyzerServer
    ledger: Path | None = None
