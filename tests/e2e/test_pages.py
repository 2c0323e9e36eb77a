"""Every shell command of the README and of the tutorial runs as it stands there."""

import math
import re
import shlex
import shutil
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import shuffledp
from shuffledp import BinarySum, Privacy, cli

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"


def in_readme() -> list[str]:
    """Commands are indented by four blanks."""
    return re.findall(r"^    (shuffledp .*?)(?:\s+#.*)?$", (ROOT / "README.md").read_text("utf-8"), re.M)


def in_tutorial() -> list[str]:
    return re.findall(r"^\$ (.+)$", (TUTORIAL / "first-count.md").read_text("utf-8"), re.M)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Runs a command as it is typed, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(command: str) -> str:
        program, *words = shlex.split(command)
        assert program == "shuffledp"
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        out, err = capsys.readouterr()
        assert not ended.value.code, err
        return out

    return call


def test_the_readme_shows_two_commands_that_run(tmp_path: Path, run: Callable[[str], str]) -> None:
    commands = in_readme()
    assert len(commands) == 2
    (tmp_path / "docs" / "tutorial").mkdir(parents=True)
    shutil.copy(TUTORIAL / "people.csv", tmp_path / "docs" / "tutorial")
    said = run(commands[0])
    assert "München" in said and (tmp_path / "cities.png").stat().st_size > 10_000
    # The other is run, with its servers, by tests/e2e/test_live.py.
    assert commands[1].startswith("shuffledp demo --folder ")


def test_the_tutorials_commands_run_one_after_another(tmp_path: Path, run: Callable[[str], str]) -> None:
    shutil.copy(TUTORIAL / "people.csv", tmp_path)
    said = {command: run(command) for command in in_tutorial()}
    assert len(said) == 5
    assert all(text.strip() for text in said.values())
    assert (tmp_path / "cities.svg").exists() and (tmp_path / "ages.pdf").exists()


def test_the_commands_about_jobs_run_one_after_another(tmp_path: Path, run: Callable[[str], str]) -> None:
    ways = ("walks", "rides", "drives")
    (tmp_path / "people.csv").write_text("how\n" + "".join(f"{ways[number % 7 % 3]}\n" for number in range(120)))
    page = (ROOT / "docs" / "howto" / "run-as-jobs.md").read_text("utf-8")
    said = {command: run(command) for command in re.findall(r"^\$ (.+)$", page, re.M)}
    assert len(said) == 7 and "all 120 users" in list(said.values())[-1]


def test_what_the_tutorial_says_of_colluders_is_what_its_plan_proves() -> None:
    """The sentence above `explain` names an epsilon for a tenth of the users, and none for half of them."""
    text = " ".join((TUTORIAL / "first-count.md").read_text("utf-8").split())
    planned = next(command for command in in_tutorial() if command.startswith("shuffledp plan binary-sum"))
    users = int(re.findall(r"--users (\d+)", planned)[0])
    assert "--epsilon 1 --delta 1e-6" in planned and "--honest" not in planned
    plan = shuffledp.BinarySum.plan(users=users, privacy=(1, 1e-6))
    tenth = plan.epsilon_with(0.9)
    assert tenth is not None
    assert f"with a tenth of the users {tenth:.4g}; with half of them nothing is proved" in text
    assert plan.epsilon_with(0.5) is None or not math.isfinite(plan.epsilon_with(0.5))
    assert "`--honest-fraction 0.5`" in text
    assert shuffledp.BinarySum.plan(users=users, privacy=(1, 1e-6), honest_fraction=0.5).epsilon_with(0.5) <= 1


def test_the_sample_file_is_what_its_script_makes() -> None:
    spec = spec_from_file_location("make_people", TUTORIAL / "make_people.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.people() == (TUTORIAL / "people.csv").read_text("utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/compare.md", "docs/tutorial/first-count.md"])
def test_links_lead_somewhere_and_nobody_is_promised_that_nobody_is_trusted(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), link
    assert not re.search(r"nobody (is )?trusted|trusted with nothing|nobody sees any", text)
    if page == "README.md":
        assert "do not collude" in text and "honest_fraction" in text


@pytest.mark.parametrize("page", ["README.md", "docs/howto/ask-in-one-line.md"])
def test_a_count_that_a_liar_can_void_is_not_said_to_run_on_devices(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    asked = {"users": 10_000, "privacy": Privacy(1, 1e-6)}
    headline, live = BinarySum.plan(**asked), BinarySum.plan(**asked, live=True)
    assert headline.can_be_spoiled and not live.can_be_spoiled
    assert f"± {headline.standard_error:.2f}" in text and "same plan" not in text
    for said in (f"`{headline.method}`", "lies", "--live", f"± {live.standard_error:.2f}"):
        assert said in text, said
