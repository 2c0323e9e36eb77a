"""What `shuffledp doctor` looks at where there are campaigns: keys, files, and every model that was published."""

import json
from pathlib import Path

import httpx

from shuffledp.cli.doctor_checks import Check, Checks, name_of_store
from shuffledp.errors import ParameterError
from shuffledp.files import kind_of_document
from shuffledp.randomness import RandomBits
from shuffledp.service import keys
from shuffledp.service.analyzer.replaying import replay
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.calls import Calls
from shuffledp.service.models import checked_model
from shuffledp.service.store import inspect_store, look_into_analyzer
from shuffledp.service.store.contract import AnalyzerRecords
from shuffledp.service.wire import SignedText


def look_at_signing_keys(checks: Checks, folder: Path) -> None:
    """What models are signed and checked with; folders of hops, or from before there were campaigns, have neither."""
    if keys.is_hops(folder):
        return
    if not (folder / keys.VERIFYING).exists():
        to_do = "fine without campaigns; for those make keys with this version"
        checks.append(Check("models' keys", "warn", "not here", to_do))
        return
    with checks.noting("models' keys"):
        verifying = keys.load_verifying_key(folder)
        same = not (folder / keys.SIGNING).exists() or keys.load_signing_key(folder).public == verifying
        to_do = "the two are of different pairs: restore the folder, or make new keys"
        checks.verdict("models' keys", same, verifying.text, to_do)


def look_at_campaign(checks: Checks, file: Path, folder: Path | None) -> Campaign | None:
    """The campaign's file, and whether its keys are the folder's; answers the campaign."""
    campaign = None
    with checks.noting("campaign"):
        campaign = Campaign.load(file)
        checks.append(Check("campaign", "ok", campaign.id))
        advice = "only for devices that are yours, or that you trust"
        checks += [Check("campaign's method", "warn", warning, advice) for warning in campaign.warnings]
        if folder is not None and keys.is_hops(folder):
            checks.at_named_keys("campaign", campaign, folder)
        elif folder is not None:
            with checks.noting("campaign's keys"):
                found = (keys.load_public_key(folder), keys.load_verifying_key(folder))
                same = found == (campaign.public_key, campaign.signing_key)
                to_do = "the analyzer with these keys cannot serve it: create the campaign again"
                checks.verdict("campaign's keys", same, campaign.signing_key.text, to_do)
    return campaign


def look_at_models(checks: Checks, address: str) -> None:
    """Every model of every campaign in an analyzer's store, computed again from what its batches said."""
    try:
        if not inspect_store(address).is_analyzers:
            return
    except ParameterError:
        # What is wrong with the store itself has been said.
        return
    name = name_of_store(address)

    def each(records: AnalyzerRecords) -> None:
        for campaign_id, text in records.tasks().items():
            if kind_of_document(json.loads(text)) != "a campaign":
                continue
            what = f"models of {campaign_id[:12]}"
            with checks.noting(what):
                found = replay(records, Campaign.from_text(text))
                lost = f"{found.dropped} rounds dropped, {found.void} batches void"
                words = f"{found.models:,}, each signed and what its batches say; {lost}"
                checks.append(Check(what, "ok", words))

    with checks.noting(f"{name} models"):
        look_into_analyzer(address, each)


def look_at_newest(checks: Checks, url: str, campaign: Campaign) -> None:
    """Whether an analyzer, or a cache of it, gives out a model that devices take."""
    with checks.noting("analyzer's model"), httpx.Client(timeout=5.0) as http:
        calls = Calls(url, None, http, RandomBits.secure(), patience=0.0)
        found = SignedText.from_document(calls.json(f"/v1/campaigns/{campaign.id}/models/newest"))
        model = checked_model(found, campaign)
        checks.append(Check("analyzer's model", "ok", f"number {model.number}, signed by the campaign's key"))
