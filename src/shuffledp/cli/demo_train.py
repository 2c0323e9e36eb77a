"""`shuffledp demo train`: a logistic regression learned live, round by round, from people's randomized gradients."""

import math
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.demo_people import PROCESSES, all_came, all_models, doors_of, prepared, shared_out, wait_for_model
from shuffledp.cli.demo_servers import drawn, new_folder, picture_in_words, served
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.cli.progress import users_reporting, working
from shuffledp.privacy import Privacy

if TYPE_CHECKING:
    from shuffledp.learn.optimize.solver import Solver
    from shuffledp.protocols.learner import DeviceStep
    from shuffledp.service.device.crowd import Crowd, Places

# Where models lie: wide enough for the odds that people have.
_RADIUS = 12.0
# Of the curator's noise, and of nobody's.
_RUNS = 50


def demo_train(
    folder: options.DemoFolder = Path("build/train"),
    users: Annotated[int, typer.Option(help="How many people take part.", metavar="N")] = 4000,
    rounds: Annotated[int, typer.Option("--rounds", help="At most so many.", metavar="T")] = 20,
    epsilon: Annotated[float, typer.Option("--epsilon", help="The guarantee's epsilon.", metavar="E")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="The guarantee's delta.", metavar="D")] = 1e-5,
    as_json: options.AsJson = False,
) -> None:
    """A logistic regression learned live from private gradients, its loss by round beside a trusted curator's."""
    import numpy as np

    from shuffledp.learn.optimize.vacuous import proves_nothing
    from shuffledp.references.curator_descent import curator_rounds
    from shuffledp.service.keys import load_tokens
    from shuffledp.service.tokens import READ
    from shuffledp.simulation.environments.yes_or_no import YesOrNo

    started, world = time.perf_counter(), YesOrNo()
    solver = _planned(world.dimension, users, rounds, Privacy(epsilon, delta))
    run = new_folder(folder)
    campaign = prepared(run, solver)
    rows, labels = world.people(solver.users)
    token, file = load_tokens(run / "keys").secrets[READ], str(run / "campaign.json")
    with served(run, token, "--campaign", file, shown=not as_json) as both:
        doors, size = doors_of(run, both, campaign), solver.stages[0].users
        ends = np.cumsum([0, *shared_out(solver.users, PROCESSES)])
        guests = [Patients(rows[a:b], labels[a:b]) for a, b in pairwise(ends)]
        with users_reporting(solver.users, shown=not as_json) as progress:
            all_came(both, doors, guests, size, lambda number: progress and progress(number * size))
            wait_for_model(both, doors, solver.rounds)
        models = np.array([model.estimate for model in all_models(both, campaign)])
    live = time.perf_counter() - started
    with working("the curator's loss", shown=not as_json):
        losses = world.losses(models)
        others = {
            name: np.array([world.losses(found) for found in curator_rounds(solver, rows, labels, _RUNS, noisy=noisy)])
            for name, noisy in (("curator", True), ("free", False))
        }
        best = float(world.losses(np.array([world.truth]))[0])
    picture = drawn(run / "train.png", lambda path: _draw(path, solver, losses, others, best))
    document = {
        "schema": 1,
        "campaign_id": campaign.id,
        "users": solver.users,
        "users_per_round": size,
        "rounds": solver.rounds,
        "solver": solver.name,
        "models": len(models),
        "messages_per_user": solver.guarantee().messages_per_user,
        "losses": losses,
        "loss_begin": math.log(2),
        "loss": float(losses[-1]),
        "loss_curator": float(others["curator"][:, -1].mean()),
        "loss_not_private": float(others["free"][:, -1].mean()),
        "loss_of_the_law": best,
        "excess_bound": solver.bound,
        "excess_bound_proves_nothing": proves_nothing(solver.problem, solver.bound),
        "model": models[-1],
        "truth": list(world.truth),
        "accuracy": world.accuracy(models[-1]),
        "accuracy_of_the_law": world.accuracy(np.array(world.truth)),
        "epsilon": epsilon,
        "delta": delta,
        "delta_proved": solver.guarantee().delta,
        "warnings": list(campaign.warnings),
        "picture": picture,
        "folder": run,
        "live_seconds": live,
        "seconds": time.perf_counter() - started,
    }
    print_json(document) if as_json else _show(document)


@dataclass
class Patients:
    """People with a row and a label each."""

    rows: Any
    labels: Any

    @property
    def people(self) -> int:
        """How many."""
        return len(self.rows)

    def act(self, crowd: "Crowd", step: "DeviceStep", places: "Places") -> Any:
        """The gradient of one's own loss where the model asks for it."""
        return crowd.gradients(step, self.rows[places], self.labels[places])

    def remember(self, model: int, places: "Places") -> None:
        """Nothing."""


def _planned(dimension: int, users: int, rounds: int, privacy: Privacy) -> "Solver":
    """Everybody is asked once, by accelerated steps, with as many rounds as have the least proved bound."""
    from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan

    ball = L2Ball(dimension=dimension, radius=_RADIUS)
    return plan(Problem.of(LogisticLoss(), ball, users=users, privacy=privacy, visits=1, rounds=rounds), solver="agd")


def _draw(picture: Path, solver: "Solver", losses: Any, others: dict[str, Any], best: float) -> None:
    import numpy as np

    from shuffledp.pictures.curves import DrawnLine
    from shuffledp.pictures.live import CURATOR, FREE, draw_live

    names = {"curator": ("a trusted curator", CURATOR), "free": ("not private", FREE)}
    rounds = np.arange(len(losses))
    lines = [
        DrawnLine(
            name=names[each][0],
            colour=names[each][1],
            x=rounds,
            y=found.mean(axis=0),
            band=np.quantile(found, [0.1, 0.9], axis=0),
        )
        for each, found in others.items()
    ]
    privacy = solver.problem.privacy
    assert privacy is not None
    draw_live(
        picture,
        DrawnLine(name="live", x=rounds, y=losses),
        lines,
        against=f"rounds, of {solver.stages[0].users:,} people each",
        measures="mean loss of a new person",
        title="A logistic regression, learned live",
        subtitle=f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}, by {solver.name}; a dot is a model, published",
        notes=[f"Shades: where 80% of {_RUNS} runs of each lie, with the same people and steps."],
        level=(best, "the best there is"),
    )


def _show(said: dict[str, Any]) -> None:
    gap = said["loss"] - said["loss_of_the_law"]
    rows = [
        (
            "what happened",
            f"in each of {said['rounds']} rounds the devices of {said['users_per_round']:,} other people fetched the "
            "newest model and sent one clipped gradient each, with noise and encrypted; a shuffler mixed what it could "
            "not read, and the analyzer took a step and published the next model",
        ),
        ("people", f"{said['users']:,}, each once, {said['messages_per_user']} ciphertexts each"),
        ("models", f"{said['models']:,} published, numbered and signed, by {said['solver']}"),
        (
            "what it learned",
            f"it is right about {said['accuracy']:.1%} of new people; whoever knows the law is about "
            f"{said['accuracy_of_the_law']:.1%}",
        ),
        (
            "how accurate",
            f"loss {said['loss']:.3f}, from {said['loss_begin']:.3f}; {gap:.3f} above the best there is, "
            f"{said['loss_of_the_law']:.3f}",
        ),
        (
            "beside others",
            f"with the same steps a trusted curator reaches {said['loss_curator']:.3f}, and nobody's noise "
            f"{said['loss_not_private']:.3f}",
        ),
        ("epsilon spent", f"{said['epsilon']:g} (delta {said['delta']:g}) by everybody, once"),
        ("trusted", "the shuffler, not to tell the analyzer who sent what; the devices, to follow the protocol"),
        ("against advice", " ".join(said["warnings"][:1]) or None),
        ("the network saw", "addresses, times, models, which are public, and reports whose length says nothing"),
        ("the shuffler saw", "addresses, and ciphertexts that only the analyzer can open; it kept no address"),
        ("the analyzer saw", "randomized messages of full batches in random order; no row, label or sender"),
        ("took", f"{said['seconds']:.0f} s, {said['live_seconds']:.0f} of them live"),
        ("picture", picture_in_words(said["picture"])),
    ]
    show(facts("A model learned live, in private", rows))
    next_steps(
        [
            ("more people, less loss", f"demo train --users {2 * said['users']}"),
            ("a recommender instead", "demo recommend"),
            ("from a file of your own", "fit --help"),
        ]
    )
