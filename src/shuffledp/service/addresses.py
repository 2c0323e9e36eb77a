"""Where servers are: on this machine, or elsewhere behind TLS."""

import ipaddress

from shuffledp.errors import ParameterError


def is_loopback(host: str) -> bool:
    """Whether this host is the machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_plain_http(url: str, parameter: str) -> None:
    """Refuse to send anything to another machine in the clear: who sees ciphertexts pass can undo the shuffle."""
    scheme, _, rest = url.strip().partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if scheme.lower() == "http" and not is_loopback(name):
        raise ParameterError(parameter, url, "must be https unless it is this machine", "serve it with TLS")
