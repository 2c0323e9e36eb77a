"""The test vectors of RFC 9474 and RFC 9578: every byte that client, issuer and origin make."""

import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.blind_rsa import blind, blind_sign, bytes_of, encode, has_signed, unblind
from shuffledp.service.admission.private_tokens import (
    Token,
    TokenKey,
    challenge,
    pack_request,
    token_input,
    unpack_request,
)

HERE = Path(__file__).parent
SIGNATURES = json.loads((HERE / "rfc9474.json").read_text())["vectors"]
TOKENS = json.loads((HERE / "rfc9578.json").read_text())["vectors"]


def private_key(vector):
    p, q, e, d = (int(vector[name], 16) for name in ("p", "q", "e", "d"))
    public = rsa.RSAPublicNumbers(e, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    return numbers.private_key()


@pytest.mark.parametrize("vector", SIGNATURES, ids=lambda vector: vector["name"])
def test_blind_signatures_of_rfc_9474(vector):
    key = private_key(vector)
    message, salt, sent, answer, signature = (
        bytes.fromhex(vector[name]) for name in ("input_msg", "salt", "blinded_msg", "blind_sig", "sig")
    )
    factor = pow(int(vector["inv"], 16), -1, int(vector["n"], 16))
    encoded = encode(message, salt, key.key_size - 1)
    assert vector.get("encoded_msg") in (None, encoded.to_bytes(bytes_of(key.public_key()), "big").hex())
    assert blind(key.public_key(), message, salt, factor) == sent
    assert blind_sign(key, sent, bits=RandomBits.secure()) == answer
    assert unblind(key.public_key(), message, answer, factor) == signature
    assert has_signed(key.public_key(), message, signature)


@pytest.mark.parametrize("place", range(len(TOKENS)))
def test_tokens_of_rfc_9578(place):
    vector = {name: bytes.fromhex(text) for name, text in TOKENS[place].items()}
    private = load_pem_private_key(vector["skS"], None)
    key = TokenKey.of(private.public_key())
    assert key.spki == vector["pkS"]
    assert TokenKey.from_text(key.text) == key
    signed = token_input(vector["nonce"], hashlib.sha256(vector["token_challenge"]).digest(), key.id)
    factor = int.from_bytes(vector["blind"], "big")
    blinded = blind(key.rsa, signed, vector["salt"], factor)
    assert pack_request(key, blinded) == vector["token_request"]
    answer = blind_sign(private, unpack_request(key, vector["token_request"]), bits=RandomBits.secure())
    assert answer == vector["token_response"]
    token = Token(signed, unblind(key.rsa, signed, answer, factor))
    assert token.data == vector["token"]
    assert Token.from_bytes(vector["token"]) == token


def test_challenges_of_rfc_9578():
    """The structure of the challenge, taken apart by hand and put together again."""
    for vector in TOKENS:
        given = bytes.fromhex(vector["token_challenge"])
        length = int.from_bytes(given[2:4], "big")
        name, rest = given[4 : 4 + length].decode(), given[4 + length :]
        context, rest = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        assert challenge(name, context, rest[2:].decode()) == given


def test_what_is_no_signature_is_not_taken_for_one():
    vector = SIGNATURES[1]
    key = private_key(vector)
    message, salt = bytes.fromhex(vector["input_msg"]), bytes.fromhex(vector["salt"])
    modulus = int(vector["n"], 16)
    sent = blind(key.public_key(), message, salt, 12345)
    answer = blind_sign(key, sent, bits=RandomBits.secure())
    signature = unblind(key.public_key(), message, answer, 12345)
    for wrong in (answer[:-1] + bytes([answer[-1] ^ 1]), answer[:-1], b""):
        with pytest.raises(DataError, match="must be a signature by the key that the task names"):
            unblind(key.public_key(), message, wrong, 12345)
    # One more modulus is the same number to arithmetic, and another signature to whoever counts them.
    larger = int.from_bytes(signature, "big") + modulus
    assert not has_signed(key.public_key(), message, larger.to_bytes(bytes_of(key.public_key()) + 1, "big"))
    assert not has_signed(key.public_key(), message + b".", signature)
    for wrong in (bytes(len(sent)), modulus.to_bytes(len(sent), "big"), sent[1:], sent + b"\0"):
        with pytest.raises(DataError, match="must be a number of 512 bytes below the key's modulus"):
            blind_sign(key, wrong, bits=RandomBits.secure())


def test_a_signature_that_was_computed_wrongly_is_not_given_away(monkeypatch):
    """A fault in one half of the computation would give the primes away to whoever has the answer."""
    vector = SIGNATURES[1]
    key = private_key(vector)
    numbers = key.private_numbers()
    wrong = rsa.RSAPrivateNumbers(
        numbers.p, numbers.q, numbers.d, numbers.dmp1 ^ 4, numbers.dmq1, numbers.iqmp, numbers.public_numbers
    )

    class Faulty:
        def private_numbers(self):
            return wrong

        def public_key(self):
            return key.public_key()

    with pytest.raises(ArithmeticError, match="not given away"):
        blind_sign(Faulty(), bytes.fromhex(vector["blinded_msg"]), bits=RandomBits.secure())


def test_what_is_raised_to_the_secret_exponent_is_random(monkeypatch):
    """Whoever measures the time of signatures sees that of numbers which nobody chose: each time another."""
    vector = SIGNATURES[1]
    key = private_key(vector)
    sent = bytes.fromhex(vector["blinded_msg"])
    raised, secret = [], key.private_numbers()

    def watched(base, exponent, modulus=None):
        if exponent in (secret.dmp1, secret.dmq1, secret.d):
            raised.append(base)
        return pow(base, exponent, modulus)

    monkeypatch.setattr("shuffledp.service.admission.blind_rsa.pow", watched, raising=False)
    assert {blind_sign(key, sent, bits=RandomBits.secure()).hex() for _ in range(3)} == {vector["blind_sig"]}
    assert len(set(raised)) == 3
    assert int.from_bytes(sent, "big") not in raised
