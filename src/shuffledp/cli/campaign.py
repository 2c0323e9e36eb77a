"""`shuffledp campaign`: a learner on people's devices, as an immutable document that devices and servers share."""

from pathlib import Path
from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.campaign_create import create_app
from shuffledp.cli.campaign_model import model
from shuffledp.cli.campaign_output import report_campaign
from shuffledp.cli.sending import send_document

campaign_app = typer.Typer(help="Learn from people's devices as they come: create, show, send, model.")
campaign_app.add_typer(create_app, name="create")
campaign_app.command("model")(model)

File = Annotated[Path, typer.Argument(help="The campaign's file.", metavar="FILE")]


@campaign_app.command("show")
def show_campaign(
    file: File,
    whole: Annotated[bool, typer.Option("--all", help="Its rounds, its keys, and who sees what, too.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """What a campaign learns, how accurate it is, whom one trusts, and what to do next."""
    from shuffledp.service.campaign import Campaign

    report_campaign(Campaign.load(file), file=file, as_json=as_json, more={}, whole=whole)


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

    send_document("campaign", Campaign.load(file), token_file, shuffler, analyzer, as_json=as_json)
