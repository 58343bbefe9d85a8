"""The checks of `smartfeeds doctor` on the database and on the XMPP server.

Each check returns one `Finding`. A rejected stanza may close the link (XEP-0114 does not define what servers do), so
each check opens a connection of its own.
"""

import asyncio
import errno
import os
import shutil
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final

from lxml import etree

from smartfeeds.app.config import Settings
from smartfeeds.core.text import attribute
from smartfeeds.core.times import US_PER_S, parse_datetime
from smartfeeds.errors import LinkError, StoreError
from smartfeeds.features.doctor import maintenance
from smartfeeds.features.doctor.findings import Check, CheckState, Finding
from smartfeeds.features.doctor.outside import S2S, Outside, check_base_url, check_dns, check_s2s, port_purpose
from smartfeeds.features.doctor.probe_items import check_items
from smartfeeds.features.doctor.probe_postgres import check_postgres, check_schema, serving_processes
from smartfeeds.store.lock import database_holder
from smartfeeds.store.migrate import HEAD, REVISIONS
from smartfeeds.store.sqlite_file import schema_version
from smartfeeds.xmpp.link import LinkDownError
from smartfeeds.xmpp.stream import ComponentStream
from smartfeeds.xmpp.supervisor import ADVICE

ANSWER_S: Final = 10.0  # for one request; servers answer these within milliseconds
# The default limit of Prosody, 512 KiB, is between 520,000 and 600,000.
SIZES_BYTES: Final = (65_536, 131_072, 262_144, 400_000, 520_000, 600_000, 1_000_000, 2_000_000)
DISK_BYTES: Final = 256 * 1024 * 1024  # room for the WAL file and its checkpoint
CLOCK_S: Final = 10.0  # more than the delay of two stanzas
# Pings to the own address over two connections. A third connection that answers nothing gets a third of them, so one
# run in ten million misses it. If it answers, it must get the response, too: one run in a hundred misses it.
PINGS: Final = 40
_SEE_LOG: Final = "the log of the XMPP server has the reason"

_COMPONENT: Final = "{jabber:component:accept}"
_VERSION: Final = "jabber:iq:version"
_INFO: Final = "http://jabber.org/protocol/disco#info"
_TIME: Final = "urn:xmpp:time"


_SECRET, _STORE, _DISK, _HTTP, _LINK = map(Check, ("secret", "store", "disk", "http", "link"))
_SERVER, _CLOCK, _SIZE, _SECOND = map(Check, ("server", "clock", "stanza size", "second process"))


class Probe(ComponentStream):
    """A component connection that sends requests and serves none."""

    def __init__(self, settings: Settings) -> None:
        component = settings.component
        super().__init__(
            component.jid,
            component.reveal_secret(),
            host=component.host,
            port=component.port,
            on_stanza=self._on_stanza,
        )
        self._waiting: dict[str, asyncio.Future[etree._Element]] = {}
        self._numbers = count(1)

    def receive_for(self, other: "Probe") -> None:
        """Accept what another connection waits for, too: the server may send it to this one."""
        self._waiting = other._waiting

    async def ask(self, to: str, payload: str, kind: str = "get") -> etree._Element | LinkDownError | None:
        """Return the response, the reason if the link ended, or None if nothing arrived in time."""
        stanza_id = f"doctor-{next(self._numbers)}"
        answer: asyncio.Future[etree._Element] = asyncio.get_running_loop().create_future()
        self._waiting[stanza_id] = answer
        start = f"<iq type='{kind}' id='{stanza_id}' from='{attribute(self.domain)}' to='{attribute(to)}'>"
        self.outbox.reply(f"{start}{payload}</iq>".encode())
        # A server that rejects the stanza ends the link, and then no response comes.
        down = asyncio.ensure_future(self.wait_closed())
        try:
            await asyncio.wait((answer, down), timeout=ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else down.result() if down.done() else None
        finally:
            down.cancel()
            del self._waiting[stanza_id]

    def _on_stanza(self, element: etree._Element) -> bool:
        answer = self._waiting.get(element.get("id", ""))
        if answer is not None and not answer.done():
            answer.set_result(element)
        elif element.tag == f"{_COMPONENT}iq" and element.get("type") in ("get", "set"):
            self._busy(element)
        return True

    def _busy(self, element: etree._Element) -> None:
        """Reject a stanza for the service. A server that distributes stanzas over connections sends some of them to
        this one.
        """
        names = ((name, element.get(other, "")) for name, other in (("id", "id"), ("to", "from"), ("from", "to")))
        start = " ".join(f"{name}='{attribute(value)}'" for name, value in names)
        condition = "<resource-constraint xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
        self.outbox.reply(f"<iq type='error' {start}><error type='wait'>{condition}</error></iq>".encode())


async def check_all(
    settings: Settings, config: Path | None = None, outside: Outside | None = None
) -> AsyncIterator[Finding]:
    """Run all checks in order. `config` is the file that the settings came from, `outside` the network."""
    outside, domain = outside or Outside(), settings.component.jid
    yield check_secret_file(settings, config)
    for finding in await asyncio.to_thread(_check_store, settings):
        yield finding
    http = await check_http(settings)
    yield http
    if settings.http.listen and settings.http.base_url and http.state is not CheckState.FIX:
        yield await check_base_url(settings.http, served=http.state is CheckState.NOTE)
    yield await check_dns(domain, outside)
    link = await check_link(settings)
    yield link
    if link.state is CheckState.FIX:
        return
    names = [domain, *filter(None, [domain.partition(".")[2]])]
    if link.state is CheckState.NOTE:  # the service runs, and is connected
        async for finding in check_s2s(names, outside):
            yield finding
        return
    for check, run in _ONLINE_CHECKS.items():
        try:
            finding = await run(settings)
        except LinkError as error:
            finding = _connection_ended(check, error)
        yield finding
    try:
        # A server may serve the name of a component only while the component is connected.
        async with _online(settings):
            async for finding in check_s2s(names, outside):
                yield finding
    except LinkError as error:
        yield _connection_ended(S2S, error)


def _connection_ended(check: Check, error: LinkError) -> Finding:
    return check.fix(f"the connection ended during this check: {error}", _SEE_LOG)


def check_secret_file(settings: Settings, config: Path | None) -> Finding:
    """Check whether other users can read the file with the secret: the secret file, or the configuration."""
    path = settings.component.secret_file
    if path is None and config is not None and "secret" in tomllib.loads(config.read_text()).get("component", {}):
        path = config
    if path is None:
        return _SECRET.ok("comes from the environment")
    if path.stat().st_mode & 0o007:
        return _SECRET.fix(f"all users of this machine can read {path}", f"run: chmod 600 {path}")
    readers = "its owner and group" if path.stat().st_mode & 0o070 else "its owner"
    return _SECRET.ok(f"in {path}, which only {readers} can read")


def _check_store(settings: Settings) -> list[Finding]:
    """Check the database, and the disk of a database file or of uploaded files."""
    store = settings.store
    path = store.files_folder.absolute() if store.is_shared else store.path.absolute()
    findings = [*check_postgres(store.address)] if store.is_shared else [_check_database(path)]
    # The first finding is about the connection and the schema. A database that does not exist has no items.
    if findings[0].state is CheckState.OK and (store.is_shared or path.exists()):
        findings += check_items(store)
    return [*findings, _check_disk(path)]


def _check_database(path: Path) -> Finding:
    """Check the database, or the folder in which it will be created."""
    try:
        if not path.exists():
            maintenance.check_writable(path)
            return _STORE.ok(f"{path} does not exist yet; smartfeeds run creates it")
        version, oldest = schema_version(path), maintenance.oldest_program(path)
        sound = maintenance.is_sound(path)
        maintenance.check_writable(path)
    except StoreError as error:
        return _STORE.fix(str(error))
    if not sound:
        return _STORE.fix(f"{path} is damaged", "stop the service, move the file away, and restore a backup")
    if version is not None and (fault := check_schema(str(path), version, oldest)):
        return fault
    if version not in (None, *REVISIONS):
        advice = f"install a newer version of smartfeeds; this one was made for schema {HEAD}, and can still use it"
        return _STORE.note(f"{path} has the newer schema {version}", advice)
    if version != HEAD:
        advice = f"make a backup; the next start of smartfeeds run upgrades the database to schema {HEAD}"
        return _STORE.note(f"{path} has the older schema {version or '(none)'}", advice)
    return _STORE.ok(f"{path}, schema {version}, {path.stat().st_size:,} bytes, no damage")


def _check_disk(path: Path) -> Finding:
    folder = next((parent for parent in path.parents if parent.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    if free < DISK_BYTES:
        advice = f"free disk space, or set store.url to another disk; at least {DISK_BYTES // 2**20} MiB must be free"
        return _DISK.fix(f"{free // 2**20} MiB free in {folder}", advice)
    return _DISK.ok(f"{free / 2**30:.1f} GiB free in {folder}")


async def check_http(settings: Settings) -> Finding:
    """Check whether the HTTP address is free, and whether base_url is set."""
    http = settings.http
    if not http.listen:
        return _HTTP.note("off, because http.listen is empty", "set http.listen to serve feeds to browsers and readers")
    host, _, port = http.listen.rpartition(":")
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host.strip("[]"), int(port))
    except OSError as error:
        # asyncio puts the address and the reason into strerror; a host name that is unknown has no errno of the system.
        reason = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else error.strerror or error
        problem = f"cannot bind {http.listen}: {reason}"
        holder = await _holder(settings)
        if error.errno == errno.EADDRINUSE and holder:
            advice = "this is correct if it listens there; stop it to check the address"
            return _HTTP.note(f"{problem}; {holder} is using the database", advice)
        return _HTTP.fix(problem, "stop the process that uses this address, or change http.listen")
    server.close()
    await server.wait_closed()
    if not http.base_url:
        return _HTTP.note(
            f"{http.listen} is free; http.base_url is not set, so links contain the host name of each request, "
            "and the sign-in page sends no requests to XMPP addresses",
            "for public access put a web server with TLS in front, and set http.base_url and http.proxies",
        )
    return _HTTP.ok(f"{http.listen} is free, public address {http.base_url}")


async def check_link(settings: Settings) -> Finding:
    """Check whether the server accepts this name and secret."""
    component = settings.component
    where = f"{component.jid} at {component.host}:{component.port}"
    if component.link == "off":
        return _LINK.note("this process serves HTTP only", "component.link is off; run doctor where a link is")
    try:
        async with _online(settings):
            pass
        reason = f"{where}: the server accepts name and secret"
        holder = await _holder(settings)
        if holder:
            advice = "the server would send it some of the stanzas of the other checks; stop it to run these checks"
            return _LINK.note(f"{reason}; {holder} is using the database", advice)
        return _LINK.ok(reason)
    except LinkDownError as down:
        if down.condition == "conflict":
            advice = "if smartfeeds is running, this is correct; stop it to run the checks of the server"
            return _LINK.note(f"{where}: another process is connected under this name", advice)
        reason = f"no answer in {ANSWER_S:.0f} seconds" if down.condition == "timeout" else str(down)
        purpose = "" if down.condition == "connect-failed" else await port_purpose(component.host, component.port)
        if purpose:
            return _LINK.fix(
                f"{where}: this is {purpose}, not the port for components: {reason}",
                "set component.port to the port for components, usually 5347",
            )
        return _LINK.fix(f"{where}: {reason}", ADVICE.get(down.condition, _SEE_LOG))


async def _holder(settings: Settings) -> str:
    """Return the service that is using the database, for messages, or an empty text."""
    store = settings.store
    if store.is_shared:
        return await asyncio.to_thread(serving_processes, store.address)
    return database_holder(store.path)


async def check_host(settings: Settings) -> Finding:
    """Report the software of the parent domain (XEP-0092, else XEP-0030)."""
    parent = settings.component.jid.partition(".")[2]
    async with _online(settings) as probe:
        version = await probe.ask(parent, f"<query xmlns='{_VERSION}'/>")
        name = _texts(version, _VERSION, "name", "version")
        if name:
            return _SERVER.ok(f"{parent} runs {name}")
        info = await probe.ask(parent, f"<query xmlns='{_INFO}'/>")
    identity = None if info is None or isinstance(info, LinkDownError) else info.find(f".//{{{_INFO}}}identity")
    if identity is None:
        return _SERVER.note(f"{parent} does not report its software", "nothing to do, if the other checks are ok")
    return _SERVER.ok(f"{parent} identifies itself as {identity.get('name') or identity.get('type')}")


async def check_clock(settings: Settings) -> Finding:
    """Compare the local clock with the server's (XEP-0202), because item keys contain times of the local clock."""
    parent = settings.component.jid.partition(".")[2]
    async with _online(settings) as probe:
        answer = await probe.ask(parent, f"<time xmlns='{_TIME}'/>")
    server_us = parse_datetime(_texts(answer, _TIME, "utc"))
    if server_us is None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return _CLOCK.ok(f"{now} here; {parent} does not report its time")
    apart_s = abs(time.time() - server_us / US_PER_S)
    if apart_s > CLOCK_S:
        advice = "correct the clock that is wrong, for example with chrony; items get their times from the local clock"
        return _CLOCK.fix(f"differs by {apart_s:.0f} seconds from the clock of {parent}", advice)
    return _CLOCK.ok(f"agrees with the clock of {parent}")


async def check_stanza_limit(settings: Settings) -> Finding:
    """Report the largest stanza that the server returns to us. Above its limit the server ends the link."""
    needed_bytes = settings.pubsub.stanza_bytes
    largest_bytes, rejection = 0, ""
    for size in sorted({*SIZES_BYTES, needed_bytes}):
        async with _online(settings) as probe:
            answer = await probe.ask(
                settings.component.jid, f"<query xmlns='urn:smartfeeds:doctor'>{'x' * size}</query>"
            )
        if answer is None or isinstance(answer, LinkDownError):
            reason = "no answer" if answer is None else answer.condition
            rejection = f"; the server refuses {size:,} bytes ({reason})"
            break
        largest_bytes = size
    text = f"stanzas of {largest_bytes:,} bytes pass{rejection}"
    if largest_bytes < needed_bytes:
        return _SIZE.fix(
            text,
            f"the service sends up to {needed_bytes:,} bytes: raise the stanza limit of the server (in Prosody "
            "component_stanza_size_limit), or lower pubsub.page_bytes and pubsub.max_payload_size_bytes",
        )
    return _SIZE.ok(text)


async def check_second_connection(settings: Settings) -> Finding:
    """Report what happens when a second process connects with the same name, and whether a third connection receives
    stanzas [TOP-006].
    """
    async with _online(settings) as first:
        try:
            async with _online(settings) as second:
                second.receive_for(first)
                pings = [first.ask(settings.component.jid, "<ping xmlns='urn:xmpp:ping'/>") for _ in range(PINGS)]
                missing = (await asyncio.gather(*pings)).count(None)
        except LinkDownError as down:
            return _SECOND.ok(f"the server refuses it ({down}), so a second smartfeeds run would stand by")
        if first.transport is None:
            return _SECOND.note(
                "the server ends the first connection", "run one process only; two would end each other's connection"
            )
        if missing:
            return _SECOND.fix(
                f"{missing} of {PINGS} stanzas to {settings.component.jid} reached another connection, or none",
                "end the other program that is connected under this name; in ejabberd set global_routes: false in the"
                " listener, or each of its components receives the stanzas of all others",
            )
        advice = "several processes may share it" if settings.store.is_shared else "run one process only"
        return _SECOND.ok(f"accepted; the server distributes stanzas over both, so {advice}")


@asynccontextmanager
async def _online(settings: Settings) -> AsyncIterator[Probe]:
    """Yield a connection. Raises LinkDownError, also if the server does not answer in time."""
    probe = Probe(settings)
    try:
        try:
            async with asyncio.timeout(ANSWER_S):
                await probe.open()
        except TimeoutError:
            raise LinkDownError("timeout") from None
        yield probe
    finally:
        await probe.close()


def _texts(answer: etree._Element | LinkDownError | None, namespace: str, *names: str) -> str:
    """Return the texts of these elements of a response, joined, or an empty text for an error."""
    if answer is None or isinstance(answer, LinkDownError) or answer.get("type") != "result":
        return ""
    return " ".join(text for name in names if (text := answer.findtext(f".//{{{namespace}}}{name}")))


_ONLINE_CHECKS: Final[Mapping[Check, Callable[[Settings], Awaitable[Finding]]]] = {
    _SERVER: check_host,
    _CLOCK: check_clock,
    _SIZE: check_stanza_limit,
    _SECOND: check_second_connection,
}
