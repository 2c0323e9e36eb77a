"""The list of slow tests is about tests that exist."""

from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_everything_that_is_listed_exists() -> None:
    lines = [line for line in (ROOT / "tests" / "slow.txt").read_text("utf-8").splitlines() if line[:1] != "#"]
    listed = dict(reversed(line.split(maxsplit=1)) for line in lines)
    assert len(listed) == len(lines), "something is listed twice"
    for entry, seconds in listed.items():
        file, _, name = entry.partition("::")
        assert float(seconds) > 0 and (ROOT / file).is_file(), f"{file} is no file any more"
        # A function, or what a doctest belongs to; a page has its own name.
        word = name.partition("[")[0].rpartition("." if file.endswith(".py") else "/")[2]
        assert file.endswith(".md") or word in (ROOT / file).read_text("utf-8"), f"{entry} is no test any more"
