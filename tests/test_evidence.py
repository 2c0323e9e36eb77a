"""A false claim is seen, a true one is not, and no number of the README goes without either."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from evidence import covered
from evidence.__main__ import judged, main, written
from evidence.claims import Claim, Effort, LeftOutError, Measured, Says
from evidence.measuring import cpu_ratio, mean, part, ratio, root_mean_square
from evidence.page import page
from evidence.printed import NotPrintedError, Printed, number
from evidence.register import CHAPTERS, claims

ROOT = Path(__file__).parents[1]
QUICK = Effort(True, 1)
SAID = "Errors are 1.36, at most 20 are lost,\nand 0.96 ± 0.02 are right; no lost report."


def claim(words: str, measured: Measured, says: Says = Says.EQUALS, **more: float) -> Claim:
    named = {"name": "it is so", "how": "by hand", "because": "nothing is drawn", "chapter": "Accuracy"}
    means = more.pop("means", None)
    return Claim(**named, printed=(Printed("said.md", words, means),), measure=lambda _: measured, says=says, **more)


def verdict_of(asked: Claim, folder: Path, said: str = SAID) -> bool | None:
    (folder / "said.md").write_text(said, "utf-8")
    covered.text_of.cache_clear()
    [verdict] = judged([asked], QUICK, root=folder)
    return verdict.holds


ERROR, LOST, RIGHT = r"Errors are ([\d.]+)", r"at most (\d+) are", r"and ([\d.]+) ± ([\d.]+) are"


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        (claim(ERROR, Measured(1.3, 1.25, 1.35)), False),
        (claim(ERROR, Measured(1.3, 1.25, 1.356)), True),
        (claim(ERROR, Measured(1.42, 1.37, 1.5)), False),
        (claim(ERROR, Measured.exact(1.3649)), True),
        (claim(ERROR, Measured.exact(1.3651)), False),
        (claim(ERROR, Measured.exact(1.3651), slack=0.01), True),
        (claim(ERROR, Measured(1.3, 0.7, 1.9)), False),  # it could not have failed
        (claim(ERROR, Measured.exact(float("nan"))), False),
        (claim(LOST, Measured.exact(3.0), Says.AT_MOST), True),
        (claim(LOST, Measured.exact(26.0), Says.AT_MOST), False),
        (claim(LOST, Measured.exact(24.9), Says.AT_MOST), True),  # the 20 has one digit that counts
        (claim(LOST, Measured.exact(26.0), Says.AT_LEAST), True),
        (claim(LOST, Measured.exact(14.0), Says.AT_LEAST), False),
        (claim(RIGHT, Measured.exact(0.9)), True),  # within 3.9 of the printed standard errors
        (claim(RIGHT, Measured.exact(0.87)), False),
        (claim("no lost report", Measured.exact(0.0), means=0.0), True),
        (claim("no lost report", Measured.exact(1.0), means=0.0), False),
    ],
)
def test_what_is_printed_must_be_what_is_measured(asked: Claim, holds: bool, tmp_path: Path) -> None:
    assert verdict_of(asked, tmp_path) is holds


def test_a_number_that_was_changed_without_measuring_fails(tmp_path: Path) -> None:
    asked = claim(ERROR, Measured(1.357, 1.34, 1.37))
    assert verdict_of(asked, tmp_path) is True
    assert verdict_of(asked, tmp_path, SAID.replace("1.36", "1.26")) is False
    assert verdict_of(asked, tmp_path, SAID.replace("Errors", "Mistakes")) is False
    assert verdict_of(asked, tmp_path, SAID + " Errors are 1.36.") is False  # which of both?


def test_what_breaks_fails_and_what_is_not_installed_does_neither(tmp_path: Path) -> None:
    def broken(_: Effort) -> Measured:
        raise AssertionError("a report was lost")

    def gone(_: Effort) -> Measured:
        raise LeftOutError("not installed")

    (tmp_path / "said.md").write_text(SAID, "utf-8")
    whole = claim(ERROR, Measured.exact(1.36))
    found = judged([_by(whole, broken), _by(whole, gone)], QUICK, root=tmp_path)
    assert [each.holds for each in found] == [False, None] and "a report was lost" in found[0].why
    assert written(tmp_path, found[:1], QUICK) == 3 and written(tmp_path, found[1:], QUICK) == 0


def _by(asked: Claim, measure) -> Claim:
    return Claim(name=asked.name, printed=asked.printed, how="", because="", measure=measure)


def test_the_exit_code_is_3_for_a_false_claim_and_0_for_a_true_one(tmp_path: Path, monkeypatch) -> None:
    """By the command itself, on a real claim and on its twin whose number somebody changed."""
    wanted = "Counting as people come: A running count of 10,000 people, delta 1e-06: carried noise, 4 shufflers"
    words = ["--quick", "--seed", "1", "--only", wanted, "--out", str(tmp_path)]
    assert main(words) == 0
    found = json.loads((tmp_path / "evidence.json").read_text("utf-8"))
    [one] = found["claims"]
    assert found["schema"] == 1 and found["holds"] is True and one["holds"] is True
    assert one["printed"][0]["value"] == 55.3 and one["measured"]["value"] == pytest.approx(55.29, abs=0.01)
    other = tmp_path / "project"
    page_of = other / one["printed"][0]["file"]
    page_of.parent.mkdir(parents=True)
    page_of.write_text((ROOT / one["printed"][0]["file"]).read_text("utf-8").replace("| 55.3 |", "| 54.3 |"), "utf-8")
    [asked] = [each for each in claims() if wanted == f"{each.chapter}: {each.name}".rpartition(",")[0]]
    assert written(tmp_path, judged([asked], QUICK, root=other), QUICK) == 3
    with pytest.raises(SystemExit):
        main(["--only", "nothing of that name"])


def test_every_claim_finds_its_words_and_says_how_and_why() -> None:
    all_of_them = claims()
    assert len({each.name for each in all_of_them}) == len(all_of_them) >= 80
    for each in all_of_them:
        assert each.printed and each.how and each.because and each.chapter in CHAPTERS
        for place in each.printed:
            place.read()


def test_every_number_of_the_readme_is_a_claim_or_named_as_none() -> None:
    assert covered.uncovered(claims()) == []
    assert list(covered.stale()) == [], "these words are not in the README any more"


def test_a_new_number_in_the_readme_is_seen(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for more in ("It is 300 times better.", "It is a thousand times better.", "The error is 0.5%."):
        (tmp_path / "README.md").write_text(f"{text}\n{more}\n", "utf-8")
        covered.text_of.cache_clear()
        [seen] = covered.uncovered(claims(), root=tmp_path)
        assert seen.startswith(f"README.md:{len(text.splitlines()) + 2}: ")


def test_the_page_needs_no_other_host_and_says_everything(tmp_path: Path) -> None:
    (tmp_path / "said.md").write_text(SAID, "utf-8")
    asked = [claim(ERROR, Measured(1.3, 1.25, 1.35)), claim(LOST, Measured.exact(3.0), Says.AT_MOST)]
    found = judged(asked, QUICK, root=tmp_path)
    made = page(found, QUICK, "<0.1>")
    assert "1 of 2 claims fail" in made and "prefers-color-scheme: dark" in made and "&lt;0.1&gt;" in made
    assert not re.search(r"https?://|<script|<link|src=|url\(|@import", made)
    assert "said.md:1" in made and "by hand" in made and "nothing is drawn" in made


def test_intervals_hold_what_they_measure() -> None:
    generator = np.random.default_rng(1)
    normal = generator.normal(2.0, 1.0, 4000)
    found = root_mean_square(normal - 2)
    assert found.low < 1 < found.high and found.high - found.low < 0.2
    found = mean(normal)
    assert found.low < 2 < found.high and found.high - found.low < 0.2
    found = part(3800, 4000)
    assert found.low < 0.95 < found.high and 0.02 < found.high - found.low < 0.04
    assert part(0, 10).low == 0 and part(10, 10).high == 1
    found = ratio(Measured(4.0, 3.9, 4.1), Measured(2.0, 1.9, 2.1))
    assert found.low < 2 * 0.96 and found.high > 2 * 1.04 and found.value == 2
    work = np.ones(20_000)
    found = cpu_ratio(lambda: [work.sum() for _ in range(300)], lambda: [work.sum() for _ in range(30)], rounds=9)
    assert 3 < found.value < 30


def test_numbers_are_read_as_they_are_printed(tmp_path: Path) -> None:
    assert number("1.36") == (1.36, 0.005) and number("0.0141") == (0.0141, pytest.approx(5e-5))
    assert number("1,036") == (1036.0, 0.5) and number("70") == (70.0, 5.0) and number("0") == (0.0, 0.5)
    with pytest.raises(NotPrintedError, match="nowhere"):
        Printed("README.md", "words that nobody says").read()
    (tmp_path / "part.md").write_text("so\n95% hold", "utf-8")
    found = Printed("part.md", r"(\d+)% hold", percent=True).read(tmp_path)
    assert (found.value, found.line) == (pytest.approx(0.95), 2)
