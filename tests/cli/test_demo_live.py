"""`shuffledp demo recommend` and `demo train`, small: real servers and clients, a story, an object and a picture."""

from pathlib import Path

import pytest

from shuffledp.cli import demo_recommend, demo_servers, demo_train


@pytest.fixture
def few(monkeypatch) -> None:
    """One client process and few simulations: how many there are is no matter here."""
    for module in (demo_recommend, demo_train):
        monkeypatch.setattr(module, "PROCESSES", 1)
    monkeypatch.setattr(demo_recommend, "SIMULATIONS", 20)
    monkeypatch.setattr(demo_train, "_RUNS", 4)


def logs(folder: str) -> bytes:
    return b"".join(log.read_bytes() for log in Path(folder).glob("*.log"))


def test_a_recommender_learns_live(asked, few, tmp_path) -> None:
    words = ("--users", 90, "--epsilon", 8, "--delta", 1e-2, "--choice", "posterior")
    told = asked("demo", "recommend", "--folder", tmp_path, *words)
    assert told["reports_acknowledged"] == told["users"] == 90
    assert told["models"] == 90 // told["slot_users"] > 2
    assert 0 < told["regret"] < told["users"] and 0 <= told["clicks"] <= told["users"]
    assert set(told["simulated"]) == {"live", "free", "one", "local"}
    assert told["simulated"]["free"]["regret"] < told["simulated"]["local"]["regret"]
    assert told["delta_proved"] <= told["delta"] and told["ciphertexts"] > told["users"]
    assert Path(told["picture"]).stat().st_size > 10_000
    assert b"Traceback" not in logs(told["folder"]) and logs(told["folder"])


def test_a_model_is_trained_live_and_told_in_words(run, few, tmp_path) -> None:
    words = ("--users", 200, "--rounds", 4, "--epsilon", 8, "--delta", 1e-2)
    code, out, err = run("demo", "train", "--folder", tmp_path, *words)
    assert code == 0, err
    said = " ".join(out.split())
    assert "in each of 4 rounds the devices of 50 other people" in said and "5 published" in said
    assert "a trusted curator reaches" in said and "epsilon spent" in said and "Next:" in said
    assert (tmp_path / "run-1" / "train.png").stat().st_size > 10_000
    assert (tmp_path / "run-1" / "campaign.json").is_file()


@pytest.mark.parametrize("what", ["recommend", "train"])
def test_too_few_people_are_told_before_anything_is_made(run, tmp_path, what) -> None:
    code, _, err = run("demo", what, "--folder", tmp_path / "never", "--users", 5)
    assert code == 2 and "users" in err and "Traceback" not in err
    assert not (tmp_path / "never").exists()


def test_a_server_that_ends_is_told_in_one_sentence(run, tmp_path, monkeypatch) -> None:
    import sys

    monkeypatch.setattr(demo_servers, "SHUFFLEDP", (sys.executable, "-S", "-c", "raise SystemExit(7)"))
    code, _, err = run("demo", "train", "--folder", tmp_path, "--users", 200, "--epsilon", 8, "--delta", 1e-2)
    assert code == 2 and "the analyzer has ended with code 7" in err and "Traceback" not in err
