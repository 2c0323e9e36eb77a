"""The one gate for randomness: AES-256 in counter mode, keyed by the operating system or by a seed."""

import hashlib
import os
import threading
from typing import Any, NoReturn, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from shuffledp.errors import ParameterError, RandomnessError

_ZEROS = bytes(1 << 18)


class _Lineage:
    """Which fork of which process this is: siblings and generations all differ.

    The parent counts its forks before each one, so that two children never inherit the same count;
    the process id covers forks that Python was not told of.
    """

    def __init__(self) -> None:
        self.name = b"root"
        self.forks = 0
        self.restarting = threading.Lock()

    def before_fork(self) -> None:
        self.forks += 1

    def after_fork_in_child(self) -> None:
        self.name = hashlib.sha256(self.name + self.forks.to_bytes(8, "big")).digest()
        self.forks = 0
        self.restarting = threading.Lock()  # another thread of the parent may have held it

    def mark(self) -> bytes:
        return self.name + os.getpid().to_bytes(8, "big")


_LINEAGE = _Lineage()
os.register_at_fork(before=_LINEAGE.before_fork, after_in_child=_LINEAGE.after_fork_in_child)


class RandomBits:
    """A stream of random bits: the AES-256-CTR keystream.

    `secure()` is keyed by the operating system; `seeded(k)` is the same code with a key made from k,
    repeatable, and knows that it protects nobody (`is_secure`). A forked child never repeats its
    parent's stream; `spawn(k)` gives independent streams, repeatable if this one is, for parallel work.

    Args:
        key: 32 bytes; use `secure` or `seeded` instead.

    >>> RandomBits.seeded(1).words(2).tolist() == RandomBits.seeded(1).words(2).tolist()
    True
    >>> RandomBits.secure().is_secure, RandomBits.seeded(1).is_secure
    (True, False)
    """

    __slots__ = ("_key", "_lock", "_mark", "_secure", "_spawned", "_stream")

    def __init__(self, key: bytes) -> None:
        # Only `secure`, its spawn and streams of a key from the operating system may call themselves so.
        self._secure = False
        self._start(key)

    def _start(self, key: bytes) -> None:
        self._key = key
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._spawned = 0
        self._lock = threading.Lock()
        self._mark = _LINEAGE.mark()

    @classmethod
    def secure(cls) -> Self:
        """Bits that may protect somebody: keyed by os.urandom."""
        bits = cls(os.urandom(32))
        bits._secure = True
        return bits

    @classmethod
    def seeded(cls, seed: int) -> Self:
        """Repeatable bits for simulations and tests: they protect nobody."""
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ParameterError("seed", seed, "must be a whole number >= 0", "pass for instance 1")
        number = int(seed)
        material = number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")
        return cls(hashlib.sha256(b"shuffledp seed " + material).digest())

    @classmethod
    def keyed(cls, key: bytes, *, secure: bool) -> Self:
        """The stream of a key of 32 bytes, for work that must repeat its bits when it is run again.

        Args:
            key: used for this stream alone.
            secure: whether it was derived from bytes of the operating system; whoever says so must know it.
        """
        bits = cls(key)
        bits._secure = secure
        return bits

    @property
    def is_secure(self) -> bool:
        """Whether the key came from the operating system."""
        return self._secure

    def fill(self, out: NDArray[Any]) -> None:
        """Write random bits over the whole of a contiguous array."""
        if not out.flags.c_contiguous:
            raise ParameterError("out", out.strides, "must be contiguous", "pass a fresh array")
        if out.nbytes == 0:
            return
        self._start_anew_if_forked()
        mark = self._mark
        view = out.reshape(-1).view(np.uint8).data
        step = len(_ZEROS)
        with self._lock:
            for start in range(0, len(view), step):
                piece = view[start : start + step]
                self._stream.update_into(_ZEROS if len(piece) == step else _ZEROS[: len(piece)], piece)
        if mark != _LINEAGE.mark():  # a signal handler forked meanwhile: the child must not keep these
            self.fill(out)

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` random 64-bit words."""
        out = np.empty(count, dtype=np.uint64)
        self.fill(out)
        return out

    def unsigned(self, shape: int | tuple[int, ...], width: int) -> NDArray[Any]:
        """Random unsigned integers of 8, 16, 32 or 64 bits."""
        out = np.empty(shape, dtype=f"u{width // 8}")
        self.fill(out)
        return out

    def spawn(self, count: int) -> list[Self]:
        """`count` streams independent of this one and of each other; repeatable if this one is."""
        self._start_anew_if_forked()
        with self._lock:
            first = self._spawned
            self._spawned += count
        streams = [type(self)(self._derive(b"spawn", first + i)) for i in range(count)]
        for stream in streams:
            stream._secure = self._secure
        return streams

    def _derive(self, purpose: bytes, index: int) -> bytes:
        return hashlib.sha256(b"shuffledp " + purpose + self._key + index.to_bytes(8, "big")).digest()

    def _start_anew_if_forked(self) -> None:
        if self._mark == _LINEAGE.mark():
            return
        with _LINEAGE.restarting:
            if self._mark == _LINEAGE.mark():
                return  # another thread was faster
            if self._secure:
                self._start(os.urandom(32))
            else:
                self._start(hashlib.sha256(b"shuffledp fork " + self._key + _LINEAGE.mark()).digest())

    def __reduce__(self) -> NoReturn:
        raise RandomnessError("A copy of RandomBits would repeat its stream: use spawn() for another stream.")

    def __repr__(self) -> str:
        return f"RandomBits({'secure' if self._secure else 'seeded'})"
