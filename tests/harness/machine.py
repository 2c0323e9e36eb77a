"""Random sequences of everything that can happen to a shuffler and an analyzer, checked after every step.

Requests and answers are lost, copied and late; the clock is set forward and back; a server dies between any two
statements of its store, or with half of a commit written. `Model.check` says what must hold.
"""

import random
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.model import Model, Place, TrackedReport, WrongError, must
from harness.world import MadeReport, OpenerHere, World, accept_one, made_report, small_task, together
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.crypto import PublicKey
from shuffledp.service.problems import RefusedError
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.store.sqlite import open_analyzer_store
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import CIPHERTEXT_BYTES

LEASE = 60.0
SHAPES = ((24, 3), (12, 3))


def some_count(key: PublicKey, choice: random.Random) -> Task:
    """A running count of one of some shapes."""
    users, shufflers = choice.choice(SHAPES)
    return small_task(key, users=users, shufflers=shufflers)


@dataclass
class Machine(Model):
    """The driver: one random operation a step, sometimes with a kill inside it, then every invariant."""

    trace: list[str] = field(default_factory=list)
    new_task: Callable[[PublicKey, random.Random], Task] = some_count
    longest_read: int = 8
    """Statements of the commits that read a batch, about."""
    longest_seal: int = 12
    longest_send: int = 6

    def __post_init__(self) -> None:
        self.choice = random.Random(self.seed)
        self.last_move: float = 0
        self.wrong_by: float = 0
        self.wrong_for = 0

    def run(self, steps: int) -> None:
        try:
            for _ in range(steps):
                self.step()
            self.finish()
        except WrongError as wrong:
            raise WrongError(f"seed {self.seed}, step {len(self.trace)}: {wrong} after {self.trace[-12:]}") from wrong

    def step(self) -> None:
        if not self.tasks:
            self.add_task()
        acts = self.acts
        act = self.choice.choices(list(acts), weights=list(acts.values()))[0]
        self.wrong_for -= 1
        if self.wrong_by and self.wrong_for <= 0:
            act = self.move_clock
        self.trace.append(act.__name__)
        act()
        self.check()
        self.retire()

    @property
    def acts(self) -> dict[Callable[[], None], int]:
        """What may happen in a step, and how often it does."""
        return {
            self.take_seats: 22,
            self.send: 120 if self.wrong_by else 34,
            self.move_clock: 8,
            self.seal: 8,
            self.deliver: 10,
            self.read: 8,
            self.stray_delivery: 3,
            self.kill_between: 3,
            self.forget: 2,
            self.add_task: 2,
        }

    def with_kill(self, role: str, longest: int, dies: Any = lambda: None) -> Any:
        """In some steps a server dies somewhere inside it; answers what to call at the end."""
        if self.choice.random() > 0.2:
            return lambda: None
        kill = self.world.plan_kill(role, self.choice.randint(1, longest), self.choice, dies)
        self.trace[-1] += f" + {role} dies"

        def end() -> None:
            self.told[f"{role} killed {'inside' if kill.happened else 'after'} a step"] += 1
            self.world.restart(role, kill)

        return end

    def add_task(self) -> None:
        if len(self.tasks) < 2:
            task = self.new_task(self.world.key.public, self.choice)
            self.world.add_task(task)
            self.tasks.append(task)

    def some_task(self) -> Task | RoundTask | None:
        """What somebody sits down for; None where nothing is asked."""
        return self.choice.choice(self.tasks)

    def make(self, place: Place) -> MadeReport:
        """What somebody sends from this place."""
        assert isinstance(place.task, Task)
        return made_report(place.task, place.batches, bits=self.world.bits)

    def take_seats(self) -> None:
        task = self.some_task()
        if task is None:
            return
        answered: list[bool] = []
        asked: list[Future[Any]] = []
        end = self.with_kill("shuffler", 12, lambda: answered.append(bool(asked) and asked[0].done()))
        asked.append(self.world.shuffler.take_seats(task.id, self.choice.randint(1, 4), task.open_slots))
        seats, refused = _outcome(asked[0])
        end()
        if answered == [False] or self.choice.random() < 0.05:
            return
        if refused is not None:
            must(refused.kind.status in (409, 429), f"seats refused: {refused}")
            return
        for seat in seats:
            position = task.routing.position_of(seat.batches)
            must(position is not None and task.admits(position), "a seat was given that the device must refuse")
            place = Place(task, seat.seat, seat.batches, self.world.clock.now() + LEASE)
            for other in self.places:
                if other.spot == place.spot and not other.gone and other.batches:
                    must(other.was_late, "a seat was given away before its lease ran out")
                    other.gone = True
            self.places.append(place)

    def send(self) -> None:
        """Several reports in one commit: new, retried, refused before, late, or for a seat that has one."""
        chosen = [report for report in (self._some_report() for _ in range(self.choice.randint(1, 5))) if report]
        if not chosen:
            return
        done_at_kill: list[list[bool]] = []
        asked: list[Future[Any]] = []
        end = self.with_kill(
            "shuffler", 14 * len(chosen), lambda: done_at_kill.append([future.done() for future in asked])
        )
        store, shuffler = self.world.stores["shuffler"], self.world.shuffler
        submit = [(report.place.task.id, report.as_sent) for report in chosen]
        with suppress(RefusedError):
            # The request that holds the others up may die with them.
            together(store, lambda: asked.extend(accept_one(shuffler, *each) for each in submit))
        outcomes = [_outcome(future) for future in asked]
        if done_at_kill:
            # What was not answered when the server died never was.
            done = done_at_kill[0] or [False] * len(asked)
            outcomes = [outcome if sure else None for outcome, sure in zip(outcomes, done, strict=True)]  # type: ignore[misc]
        end()
        for report, outcome in zip(chosen, outcomes, strict=True):
            if outcome is not None and self.choice.random() > 0.1:
                self._answered(report, *outcome)

    def _some_report(self) -> TrackedReport | None:
        kind = self.choices(("new", "again", "second"), (70, 26, 4))
        if kind == "again" and self.reports:
            # After the clock went back, above all those that were late before.
            status = self.choices(("acknowledged", "refused", "unknown"), (1, 9 if self.last_move < 0 else 1, 1))
            return self.choice.choice(
                [report for report in self.reports.values() if report.status == status] or list(self.reports.values())
            )
        used = {report.place.seat for report in self.reports.values()}
        fresh = [place for place in self.places if (place.seat in used) == (kind == "second")]
        if not fresh:
            return None
        early = [place for place in fresh if not place.was_late] if self.choice.random() < 0.8 else []
        place = self.choice.choice(early or fresh)
        made = self.make(place)
        report = TrackedReport(self.world.new_id(), place, made)
        self.reports[report.report_id] = report
        for batch_id, piece in made.pieces.items():
            self.owner |= dict.fromkeys(piece, (report.report_id, batch_id))
        return report

    def choices(self, names: tuple[str, ...], weights: tuple[int, ...]) -> str:
        return self.choice.choices(names, weights)[0]

    def _answered(self, report: TrackedReport, answer: Any, refused: RefusedError | None) -> None:
        place, now = report.place, self.world.clock.now()
        if refused is None:
            self.told["acknowledged" if answer.new else "retried"] += 1
            must(report.status != "refused", "a report was refused with 410 and later accepted")
            if answer.new:
                must(report.status != "acknowledged", "an acknowledged report was new again")
                must(not place.gone, "a report was accepted for a seat that is gone")
                must(now < place.ends, "a report was accepted after its lease")
            report.status, place.gone = "acknowledged", True
        elif refused.kind.status == 410:
            self.told["refused"] += 1
            must(report.status != "acknowledged", "an acknowledged report was refused")
            others = any(
                other.place is place and other is not report and other.status != "refused"
                for other in self.reports.values()
            )
            must(place.gone or place.was_late or now >= place.ends or others, "a report in time was refused with 410")
            report.status, place.gone = "refused", place.gone or not others
        else:
            must(refused.kind.status == 429, f"refused: {refused}")
            self.told["busy"] += 1

    def move_clock(self) -> None:
        # On; or set forward by mistake, and back after a few steps.
        step = -self.wrong_by or self.choice.choice((1, 10, 30, LEASE, 2 * LEASE))
        self.wrong_by = 0
        if step >= LEASE and self.choice.random() < 0.5:
            self.wrong_by, self.wrong_for = step, self.choice.randint(2, 5)
        self.world.clock.move(step)
        self.last_move = step
        for place in self.places:
            place.was_late |= place.ends <= self.world.clock.now()

    def seal(self) -> None:
        end = self.with_kill("shuffler", self.longest_seal)
        self.world.shuffler.seal_full()
        end()

    def deliver(self) -> None:
        end = self.with_kill(self.choice.choice(("shuffler", "analyzer")), self.longest_send)
        fates = ("delivered", "lost", "answer lost", "twice", "refused")
        self.world.network.fate = lambda: self.choices(fates, (60, 15, 10, 10, 5))
        self.world.shuffler.send_waiting()
        self.world.network.fate = lambda: "delivered"
        end()

    def stray_delivery(self) -> None:
        """A copy that was under way for long, whole or altered."""
        if not self.world.network.sent:
            return
        task_id, batch_id, body = self.choice.choice(self.world.network.sent[-20:])
        if self.is_over(task_id):
            must(not self.world.analyzer.deliver(task_id, batch_id, body), "a batch of a dropped round was taken")
            self.told["stray of a dropped round"] += 1
            return
        known = self.kept(task_id, batch_id) is not None
        must(self.world.analyzer.deliver(task_id, batch_id, body) is not known, "a copy was taken for another batch")
        try:
            self.world.analyzer.deliver(task_id, batch_id, body[CIPHERTEXT_BYTES:] + body[:CIPHERTEXT_BYTES])
        except RefusedError as refused:
            must(refused.kind.status == 409, f"another order was refused: {refused}")
        else:
            must(False, "another order was taken under a known id")
        self.told["stray"] += 1

    def read(self) -> None:
        end = self.with_kill("analyzer", self.longest_read)
        self.world.analyzer.read_all()
        end()

    def forget(self) -> None:
        for store in self.world.stores.values():
            store.forget()

    def kill_between(self) -> None:
        role = self.choice.choice(("shuffler", "analyzer"))
        self.world.restart(role, self.world.plan_kill(role, 10**9, self.choice))
        self.told[f"{role} killed between steps"] += 1

    def retire(self) -> None:
        """A task whose seats are all used is finished, compared with an analyzer that had no faults, and forgotten."""
        for task in list(self.tasks):
            acknowledged = sum(
                report.status == "acknowledged" and report.place.task is task for report in self.reports.values()
            )
            if acknowledged == task.routing.users:
                self.drain()
                self.compare(task)
                self.drop(task)

    def drain(self) -> None:
        self.world.shuffler.seal_full()
        must(self.world.shuffler.send_waiting(), "something waits although the network is well")
        self.world.analyzer.read_all()
        self.check()

    def compare(self, task: Task) -> None:
        expected = {
            batch.batch_id
            for report in self.reports.values()
            for batch in report.place.batches
            if report.place.task is task and report.status == "acknowledged" and _can_fill(task, batch)
        }
        bodies = {batch_id: seen.body for (task_id, batch_id), seen in self.seen.items() if task_id == task.id}
        must(set(bodies) == expected, "a full batch was not sealed, or one that is not was")
        folder = self.world.folder / "calm"
        folder.mkdir()
        store = open_analyzer_store(str(folder / "a.db"))
        calm = AnalyzerServer(store, key=self.world.key, opener=OpenerHere(self.world.key))
        calm.add_task(task.text)
        for batch_id, body in bodies.items():
            calm.deliver(task.id, batch_id, body)
        calm.read_all()
        history = calm.history(task.id, 0, 10**6)
        calm.stop()
        shutil.rmtree(folder)
        must(len(history) > 0, "nothing was released")
        must(self.world.analyzer.history(task.id, 0, 10**6) == history, "faults changed what was released")
        self.told["tasks finished"] += 1

    def drop(self, task: Task) -> None:
        self.tasks.remove(task)
        self.forget_task(task)

    def forget_task(self, task: Task | RoundTask) -> None:
        """Nothing of it is looked at any more, so that checking stays quick."""
        self.places = [place for place in self.places if place.task.id != task.id]
        for report_id in [key for key, report in self.reports.items() if report.place.task.id == task.id]:
            for piece in self.reports.pop(report_id).made.pieces.values():
                for ciphertext in piece:
                    del self.owner[ciphertext]
        self.seen = {key: seen for key, seen in self.seen.items() if key[0] != task.id}
        self.world.network.sent = [each for each in self.world.network.sent if each[0] != task.id]
        self.checked_sent = len(self.world.network.sent)
        for store in self.world.stores.values():
            self.look.delete(store, task.id)

    def finish(self) -> None:
        self.trace.append("finish")
        self.drain()


def _outcome(future: "Future[Any]") -> tuple[Any, RefusedError | None]:
    try:
        return future.result(timeout=30), None
    except RefusedError as refused:
        return None, refused


def _can_fill(task: Task, batch: SeatInBatch) -> bool:
    place = task.routing.find(batch.batch_id)
    return place is not None and int(task.routing.schedule.users_by(place[2])) <= task.routing.users


def run(
    folder: Path,
    seed: int,
    steps: int,
    new_task: Callable[[PublicKey, random.Random], Task] = some_count,
    *,
    kind: type[Machine] = Machine,
    most_waiting_bytes: int = 20 * 18 * 3 * CIPHERTEXT_BYTES,
    **world: Any,
) -> Machine:
    """So many random steps in a new world, and the machine that took them."""
    made = World(folder / str(seed), lease_seconds=LEASE, most_waiting_bytes=most_waiting_bytes, **world)
    machine = kind(made, seed, new_task=new_task)
    try:
        machine.run(steps)
    finally:
        made.close()
    return machine
