"""Running sums with carried noise: bounds beside the strongest curator's and independent noise, messages, speed."""

import math
import sys
import time

import numpy as np
from report import figure, report

from shuffledp import Privacy, RandomBits
from shuffledp.continual.carried.planner import plan_carried
from shuffledp.continual.certified import certify
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.reference import counter_reference
from shuffledp.experiments.counter import forced_plan
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.references.continual.buffered import buffered_curator_bound
from shuffledp.simulation.environments.hard_streams import hard_stream

TARGET = Privacy(1, 1e-6)


def bounds() -> list[dict]:
    rows = []
    for users, shufflers, limit in (
        (10**6, 2, 144),
        (10**6, 3, 106),
        (10**6, 4, 100),
        (10**5, 3, 79),
        (10**5, 4, 77),
        (10**4, 3, 57),
        (10**4, 4, 57),
    ):
        started = time.process_time()
        plan = plan_carried(users=users, shufflers=shufflers, privacy=TARGET)
        note = f"slots of {plan.slot_users}, {time.process_time() - started:.1f} s of CPU"
        rows.append(figure(f"bound, {users:.0e} users, k {shufflers}", plan.error_bound, "<=", limit, note))
        if shufflers == 4:
            curator = buffered_curator_bound(users, TARGET, 0.95)
            name = f"ours / the strongest curator's, {users:.0e} users, k 4"
            rows.append(figure(name, plan.error_bound / curator, "<=", 1.06, f"curator {curator:.1f}"))
        # The best plan with independent noise by as many shufflers, and not a worse one that sends more.
        best = CounterPlan.plan(users=users, shufflers=shufflers, privacy=TARGET)
        today = best if best.shufflers_used == shufflers else forced_plan(users, shufflers)
        sent = plan.messages_per_user_mean / today.messages_per_user_mean
        note = f"{plan.messages_per_user_mean:.1f} beside {today.messages_per_user_mean:.1f}, independent noise"
        rows.append(
            figure(f"messages beside independent noise, {users:.0e} users, k {shufflers}", sent, "<=", 1.5, note)
        )
    return rows


def certified() -> list[dict]:
    plan = plan_carried(users=10**6, shufflers=4, privacy=TARGET)
    started = time.perf_counter()
    found = certify(plan)
    note = f"10,000 runs of the noise in {time.perf_counter() - started:.0f} s"
    return [figure("certified bound, 1e6 users, k 4", found.error_bound, "<=", 98, note)]


def other_values() -> list[dict]:
    asked = {"users": 10**6, "shufflers": 4, "privacy": TARGET}
    rows = []
    for name, given, today in (
        ("numbers in [0, 1]", {"values": "reals"}, 161.5),
        ("vectors, d 10", {"values": "vectors", "dimension": 10, "radius": 1.0}, 463.9),
        ("20 categories", {"values": "categories", "categories": 20}, 303.0),
    ):
        started = time.process_time()
        plan = PROTOCOLS["counter"].plan(**asked, method="carried", **given)
        note = f"{plan.error_bound:.1f} beside {today}, {time.process_time() - started:.1f} s of CPU"
        rows.append(figure(f"{name}: bound beside independent noise", plan.error_bound / today, "<=", 0.75, note))
        curator = counter_reference(plan)["central_error_bound"]
        ratio, note = plan.error_bound / curator, f"curator {curator:.1f}"
        rows.append(figure(f"{name}: ours / the strongest curator's", ratio, "<=", 1.06, note))
    return rows


def simulations() -> list[dict]:
    """200 runs on four hard inputs."""
    users = 10**5
    plan = plan_carried(users=users, shufflers=4, privacy=TARGET)
    streams = {
        "all ones": np.ones(users, dtype=np.uint8),
        "all zeros": np.zeros(users, dtype=np.uint8),
        "random": (np.random.default_rng(1).random(users) < 0.5).astype(np.uint8),
        "Delta(n, k)": hard_stream(users, 4, TARGET.epsilon, seed=1),
    }
    rows = []
    for name, values in streams.items():
        truth, learner = np.cumsum(values, dtype=np.int64), plan.learner()
        largest = [
            np.abs(learner.run(values, bits=bits).every() - truth).max() for bits in RandomBits.seeded(2).spawn(200)
        ]
        passed = float(np.mean(np.array(largest) > plan.error_bound))
        limit = 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)
        note = f"95% quantile {np.quantile(largest, 0.95):.1f}, bound {plan.error_bound:.1f}"
        rows.append(figure(f"{name}: runs that pass the bound", passed, "<=", limit, note))
    return rows


def speed() -> list[dict]:
    rows = []
    for users, limit in ((10**6, 5), (10**9, 30)):
        started = time.perf_counter()
        plan = plan_carried(users=users, shufflers=4, privacy=TARGET)
        note = f"bound {plan.error_bound:.1f}, {plan.weights.slots:,} slots"
        rows.append(
            figure(f"planning {users:.0e} users, k 4: seconds", time.perf_counter() - started, "<=", limit, note)
        )
    values = (np.random.default_rng(1).random(10**8, dtype=np.float32) < 0.3).view(np.uint8)
    learner = plan_carried(users=values.size, shufflers=4, privacy=TARGET).learner()
    learner.run(values, bits=RandomBits.seeded(1))
    runs, sums = [], []
    for _ in range(3):
        started = time.perf_counter()
        np.cumsum(values)
        sums.append(time.perf_counter() - started)
        started = time.perf_counter()
        learner.run(values, bits=RandomBits.seeded(1))
        runs.append(time.perf_counter() - started)
    note = f"{min(runs):.2f} s beside {min(sums):.2f} s"
    rows.append(figure("run over 1e8 users / np.cumsum", min(runs) / min(sums), "<=", 2, note))
    return rows


def silent() -> list[dict]:
    """What it costs to plan for false slots, and what is left where nobody did."""
    rows = []
    plain = plan_carried(users=10**6, shufflers=4, privacy=TARGET)
    independent = CounterPlan.plan(users=10**6, shufflers=4, privacy=TARGET).error_bound
    for slots in range(1, plain.fatal_silence):
        note = f"{slots * plain.slot_users} people in a row"
        left = plain.epsilon_with_silent(slots)
        rows.append(figure(f"epsilon with {slots} false slots, k 4, not planned for", left, "<=", 2, note))
    for slots in (1, 2):
        plan = plan_carried(users=10**6, shufflers=8, privacy=TARGET, silent_slots=slots)
        note = f"independent noise {independent:g}; {plan.messages_per_user_mean:.0f} messages a user"
        rows.append(figure(f"bound, 1e6 users, 8 shufflers, {slots} false slots", plan.error_bound, "<=", 140, note))
    return rows


if __name__ == "__main__":
    figures = [row for part in (bounds, other_values, silent, simulations, speed, certified) for row in part()]
    sys.exit(report("Carried noise", figures))
