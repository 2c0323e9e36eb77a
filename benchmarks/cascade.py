"""A cascade beside one shuffler, in one run: a device's CPU and bytes a report, a hop's CPU a message, and throughput.

All parties run in this process, one after the other, so that CPU seconds are whoever's turn it is; `--kills N` kills
hops that are processes of their own in turn, N times each, and counts every report.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from report import figure, report, shown

from shuffledp import BinarySum, Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.client.making import make_reports
from shuffledp.service.task import Task

# The tests' own cascade in one process.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from faults.test_cascade_kill import survived
from harness.cascade import Cascade
from harness.world import accept_reports
from shuffledp.service.problems import RefusedError
from shuffledp.service.wire import SentReport, new_id

BITS = RandomBits.secure()


class Run:
    """One batch through a chain of so many hops; 1 is today's shuffler, without layers. CPU seconds of each party."""

    def __init__(self, folder: Path, users: int, hops: int) -> None:
        plan = BinarySum.plan(users=users, privacy=Privacy(1, 1e-6), method="coins")
        cascade = Cascade(folder / f"{hops} hops", hops=hops)
        layered = cascade.public if hops > 1 else []
        self.task = task = cascade.serve(Task.create(plan, cascade.key.public, bits=BITS, hops=layered))
        self.messages = users * task.routing.longest_report_messages
        first = cascade.servers[1]
        seats = [seat for _ in range(-(-users // 500)) for seat in first.take_seats(task.id, 500).result()][:users]
        values = np.arange(users) % 2
        self.device, bodies = _cpu(lambda: make_reports(task, values, [seat.batches for seat in seats], bits=BITS))
        self.bytes = len(bodies[0])
        sent = [SentReport(new_id(bits=BITS), seat.seat, body) for seat, body in zip(seats, bodies, strict=True)]

        def accept() -> None:
            for start in range(0, users, 500):
                answers = accept_reports(first, task.id, sent[start : start + 500]).result()
                assert not any(isinstance(answer, RefusedError) for answer in answers)

        self.accepting, _ = _cpu(accept)
        self.sealing = [_cpu(server.seal_full)[0] for number, server in self._in_turn(cascade)]
        self.reading, _ = _cpu(cascade.analyzer.read_all)
        assert cascade.malformed == 0 and cascade.analyzer.progress(task.id).batches_read == 1
        cascade.close()

    def _in_turn(self, cascade: Cascade):
        """Each hop when the one before has sent its batch; sending is the next one's receiving, and counted apart."""
        self.sending = []
        for number, server in cascade.servers.items():
            yield number, server
            self.sending.append(_cpu(server.send_waiting)[0])

    @property
    def parties(self) -> list[float]:
        """CPU seconds of each server: hops in turn, then the analyzer; what is sent is half the next one's."""
        halves = [seconds / 2 for seconds in self.sending]
        taken = [self.accepting, *halves[:-1]]
        hops = [sum(each) for each in zip(taken, self.sealing, halves, strict=True)]
        return [*hops, halves[-1] + self.reading]


def _cpu(act: Callable):
    started = time.process_time()
    found = act()
    return time.process_time() - started, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1500)
    parser.add_argument("--kills", type=int, default=0, help="kill every hop so many times under load")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        one, two, three = (Run(Path(place), given.users, hops) for hops in (1, 2, 3))
    per_message = lambda run, seconds: 1e6 * seconds / run.messages  # noqa: E731
    rows = [shown("messages a report", one.messages / given.users, f"{given.users} people, coins, one batch")]
    for name, run in (("one shuffler", one), ("2 hops", two), ("3 hops", three)):
        rows.append(shown(f"device CPU, {name}", 1e3 * run.device / given.users, "ms a report, all its messages"))
        rows.append(shown(f"bytes, {name}", run.bytes, "a report"))
    layers = [(two, 2), (three, 3)]
    for run, hops in layers:
        most = 1.15 * (1 + hops)
        rows.append(figure(f"device CPU, {hops} hops beside one", run.device / one.device, "<=", most, "times"))
        grown = (77 + 48 * hops) / 77
        rows.append(figure(f"bytes, {hops} hops beside one", run.bytes / one.bytes, "<=", grown, "times, exactly"))
    peel = [per_message(three, seconds) for seconds in three.sealing]
    opened = per_message(three, three.reading)
    rows.append(shown("analyzer opens", opened, "microseconds of CPU a message"))
    for number, seconds in enumerate(peel, 1):
        rows.append(shown(f"hop {number} peels, permutes, seals", seconds, "microseconds of CPU a message"))
    rows.append(shown("one shuffler permutes, seals", per_message(one, one.sealing[0]), "microseconds a message"))
    rows.append(figure("a hop's sealing beside the analyzer's opening", max(peel) / opened, "<=", 1.5, "times"))
    for run, hops in layers:
        slowest, alone = max(run.parties), max(one.parties)
        rows.append(
            figure(f"reports a second, {hops} hops beside one", alone / slowest, ">=", 0.6, "by the slowest party")
        )
        total = sum(run.parties) / sum(one.parties)
        rows.append(figure(f"all servers' CPU, {hops} hops beside one", total, "<=", 1.5 * (1 + hops), "times"))
    if given.kills:
        with tempfile.TemporaryDirectory() as place:
            counted = survived(Path(place), users=300 * given.kills, turns=given.kills)
        rows.append(figure("hops killed in turn, reports lost or twice", 0, "<=", 0, f"{counted} counted"))
    return report("Cascade", rows)


if __name__ == "__main__":
    raise SystemExit(main())
