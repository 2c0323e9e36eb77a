"""Three real shufflers on one PostgreSQL under load: processes killed, connections cut, the database restarted."""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from harness.crowd import Crowd, Found, check, wait_until_read
from harness.nursery import Servers, servers
from harness.postgresql import Proxy, Server, require_programs, running_server
from shuffledp.continual.plan import CounterPlan
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.store import inspect_store, open_analyzer_store, open_shuffler_store
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

KILLS, CUTS, RESTARTS = 30, 6, 3
SHUFFLERS = ("shuffler", "shuffler 2", "shuffler 3")


def test_killed_processes_cut_connections_and_a_restarted_database_lose_nothing_and_count_nothing_twice(
    tmp_path: Path,
) -> None:
    bits, choice = RandomBits.secure(), random.Random(7)
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=bits)
    plan = CounterPlan.plan(users=2000, shufflers=2, privacy=Privacy(8, 0.1), noise="coins")
    tasks = [Task.create(plan, key.public, bits=bits) for _ in range(2)]
    enough, busy = threading.Event(), threading.Event()
    # A server of its own: others use the one of the session.
    with running_server(require_programs()) as database, closing(Proxy(database.port)) as proxy:
        schemas = {"shuffler": "front", "analyzer": "back"}
        direct = {role: database.address(tmp_path / "keys", schema) for role, schema in schemas.items()}
        stores = {
            role: database.address(tmp_path / "keys", schema, port=proxy.port, claim_seconds=1)
            for role, schema in schemas.items()
        }
        with (
            servers(tmp_path, key, tokens, shufflers=3, stores=stores, lease_seconds=1.0) as running,
            ThreadPoolExecutor(4) as threads,
        ):
            for task in tasks:
                running.add_task(task)
            deadline = time.monotonic() + 150
            crowds = [
                Crowd(task, running, seed, busy, at=SHUFFLERS, deadline=deadline) for seed, task in enumerate(tasks * 2)
            ]
            crowding = [threads.submit(crowd.run, enough) for crowd in crowds]
            done = disturb(running, database, proxy, busy, choice)
            before_the_end = sum(len(crowd.answers) for crowd in crowds)
            enough.set()
            for each in crowding:
                each.result(timeout=150)
            wait_until_read(running, tasks)
            for name in list(running.pids):
                running.kill(name)
        assert done["shuffler"] >= 15 and done["analyzer"] >= 5 and done["restart"] == RESTARTS, done
        assert proxy.cuts >= CUTS
        # The kills met the load: it went on after the last of them, and some reports were sent again and known.
        assert before_the_end < sum(len(crowd.answers) for crowd in crowds)
        statuses = Counter(status for crowd in crowds for status in crowd.answers.values())
        assert statuses[201] > 1000 and statuses[200] > 0, statuses
        for task in tasks:
            check(tmp_path, task, [crowd for crowd in crowds if crowd.task is task], found(database, direct, task))
        # What the dead left is tidied by the next: no key is missing, and none is too many.
        for opened, address in ((open_shuffler_store, direct["shuffler"]), (open_analyzer_store, direct["analyzer"])):
            with closing(opened(address)) as store:
                store.forget_deleted()
            assert inspect_store(address).condition == "ok"


def disturb(
    running: Servers, database: Server, proxy: Proxy, busy: threading.Event, choice: random.Random
) -> Counter[str]:
    """At random moments while a request is under way."""
    done: Counter[str] = Counter()
    acts = ["kill"] * KILLS + ["cut"] * CUTS + ["restart"] * RESTARTS
    choice.shuffle(acts)
    for act in acts:
        time.sleep(choice.uniform(0.02, 0.25))
        busy.clear()
        busy.wait(timeout=1.0)
        time.sleep(choice.uniform(0.0, 0.03))
        if act == "cut":
            proxy.cut()
        elif act == "restart":
            database.stop("immediate")
            time.sleep(choice.uniform(0.0, 0.3))
            database.start()
        else:
            name = choice.choice((*SHUFFLERS, "analyzer"))
            running.kill(name)
            time.sleep(choice.uniform(0.0, 0.15))
            running.start(name)
            act = name.partition(" ")[0]
        done[act] += 1
    return done


def found(database: Server, direct: dict[str, str], task: Task) -> Found:
    def kept(asked: list[str]) -> set[str]:
        with closing(open_shuffler_store(direct["shuffler"])) as store:
            return store.read(lambda inside: inside.accepted_among(task.id, asked))

    with database.connect("front") as db:
        counted = "SELECT count(*) FROM accepted WHERE task = (SELECT number FROM tasks WHERE task_id = %s)"
        [(kept_in_all,)] = db.execute(counted, (task.id,)).fetchall()
    with database.connect("back") as db:
        query = "SELECT batch_id, total, dropped, void::int, bodies_key FROM batches WHERE task_id = %s"
        totals = db.execute(query, (task.id,)).fetchall()
        releases = db.execute('SELECT "time" FROM releases WHERE task_id = %s', (task.id,)).fetchall()
    return Found(kept, kept_in_all, totals, releases)
