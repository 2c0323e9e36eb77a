"""The tables of wrong twins still fit the code; `make mutants` tries them."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _runner() -> ModuleType:
    """The script beside this file: tests are no package."""
    spec = importlib.util.spec_from_file_location("mutants_run", Path(__file__).with_name("run.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


run = _runner()
MUTANTS = run.load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_it_applies_and_its_tests_are_there(mutant) -> None:
    mutant.applied()
    mutant.check_tests()
    assert len(mutant.why) > 15 and mutant.name == mutant.name.lower().replace(" ", "-")


TABLE = """
default_tests = ["tests/mutants/test_tables.py"]
[[mutant]]
name = "a-twin"
why = "nothing is promised of it"
file = "privacy.py"
old = {old!r}
new = {new!r}
tests = {tests!r}
"""


def written(folder: Path, *, old: str = "class Privacy:", new: str = "class Other:", tests: list[str]) -> Path:
    (folder / "room.toml").write_text(TABLE.format(old=old, new=new, tests=tests))
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"old": "no such text"}, "occurs 0 times"),
        ({"old": "self."}, "not once"),
        ({"new": "class Privacy:"}, "the old one"),
        ({"new": "class class:"}, "not Python"),
        ({"tests": []}, "no tests are named"),
        ({"tests": ["tests/no_such_file.py"]}, "no test file"),
        ({"tests": ["src/shuffledp/privacy.py"]}, "no test file"),
        ({"tests": ["tests/test_privacy.py::test_nothing_of_this_name"]}, "no test tests"),
    ],
)
def test_a_mutant_that_has_rotted_is_named(tmp_path: Path, change: dict, words: str) -> None:
    [mutant] = run.load(written(tmp_path, **{"tests": ["tests/test_privacy.py"]} | change))
    with pytest.raises(run.TableError, match=f"a-twin.*{words}"):
        mutant.applied()
        mutant.check_tests()


def test_tables_are_read_strictly(tmp_path: Path) -> None:
    folder = written(tmp_path, tests=["tests/test_privacy.py"])
    (folder / "second.toml").write_text((folder / "room.toml").read_text())
    with pytest.raises(run.TableError, match="two mutants"):
        run.load(folder)
    (folder / "second.toml").write_text('[[mutant]]\nname = "another"\nwhy = "half a twin"\n')
    with pytest.raises(run.TableError, match="second: another must have"):
        run.load(folder)
    with pytest.raises(run.TableError, match="no mutant and no room"):
        run.chosen(MUTANTS, ["nobody"])


def test_killed_and_survived_are_told_apart(tmp_path: Path) -> None:
    """Three runs of pytest: a test that sees a twin, one that does not, and the unchanged code."""
    template = tmp_path / "unchanged"
    (template / "src" / "shuffledp").mkdir(parents=True)
    (template / "tests").mkdir()
    (template / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\n')
    (template / "src" / "shuffledp" / "__init__.py").write_text("")
    (template / "src" / "shuffledp" / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (template / "tests" / "test_sums.py").write_text(
        "from shuffledp.sums import add\n\n\ndef test_it():\n    assert add(2, 3) == 5\n\n\n"
        "def test_too_little():\n    assert add(2, 2) == 4\n"
    )

    def twin(test: str) -> object:
        return run.Mutant(
            "a-twin", "room", "it multiplies", "sums.py", "a + b", "a * b", (f"tests/test_sums.py{test}",)
        )

    killed, survived = twin("::test_it"), twin("::test_too_little")
    outcomes = [run.try_mutant(mutant, template, tmp_path, root=template) for mutant in (killed, survived)]
    assert [outcome.verdict for outcome in outcomes] == [run.KILLED, run.SURVIVED]
    assert run.try_unchanged([killed, survived], template).verdict == run.KILLED
    assert run.summary(outcomes) == "room           1 of   2 killed, 1 SURVIVED"
    lost = run.Mutant("a-twin", "room", "it is gone", "sums.py", "a - b", "a * b", ("tests/test_sums.py",))
    assert run.try_mutant(lost, template, tmp_path, root=template).verdict == run.UNTRIED
