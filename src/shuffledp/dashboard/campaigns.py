"""The page of a campaign: its models by number, its rounds, and what is proved about them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from shuffledp.dashboard.elements import Html, element, facts, joined, section, table
from shuffledp.dashboard.knowledge import about_a_person, collusions_table, costs, spending
from shuffledp.dashboard.layout import warnings_of
from shuffledp.dashboard.pages import AnalyzerPages
from shuffledp.files import plain
from shuffledp.learn.live.described import described
from shuffledp.service.campaign import Campaign
from shuffledp.service.cost import TaskCost
from shuffledp.service.models import Model, unchecked_model
from shuffledp.service.presenting import in_words

MOST_MODELS = 100_000
_LAST_MODELS = 10
_LONGEST = 200


class CampaignPages(AnalyzerPages):
    """Pages of an analyzer's campaigns."""

    def listed(self) -> Html | None:
        """All campaigns, with how far each is; None where there are none."""
        rows = []
        for campaign_id, campaign in sorted(self.server.campaigns.items()):
            told, model = described(campaign.learner), self._newest(campaign)
            rows.append(
                (
                    element("a", told.learns, href=f"/campaigns/{campaign_id}"),
                    campaign_id[:12],
                    f"{told.people:,}",
                    f"{told.privacy.epsilon:g}",
                    f"{model.number:,}",
                )
            )
        headings = ("learns", "campaign", "people", "epsilon", "newest model")
        left = (True, True, False, False, False)
        return section("Campaigns", table("Campaigns", headings, rows, left=left)) if rows else None

    def _newest(self, campaign: Campaign) -> Model:
        return unchecked_model(self.server.newest_model(campaign.id))

    def whole(self, campaign: Campaign) -> Html:
        """The page of a campaign."""
        told, plan = described(campaign.learner), campaign.seatings[0].plan
        cost = TaskCost.of_rounds(campaign.routing.layouts, told.reports)
        live = element(
            "div",
            self.part(campaign),
            id="live",
            data_part=f"/campaigns/{campaign.id}/part",
            data_events=f"/campaigns/{campaign.id}/events",
        )
        about = [
            ("Learns", told.learns),
            ("Rounds", told.rounds),
            ("How accurate", told.accurate),
            ("Bound", None if told.bound is None else f"{told.bound:,.4g}"),
            ("Why it is private", told.because),
            ("Trusted", told.trusted),
            ("Campaign", campaign.id),
        ]
        return joined(
            [
                warnings_of(*campaign.warnings),
                live,
                element("p", "", id="state", class_="note", role="status"),
                element(
                    "p",
                    "Download: ",
                    element("a", "JSON", href=f"/campaigns/{campaign.id}/data.json", download=True),
                    class_="downloads",
                ),
                section("What is proved", facts(about)),
                spending(told.privacy, self.ledger, "campaign"),
                about_a_person(plan, told.people, told.privacy),
                section(
                    "What a person sends",
                    costs(cost.report_messages_max, cost.report_bytes_max, cost.report_bytes_mean),
                ),
                collusions_table(plan),
            ]
        )

    def part(self, campaign: Campaign) -> Html:
        """What changes with every model."""
        newest = self._newest(campaign)
        progress = self.server.progress(campaign.id)
        rows = [
            ("Newest model", f"{newest.number:,}: of {newest.number:,} releases"),
            ("Waits for", _waits(newest)),
            *(("Known" if name is None else name.capitalize(), words) for name, words in _known(newest.estimate)),
            ("Dropped", f"{progress.dropped:,} malformed messages"),
            ("Void", f"{progress.batches_void:,} batches that said nothing"),
        ]
        after = max(-1, newest.number - _LAST_MODELS)
        models = [unchecked_model(each) for each in self.server.models(campaign.id, after, _LAST_MODELS)]
        lines = [
            (
                f"{each.number:,}",
                "-" if each.round is None else f"{each.round.number:,}",
                "-" if each.round is None else f"{each.round.first_slot:,} to {each.round.end_slot - 1:,}",
                "-" if each.step is None else each.step.name,
                "; ".join(f"{name}: {words}" if name else words for name, words in _known(each.estimate))[:_LONGEST],
            )
            for each in reversed(models)
        ]
        headings = ("model", "round", "slots", "devices compute", "known")
        left = (True, False, False, True, True)
        return section("Models", facts(rows), table("The newest models", headings, lines, left=left, id="models"))

    def newest(self, campaign: Campaign) -> dict[str, Any]:
        """What an event says: the newest model's number."""
        return {"model": self._newest(campaign).number}

    def download(self, campaign: Campaign) -> dict[str, Any]:
        """All models of a campaign, as JSON."""
        found = [unchecked_model(each) for each in self.server.models(campaign.id, -1, MOST_MODELS)]
        return {
            "schema": 1,
            "campaign_id": campaign.id,
            "progress": asdict(self.server.progress(campaign.id)),
            "models": [each.document() for each in found],
        }


def _waits(model: Model) -> str:
    place = model.round
    if place is None:
        return "nobody: no device is asked any more"
    end = place.end_slot - 1
    slots = f"slot {end:,}" if end == place.first_slot else f"slots {place.first_slot:,} to {end:,}"
    return f"people of round {place.number:,}, {slots}"


def _known(estimate: Any) -> list[tuple[str | None, str]]:
    """What a model knows, by the names that its learner gives."""
    if isinstance(estimate, Mapping):
        return [(str(name).replace("_", " "), in_words(plain(each)) or "-") for name, each in estimate.items()]
    return [(None, "nothing yet" if estimate is None else in_words(plain(estimate)))]
