"""A device: fetches the newest model, chooses or computes by itself, takes a seat, and reports, randomized and sealed.

The life of a choice: the newest model is fetched, over a connection that carries no token and no cookie; the offer is
chosen here; when the reward is known, it is made into a vector with the offer's features, a seat is taken in a slot
that may answer by this model, where and how often this device took part is written down, and the vector is randomized
for the seat's batches, sealed and sent, by the same rules as any report (`shuffledp.service.client`). Context, choice
and reward are never written anywhere.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal, Self

import httpx
import numpy as np

from shuffledp.errors import DataError, ParameterError, RandomnessError, ShuffleDPError
from shuffledp.learn.live.rows import ROW_STEPS
from shuffledp.learn.steps import compute, joint_vectors
from shuffledp.protocols.learner import DeviceStep
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.calls import TIMEOUT, AnswerError, Calls, NotTheServersError, check_url
from shuffledp.service.client.client import Client, ReportError, Sent
from shuffledp.service.client.relayed import Relay
from shuffledp.service.device.choosing import DeviceChoice, choose_among
from shuffledp.service.models import Model, checked_model, round_of_model
from shuffledp.service.problems import PASS_SPENT, SEATS_LATER, TASK_FULL
from shuffledp.service.routing import Seat
from shuffledp.service.store import open_outbox
from shuffledp.service.store.outboxes import Outbox, Visit
from shuffledp.service.task import RoundTask
from shuffledp.service.wire import SignedText

Status = Literal["reported", "late", "not asked", "took part"]
"""Its report is on the shuffler's disk; people who came before took all seats that may answer by this model; nobody is
asked any more; or this device took part as often as it may."""

# A clock that is further off than this cannot say whether a round is over.
_CLOCK_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an answer.

    Attributes:
        status: "reported", or why nothing was sent.
        model: the number of the model that was answered by.
    """

    status: Status
    model: int

    @property
    def is_reported(self) -> bool:
        """Whether the shuffler has it."""
        return self.status == "reported"


class TookPartError(ShuffleDPError):
    """A device took part in this very slot before, or by another call meanwhile."""


class Device:
    """One person's device in one campaign; one call at a time.

    Args:
        campaign: what is learned, by whom, and how.
        shuffler: where reports go; https unless it is this machine.
        analyzer: where models are, or any cache of it.
        token: the secret of the role enrol; where the campaign names an issuer, that issuer's tokens instead, one for
            every visit.
        memory: where it is kept how often this device took part, and reports that wait to be acknowledged: a file,
            another address of an outbox, or an open one, which stays open. None for memory, which protects a person
            who comes back only as long as the process lives.
        http: what sends reports; one of its own if it is left out.
        models_http: what fetches models; never the same connection.
        bits: where noise comes from; must be secure, and is if it is left out.
        patience: for how many seconds a request that fails in passing is tried again.
        sleep: what waits between tries.
        clock: the seconds since the epoch.
        relay: who carries reports, so that the shuffler does not see where they come from; models are fetched directly.

    Raises:
        RandomnessError: the bits are seeded.
        ParameterError: an address or a token that cannot be one, or a memory that cannot be opened.
    """

    def __init__(
        self,
        campaign: Campaign,
        *,
        shuffler: str,
        analyzer: str,
        token: str | Sequence[bytes],
        memory: Outbox | Path | str | None = None,
        http: httpx.Client | None = None,
        models_http: httpx.Client | None = None,
        bits: RandomBits | None = None,
        patience: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        relay: Relay | None = None,
    ) -> None:
        bits = RandomBits.secure() if bits is None else bits
        if not bits.is_secure:
            raise RandomnessError("A device draws its noise from secure bits only: seeded ones protect nobody.")
        if http is not None and http is models_http:
            problem = "must not be what sends reports: one connection would link them"
            raise ParameterError("models_http", "the same", problem, "pass another, or none")
        self.campaign = campaign
        self._shuffler, self._token = check_url(shuffler, "shuffler"), token
        self._bits, self._patience, self._sleep, self._clock = bits, patience, sleep, clock
        self._relay = relay
        self._owned: list[Any] = []
        self._http = self._own(http, lambda: httpx.Client(timeout=TIMEOUT))
        fetching = self._own(models_http, lambda: httpx.Client(timeout=TIMEOUT))
        self._fetch = Calls(check_url(analyzer, "analyzer"), None, fetching, bits, patience, sleep)
        self._outbox: Outbox = self._own(memory if isinstance(memory, Outbox) else None, lambda: open_outbox(memory))  # type: ignore[arg-type]
        self._newest: tuple[SignedText, Model] | None = None

    def _own(self, given: Any, make: Callable[[], Any]) -> Any:
        """What was given, or one of its own, which is closed with it."""
        if given is not None:
            return given
        self._owned.append(make())
        return self._owned[-1]

    def __repr__(self) -> str:
        return f"Device(campaign {self.campaign.id[:12]} at {self._shuffler})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections and of the memory; what is in a file stays there."""
        for each in self._owned:
            each.close()

    # --- what an application calls --------------------------------------------------------------

    def model(self) -> Model:
        """The newest model, checked; whatever kept it on the way.

        Raises:
            DataError: a wrong signature, another campaign, or a number below one that was seen.
            UnreachableError: nobody answered for as long as patience lasted.
        """
        known = self._newest
        # Only what the model itself says is sent back: a tag of somebody's own making would be a name.
        tag = None if known is None else f'"{known[0].signature}"'
        found = self._fetched(tag)
        if found is None:
            assert known is not None
            return known[1]
        model = checked_model(found, self.campaign, self._outbox.newest_seen(self.campaign.id))
        self._outbox.see(self.campaign.id, model.number)
        self._newest = (found, model)
        return model

    def choose(self, context: Any = None, offers: Any = None) -> DeviceChoice:
        """The offer that is best for this person by the newest model; nothing is sent but the request for the model.

        Args:
            context: numbers that describe the person and the moment; None where offers say all, or there are arms.
            offers: a row of numbers for each offer, none longer than 1 (with a context, none of their products).

        Raises:
            DataError: features of another dimension, longer than 1 or not finite; or a model that is not to be trusted.
            ParameterError: the campaign does not ask for choices.
        """
        model = self.model()
        step = self._step(model, "choose", "pull")
        if step.name == "pull":
            return DeviceChoice(int(step.parameters["arm"]), model)
        return choose_among(model, context, offers, bits=self._bits)

    def reward(self, choice: DeviceChoice, reward: Any) -> Outcome:
        """Report what came of a choice.

        Args:
            choice: what `choose` answered.
            reward: in [0, 1], or whether it was a success.

        Returns:
            Whether it was reported, or why not: nothing is sent then.

        Raises:
            DataError: a reward outside its range.
            ReportError: it was not acknowledged; the error says whether it waits in the memory.
        """
        step = self._step(choice.model, "choose", "pull")
        number = _reward(reward, step.parameters.get("joint", {}).get("lowest_reward", 0.0))
        if step.name == "pull":
            value = compute(step, lambda arm: np.array([number]), bits=self._bits)
        else:
            assert choice.features is not None
            value = joint_vectors(step.parameters, choice.features[np.newaxis], np.array([number]))
        return self._report(choice.model, value)

    def contribute(self, row: Any, label: Any) -> Outcome:
        """Send one clipped gradient of this person's loss at the newest model's point.

        Args:
            row: the person's columns, by name or in order.
            label: the person's class or number.

        Returns:
            Whether it was reported, or why not: nothing is sent then.

        Raises:
            DataError: a row or a label that is none of those declared.
            ReportError: it was not acknowledged; the error says whether it waits in the memory.
        """
        rows = self.campaign.rows
        own = (np.atleast_2d(row), np.atleast_1d(label)) if rows is None else rows.prepared(row, label)
        model = self.model()
        if model.round is None:
            return Outcome("not asked", model.number)
        step = self._step(model, *ROW_STEPS)
        return self._report(model, compute(step, own, bits=self._bits))

    def report(self, value: Any) -> Outcome:
        """Report this person's value, where the campaign is a statistic.

        Args:
            value: as the plan's domain has it: a number, a category's name, or a row of numbers.
        """
        model = self.model()
        task = round_of_model(self.campaign, model)
        if task is None:
            return Outcome("not asked", model.number)
        step = self._step(model, "report")
        own = task.plan.check_values(task.plan.encode(np.asarray(value)[np.newaxis]))
        return self._report(model, compute(step, own, bits=self._bits))

    def flush(self) -> Sent:
        """Send what waits in the memory, as it is; what is refused leaves it and is counted.

        Raises:
            ReportError: some were not acknowledged, and still wait.
        """
        total = Sent()
        for task_id in self._outbox.waiting_tasks():
            task = self.campaign.round_of_id(task_id)
            if task is not None:
                with self._client(task) as client:
                    sent = client.flush()
                for name in ("reports", "new", "retried", "refused"):
                    setattr(total, name, getattr(total, name) + getattr(sent, name))
        return total

    @property
    def visits(self) -> int:
        """How often this device took part."""
        return len(self._outbox.visits(self.campaign.id))

    # --- how it is done -------------------------------------------------------------------------

    def _step(self, model: Model, *names: str) -> DeviceStep:
        if model.step is None or model.step.name not in names:
            found = None if model.step is None else model.step.name
            calls = {"choose": "choose and reward", "pull": "choose and reward", "report": "report", None: "model"}
            raise ParameterError(
                "campaign",
                self.campaign.id[:12],
                f"asks devices for {found or 'nothing any more'}",
                f"call {calls.get(found, 'contribute')}",
            )
        return model.step

    def _fetched(self, tag: str | None) -> SignedText | None:
        """The newest model as it was sent; None where it is the one with this tag."""
        path = f"/v1/campaigns/{self.campaign.id}/models/newest"
        backoff = self._fetch.backoff()
        while True:
            try:
                response = self._fetch.once("GET", path, tag=tag)
                if response.status_code == 304 and tag is not None:
                    return None
                if response.status_code == 404:
                    raise AnswerError(404, "task-unknown", "the analyzer does not serve this campaign")
                if response.is_success:
                    self._check_clock(response)
                    return SignedText.from_document(response.json())
                why = f"{self._fetch.url} answers {response.status_code}"
            except (httpx.HTTPError, NotTheServersError) as broken:
                why = f"{self._fetch.url} cannot be reached ({type(broken).__name__}: {broken})"
            except ParameterError:
                # What is no model, or this device's clock: trying again is of no use.
                raise
            except ValueError:
                why = f"{self._fetch.url} does not answer as an analyzer does"
            backoff.wait(why)

    def _check_clock(self, response: httpx.Response) -> None:
        """Where rounds end at a time, a device whose clock is far off cannot tell."""
        if self.campaign.waiting.seconds is None:
            return
        try:
            sent = parsedate_to_datetime(response.headers["date"]).timestamp()
            there = sent + float(response.headers.get("age", 0))
        except (KeyError, ValueError, TypeError):
            return
        off = self._clock() - there
        if abs(off) > _CLOCK_SECONDS:
            problem = f"is {abs(off):,.0f} s {'ahead of' if off > 0 else 'behind'} the analyzer's"
            raise ParameterError("clock", "this device's", problem, "set it, and try again: nothing was sent")

    def _client(
        self, task: RoundTask, seated: Callable[[list[Seat]], None] = lambda seats: None, visit: int = 0
    ) -> Client:
        return Client(
            task,
            self._shuffler,
            self._token if isinstance(self._token, str) else self._token[visit : visit + 1],
            self._outbox,
            self._http,
            self._bits,
            patience=self._patience,
            sleep=self._sleep,
            seated=seated,
            relay=self._relay,
        )

    def _report(self, model: Model, values: Any) -> Outcome:
        task = round_of_model(self.campaign, model)
        if task is None or model.round is None:
            return Outcome("not asked", model.number)
        if model.round.closes is not None and self._clock() >= model.round.closes:
            return Outcome("late", model.number)
        if len(values) != 1:
            # Each would take a seat, and the visit that is written down is one.
            raise DataError("row", f"{len(values)} rows", "must be one person's", "send one: nothing was sent")
        place, visits = model.round, self._outbox.visits(self.campaign.id)
        if not self._may_visit(place.seating, visits):
            return Outcome("took part", model.number)
        # Whoever would be seated where it took part already takes no seat: somebody else needs it.
        last = task.slot_of(task.routing.users - 1)
        seen = {visit.slot for visit in visits if visit.round == place.number}
        if seen.issuperset(range(place.first_slot, min(place.end_slot, last + 1))):
            return Outcome("took part", model.number)

        gone: Visit | None = None

        def seated(seats: list[Seat]) -> None:
            """Written down before anything is randomized: at no time did this device take part unnoticed."""
            nonlocal gone
            position = task.routing.position_of(seats[0].batches)
            assert position is not None
            here = Visit(len(visits), place.seating, place.number, task.slot_of(position))
            if any((each.round, each.slot) == (here.round, here.slot) for each in visits):
                raise TookPartError("This device took part in this very slot: once is all that the guarantee counts.")
            if not self._outbox.sit(self.campaign.id, here, gone):
                raise TookPartError(
                    "Another call by this memory took part meanwhile: it counts, and this one does not."
                )
            gone = here

        with self._client(task, seated, len(visits)) as client:
            try:
                client.report_prepared(values)
            except TookPartError:
                return Outcome("took part", model.number)
            except ReportError as stopped:
                cause = stopped.cause
                if isinstance(cause, AnswerError) and cause.kind in (SEATS_LATER.name, TASK_FULL.name):
                    return Outcome("late", model.number)
                if isinstance(cause, AnswerError) and cause.kind == PASS_SPENT.name:
                    return Outcome("took part", model.number)
                raise
        return Outcome("reported", model.number)

    def _may_visit(self, seating: int, visits: list[Visit]) -> bool:
        """Whether the guarantee leaves room for one visit more."""
        own = self.campaign.seatings[seating]
        if any(self.campaign.seatings[visit.seating].group != own.group for visit in visits):
            return False
        return sum(visit.seating == seating for visit in visits) < own.visits and len(visits) < own.in_all


def _reward(reward: Any, lowest: float) -> float:
    # What it was is the person's: it is not shown.
    try:
        number = float(reward)
    except (TypeError, ValueError):
        number = float("nan")
    if not lowest <= number <= 1:
        problem = f"must be a number in [{lowest:g}, 1]"
        raise DataError("reward", "one beyond, or no number", problem, "scale it first: nothing was sent")
    return number
