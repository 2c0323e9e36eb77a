"""`shuffledp simulate`: run any plan on a file's values, in one process."""

from shuffledp.cli import options
from shuffledp.cli.answering import answered
from shuffledp.cli.asked import Asked
from shuffledp.cli.engine_options import HERE, EngineAsked, on_engine
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import facts, next_steps, print_json, show
from shuffledp.cli.said import YOUR_FILE


@options.takes_plan(protocol="option")
@on_engine
def simulate(
    asked: Asked,
    file: options.OptionalFile = None,
    column: options.Column = None,
    columns: options.Columns = None,
    clip: options.Clip = False,
    synthetic: options.Synthetic = False,
    out: options.Out = None,
    picture: options.Picture = None,
    csv: options.Csv = None,
    fast: options.Fast = False,
    with_truth: options.WithTruth = False,
    seed: options.Seed = None,
    engine: EngineAsked = HERE,
    as_json: options.AsJson = False,
) -> None:
    """Run any plan on data: every message randomized, shuffled and read, in one process."""
    kept = KeptFiles.at(out=out, picture=picture, csv=csv, reads=(file, *asked.reads))
    found = answered(
        *(asked, file, column, columns),
        synthetic=synthetic,
        clip=clip,
        fast=fast,
        seed=seed,
        with_truth=with_truth,
        shown=not as_json,
        engine=engine,
    )
    plan, presented = found.plan, found.presented
    # A verdict is no number.
    estimate, value = found.estimate, getattr(found.estimate, "value", None)
    errors = {name: getattr(estimate, name, None) for name in ("standard_error", "bound", "confidence")}
    off_by = plan.off_by(estimate, found.truth) if found.shows_truth else None
    document = found.document(
        {
            "estimate": value,
            **errors,
            "dropped": estimate.dropped,
            "truth": found.truth,
            "error": off_by,
            **presented.figures,
            **kept.named,
        }
    )
    kept.write(document, presented, asked.whose.get("by") or column)
    if as_json:
        print_json(document)
        return
    told = facts(f"{plan.title}: {plan.protocol} by {plan.method}", found.facts(*kept.facts))
    show(*presented.listings, told, plan.compared())
    own = found.other(plan.file_command, file=YOUR_FILE)
    next_steps(
        [
            ("why it is private", found.other("explain")),
            ("keep the plan", found.other(f"plan {plan.protocol}", "-o plan.json")),
            ("your own data", own if synthetic else None),
        ]
    )
