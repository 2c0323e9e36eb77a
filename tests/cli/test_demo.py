"""`shuffledp demo` waits for its servers, and says in a sentence which of them did not come."""

import subprocess
import sys

import pytest

from harness.children import child
from shuffledp.cli import demo_servers
from shuffledp.errors import ShuffleDPError


def test_a_server_that_ends_is_told_in_one_sentence_with_its_log(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(demo_servers, "SHUFFLEDP", (sys.executable, "-S", "-c", "raise SystemExit(7)"))
    code, _, err = run("demo", "--folder", tmp_path, "--users", "300")
    assert code == 2 and "Traceback" not in err and "bug" not in err
    assert "the analyzer has ended with code 7" in err and "analyzer.log" in "".join(err.split())
    assert "reported" not in err


def test_a_demonstration_needs_nothing_that_draws(tmp_path, monkeypatch) -> None:
    """As strangers have it who install nothing else."""
    picture = tmp_path / "running-count.png"
    assert demo_servers.drawn(picture, lambda path: path.touch()) == picture and picture.exists()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert demo_servers.drawn(picture, lambda path: pytest.fail("there is nothing to draw with")) is None
    assert "pip install 'shuffledp[pictures]'" in demo_servers.picture_in_words(None)


def test_a_server_that_is_slow_is_waited_for_and_then_named(tmp_path) -> None:
    with child([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        server = demo_servers.DemoServer("shuffler", process, tmp_path / "shuffler.log")
        answers = iter([False, False, True])
        demo_servers.wait_until(lambda: next(answers), server, "does not answer")
        with pytest.raises(ShuffleDPError, match=r"shuffler runs but does not answer after 0 s: see .*shuffler\.log"):
            demo_servers.wait_until(lambda: False, server, "does not answer", 0.0)
        process.kill()
