import copy
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from shuffledp.errors import ParameterError, RandomnessError
from shuffledp.randomness import RandomBits


def in_child(call) -> bytes:
    """What `call` returns in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, call())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read()


def test_the_stream_is_aes_256_in_counter_mode() -> None:
    key = bytes(range(32))
    expected = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(1 << 20))
    bits = RandomBits(key)
    pieces = [bits.unsigned(n, 8).tobytes() for n in (1, 7, 300_001)]
    pieces.append(bits.unsigned((1 << 20) - sum(map(len, pieces)), 8).tobytes())
    assert b"".join(pieces) == expected


def test_a_seed_repeats_and_seeds_differ() -> None:
    assert (RandomBits.seeded(5).words(100) == RandomBits.seeded(5).words(100)).all()
    assert (RandomBits.seeded(5).words(100) != RandomBits.seeded(6).words(100)).all()
    large = [2**200, 2**200 + 1, 2**200 + 2**100, 2**201, 2**64, 0, 1]
    assert len({int(RandomBits.seeded(seed).words(1)[0]) for seed in large}) == len(large)


def test_secure_sources_differ_and_know_what_they_are() -> None:
    assert (RandomBits.secure().words(100) != RandomBits.secure().words(100)).all()
    assert RandomBits.secure().is_secure and not RandomBits.seeded(1).is_secure


@pytest.mark.parametrize("make", [RandomBits.secure, lambda: RandomBits.seeded(1)])
def test_no_child_repeats_its_parent_or_its_siblings(make) -> None:
    bits = make()
    bits.words(3)
    streams = [in_child(lambda: bits.words(4).tobytes()) for _ in range(3)]
    grandchild = in_child(lambda: in_child(lambda: bits.words(4).tobytes()))
    spawned = in_child(lambda: bits.spawn(1)[0].words(4).tobytes())
    streams += [grandchild, spawned, bits.words(4).tobytes(), bits.spawn(1)[0].words(4).tobytes()]
    assert len(set(streams)) == len(streams)


def test_children_that_get_the_same_process_id_do_not_repeat_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are used again: two children of one parent, and a grandchild, may have the same."""
    monkeypatch.setattr(os, "getpid", lambda: 4242)
    bits = RandomBits.seeded(1)
    streams = [in_child(lambda: bits.words(4).tobytes()) for _ in range(3)]
    streams += [in_child(lambda: in_child(lambda: bits.words(4).tobytes())), bits.words(4).tobytes()]
    assert len(set(streams)) == len(streams)


FORKED_IN_C = """
import ctypes, os, sys
from shuffledp.randomness import RandomBits

bits, libc, streams = {make}, ctypes.CDLL(None), []
for _ in range(2):
    read, write = os.pipe()
    child = libc.fork()
    if child == 0:
        os.write(write, bits.words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        streams.append(pipe.read().hex())
print(*streams, bits.words(4).tobytes().hex())
"""


@pytest.mark.parametrize("make", ["RandomBits.secure()", "RandomBits.seeded(1)"])
def test_a_fork_that_python_was_not_told_of_repeats_nothing(make: str) -> None:
    """As a server written in C would fork its workers, where no other thread holds the interpreter's lock."""
    command = [sys.executable, "-c", FORKED_IN_C.format(make=make)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    streams = printed.split()
    assert len(streams) == len(set(streams)) == 3 and {len(stream) for stream in streams} == {64}


def test_a_fork_in_the_middle_of_a_draw_repeats_nothing() -> None:
    """A signal handler forks while a large array is being filled: the child draws its array again."""
    bits = RandomBits.secure()
    read, write = os.pipe()
    children: list[int] = []

    def fork(*_: object) -> None:
        children.append(os.fork())

    before = signal.signal(signal.SIGALRM, fork)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        while not children:
            drawn = bits.words(4_000_000)
        if children[0] == 0:
            os.write(write, drawn[-4:].tobytes())
            os._exit(0)
        os.waitpid(children[0], 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() != drawn[-4:].tobytes()


def test_threads_of_a_child_do_not_restart_its_stream_twice() -> None:
    def first_draws() -> bytes:
        drawn: list[bytes] = []
        workers = [threading.Thread(target=lambda: drawn.append(bits.words(4).tobytes())) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return len(set(drawn)).to_bytes(1, "big")

    bits = RandomBits.seeded(1)
    assert {in_child(first_draws) for _ in range(30)} == {b"\x08"}


def test_nobody_but_the_operating_system_makes_secure_bits() -> None:
    assert not RandomBits(bytes(32)).is_secure
    with pytest.raises(TypeError):
        RandomBits(bytes(32), is_secure=True)  # type: ignore[call-arg]


def test_a_seeded_parent_does_not_notice_its_forks() -> None:
    bits = RandomBits.seeded(1)
    in_child(lambda: bits.words(4).tobytes())
    assert (bits.words(4) == RandomBits.seeded(1).words(4)).all()


def test_spawned_streams_are_independent_and_repeatable() -> None:
    def streams(seed: int) -> list[bytes]:
        bits = RandomBits.seeded(seed)
        return [s.words(8).tobytes() for s in [*bits.spawn(3), *bits.spawn(2), bits]]

    assert streams(1) == streams(1)
    assert len(set(streams(1) + streams(2))) == 12
    assert all(s.is_secure for s in RandomBits.secure().spawn(2))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_would_repeat_the_stream_and_is_refused(duplicate) -> None:
    with pytest.raises(RandomnessError, match="spawn"):
        duplicate(RandomBits.seeded(1))


def test_threads_share_a_stream_without_repeating_it() -> None:
    bits, seen = RandomBits.seeded(1), []
    workers = [threading.Thread(target=lambda: seen.append(bits.words(50_000))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    drawn = np.concatenate(seen)
    assert np.unique(drawn).size == drawn.size


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True, None])
def test_bad_seeds_are_named(seed) -> None:
    with pytest.raises(ParameterError, match="seed"):
        RandomBits.seeded(seed)


def test_only_contiguous_arrays_are_filled() -> None:
    with pytest.raises(ParameterError, match="contiguous"):
        RandomBits.seeded(1).fill(np.zeros((4, 4), dtype=np.uint8)[:, ::2])
    empty = np.zeros(0, dtype=np.uint64)
    RandomBits.seeded(1).fill(empty)


def test_the_key_is_not_shown() -> None:
    assert repr(RandomBits.secure()) == "RandomBits(secure)"
