"""Which keys an analyzer's store still needs: those that tasks and campaigns name which have not ended."""

from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.analyzer.server import loaded
from shuffledp.service.campaign import Campaign
from shuffledp.service.ended import Ended
from shuffledp.service.store.contract import AnalyzerRecords
from shuffledp.service.task import Task


def going_on(records: AnalyzerRecords) -> list[Task | Campaign]:
    """Tasks and campaigns of a store that have not ended: some batch of them is to come, or is not read."""
    known = [loaded(text) for text in records.tasks().values() if Ended.of(text) is None]
    return [each for each in known if not is_over(records, each)]


def is_over(records: AnalyzerRecords, known: Task | Campaign) -> bool:
    """Whether a task or a campaign has all its answers, and nothing of it waits to be read."""
    if isinstance(known, Campaign):
        return AnalyzerDesk({}, {known.id: known}).is_over(records, known.id)
    return AnalyzerDesk({known.id: known}).is_over(records, known.id)


def needed_keys(records: AnalyzerRecords) -> dict[str, list[str]]:
    """What still needs a key, by the text of the key's public half."""
    needed: dict[str, list[str]] = {}
    for known in going_on(records):
        is_campaign = isinstance(known, Campaign)
        keys = [known.public_key.text, *([known.signing_key.text] if isinstance(known, Campaign) else [])]
        for key in keys:
            needed.setdefault(key, []).append(f"{'campaign' if is_campaign else 'task'} {known.id[:12]}")
    return needed
