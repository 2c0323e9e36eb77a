"""People report through a relay, half from Node, half from Python: all are counted, and nobody wrote an address down.

They have an address that nothing else here has. The relay, which sees it, logs nothing; the shuffler never sees it.
"""

from pathlib import Path

import pytest

from harness.hidden import ADDRESS, Aftermath, forms_of, reported_through_a_relay

USERS = 40


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    return reported_through_a_relay(tmp_path_factory.mktemp("hidden"), USERS)


def test_nothing_is_lost_and_nothing_counted_twice(aftermath: Aftermath) -> None:
    half = USERS // 2
    assert aftermath.sent["node"] == {"reports": half, "new": half, "waiting": 0}
    assert aftermath.sent["python"].new == half - 1 and aftermath.sent["command"]["new"] == 1
    assert aftermath.counts["reports"] == USERS
    assert aftermath.estimate["time"] == USERS and aftermath.estimate["dropped"] == aftermath.estimate["void"] == 0


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says who is connected")
def test_the_relay_sees_addresses_and_the_shuffler_does_not(aftermath: Aftermath) -> None:
    assert ADDRESS in aftermath.peers["relay"] and ADDRESS not in aftermath.peers["shuffler"]
    assert aftermath.peers["shuffler"], "the relay was connected"


def test_the_relay_writes_nothing_down(aftermath: Aftermath) -> None:
    """But what it said before anybody came; and no file beside it."""
    log = aftermath.logs["relay"]
    lines = log.read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["relay", "interrupt"] and list(log.parent.iterdir()) == [log]


def test_no_address_is_on_the_shufflers_disk_or_in_its_log(aftermath: Aftermath) -> None:
    files = [file for file in aftermath.folder.rglob("*") if file.is_file()]
    assert any("shuffler.db" in file.name for file in files) and len(files) >= 2
    everything = {file.name: file.read_bytes() for file in [*files, aftermath.logs["servers"]]}
    # Two forms have four bytes, and turn up in 10^4 random ones, which is what is left here, with probability 5e-6.
    assert not found_in(everything, forms_of(ADDRESS))
    assert found_in({"a control": f"from {ADDRESS}:4711".encode()}, forms_of(ADDRESS))
    assert any("shuffler.db" in name for name in aftermath.meanwhile)
    assert not found_in(aftermath.meanwhile, forms_of(ADDRESS)[2:])


def found_in(files: dict[str, bytes], forms: list[bytes]) -> list[tuple[str, bytes]]:
    return [(name, form) for name, content in files.items() for form in forms if form in content]
