"""`shuffledp experiment secure-sum`: a curator's sum from two rounds of shuffling, as a demonstration."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import collusions_of, facts, next_steps, print_json, show, table

if TYPE_CHECKING:
    from shuffledp.simulation.masked_sum import MaskedSumRun

Users = Annotated[int, typer.Option("--users", help="How many people take part; all must stay.", metavar="N")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="The privacy target; smaller is safer.", metavar="E")]
Delta = Annotated[float, typer.Option("--delta", help="At which a coalition's epsilon is told.", metavar="D")]

_RUN = ("pairs", "keys_agree", "messages_round_1", "messages_round_2", "truth", "error", "seconds")


def experiment_secure_sum(
    users: Users = 20,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    seed: options.FixedSeed = 1,
    as_json: options.AsJson = False,
) -> None:
    """A demonstration: a curator's sum in two rounds of shuffling, keys for every two users, then masked values."""
    from shuffledp.experiments.secure_sum import secure_sum
    from shuffledp.privacy import Privacy

    plan, run = secure_sum(users, Privacy(epsilon, delta), seed)
    if as_json:
        print_json(_document(plan, run, seed))
        return
    show(_rounds(plan, run), _coalitions(plan))
    show(
        "A demonstration: everybody must follow the protocol and stay until the end, one dropout voids the sum, and "
        "messages grow with the square of the users. For work, `shuffledp plan binary-sum` needs one round."
    )
    same = f"--epsilon {epsilon:g} --delta {delta:g} --seed {seed}"
    next_steps(
        [
            ("more people", f"experiment secure-sum --users {5 * users} {same}"),
            ("one round", f"plan binary-sum --users {users} --epsilon {epsilon:g} --delta {delta:g}"),
        ]
    )


def _document(plan: Any, run: "MaskedSumRun", seed: int) -> dict[str, Any]:
    return {
        "schema": 1,
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
        **{name: getattr(run.estimate, name) for name in ("standard_error", "bound", "confidence", "simulated")},
        "collusions": collusions_of(plan),
        "seed": seed,
    }


def _rounds(plan: Any, run: "MaskedSumRun") -> Any:
    import math

    agreement, estimate = plan.agreement, run.estimate
    bits = f"{plan.modulus_bits} bits for each of {run.pairs:,} pairs"
    fails = f"fails with probability 2^{math.log2(agreement.failure):.1f} at most"
    agreed = "all agree" if run.keys_agree else "NOT ALL AGREE"
    return facts(
        f"A demonstration: the sum of {plan.users:,} bits in two rounds of shuffling, epsilon {plan.privacy.epsilon:g}",
        [
            ("round 1", f"{run.messages_round_1:,} messages: {plan.repetitions} coins of each user for each other"),
            ("keys", f"{bits}, {agreed}; the unluckiest pair made {run.fewest_key_bits}"),
            ("", f"{fails}, before anything private is sent"),
            ("round 2", f"{run.messages_round_2:,} messages: value, share of the noise and masks, modulo 2^"
             f"{plan.modulus_bits}"),
            ("sum", str(estimate)),
            ("true sum", f"{run.truth:,}, so that the error is {run.error:+g}"),
            ("noise", f"{plan.noise_law}, what a trusted curator would add"),
            ("seconds", f"{run.seconds:.2f}"),
        ],
    )  # fmt: skip


def _coalitions(plan: Any) -> Any:
    cells = (
        (row.parties, "-" if row.epsilon is None else f"{row.epsilon:.3f}", row.in_words) for row in plan.collusions()
    )
    title = f"What a coalition would learn, at delta {plan.privacy.delta:g}"
    headings = ("who", "epsilon", "what is seen")
    return table(title, headings, cells, left=("what is seen",), folded=headings)
