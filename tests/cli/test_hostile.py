"""Hostile command lines: no traceback, exit code 2, one sentence, and nothing written or changed, whatever is typed."""

import json
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from shuffledp import cli

T = "--epsilon 1 --delta 1e-6"
NOBODY = 65534
HOSTILE = [
    # files that are none
    f"sum nowhere.csv --column bit {T}",
    f"sum folder --column bit {T}",
    f"sum empty.csv --column bit {T}",
    f"mean binary.csv --column bit --low 0 --high 1 {T}",
    f"mean binary.parquet --column bit --low 0 --high 1 {T}",
    f"variance binary.npy --low 0 --high 1 {T}",
    f"histogram header.csv --column bit --domain 0:1 {T}",
    f"quantile ragged.csv --column bit --domain 0:1 {T}",
    f"count people.txt --column bit --shufflers 2 {T}",
    f"sum '' --column bit {T}",
    f"sum 'bad\0name.csv' --column bit {T}",
    f"sum {'x' * 300}.csv --column bit {T}",
    f"simulate cube.npy {T}",
    f"simulate objects.npy {T}",
    # columns that are none, and values that are no values
    f"sum people.csv --column nobody {T}",
    f"sum people.csv {T}",
    f"sum people.csv --column city {T}",
    f"sum people.csv --column age {T}",
    f"mean people.csv --column age --low 0 --high 10 {T}",
    f"mean people.csv --column odd --low 0 --high 10 {T}",
    f"mean people.csv --column age --low nan --high 10 {T}",
    f"mean people.csv --column age --low 10 --high 0 {T}",
    f"mean people.csv --column age --low 0 --high inf {T}",
    f"mean people.csv --columns age,bit --low 0 --high 99 --largest-weight -1 {T}",
    f"variance people.csv --column age --low 0 --high 1e300 {T}",
    f"sum people.csv --columns age,age --radius 200 {T}",
    f"sum people.csv --columns , --radius 200 {T}",
    f"histogram people.csv --column city --domain Oslo {T}",
    f"histogram people.csv --column city --domain Rome,Lima {T}",
    f"histogram people.csv --column city --domain people.csv {T}",
    f"histogram people.csv --column city --domain hash:0 {T}",
    f"histogram people.csv --column city --domain hash:99999999999999 {T}",
    f"quantile people.csv --column age --domain 0:1e30 {T}",
    f"quantile people.csv --column age --domain 0:99 --quantiles 0.5,nan {T}",
    f"heavy-hitters people.csv --column city --length 0 {T}",
    f"heavy-hitters people.csv --column city --top -1 {T}",
    f"test-uniform people.csv --column bit --domain 0:1 --distance 2 {T}",
    f"fit people.csv --target bit --classes 0,1 --features city {T}",
    f"fit people.csv --target age --classes 0,1 --features bit {T}",
    f"fit people.csv --target bit --classes 0,0 --features age {T}",
    # numbers that are none, or too large
    "sum people.csv --column bit --epsilon nan --delta 1e-6",
    "sum people.csv --column bit --epsilon 1e309 --delta 1e-6",
    "sum people.csv --column bit --epsilon -1 --delta 1e-6",
    "sum people.csv --column bit --epsilon 1 --delta 1",
    "sum people.csv --column bit --epsilon 1 --delta ''",
    "sum people.csv --column bit --epsilon ∞ --delta 1e-6",
    f"plan binary-sum --users 99999999999999999999999 {T}",
    f"plan histogram --users 100 --categories 99999999999999999999 {T}",
    f"plan counter --users 100 --shufflers 0 {T}",
    f"plan vector-sum --users 100 --dimension 1000000000000 --radius 1 {T}",
    f"sum people.csv --column bit --seed 99999999999999999999999999999999999999999999 --seed -1 {T}",
    f"sum people.csv --column bit --max-messages 0 {T}",
    f"papers counter --shufflers ,, --largest 1000 --runs 1 {T[:0]}",
    "papers amplify --local-epsilon nan --users 10 --delta 1e-6",
    # options that contradict each other, or stand twice
    f"sum people.csv --column bit --columns age,bit {T}",
    f"sum people.csv --column bit --low 0 --radius 1 {T}",
    f"sum people.csv --column bit --plan plan.json {T}",
    f"simulate people.csv --synthetic --column bit {T}",
    f"count --synthetic --users 10 --column bit --shufflers 2 {T}",
    f"test-uniform people.csv --users-needed --domain 0:1 --distance 0.3 {T}",
    f"histogram people.csv --column city --domain Oslo,Rome --domain Lima {T}",
    f"fit people.csv --target bit --classes 0,1 --features age --report r.html {T}",
    f"predict people.csv --model plan.json {T[:0]}",
    "predict people.csv --model people.csv --csv said.csv",
    "predict nowhere.csv --model nowhere.json",
    f"evaluate plan.json people.csv --target bit {T}",
    f"evaluate nowhere.json nowhere.csv --target bit {T}",
    f"evaluate people.csv people.csv --target bit -o people.csv {T}",
    # places where nothing can be written, or must not be
    f"sum people.csv --column bit -o nowhere/answer.json {T}",
    f"sum people.csv --column bit -o folder {T}",
    f"sum people.csv --column bit -o answer {T}",
    f"sum people.csv --column bit -o answer.png {T}",
    f"sum people.csv --column bit --csv people.csv {T}",
    f"sum people.csv --column bit -o ./folder/../people.csv {T}",
    f"sum people.csv --column bit -o link.csv {T}",
    f"histogram people.csv --column city --domain names.csv -o names.csv {T}",
    f"histogram people.csv --column city --domain Oslo,Rome -o a.csv --csv b.csv {T}",
    f"histogram people.csv --column city --domain Oslo,Rome --picture a.json {T}",
    f"quantile people.csv --column age --domain 0:99 --picture 'a\0.png' {T}",
    f"sum people.csv --column bit --plan plan.json -o plan.json {T[:0]}",
    f"plan binary-sum --users 10 -o folder {T}",
    f"plan counter --users 100 --shufflers 2 --picture schedule.jpeg {T}",
    f"count people.csv --column bit --shufflers 2 -o /dev/null {T}",
    f"papers compare --quick -o nowhere/page.html {T}",
    # words that are no words
    "sum",
    "sums people.csv",
    f"sum people.csv --column bit --Epsilon 1 {T}",
    "--nonsense",
    "explain --plan people.csv",
    "explain --plan deep.json",
    "plan mean --users 100 --epsilon",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One folder for all: nothing in it may change."""
    before, made = Path.cwd(), tmp_path_factory.mktemp("hostile")
    os.chdir(made)
    rows = "".join(
        f"{i % 2},{20 + i % 50},{('Oslo', 'Rome', 'Zürich')[i % 3]},{'nan' if i == 7 else i}\n" for i in range(60)
    )
    Path("people.csv").write_text("bit,age,city,odd\n" + rows)
    Path("people.txt").write_text("bit\n1\n")
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("bit\n")
    Path("ragged.csv").write_text("bit,age\n1\n1,2,3\n")
    Path("names.csv").write_text("Oslo\nRome\nZürich\n")
    for name in ("binary.csv", "binary.parquet", "binary.npy"):
        Path(name).write_bytes(bytes(range(256)) * 8)
    Path("deep.json").write_text("[" * 100_000)
    np.save("cube.npy", np.zeros((2, 2, 2)))
    np.save("objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    Path("folder").mkdir()
    Path("link.csv").symlink_to("people.csv")
    with pytest.raises(SystemExit):
        cli.main(["plan", "binary-sum", "--users", "60", "--method", "coins", *T.split(), "-o", "plan.json"])
    os.chdir(before)
    yield made


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_there_are_sixty_and_more_and_none_twice() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 60


@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: line.replace("\0", "0")[:60])
def test_one_sentence_and_nothing_half_written(here: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    before, words = contents(here), shlex.split(line)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    out, err = capsys.readouterr()
    said = err.strip().splitlines()
    assert ended.value.code == 2 and out == "" and "Traceback" not in err, err
    assert len(said) == 1 and said[0].startswith("shuffledp: ") and said[0].endswith("."), err
    assert contents(here) == before
    if HOSTILE.index(line) % 4 == 0:
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, "--json"])
        out, err = capsys.readouterr()
        assert ended.value.code == 2 and err == ""
        assert json.loads(out)["error"].keys() == {"message", "parameter", "value"}


@contextmanager
def _not_as_root() -> Iterator[None]:
    """Root reads everything: while this lasts, somebody without rights does the work."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_a_file_that_may_not_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--column", "bit", *T.split()]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        unreadable = Path(folder) / "people.csv"
        unreadable.write_text("bit\n" + "1\n0\n" * 50)
        # Once as it should be: what is imported on the way may be root's, too.
        with pytest.raises(SystemExit) as ended:
            cli.main(["sum", str(unreadable), *words])
        assert ended.value.code == 0 and capsys.readouterr().out
        unreadable.chmod(0)
        with pytest.raises(SystemExit) as ended, _not_as_root():
            cli.main(["sum", str(unreadable), *words])
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == "" and len(said.err.strip().splitlines()) == 1
    assert "people.csv" in said.err and "Traceback" not in said.err
