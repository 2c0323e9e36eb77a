"""`shuffledp demo recommend`: people are shown articles by a model that learns from their clicks, live, in private."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.cli import options
from shuffledp.cli.demo_people import PROCESSES, all_came, doors_of, prepared, shared_out, wait_for_model
from shuffledp.cli.demo_servers import drawn, new_folder, picture_in_words, served
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.cli.progress import users_reporting, working
from shuffledp.privacy import Privacy

if TYPE_CHECKING:
    from shuffledp.learn.bandits.linear.policy import LinearPolicy
    from shuffledp.simulation.environments.linear_curves import RegretCurves
    from shuffledp.simulation.environments.two_topics import Readers, TwoTopics

SIMULATIONS = 200
"""How many runs of every policy are simulated beside the live one."""

Choice = Literal["confidence", "posterior"]


def demo_recommend(
    folder: options.DemoFolder = Path("build/recommend"),
    users: Annotated[int, typer.Option(help="How many people come.", metavar="N")] = 1500,
    shufflers: Annotated[int, typer.Option("--shufflers", help="How many work concurrently.", metavar="K")] = 4,
    choice: Annotated[
        Choice, typer.Option("--choice", help="By an upper confidence bound, or by a theta that each person draws.")
    ] = "confidence",
    epsilon: Annotated[float, typer.Option("--epsilon", help="The guarantee's epsilon.", metavar="E")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="The guarantee's delta.", metavar="D")] = 1e-4,
    as_json: options.AsJson = False,
) -> None:
    """Articles recommended by a model that learns live from private clicks, beside what others would reach."""
    from shuffledp.service.keys import load_tokens
    from shuffledp.service.tokens import ADMIN, READ
    from shuffledp.service.wire import CIPHERTEXT_BYTES
    from shuffledp.simulation.environments.two_topics import Readers, TwoTopics

    started, world = time.perf_counter(), TwoTopics()
    policies = _policies(world, users, shufflers, choice, Privacy(epsilon, delta))
    policy: Any = policies["live"]
    run = new_folder(folder)
    campaign = prepared(run, policy)
    secrets, file = load_tokens(run / "keys").secrets, str(run / "campaign.json")
    with served(run, secrets[READ], "--campaign", file, shown=not as_json, mixing_token=secrets[ADMIN]) as both:
        doors, slot = doors_of(run, both, campaign), policy.slot_users
        guests = [Readers(world, people) for people in shared_out(users, PROCESSES)]
        with users_reporting(users, shown=not as_json) as progress:
            came = all_came(both, doors, guests, slot, lambda number: progress and progress(min(users, number * slot)))
            wait_for_model(both, doors, policy.releases)
        counts = both.mixing.json(f"/v1/tasks/{campaign.id}.0.0")["counts"]
    live = time.perf_counter() - started
    times, lost, clicks = _by_slot(came, slot, users)
    with working("simulating the others", shown=not as_json):
        curves = {name: _simulated(each, world) for name, each in policies.items()}
    picture = drawn(run / "recommend.png", lambda path: _draw(path, policy, curves, times, lost))
    simulated = {name: _said(curve) for name, curve in curves.items()}
    document = {
        "schema": 1,
        "campaign_id": campaign.id,
        "users": users,
        "offers": world.offers,
        "dimension": world.dimension,
        "shufflers": policy.shufflers,
        "reports_acknowledged": counts["reports"],
        "models": policy.releases,
        "slot_users": slot,
        "ciphertexts": sum(map(campaign.routing.layouts[0].report_bytes, range(users))) // CIPHERTEXT_BYTES,
        "clicks": float(clicks.sum()),
        "clicks_first_part": _part(clicks, times, first=True),
        "clicks_last_part": _part(clicks, times, first=False),
        "regret": float(lost[-1]),
        "regret_blindly": world.blind_regret * users,
        "simulated": simulated,
        "live_is_inside": simulated["live"]["low"] <= lost[-1] <= simulated["live"]["high"],
        "choice": choice,
        "epsilon": epsilon,
        "delta": delta,
        "delta_proved": policy.guarantee().delta,
        "rests_on": policy.plan.rests_on,
        "warnings": list(campaign.warnings),
        "picture": picture,
        "folder": run,
        "live_seconds": live,
        "seconds": time.perf_counter() - started,
    }
    print_json(document) if as_json else _show(document)


def _policies(
    world: "TwoTopics", users: int, shufflers: int, choice: Choice, privacy: Privacy
) -> "dict[str, LinearPolicy]":
    """The live one, and those that it is compared with."""
    from dataclasses import replace

    from shuffledp.learn.bandits.linear.setting import LinearSetting
    from shuffledp.references.bandits.catalogue import linear_policy

    setting = LinearSetting(users=users, dimension=world.dimension, nonnegative=True)
    names = {"live": f"concurrent-{shufflers}", "free": "linucb", "one": "shuffle-vec", "local": "ldp"}
    # [002] Corollary 3.6: with one shuffler the best batches are about so large.
    batch = min(users, round(users**0.6))
    return {
        each: replace(linear_policy(name, setting, privacy, batch=batch), choice=choice) for each, name in names.items()
    }


def _simulated(policy: "LinearPolicy", world: "TwoTopics") -> "RegretCurves":
    from shuffledp.randomness import RandomBits
    from shuffledp.simulation.environments.linear_runs import run_linear_bandit

    seed = int(RandomBits.secure().unsigned(1, 32)[0])
    return run_linear_bandit(policy, world, seed=seed, instances=SIMULATIONS)


def _by_slot(came: "list[Readers]", slot_users: int, users: int) -> tuple[Any, Any, Any]:
    """After how many people, the regret so far, and the clicks of each slot."""
    import numpy as np

    models = np.concatenate([each.models for each in came])
    lost, clicks = (
        np.bincount(models, np.concatenate([getattr(each, name) for each in came])) for name in ("lost", "clicked")
    )
    times = np.minimum(np.arange(len(lost) + 1) * slot_users, users)
    return times, np.concatenate(([0.0], np.cumsum(lost))), clicks


def _part(clicks: Any, times: Any, *, first: bool) -> float:
    """The share of clicks in the first or the last fifth of all slots."""
    import numpy as np

    some = max(1, len(clicks) // 5)
    where = slice(0, some) if first else slice(len(clicks) - some, None)
    return float(clicks[where].sum() / np.diff(times)[where].sum())


def _said(curve: "RegretCurves") -> dict[str, float]:
    """The mean of the simulations, and the central 99% of them."""
    import numpy as np

    low, high = np.quantile(curve.final, [0.005, 0.995])
    return {"regret": curve.mean, "low": float(low), "high": float(high), "runs": len(curve.final)}


def _draw(picture: Path, policy: Any, curves: "dict[str, RegretCurves]", times: Any, lost: Any) -> None:
    import numpy as np

    from shuffledp.pictures.curves import DrawnLine
    from shuffledp.pictures.live import FREE, LOCAL, ONE, SAME, draw_live

    names = {
        "live": ("the same, simulated", SAME),
        "free": ("not private", FREE),
        "one": ("one shuffler", ONE),
        "local": ("local model", LOCAL),
    }
    others = [
        DrawnLine(
            name=names[each][0],
            colour=names[each][1],
            x=curve.times,
            y=curve.regret.mean(axis=0),
            band=np.quantile(curve.regret, [0.1, 0.9], axis=0) if each == "live" else None,
        )
        for each, curve in curves.items()
    ]
    highest = max([float(lost[-1]), *(float(line.y[-1]) for line in others)])
    draw_live(
        picture,
        DrawnLine(name=f"live: {policy.shufflers} shufflers", x=times, y=lost),
        others,
        against="people so far",
        measures="clicks lost so far (regret)",
        title="A recommender that learns live from private clicks",
        subtitle=f"epsilon {policy.privacy.epsilon:g}, delta {policy.privacy.delta:g}; a dot is a model, published",
        notes=[f"Thin lines: means of {SIMULATIONS} simulations. Shade: where 80% of those of the live policy lie."],
        top=1.08 * highest,
        bottom=0,
    )


def _show(said: dict[str, Any]) -> None:
    others = said["simulated"]
    inside = "inside" if said["live_is_inside"] else "outside"
    same = others["live"]
    rows = [
        (
            "what happened",
            f"{said['users']:,} people were shown {said['offers']} articles each; their devices chose one by the "
            "newest model and reported its features and the click, with noise and encrypted, to batches of "
            f"{said['shufflers']} concurrent shufflers; after every {said['slot_users']:,} people the analyzer "
            "published the next model",
        ),
        ("reports", f"{said['reports_acknowledged']:,} acknowledged, {said['ciphertexts']:,} ciphertexts"),
        ("models", f"{said['models']:,} published, numbered and signed; devices checked every one"),
        (
            "what it learned",
            f"{said['clicks_first_part']:.0%} of the first fifth of the people clicked, "
            f"{said['clicks_last_part']:.0%} of the last",
        ),
        (
            "how accurate",
            f"{said['regret']:,.0f} clicks fewer than with the best article for everybody (regret); taking any article "
            f"loses {said['regret_blindly']:,.0f}",
        ),
        (
            "beside others",
            f"simulated: {others['free']['regret']:,.0f} if nothing is private, {same['regret']:,.0f} for the same "
            f"policy, {others['one']['regret']:,.0f} with one shuffler, {others['local']['regret']:,.0f} in the local "
            "model",
        ),
        (
            "as simulated",
            f"the live run is {inside} the central 99% of {same['runs']} simulations: {same['low']:,.0f} to "
            f"{same['high']:,.0f}",
        ),
        ("epsilon spent", f"{said['epsilon']:g} (delta {said['delta']:g}) by everybody, once"),
        ("trusted", "the shufflers, not to tell the analyzer who sent what; the devices, to follow the protocol"),
        ("it rests on", said["rests_on"]),
        ("against advice", " ".join(said["warnings"][:1]) or None),
        ("the network saw", "addresses, times, models, which are public, and reports whose length says nothing"),
        ("the shuffler saw", "addresses, and ciphertexts that only the analyzer can open; it kept no address"),
        ("the analyzer saw", "randomized messages of full batches in random order; no article, click or sender"),
        ("devices keep", "what anybody was shown, chose and clicked; whatever leaves them is randomized and encrypted"),
        ("took", f"{said['seconds']:.0f} s, {said['live_seconds']:.0f} of them live"),
        ("picture", picture_in_words(said["picture"])),
    ]
    show(facts("A recommender that learns live, in private", rows))
    another = "posterior" if said["choice"] == "confidence" else "confidence"
    next_steps(
        [
            ("choose otherwise", f"demo recommend --choice {another}"),
            ("more people, less each", f"demo recommend --users {2 * said['users']}"),
            ("a model instead", "demo train"),
            ("all policies, simulated", "papers linucb --help"),
        ]
    )
