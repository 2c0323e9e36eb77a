"""Servers as processes: uvicorn on loopback, or on another address with TLS."""

import asyncio
import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from shuffledp.errors import ParameterError
from shuffledp.service.addresses import is_loopback
from shuffledp.service.punctual import PunctualProtocol

LOOPBACK = "127.0.0.1"
_MOST_CONNECTIONS = 512
# A server that is told to stop ends, whatever it does: for so many seconds it waits for requests that are under way,
# and after so many it ends as if it were killed, which loses nothing that was acknowledged.
_GRACE_SECONDS, _LAST_SECONDS = 1, 4.0
# So many objects more than before, and Python looks for circles among them: a hundred requests that wait for the disk
# are fewer, and circles that hold the bodies of refused ones are soon that many.
_YOUNG_OBJECTS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens, and with which certificate.

    Attributes:
        host: another address than this machine's own needs TLS, or a proxy.
        port: where to listen; 0 where it is a file.
        tls_cert: a certificate, PEM.
        tls_key: its key, PEM.
        uds: a socket's file instead of a port: for a proxy on the same machine.
        behind_proxy: whether TLS ends at a proxy in front, which is trusted with what the network sees.
    """

    host: str = LOOPBACK
    port: int
    tls_cert: Path | None = None
    tls_key: Path | None = None
    uds: Path | None = None
    behind_proxy: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ParameterError("port", self.port, "must lie in 0..65535", "8001 is a common choice")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ParameterError("tls_cert", self.tls_cert, "and tls_key go together", "give both or none")
        if self.tls_cert is None and not self.behind_proxy and not is_loopback(self.host):
            way_out = "give --tls-cert and --tls-key, or --behind-proxy where TLS ends in front of it"
            raise ParameterError("host", self.host, "must be this machine itself without TLS", way_out)
        if self.uds is not None and self.tls_cert is not None:
            raise ParameterError("uds", self.uds, "and a certificate do not go together", "let the proxy have it")

    @property
    def url(self) -> str:
        """How clients reach it."""
        if self.uds is not None:
            return f"unix:{self.uds}"
        return f"{'http' if self.tls_cert is None else 'https'}://{self.host}:{self.port}"

    @contextmanager
    def taken(self) -> Iterator[list[socket.socket]]:
        """Listen here from now on, before anybody is told so or anything is written.

        Raises:
            ParameterError: the port is another program's, or the address is not this machine's.
        """
        if self.uds is not None:
            with _socket_file(self.uds) as listening_file:
                yield [listening_file]
            return
        with ExitStack() as opened:
            try:
                found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
                # One name may be an address of each kind.
                listening = [
                    opened.enter_context(closing(socket.create_server(where[:2], family=family)))
                    for family, _, _, _, where in dict.fromkeys(found)
                ]
            except OSError as refused:
                if isinstance(refused, socket.gaierror):
                    problem = "must be this machine's own address"
                    raise ParameterError("host", self.host, problem, "name one, such as 127.0.0.1") from None
                problem = f"must be one that is free on {self.host} ({os.strerror(refused.errno or 0).lower()})"
                raise ParameterError("port", self.port, problem, "stop what listens there, or give another") from None
            yield listening


@contextmanager
def _socket_file(path: Path) -> Iterator[socket.socket]:
    """A socket that listens in this file, for its owner and group; the file goes with it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # What a server left that was killed is taken over; one that is alive is not.
        if path.is_socket() and probe.connect_ex(str(path)) != 0:
            path.unlink()
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listening:
        before = os.umask(0o117)
        try:
            listening.bind(str(path))
        except OSError as refused:
            problem = f"must be a new file ({os.strerror(refused.errno or 0).lower()})"
            raise ParameterError("uds", path, problem, "stop what listens there, or name another") from None
        finally:
            os.umask(before)
        listening.listen(1024)
        try:
            yield listening
        finally:
            path.unlink(missing_ok=True)


def uvicorn_server(app: Starlette, address: Address, **more: Any) -> "Server":
    """A server that writes no addresses to any log.

    Args:
        app: what it serves.
        address: where, and with which certificate.
        **more: further settings of uvicorn.

    Returns:
        The server; `run` serves until it is interrupted.
    """
    config = uvicorn.Config(
        app,
        http=PunctualProtocol,
        host=address.host,
        port=address.port,
        access_log=False,
        # Its own configuration would reset every other logger of the process; see `log_to_stderr`.
        log_config=None,
        server_header=False,
        ssl_certfile=address.tls_cert,
        ssl_keyfile=address.tls_key,
        # Nothing that a proxy says about where a request came from is looked at.
        proxy_headers=False,
        # A body of 64 MB from each of many connections would be all the memory there is.
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        **more,
    )
    return Server(config)


class Server(uvicorn.Server):
    """A server that takes signals itself, unless somebody runs several together."""

    is_told = False
    """Whether somebody else takes signals, and says when to stop."""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal comes; in the main thread the process is this server's."""
        if threading.current_thread() is threading.main_thread():
            spare_what_is_loaded()
        super().run(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals while it serves."""
        if self.is_told:
            yield
            return
        with super().capture_signals():
            yield


def spare_what_is_loaded() -> None:
    """Let Python look for circles of dead objects among new ones only: what is loaded lives as long as the process.

    Requests that wait together are so many new objects that all of the program was looked through for them, again and
    again: a tenth of what it takes to accept a report.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fastest event loop there is, as uvicorn takes it for a server that it runs alone; None for Python's own."""
    try:
        import uvloop
    except ImportError:  # it is not to be had on Windows
        return None
    return uvloop.new_event_loop


def run_until_told(servers: list[Server], sockets: list[list[socket.socket]], say: Callable[[str], None]) -> None:
    """Serve until a signal comes or one of them ends; then all end within five seconds, and say what they leave.

    Slow uploads are broken off, a batch that is being opened is left for the next time, and whatever still goes on,
    such as a next hop that does not answer, is ended with the process: all that was acknowledged is on disk.

    Args:
        servers: made by `uvicorn_server`.
        sockets: where each of them listens, of `Address.taken`.
        say: told what is left, a line each.
    """
    tellers = [server.config.app.state.server for server in servers]  # type: ignore[union-attr]

    def told(*_: Any) -> None:
        for server in servers:
            # Told twice, it does not wait for anything.
            server.force_exit = server.should_exit
            server.should_exit = True
        threading.Thread(target=end_in_time, daemon=True).start()

    def end_in_time() -> None:
        time.sleep(_LAST_SECONDS)
        for teller in tellers:
            say(f"stopped in the middle of something: {teller.leaves()}")
        os._exit(0)

    async def all_of_them() -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, told)
        running = [asyncio.ensure_future(server.serve(own)) for server, own in zip(servers, sockets, strict=True)]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*running)

    for server in servers:
        server.is_told = True
    spare_what_is_loaded()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(all_of_them())
    for teller in tellers:
        say(f"stopped: {teller.leaves()}")
    say("nothing that was acknowledged is lost: start it again on the same store to go on")
