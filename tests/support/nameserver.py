"""A name server of a test's own: it tells one XMPP server under which ports it reaches the others (RFC 6120 3.2.1).

Each server asks its own name server, so each of them can be sent through wires of its own.
"""

import socket
import threading
from collections.abc import Mapping
from typing import Final

import aiodns

from smartfeeds.local.process import HOST
from support.waiting import HANG_S

ZONE: Final = "fed.test"  # under a name that exists nowhere (RFC 6761)
_A, _SRV = 1, 33
_SERVICE = "_xmpp-server._tcp."
_TARGET: Final = "localhost"  # every port is there; ejabberd asks the system for the address, not us
_TTL_S: Final = 3600


class Nameserver:
    """Answers on `port` (UDP): `ports` says by domain where its servers are reached, for names below it as well.

    The servers are at `target`; only `localhost` has an address.
    A name that is not in `ports` has no records. Starts at once; ends with `close`.
    """

    def __init__(self, ports: Mapping[str, int], target: str = _TARGET) -> None:
        self._target = target
        self._ports = dict(ports)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((HOST, 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="nameserver", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops answering."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"", (HOST, self.port))  # an empty datagram is the end
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            query, sender = self._socket.recvfrom(4096)
            if not query:
                return
            self._socket.sendto(self._answer(query), sender)

    def _answer(self, query: bytes) -> bytes:
        name, end = _read_name(query)
        kind = int.from_bytes(query[end : end + 2], "big")
        record = self._record(name.lower(), kind)
        counts = b"\0\1" + (b"\0\1" if record else b"\0\0") + b"\0\0\0\0"
        flags = bytes([0x84 | query[2] & 0x01, 0x80])  # an answer of authority; whether recursion was wanted stays
        return query[:2] + flags + counts + query[12 : end + 4] + record

    def _record(self, name: str, kind: int) -> bytes:
        """The record that answers; empty where there is none."""
        if kind == _A and name == _TARGET:
            return _encode(kind, socket.inet_aton(HOST))
        if kind == _SRV and name.startswith(_SERVICE):
            domain = name.removeprefix(_SERVICE)
            for known, port in self._ports.items():
                if domain == known or domain.endswith(f".{known}"):
                    return _encode(kind, b"\0\0\0\0" + port.to_bytes(2, "big") + _write_name(self._target))
        return b""


def resolver(port: int) -> aiodns.DNSResolver:
    """Asks the name server at this port of the machine, and no other."""
    return aiodns.DNSResolver(nameservers=[HOST], udp_port=port, timeout=HANG_S, tries=1)


def _read_name(query: bytes) -> tuple[str, int]:
    """The name that is asked for, and where it ends."""
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    return ".".join(labels), at + 1


def _write_name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode("ascii") for label in name.split(".")) + b"\0"


def _encode(kind: int, data: bytes) -> bytes:
    """A record for the name of the question, which begins at byte 12 (RFC 1035 4.1.4)."""
    fields = (kind, 2), (1, 2), (_TTL_S, 4), (len(data), 2)
    return b"\xc0\x0c" + b"".join(value.to_bytes(size, "big") for value, size in fields) + data
