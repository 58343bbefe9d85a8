"""The checks of `smartfeeds doctor` on what other machines see: DNS records, connections between servers, HTTP.

Other servers find a domain by the records of RFC 6120 section 3.2. A check from this machine cannot prove that others
get through a firewall, so a connection that fails is a note, while a wrong answer must be fixed.
"""

import asyncio
import re
import secrets
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiodns
import pycares

from smartfeeds.core.text import attribute
from smartfeeds.features.doctor.findings import Check, Finding
from smartfeeds.http.settings import HttpSettings
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchError, FetchLimits

CONNECT_S: Final = 5.0  # for a connection, and for each answer
SERVER_PORT: Final = 5269  # of a domain without SRV records
_READ_BYTES: Final = 65_536  # features and errors of servers have a few kB; another service may send without end
_STREAM_NAMESPACE: Final = re.compile(rb"""<stream:stream\b[^>]*\sxmlns=["']jabber:([a-z:]+)["']""")
_ERROR: Final = re.compile(rb"<stream:error><([a-z-]+)")
_NO_RECORD: Final = frozenset({aiodns.error.ARES_ENODATA, aiodns.error.ARES_ENOTFOUND})
# Names that no other server can look up (RFC 2606, RFC 6761, RFC 6762).
RESERVED: Final = re.compile(
    r"(?:^|\.)(?:localhost|local|test|invalid|example|example\.(?:com|net|org)|internal|home\.arpa)$"
)
_PORTS: Final = {
    b"client": "the port for clients (c2s)",
    b"server": "the port for other servers (s2s)",
}

# The response is a token. The operator has chosen the address, which may be one of the local network.
_LIMITS: Final = FetchLimits(connect_s=CONNECT_S, total_s=2 * CONNECT_S, max_bytes=4096, allowed=EVERYWHERE)

_DNS, _BASE_URL, S2S = map(Check, ("dns", "base_url", "s2s"))


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server of a domain as its DNS records name it: a host, a port, and the addresses of the host."""

    host: str
    port: int
    addresses: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({', '.join(self.addresses) or 'no address'})"


class Outside:
    """The network as another server sees it: its DNS records, and the certificates that are valid (`tls`). Names that
    match `reserved` are not looked up.
    """

    def __init__(
        self,
        resolver: aiodns.DNSResolver | None = None,
        tls: ssl.SSLContext | None = None,
        reserved: re.Pattern[str] = RESERVED,
    ) -> None:
        self.reserved = reserved
        self.resolver = resolver or aiodns.DNSResolver(timeout=CONNECT_S, tries=2)
        self.tls = tls or ssl.create_default_context()

    async def servers(self, domain: str) -> list[ServerAddress]:
        """Return the servers of a domain, none if it has no records. Raises aiodns.error.DNSError."""
        records = await self._query(f"_xmpp-server._tcp.{domain}", "SRV")
        data = [record.data for record in records if isinstance(record.data, pycares.SRVRecordData)]
        targets = [(each.target.rstrip("."), each.port) for each in data]
        servers = [ServerAddress(host, port, await self._addresses(host)) for host, port in targets if host]
        if targets:
            return servers
        plain = ServerAddress(domain, SERVER_PORT, await self._addresses(domain))
        return [plain] if plain.addresses else []

    async def _addresses(self, host: str) -> tuple[str, ...]:
        data = [record.data for kind in ("A", "AAAA") for record in await self._query(host, kind)]
        # The answer may begin with the CNAME records that led to the addresses.
        return tuple(each.addr for each in data if isinstance(each, pycares.ARecordData | pycares.AAAARecordData))

    async def _query(self, name: str, kind: str) -> list[pycares.DNSRecord]:
        try:
            return (await self.resolver.query_dns(name, kind)).answer
        except aiodns.error.DNSError as error:
            if error.args[0] in _NO_RECORD:
                return []
            raise


async def check_dns(domain: str, outside: Outside) -> Finding:
    """Check whether other servers can look up the domain."""
    if outside.reserved.search(domain):
        return _DNS.note(
            f"{domain} is a name for tests and local networks, so other servers cannot look it up",
            "for users of other servers choose a public name",
        )
    record = f"_xmpp-server._tcp.{domain}"
    try:
        servers = await outside.servers(domain)
    except aiodns.error.DNSError as error:
        return _no_answer(_DNS, domain, error)
    if not servers:
        return _DNS.note(
            f"{domain} has no SRV, A or AAAA record, so only users of your own server reach it",
            f"for users of other servers add: {record}. 3600 IN SRV 0 5 {SERVER_PORT} HOST-OF-THE-XMPP-SERVER.",
        )
    lost = [server.host for server in servers if not server.addresses]
    if lost:
        return _DNS.fix(
            f"{record} names {', '.join(lost)}, which has no A or AAAA record",
            "add an address for the host, or correct the SRV record",
        )
    return _DNS.ok(f"{domain} is at {', '.join(map(str, servers))}")


async def check_s2s(domains: Sequence[str], outside: Outside) -> AsyncIterator[Finding]:
    """Connect to the servers of each domain as another server does, and check that they serve it with a valid
    certificate. Domains without DNS records are left out.
    """
    for domain in domains:
        try:
            servers = [] if outside.reserved.search(domain) else await outside.servers(domain)
        except aiodns.error.DNSError as error:
            yield _no_answer(S2S, domain, error)
            continue
        for server in servers:
            for address in server.addresses:
                yield await _check_server(domain, server, address, outside.tls)


def _no_answer(check: Check, domain: str, error: aiodns.error.DNSError) -> Finding:
    return check.note(
        f"_xmpp-server._tcp.{domain}: the name server does not answer: {error.args[1]}",
        "check the network and /etc/resolv.conf of this machine",
    )


async def _check_server(domain: str, server: ServerAddress, address: str, tls: ssl.SSLContext) -> Finding:
    where = f"{domain} at {server.host}:{server.port} ({address})"
    try:
        async with asyncio.timeout(CONNECT_S * 4), _connection(address, server.port) as (reader, writer):
            answer = await _opened(reader, writer, "server", domain)
            error = _ERROR.search(answer)
            if error is not None:
                return S2S.fix(
                    f"{where}: the server answers {error[1].decode()}",
                    "correct the DNS record, which must lead to your XMPP server, or configure the name in that server",
                )
            if b"urn:ietf:params:xml:ns:xmpp-tls" not in answer:
                return S2S.fix(f"{where}: no TLS is offered", "configure a certificate for this name in the server")
            writer.write(b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
            await _read_until(reader, b"<proceed", b"<failure")
            # The name is that of the domain, not of the host: an SRV record is not authentic (RFC 6120 section 13.7.2).
            await writer.start_tls(tls, server_hostname=domain)
            return S2S.ok(f"{where}: the server serves it with a valid certificate")
    except ssl.SSLCertVerificationError as error:
        return S2S.note(
            f"{where}: the certificate is not valid for {domain}: {error.verify_message}",
            f"get a certificate that names {domain}; servers that demand one refuse this connection",
        )
    except (OSError, TimeoutError) as error:
        return S2S.note(
            f"{where}: no connection from here: {error or 'no answer in time'}",
            "check from another machine, whether the port is open in the firewall and the server accepts other servers",
        )


async def port_purpose(host: str, port: int) -> str:
    """Return what a port that is no component port is for, "" if that is unknown."""
    try:
        async with asyncio.timeout(CONNECT_S), _connection(host, port) as (reader, writer):
            answer = await _opened(reader, writer, "component:accept", host)
    except (OSError, TimeoutError):
        return ""
    if answer.startswith(b"HTTP/"):
        return "the port of a web server"
    namespace = _STREAM_NAMESPACE.search(answer)
    return _PORTS.get(namespace[1], "") if namespace is not None else ""


@asynccontextmanager
async def _connection(host: str, port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()  # an orderly end would wait for the other side, which may be silent


async def _opened(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str, domain: str) -> bytes:
    """Open a stream and return the answer up to its features or its error."""
    writer.write(
        f"<?xml version='1.0'?><stream:stream xmlns='jabber:{kind}' version='1.0' to='{attribute(domain)}' "
        "xmlns:stream='http://etherx.jabber.org/streams'>".encode()
    )
    return await _read_until(reader, b"</stream:features>", b"</stream:error>", b"\r\n\r\n")


async def _read_until(reader: asyncio.StreamReader, *ends: bytes) -> bytes:
    data = b""
    while not any(end in data for end in ends) and len(data) < _READ_BYTES:
        chunk = await reader.read(_READ_BYTES)
        if not chunk:
            break
        data += chunk
    return data


async def check_base_url(http: HttpSettings, *, served: bool) -> Finding:
    """Check whether http.base_url leads to this service. The check answers at http.listen itself, except if another
    process `served` there: then the health check of that process must answer.
    """
    token = "ok" if served else secrets.token_urlsafe(16)  # another web server cannot guess the token
    address = f"{http.base_url}/healthz"
    wrong_service = _BASE_URL.fix(
        f"{address} answers, but not from this service",
        f"let the web server pass {http.base_url}/ on to {http.listen}, with the path unchanged",
    )
    try:
        async with _token_server(http.listen, "" if served else token), Fetcher(_LIMITS) as fetcher:
            response = await fetcher.get(address)
    except FetchError as error:
        if error.status:
            return wrong_service
        return _BASE_URL.note(
            f"{address}: no connection from here: {error.reason}",
            "check the DNS record, the port and the certificate of the web server, if necessary from another machine",
        )
    leads_here = response.body.strip() == token.encode()
    return _BASE_URL.ok(f"{http.base_url} leads to this service") if leads_here else wrong_service


@asynccontextmanager
async def _token_server(listen: str, token: str) -> AsyncIterator[None]:
    """Answer every request at the address with the token, or do nothing without one."""
    if not token:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _read_until(reader, b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(token)}\r\nConnection: close"
        writer.write(f"{head}\r\n\r\n{token}".encode())
        writer.close()

    host, _, port = listen.rpartition(":")
    async with await asyncio.start_server(answer, host.strip("[]"), int(port)):
        yield
