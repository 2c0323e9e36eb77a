"""`shuffledp doctor`: checks keys, permissions, clocks, stores, models, servers and tokens, and says what to do."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.output import print_json, show, table

if TYPE_CHECKING:
    from shuffledp.cli.doctor_checks import Checks
    from shuffledp.service.task import Task

FAILED = 3


def doctor(
    keys: Annotated[Path | None, typer.Option(help="A folder of keys.", metavar="FOLDER")] = None,
    task_file: Annotated[
        list[Path] | None, typer.Option("--task", help="A task's file; repeat it.", metavar="FILE")
    ] = None,
    campaign_file: Annotated[Path | None, typer.Option("--campaign", help="A campaign's file.", metavar="FILE")] = None,
    shuffler: options.ShufflerUrl = None,
    analyzer: options.AnalyzerUrl = None,
    store: Annotated[
        list[str] | None, typer.Option(help="A server's store, or an outbox; repeat it.", metavar="FILE|ADDRESS")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check everything that is named; exit code 3 if something fails. Nothing is changed."""
    from shuffledp.cli import doctor_campaigns, doctor_keys, doctor_remains
    from shuffledp.cli.doctor_checks import Checks
    from shuffledp.service.client.calls import check_url
    from shuffledp.service.keys import is_hops

    # A wrong address is bad input, not a finding.
    given = (("shuffler", shuffler), ("analyzer", analyzer))
    servers = [(role, check_url(url, role, insist_on_tls=False)) for role, url in given if url]
    checks = Checks()
    checks.at_versions()
    tokens = None if keys is None else checks.at_keys(keys)
    if keys is not None and not is_hops(keys):
        doctor_campaigns.look_at_signing_keys(checks, keys)
        doctor_keys.look_at_older_keys(checks, keys)
    tasks = [task for file in task_file or () if (task := _look_at_task(checks, file, keys)) is not None]
    campaign = None
    if campaign_file is not None:
        campaign = doctor_campaigns.look_at_campaign(checks, campaign_file, keys)
    for address in store or []:
        checks.at_store(address, keys)
        doctor_remains.look_at_remains(checks, address)
        if keys is not None and not is_hops(keys):
            doctor_keys.look_at_keys_of_store(checks, address, keys)
        doctor_campaigns.look_at_models(checks, address)
    for role, url in servers:
        for task in tasks or (None,):
            checks.at_server(role, url, task, tokens)
        if campaign is not None and role == "analyzer":
            doctor_campaigns.look_at_newest(checks, url, campaign)
    failed = sum(check.status == "fail" for check in checks)
    if as_json:
        print_json({"schema": 1, "checks": [check._asdict() for check in checks], "failed": failed})
    else:
        headings, rows = ("", "what", "found", "what to do"), ((c.status, c.name, c.found, c.to_do) for c in checks)
        listed = table("Checks", headings, rows, left=headings, folded=("found", "what to do"))
        verdict = "All is well." if not failed else f"{failed} of {len(checks)} checks failed."
        show(listed, verdict)
    if failed:
        raise typer.Exit(FAILED)


def _look_at_task(checks: "Checks", file: Path, keys: Path | None) -> "Task | None":
    """A task's file, and whether the keys are those that it names."""
    from shuffledp.cli import doctor_keys
    from shuffledp.service.keys import is_hops

    task = checks.at_task(file)
    if task is not None and keys is not None:
        if is_hops(keys):
            checks.at_hop("task", task, keys)
        else:
            doctor_keys.look_at_key_of(checks, "task's key", task.public_key.text, keys)
    return task
