"""The tables of docs/howto/size-a-deployment.md come from figures that were measured, by sums that are right."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "benchmarks" / "sizing_page.py"))
FIGURES: dict[str, Any] = {
    "schema": 1,
    "date": "2026-01-31",
    "machine": "a machine",
    "cores": 8,
    "sizing": {
        "put": [100e-6, 1e-6],
        "upload": [10e-6, 1e-6],
        "store": [5e-6, 0.5e-6],
        "sealing": 2e-6,
        "device": 100e-6,
        "opening": 50e-6,
        "message_bytes": 100,
        "written": 4.0,
        "fsync": 2e-3,
        "bandwidth": 200e6,
        "together": 500,
    },
}


def cells(table: str, begins: str) -> list[str]:
    [row] = [line for line in table.splitlines() if line.startswith(f"| {begins} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_what_is_needed_is_what_was_measured_times_how_often() -> None:
    sizing = PAGE["Sizing"].of(FIGURES)
    # Of 9 messages: 100 + 9 * (1 + 2) = 127 microseconds alone, 37 in uploads, 450 to open, 900 bytes, 3,600 written.
    table = PAGE["demand_table"](sizing)
    assert cells(table, "100,000 | 9") == ["100,000", "9", "13", "3.7", "45", "90", "360", "1.8"]
    assert cells(table, "1,000 | 1")[2:] == ["0.1", "0.013", "0.05", "0.1", "0.4", "0.002"]
    assert len(table.splitlines()) == 2 + len(PAGE["RATES"]) * len(PAGE["MESSAGES"])


def test_what_breaks_first_is_the_least_of_all_limits() -> None:
    sizing = PAGE["Sizing"].of(FIGURES)
    limits = sizing.limits(26, 8)
    assert limits["one analyzer of 8 cores"] == pytest.approx(8 / (26 * 50e-6))
    assert limits["one disk's fsyncs, reports alone"] == pytest.approx(250_000)
    assert limits["one disk's bandwidth"] == pytest.approx(200e6 / (26 * 400))
    assert limits["one shuffler process, reports alone"] == pytest.approx(1 / 178e-6)
    assert PAGE["first_to_break"](sizing, 26, 8) == "one shuffler process, reports alone"
    assert PAGE["first_to_break"](sizing, 26, 1) == "one analyzer of 1 cores"
    table = PAGE["limits_table"](sizing, 8)
    assert table.count("**") == 2 * len(PAGE["MESSAGES"])
    assert cells(table, "one shuffler process, reports alone")[-1] == "**5,600**"


def test_a_report_and_its_messages_are_told_apart() -> None:
    assert PAGE["fitted"](1, 103e-6, 26, 178e-6) == pytest.approx((100e-6, 3e-6))
    # Where larger reports seem to cost less, nothing is promised for free.
    assert PAGE["fitted"](1, 5.0, 26, 255.0)[0] == 0.0


def test_the_page_has_the_figures_that_were_kept_and_no_others() -> None:
    page, kept = PAGE["PAGE"].read_text("utf-8"), json.loads(PAGE["MEASURED"].read_text("utf-8"))
    assert PAGE["with_figures"](page, kept) == page, "run: python benchmarks/sizing.py --page"
    assert PAGE["with_figures"](page, FIGURES) != page
    own = page.partition(PAGE["BEGIN"])[0] + page.partition(PAGE["END"])[2]
    assert "microsecond" not in own and "GHz" not in own
    with pytest.raises(ValueError, match="the page must have"):
        PAGE["with_figures"]("no marks", FIGURES)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="CPU seconds of another process are read from /proc")
def test_the_benchmark_measures_a_small_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Desk, store, sealing and encryption in this process: every figure is there, and none is nothing."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    # Tests of the service are in a folder of the same name, and may have been imported.
    monkeypatch.delitem(sys.modules, "service", raising=False)
    before = set(sys.modules)
    try:
        sizing = runpy.run_path(str(ROOT / "benchmarks" / "sizing.py"))
        seconds, written = sizing["store_alone"](tmp_path, 40, 3)
        sealed, more = sizing["sealing"](tmp_path, 50)
        device, opening = sizing["encryption"](20)
        assert min(seconds, sealed, device, opening) > 0 and min(written, more) >= 0
        assert sizing["cpu_seconds"](1) >= 0
    finally:
        for name in set(sys.modules) - before:
            if name in ("service", "report", "sizing_page"):
                del sys.modules[name]
