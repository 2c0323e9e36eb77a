"""`shuffledp campaign`: a learner on people's devices, as an immutable document that devices and servers share."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.campaign_create import create_app
from shuffledp.cli.campaign_model import model
from shuffledp.cli.campaign_output import report_campaign
from shuffledp.cli.output import facts, print_json, show
from shuffledp.cli.servers import calls_to
from shuffledp.errors import ParameterError

campaign_app = typer.Typer(help="Learn from people's devices as they come: create, show, send, model.")
campaign_app.add_typer(create_app, name="create")
campaign_app.command("model")(model)

File = Annotated[Path, typer.Argument(help="The campaign's file.", metavar="FILE")]


@campaign_app.command("show")
def show_campaign(file: File, as_json: options.AsJson = False) -> None:
    """What a campaign learns, what it promises, its rounds, and who sees what."""
    from shuffledp.service.campaign import Campaign

    report_campaign(Campaign.load(file), as_json=as_json, more={})


@campaign_app.command("send")
def send(
    file: File,
    token_file: Annotated[Path, typer.Option(help="The file of the token for admin.", metavar="FILE")],
    shuffler: options.ShufflerUrl = None,
    analyzer: options.AnalyzerUrl = None,
    as_json: options.AsJson = False,
) -> None:
    """Have servers that are running take a campaign; nothing changes where it is served already."""
    from shuffledp.service.campaign import Campaign
    from shuffledp.service.client.calls import check_url
    from shuffledp.service.keys import load_token

    campaign, token = Campaign.load(file), load_token(token_file)
    # The analyzer first: whatever the shuffler releases has somewhere to go.
    servers = [(name, url) for name, url in (("analyzer", analyzer), ("shuffler", shuffler)) if url is not None]
    if not servers:
        problem = "or analyzer must be given"
        raise ParameterError("shuffler", None, problem, "name a server that is to take the campaign")
    addresses = [(name, check_url(url, name)) for name, url in servers]
    new = {}
    for name, url in addresses:
        with calls_to(url, name, token) as calls:
            body, read = campaign.text.encode(), partial(_is_new, campaign.id)
            new[name] = calls.ask("POST", "/v1/tasks", read, content=body, media="application/json")[0]
    if as_json:
        print_json({"schema": 1, "campaign_id": campaign.id, "new": new})
        return
    said = [(name, "takes it from now on" if is_new else "has it already") for name, is_new in new.items()]
    show(facts("A campaign is served", [("campaign", campaign.id), *said]))


def _is_new(campaign_id: str, status: int, answer: Mapping[str, Any]) -> bool:
    from shuffledp.service.client.calls import NotTheServersError

    if answer.get("task_id") != campaign_id:
        raise NotTheServersError("another campaign, or none")
    return status == 201
