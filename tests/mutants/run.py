"""Wrong twins of the code, each of which the suite must refuse: `python tests/mutants/run.py`, or `make mutants`.

A mutant is a small change that would break a guarantee: a term of delta that is dropped, a permutation that is none,
noise drawn again for the same seat. The tables beside this file, one a room of the package, say for each of them

    name    what it is called, unique in all tables
    why     what would be broken: no test is needed for a twin that breaks nothing
    file    the file below src/shuffledp
    old     text that occurs exactly once in the file
    new     what stands there instead
    tests   files or single tests, of which at least one must fail

where a table may name tests once for all of its mutants, as `default_tests`. Every mutant is tried in a folder of its
own, with copies of src and tests: nothing here is changed. At the same time the unchanged code must pass all of the
named tests, as a test that fails anyway would kill everything.

The exit status is 0 if all were killed, 3 if one survived, and 2 if one could not be tried.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().parent
ROOT = TABLES.parents[1]
KILLED, SURVIVED, UNTRIED = "killed", "SURVIVED", "UNTRIED"
SURVIVED_STATUS, UNTRIED_STATUS = 3, 2

_KEYS = {"name", "why", "file", "old", "new"}
_MOST_SECONDS = 180.0
# Plugins are not looked for, which takes as long as a small test; the configuration names this one's option.
_PLUGINS = ("-p", "no:cacheprovider", "-p", "pytest_timeout")
_PYTEST = ("-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "--assert=plain", *_PLUGINS)


class TableError(Exception):
    """A table, or one of its mutants, that cannot be used."""


@dataclass(frozen=True)
class Mutant:
    """One wrong twin."""

    name: str
    room: str
    why: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The file that is changed, from the project's folder."""
        return Path("src", "shuffledp", self.file)

    def applied(self, root: Path = ROOT) -> str:
        """The file's text with the change, or an error that says why it does not apply."""
        if not (root / self.path).is_file():
            raise TableError(f"{self.name}: there is no file {self.path}")
        text = (root / self.path).read_text("utf-8")
        if text.count(self.old) != 1:
            raise TableError(f"{self.name}: the old text occurs {text.count(self.old)} times in {self.path}, not once")
        if self.old == self.new:
            raise TableError(f"{self.name}: the new text is the old one")
        changed = text.replace(self.old, self.new)
        try:
            compile(changed, str(self.path), "exec")
        except SyntaxError as broken:
            raise TableError(f"{self.name}: the new text is not Python ({broken})") from None
        return changed

    def check_tests(self, root: Path = ROOT) -> None:
        """Refuse tests that are not there: a run without tests would kill, or spare, for the wrong reason."""
        if not self.tests:
            raise TableError(f"{self.name}: no tests are named")
        for test in self.tests:
            file, _, function = test.partition("::")
            if not file.startswith("tests/") or not (root / file).is_file():
                raise TableError(f"{self.name}: there is no test file {file}")
            if function and f"def {function.split('[')[0]}(" not in (root / file).read_text("utf-8"):
                raise TableError(f"{self.name}: there is no test {test}")


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant, or of the unchanged code, and why it is known."""

    mutant: Mutant | None
    verdict: str
    seconds: float
    words: str = ""


def load(folder: Path = TABLES) -> list[Mutant]:
    """All mutants of all tables; an error for a table that is not as the module says."""
    mutants: list[Mutant] = []
    for table in sorted(folder.glob("*.toml")):
        document = tomllib.loads(table.read_text("utf-8"))
        default = tuple(document.get("default_tests", ()))
        mutants += [_mutant(table.stem, entry, default) for entry in document["mutant"]]
    twice = [name for name, times in Counter(mutant.name for mutant in mutants).items() if times > 1]
    if twice:
        raise TableError(f"{twice[0]}: two mutants have this name")
    return mutants


def _mutant(room: str, entry: dict[str, Any], default: tuple[str, ...]) -> Mutant:
    name = entry.get("name", "a mutant without a name")
    if set(entry) - {"tests"} != _KEYS or not all(
        isinstance(entry[key], str) and entry[key] for key in _KEYS - {"new"}
    ):
        raise TableError(f"{room}: {name} must have {', '.join(sorted(_KEYS))} and may have tests")
    return Mutant(room=room, tests=tuple(entry.get("tests", default)), **{key: entry[key] for key in _KEYS})


def chosen(mutants: Sequence[Mutant], only: Iterable[str]) -> list[Mutant]:
    """Those with one of these names, or in one of these rooms; all where nothing is asked for."""
    asked = set(only)
    unknown = asked - {mutant.name for mutant in mutants} - {mutant.room for mutant in mutants}
    if unknown:
        raise TableError(f"{sorted(unknown)[0]}: no mutant and no room has this name (see --list)")
    return [mutant for mutant in mutants if not asked or mutant.name in asked or mutant.room in asked]


def _copy(place: Path) -> None:
    """What a run of tests needs, with the compiled files: a run spends its time on tests."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, place / name)
    shutil.copy2(ROOT / "pyproject.toml", place)


def _run_tests(place: Path, tests: Sequence[str], most_seconds: float) -> tuple[int | None, str]:
    """Exit status and last words of pytest on the code of this folder; None if it had to be stopped."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(place / "src"),
        # Plugins that no test needs take longer to load than most tests to run; one thread a process, as in CI.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        # Hypothesis then has no deadlines and no luck: a machine that is busy kills nobody. (Pytest would write long
        # differences out in full, which for megabytes of bytes takes minutes: hence plain assertions.)
        "CI": "true",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment.pop("PYTEST_ADDOPTS", None)
    process = subprocess.Popen(
        [sys.executable, *_PYTEST, *tests],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=most_seconds)
    except subprocess.TimeoutExpired:
        # Whatever servers its tests had started end with it.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, f"stopped after {most_seconds:g} s"
    return process.returncode, output.strip()


def try_mutant(mutant: Mutant, template: Path, folder: Path, root: Path = ROOT) -> Outcome:
    """Run its tests on the changed code."""
    started = time.perf_counter()
    place = folder / mutant.name
    try:
        # Links are as good as copies: only one file differs, and nothing is written into the others.
        shutil.copytree(template, place, copy_function=os.link)
        changed = mutant.applied(root)
        mutant.check_tests(root)
        target = place / mutant.path
        target.unlink()
        target.write_text(changed, "utf-8")
        # The compiled file of the unchanged text must not stand for a new one of the same length and second.
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
            compiled.unlink()
        status, words = _run_tests(place, mutant.tests, _MOST_SECONDS)
    except (TableError, OSError) as broken:
        return Outcome(mutant, UNTRIED, time.perf_counter() - started, str(broken))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    seconds = time.perf_counter() - started
    if status == 1:
        return Outcome(mutant, KILLED, seconds, _failed(words))
    if status == 0:
        return Outcome(mutant, SURVIVED, seconds, mutant.why)
    # One that makes a test endless has not been refused by it: another test must say what is wrong.
    return Outcome(mutant, UNTRIED, seconds, f"pytest ended with {status}: {words[-1000:]}")


def _failed(output: str) -> str:
    """The test that failed, by pytest's own summary."""
    lines = [
        line.removeprefix("FAILED ").partition(" - ")[0] for line in output.splitlines() if line.startswith("FAILED ")
    ]
    return f"by {lines[0]}" if lines else "by a test that pytest does not name"


def try_unchanged(mutants: Sequence[Mutant], template: Path) -> Outcome:
    """Run all named tests on the unchanged code: they must pass."""
    started = time.perf_counter()
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    # A whole file covers its single tests.
    tests = [test for test in tests if test.partition("::")[0] == test or test.partition("::")[0] not in tests]
    status, words = _run_tests(template, tests, 10 * _MOST_SECONDS)
    seconds = time.perf_counter() - started
    if status == 0:
        return Outcome(None, KILLED, seconds)
    return Outcome(None, UNTRIED, seconds, f"the named tests do not pass on the unchanged code: {words[-1000:]}")


def run(mutants: Sequence[Mutant], jobs: int) -> list[Outcome]:
    """Try all, so many at a time, and say what became of each."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        template = folder / "unchanged"
        _copy(template)
        subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], cwd=template, check=True)
        with ThreadPoolExecutor(jobs) as pool:
            work = [pool.submit(try_unchanged, mutants, _copied(template, folder / "named tests"))]
            work += [pool.submit(try_mutant, mutant, template, folder) for mutant in mutants]
            outcomes = []
            try:
                for future in as_completed(work):
                    outcomes.append(future.result())
                    _say(outcomes[-1])
            except BaseException:
                # Whoever stops it waits for those at hand, not for all that were to come.
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            return outcomes


def _copied(template: Path, place: Path) -> Path:
    shutil.copytree(template, place)
    return place


def _say(outcome: Outcome) -> None:
    if outcome.mutant is None:
        verdict, name = ("passed" if outcome.verdict == KILLED else outcome.verdict), "the unchanged code"
    else:
        verdict, name = outcome.verdict, f"{outcome.mutant.room}: {outcome.mutant.name}"
    apart = "  " if outcome.verdict == KILLED else "\n         "
    print(f"{verdict:<8} {outcome.seconds:6.1f} s  {name}{apart if outcome.words else ''}{outcome.words}", flush=True)


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many of each room were killed."""
    rooms: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        if outcome.mutant is not None:
            rooms.setdefault(outcome.mutant.room, Counter())[outcome.verdict] += 1
    lines = []
    for room, verdicts in sorted(rooms.items()):
        others = "".join(f", {count} {verdict}" for verdict, count in verdicts.items() if verdict != KILLED)
        lines.append(f"{room:<12} {verdicts[KILLED]:3d} of {verdicts.total():3d} killed{others}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; see the module."""
    parser = argparse.ArgumentParser(description="Try wrong twins of the code against the tests that must refuse them.")
    parser.add_argument("--list", action="store_true", help="name every mutant and why it would matter, and stop")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this mutant or room; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="so many at a time")
    asked = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        mutants = chosen(load(), asked.only)
    except (TableError, tomllib.TOMLDecodeError) as broken:
        print(broken, file=sys.stderr)
        return UNTRIED_STATUS
    if asked.list:
        for mutant in mutants:
            print(f"{mutant.room}: {mutant.name}\n    {mutant.path}\n    {mutant.why}")
        return 0
    outcomes = run(mutants, max(1, asked.jobs))
    print(f"\n{summary(outcomes)}\n{len(mutants)} mutants in {time.perf_counter() - started:.0f} s")
    verdicts = {outcome.verdict for outcome in outcomes}
    if UNTRIED in verdicts:
        return UNTRIED_STATUS
    return SURVIVED_STATUS if SURVIVED in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
