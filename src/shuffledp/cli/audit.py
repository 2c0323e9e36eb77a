"""`shuffledp audit`: does a plan keep its word? An empirical lower bound on epsilon."""

from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.output import facts, heading, print_json, show
from shuffledp.cli.progress import of_how_much

REFUTED = 3
_FOUND = ("verdict", "epsilon_claimed", "epsilon_lower_bound", "epsilon_exact", "delta", "trials", "confidence")

HonestFraction = Annotated[float | None, typer.Option(help="Only this part of the users reports.", metavar="G")]
Sabotage = Annotated[float, typer.Option(help="Run with this part of the noise variance needed.", metavar="F")]


@options.takes_plan()
def audit(
    asked: Asked,
    honest_fraction: HonestFraction = None,
    trials: Annotated[int | None, typer.Option(help="Runs on each input.", metavar="T")] = None,
    confidence: Annotated[float, typer.Option(help="Of the lower bound.", metavar="C")] = 0.999,
    sabotage: Sabotage = 1.0,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
) -> None:
    """Run a plan's randomizer on two neighbouring inputs and try to tell them apart better than it claims."""
    from shuffledp.audit.trials import audit_plan

    # Beside a plan's file it says who reports in the audit, not what the plan is.
    plan = asked.plan(**({} if honest_fraction is None else {"honest_fraction": honest_fraction}))
    with of_how_much("running the randomizer", shown=not as_json) as progress:
        result = audit_plan(
            plan,
            bits=options.bits_of(seed),
            trials=trials,
            confidence=confidence,
            sabotage=sabotage,
            honest_fraction=honest_fraction,
            progress=progress,
        )
    finding, refuted = result.finding, result.verdict == "refuted"
    if as_json:
        print_json(
            {
                **heading(plan, "epsilon", "delta"),
                **{name: getattr(result, name) for name in _FOUND},
                "sabotage": sabotage,
                "honest_fraction": plan.honest_fraction if honest_fraction is None else honest_fraction,
                "event_probabilities": [finding.event_probability, finding.other_probability],
                "fingerprint": plan.fingerprint,
            }
        )
    else:
        meaning = "nothing was found that the claim does not allow; that is no proof (`shuffledp explain` has it)"
        # What was asked for is not the plan's fault.
        cut = (
            None if sabotage == 1 else f"{sabotage:g} of the variance needed, as asked (--sabotage): not the plan's own"
        )
        few = None if honest_fraction is None else f"{honest_fraction:g} of the users, as asked (--honest-fraction)"
        if refuted:
            of_which = "" if cut is None and few is None else "so run, "
            meaning = f"{of_which}the claim is false: epsilon is at least {result.epsilon_lower_bound:.3f}"
            meaning += "; nothing is said against the plan with its own noise" if cut is not None else ""
        seen = f"seen in {finding.event_probability:.3g} of the runs on one input"
        rows = [
            ("noise", cut),
            ("who reports", few),
            ("claimed", f"epsilon {result.epsilon_claimed:g} at delta {result.delta:g}"),
            ("exact", f"epsilon {result.epsilon_exact:.4g}, by the accountant, for the plan as it is"),
            ("found", f"epsilon >= {result.epsilon_lower_bound:.4g}, with {result.confidence:.4g} confidence"),
            ("by the event", f"{seen}, in {finding.other_probability:.3g} on the other"),
            ("runs", f"{result.trials:,} on each input, half to choose the event, half to test it"),
            ("verdict", meaning),
        ]
        show(facts(f"Audit of {plan.protocol} by {plan.method}: {result.verdict}", rows))
    if refuted:
        raise typer.Exit(REFUTED)
