"""`shuffledp simulate`: run a plan on a column of data, in one process."""

from typing import TYPE_CHECKING

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.output import facts, heading, next_steps, print_json, question, show
from shuffledp.cli.progress import simulated
from shuffledp.cli.typed import has_own_command, own_columns, plan_options

if TYPE_CHECKING:
    pass


@options.takes_plan(protocol="option")
def simulate(
    asked: Asked,
    file: options.OptionalFile = None,
    column: options.Column = None,
    columns: options.Columns = None,
    clip: options.Clip = False,
    synthetic: options.Synthetic = False,
    fast: options.Fast = False,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """Run a plan on data: every message randomized, shuffled and read, in one process."""
    bits = options.bits_of(seed)
    plan, values, clipped = asked.with_data(file, column, columns, seed, synthetic=synthetic, clip=clip)
    estimate, seconds = simulated(plan, values, bits=bits, fast=fast, shown=not as_json)
    estimate = estimate.labelled(simulated=estimate.simulated, clipped=clipped)
    # A verdict is no number.
    truth, value = plan.true_value(values), getattr(estimate, "value", None)
    presented = plan.present(estimate, truth)
    messages = 0 if fast else round(plan.users * plan.mean_messages(values))
    if as_json:
        print_json(
            {
                **heading(plan),
                **plan.domain_document,
                "estimate": value,
                **{name: getattr(estimate, name, None) for name in ("standard_error", "bound", "confidence")},
                "dropped": estimate.dropped,
                "clipped": clipped,
                "truth": truth,
                "error": plan.off_by(estimate, truth),
                **presented.figures,
                "fidelity": "law" if fast else "messages",
                "messages": messages,
                "simulated": estimate.simulated,
                "seconds": seconds,
                "reference": plan.reference(),
                "fingerprint": plan.fingerprint,
            }
        )
        return
    about = "" if plan.messages_per_user_mean == plan.messages_per_user_max else "about "
    how = "its own law, no messages made" if fast else f"{about}{messages:,} messages made, shuffled and read"
    happened = "each device randomized its own value, a shuffler mixed the messages, the analyzer read the mix"
    rows = [
        ("asked", question(plan)),
        ("what happened", "the estimate was drawn from its law" if fast else happened),
        ("each user sends", plan.sends),
        *presented.facts,
        ("ran", f"{how} in {seconds:.2f} s"),
    ]
    told = facts(f"{plan.title}: {plan.protocol} by {plan.method}", rows)
    show(*presented.listings, told, plan.compared())
    made = f"{plan.protocol} {plan_options(plan, asked.request.get('max_messages'), asked.values or None)}"
    protocol = "" if has_own_command(plan) else f"--protocol {plan.protocol}"
    own = (plan.file_command, "YOUR.csv", own_columns(plan), protocol, plan.options, "--epsilon 1 --delta 1e-6")
    next_steps(
        [
            ("why it is private", f"explain {made if asked.file is None else f'--plan {asked.file}'}"),
            ("keep the plan", f"plan {made} -o plan.json"),
            ("your own data", " ".join(word for word in own if word)),
        ]
    )
