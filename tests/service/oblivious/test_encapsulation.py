"""Sealing requests and answers: the example of RFC 9458, appendix A, value by value, and what does not open."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pyhpke import KEMKey, KEMKeyPair

from shuffledp.errors import DataError, ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey, PublicKey
from shuffledp.service.oblivious import encapsulation
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse
from shuffledp.service.oblivious.encapsulation import GatewayKey, check_installed, seal_request
from shuffledp.service.oblivious.key_config import KeyConfig, decode_configs, encode_configs
from shuffledp.service.oblivious.padding import REQUEST_OVERHEAD, RESPONSE_OVERHEAD

SECRET = bytes.fromhex("3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a")
CONFIG = bytes.fromhex("01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003")
REQUEST = bytes.fromhex("00034745540568747470730b6578616d706c652e636f6d012f")
EPHEMERAL = bytes.fromhex("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73")
ENC = bytes.fromhex("4b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472")
SEALED_REQUEST = bytes.fromhex("""
    010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad1
    9dec96c208b4726374e469135906992e1268c594d2a10c695d858c40a026e796
    5e7d86b83dd440b2c0185204b4d63525
""")
ANSWER = bytes.fromhex("0140c8")
NONCE = bytes.fromhex("c789e7151fcba46158ca84b04464910d")
SEALED_ANSWER = bytes.fromhex("c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd")
SECURE = RandomBits.secure()


class GivenBits:
    """Bits that were given, for a vector."""

    def unsigned(self, count: int, width: int) -> Any:
        import numpy as np

        assert (count, width) == (len(NONCE), 8)
        return np.frombuffer(NONCE, dtype=np.uint8)


def rfc_key() -> GatewayKey:
    (config,) = decode_configs(len(CONFIG).to_bytes(2, "big") + CONFIG)
    return GatewayKey(config, PrivateKey(SECRET))


def test_the_example_of_the_rfc() -> None:
    key = rfc_key()
    assert key.config.encoded() == CONFIG and key.config.key_id == 1
    assert key.config.public == PrivateKey(SECRET).public and key.config.symmetric == ((1, 1), (1, 3))
    assert InnerRequest(method="GET", authority="example.com", path="/").encoded() == REQUEST
    own = X25519PrivateKey.from_private_bytes(EPHEMERAL)
    pair = KEMKeyPair(*map(KEMKey.from_pyca_cryptography_key, (own, own.public_key())))
    sealed, asking = seal_request(key.config, REQUEST, ephemeral=pair)
    assert sealed == SEALED_REQUEST and asking.enc == ENC
    opened = key.open(SEALED_REQUEST)
    assert opened is not None and opened[0] == REQUEST
    assert InnerResponse(status=200).encoded() == ANSWER
    answering: Any = opened[1]
    assert answering.seal(ANSWER, bits=GivenBits()) == SEALED_ANSWER
    assert asking.open(SEALED_ANSWER) == ANSWER


def test_every_request_and_every_answer_has_a_key_of_its_own() -> None:
    key = GatewayKey.of(PrivateKey.generate())
    sealed = [seal_request(key.config, b"the same")[0] for _ in range(20)]
    assert len({each[7:39] for each in sealed}) == len({each[39:] for each in sealed}) == 20
    opened = key.open(sealed[0])
    assert opened is not None
    answers = {opened[1].seal(b"the same", bits=SECURE) for _ in range(20)}
    assert len({each[:16] for each in answers}) == len({each[16:] for each in answers}) == 20
    assert {len(each) for each in sealed} == {8 + REQUEST_OVERHEAD}
    assert {len(each) for each in answers} == {8 + RESPONSE_OVERHEAD}


def test_what_was_changed_on_the_way_does_not_open() -> None:
    key, other = (GatewayKey.of(PrivateKey.generate()) for _ in range(2))
    sealed, asking = seal_request(key.config, b"a request of some bytes")
    _, another = seal_request(key.config, b"a request of some bytes")
    opened = key.open(sealed)
    assert opened is not None and other.open(sealed) is None
    answer = opened[1].seal(b"an answer", bits=SECURE)
    for place in (*range(7, 12), 38, 39, len(sealed) - 1):
        assert key.open(sealed[:place] + bytes((sealed[place] ^ 1,)) + sealed[place + 1 :]) is None
    for cut in (8, 38, 39, 54, len(sealed) - 1):
        assert key.open(sealed[:cut]) is None
    # A point of small order has a secret that everybody knows.
    assert key.open(sealed[:7] + bytes(32) + sealed[39:]) is None
    wrong = [answer[:-1], answer[:15], b"", answer[:3] + b"?" + answer[4:], answer[:-1] + b"?", sealed]
    for each in wrong:
        with pytest.raises(DataError, match="must be what the gateway sealed to this request"):
            asking.open(each)
    # Of another request to the same key.
    with pytest.raises(DataError, match="ask again"):
        another.open(answer)
    assert asking.open(answer) == b"an answer"


def test_keys_come_in_a_list_that_is_right_or_refused_whole() -> None:
    mine = [KeyConfig.of(PrivateKey.generate().public) for _ in range(2)]
    listed = encode_configs(mine)
    assert decode_configs(listed) == tuple(mine)
    strange = bytes.fromhex("0007") + b"\x05\x00\x10" + bytes(4)
    assert decode_configs(strange + listed) == tuple(mine), "a key of another kind is passed over"
    only_chacha = KeyConfig(3, mine[0].public, ((1, 3),))
    assert decode_configs(encode_configs([only_chacha, mine[1]])) == (mine[1],)
    for text in (listed[:-1], listed + b"\0", listed[2:], b"\0\2ab", bytes.fromhex("0003050020"), b"\xff" * 70_000):
        with pytest.raises(DataError, match="must be of type application/ohttp-keys, whole"):
            decode_configs(text)
    for text in (b"", strange, encode_configs([only_chacha])):
        with pytest.raises(DataError, match="must have a key for X25519"):
            decode_configs(text)
    with pytest.raises(DataError, match="must have a key that can be sealed to"):
        seal_request(KeyConfig(1, PublicKey(bytes(32))), b"anything")


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed("relay", "https://relay.example")
    monkeypatch.setitem(__import__("sys").modules, "pyhpke", None)
    with pytest.raises(ParameterError, match=r"relay needs pyhpke, got https://r: .*pip install 'shuffledp\[ohttp\]'"):
        encapsulation.check_installed("relay", "https://r")
