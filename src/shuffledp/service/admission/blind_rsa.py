"""Blind RSA signatures (RFC 9474, RSABSSA-SHA384-PSS-Deterministic): signed by somebody who cannot see what.

The client encodes its message, multiplies it by a random factor and sends the product; the issuer raises that to its
private exponent; the client divides the factor out and has an ordinary RSASSA-PSS signature. The product is a uniformly
random number whatever the message is: the issuer cannot recognize the signature when it sees it again.

Python's whole numbers are used, as `cryptography` has no bare RSA operation. Their time depends on the numbers, so the
issuer multiplies what it signs by a random factor of its own first: what takes time is then a random number that nobody
chose or knows.
"""

import hashlib
import math

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA384

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits

SALT_BYTES = 48
_HASH_BYTES = 48
_PADDING = PSS(MGF1(SHA384()), SALT_BYTES)
_SHA384 = SHA384()


def bytes_of(key: RSAPublicKey) -> int:
    """How long the modulus is, and with it every signature."""
    return (key.key_size + 7) // 8


def below(most: int, *, bits: RandomBits) -> int:
    """A uniformly random whole number from 1 to one less than this.

    >>> {below(4, bits=RandomBits.seeded(seed)) for seed in range(40)}
    {1, 2, 3}
    """
    length = most.bit_length()
    while True:
        drawn = int.from_bytes(bits.unsigned((length + 7) // 8, 8).tobytes(), "big") >> (-length % 8)
        if 0 < drawn < most:
            return drawn


def encode(message: bytes, salt: bytes, most_bits: int) -> int:
    """A message as RSASSA-PSS signs it (EMSA-PSS-ENCODE of RFC 8017, SHA-384).

    Args:
        message: any bytes.
        salt: `SALT_BYTES` random ones.
        most_bits: one less than the modulus has.
    """
    length = (most_bits + 7) // 8
    digest = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = bytes(length - len(salt) - _HASH_BYTES - 2) + b"\x01" + salt
    mask = _stretched(digest, len(block))
    masked = int.from_bytes(block, "big") ^ int.from_bytes(mask, "big")
    masked &= (1 << (8 * len(block) - (8 * length - most_bits))) - 1
    return int.from_bytes(masked.to_bytes(len(block), "big") + digest + b"\xbc", "big")


def _stretched(seed: bytes, length: int) -> bytes:
    """As many bytes as are asked for, of a seed (MGF1)."""
    count = -(-length // _HASH_BYTES)
    return b"".join(hashlib.sha384(seed + place.to_bytes(4, "big")).digest() for place in range(count))[:length]


def blind(key: RSAPublicKey, message: bytes, salt: bytes, factor: int) -> bytes:
    """What is sent to the issuer.

    Args:
        key: the issuer's.
        message: what is to be signed.
        salt: `SALT_BYTES` random ones.
        factor: uniformly random below the modulus, and used once (`below`).

    Raises:
        DataError: the message or the factor shares a divisor with the modulus, which does not happen with honest keys.
    """
    numbers = key.public_numbers()
    encoded = encode(message, salt, key.key_size - 1)
    if math.gcd(encoded, numbers.n) != 1 or math.gcd(factor, numbers.n) != 1:
        raise DataError("issuer", "a key that can be factored", "must have two large primes", "ask for another issuer")
    return (encoded * pow(factor, numbers.e, numbers.n) % numbers.n).to_bytes(bytes_of(key), "big")


def blinded_number(key: RSAPublicKey, blinded: bytes) -> int:
    """What an issuer is asked to sign, as a number.

    Raises:
        DataError: it is no number below the modulus.
    """
    length, number = bytes_of(key), int.from_bytes(blinded, "big")
    if len(blinded) != length or not 0 < number < key.public_numbers().n:
        problem = f"must be a number of {length} bytes below the key's modulus"
        raise DataError("blinded_msg", f"{len(blinded)} bytes", problem, "blind the message with this issuer's key")
    return number


def blind_sign(key: RSAPrivateKey, blinded: bytes, *, bits: RandomBits) -> bytes:
    """What the issuer answers: the blinded message raised to its private exponent, whatever that message is.

    A result that does not fit the public key is never given away: of one that was computed wrongly in one of its
    halves, anybody could compute the primes.

    Args:
        key: the issuer's.
        blinded: what `blind` made.
        bits: where the factor comes from that hides what is computed with from whoever measures time.

    Raises:
        DataError: it is no number below the modulus.
    """
    number, private = blinded_number(key.public_key(), blinded), key.private_numbers()
    modulus, exponent = private.public_numbers.n, private.public_numbers.e
    factor = below(modulus, bits=bits)
    while math.gcd(factor, modulus) != 1:
        factor = below(modulus, bits=bits)
    hidden = number * pow(factor, exponent, modulus) % modulus
    first, second = pow(hidden, private.dmp1, private.p), pow(hidden, private.dmq1, private.q)
    signed = second + private.q * ((first - second) * private.iqmp % private.p)
    answer = signed * pow(factor, -1, modulus) % modulus
    if pow(answer, exponent, modulus) != number:
        raise ArithmeticError("a signature was computed wrongly, and is not given away: look at this machine's memory.")
    return answer.to_bytes(len(blinded), "big")


def unblind(key: RSAPublicKey, message: bytes, answer: bytes, factor: int) -> bytes:
    """The signature of a message, from the issuer's answer and the factor that the message was blinded with.

    Args:
        key: the issuer's.
        message: what was blinded.
        answer: what the issuer sent.
        factor: what `blind` was given.

    Raises:
        DataError: the issuer did not sign it.
    """
    modulus, length = key.public_numbers().n, bytes_of(key)
    signature = (int.from_bytes(answer, "big") * pow(factor, -1, modulus) % modulus).to_bytes(length, "big")
    if len(answer) != length or not has_signed(key, message, signature):
        problem = "must be a signature by the key that the task names"
        raise DataError("blind_sig", f"{len(answer)} bytes", problem, "ask the issuer of this task")
    return signature


def has_signed(key: RSAPublicKey, message: bytes, signature: bytes) -> bool:
    """Whether this is the key owner's signature of these bytes: RSASSA-PSS with SHA-384 and a salt of 48 bytes."""
    try:
        key.verify(signature, message, _PADDING, _SHA384)
    except (InvalidSignature, ValueError):
        return False
    return True
