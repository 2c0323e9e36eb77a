"""Examples of units, containers, alerts and dashboards: they name options, metrics and pages that there are."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shuffledp.cli.app import app

DEPLOY = Path("examples/deploy")
PROMTOOL = shutil.which("promtool")


def metrics() -> set[str]:
    """The names that both servers' metrics have."""
    source = "".join(path.read_text() for path in Path("src/shuffledp/service").rglob("*.py"))
    own = re.findall(r'metrics\.(counter|gauge)\(\s*"(\w+)"', source)
    names = set()
    for role in ("shuffler", "analyzer"):
        names |= {f"shuffledp_{role}_{name}{'_total' if kind == 'counter' else ''}" for kind, name in own}
        names |= {f"shuffledp_{role}_requests_total", f"shuffledp_{role}_request_seconds_bucket"}
    return names


def named_metrics(text: str) -> set[str]:
    return set(re.findall(r"\bshuffledp_[a-z]+_[a-z_]+\b", text))


@pytest.mark.skipif(PROMTOOL is None and "CI" not in os.environ, reason="no promtool (Debian: prometheus)")
def test_prometheus_takes_the_alerts_and_they_come_when_they_should() -> None:
    for words in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        done = subprocess.run(
            [str(PROMTOOL), *words], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_and_dashboard_ask_for_metrics_that_there_are() -> None:
    for file in ("prometheus/alerts.yaml", "grafana/operations.json"):
        found = named_metrics((DEPLOY / file).read_text())
        assert found and found <= metrics(), found - metrics()
    assert len(json.loads((DEPLOY / "grafana/operations.json").read_text())["panels"]) == 6


def test_every_alert_has_a_heading_in_the_runbook() -> None:
    alerts = (DEPLOY / "prometheus/alerts.yaml").read_text()
    page = Path("docs/howto/run-for-months.md").read_text()
    headings = {
        re.sub(r"[^a-z0-9]+", "-", line[3:].lower()).strip("-") for line in page.splitlines() if line[:3] == "## "
    }
    named = re.findall(r"runbook: (\S+)#(\S+)", alerts)
    assert len(named) == alerts.count("- alert:")
    assert {path for path, _ in named} == {"docs/howto/run-for-months.md"} and {name for _, name in named} <= headings


@pytest.mark.parametrize("file", sorted(DEPLOY.glob("systemd/*.service")) + sorted(DEPLOY.glob("compose/*.yaml")))
def test_units_and_containers_start_servers_with_options_that_there_are(file: Path) -> None:
    text = file.read_text().replace("\\\n", " ").partition("volumes:")[0]
    role = "shuffler" if "shuffler" in file.name else "analyzer"
    command = re.search(rf"serve {role}((?:\s+(?:--?[a-z-]+|[\w/.:-]+))+)", text)
    assert command is not None
    said = CliRunner().invoke(app, ["serve", role, "--help"]).output
    options = re.findall(r"--[a-z-]+", command[1])
    assert {"--store", "--keys", "--uds"} <= set(options)
    assert all(option in said for option in options), options
    # Only the analyzer's party may have the key that reads.
    assert ("analyzer.key" in text) == (role == "shuffler" and file.suffix == ".service")
