"""Privacy Pass with another implementation: npm's @cloudflare/privacypass-ts as a real client, issuer and origin."""

import json
from pathlib import Path

import pytest

from harness.node import ROOT, node_in
from harness.nursery import servers
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
from shuffledp.service.tokens import Tokens

SECURE = RandomBits.secure()
PEER = ROOT / "tests" / "clients" / "privacy_pass"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory):
    """The other implementation, which answers verbs."""
    with node_in(tmp_path_factory.mktemp("peer"), PEER).talking("peer.js") as ask:
        yield lambda verb, **given: ask(json.dumps({"verb": verb, **given}))


def task_of(issuer: Issuer, key: PrivateKey | None = None) -> Task:
    plan = BinarySum.plan(users=20, privacy=Privacy(2, 1e-3), method="coins")
    return Task.create(plan, (key or PrivateKey.generate()).public, bits=SECURE, issuer=issuer)


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


ONCE = """
import { Client } from "./shuffledp.js";
const { hex, ...asked } = JSON.parse(process.argv[1]);
const token = Uint8Array.from(Buffer.from(hex, "hex"));
for (let tries = 0; tries < 2; tries++) {
  const client = await Client.open({ ...asked, token });
  try {
    console.log(JSON.stringify(await client.report(1)));
  } catch (refused) {
    console.log(refused.kind);
  }
  await client.close();
}
"""


def test_the_javascript_client_reports_with_a_token_and_once(peer, tmp_path_factory) -> None:
    """A token that the other issuer has signed, through our client in Node, to a shuffler that runs."""
    issuer = Issuer("peer.example", TokenKey(bytes.fromhex(peer("key"))))
    key, roles = PrivateKey.generate(), Tokens.generate(bits=SECURE)
    task = task_of(issuer, key)
    pending = PendingToken.draw(task.gate, bits=SECURE)
    token = pending.token(task.gate, bytes.fromhex(peer("issue", request=pending.request(task.gate).hex())))
    folder = tmp_path_factory.mktemp("client")
    node = node_in(folder)
    with servers(folder, key, roles) as running:
        running.add_task(task)
        asked = {"taskId": task.id, "task": task.text, "shuffler": running.url("shuffler"), "hex": token.data.hex()}
        ran = node.run("--input-type=module", "-e", ONCE, json.dumps(asked))
    assert ran.stdout.splitlines() == ['{"reports":1,"new":1,"known":false}', "pass-spent"], ran.stderr
