"""What a store must offer to a client: an outbox of reports that no server has acknowledged yet, and visits."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from shuffledp.service.wire import SentReport


@dataclass(frozen=True, slots=True)
class Visit:
    """One time that a device took part in a campaign: its number, from 0, and in which slot of which round."""

    number: int
    seating: int
    round: int
    slot: int


class Outbox(ABC):
    """A client's reports that no server has acknowledged yet, as the bytes that were or will be sent.

    A report is written here before it is sent for the first time; whatever happens then, the same bytes are sent again
    until they are acknowledged, so that nobody is randomized twice. The values themselves are never here, nor is
    anything to decrypt a report with: only the analyzer could read it.

    A report that comes back refused (its seat's lease ran out, so that it never reached and will never reach anybody)
    needs a new seat and new noise, hence the value again. While the client runs it has the value. After a restart it
    has not: the report leaves the outbox, is counted as refused, and may be reported again. For a stream of values
    with a name, such as a file's column, the outbox knows how many rows have been randomized and which of them were
    refused: reporting the same stream again goes on where it stopped.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of the outbox; what waits in it stays there."""

    @abstractmethod
    def put(
        self, task_id: str, reports: Sequence[SentReport], stream: str | None = None, rows: Sequence[int] = ()
    ) -> None:
        """Keep new reports, all or none, durable when this returns.

        Args:
            task_id: the task that they are for.
            reports: the reports.
            stream: the name of the stream that their values come from.
            rows: the reports' places in the stream.
        """

    @abstractmethod
    def first(self, task_id: str, most: int, most_bytes: int) -> list[SentReport]:
        """Some reports that wait, at least one if there are any."""

    @abstractmethod
    def remove(self, report_ids: Sequence[str]) -> None:
        """Forget reports that were acknowledged."""

    @abstractmethod
    def refuse(self, report_ids: Sequence[str]) -> None:
        """Forget the bytes of reports that were refused for good; those of a stream leave their row."""

    @abstractmethod
    def waiting(self, task_id: str) -> int:
        """How many reports wait to be acknowledged."""

    @abstractmethod
    def rows_done(self, task_id: str, stream: str) -> int:
        """How many rows of a stream were randomized before."""

    @abstractmethod
    def rows_refused(self, task_id: str, stream: str) -> list[int]:
        """Those rows of a stream that were randomized before and reached nobody."""

    # --- campaigns: where this device took part, which no server knows -------------------------

    @abstractmethod
    def visits(self, campaign_id: str) -> list[Visit]:
        """Where this device took part in a campaign, in the order of their numbers."""

    @abstractmethod
    def sit(self, campaign_id: str, visit: Visit, instead_of: Visit | None = None) -> bool:
        """Remember a visit, durable when this returns; False, and nothing happens, where another has its number.

        Args:
            campaign_id: the campaign.
            visit: where the device takes part.
            instead_of: the visit of this number whose seat was gone, which this one takes the place of.
        """

    @abstractmethod
    def newest_seen(self, campaign_id: str) -> int:
        """The largest number of a model that this device has seen; 0 if none."""

    @abstractmethod
    def see(self, campaign_id: str, number: int) -> None:
        """Remember that a model of this number was seen."""

    @abstractmethod
    def waiting_tasks(self) -> list[str]:
        """The tasks and rounds for which reports wait to be acknowledged."""
