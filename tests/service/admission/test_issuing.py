"""The issuer for trials, and a person who asks it: one token a person, whatever is killed in between."""

import hashlib

import httpx
import pytest
from scipy import stats

from shuffledp.errors import DataError, ParameterError, RandomnessError
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.issuer_app import DIRECTORY_PATH, IssuerServer, issuer_app
from shuffledp.service.admission.issuer_keys import load_issuer, load_issuer_key, make_issuer_keys
from shuffledp.service.admission.issuing import (
    IssuerDesk,
    new_invitations,
    open_issuer_store,
    people_of,
    read_invitations,
)
from shuffledp.service.admission.private_tokens import (
    REQUEST_PATH,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    Gate,
    Issuer,
    Token,
    TokenKey,
    from_base64url,
)
from shuffledp.service.admission.requesting import PendingToken, fetch_token
from shuffledp.service.client.calls import AnswerError, Calls, UnreachableError
from shuffledp.service.problems import NO_ROOM, RefusedError

SECURE = RandomBits.secure()
TASK = "ab" * 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("issuer") / "keys"
    make_issuer_keys(place, "issuer.example", bits=SECURE)
    return place


@pytest.fixture(scope="module")
def gate(folder):
    return Gate(load_issuer(folder), TASK)


def desk_of(folder, invitations, each=1):
    return IssuerDesk(load_issuer(folder), load_issuer_key(folder), people_of(invitations), SECURE, each)


@pytest.fixture
def served(folder, tmp_path, asking):
    invitations = new_invitations(3, bits=SECURE)
    server = IssuerServer(desk_of(folder, invitations), open_issuer_store(tmp_path / "issuer.db"))
    yield asking(issuer_app(server)), invitations
    server.stop()


def calls_to(http, invitation, **more):
    return Calls("http://test", invitation, http, SECURE, patience=1.0, sleep=lambda seconds: None, **more)


def test_one_token_a_person_and_the_same_one_again(served, gate):
    http, invitations = served
    pending = PendingToken.draw(gate, bits=SECURE)
    token = fetch_token(calls_to(http, invitations[0]), gate, pending)
    assert gate.admits(token)
    # The answer was lost: the same request has the same answer. What was kept in between is all that is needed.
    kept = PendingToken.from_document(pending.document())
    assert fetch_token(calls_to(http, invitations[0]), gate, kept) == token
    another = PendingToken.draw(gate, bits=SECURE)
    with pytest.raises(AnswerError, match="another token was signed for this person") as refused:
        fetch_token(calls_to(http, invitations[0]), gate, another)
    assert (refused.value.status, refused.value.kind) == (403, "pass-signed")
    assert gate.admits(fetch_token(calls_to(http, invitations[1]), gate, another))


def test_nobody_else_is_signed_for(served, gate):
    http, invitations = served
    body, media = PendingToken.draw(gate, bits=SECURE).request(gate), {"Content-Type": REQUEST_TYPE}
    invited = {"Authorization": f"Bearer {invitations[0]}"}
    for headers, status in (
        (media, 401),
        ({**media, "Authorization": f"Bearer {invitations[0]}x"}, 401),
        ({**media, "Authorization": f"Basic {invitations[0]}"}, 401),
        ({**invited, "Content-Type": "text/plain"}, 415),
    ):
        assert http.post(REQUEST_PATH, content=body, headers=headers).status_code == status
    for wrong in (body[:-1], b"\0\1" + body[2:], body[:2] + bytes([body[2] ^ 1]) + body[3:], body[:3] + b"\xff" * 256):
        answer = http.post(REQUEST_PATH, content=wrong, headers={**media, **invited})
        assert answer.status_code == 400, answer.text
    assert http.post(REQUEST_PATH, content=body + b"\0", headers={**media, **invited}).status_code == 413
    # None of these has cost the person its token.
    answer = http.post(REQUEST_PATH, content=body, headers={**media, **invited})
    assert (answer.status_code, answer.headers["content-type"]) == (200, RESPONSE_TYPE)


def test_the_directory_names_the_key(served, gate):
    [key] = served[0].get(DIRECTORY_PATH).json()["token-keys"]
    assert key["token-type"] == 2
    assert TokenKey.from_text(key["token-key"]) == gate.issuer.key
    assert hashlib.sha256(from_base64url(key["token-key"])).digest() == gate.issuer.key.id


def test_what_was_signed_is_remembered_by_the_next_process(folder, gate, tmp_path):
    [invitation] = new_invitations(1, bits=SECURE)
    requests = [PendingToken.draw(gate, bits=SECURE).request(gate) for _ in range(3)]
    for number, request in enumerate(requests):
        server = IssuerServer(desk_of(folder, [invitation], each=2), open_issuer_store(tmp_path / "issuer.db"))
        try:
            if number < 2:
                assert server.issue(invitation, request) == server.issue(invitation, request)
            else:
                with pytest.raises(RefusedError, match="another token was signed"):
                    server.issue(invitation, request)
        finally:
            server.stop()
    # Neither an invitation nor anything of a request can be read there.
    kept = (tmp_path / "issuer.db").read_bytes()
    assert invitation.encode() not in kept
    assert bytes.fromhex(invitation) not in kept
    assert requests[0][3:35] not in kept


def test_a_refusal_to_remember_signs_nothing(folder, gate):
    """The signature leaves after the commit: a store that fails has given nothing away."""

    class Full:
        def write(self, work):
            raise RefusedError(NO_ROOM, "the disk is full.")

    class Watched(IssuerDesk):
        def sign(self, blinded):
            raise AssertionError("signed before it was written down")

    desk = Watched(gate.issuer, load_issuer_key(folder), people_of(["x" * 20]), SECURE)
    with pytest.raises(RefusedError, match="the disk is full"):
        IssuerServer(desk, Full()).issue("x" * 20, PendingToken.draw(gate, bits=SECURE).request(gate))


def test_patience_with_an_issuer_that_does_not_answer(gate):
    answers = iter([httpx.Response(503), httpx.Response(200, text="<html>"), httpx.ConnectError("no")])

    def handle(request):
        answer = next(answers, None) or httpx.Response(503)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with httpx.Client(transport=httpx.MockTransport(handle)) as http:
        ticks = iter(range(0, 1000))
        calls = Calls("http://i", "x", http, SECURE, 5.0, lambda seconds: None, lambda: float(next(ticks)))
        with pytest.raises(UnreachableError, match="tried"):
            fetch_token(calls, gate, PendingToken.draw(gate, bits=SECURE))


def test_an_issuer_with_another_key_is_found_out(served, gate, tmp_path):
    other = Gate(make_issuer_keys(tmp_path / "other", "issuer.example", bits=SECURE), TASK)
    http, invitations = served
    pending = PendingToken.draw(other, bits=SECURE)

    class Signing:
        def request(self, given):
            return pending.request(other)[:2] + bytes([gate.issuer.key.id[-1]]) + pending.request(other)[3:]

        token = pending.token

    number = int.from_bytes(pending.request(other)[3:], "big")
    if number >= gate.issuer.key.rsa.public_numbers().n:
        pytest.skip("the blinded number is no number below the other modulus")
    with pytest.raises(DataError, match="must be a signature by the key that the task names"):
        fetch_token(calls_to(http, invitations[2]), other, Signing())


def test_seeded_bits_draw_no_token(gate):
    with pytest.raises(RandomnessError, match="secure bits only"):
        PendingToken.draw(gate, bits=RandomBits.seeded(1))


def test_files_that_are_no_invitations(tmp_path):
    file = tmp_path / "invitations.txt"
    with pytest.raises(ParameterError, match="must be a file that can be read"):
        read_invitations(file)
    for text, problem in (
        ("", "a secret of at least 16"),
        ("short\n", "a secret of at least 16"),
        (f"{'x' * 16}\n{'x' * 16}\n", "twice"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=problem):
            read_invitations(file)
    file.write_text(f"# people\n\n{'x' * 16}\n  {'y' * 16}\n")
    assert read_invitations(file) == ["x" * 16, "y" * 16]


def test_keys_that_are_no_issuers(folder, tmp_path):
    assert oct((folder / "issuer.key").stat().st_mode & 0o777) == "0o600"
    copied = tmp_path / "copied"
    make_issuer_keys(copied, "issuer.example", bits=SECURE)
    (copied / "issuer.key").write_text((folder / "issuer.key").read_text())
    with pytest.raises(DataError, match="must be the private half of"):
        load_issuer_key(copied)
    document = load_issuer(folder).document()
    for change in (
        {"token_type": 1},
        {"token_type": True},
        {"name": ""},
        {"name": "two words"},
        {"name": 7},
        {"token_key": document["token_key"][:-4]},
        {"token_key": document["token_key"] + "===="},
        {"token_key": document["token_key"].replace("AQAB", "AQAD")},
        {"more": 1},
    ):
        with pytest.raises(DataError, match=r"^issuer"):
            Issuer.from_document({**document, **change})


def test_tokens_of_other_shapes(gate):
    pending = PendingToken.draw(gate, bits=SECURE)
    for wrong in (b"", bytes(354), b"\0\2" + bytes(351), b"\0\2" + bytes(353)):
        with pytest.raises(DataError, match="must be a token of type 2, 354 bytes"):
            Token.from_bytes(wrong)
    assert not gate.admits(Token.from_bytes(b"\0\2" + bytes(352)))
    with pytest.raises(DataError, match="must be tokens that wait"):
        PendingToken.from_document({**pending.document(), "salt": "00"})


def test_what_the_issuer_sees_is_random(gate):
    """A blinded message is uniform whatever the token is: the same token is never the same request twice."""
    modulus = gate.issuer.key.rsa.public_numbers().n
    drawn = [PendingToken.draw(gate, bits=SECURE) for _ in range(200)]
    again = [PendingToken(drawn[0].nonce, drawn[0].salt, each.factor) for each in drawn]
    for some in (drawn, again):
        sent = [int.from_bytes(each.request(gate)[3:], "big") / modulus for each in some]
        # 200 uniform numbers: the largest distance of their distribution exceeds 0.25 with probability below 1e-10.
        assert stats.kstest(sent, "uniform").statistic < 0.25
        assert len(set(sent)) == len(sent)
    assert len({each.factor for each in drawn}) == len({each.nonce for each in drawn}) == len(drawn)
