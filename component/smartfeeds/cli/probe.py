"""The checks of `smartfeeds doctor` on the database and on the XMPP server.

Each check returns one `Finding`. A rejected stanza may close the link (XEP-0114 does not define what servers do), so
each check opens a connection of its own.
"""

import asyncio
import shutil
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from lxml import etree

from smartfeeds.config import Settings
from smartfeeds.core.text import attribute
from smartfeeds.core.times import US_PER_S, parse_datetime
from smartfeeds.errors import LinkError, StoreError
from smartfeeds.store import maintenance
from smartfeeds.store.migrate import HEAD, REVISIONS
from smartfeeds.xmpp.link import LinkDownError
from smartfeeds.xmpp.stream import ComponentStream
from smartfeeds.xmpp.supervisor import ADVICE

ANSWER_S: Final = 10.0
SIZES_BYTES: Final = (65_536, 131_072, 262_144, 400_000, 520_000, 600_000, 1_000_000, 2_000_000)
DISK_BYTES: Final = 256 * 1024 * 1024
CLOCK_S: Final = 10.0

_COMPONENT: Final = "{jabber:component:accept}"
_VERSION: Final = "jabber:iq:version"
_INFO: Final = "http://jabber.org/protocol/disco#info"
_TIME: Final = "urn:xmpp:time"


class CheckState(Enum):
    """The result of a check. Only FIX makes the command fail."""

    OK = "ok"
    NOTE = "note"
    FIX = "fix"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check, and advice if something should be changed."""

    check: str
    state: CheckState
    found: str
    advice: str = ""


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
        self._asked = 0

    async def ask(self, to: str, payload: str, kind: str = "get") -> etree._Element | LinkDownError | None:
        """Return the response, the reason if the link ended, or None if nothing arrived in time."""
        self._asked += 1
        stanza_id = f"doctor-{self._asked}"
        answer: asyncio.Future[etree._Element] = asyncio.get_running_loop().create_future()
        self._waiting[stanza_id] = answer
        start = f"<iq type='{kind}' id='{stanza_id}' from='{attribute(self.domain)}' to='{attribute(to)}'>"
        self.outbox.reply(f"{start}{payload}</iq>".encode())
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


async def check_all(settings: Settings, config: Path | None = None) -> AsyncIterator[Finding]:
    """Run all checks in order. `config` is the file that the settings came from."""
    yield check_secret_file(settings, config)
    for finding in check_store(settings):
        yield finding
    yield await check_http(settings)
    link = await check_link(settings)
    yield link
    if link.state is CheckState.OK:
        for name, check in _ONLINE_CHECKS.items():
            try:
                finding = await check(settings)
            except LinkError as error:
                finding = Finding(name, CheckState.FIX, f"not finished: {error}", "see the log of the server")
            yield finding


def check_secret_file(settings: Settings, config: Path | None) -> Finding:
    """Check whether other users can read the file with the secret: the secret file, or the configuration."""
    path = settings.component.secret_file
    if path is None and config is not None and "secret" in tomllib.loads(config.read_text()).get("component", {}):
        path = config
    if path is None:
        return Finding("secret", CheckState.OK, "in the environment")
    if path.stat().st_mode & 0o007:
        return Finding(
            "secret", CheckState.FIX, f"{path} can be read by all users of this machine", f"chmod 600 {path}"
        )
    return Finding("secret", CheckState.OK, f"in {path}")


def check_store(settings: Settings) -> list[Finding]:
    """Check the database, or the folder in which it will be created."""
    path = settings.store.path.absolute()
    return [_check_database(path) if path.exists() else _check_place(path), _check_disk(path)]


def _check_database(path: Path) -> Finding:
    try:
        version = maintenance.schema_version(path)
        sound = maintenance.is_sound(path)
        maintenance.check_writable(path)
    except StoreError as error:
        return Finding("store", CheckState.FIX, str(error))
    if not sound:
        return Finding(
            "store", CheckState.FIX, f"{path} is damaged", "stop the service, copy the damaged file, restore a backup"
        )
    if version not in (None, *REVISIONS):
        return Finding(
            "store",
            CheckState.FIX,
            f"{path} has schema {version}",
            f"this program knows schemas up to {HEAD}; install a newer version",
        )
    if version != HEAD:
        return Finding("store", CheckState.NOTE, f"{path} has schema {version}", "smartfeeds run will upgrade it")
    return Finding("store", CheckState.OK, f"{path}, schema {version}, {path.stat().st_size:,} bytes, no damage")


def _check_place(path: Path) -> Finding:
    try:
        maintenance.check_writable(path)
    except StoreError as error:
        return Finding("store", CheckState.FIX, str(error))
    return Finding("store", CheckState.OK, f"{path} will be created at the first start")


def _check_disk(path: Path) -> Finding:
    folder = next((parent for parent in path.parents if parent.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    if free < DISK_BYTES:
        return Finding(
            "disk",
            CheckState.FIX,
            f"{free // 2**20} MiB free in {folder}",
            f"free disk space; the service needs at least {DISK_BYTES // 2**20} MiB",
        )
    return Finding("disk", CheckState.OK, f"{free / 2**30:.1f} GiB free in {folder}")


async def check_http(settings: Settings) -> Finding:
    """Check whether the HTTP address is free, and whether base_url is set."""
    http = settings.http
    if not http.listen:
        return Finding("http", CheckState.NOTE, "off", "set http.listen to serve feeds to browsers and feed readers")
    host, _, port = http.listen.rpartition(":")
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host.strip("[]"), int(port))
    except OSError as error:
        why = error.strerror or str(error)
        return Finding(
            "http",
            CheckState.FIX,
            f"cannot listen on {http.listen}: {why}",
            "stop the other process or choose another port",
        )
    server.close()
    await server.wait_closed()
    if not http.base_url:
        advice = "for public access put a web server with TLS in front; set http.base_url and http.proxies"
        return Finding("http", CheckState.NOTE, f"{http.listen}, under any host name", advice)
    return Finding("http", CheckState.OK, f"{http.listen}, public address {http.base_url}")


async def check_link(settings: Settings) -> Finding:
    """Check whether the server accepts this name and secret."""
    probe = Probe(settings)
    where = f"{settings.component.jid} at {probe.endpoint}"
    try:
        async with asyncio.timeout(ANSWER_S):
            await probe.open()
    except TimeoutError:
        return Finding("link", CheckState.FIX, f"{where}: no answer", ADVICE["timeout"])
    except LinkDownError as down:
        if down.condition == "conflict":
            return Finding(
                "link", CheckState.NOTE, f"{where}: {down}", "if smartfeeds is running, stop it for the other checks"
            )
        return Finding(
            "link", CheckState.FIX, f"{where}: {down}", ADVICE.get(down.condition, "see the log of the server")
        )
    finally:
        await probe.close()
    return Finding("link", CheckState.OK, f"{where}: the server accepts name and secret")


async def check_host(settings: Settings) -> Finding:
    """Report the software of the parent domain (XEP-0092, else XEP-0030)."""
    parent = settings.component.jid.partition(".")[2]
    async with _online(settings) as probe:
        version = await probe.ask(parent, f"<query xmlns='{_VERSION}'/>")
        name = _texts(version, _VERSION, "name", "version")
        if name:
            return Finding("server", CheckState.OK, f"{parent} runs {name}")
        info = await probe.ask(parent, f"<query xmlns='{_INFO}'/>")
    identity = None if info is None or isinstance(info, LinkDownError) else info.find(f".//{{{_INFO}}}identity")
    if identity is None:
        return Finding("server", CheckState.NOTE, f"{parent} does not name its software")
    return Finding(
        "server", CheckState.OK, f"{parent} identifies itself as {identity.get('name') or identity.get('type')}"
    )


async def check_clock(settings: Settings) -> Finding:
    """Compare the local clock with the server's (XEP-0202), because item keys contain times of the local clock."""
    parent = settings.component.jid.partition(".")[2]
    async with _online(settings) as probe:
        answer = await probe.ask(parent, f"<time xmlns='{_TIME}'/>")
    theirs_us = parse_datetime(_texts(answer, _TIME, "utc"))
    if theirs_us is None:
        return Finding(
            "clock",
            CheckState.OK,
            f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}; the server does not report its time",
        )
    apart_s = abs(time.time() - theirs_us / US_PER_S)
    if apart_s > CLOCK_S:
        return Finding(
            "clock", CheckState.FIX, f"{apart_s:.0f} s away from the server's", "set the clock, for example with chrony"
        )
    return Finding("clock", CheckState.OK, "agrees with the server's")


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
            rejection = f"; {size:,} bytes: {'no answer' if answer is None else answer.condition}"
            break
        largest_bytes = size
    text = f"stanzas of {largest_bytes:,} bytes pass{rejection}"
    if largest_bytes < needed_bytes:
        advice = f"pages and items need {needed_bytes:,} bytes; raise the server's limit or lower pubsub.page_bytes"
        return Finding("stanza size", CheckState.FIX, text, advice)
    return Finding("stanza size", CheckState.OK, text)


async def check_second_connection(settings: Settings) -> Finding:
    """Report what happens when a second process connects with the same name."""
    async with _online(settings) as first:
        second = Probe(settings)
        try:
            async with asyncio.timeout(ANSWER_S):
                await second.open()
            await second.ask(settings.component.jid, "<ping xmlns='urn:xmpp:ping'/>")
        except (LinkDownError, TimeoutError) as error:
            return Finding(
                "second process", CheckState.OK, f"rejected ({error or 'no answer'}); a second process would stand by"
            )
        finally:
            await second.close()
        if first.transport is None:
            return Finding("second process", CheckState.NOTE, "replaces the first connection", "run one process only")
        return Finding("second process", CheckState.OK, "accepted; the server distributes stanzas over both")


@asynccontextmanager
async def _online(settings: Settings) -> AsyncIterator[Probe]:
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


_ONLINE_CHECKS: Final[Mapping[str, Callable[[Settings], Awaitable[Finding]]]] = {
    "server": check_host,
    "clock": check_clock,
    "stanza size": check_stanza_limit,
    "second process": check_second_connection,
}
