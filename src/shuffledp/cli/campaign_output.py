"""What is said about a campaign: what it learns and promises, what it costs, who sees what, and what to do next."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.cascade_output import (
    KeyFolders,
    cascade_document,
    cascade_tables,
    hops_in_words,
    hops_see,
    relay_sees,
)
from shuffledp.cli.output import collusions_listed, collusions_of, facts, in_bytes, next_steps, print_json, show
from shuffledp.cli.token_output import admission_row

if TYPE_CHECKING:
    from shuffledp.learn.live.described import Described
    from shuffledp.service.campaign import Campaign
    from shuffledp.service.cost import MeasuredCost, TaskCost

_ANALYZER = "the analyzer"
_SHUFFLER_SEES = (
    "the shuffler",
    "which device reports in which slot, and ciphertexts that only the analyzer can open",
)

# What an application calls, by the step that devices compute.
_CALLS = {
    "pull": "choice = device.choose(); device.reward(choice, clicked)",
    "choose": "choice = device.choose(context, offers); device.reward(choice, clicked)",
    "gradient": "device.contribute(row, label)",
    "moments": "device.contribute(row, label)",
    "report": "device.report(value)",
}


def cost_of(campaign: "Campaign", told: "Described") -> "TaskCost":
    """The most that a campaign can cost."""
    from shuffledp.service.cost import TaskCost

    return TaskCost.of_rounds(campaign.routing.layouts, told.reports)


def first_model_bytes(campaign: "Campaign") -> int:
    """How long the first model is as it travels; later ones are about as long."""
    from shuffledp.service.models import model_of

    state = campaign.learner.start()
    return len(json.dumps(model_of(campaign, 0, state, campaign.learner.ask(state)).document()))


def costs_in_words(
    campaign: "Campaign", told: "Described", cost: "TaskCost", measured: "MeasuredCost"
) -> list[tuple[str, str | None]]:
    """What people's devices and the servers are asked for."""
    from shuffledp.service.cost import LARGE_REPORT_BYTES

    speed = measured.speed_in_words(cost)
    large = cost.report_bytes_max > LARGE_REPORT_BYTES
    dear = (
        f"a report is larger than {LARGE_REPORT_BYTES:,} bytes: fewer features or shufflers, or more people a round, "
    )
    dear += "send less"
    return [
        ("a report", f"at most {cost.report_messages_max:,} messages, {cost.report_bytes_max:,} bytes"),
        ("look at", dear if large else None),
        ("a model", f"{first_model_bytes(campaign):,} bytes; where it has not changed, nothing but its tag"),
        ("all reports", f"at most {in_bytes(cost.upload_bytes)}, {told.reports:,} of them"),
        (
            "devices' CPU",
            f"{measured.device_seconds_a_report:.2g} s a report, at most {measured.device_seconds:,.2g} s in all, "
            f"{speed}",
        ),
        ("the analyzer's CPU", f"at most {measured.analyzer_seconds:,.2g} s to open all messages, at this speed"),
        ("each hop's CPU", f"at most {measured.hop_seconds:,.2g} s to take a layer off all" if cost.layers else None),
        ("a shuffler stores", f"at most {in_bytes(cost.shuffler_bytes_max)} of a round at a time"),
        ("the analyzer stores", f"{in_bytes(cost.largest_batch_bytes)} for each full batch until it is read"),
    ]


def _who_sees_what(campaign: "Campaign") -> list[tuple[str, str]]:
    most = max(layout.longest_report_bytes for layout in campaign.routing.layouts)
    return [
        ("everybody", "every model: numbers computed from released batches, signed, and public"),
        ("the network", f"that a device fetches a model, and that one reports at most {most:,} bytes, whatever it is"),
        *(hops_see(len(campaign.hops)) or [_SHUFFLER_SEES]),
        *relay_sees(len(campaign.hops)),
        (_ANALYZER, "the messages of each full batch in random order, without senders and times"),
    ]


def _often(campaign: "Campaign") -> str:
    most = max(seating.in_all for seating in campaign.seatings)
    if most == 1:
        return "takes part once; its own device remembers that"
    return f"takes part at most {most:,} times, never twice in one slot; its own device remembers where"


def _waits(campaign: "Campaign") -> str:
    seconds = campaign.waiting.seconds
    if seconds is None:
        return "waits for as long as it takes; it is never released small"
    return f"is dropped {seconds:,.0f} s after its model, and the learner goes on without it; never released small"


def _people(told: "Described") -> str:
    """How many are asked; and, where these are fewer than were planned for, why."""
    if told.planned in (None, told.people):
        return f"{told.people:,} are asked"
    left = (told.planned or 0) - told.people
    return (
        f"{told.people:,} are asked, of {told.planned:,} (--users): rounds are of equal size, and {left:,} are left out"
    )


def report_campaign(
    campaign: "Campaign",
    *,
    file: Path,
    as_json: bool,
    more: dict[str, Any],
    whole: bool = False,
    measured: dict[str, Any] | None = None,
    folders: KeyFolders | None = None,
) -> None:
    """Print what a campaign is, how accurate, who is trusted and what to do next; or all there is to say.

    Args:
        campaign: whichever.
        file: where it is, for what to type next.
        as_json: for a machine, which is told everything.
        more: what was done beside.
        whole: whether everything is printed.
        measured: seconds that were measured here.
        folders: where keys are, for what to type next.
    """
    from shuffledp.learn.live.described import described

    learner = campaign.learner
    told, step = described(learner), learner.ask(learner.start())
    plan, who = campaign.seatings[0].plan, _who_sees_what(campaign)
    call = _CALLS.get("" if step is None else step.step.name)
    if as_json:
        print_json(_document(campaign, told, who) | ({} if measured is None else {"measured": measured}) | more)
        return
    rows = [
        ("campaign", campaign.id),
        ("learns", told.learns),
        ("people", _people(told)),
        ("privacy", f"epsilon {told.privacy.epsilon:g}, delta {told.privacy.delta:g}, for the whole campaign"),
        ("how accurate", told.accurate),
        ("trusted", told.trusted),
        ("one lying device", plan.lying_client),
        ("it rests on", plan.rests_on),
        ("an application calls", call),
        *more.items(),
    ]
    cautions = dict.fromkeys((*told.privacy.cautions(told.people), *campaign.warnings))
    if whole:
        show(facts("A campaign", rows), facts("How it runs", _running(campaign, told)), *_seen(campaign, told, who))
    else:
        show(facts("A campaign", rows))
    show(*(f"Warning: {each}" for each in cautions))
    _suggest(file, folders or KeyFolders(), fitted=campaign.rows is not None, whole=whole)


def _running(campaign: "Campaign", told: "Described") -> list[tuple[str, str]]:
    """How its rounds go, why the promise holds, and its keys."""
    return [
        ("rounds", told.rounds),
        ("a round that is not full", _waits(campaign)),
        ("a person", _often(campaign)),
        admission_row(campaign.routing.issuer),
        ("private because", told.because),
        ("models", _age(campaign.learner.model_age)),
        ("encrypted to", campaign.public_key.text),
        *hops_in_words(campaign.hops),
        ("models signed by", campaign.signing_key.text),
    ]


def _seen(campaign: "Campaign", told: "Described", who: list[tuple[str, str]]) -> list[Any]:
    """Who sees what, alone and together."""
    plan = campaign.seatings[0].plan
    seen = [(party, f"{told.privacy.epsilon:g}" if party == _ANALYZER else "", sees) for party, sees in who]
    # Of a cascade, what its own parties learn together is listed by itself.
    without_papers = (replace(each, paper_epsilon=None) for each in (() if campaign.hops else plan.collusions()[1:]))
    listed = collusions_listed("Who sees what; together, of one visit", without_papers, plan.privacy.epsilon, seen)
    return [listed, *cascade_tables(plan, len(campaign.hops), " of one visit")]


def _age(age: int) -> str:
    old = "people of a slot answer by the newest one only"
    if age:
        old = f"people of a slot may answer by one that is up to {age} slots old"
    return f"numbered from 0, a new one after every release; {old}"


def _suggest(file: Path, folders: KeyFolders, *, fitted: bool, whole: bool) -> None:
    name = shlex.quote(str(file))
    kept = " -o model.json" if fitted else ""
    all_of_it = [] if whole else [("its rounds, and who sees what", f"campaign show {name} --all")]
    next_steps(
        [
            *all_of_it,
            ("serve it", folders.serving("campaign", name)),
            (
                "see what is learned",
                f"campaign model --campaign {name} --analyzer http://127.0.0.1:{folders.analyzer_port}{kept}",
            ),
            ("check every model", "doctor --store service/analyzer.db"),
        ]
    )


def _document(campaign: "Campaign", told: "Described", who: list[tuple[str, str]]) -> dict[str, Any]:
    plan = campaign.seatings[0].plan
    seatings = [
        {
            "users": each.plan.users,
            "method": each.plan.method,
            "visits": each.visits,
            "group": each.group,
            "in_all": each.in_all,
        }
        for each in campaign.seatings
    ]
    return {
        "schema": 1,
        "campaign_id": campaign.id,
        "kind": told.kind,
        "learns": told.learns,
        "users": told.people,
        "reports": told.reports,
        "rounds": told.rounds,
        "most_rounds": campaign.learner.most_rounds,
        "epsilon": told.privacy.epsilon,
        "delta": told.privacy.delta,
        "proved_delta": told.proved_delta,
        "because": told.because,
        "trusted": told.trusted,
        "accurate": told.accurate,
        "bound": told.bound,
        "bound_proves_nothing": told.proves_nothing,
        "model_age": campaign.learner.model_age,
        "model_bytes": first_model_bytes(campaign),
        "drop_after": campaign.waiting.seconds,
        "seatings": seatings,
        "public_key": campaign.public_key.text,
        "signing_key": campaign.signing_key.text,
        "fingerprint": campaign.learner.fingerprint,
        "who_sees_what": [{"party": party, "sees": sees} for party, sees in who],
        "collusions": collusions_of(plan.collusions(), plan.privacy.epsilon),
        "lying_client": plan.lying_client,
        "rests_on": plan.rests_on,
        "warnings": [*told.privacy.cautions(told.people), *campaign.warnings],
        "cost": cost_of(campaign, told).document(),
        **({"cascade": cascade_document(plan, len(campaign.hops))} if campaign.hops else {}),
    }
