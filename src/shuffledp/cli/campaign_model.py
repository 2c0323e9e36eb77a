"""`shuffledp campaign model`: fetches a model as a device does, checks who signed it, and says what it knows."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.fit_data import check_target_path
from shuffledp.cli.output import facts, is_same_file, next_steps, print_json, show, table
from shuffledp.cli.servers import calls_to
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.service.campaign import Campaign
    from shuffledp.service.client.calls import Calls
    from shuffledp.service.models import Model
    from shuffledp.service.wire import SignedText

Lines = list[tuple[str, str | None]]

_MOST_SHOWN = 12


def model(
    campaign_file: options.CampaignFile,
    analyzer: Annotated[str, typer.Option(help="Where the analyzer is, or a cache of it.", metavar="URL")],
    number: Annotated[int | None, typer.Option(help="An older model; the newest if left out.", metavar="N")] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write what `predict` takes, or else the signed model.", metavar="FILE"),
    ] = None,
    patience: options.Patience = 5.0,
    as_json: options.AsJson = False,
) -> None:
    """The newest model of a campaign, signature checked, in words; `-o` keeps it. No token is needed."""
    from shuffledp.service.campaign import Campaign
    from shuffledp.service.models import checked_model

    campaign = Campaign.load(campaign_file)
    if out is not None:
        check_target_path("out", out)
        if is_same_file(out, campaign_file):
            raise ParameterError("out", str(out), "must be another file than the campaign's", "name another")
    if number is not None and number < 0:
        raise ParameterError("number", number, "must be 0 or more", "models are numbered from 0")
    with calls_to(analyzer, "analyzer", None, patience) as calls:
        found = _fetched(calls, campaign, number)
    checked = checked_model(found, campaign)
    if number is not None and checked.number != number:
        raise ParameterError("number", checked.number, f"must be {number}, as asked for", "ask the analyzer itself")
    written = None if out is None else _write(out, campaign, checked, found)
    if as_json:
        print_json(
            {
                "schema": 1,
                "campaign_id": campaign.id,
                **{name: value for name, value in checked.document().items() if name not in ("version", "campaign")},
                "signed_by": campaign.signing_key.text,
                "signature": found.signature,
                "written": written,
            }
        )
        return
    place = checked.round
    asked = "nobody is asked any more"
    if place is not None:
        asked = f"round {place.number}, people of {_slots(place.first_slot, place.end_slot)}"
    rows: Lines = [
        ("campaign", campaign.id[:12]),
        ("model", f"{checked.number}: of {checked.number} releases"),
        ("signed by", f"the campaign's analyzer, {campaign.signing_key.text}"),
        ("waits for", asked),
        *_known(campaign, checked),
        ("written", None if written is None else str(written)),
    ]
    show(facts("A model", rows))
    if written is not None and campaign.rows is not None:
        next_steps([("predict by it", f"predict YOUR.csv --model {written} --csv said.csv")])


def _slots(first: int, end: int) -> str:
    return f"slot {first}" if end == first + 1 else f"slots {first} to {end - 1}"


def _fetched(calls: "Calls", campaign: "Campaign", number: int | None) -> "SignedText":
    from shuffledp.service.wire import SignedText

    which = "newest" if number is None else str(number)
    return SignedText.from_document(calls.json(f"/v1/campaigns/{campaign.id}/models/{which}"))


def _write(out: Path, campaign: "Campaign", checked: "Model", found: "SignedText") -> Path:
    """Keep a model: as `predict` takes it where devices have rows, else as it was signed."""
    import json

    from shuffledp.learn.live.linear_models import linear_model
    from shuffledp.tables.whole import write_text_whole

    if campaign.rows is None:
        write_text_whole(out, json.dumps(found.document(), indent=2) + "\n")
    else:
        learner: Any = campaign.learner
        linear_model(learner, campaign.rows, checked.estimate, rounds=checked.number).save(out)
    return out


def _known(campaign: "Campaign", checked: "Model") -> Lines:
    """What a model knows, in words, by the kind of its learner."""
    kind = str(campaign.document["learner"]["kind"])
    return [("known", "nothing yet")] if checked.estimate is None else _WORDS[kind](campaign, checked)


def _numbers(values: Any) -> str:
    listed = [values] if isinstance(values, int | float) else list(values)
    shown = ", ".join(f"{value:.4g}" for value in listed[:_MOST_SHOWN])
    return shown + (f" and {len(listed) - _MOST_SHOWN} more" if len(listed) > _MOST_SHOWN else "")


def _arms(campaign: "Campaign", checked: "Model") -> Lines:
    known, left = checked.estimate, set(checked.estimate["active"])
    rows = (
        (str(arm), "-" if mean is None else f"{mean:.4g}", "yes" if arm in left else "no")
        for arm, mean in enumerate(known["means"])
    )
    show(table("Arms", ("arm", "estimated reward", "still there"), rows))
    step = checked.step
    shown = None if step is None else str(step.parameters["arm"])
    width = known["width"]
    behind = "no arm was compared yet"
    if width is not None:
        behind = f"arms that seemed more than {width:.3g} worse than the best were dropped"
    return [("devices are shown", None if shown is None else f"arm {shown}"), ("compared", behind)]


def _linear(campaign: "Campaign", checked: "Model") -> Lines:
    known, step = checked.estimate, checked.step
    parameters: Any = {} if step is None else step.parameters.get("model", {})
    radius = parameters.get("radius")
    return [
        ("people", f"{known['users']:,} are in it"),
        ("theta", _numbers(known["theta"])),
        ("confidence radius", None if radius is None else f"{radius:.4g}"),
    ]


def _fit(campaign: "Campaign", checked: "Model") -> Lines:
    from shuffledp.learn.live.linear_models import linear_model

    learner: Any = campaign.learner
    done: Lines = [("rounds", f"{checked.number:,} of {learner.rounds:,}")]
    if campaign.rows is None:
        return [*done, ("numbers", _numbers(checked.estimate))]
    found = linear_model(learner, campaign.rows, checked.estimate, rounds=checked.number)
    if found.coefficients.ndim == 1:
        rows = [*zip(found.columns, found.coefficients.tolist(), strict=True), ("intercept", found.intercept)]
        show(table("Coefficients", ("column", "coefficient"), ((name, f"{value:.6g}") for name, value in rows)))
    else:
        headings = ("class", *found.columns, "intercept")
        several = zip(found.classes or (), found.coefficients.tolist(), found.intercept, strict=True)  # type: ignore[arg-type]
        cells = ((str(label), *(f"{value:.4g}" for value in (*row, constant))) for label, row, constant in several)
        show(table("Coefficients", headings, cells))
    return [*done, ("people", f"{found.users:,} were asked for it")]


def _statistic(campaign: "Campaign", checked: "Model") -> Lines:
    known = checked.estimate
    if not isinstance(known, dict) or "value" not in known:
        return [("known", str(known)[:200])]
    error = "" if known.get("standard_error") is None else f" ± {known['standard_error']:.4g}"
    bound, confidence = known.get("bound"), known.get("confidence")
    within = None if bound is None or confidence is None else f"{bound:,.4g} with {confidence:.0%} confidence"
    return [("estimate", f"{_numbers(known['value'])}{error}"), ("within", within)]


_WORDS: dict[str, Callable[["Campaign", "Model"], Lines]] = {
    "arms": _arms,
    "linear-bandit": _linear,
    "fit": _fit,
    "statistic": _statistic,
}
