"""Several processes that open pieces for an analyzer elsewhere, until a signal comes."""

import multiprocessing
import os
import signal
import threading
import time
from typing import Any

import httpx

from shuffledp.errors import ShuffleDPError
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.remote import RemoteOpener
from shuffledp.service.client.calls import TIMEOUT, Calls
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.telemetry import log, log_to_stderr

# So long a process may take to end after it was told; then it is ended, which loses nothing but its piece.
_LAST_SECONDS = 3.0
_LOOK_SECONDS = 0.2


def open_until_told(url: str, key: PrivateKey, token: str, processes: int) -> int:
    """Open pieces in so many processes until SIGINT or SIGTERM; all end within five seconds.

    A process that was killed is started again. Answers how many pieces were counted.

    Args:
        url: the analyzer's address.
        key: what messages are encrypted to.
        token: of the role open.
        processes: how many; 0 for one a core.

    Raises:
        ShuffleDPError: what every process has found, such as a token that is refused.
    """
    context = multiprocessing.get_context("spawn")
    told, counted, wrong = context.Event(), context.Value("q", 0), context.SimpleQueue()
    # A handler must wait for no lock: it only says that a signal came.
    signals: list[int] = []
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, _: signals.append(number))

    def started() -> Any:
        process = context.Process(target=_work, args=(url, key.raw, token, told, counted, wrong), daemon=True)
        process.start()
        return process

    running = [started() for _ in range(processes or os.cpu_count() or 1)]
    while not signals and wrong.empty():
        time.sleep(_LOOK_SECONDS)
        for place, process in enumerate(running):
            if not process.is_alive() and not signals and wrong.empty():
                log("opener ended", level=30, code=process.exitcode)
                # One that cannot even begin must not keep the machine busy.
                time.sleep(1.0)
                running[place] = started()
    told.set()
    deadline = time.monotonic() + _LAST_SECONDS
    for process in running:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
    if not wrong.empty():
        raise ShuffleDPError(wrong.get())
    return int(counted.value)


def _work(url: str, private_raw: bytes, token: str, told: Any, counted: Any, wrong: Any) -> None:
    """One process: opens until it is told to stop, or whoever started it is gone."""
    # The signal of a terminal comes to all: the first process says when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    log_to_stderr()
    with httpx.Client(timeout=TIMEOUT) as http:
        calls = Calls(url, token, http, RandomBits.secure())
        opener = RemoteOpener(calls, PrivateKey(private_raw), told.is_set, told.wait)
        try:
            while not told.is_set():
                if opener.open_one_or_wait():
                    with counted.get_lock():
                        counted.value += 1
        except ShuffleDPError as refused:
            wrong.put(str(refused))


def _end_with_the_first() -> None:
    """Nobody who knows the key is left behind."""
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os._exit(1)
