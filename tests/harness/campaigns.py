"""Random sequences of everything that can happen to campaigns beside tasks, checked after every step.

Devices answer by the newest model or by one that they kept, rounds are dropped, servers die inside any commit. After
every step each model is computed again from the released totals alone, and must be the one that was published.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from harness.machine import LEASE, Machine
from harness.model import Place, Seen, TrackedReport, must
from harness.world import MadeReport, open_here, rows
from shuffledp.continual.plan import CounterPlan
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.learn.live.rows import DeviceRows
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.learner import Cohort, Learner, OpenBatch, Round
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.making import make_reports
from shuffledp.service.models import Model as PublishedModel
from shuffledp.service.models import checked_model, model_of, round_of_model
from shuffledp.service.problems import RefusedError
from shuffledp.service.rounds import round_id, split_round
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.routing import batch_id as id_of
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, SignedText

DROP_AFTER = 4 * LEASE


def some_arms() -> Learner[Any]:
    """Two arms in batches of three: rounds that may be dropped."""
    return FixedBatches(arms=2, horizon=24, privacy=Privacy(4, 1e-2), batch=3, method="coins")


def some_fit() -> Learner[Any]:
    """Four rounds of three people: gradients of one coordinate."""
    ball = L2Ball(dimension=1, radius=2)
    limits = {"privacy": Privacy(50, 0.1), "visits": 1, "rounds": 4}
    return plan(Problem.of(LogisticLoss(), ball, users=12, **limits), solver="sgd")


def some_count() -> Learner[Any]:
    """A running count of twelve: one round, batches of two levels."""
    return CounterPlan.plan(users=12, shufflers=2, privacy=Privacy(8, 0.1), noise="coins").learner()


def some_bandit(model_age: int = 1) -> ConcurrentLinUCB:
    """A linear bandit of one feature, people of which may answer by the model before the newest."""
    setting = LinearSetting(users=20, dimension=1)
    return replace(ConcurrentLinUCB.planned(setting, Privacy(50, 0.1), shufflers=2), model_age=model_age)


ROWS = DeviceRows.of(["age"], bounds={"age": (0, 100)}, intercept=False, classes=["no", "yes"])
"""What a device of a fit may be handed."""


@cache
def repeated() -> Any:
    """Three rounds of the same four people, who may take part in all."""
    problem = Problem.of(
        LogisticLoss(), L2Ball(dimension=1, radius=2), users=4, privacy=Privacy(50, 0.1), visits=3, rounds=3
    )
    return plan(problem, solver="gd")


@cache
def promised_bandit() -> Any:
    """A linear bandit whose distance rests on features that are not negative."""
    setting = LinearSetting(users=8, dimension=1, nonnegative=True)
    return ShuffleVecLinUCB.planned(setting, Privacy(50, 0.1), batch=2)


@cache
def conditioned() -> Any:
    """A round of moments and two of gradients, of the same twelve people."""
    problem = Problem.of(LogisticLoss(), L2Ball(dimension=1, radius=2), users=12, privacy=Privacy(50, 0.1), rounds=3)
    return plan(problem, solver="conditioned")


@cache
def phased() -> Any:
    """Stages whose people are disjoint."""
    loss = LogisticLoss(ridge=1.0)
    problem = Problem.of(loss, L2Ball(dimension=1, radius=2), users=24, privacy=Privacy(50, 0.1), visits=1)
    return plan(problem, solver="phased-agd")


@cache
def returning() -> Any:
    """A linear bandit to which people come back once, slots of two."""
    setting = LinearSetting(users=8, dimension=1)
    return ShuffleVecLinUCB.planned(setting, Privacy(50, 0.1), batch=2, visits=2)


KINDS: dict[str, tuple[Callable[[], Learner[Any]], float | None]] = {
    "arms": (cache(some_arms), DROP_AFTER),
    "fit": (cache(some_fit), DROP_AFTER),
    "count": (cache(some_count), None),
    "bandit": (cache(some_bandit), None),
}


def some_values(task: Task | RoundTask, choice: random.Random) -> Any:
    """What somebody might report, encoded."""
    columns = getattr(task.plan.domain, "columns", 1)
    if columns == 1 and task.plan.protocol in ("binary-sum", "counter"):
        return np.array([choice.randint(0, 1)])
    row = np.array([choice.uniform(-1, 1) for _ in range(getattr(task.plan, "dimension", columns))])
    return row[np.newaxis] / max(1.0, float(np.linalg.norm(row)))


def again_from_totals(
    campaign: Campaign, totals: Mapping[tuple[str, str], Any]
) -> Iterator[tuple[Any, PublishedModel]]:
    """State and model, one after another, that released totals alone make, by round's and batch's ids; none dropped."""
    learner, number = campaign.learner, 0
    state = learner.start()
    while True:
        cohort = learner.ask(state)
        yield state, model_of(campaign, number, state, cohort)
        place = None if cohort is None else learner.round_of(state, cohort)
        if cohort is None or place is None:
            return
        due = due_batches(campaign, place, cohort)
        task_id = round_id(campaign.id, place.number, place.seating)
        if not due or not all((task_id, name) in totals for name in due):
            return
        told = {each.level: learner.told_from(totals[task_id, name], each.mechanism) for name, each in due.items()}
        state, number = learner.tell(state, cohort.users, told), number + 1


def due_batches(campaign: Campaign, place: Round, cohort: Cohort) -> dict[str, OpenBatch]:
    """The batches, by their ids, that close when all of a cohort have come."""
    end, _ = campaign.routing.layouts[place.seating].schedule.place_of(place.first + cohort.users)
    return {id_of(level, batch.first_slot, end): batch for level, batch in cohort.closing(cohort.users).items()}


@dataclass
class Tracked:
    """A campaign, and every model of it that was ever seen."""

    campaign: Campaign
    kind: str
    models: list[SignedText] = field(default_factory=list)
    shown: list[SignedText] = field(default_factory=list)
    """What devices were answered since the last step."""
    state: Any = None
    """Where the learner stands after the last of the models, told of the released totals."""
    dropped: set[str] = field(default_factory=set)
    """Rounds that were dropped."""
    served: dict[str, RoundTask] = field(default_factory=dict)
    is_done: bool = False


@dataclass
class CampaignMachine(Machine):
    """The machine of tasks, and campaigns beside them."""

    tracked: dict[str, Tracked] = field(default_factory=dict)
    longest_read: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        self.latest = self.world.clock.now()
        self.totals: dict[tuple[str, str], Any] = {}
        self.needed: list[tuple[str, str]] = []

    @property
    def acts(self) -> dict[Callable[[], None], int]:
        more = {self.move_clock: 3, self.take_seats: 30, self.add_campaign: 8, self.fetch: 4}
        more |= {self.work: 30, self.pass_deadline: 3, self.drop_late: 3}
        return super().acts | more

    @property
    def going(self) -> list[Tracked]:
        """Campaigns that still ask somebody."""
        return [each for each in self.tracked.values() if not each.is_done]

    @property
    def live(self) -> Mapping[str, Task | RoundTask]:
        rounds = {task_id: task for each in self.tracked.values() for task_id, task in each.served.items()}
        return {**super().live, **rounds}

    def is_over(self, task_id: str) -> bool:
        parts = split_round(task_id)
        return parts is not None and parts[0] in self.tracked and task_id in self.tracked[parts[0]].dropped

    # --- what happens ---------------------------------------------------------------------------

    def add_campaign(self) -> None:
        if len(self.going) >= 3:
            return
        kind = self.choice.choice(list(KINDS))
        make, drop_after = KINDS[kind]
        campaign = Campaign.create(
            make(),
            self.world.key.public,
            self.world.signing.public,
            bits=RandomBits.secure(),
            drop_after=drop_after,
            allow_unbounded=True,
        )
        self.tracked[campaign.id] = Tracked(campaign, kind)
        end = self.with_kill("analyzer", 10)
        self.world.analyzer.add_task(campaign.text)
        end()
        self.check()
        # Whoever adds it was not answered, and adds it again.
        self.world.add_task(campaign)

    def fetch(self) -> None:
        """A device fetches the newest model."""
        for each in self.going:
            self.shows(each)

    def shows(self, each: Tracked) -> None:
        """What a device is answered at this moment; looked at after the step."""
        newest = self.world.analyzer._newest.get(each.campaign.id)
        each.shown += [] if newest is None else [newest]

    def with_kill(self, role: str, longest: int, dies: Any = lambda: None) -> Any:
        def dying() -> None:
            # Somebody fetched the newest model at the last moment.
            if role == "analyzer":
                for each in self.going:
                    self.shows(each)
            dies()

        return super().with_kill(role, longest, dying)

    def some_task(self) -> Task | RoundTask | None:
        going = self.going
        if not going or self.choice.random() < 0.15:
            return super().some_task()
        each = self.choice.choice(going)
        # By the newest, or by one that was kept.
        known = [checked_model(found, each.campaign) for found in each.models[-3:]]
        if not known:
            return None
        model = known[-1] if self.choice.random() < 0.8 else self.choice.choice(known)
        task = round_of_model(each.campaign, model)
        if task is None:
            return None
        first = each.served.setdefault(task.id, replace(task, slots=None))
        return replace(first, slots=task.slots)

    def make(self, place: Place) -> MadeReport:
        task = place.task
        if isinstance(task, Task):
            return super().make(place)
        body = make_reports(task, some_values(task, self.choice), [place.batches], bits=self.world.bits)[0]
        pieces, start = {}, 0
        for batch in place.batches:
            end = start + batch.messages * CIPHERTEXT_BYTES
            cut = (body[at : at + CIPHERTEXT_BYTES] for at in range(start, end, CIPHERTEXT_BYTES))
            pieces[batch.batch_id], start = tuple(cut), end
        return MadeReport(body, pieces, dict.fromkeys(pieces, 0))

    def _answered(self, report: TrackedReport, answer: Any, refused: RefusedError | None) -> None:
        # A round that was dropped may be abandoned with the seats that it had.
        report.place.was_late |= self.is_over(report.place.task.id)
        super()._answered(report, answer, refused)

    def move_clock(self) -> None:
        super().move_clock()
        self.latest = max(self.latest, self.world.clock.now())

    def work(self) -> None:
        """All that both servers do in the background, one after the other."""
        self.seal()
        self.deliver()
        self.read()

    def pass_deadline(self) -> None:
        """Time passes until rounds are dropped, whatever is under way, and on whichever side it lies."""
        for act in (self.seal, self.deliver)[: self.choice.randint(0, 2)]:
            act()
        self.world.clock.move(DROP_AFTER)
        self.latest = max(self.latest, self.world.clock.now())
        for place in self.places:
            place.was_late |= place.ends <= self.world.clock.now()
        self.drop_late()

    def drop_late(self) -> None:
        end = self.with_kill("analyzer", 16)
        self.world.analyzer.drop_late()
        end()

    # --- what must hold -------------------------------------------------------------------------

    def check(self) -> None:
        for each in self.going:
            self._check_campaign(each)
        super().check()
        # Only now has all been looked at that was sealed in this step.
        must(set(self.needed) <= set(self.seen), "a total of a batch that nobody sealed")
        self.needed = []

    def _check_campaign(self, each: Tracked) -> None:
        campaign, store = each.campaign, self.world.stores["analyzer"]
        found = store.read(lambda records: records.models(campaign.id, -1, 10**6))
        served = store.read(lambda records: campaign.id in records.tasks())
        must(bool(found) == served, "a campaign is served without a model")
        must(found[: len(each.models)] == each.models, "a model was lost or changed")
        must(all(shown in found for shown in each.shown), "a model that a device was shown is lost")
        each.shown = []
        for place in range(len(each.models), len(found)):
            self._check_next(each, checked_model(found[place], campaign), place)
            each.models.append(found[place])
        if found:
            stored = store.read(lambda records: records.state(campaign.id))
            document = campaign.learner.start().document() if stored is None else stored["learner"]
            must(document == each.state.document(), "the learner's state is not that of the newest model")
            must(self.world.analyzer.newest_model(campaign.id) == found[-1], "not the newest model is shown")
        for task_id in each.dropped:
            read = rows(store, "SELECT COUNT(*) FROM batches WHERE task_id = ?", task_id)
            must(read == [(0,)], "a batch of a dropped round was kept or read")

    def _check_next(self, each: Tracked, model: PublishedModel, number: int) -> None:
        """The model must be what the released totals make of the one before."""
        campaign, learner = each.campaign, each.campaign.learner
        must(model.number == number, "models are not numbered one after another")
        if number == 0:
            each.state = learner.start()
        else:
            each.state = self._told(each)
            self.told["models"] += 1
        drops = campaign.waiting.seconds is not None
        closes = None if model.round is None else model.round.closes
        must((closes is not None) == (drops and model.round is not None), "a round without its end")
        again = model_of(campaign, number, each.state, learner.ask(each.state), closes=closes)
        must(again.document() == model.document(), "a model is not a function of what was released")

    def _told(self, each: Tracked) -> Any:
        """The learner's next state, by the totals on the analyzer's disk, or without them if the round was dropped."""
        campaign, learner, state = each.campaign, each.campaign.learner, each.state
        cohort = learner.ask(state)
        must(cohort is not None, "a model follows the last one")
        place = learner.round_of(state, cohort)
        must(place is not None, "nobody was asked, and a model follows")
        task_id = round_id(campaign.id, place.number, place.seating)
        closed = {}
        for name, batch in due_batches(campaign, place, cohort).items():
            total = self.world.stores["analyzer"].read(lambda records, name=name: records.totals(task_id, [name]))
            if not total:
                before = checked_model(each.models[-1], campaign)
                must(before.round is not None and before.round.closes is not None, "a model without a released batch")
                assert before.round is not None and before.round.closes is not None
                must(self.latest >= before.round.closes, "a round was dropped before its end")
                each.dropped.add(task_id)
                self.told["rounds dropped"] += 1
                closed[batch.level] = None
                continue
            self.needed.append((task_id, name))
            closed[batch.level] = learner.told_from(total[name].total, batch.mechanism)
        return learner.tell(state, cohort.users, closed)

    def total_of(self, task_id: str, batch_id: str, seen: Seen) -> Any:
        parts = split_round(task_id)
        if parts is None:
            return super().total_of(task_id, batch_id, seen)
        if (task_id, batch_id) not in self.totals:
            learner, task = self.tracked[parts[0]].campaign.learner, self.live[task_id]
            messages = open_here(self.world.key, seen.body, task_id, batch_id)
            must(messages.malformed == 0, "a message was altered")
            size = len(seen.reports)
            mechanism = task.plan.mechanism(size)
            labels = messages.labels if messages.labels.any() else None
            told, _ = mechanism.read(mechanism.tally(Batch(messages.payloads, size, labels)))
            self.totals[task_id, batch_id] = learner.told_document(told)
        return self.totals[task_id, batch_id]

    # --- the end of a campaign ------------------------------------------------------------------

    def retire(self) -> None:
        super().retire()
        for each in self.going:
            if not each.models or checked_model(each.models[-1], each.campaign).round is not None:
                continue
            self.drain()
            for report in self.reports.values():
                task_id = report.place.task.id
                if task_id in each.served and report.status == "acknowledged" and not self.is_over(task_id):
                    for batch in (batch for batch in report.place.batches if self._closes(each, report, batch)):
                        must((task_id, batch.batch_id) in self.totals, "an acknowledged report was never read")
            each.is_done = True
            for task in each.served.values():
                self.forget_task(task)
            each.served = {}
            self.told[f"{each.kind} finished"] += 1

    def _closes(self, each: Tracked, report: TrackedReport, batch: SeatInBatch) -> bool:
        """Whether so many people came that the batch is full."""
        task, learner = report.place.task, each.campaign.learner
        place = task.routing.find(batch.batch_id)
        came = min(task.routing.users, each.state.users) if learner.most_rounds == 1 else task.routing.users
        return place is not None and int(task.routing.schedule.users_by(place[2])) <= came
