"""The tables of docs/howto/size-batch-jobs.md come from figures that were measured, by sums that are right."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
PAGE = runpy.run_path(str(ROOT / "benchmarks" / "batches_page.py"), run_name="batches_page")
sys.path.pop(0)


def measured(**change: float) -> dict[str, Any]:
    figures = {
        "permuting: ns of one core a message": 864.0,
        "opening by 1: messages a second of one core's CPU": 10_000.0,
        "counting u1: ns of one core a message": 4.32,
        "counting u2: ns of one core a message": 8.64,
        "the disk: bytes a second, read and written": 77e6,
        **change,
    }
    rows = [{"name": name, "value": value} for name, value in figures.items()]
    return {"schema": 1, "date": "2026-01-31", "machine": "a machine", "figures": rows}


def test_cores_are_what_was_measured_times_how_often() -> None:
    speeds = PAGE["JobSpeeds"].of(measured())
    assert speeds.cores(1e12) == pytest.approx({"permuting": 10, "opening": 1e8 / 86_400, "counting": 0.1})
    # The slower of two widths is counted on.
    assert speeds.counting == pytest.approx(8.64e-9)


def test_bytes_disks_and_money_follow() -> None:
    speeds, prices = PAGE["JobSpeeds"].of(measured()), PAGE["Prices"](core_hour=0.1, byte_month=3e-11)
    table = PAGE["table"](speeds, prices)
    [row] = [line for line in table.splitlines() if line.startswith("| 1e12 |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    cores = 10 + 1e8 / 86_400 + 0.1
    money = cores * 2.4 + 2 * 77e12 * 3e-11 / 30
    assert cells[1] == "18,000" and cells[2] == "10" and cells[5] == "77" and cells[6] == "150"
    assert float(cells[7].replace(",", "")) == pytest.approx(154e12 / 77e6 / 86_400, rel=0.05)
    assert float(cells[8].replace(",", "")) == pytest.approx(money, rel=0.05)
    twice = PAGE["table"](PAGE["JobSpeeds"].of(measured(**{"permuting: ns of one core a message": 1728.0})), prices)
    assert twice != table


def test_the_page_is_what_was_kept() -> None:
    document = json.loads(PAGE["MEASURED"].read_text("utf-8"))
    text = PAGE["PAGE"].read_text("utf-8")
    assert text.split(PAGE["BEGIN"])[1].split(PAGE["END"])[0].strip() == PAGE["generated"](document).strip()
    from shuffledp.service.wire import CIPHERTEXT_BYTES, LARGEST_BATCH_BYTES

    assert (PAGE["MESSAGE_BYTES"], PAGE["BATCH_BYTES"]) == (CIPHERTEXT_BYTES, LARGEST_BATCH_BYTES)
