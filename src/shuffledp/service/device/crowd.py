"""Many people's devices in one process: for demonstrations, tests and benchmarks.

Everybody does what a device does (`shuffledp.service.device.device`), by the same functions: the newest model is
fetched and checked, the choice or the gradient is computed with bits of one's own, a seat is taken in a slot that may
answer by that model, and the report is randomized and sealed for it. People who come together are rows of one array.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx
import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ShuffleDPError
from shuffledp.learn.steps import chosen_arms, compute, joint_vectors
from shuffledp.protocols.learner import DeviceStep
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.calls import TIMEOUT, AnswerError
from shuffledp.service.client.client import Client, ReportError
from shuffledp.service.device.device import Device
from shuffledp.service.models import Model, round_of_model
from shuffledp.service.problems import SEATS_LATER, TASK_FULL
from shuffledp.service.store import open_outbox
from shuffledp.service.task import RoundTask

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Act = Callable[[DeviceStep, Places], Any]
"""What the people at these places make of a step: values of the round's plan, an entry or a row a person."""

# So often the newest model is asked for while everybody waits for it, and for so long.
_PAUSE, _LONGEST_WAIT = 0.02, 600.0


@dataclass(frozen=True, slots=True)
class Came:
    """People who acted by a model.

    Attributes:
        model: the model's number.
        places: who they are, among all who were to come.
        reported: whether their reports are on the shuffler's disk: those who come when nobody is asked any more choose
            by the last model, and report nothing.
    """

    model: int
    places: Places
    reported: bool = True


class Crowd:
    """People who come once each; one call at a time.

    Args:
        campaign: what is learned, by whom, and how.
        shuffler: where reports go.
        analyzer: where models are.
        token: the secret of the role enrol; where the campaign names an issuer, that issuer's tokens instead, one for
            each who comes.
        http: what sends reports; one of its own if it is left out.
        models_http: what fetches models; never the same connection.
        bits: where noise comes from; must be secure, and is if it is left out.
        patience: for how many seconds a request that fails in passing is tried again.
        sleep: what waits between tries, and for the next model.

    Raises:
        RandomnessError: the bits are seeded.
        ParameterError: an address or a token that cannot be one.
    """

    def __init__(
        self,
        campaign: Campaign,
        *,
        shuffler: str,
        analyzer: str,
        token: str | Sequence[bytes],
        http: httpx.Client | None = None,
        models_http: httpx.Client | None = None,
        bits: RandomBits | None = None,
        patience: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.campaign = campaign
        self.bits = RandomBits.secure() if bits is None else bits
        self._owns_http = http is None
        self._http = http or httpx.Client(timeout=TIMEOUT)
        reaching: dict[str, Any] = {"token": token, "http": self._http, "bits": self.bits}
        self._reaching = {**reaching, "patience": patience, "sleep": sleep}
        self._shuffler, self._sleep = shuffler, sleep
        # Whoever comes fetches what this one does; nobody's memory is needed, as nobody comes twice.
        self._first = Device(campaign, shuffler=shuffler, analyzer=analyzer, models_http=models_http, **self._reaching)
        self._outbox = open_outbox(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections."""
        self._first.close()
        self._outbox.close()
        if self._owns_http:
            self._http.close()

    def come(self, people: int, act: Act, *, together: int | None = None) -> Iterator[Came]:
        """Everybody in turn: fetch the newest model, act by it, report; whoever is late comes again by the next one.

        Args:
            people: how many come.
            act: what they do; of those who are late it is asked again, by the model after.
            together: how many at a time at most; all who sit in the open slots if it is left out.

        Returns:
            Who acted by which model, some at a time; those who come when nobody is asked any more last.

        Raises:
            ReportError: the shuffler does not take reports.
            ShuffleDPError: no next model comes.
        """
        waiting, model = np.arange(people), self._first.model()
        while waiting.size and (task := round_of_model(self.campaign, model)) is not None:
            here = waiting[: _seats_of(task) if together is None else min(together, _seats_of(task))]
            assert model.step is not None
            late = self._reported(task, act(model.step, here), here)
            came = np.delete(here, late)
            if came.size:
                yield Came(model.number, came)
            waiting = np.concatenate((here[late], waiting[here.size :]))
            if waiting.size:
                model = self._next(model) if late.size else self._first.model()
        if waiting.size and model.step is not None:
            act(model.step, waiting)
            yield Came(model.number, waiting, reported=False)

    def _reported(self, task: RoundTask, values: Any, people: Places) -> Places:
        """The places, among these people, of those who are late."""
        token = self._reaching["token"]
        own = token if isinstance(token, str) else [token[person] for person in people]
        with Client(task, self._shuffler, outbox=self._outbox, **{**self._reaching, "token": own}) as client:
            try:
                client.report_prepared(values)
            except ReportError as stopped:
                cause = stopped.cause
                if isinstance(cause, AnswerError) and cause.kind in (SEATS_LATER.name, TASK_FULL.name):
                    return np.sort(np.array(stopped.rows, dtype=np.intp))
                raise
        return np.zeros(0, dtype=np.intp)

    def _next(self, last: Model) -> Model:
        """The model after this one, as soon as it is there."""
        ends = time.monotonic() + _LONGEST_WAIT
        while (model := self._first.model()).number == last.number:
            if time.monotonic() > ends:
                waited = f"no model came after number {last.number} in {_LONGEST_WAIT:g} s"
                raise ShuffleDPError(f"{waited}: the servers' logs say why, or too few people come.")
            self._sleep(_PAUSE)
        return model

    # --- what people do, as a device does ---------------------------------------------------------

    def choose(self, step: DeviceStep, offered: Floats) -> Places:
        """Which of the offers, (people, offers, dimension), each takes by a linear bandit's model."""
        return np.asarray(chosen_arms(step.parameters, offered, bits=self.bits))

    def rewarded(self, step: DeviceStep, features: Floats, rewards: Any) -> Floats:
        """What they report of the features that they took, (people, dimension), and of their rewards."""
        return joint_vectors(step.parameters, features, rewards)

    def gradients(self, step: DeviceStep, rows: Any, labels: Any) -> Any:
        """What they report of their rows and labels: a clipped gradient each."""
        declared = self.campaign.rows
        if declared is None:
            return compute(step, (rows, labels), bits=self.bits)
        prepared = [declared.prepared(row, label) for row, label in zip(rows, labels, strict=True)]
        own = tuple(np.concatenate(parts) for parts in zip(*prepared, strict=True))
        return compute(step, own, bits=self.bits)


def _seats_of(task: RoundTask) -> int:
    """How many people the open slots have."""
    assert task.slots is not None
    first, end = task.slots
    return task.routing.users_by(end) - task.routing.users_by(first)
