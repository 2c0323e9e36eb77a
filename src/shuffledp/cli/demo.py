"""`shuffledp demo`: the whole service on this machine in a minute: servers, clients, a table, a picture."""

import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import demo_servers, options
from shuffledp.cli.cascade_output import check_hops_asked
from shuffledp.cli.demo_recommend import demo_recommend
from shuffledp.cli.demo_servers import (
    drawn,
    hop_folder,
    keep_running,
    new_folder,
    picture_in_words,
    say_where,
    served,
    wait_until,
)
from shuffledp.cli.demo_train import demo_train
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.cli.progress import users_reporting
from shuffledp.privacy import Privacy

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan
    from shuffledp.service.task import Task

demo_app = typer.Typer(help="The whole service on this machine: a running count, a recommender or a model, live.")
demo_app.command("recommend")(demo_recommend)
demo_app.command("train")(demo_train)


@demo_app.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    folder: options.DemoFolder = Path("build/live"),
    users: Annotated[int, typer.Option(help="About how many people report.", metavar="N")] = 2000,
    shufflers: Annotated[int, typer.Option("--shufflers", help="How many work concurrently.", metavar="K")] = 3,
    noise: Annotated[
        str, typer.Option("--noise", help="carried, or coins: more noise, and no liar can spoil it.", metavar="M")
    ] = "carried",
    epsilon: Annotated[float, typer.Option("--epsilon", help="The guarantee's epsilon.", metavar="E")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="The guarantee's delta.", metavar="D")] = 1e-6,
    clients: Annotated[int, typer.Option(help="Client processes, one after the other.", metavar="C")] = 4,
    hops: Annotated[
        int | None, typer.Option("--hops", help="Shufflers one after another, 2 or 3: a cascade.", metavar="H")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Say where the page is, and keep it until interrupted.")] = False,
    opens: Annotated[bool, typer.Option("--open", help="The same, and open it in a browser.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """A live private running count on this machine: shuffler, analyzer and clients as processes of their own."""
    if context.invoked_subcommand is not None:
        return
    import numpy as np

    from shuffledp.service.keys import load_tokens
    from shuffledp.service.tokens import ADMIN, READ
    from shuffledp.simulation.environments.synthetic import synthetic_values

    check_hops_asked(hops)
    started = time.perf_counter()
    plan = _planned(users, shufflers, noise, Privacy(epsilon, delta))
    run = new_folder(folder)
    task = _prepared(run, plan, hops or 0)
    front = hop_folder(run, 1) if hops else run / "keys"
    values = np.asarray(synthetic_values(task.plan), dtype=np.int64)
    truth = np.concatenate(([0], np.cumsum(values)))
    token, path = load_tokens(run / "keys").secrets[READ], f"/v1/tasks/{task.id}"
    # Only admin is told the exact counts of the shuffler.
    mixing_token, layered = load_tokens(front).secrets[ADMIN], hops or 0
    options_of_all = ("--task", str(run / "task.json"))
    with served(run, token, *options_of_all, shown=not as_json, hops=layered, mixing_token=mixing_token) as both:
        mixing, adding = both.mixing, both.adding
        if keep or opens:
            say_where(f"{both.analyzer}/tasks/{task.id}", opens=opens)
        with users_reporting(len(values), shown=not as_json) as progress:
            for number, part in enumerate(np.array_split(values, clients), 1):
                _report(
                    run,
                    number,
                    part,
                    both.shuffler,
                    front / "enrol.token",
                    lambda: progress and progress(mixing.json(path)["counts"]["reports"]),
                )
            complaint = "has not read all batches"
            wait_until(
                lambda: _is_read(mixing.json(path)["counts"], adding.json(path)), both.servers["analyzer"], complaint
            )
        counts, seen = mixing.json(path)["counts"], adding.json(path)
        last = adding.json(f"{path}/estimate")
        history = adding.json(f"{path}/history?limit=100000")["releases"]
        picture = drawn(run / "running-count.png", lambda path: _draw(task, history, truth, path))
        document = {
            "schema": 1,
            "task_id": task.id,
            "users": len(values),
            "seats": counts["seats_taken"],
            "reports_sent": len(values),
            "reports_acknowledged": counts["reports"],
            "reports_pending": counts["reports"] - last["time"],
            "batches_released": seen["batches_read"],
            "batches_void": seen["batches_void"],
            "time": last["time"],
            "estimate": last["estimate"],
            "truth": int(truth[last["time"]]),
            **{name: last[name] for name in ("bound", "confidence", "epsilon", "delta")},
            "central_bound": task.plan.reference()["central_error_bound"],
            "rests_on": task.plan.rests_on,
            "hops": hops,
            "warnings": list(task.warnings),
            "picture": picture,
            "folder": run,
            "seconds": time.perf_counter() - started,
        }
        if as_json:
            print_json(document)
        else:
            _show(task, document)
        if keep or opens:
            keep_running(both, shown=not as_json)


def _show(task: "Task", said: dict[str, Any]) -> None:
    layout = task.plan.layout
    true = f"the truth is {said['truth']:,}: off by {abs(said['estimate'] - said['truth']):,.0f}"
    sizes = f"of {min(layout.messages):,} users and more"
    rows = [
        (
            "what happened",
            f"{said['users']:,} people reported to a live service: their devices added noise and encrypted every "
            f"message, {layout.shufflers} concurrent batches were mixed by {_mixers(said['hops'])} that could read "
            "none of it, and an analyzer added up what came out",
        ),
        ("reports", f"{said['reports_sent']:,} sent, {said['reports_acknowledged']:,} acknowledged (on disk first)"),
        ("pending", _pending(said["reports_pending"])),
        ("batches released", f"{said['batches_released']:,}, {sizes}; {said['batches_void']} void"),
        ("estimate", f"{said['estimate']:,.0f} among the first {said['time']:,}; {true}"),
        ("how accurate", _accuracy(said)),
        ("epsilon spent", f"{said['epsilon']:g} (delta {said['delta']:g}) by everybody, once"),
        ("trusted", f"{_trusted(said['hops'])}; the devices, to follow the protocol"),
        ("it rests on", said["rests_on"]),
        ("against advice", " ".join(said["warnings"][:1]) or None),
        ("the network saw", "addresses, times, and reports whose length says nothing about a value"),
        (
            f"the {'first hop' if said['hops'] else 'shuffler'} saw",
            f"addresses, and {_CIPHERTEXTS}; it kept no address",
        ),
        ("the other hops saw", "batches of the hop before, and no address" if said["hops"] else None),
        ("the analyzer saw", "randomized messages of full batches in random order; no sender, no arrival time"),
        ("took", f"{said['seconds']:.0f} s"),
        ("picture", picture_in_words(said["picture"])),
    ]
    show(facts("A private running count, live", rows))
    next_steps(
        [
            ("watch one in a browser", "demo --keep"),
            ("look at this one there", f"serve analyzer {_stored(said['folder'])}"),
            ("run it in three terminals", "serve --help, and docs/howto/run-the-service.md"),
            ("why it is private", f"task show {said['folder']}/task.json"),
            ("no liar can spoil it", "demo --noise coins" if said["warnings"] else None),
            ("how good it gets", "plan counter --users 1000000 --shufflers 4 --epsilon 1 --delta 1e-6"),
        ]
    )


_CIPHERTEXTS = "ciphertexts that only the analyzer can open"


def _mixers(hops: int | None) -> str:
    return "a shuffler" if hops is None else f"{hops} shufflers in turn"


def _trusted(hops: int | None) -> str:
    """Whom people trust with what."""
    if hops is None:
        return "the shuffler, not to tell the analyzer who sent what"
    return f"one of the {hops} hops, whichever, not to tell the analyzer who sent what"


def _stored(run: Path) -> str:
    """The options with which an analyzer serves what a run has left."""
    here = shlex.quote(str(run))
    return f"--store {here}/analyzer.db --keys {here}/keys --task {here}/task.json"


def _accuracy(said: dict[str, Any]) -> str:
    """The bound, beside that of somebody who is trusted with everybody's values."""
    words = f"off by at most {said['bound']:.4g} at all times at once, {said['confidence']:.0%} confidence"
    curators = said["central_bound"]
    return words if curators is None else f"{words}; a trusted curator, who holds all values, reaches {curators:.4g}"


def _pending(reports: int) -> str | None:
    return f"{reports:,} in batches that are not full yet, and stay unread" if reports else None


def _planned(users: int, shufflers: int, noise: str, privacy: Privacy) -> "Plan":
    """A plan for as many people or more: the last slot is full when everybody has come, so that all are counted."""
    from shuffledp.protocols.catalogue import PROTOCOLS

    asked: dict[str, Any] = {"shufflers": shufflers, "privacy": privacy, "method": noise}
    for more in range(200):
        plan: Plan = PROTOCOLS["counter"].plan(users=users + more, **asked)
        if plan.uncounted == 0:
            break
    return plan


def _prepared(run: Path, plan: "Plan", hops: int) -> "Task":
    """Keys and a task. Its operator trusts the devices, which are its own: a plan that one can spoil is allowed."""
    from shuffledp.randomness import RandomBits
    from shuffledp.service.keys import load_public_key, make_hop_keys, make_keys
    from shuffledp.service.task import Task

    bits = RandomBits.secure()
    make_keys(run / "keys", bits=bits)
    layers = [make_hop_keys(hop_folder(run, number), bits=bits) for number in range(1, hops + 1)]
    task = Task.create(plan, load_public_key(run / "keys"), bits=bits, allow_unbounded=True, hops=layers)
    task.save(run / "task.json")
    return task


def _is_read(counts: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """Whether every batch that was sealed is sent, read and released."""
    return bool(counts["batches_waiting"] == 0 and counts["batches_sent"] == seen["batches_read"] > 0)


def _report(run: Path, number: int, values: Any, shuffler: str, token: Path, follow: Callable[[], None]) -> None:
    """One client process: reports its people's values, one after the other."""
    import numpy as np

    file = run / f"people-{number}.npy"
    np.save(file, values)
    command = [
        *(
            *demo_servers.SHUFFLEDP,
            "report",
            "--file",
            str(file),
            "--task",
            str(run / "task.json"),
            "--shuffler",
            shuffler,
        ),
        *("--token-file", str(token), "--outbox", str(run / f"outbox-{number}.db"), "--json"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        try:
            while client.poll() is None:
                follow()
                time.sleep(0.3)
        finally:
            client.kill()
            file.unlink()
        follow()
        said = (client.stdout.read() if client.stdout else b"") + (client.stderr.read() if client.stderr else b"")
    if client.returncode != 0:
        raise RuntimeError(f"a client failed: {said.decode(errors='replace')[-500:]}")


def _draw(task: "Task", history: list[dict[str, Any]], truth: Any, picture: Path) -> None:
    import numpy as np

    from shuffledp.pictures.running import draw_running_count

    times = np.array([0, *(release["time"] for release in history)])
    draw_running_count(
        picture,
        times=times,
        estimates=np.array([0.0, *(release["estimate"] for release in history)]),
        bound=max(release["bound"] for release in history),
        confidence=history[-1]["confidence"],
        title=f"A live private running count: epsilon {task.plan.privacy.epsilon:g}, every release",
        truth=truth[times],
    )
