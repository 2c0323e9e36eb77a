"""The comparison with other libraries runs without them, and says that they are missing."""

import builtins
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "peers.py"


def test_what_is_not_installed_is_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_from_file_location("peers", SCRIPT)
    assert spec is not None and spec.loader is not None
    peers = module_from_spec(spec)
    spec.loader.exec_module(peers)
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name.partition(".")[0] in ("opendp", "diffprivlib"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in [each for each in sys.modules if each.partition(".")[0] in ("opendp", "diffprivlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(peers, "LIMITS", (32,))
    rows, skipped = peers.measured(runs=30)
    assert set(skipped) == {"opendp", "diffprivlib"} and all("not installed" in why for why in skipped.values())
    errors = {(row["who"], row["what"]): row["error"] for row in rows}
    most = "shuffledp, at most 32 messages a user"
    # Thirty runs put a root mean square within a factor of two of the standard error, 1.36, but for one in a million.
    assert 0.5 < errors[most, "count"] < 3 and errors["local noise", "count"] > 30
    assert {what for _, what in errors} == {"count", "histogram", "mean"}
