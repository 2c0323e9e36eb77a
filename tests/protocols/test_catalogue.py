import json

import pytest

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.catalogue import load_plan, plan_from_document

PLAN = BinarySum.plan(users=500, privacy=Privacy(1, 1e-6))


def test_a_plan_survives_its_file(tmp_path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(PLAN.document()))
    assert load_plan(file) == PLAN and load_plan(str(file)).fingerprint == PLAN.fingerprint


def test_other_plans_have_other_fingerprints() -> None:
    others = [
        BinarySum.plan(users=501, privacy=Privacy(1, 1e-6)),
        BinarySum.plan(users=500, privacy=Privacy(1.0001, 1e-6)),
        BinarySum.plan(users=500, privacy=Privacy(1, 1e-6), method="coins"),
        BinarySum.plan(users=500, privacy=Privacy(1, 1e-6), honest_fraction=0.9),
    ]
    assert len({plan.fingerprint for plan in [PLAN, *others]}) == 5


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"schema": 2}, "plan.schema"),
        ({"protocol": "magic"}, "plan.protocol"),
        ({"method": "magic"}, "plan.method"),
        ({"noise": None}, "plan.noise"),
        ({"noise": {}}, "noise.ratio"),
        ({"noise": {**PLAN.noise, "ratio": "0.3"}}, "noise.ratio"),
        ({"noise": {**PLAN.noise, "shares": 9.5}}, "noise.shares"),
        ({"noise": {**PLAN.noise, "shares": 40}}, "plan.fingerprint"),
        ({"epsilon": 0.5}, "noise"),
        ({"epsilon": None}, "epsilon"),
        ({"users": "many"}, "users"),
        ({"constants": "magic"}, "constants"),
        ({"standard_error": 1.0}, "plan.standard_error"),
        ({"fingerprint": "0" * 64}, "plan.fingerprint"),
    ],
)
def test_a_changed_plan_is_refused(change, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        plan_from_document(PLAN.document() | change)
    assert caught.value.parameter in (parameter, "plan.messages_per_user_mean", "plan.messages_per_user_max")


@pytest.mark.parametrize(
    "change",
    [
        {"protocol": []},
        {"method": {}},
        {"noise": {**PLAN.noise, "modulus_bits": -1}},
        {"noise": {**PLAN.noise, "modulus_bits": 10**12}},
        {"noise": {**PLAN.noise, "ratio": 10**400}},
        {"epsilon": 10**400},
        {"delta": -(10**400)},
    ],
)
def test_absurd_documents_are_refused_with_a_sentence(change) -> None:
    with pytest.raises(ParameterError):
        plan_from_document(PLAN.document() | change)


def test_further_keys_do_no_harm() -> None:
    assert plan_from_document(PLAN.document() | {"why": "because"}) == PLAN


def test_files_that_are_no_plans(tmp_path) -> None:
    (tmp_path / "text").write_text("not json")
    (tmp_path / "list").write_text("[1]")
    for file, said in (("text", "JSON document"), ("list", "JSON object"), ("missing", "exists"), ("", "folder")):
        with pytest.raises(ParameterError, match=said):
            load_plan(tmp_path / file)
