"""Privacy Pass with another implementation: npm's @cloudflare/privacypass-ts as a real client, issuer and origin."""

import json
from pathlib import Path

import pytest

from harness.node import ROOT, node_in
from shuffledp import BinarySum, Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.headers import asking, redeemable, showing
from shuffledp.service.admission.issuer_app import IssuerServer
from shuffledp.service.admission.issuer_keys import load_issuer, load_issuer_key, make_issuer_keys
from shuffledp.service.admission.issuing import IssuerDesk, open_issuer_store, people_of
from shuffledp.service.admission.private_tokens import Issuer, Token, TokenKey
from shuffledp.service.admission.requesting import PendingToken
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.problems import RefusedError
from shuffledp.service.task import Task

SECURE = RandomBits.secure()
PEER = ROOT / "tests" / "clients" / "privacy_pass"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory):
    """The other implementation, which answers verbs."""
    with node_in(tmp_path_factory.mktemp("peer"), PEER).talking("peer.js") as ask:
        yield lambda verb, **given: ask(json.dumps({"verb": verb, **given}))


def task_of(issuer: Issuer) -> Task:
    plan = BinarySum.plan(users=20, privacy=Privacy(2, 1e-3), method="coins")
    return Task.create(plan, PrivateKey.generate().public, bits=SECURE, issuer=issuer)


def test_its_client_has_a_token_signed_here_and_redeems_it(peer, tmp_path: Path) -> None:
    make_issuer_keys(tmp_path / "keys", "issuer.example", bits=SECURE)
    issuer = load_issuer(tmp_path / "keys")
    gate = task_of(issuer).gate
    invitation = "x" * 20
    desk = IssuerDesk(issuer, load_issuer_key(tmp_path / "keys"), people_of([invitation]), SECURE)
    server = IssuerServer(desk, open_issuer_store(tmp_path / "issuer.db"))
    try:
        request = peer("request", header=asking(gate))
        header = peer("finish", response=server.issue(invitation, bytes.fromhex(request)).hex())
        token = redeemable(header, gate)
        assert gate.admits(token)
        # For this task and no other, and one a person.
        with pytest.raises(RefusedError, match="for another task"):
            redeemable(header, task_of(issuer).gate)
        with pytest.raises(RefusedError, match="another token was signed"):
            server.issue(invitation, bytes.fromhex(peer("request", header=asking(gate))))
    finally:
        server.stop()
    assert peer("verify", token=token.data.hex(), key=issuer.key.spki.hex()) == "true"


def test_its_issuer_signs_a_token_for_a_client_here(peer) -> None:
    spki = bytes.fromhex(peer("key"))
    issuer = Issuer("peer.example", TokenKey(spki))
    assert TokenKey.from_text(issuer.key.text).spki == TokenKey.of(issuer.key.rsa).spki == spki
    gate = task_of(issuer).gate
    pending = PendingToken.draw(gate, bits=SECURE)
    answer = bytes.fromhex(peer("issue", request=pending.request(gate).hex()))
    token = pending.token(gate, answer)
    assert redeemable(showing(token.data), gate) == token
    assert peer("verify", token=token.data.hex(), key=spki.hex()) == "true"
    # Whoever changes a bit of it has nothing, there and here.
    wrong = Token(token.signed[:-1] + bytes([token.signed[-1] ^ 1]), token.signature)
    assert peer("verify", token=wrong.data.hex(), key=spki.hex()) == "false"
    assert not gate.admits(wrong)
