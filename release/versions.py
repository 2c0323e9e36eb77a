"""Try the built wheel with every Python that can be had, with the newest and with the lowest versions that it declares.

    python release/versions.py [--python 3.12] [--tests]

An environment of its own for each, made by uv: `--resolution lowest-direct` takes the lowest version of what
pyproject.toml names. Each installs the wheel, asks for a first estimate and, with --tests, runs the quick tests.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = ("highest", "lowest-direct")
QUESTION = (
    "simulate",
    "--protocol",
    "binary-sum",
    "--synthetic",
    "--users",
    "1000",
    "--epsilon",
    "1",
    "--delta",
    "1e-6",
)
VERSIONS = """
from importlib.metadata import version
print(*(f"{name} {version(name)}" for name in ("numpy", "scipy", "cryptography", "typer", "starlette")), sep=", ")
"""
# What runs everywhere in a minute: the accountant, the samplers, plans and the command line.
TESTS = ("tests/accounting", "tests/sampling", "tests/shuffle", "tests/tables", "tests/cli/test_contract.py")


@dataclass(frozen=True)
class Tried:
    """What came of one Python with one choice of versions."""

    python: str
    resolution: str
    said: str
    good: bool | None


def interpreter(version: str) -> str | None:
    """A Python of this version on this machine, or one that uv can bring; None if neither can be had."""
    for found in (
        shutil.which(f"python{version}"),
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
    ):
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    uv = [sys.executable, "-m", "uv", "python"]
    if subprocess.run([*uv, "install", "--quiet", version], capture_output=True, check=False).returncode:
        return None
    return subprocess.run([*uv, "find", version], capture_output=True, text=True, check=True).stdout.strip()


def tried(version: str, resolution: str, wheel: Path, *, tests: bool) -> Tried:
    """Install the wheel into an empty environment and ask it something."""
    found = interpreter(version)
    if found is None:
        return Tried(version, resolution, "this Python cannot be had here", None)
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        python = environment / "bin" / "python"
        uv = [sys.executable, "-m", "uv"]
        extras = ["--extra", "test", "--extra", "tables"] if tests else []
        install = [*uv, "pip", "install", "--quiet", "--python", str(python), "--only-binary", ":all:"]
        pins = ["--constraint", str(ROOT / "constraints.txt")] if resolution == "highest" and version == "3.11" else []
        steps = [
            [*uv, "venv", "--quiet", "--python", found, str(environment)],
            # What pyproject.toml names is direct only if it is asked for itself; a wheel's needs would not be.
            [*install, "--resolution", resolution, *pins, "--requirements", str(ROOT / "pyproject.toml"), *extras],
            [*install, "--no-deps", str(wheel)],
            [str(environment / "bin" / "shuffledp"), *QUESTION],
            [str(python), "-c", VERSIONS],
        ]
        if tests:
            # What others have deprecated since is no fault of their older versions.
            quiet = ["-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning", "-m", "not slow"]
            steps.append([str(python), "-m", "pytest", *quiet, *TESTS])
        said = ""
        for step in steps:
            # Not the tests' own tree: what is installed is what is tried.
            done = subprocess.run(
                step, cwd=ROOT if step[-1] in TESTS else folder, capture_output=True, text=True, check=False
            )
            if done.returncode:
                return Tried(version, resolution, f"{' '.join(step)}: {(done.stderr or done.stdout)[-2000:]}", False)
            if step is steps[3]:
                answer = json.loads(done.stdout)
                said = f"{answer['estimate']:g} ± {answer['standard_error']:.2f}"
            elif step is steps[4]:
                said += f" by {done.stdout.strip()}"
            elif tests and step is steps[-1]:
                said += f"; {done.stdout.strip().splitlines()[-1]}"
    return Tried(version, resolution, said, True)


def main() -> int:
    """Try them all; 1 if one that can be had does not work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", choices=PYTHONS)
    parser.add_argument("--tests", action="store_true")
    asked = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        (wheel,) = (ROOT / "dist").glob("*.whl")
    except ValueError:
        print("dist/ must hold one wheel: make release", file=sys.stderr)
        return 2
    bad = 0
    for version in asked.python or PYTHONS:
        for resolution in RESOLUTIONS:
            found = tried(version, resolution, wheel, tests=asked.tests)
            word = {True: "works", False: "FAILS", None: "skipped"}[found.good]
            print(f"Python {found.python}, {found.resolution} versions: {word}: {found.said}", flush=True)
            bad += found.good is False
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
