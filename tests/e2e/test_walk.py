"""A newcomer's walk: fifteen steps from the README in a clean environment, each with what must be seen.

The wheel is built and installed as a stranger would have it; nothing of this checkout is imported. Commands and Python
that stand in the README are taken from there, word by word.
"""

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
MOST_MEGABYTES = 310
BARE_DEMO = ("demo", "--folder", "bare", "--users", "60", "--clients", "1")


def run(*words: object, cwd: Path, code: int = 0, **more: str) -> str:
    """What a command prints, on both its outputs; it must end with this code."""
    # Nothing of this environment may leak into the clean one.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON") and key != "VIRTUAL_ENV"}
    clean |= {"COLUMNS": "120", **more}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, env=clean, check=False, timeout=300
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@dataclass(frozen=True)
class Newcomer:
    """An empty folder, an environment with the wheel, and how much that took."""

    folder: Path
    bin: Path
    megabytes: float
    seconds: float
    first: str
    """What the live service says before anything optional is installed."""

    def types(self, command: str, code: int = 0) -> str:
        """What is seen after typing a command, in a folder with the tutorial's people."""
        name, *words = shlex.split(command)
        return run(self.bin / name, *words, cwd=self.folder, code=code)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    folder = tmp_path_factory.mktemp("walk")
    home = folder / "here"
    home.mkdir()
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "shuffledp/py.typed" in names and any(name.endswith("LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "docs"))]
    began = time.monotonic()
    run(sys.executable, "-m", "venv", "--without-pip", folder / "clean", cwd=folder)
    # This environment's pip installs into the clean one, and compiles nothing that is never imported.
    pip = (sys.executable, "-m", "pip", "--python", folder / "clean" / "bin" / "python", "--quiet")
    pins = ("--constraint", ROOT / "constraints.txt")
    run(*pip, "install", "--no-compile", *pins, wheel, cwd=folder)
    seconds = time.monotonic() - began
    bare = sum(path.stat().st_size for path in (folder / "clean").rglob("*") if path.is_file()) / 1e6
    first = run(folder / "clean" / "bin" / "shuffledp", *BARE_DEMO, cwd=home)
    # The README's own line asks for tables and pictures as well.
    assert "pip install '.[tables,pictures]'" in README
    run(*pip, "install", "--no-compile", *pins, f"{wheel}[tables,pictures]", cwd=folder)
    people = home / "docs" / "tutorial"
    people.mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "tutorial" / "people.csv", people)
    return Newcomer(home, folder / "clean" / "bin", bare, seconds, first)


PEOPLE = "docs/tutorial/people.csv"
GUARANTEE = "--epsilon 1 --delta 1e-6"


def readme_command(start: str) -> str:
    """The README's line that begins so, without what it says beside it."""
    (line,) = re.findall(rf"^    (shuffledp {re.escape(start)}.*)$", README, re.MULTILINE)
    return str(line).partition(" #")[0].strip()


def test_01_it_is_small_and_is_what_was_installed(newcomer: Newcomer) -> None:
    assert newcomer.megabytes <= MOST_MEGABYTES
    assert newcomer.types("python -c 'import shuffledp; print(shuffledp.__file__)'").startswith(
        str(newcomer.bin.parent)
    )


def test_01_the_live_service_needs_nothing_else(newcomer: Newcomer) -> None:
    """As `uvx shuffledp demo` has it: without pictures, and with an answer."""
    assert re.search(r"estimate .*among the first", newcomer.first) and "shuffledp[pictures]" in newcomer.first
    assert not list((newcomer.folder / "bare").rglob("*.png"))


def test_02_the_first_screen_says_where_to_begin(newcomer: Newcomer) -> None:
    seen = newcomer.types("shuffledp --help")
    assert all(word in seen for word in ("histogram", "simulate", "demo", "explain"))


def test_03_it_says_which_version_it_is(newcomer: Newcomer) -> None:
    assert re.search(r"\d+\.\d+\.\d+", newcomer.types("shuffledp --version"))


def test_04_a_histogram_of_a_file_with_a_picture(newcomer: Newcomer) -> None:
    seen = newcomer.types(readme_command("histogram"))
    assert all(city in seen for city in ("Berlin", "Köln", "elsewhere"))
    assert "trusted" in seen and "at most" in seen
    assert (newcomer.folder / "cities.png").read_bytes()[:4] == b"\x89PNG"


def test_05_the_readme_s_python_says_what_the_readme_says(newcomer: Newcomer) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (newcomer.folder / "readme.txt").write_text(block)
    command = "import doctest, sys; sys.exit(doctest.testfile('readme.txt', module_relative=False)[0])"
    assert len(doctest.DocTestParser().get_examples(block)) > 5
    newcomer.types(f'python -c "{command}"')


def test_06_a_mean_of_a_column(newcomer: Newcomer) -> None:
    found = json.loads(newcomer.types(f"shuffledp mean {PEOPLE} --column age --low 0 --high 120 {GUARANTEE} --json"))
    assert 20 < found["estimate"] < 80 and found["simulated"] is False


def test_07_quantiles_of_a_column(newcomer: Newcomer) -> None:
    seen = newcomer.types(f"shuffledp quantile {PEOPLE} --column age --low 0 --high 120 {GUARANTEE}")
    assert "0.5" in seen or "median" in seen


def test_08_a_plan_without_any_data(newcomer: Newcomer) -> None:
    seen = newcomer.types(f"shuffledp plan binary-sum --users 10000 {GUARANTEE} --live -o plan.json")
    assert "poisson-bits" in seen and "4.62" in seen
    assert json.loads((newcomer.folder / "plan.json").read_text())["users"] == 10_000


def test_09_why_that_is_private(newcomer: Newcomer) -> None:
    seen = newcomer.types("shuffledp explain --plan plan.json")
    assert all(word in seen for word in ("analyzer + shuffler", "delta"))


def test_10_a_running_count(newcomer: Newcomer) -> None:
    seen = newcomer.types(f"shuffledp count --synthetic --users 2000 {GUARANTEE} -o running.png")
    assert ("at every time" in seen and "4 shufflers" in seen.replace("\n", " ")) or "shufflers" in seen
    assert (newcomer.folder / "running.png").exists()


def test_11_a_mistake_is_one_sentence_with_a_way_out(newcomer: Newcomer) -> None:
    seen = newcomer.types(f"shuffledp histogram {PEOPLE} --column town --domain Ulm,Berlin {GUARANTEE}", code=2)
    assert "town" in seen and "city" in seen and "Traceback" not in seen


def test_12_all_methods_side_by_side(newcomer: Newcomer) -> None:
    seen = newcomer.types(f"shuffledp protocols binary-sum --users 10000 {GUARANTEE}")
    assert all(word in seen for word in ("shares", "poisson-bits", "pure"))


def test_13_half_the_noise_is_caught(newcomer: Newcomer) -> None:
    seen = newcomer.types(f"shuffledp audit binary-sum --method coins --users 80 {GUARANTEE} --sabotage 0.5", code=3)
    assert "refuted" in seen


def test_14_what_is_missing_is_named_with_how_to_get_it(newcomer: Newcomer) -> None:
    table = f"{PEOPLE} --target clicked --features age,minutes --bounds 0:120 --classes 0,1"
    assert "pip install 'shuffledp[learn]'" in newcomer.types(f"shuffledp fit {table} {GUARANTEE}", code=2)


def test_15_the_live_service(newcomer: Newcomer) -> None:
    seen = newcomer.types(f"{readme_command('demo')} --users 200 --clients 1")
    assert "200 sent, 200 acknowledged" in seen and "; 0 void" in seen
    assert list((newcomer.folder / "live").rglob("running-count.png"))
