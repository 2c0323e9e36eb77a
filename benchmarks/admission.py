"""What a token costs, in CPU seconds of one core: to check, to redeem for a seat, to sign and to fetch.

A check is everything from the Authorization header to the answer that the issuer has signed the token for the task;
beside it stands a bare loop over `RSAPublicKey.verify`, in the same run. A seat for a token stands beside one without,
in SQLite.
"""

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA384
from report import figure, report, shown

from shuffledp import BinarySum, Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.blind_rsa import blind_sign
from shuffledp.service.admission.headers import redeemable, showing
from shuffledp.service.admission.private_tokens import Issuer, TokenKey, token_input, unpack_request
from shuffledp.service.admission.requesting import PendingToken
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.task import Task

BITS = RandomBits.secure()
PSS = padding.PSS(padding.MGF1(SHA384()), 48)


def cpu(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def seats(task: Task, names: list[str | None], folder: Path) -> float:
    """CPU seconds of all seats, as HTTP asks for them: each by itself, all in the store's queue at once."""
    with_store = open_shuffler_store(str(folder / f"{task.id[:8]}.db"))
    server = ShufflerServer(with_store, post=lambda path, body, media="": 200)
    try:
        server.add_task(task.text)
        return cpu(lambda: [each.result() for each in [server.take_seats(task.id, 1, None, name) for name in names]])
    finally:
        server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    count, rounds = (given := parser.parse_args()).tokens, given.rounds
    private = rsa.generate_private_key(65537, 2048)
    issuer = Issuer("issuer.example", TokenKey.of(private.public_key()))
    plan = BinarySum.plan(users=max(20, count), privacy=Privacy(1, 1e-6), method="coins")
    task, plain = (Task.create(plan, PrivateKey.generate().public, bits=BITS, issuer=each) for each in (issuer, None))
    gate, digest = task.gate, hashlib.sha256(task.gate.challenge).digest()
    inputs = [token_input(BITS.unsigned(32, 8).tobytes(), digest, issuer.key.id) for _ in range(count)]
    signatures = [private.sign(each, PSS, SHA384()) for each in inputs]
    headers = [showing(signed + signature) for signed, signature in zip(inputs, signatures, strict=True)]
    key, sha = private.public_key(), SHA384()

    def bare() -> None:
        for signed, signature in zip(inputs, signatures, strict=True):
            key.verify(signature, signed, PSS, sha)

    def checked() -> None:
        for header in headers:
            redeemable(header, gate)

    # In turn, so that a machine that slows down slows both; the quickest round is the least disturbed.
    times = [(cpu(bare), cpu(checked)) for _ in range(rounds)]
    loop, own = (min(each) for each in zip(*times, strict=True))
    names = [redeemable(header, gate).name for header in headers]
    with tempfile.TemporaryDirectory() as place:
        without, redeemed = seats(plain, [None] * count, Path(place)), seats(task, names, Path(place))
    some = [PendingToken.draw(gate, bits=BITS) for _ in range(20)]
    requests: list[bytes] = []
    asking = cpu(lambda: requests.extend(each.request(gate) for each in some)) / len(some)
    blinded = [unpack_request(issuer.key, each) for each in requests]
    answers: list[bytes] = []
    signing = cpu(lambda: answers.extend(blind_sign(private, each, bits=BITS) for each in blinded)) / len(some)
    finishing = cpu(lambda: [each.token(gate, answer) for each, answer in zip(some, answers, strict=True)]) / len(some)
    rows = [
        figure("tokens checked a second of a core", count / own, ">=", 10_000, f"bare RSA verify: {count / loop:,.0f}"),
        figure("of a bare loop's speed", loop / own, ">=", 0.6, "header, base64, digest and key beside RSASSA-PSS"),
        shown("seats for tokens, a second of a core", count / redeemed, f"seats without: {count / without:,.0f}"),
        shown("ms to sign blindly", 1e3 * signing, "the issuer: whole numbers of Python, blinded again"),
        shown("ms to draw and blind", 1e3 * asking, "a person's device, once"),
        shown("ms to unblind and check", 1e3 * finishing, "a person's device, once"),
    ]
    return report("Admission", rows)


if __name__ == "__main__":
    sys.exit(main())
