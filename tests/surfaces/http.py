"""What the service sends over HTTP: documents, pages, errors, and the heads of all these responses."""

import json
import re
from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from smartfeeds.app.site import feed_forms
from smartfeeds.http import negotiation as n
from support.web import Got
from surfaces.program import Surface, lines
from surfaces.world import AUTHORIZATION, World


class Caller(Enum):
    """Who sends a request."""

    GUEST = "guest"
    BROWSER = "browser of an admin"
    PROGRAM = "program with a token"


class Ask(NamedTuple):
    """A request of one of the snapshots. `body` has the media type `kind`."""

    path: str
    accept: str = ""
    caller: Caller = Caller.GUEST
    language: str = ""
    method: str = "GET"
    body: bytes | None = None
    kind: str = ""


_HTML, _ATOM, _JSON = "text/html", "application/atom+xml", "application/json"
_SUFFIXES: Final = {"json": "json", "jsonfeed": "json", "ess": "txt", "nno": "txt"}  # of snapshots; others are XML
ASKS: Final[Mapping[str, Ask]] = {
    **{
        f"http-feed-{suffix}.{_SUFFIXES.get(suffix, 'xml')}": Ask(f"/feeds/town.{suffix}")
        for suffix in feed_forms().suffixes
    },
    "http-pull.json": Ask("/feeds/town/?since=time:0&max=2", _JSON),
    "http-pull.xml": Ask("/feeds/town/?since=time:0&max=2", _ATOM),
    "http-pull-created.json": Ask("/feeds/town/?order=created&until=time:9999999999&max=2", _JSON),
    "http-pull-enclosures.json": Ask("/feeds/bakery/?timeout=0", _JSON),
    "http-pull-sync.json": Ask("/feeds/plans/?sync=true&timeout=0", _JSON),
    "http-callback-json.txt": Ask("/feeds/town/?callback=show&max=2", _JSON),
    "http-callback-atom.txt": Ask("/feeds/town/?callback=show&max=2", _ATOM),
    **{
        f"http-{name}-{suffix}.xml": Ask(f"/feeds/plans.{suffix}?order=modified&sync=true{more}")
        for name, more in (("partial", ""), ("complete", "&max=all"))
        for suffix in ("atom", "rss", "opml")
    },
    **{f"http-sse-{suffix}.xml": Ask(f"/feeds/trips.{suffix}?sync=true") for suffix in ("atom", "rss", "opml")},
    "http-entry.xml": Ask("/entries/bakery/bread", _ATOM),
    "http-entry.json": Ask("/entries/bakery/bread", _JSON),
    "http-conflict.json": Ask("/conflicts/plans/boat", _JSON),
    "http-about.json": Ask("/about/plans/"),
    "http-list.json": Ask("/feeds.json"),
    "http-list.xml": Ask("/feeds.opml"),
    "http-list.txt": Ask("/feeds.nno"),
    "http-river.json": Ask("/river.json"),
    "http-river.xml": Ask("/river.atom"),
    "http-search.json": Ask("/search?q=bread", _JSON),
    "http-micropub.json": Ask("/micropub/town?q=config", _JSON, Caller.PROGRAM),
    **{
        f"http-admin-{name}.json": Ask(path, _JSON, Caller.PROGRAM)
        for name, path in (
            ("options", "/options/town/"),
            ("members", "/members/town/"),
            ("subscriptions", "/subscriptions/town/"),
            ("tokens", "/tokens/"),
            ("consumers", "/consumers/"),
            ("mirrors", "/mirrors/"),
        )
    },
    "page-river.html": Ask("/", _HTML),
    "page-list.html": Ask("/feeds/", _HTML),
    "page-search.html": Ask("/search?q=bread", _HTML),
    "page-feed.html": Ask("/feeds/town/", _HTML),
    "page-feed-german.html": Ask("/feeds/town/", _HTML, language="de"),
    "page-feed-signed-in.html": Ask("/feeds/town/", _HTML, caller=Caller.BROWSER),
    "page-feed-conflicts.html": Ask("/feeds/plans/?sync=true", _HTML),
    "page-entry.html": Ask("/entries/bakery/bread", _HTML),
    "page-entry-deleted.html": Ask("/entries/town/mistake", _HTML),
    "page-outline.html": Ask("/outline/plans/", _HTML, caller=Caller.BROWSER),
    "page-conflicts.html": Ask("/conflicts/plans/", _HTML, caller=Caller.BROWSER),
    "page-conflict.html": Ask("/conflicts/plans/boat", _HTML, caller=Caller.BROWSER),
    "page-frame.html": Ask("/embed/town/", _HTML),
    "page-login.html": Ask("/login?next=/feeds/", _HTML),
    "page-account.html": Ask("/account", _HTML, caller=Caller.BROWSER),
    "page-follow.html": Ask("/follow", _HTML, caller=Caller.BROWSER),
    "page-follow-signed-out.html": Ask("/follow", _HTML),
    "page-my-feeds.html": Ask("/follow/entries", _HTML, caller=Caller.BROWSER),
    "page-write.html": Ask("/write/bakery/bread", _HTML, caller=Caller.BROWSER),
    "page-delete.html": Ask("/delete/bakery/bread", _HTML, caller=Caller.BROWSER),
    "page-problem.html": Ask("/feeds/nowhere/", _HTML),
    **{
        f"page-admin-{name}.html": Ask(path, _HTML, caller=Caller.BROWSER)
        for name, path in (
            ("feeds", "/admin/feeds/"),
            ("feed", "/admin/feeds/town/"),
            ("members", "/admin/members/town/"),
            ("subscriptions", "/admin/subscriptions/town/"),
            ("tokens", "/admin/tokens/"),
            ("consumers", "/admin/consumers/"),
            ("mirrors", "/admin/mirrors/"),
            ("enclosures", "/admin/enclosures/"),
        )
    },
}
_PROBLEMS: Final = (
    Ask("/feeds/nowhere/", _JSON),
    Ask("/feeds/town/?order=sideways", _JSON),
    Ask("/feeds/town/", "image/png"),
    Ask("/feeds/board/", _JSON),
    Ask("/tokens/", _JSON),
    Ask("/entries/town/mistake", _ATOM),
    Ask("/feeds/town", _JSON),
    Ask("/feeds/town/", method="TRACE"),
    Ask("/feeds/town/", method="OPTIONS"),
    Ask("/feeds/town/", method="DELETE"),
    Ask("/nothing"),
    *(
        Ask(path, method="POST", body=body, kind=kind)
        for path, body, kind in (
            ("/entries/town/", b"<entry/>", _ATOM),
            ("/feeds/town/hub/", b"hub.mode=subscribe", n.WEB_FORM),
            ("/rsscloud/pleaseNotify", b"protocol=http-post", n.WEB_FORM),
            ("/RPC2", b"<methodCall><methodName>none</methodName></methodCall>", "text/xml"),
            ("/rsscloud/soap", b"<call/>", "text/xml"),
            ("/micropub/town", b"h=entry&content=x", n.WEB_FORM),
        )
    ),
)
# They depend on the time, on the version of the program, or on the content, which has a snapshot.
_LEFT_OUT: Final = {"date", "etag", "content-length"}
_STATIC: Final = re.compile(rb"(/(?:embed|static)/[a-z_]+\.)[0-9a-f]{16}(\.\w+)")


async def _ask(world: World, ask: Ask) -> Got:
    headers = {"Accept_Language": ask.language, "Content_Type": ask.kind}
    if ask.caller is Caller.BROWSER:
        # The cookie of a service whose public address has https.
        headers |= {"Cookie": f"__Host-{world.alice.cookie}", "Sec_Fetch_Site": "same-origin"}
    if ask.caller is Caller.PROGRAM:
        headers["Authorization"] = AUTHORIZATION
    sent = {name: value for name, value in headers.items() if value}
    return await world.web.ask(ask.method, ask.path, ask.body, ask.accept, **sent)


async def _body(world: World, ask: Ask) -> bytes:
    return _STATIC.sub(rb"\1DIGEST\2", (await _ask(world, ask)).body)


def _head(ask: Ask, got: Got) -> list[str]:
    headers = sorted(f"{name}: {value}" for name, value in got.headers.items() if name.lower() not in _LEFT_OUT)
    request = " ".join(filter(None, (ask.method, ask.path, ask.accept, ask.language, ask.kind)))
    return [f"{request} ({ask.caller.value}): {got.status}", *(f"  {header}" for header in headers)]


async def _heads(world: World) -> str:
    """Status and headers of each response that has a snapshot."""
    rows: list[str] = []
    for ask in ASKS.values():
        rows += _head(ask, await _ask(world, ask))
    return "\n".join(rows) + "\n"


async def _problems(world: World) -> str:
    """Errors and responses without a body, whole."""
    rows: list[str] = []
    for ask in _PROBLEMS:
        got = await _ask(world, ask)
        rows += [*_head(ask, got), *(f"  | {line}" for line in got.text.splitlines())]
    return "\n".join(rows) + "\n"


async def _static(world: World) -> str:
    """The addresses of style sheets, scripts and pictures that the pages use. Each has the digest of its content."""
    pages = [(await _ask(world, ask)).body for name, ask in ASKS.items() if name.startswith("page-")]
    return lines({match[0].decode() for page in pages for match in _STATIC.finditer(page)})


async def _statistics(world: World) -> str:
    """The members of the statistics, without their values, which are counts of this run."""
    got = await _ask(world, Ask("/statistics", _JSON, Caller.PROGRAM))
    return re.sub(r"(?<=: )[-+.\de]+", "NUMBER", json.dumps(got.json, indent=1, sort_keys=True)) + "\n"


async def _openapi(world: World) -> str:
    got = await world.web.get("/openapi.json")
    return json.dumps(got.json, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


async def _stream(world: World) -> bytes:
    """The beginning of an event stream: the page of changes that the client has missed."""
    headers = {"Accept": "text/event-stream"}
    address = f"{world.web.origin}/feeds/town/?since=time:0&max=2"
    async with world.web.session.get(address, headers=headers) as response:
        assert response.status == 200
        block = await response.content.readuntil(b"\n\n")
        while b"data:" not in block:
            block += await response.content.readuntil(b"\n\n")
    return re.sub(rb"retry: [345]\d{3}\n", b"retry: RANDOM\n", block)


RESPONSES: Final[Mapping[str, Surface]] = {
    "openapi.json": _openapi,
    **{name: partial(_body, ask=ask) for name, ask in ASKS.items()},
    "http-statistics.json": _statistics,
    "page-files.txt": _static,
    "http-stream.txt": _stream,
    "http-heads.txt": _heads,
    "http-problems.txt": _problems,
}
