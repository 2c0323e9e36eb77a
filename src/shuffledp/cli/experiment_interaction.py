"""`shuffledp papers secure-sum` and `pointer-chasing`: what interaction and the shuffler add, from the survey."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.experiment_shared import Going, Told, experiment, listed, whole_numbers
from shuffledp.cli.output import collusions_of, facts

if TYPE_CHECKING:
    from shuffledp.experiments.pointers import PointerRow
    from shuffledp.simulation.masked_sum import MaskedSumRun

Users = Annotated[int, typer.Option("--users", help="How many people take part; all must stay.", metavar="N")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The privacy target; smaller is safer.", metavar="E")]
Delta = Annotated[float, typer.Option("--delta", help="At which a coalition's epsilon is told.", metavar="D")]
Lengths = Annotated[str, typer.Option("--lengths", help="Lengths of the permutations, with commas.", metavar="L,L")]
Runs = Annotated[int, typer.Option("--runs", help="Runs at each number of users.", metavar="R")]
Method = Annotated[str, typer.Option("--method", help="The histogram's method.", metavar="M")]

_RUN = ("pairs", "keys_agree", "messages_round_1", "messages_round_2", "truth", "error", "seconds")
_ESTIMATE = ("standard_error", "bound", "confidence", "simulated")


@experiment(pictured=False)
def experiment_secure_sum(
    going: Going, users: Users = 20, epsilon: Epsilon = 1.0, delta: Delta = 1e-6, seed: options.FixedSeed = 1
) -> Told:
    """A demonstration: a curator's sum in two rounds of shuffling, keys for every two users, then masked values."""
    from shuffledp.experiments.secure_sum import secure_sum
    from shuffledp.privacy import Privacy

    plan, run = secure_sum(users, Privacy(epsilon, delta), seed)
    coalitions = listed(
        f"What a coalition would learn, at delta {delta:g}",
        "who | epsilon | what is seen",
        plan.collusions(),
        lambda row: f"{row.parties} | {'-' if row.epsilon is None else f'{row.epsilon:.3f}'} | {row.in_words}",
        left=("what is seen",),
        folded=("who", "epsilon", "what is seen"),
    )
    same = f"--epsilon {epsilon:g} --delta {delta:g}"
    return Told(
        document=_document(plan, run, seed),
        tables=[
            _rounds(plan, run),
            coalitions,
            "A demonstration: everybody must follow the protocol and stay until the end, one dropout voids the sum, "
            "and messages grow with the square of the users. For work, `shuffledp plan binary-sum` needs one round.",
        ],
        again=[
            ("more people", f"papers secure-sum --users {5 * users} {same} --seed {seed}"),
            ("one round", f"plan binary-sum --users {users} {same}"),
        ],
    )


def _document(plan: Any, run: "MaskedSumRun", seed: int) -> dict[str, Any]:
    return {
        "demonstration": True,
        "users": plan.users,
        "epsilon": plan.privacy.epsilon,
        "delta": plan.privacy.delta,
        "delta_proved": plan.guarantee().delta,
        "repetitions": plan.repetitions,
        "key_bits": plan.modulus_bits,
        "failure_probability": float(plan.agreement.failure),
        "fewest_secret_bits": run.fewest_key_bits,
        **{name: getattr(run, name) for name in _RUN},
        "estimate": run.estimate.value,
        **{name: getattr(run.estimate, name) for name in _ESTIMATE},
        "collusions": collusions_of(plan.collusions(), plan.privacy.epsilon, "paper_epsilon"),
        "seed": seed,
    }


def _rounds(plan: Any, run: "MaskedSumRun") -> Any:
    import math

    bits = f"{plan.modulus_bits} bits for each of {run.pairs:,} pairs"
    fails = f"fails with probability 2^{math.log2(plan.agreement.failure):.1f} at most"
    agreed = "all agree" if run.keys_agree else "NOT ALL AGREE"
    return facts(
        f"A demonstration: the sum of {plan.users:,} bits in two rounds of shuffling, epsilon {plan.privacy.epsilon:g}",
        [
            ("round 1", f"{run.messages_round_1:,} messages: {plan.repetitions} coins of each user for each other"),
            ("keys", f"{bits}, {agreed}; the unluckiest pair made {run.fewest_key_bits}"),
            ("", f"{fails}, before anything private is sent"),
            ("round 2", f"{run.messages_round_2:,} messages: value, share of the noise and masks, modulo 2^"
             f"{plan.modulus_bits}"),
            ("sum", str(run.estimate)),
            ("true sum", f"{run.truth:,}, so that the error is {run.error:+g}"),
            ("noise", f"{plan.noise_law}, what a trusted curator would add"),
            ("seconds", f"{run.seconds:.2f}"),
        ],
    )  # fmt: skip


@experiment(pictured=False)
def experiment_pointers(
    going: Going,
    lengths: Lengths = "2,3,4,5,6",
    runs: Runs = 200,
    method: Method = "decoys",
    seed: options.FixedSeed = 1,
) -> Told:
    """How many users pointer chasing needs for two thirds of success, with a shuffler and in the local model."""
    from shuffledp.experiments.pointers import pointer_chasing

    asked = {"lengths": whole_numbers(lengths, "lengths", "2,3,4"), "method": method, "runs": runs, "seed": seed}
    rows = going.measured("chasing", pointer_chasing, **asked)
    again = f"papers pointer-chasing --lengths {lengths} --runs {4 * runs}"
    return Told(
        document={"runs": runs, "seed": seed, "rows": [asdict(row) for row in rows]},
        tables=[
            listed(
                f"Fewest users for two thirds of {runs} runs",
                "model | method | l | users | right (95%) | messages | local",
                rows,
                _pointer_cells,
                left=("method",),
            ),
            "Every one-round local protocol needs a number of users that grows at least like l ([004] Theorem 17); "
            "with a shuffler it need not grow at all (Theorem 18). Epsilon 1, delta 1e-6.\n"
            "A guess is right once in l times. Messages: a user's, on average. Local: the part of local runs that are "
            "right with as many users.",
        ],
        again=[("more runs", again + ("" if method == "decoys" else f" --method {method}"))],
    )


def _pointer_cells(row: "PointerRow") -> str:
    beside = "" if row.local_success_with_as_many is None else f"{row.local_success_with_as_many:.2f}"
    right = f"{row.success:.2f} ({row.success_low:.2f}-{row.success_high:.2f})"
    return (
        f"{row.model} | {row.method} | {row.length} | {row.users:,} | {right} | {row.messages_per_user:,.1f} | {beside}"
    )
