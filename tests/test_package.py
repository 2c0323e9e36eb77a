import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import shuffledp

ROOT = Path(__file__).parents[1]


def test_every_name_promised_is_there() -> None:
    for name in shuffledp.__all__:
        assert getattr(shuffledp, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = shuffledp.nothing


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/shuffledp/__init__.py"
    assert f"version: {shuffledp.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {shuffledp.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_importing_the_package_imports_almost_nothing() -> None:
    code = "import sys, shuffledp; print([m for m in sys.modules if m.startswith(('shuffledp.', 'numpy', 'scipy'))])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


HEAVY = ("scipy.signal", "scipy.stats", "scipy.optimize", "scipy.linalg", "pyarrow", "pandas", "matplotlib")


@pytest.mark.parametrize(
    "first",
    [
        "import shuffledp; shuffledp.BinarySum.plan(users=1000, privacy=shuffledp.Privacy(1, 1e-6))",
        "import shuffledp.service.client",
    ],
)
def test_what_is_slow_to_import_is_not_imported_first(first: str) -> None:
    code = f"{first}; import sys; print([m for m in {HEAVY} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_constraints_name_no_host_and_no_hash() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        assert name and version and not set(line) & set("@/: "), line
