"""What PostgreSQL's disk remembers after a release: everything that was written, and nothing that opens.

A thief has the data folder, its log and the folder of keys as they are then. All that was ever sealed is known to the
test, which looks for it in the files and tries every key that is left on it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from harness.postgresql import Server
from harness.world import OpenerHere, accept_reports, ciphertexts, made_report, small_task
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.store.postgresql.keys import KEY_BYTES, KeyFolder
from shuffledp.service.store.postgresql.vault import Vault
from shuffledp.service.wire import SentReport, new_id

USERS = 24


@dataclass
class Aftermath:
    """A task of which some batches were released, one is sealed, and one still fills."""

    sent: list[SentReport]
    released: dict[str, bytes]
    sealed: dict[str, bytes]
    sealings: list[tuple[str, bytes, bytes]]
    """Place, body and what was written of it, of all that was ever sealed."""
    files: list[tuple[Path, bytes]]
    keys: list[bytes]

    def opened(self) -> list[tuple[str, bytes]]:
        """What a thief can read: place and body."""
        found = []
        for place, body, written in self.sealings:
            for key in self.keys:
                try:
                    assert AESGCM(key).decrypt(written[:12], written[12:], place.encode()) == body
                    found.append((place, body))
                except InvalidTag:
                    continue
        return found

    def check(self) -> None:
        """Nothing opens of what was released, and of what was sealed nothing that tells in which order it came."""
        released = {each for body in self.released.values() for each in ciphertexts(body)}
        sealed = {each for body in self.sealed.values() for each in ciphertexts(body)}
        for place, body in self.opened():
            inside = set(ciphertexts(body))
            assert not inside & released, f"{place}: what was released can still be read"
            assert place.startswith("pieces ") or not inside & sealed, f"{place}: a sealed batch can be read as it came"


def leave(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Aftermath:
    """Everybody reports, one by one; then what is left is looked at."""
    sealings: list[tuple[str, bytes, bytes]] = []
    seal = Vault.seal

    def noting(self: Vault, number: bytes, place: str, body: Any) -> bytes:
        written = seal(self, number, place, body)
        sealings.append((place, bytes(body), written))
        return written

    monkeypatch.setattr(Vault, "seal", noting)
    bits, key = RandomBits.secure(), PrivateKey.generate()
    task = small_task(key.public, users=USERS, shufflers=3)
    front, back = (server.address(folder / "keys", server.new_schema()) for _ in range(2))
    analyzer = AnalyzerServer(open_analyzer_store(back), key=key, opener=OpenerHere(key))
    refuses: set[str] = set()

    def post(path: str, body: bytes) -> int:
        _, _, _, task_id, _, batch_id = path.split("/")
        return 503 if batch_id in refuses else 201 if analyzer.deliver(task_id, batch_id, body) else 200

    shuffler = ShufflerServer(open_shuffler_store(front), post=post)
    shuffler.add_task(task.text)
    analyzer.add_task(task.text)
    sent: list[SentReport] = []
    # Of the three levels one batch is left open: the last people do not come.
    for seat in shuffler.take_seats(task.id, USERS - 2).result():
        report = SentReport(new_id(bits=bits), seat.seat, made_report(task, seat.batches, bits=bits).body)
        assert accept_reports(shuffler, task.id, [report]).result()[0].new
        sent.append(report)
    full = shuffler._store.read(lambda inside: inside.full_batches())
    refuses.add(full[-1][1])
    shuffler.seal_full()
    assert not shuffler.send_waiting()
    analyzer.read_all()
    sealed = {
        batch_id: shuffler._store.read(lambda inside, b=batch_id: inside.sealed(task.id, b)) for batch_id in refuses
    }
    files = list(server.files())
    keys = [file.read_bytes()[:KEY_BYTES] for file in (folder / "keys").iterdir()]
    shuffler.stop()
    analyzer.stop()
    released = {place: body for place, body, _ in sealings if place.startswith("bodies ")}
    assert len(released) == len(full) - 1 and len(full) > 3
    return Aftermath(sent, released, sealed, sealings, files, keys)


@pytest.fixture(scope="module")
def aftermath(postgresql: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    with pytest.MonkeyPatch.context() as patch:
        yield leave(postgresql, tmp_path_factory.mktemp("disk"), patch)


def test_no_ciphertext_of_a_report_is_on_disk_in_the_clear(aftermath: Aftermath) -> None:
    pieces = [each[8:24] for report in aftermath.sent for each in ciphertexts(report.body)]
    for file, content in aftermath.files:
        assert not any(piece in content for piece in pieces), f"{file} has a ciphertext"


def test_the_scan_would_find_what_is_there(aftermath: Aftermath) -> None:
    """What was deleted is still in the files: that its key is gone is all that protects it."""
    everything = b"".join(content for _, content in aftermath.files)
    found = [place for place, _, written in aftermath.sealings if written[12:60] in everything]
    kinds = {place.split()[0] for place in found}
    assert kinds == {"parts", "pieces", "bodies"} and len(found) > len(aftermath.sealings) / 2
    assert any("pg_wal" in str(file) for file, _ in aftermath.files)


def test_nothing_that_was_released_opens_and_nothing_tells_how_a_sealed_batch_came(aftermath: Aftermath) -> None:
    aftermath.check()
    opened = aftermath.opened()
    # What waits can be read: the open batches as they come, the sealed one in its random order only.
    [body] = aftermath.sealed.values()
    assert body in [each for place, each in opened if place.startswith("pieces ")]
    assert any(place.startswith("parts ") for place, _ in opened)
    assert len(opened) < len(aftermath.sealings) / 2


def test_reports_ids_are_on_disk_in_no_form_that_anybody_else_knows(aftermath: Aftermath) -> None:
    ids = [form for report in aftermath.sent for form in (bytes.fromhex(report.report_id), report.report_id.encode())]
    for file, content in aftermath.files:
        assert not any(form in content for form in ids), f"{file} has a report's id"


@pytest.mark.parametrize("forgets", ["parts", "everything"])
def test_a_store_that_forgets_to_destroy_keys_is_caught(
    postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgets: str
) -> None:
    destroy, calls, first = KeyFolder.destroy, [], []

    def wrong(self: KeyFolder, names: list[str]) -> None:
        calls.extend(names)
        # Those of parts go first.
        if forgets == "parts" and first and names != first:
            destroy(self, names)
        first[:] = first or names

    monkeypatch.setattr(KeyFolder, "destroy", wrong)
    left = leave(postgresql, tmp_path, monkeypatch)
    assert calls
    with pytest.raises(AssertionError, match=r"can still be read|can be read as it came"):
        left.check()
