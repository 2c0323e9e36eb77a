"""What is left of the messages of a part: the task of `shuffledp.jobs.analyzing`, which needs little to be started."""

from collections.abc import Iterable
from dataclasses import dataclass

from shuffledp.jobs.parts import FilePart, columns_of
from shuffledp.jobs.rows import numbers_of
from shuffledp.messages import Batch
from shuffledp.protocols.tallies import Tallier, Tally

# As many messages as stay in a core's cache until they are counted.
TALLIED_ROWS = 1 << 18
_TOGETHER = 64


def added(several: Iterable[Tally]) -> Tally:
    """One tally of several parts."""
    return Tally.merge(several)


@dataclass(frozen=True, slots=True)
class TallyingPart:
    """The task of a part.

    Attributes:
        tallier: what counts, for a plan.
        columns: the columns of numbers and perhaps labels, as they are called in the files.
        is_labelled: whether the plan's messages have labels.
    """

    tallier: Tallier
    columns: tuple[str, ...]
    is_labelled: bool

    def __call__(self, part: FilePart) -> Tally:
        found = list[Tally]()
        for some in columns_of(part, self.columns, TALLIED_ROWS):
            payloads, *others = (numbers_of(cells, name) for cells, name in zip(some, self.columns, strict=True))
            # Where messages carry no labels, one that has a label is another message than the plan's.
            labels = others[0] if others and (self.is_labelled or others[0].any()) else None
            found.append(self.tallier(Batch(payloads, 0, labels)))
            if len(found) == _TOGETHER:
                found = [Tally.merge(found)]
        return Tally.merge(found)
