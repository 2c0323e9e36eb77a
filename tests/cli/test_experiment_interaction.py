"""`shuffledp papers secure-sum` under the command line's contract."""

import json

import pytest

SUM = ["papers", "secure-sum"]


def test_one_object_and_nothing_else(run) -> None:
    code, out, err = run(*SUM, "--users", "20", "--epsilon", "1", "--json")
    document = json.loads(out)
    assert code == 0 and err == "" and document["schema"] == 1
    assert document["demonstration"] and document["simulated"] and document["keys_agree"]
    assert document["messages_round_1"] == 20 * 19 * document["repetitions"] and document["messages_round_2"] == 20
    assert document["failure_probability"] <= 2**-40 and document["delta_proved"] < 1e-30
    assert document["error"] == document["estimate"] - document["truth"]
    epsilons = [row["epsilon"] for row in document["collusions"]]
    assert epsilons[-1] is None and epsilons[:-1] == sorted(epsilons[:-1]) and epsilons[0] <= 1 < epsilons[1]


def test_a_seed_makes_it_repeatable(run) -> None:
    def told(seed: str) -> dict:
        document = json.loads(run(*SUM, "--json", "--users", "6", "--seed", seed)[1])
        return {key: document[key] for key in document if key not in ("seconds", "seed")}

    assert told("4") == told("4")
    assert len({json.dumps(told(str(seed))) for seed in range(5)}) > 1


def test_a_person_reads_what_happened_and_that_it_is_a_demonstration(run) -> None:
    code, out, _ = run(*SUM, "--users", "10")
    said = ("demonstration", "round 1", "round 2", "keys", "all agree", "true sum", "coalition", "dropout", "Next:")
    assert code == 0 and all(word in out for word in said)


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--users", "1"], "users"),
        (["--users", "5000"], "users"),
        (["--epsilon", "0"], "epsilon"),
        (["--delta", "2"], "delta"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_bad_input_is_named(run, words, parameter) -> None:
    code, out, err = run(*SUM, *words)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
    code, out, _ = run(*SUM, *words, "--json")
    assert code == 2 and json.loads(out)["error"]["parameter"] == parameter
