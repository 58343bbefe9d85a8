"""Requests that together get every documented answer of the HTTP side, in a function for each group of routes."""

import asyncio
import json
import re
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

import pytest
from aiohttp import web as aiohttp_web

from smartfeeds.core.feed_files import FeedFile, extension_of
from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.limits import Quota
from smartfeeds.core.token import TokenScope
from smartfeeds.features.authoring.routes import AuthoringHandlers
from smartfeeds.features.callbacks.remote_calls import RemoteCall
from smartfeeds.features.callbacks.soap import ENVELOPE_NS
from smartfeeds.features.callbacks.xml_rpc import write_call
from smartfeeds.features.embedding.files import frame_file_path
from smartfeeds.features.embedding.requests import SubmitReply
from smartfeeds.features.pages.routes import PageHandlers
from smartfeeds.features.pages.static_files import static_path
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.follower import LOOKS_AT_ONCE
from smartfeeds.features.polling.following_http import FOLLOWING, LOOK
from smartfeeds.features.polling.requests import ChangeSource, SourceAction
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import Enclosure, EnclosureState, EnclosureUse, digest_of
from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
from smartfeeds.features.prefetch.local_files import GetEnclosure, get_enclosure
from smartfeeds.http.negotiation import MULTIPART, WEB_FORM
from smartfeeds.net import addresses
from smartfeeds.parts import Parts
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from support.bearer import bearer
from support.component import ALICE, BOB, CAROL, DOMAIN, entry
from support.polling import atom
from support.raw import connected, request
from support.routes import document
from support.versions import B1, C1, version
from support.web import Got, Web
from support.website import running_site
from support.world import jid

ATOM = "application/atom+xml"
JSON = "application/json"
PROBLEM = "application/problem+json"
ACTIVITY = json.dumps({"verb": "post", "object": {"objectType": "note", "content": "hello"}}).encode()
NOTE = b'{"type":["h-entry"],"properties":{"content":["x"]}}'
BIG = b"x" * 400_000
IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBP", b"....ftypavif")

PULL, SUFFIXED = "/feeds/{name}/", "/feeds/{name}.{suffix}"
ITEM, ITEMS = "/entries/{name}/{id}", "/entries/{name}/"
CONFLICT = "/conflicts/{name}/{id}"
MICROPUB, MEDIA = "/micropub/{name}", "/media/{name}"
HUB = "/feeds/{name}/hub/"
CLOUD_DOORS = ("/rsscloud/pleaseNotify", "/RPC2", "/rsscloud/soap")
SITE = "https://feeds.example.org"
MEMBER, SUBSCRIPTION = "/members/{name}/{jid}", "/subscriptions/{name}/{jid}"
MODERATION = "/moderation/{name}/"
FOLLOWED = f"{FOLLOWING}{{name}}"

# The bodies of the operations of administration, of following and of moves, by path and method.
ADMINISTRATION = {
    (ITEM, "patch"): b'{"step": "up"}',
    (PULL, "patch"): b"{}",
    ("/options/{name}/", "get"): None,
    ("/members/{name}/", "get"): None,
    (MEMBER, "put"): b'{"affiliation": "member"}',
    (MEMBER, "delete"): None,
    ("/subscriptions/{name}/", "get"): None,
    (SUBSCRIPTION, "put"): None,
    (SUBSCRIPTION, "delete"): None,
    (MODERATION, "get"): None,
    (MODERATION, "post"): b'{"approve": []}',
    ("/tokens/", "get"): None,
    ("/tokens/", "post"): b'{"feed": "*", "scope": "read"}',
    ("/tokens/{token}", "delete"): None,
    ("/consumers/", "get"): None,
    ("/consumers/", "post"): b'{"consumer": "*"}',
    ("/mirrors/", "get"): None,
    ("/statistics", "get"): None,
    (LOOK, "get"): None,
    (FOLLOWING, "get"): None,
    (FOLLOWING, "post"): b'{"address": "https://blog.example/"}',
    (FOLLOWED, "post"): None,
    (FOLLOWED, "put"): b'{"tell": "nobody"}',
    (FOLLOWED, "delete"): None,
}


def concrete(path: str, feed: str = "notes") -> str:
    """An address of this form at which there is something."""
    known = {
        "name": feed,
        "id": "torn" if path.startswith("/conflicts/") else "a",
        "suffix": "rss",
        "file": static_path("app.js").rpartition("/")[2],
        "jid": "bob@example.org",
        "token": "0" * 12,
        "digest": "0",
    }
    query = "?timeout=0" if path == PULL else ""
    return re.sub(r"{(\w+)}", lambda match: known[match[1]], path) + query


def media_types(path: str) -> list[str]:
    """The media types of the answer 200 to GET."""
    return list(document()["paths"][path]["get"]["responses"]["200"]["content"])


async def tear(web: Web, token: str, by: str) -> None:
    """Makes a conflict of the item torn."""
    await web.component.publish(ALICE, "notes", "torn")
    body = version(by, sync_id="torn").encode()
    headers = {"Authorization": token, "Content_Type": ATOM}
    assert (await web.ask("PUT", "/entries/notes/torn", body, **headers)).status == 200


@dataclass
class Requests:
    """Sends requests and collects the answers with the path of the document and the method that they belong to.

    `token` is for all feeds of the owner of the feed notes, with the scope admin.
    """

    web: Web
    token: str
    answers: list[tuple[str, str, Got]] = field(default_factory=list)

    async def ask(self, template: str, method: str, path: str = "", body: bytes | None = None, **headers: str) -> Got:
        """Sends a request without a token. Without a path, to an address at which there is something."""
        got = await self.web.ask(method, path or concrete(template), body, **headers)
        self.answers.append((template, method.lower(), got))
        return got

    async def own(self, template: str, method: str, path: str = "", body: bytes | None = None, **headers: str) -> Got:
        """Sends a request with the token."""
        return await self.ask(template, method, path, body, **{"Authorization": self.token, **headers})

    async def put_json(self, template: str, method: str, path: str = "", body: bytes = b"{}", **headers: str) -> Got:
        """Sends JSON with the token."""
        return await self.own(template, method, path, body, Content_Type=JSON, **headers)

    async def unreadable(self, template: str, method: str, path: str = "", kind: str = JSON) -> None:
        """Sends a body that is too large, and one of a media type that the operation does not accept."""
        await self.own(template, method, path, BIG, Content_Type=kind)
        await self.own(template, method, path, b"x", Content_Type="text/xml")


async def ask_feeds(requests: Requests) -> None:
    """Pages, documents and event streams of a feed; feeds are created and deleted."""
    ask, own = requests.ask, requests.own
    for kind in sorted(set(media_types(PULL)) - {"text/event-stream", "application/javascript"}):
        await ask(PULL, "GET", Accept=kind)
    await ask(PULL, "GET", f"{concrete(PULL)}&callback=f")
    page = await ask(PULL, "GET")
    await ask(PULL, "GET", If_None_Match=page.header("ETag"))
    await ask(PULL, "GET", Accept="image/png")
    web = requests.web
    async with web.session.get(f"{web.origin}/feeds/notes/", headers={"Accept": "text/event-stream"}) as stream:
        event = Got(stream.status, stream.headers, await stream.content.readany())
    requests.answers.append((PULL, "get", event))
    for suffix in document()["paths"][SUFFIXED]["parameters"][1]["schema"]["enum"]:
        page = await ask(SUFFIXED, "GET", f"/feeds/notes.{suffix}")
        await ask(SUFFIXED, "GET", f"/feeds/notes.{suffix}", If_None_Match=page.header("ETag"))
    await ask(SUFFIXED, "GET", "/feeds/notes.json?callback=f")
    await ask(SUFFIXED, "GET", "/feeds/notes.rss", Accept="text/html")
    await ask(SUFFIXED, "GET", "/feeds/notes.unknown")
    await ask("/feeds/{name}", "GET")
    await requests.unreadable(PULL, "PUT", "/feeds/new/")
    await requests.put_json(PULL, "PUT", "/feeds/new/", b'{"purge_offline": true}')
    await own(PULL, "PUT", "/feeds/new/")
    await own(PULL, "PUT", "/feeds/new/")
    await requests.put_json(PULL, "PUT", "/feeds/new/", b'{"title": "New"}')
    await own(PULL, "DELETE", "/feeds/new/")


async def ask_lists(requests: Requests) -> None:
    """The list of feeds, the river and the search."""
    await requests.ask("/feeds", "GET")
    for path in ("/feeds/", "/", "/search"):
        for kind in [*media_types(path), "image/png"]:
            await requests.ask(path, "GET", f"{path}?q=t" if path == "/search" else path, Accept=kind)
        await requests.ask(path, "GET", If_None_Match="*")
    for path in ("/feeds.json", "/feeds.opml", "/feeds.nno", "/river.json", "/river.atom"):
        await requests.ask(path, "GET")
        await requests.ask(path, "GET", If_None_Match="*")
    await requests.ask("/river.atom", "GET", Accept="text/html")


async def ask_requirements(requests: Requests) -> None:
    await requests.ask("/about/{name}/", "GET")


async def ask_conflicts(requests: Requests) -> None:
    """Conflicts are listed, read and settled."""
    for accept in (JSON, "text/html", "image/png"):
        await requests.ask("/conflicts/{name}/", "GET", Accept=accept)
        await requests.ask(CONFLICT, "GET", Accept=accept)
    await requests.put_json(CONFLICT, "POST", body=b'{"seen": []}')
    await requests.unreadable(CONFLICT, "POST")
    await requests.put_json(CONFLICT, "POST", "/conflicts/notes/none")
    await requests.put_json(CONFLICT, "POST")
    await requests.put_json(CONFLICT, "POST", Authorization=await bearer(requests.web, BOB, TokenScope.PUBLISH))
    await tear(requests.web, requests.token, C1)
    await requests.own(CONFLICT, "POST", "", b"keep=", Content_Type=WEB_FORM, Sec_Fetch_Site="same-origin")


async def ask_items(requests: Requests) -> None:
    """Items are read, published, merged and deleted."""
    ask, own = requests.ask, requests.own
    await ask(ITEM, "GET", "/entries/notes/torn?sync=true", Accept=JSON)
    for accept in [*media_types(ITEM), "image/png"]:
        await ask(ITEM, "GET", Accept=accept)
        await ask(ITEM, "GET", "/entries/notes/gone", Accept=accept)
    await ask(ITEM, "GET", If_None_Match="*")
    for item_id, kind, body in (("p0", ATOM, entry("t").encode()), ("p1", JSON, ACTIVITY)):
        for _ in range(2):
            await own(ITEM, "PUT", f"/entries/notes/{item_id}", body, Content_Type=kind)
        await own(ITEMS, "POST", "", body, Content_Type=kind)
    for accept in (ATOM, JSON):
        body = version(B1, sync_id="torn").encode()
        await own(ITEMS, "POST", "", body, Accept=accept, Content_Type=ATOM)
    for sync_id in ("p1", "p2"):
        await own(ITEM, "PUT", "/entries/notes/p0", version(B1, sync_id=sync_id).encode(), Content_Type=ATOM)
    await own(ITEM, "PUT", "", entry("t").encode(), If_Match='"other"', Content_Type=ATOM)
    await own(ITEM, "DELETE", If_Match='"other"')
    for item_id, move in (("p1", b'{"after": ""}'), ("p1", b'{"step": "up"}'), ("none", b'{"step": "up"}')):
        await requests.put_json(ITEM, "PATCH", f"/entries/notes/{item_id}", move)
    await requests.put_json(ITEM, "PATCH", "/entries/notes/p1", b'{"step": "down"}', If_Match='"other"')
    await requests.unreadable(ITEM, "PATCH")
    for template, method in ((ITEM, "PUT"), (ITEMS, "POST")):
        await requests.unreadable(template, method, kind=ATOM)
    # Users who may publish but not read get no body. The second request replaces the item of the first one.
    carol = {"Authorization": await bearer(requests.web, CAROL, TokenScope.ADMIN), "Content_Type": ATOM}
    for _ in range(2):
        await ask(ITEMS, "POST", "", version(B1, sync_id="hers").encode(), **carol)
    await ask(ITEM, "PUT", "", entry("of Carol").encode(), **carol)
    # A node that stores no items.
    passing = await requests.put_json(PULL, "PUT", "/feeds/passing/", b'{"kind": "generic", "persist_items": false}')
    assert passing.status == 201, passing
    await own(ITEMS, "POST", "/entries/passing/", entry("t").encode(), Content_Type=ATOM)
    await own(ITEM, "DELETE", "/entries/notes/p0")
    await own(ITEMS, "DELETE")


async def ask_administration(requests: Requests) -> None:
    """Options, members, subscriptions, tokens, consumers, mirrors and statistics."""
    own, put_json = requests.own, requests.put_json
    options = (await own("/options/{name}/", "GET")).header("ETag")
    await own("/options/{name}/", "GET", If_None_Match=options)
    await put_json(PULL, "PATCH", body=b'{"title": "x"}')
    await put_json(PULL, "PATCH", body=b'{"title": "y"}', If_Match=options)
    await put_json(PULL, "PATCH", body=b'{"purge_offline": true}')
    zoe, alice = "/members/notes/zoe@example.org", "/members/notes/alice@example.org"
    await put_json(MEMBER, "PUT", zoe, b'{"affiliation": "member"}')
    await put_json(MEMBER, "PUT", alice, b'{"affiliation": "none"}')
    await own(MEMBER, "DELETE", alice)
    await own(MEMBER, "DELETE", zoe)
    await own(SUBSCRIPTION, "PUT", "/subscriptions/notes/alice@example.org")
    for path in ("/members/{name}/", "/subscriptions/{name}/"):
        await own(path, "GET")
    await own(SUBSCRIPTION, "DELETE", "/subscriptions/notes/alice@example.org")
    created = await put_json("/tokens/", "POST", body=b'{"feed": "*", "scope": "read"}')
    for _ in range(2):
        await own("/tokens/{token}", "DELETE", f"/tokens/{created.json['id']}")
    for path in ("/tokens/", "/consumers/", "/mirrors/", "/statistics"):
        await own(path, "GET")
    for path in ("/tokens/", "/mirrors/"):
        await own(path, "GET", f"{path}?after=unknown")
    for name in ("*", "none"):
        await put_json("/consumers/", "POST", body=json.dumps({"consumer": name}).encode())
    for template, method in (
        (PULL, "PATCH"),
        (MEMBER, "PUT"),
        ("/tokens/", "POST"),
        ("/consumers/", "POST"),
    ):
        await requests.unreadable(template, method)


async def ask_moderation(requests: Requests) -> None:
    """The reply of a guest is listed, published, and refused too late."""
    await requests.web.component.configure(ALICE, "notes", guest_replies="approval")
    reply = SubmitReply(ANONYMOUS, DOMAIN, "notes", "hello", "Mara", "Good morning", "")
    await requests.web.component.app.service.handle(reply)
    await requests.own(MODERATION, "GET")
    for body in (b'{"approve": ["hello"]}', b'{"refuse": ["hello"]}', b'{"refuse": ["none"]}'):
        await requests.put_json(MODERATION, "POST", body=body)
    await requests.unreadable(MODERATION, "POST")


async def ask_look(requests: Requests) -> None:
    """Looks at an address, at a text that is none, and at more addresses at once than one person may ask for."""

    async def look(address: str) -> None:
        await requests.own(LOOK, "GET", f"{LOOK}?url={quote(address, safe='')}")

    released = asyncio.Event()

    async def wait(_request: aiohttp_web.Request) -> aiohttp_web.Response:
        await released.wait()
        return aiohttp_web.Response(body=atom("first"))

    async with running_site() as host:
        host.pages["/slow"] = wait
        looks = [asyncio.create_task(look(host.url("/slow"))) for _ in range(LOOKS_AT_ONCE + 1)]
        # The others wait for the page, so one of them was refused.
        await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
        await _follow(requests, host.url("/other"))
        released.set()
        await asyncio.gather(*looks)
    await look("news")


async def ask_following(requests: Requests) -> None:
    """A feed and a list of feeds are followed; the feed is paused, read again, and followed no longer."""
    own, put_json, service = requests.own, requests.put_json, requests.web.component.app.service
    bob = await bearer(requests.web, BOB, TokenScope.ADMIN)
    async with running_site() as host:
        host.pages["/feed"] = atom("first")
        blog = host.url("/feed")
        await _follow(requests, blog, node="blog")
        await _follow(requests, "news")
        with pytest.MonkeyPatch.context() as patch:
            # Bob is no admin and reaches public addresses only, so 127.0.0.1 counts as one here.
            patch.setattr(addresses, "is_public", lambda _text: True)
            await _follow(requests, blog, node="notes", Authorization=bob)
        opml = f'<opml version="2.0"><head/><body><outline xmlUrl="{blog}"/></body></opml>'
        await own(FOLLOWING, "POST", "", opml.encode(), Content_Type="text/x-opml")
        await requests.unreadable(FOLLOWING, "POST")
        await own(FOLLOWING, "POST", "", b"x", Content_Type="text/plain")
        for path in (FOLLOWING, f"{FOLLOWING}?after=unknown"):
            await own(FOLLOWING, "GET", path)
        path = concrete(FOLLOWED, "blog")
        await put_json(FOLLOWED, "PUT", path, b'{"tell": "nobody"}')
        await requests.unreadable(FOLLOWED, "PUT", path)
        await own(FOLLOWED, "POST", path)
        (source,) = await service.read(lambda tx, _context: source_rows.sources_of(tx, "blog"))
        await service.handle(ChangeSource(jid(ALICE), DOMAIN, source.source_no, SourceAction.PAUSE))
        await own(FOLLOWED, "POST", path)
        for _ in range(2):
            await own(FOLLOWED, "DELETE", path)


async def ask_to_follow_more_than_allowed(requests: Requests) -> None:
    """To a service that has no bot and allows one subscription."""
    await requests.web.component.create(ALICE, "second")
    for feed, tell in (("notes", "chat"), ("notes", "nobody"), ("second", "nobody")):
        body = json.dumps({"tell": tell}).encode()
        await requests.put_json(FOLLOWED, "PUT", concrete(FOLLOWED, feed), body)


async def _follow(requests: Requests, address: str, *, node: str = "", **headers: str) -> None:
    body = json.dumps({"address": address, "node": node}).encode()
    await requests.put_json(FOLLOWING, "POST", body=body, **headers)


async def ask_files(requests: Requests) -> None:
    """A file of each type, whole, in parts, and where there is none."""
    path = "/files/{name}/{id}"
    for kind in media_types(path):
        made = await requests.web.ask(
            "POST",
            "/entries/notes/",
            b"file",
            Authorization=requests.token,
            Content_Type=kind,
            Filename="x",
            Accept=JSON,
        )
        address = made.json["object"]["attachments"][0]["url"].removeprefix(requests.web.origin)
        parts: tuple[dict[str, str], ...] = ({}, {"Range": "bytes=1-2"}, {"Range": "bytes=9-"}, {"If_None_Match": "*"})
        for headers in parts:
            await requests.ask(path, "GET", address, **headers)
    bob = await bearer(requests.web, BOB, TokenScope.PUBLISH)
    await requests.ask(path, "GET", "/files/closed/x", Authorization=bob)


async def ask_enclosures(requests: Requests) -> None:
    """To a service that loads enclosures in advance: one of each type, whole, in parts, and where there is none."""
    path, app = "/enclosures/{name}/{id}", requests.web.component.app
    kinds = media_types(path)
    urls = [f"https://media.example/{number}" for number in range(len(kinds))]
    links = "".join(f"<link rel='enclosure' href='{url}'/>" for url in urls)
    await requests.web.component.publish(ALICE, "notes", "show", entry("t", inner=links))

    def work(tx: WriteTx, context: Context) -> list[FeedFile]:
        source_no = source_rows.add(tx, new_source("notes", "https://blog.example/", context.now_us))
        for url, kind in zip(urls, kinds, strict=True):
            row = Enclosure(
                *(0, url, "media.example:443", digest_of(url), kind, 4, EnclosureState.ARRIVED, "", 0, context.now_us)
            )
            row = enclosure_rows.add(tx, row)
            enclosure_rows.put_use(tx, EnclosureUse(row.enclosure_no, source_no, "show", "notes", 0))
        return [
            get_enclosure(
                tx, context, GetEnclosure(ANONYMOUS, DOMAIN, "notes", digest_of(url) + extension_of(kind))
            ).file
            for url, kind in zip(urls, kinds, strict=True)
        ]

    for file in await app.service.write(work):
        stored = app.parts.get(EnclosureFolder).complete.path_of(file.digest)
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_bytes(b"file")
        parts: tuple[dict[str, str], ...] = ({}, {"Range": "bytes=1-2"}, {"Range": "bytes=9-"}, {"If_None_Match": "*"})
        for headers in parts:
            await requests.ask(path, "GET", f"/enclosures/notes/{file.file_id}", **headers)
    await requests.ask(path, "GET", "/enclosures/notes/x")
    bob = await bearer(requests.web, BOB, TokenScope.PUBLISH)
    await requests.web.component.create(ALICE, "shut", access_model="authorize")
    await requests.ask(path, "GET", "/enclosures/shut/x", Authorization=bob)


async def ask_micropub(requests: Requests) -> None:
    """Makes the requests of Micropub clients."""
    web, own, put_json = requests.web, requests.own, requests.put_json
    bob = {"Authorization": await bearer(web, BOB, TokenScope.PUBLISH)}
    await own(MICROPUB, "GET", "/micropub/notes?q=config")
    await own(MICROPUB, "GET", f"/micropub/notes?q=source&url={web.origin}/entries/notes/none")
    await own(MICROPUB, "GET", f"/micropub/x?q=source&url={web.origin}/entries/closed/x", **bob)
    address = (await put_json(MICROPUB, "POST", body=NOTE)).header("Location")
    for headers in (bob, {}):
        await put_json(MICROPUB, "POST", "", json.dumps({"action": "delete", "url": address}).encode(), **headers)
    await put_json(MICROPUB, "POST", "/micropub/missing", NOTE)
    await requests.unreadable(MICROPUB, "POST")
    form = {"Content_Type": f"{MULTIPART}; boundary=x"}
    part = b"--x\r\nContent-Disposition: form-data; name=file%b\r\n\r\n%b\r\n--x--\r\n"
    file = part % (b"; filename=a", b"file")
    await own(MEDIA, "POST", "", file, **form)
    await own(MEDIA, "POST", "", file, **form, **bob)
    await own(MEDIA, "POST", "/media/missing", file, **form)
    await own(MEDIA, "POST", "", part % (b"", BIG), **form)
    await own(MEDIA, "POST", "", b"x", Content_Type="text/plain")
    uploads = _handlers(web).get(AuthoringHandlers).uploads
    running, uploads._running = uploads._running, Quota(0)
    await own(MEDIA, "POST", "", file, **form)
    uploads._running = running


async def ask_images(requests: Requests) -> None:
    """Images of another host: each type, one that is known, one that is no image, and addresses that no page has."""
    path, links = "/images/{digest}", _handlers(requests.web).get(PageHandlers).images.links
    async with running_site() as host:
        for number, body in enumerate((*IMAGES, b"<svg/>")):
            host.pages[f"/{number}"] = body
            await requests.ask(path, "GET", links.path(host.url(f"/{number}")))
        await requests.ask(path, "GET", links.path(host.url("/0")), If_None_Match="*")
        await requests.ask(path, "GET", "/images/0?url=http%3A%2F%2Fx.example%2F")
        await requests.ask(path, "GET", "/images/0?link=x")


async def ask_for_logo(requests: Requests) -> None:
    """The logo of a site that has one in PNG, as a file of the pages and as their icon."""
    page = (await requests.web.get("/", accept="text/html")).text
    (path,) = set(re.findall(r"/static/logo\.\w+\.png", page))
    await requests.ask("/static/{file}", "GET", path)
    await requests.ask("/favicon.ico", "GET")


async def ask_other_pages(requests: Requests) -> None:
    """Health, metrics, documentation and the files that pages load."""
    for path in ("/hub", *CLOUD_DOORS):
        await requests.ask(path, "POST")  # of a service without a public address
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
        await requests.ask(path, "GET")
    await requests.ask("/metrics", "GET", X_Forwarded_For="203.0.113.9")
    for path, name in (
        *(("/static/{file}", static_path(name)) for name in ("app.js", "style.css", "icon.svg")),
        ("/favicon.ico", "/favicon.ico"),
        *(("/embed/{file}", frame_file_path(name)) for name in ("frame.js", "frame.css")),
        *((path, path) for path in ("/embed.js", "/manifest.webmanifest", "/opensearch.xml", "/robots.txt")),
    ):
        got = await requests.ask(path, "GET", name)
        await requests.ask(path, "GET", name, If_None_Match=got.header("ETag"))
    await requests.own("/login-basic", "GET")


async def ask_more_than_allowed(requests: Requests) -> None:
    """To a service that allows few publishes: requests until it rejects one (429)."""
    atom = entry("t").encode()
    for template, method, kind, body in (
        (ITEM, "PUT", ATOM, atom),
        (ITEMS, "POST", ATOM, atom),
        (ITEM, "DELETE", ATOM, None),
        (ITEM, "PATCH", JSON, b'{"step": "up"}'),
        (CONFLICT, "POST", JSON, b"{}"),
        (MICROPUB, "POST", JSON, NOTE),
    ):
        for _ in range(20):
            headers = {"Authorization": requests.token, "Content_Type": kind}
            got = await requests.web.ask(method, concrete(template), body, **headers)
            if got.status == 429:
                break
        requests.answers.append((template, method.lower(), got))


async def ask_hub(requests: Requests) -> None:
    """To a service with a public address that nothing may call back: each answer of its hub."""
    fields = {"hub.callback": "http://127.0.0.1:1/", "hub.mode": "subscribe", "hub.topic": f"{SITE}/feeds/notes/"}
    end = fields | {"hub.mode": "unsubscribe", "hub.verify": "sync"}
    for path in (HUB, "/hub"):
        for body in (urlencode(fields), urlencode(end), "", "x" * 20_000):
            await requests.ask(path, "POST", "", body.encode(), Content_Type=WEB_FORM)
        await requests.ask(path, "POST", "", b"x", Content_Type=JSON)
        await requests.ask(path, "POST", "", urlencode(fields | {"hub.verify": "sync"}).encode(), Content_Type=WEB_FORM)
    # Both addresses are bounded together.
    for path in (HUB, "/hub"):
        for _ in range(60):
            got = await requests.web.ask("POST", concrete(path), b"", Content_Type=WEB_FORM)
            if got.status == 429:
                break
        requests.answers.append((path, "post", got))


async def ask_cloud(requests: Requests) -> None:
    """To the same service: each answer of its cloud."""
    form, *calls = CLOUD_DOORS
    for accept in ("text/xml", JSON):
        await requests.ask(form, "POST", "", b"port=0", Content_Type=WEB_FORM, Accept=accept)
    await requests.ask(form, "POST", "", b"port=0", Content_Type=WEB_FORM, Origin="https://other.example")
    for body in (b"port=%FF", b"x" * 70_000):
        await requests.ask(form, "POST", "", body, Content_Type=WEB_FORM)
    for path in calls:
        hello, fault = write_call(RemoteCall("hello", ())), b'<e:Envelope xmlns:e="%s"/>' % ENVELOPE_NS.encode()
        for body in (hello, fault, b"x" * 70_000):
            await requests.ask(path, "POST", "", body, Content_Type="text/xml")
    register = write_call(RemoteCall("pleaseNotify", ()))
    for path, kind, body in ((form, WEB_FORM, b""), *((path, "text/xml", register) for path in calls)):
        await requests.ask(path, "POST", "", b"x", Content_Type=JSON)
        for _ in range(130):
            got = await requests.web.ask("POST", path, body, Content_Type=kind)
            if got.status == 429:
                break
        requests.answers.append((path, "post", got))


async def ask_slowly(requests: Requests) -> None:
    """To a service that waits only shortly: each operation with a body that does not arrive (408)."""
    bodies = [
        (path, method, next(iter(kinds)))
        for path, item in document()["paths"].items()
        for method in ("put", "post", "patch")
        if (kinds := item.get(method, {}).get("requestBody", {}).get("content", {}))
    ]
    # All at once: the service waits as long for each of them.
    requests.answers += await asyncio.gather(*(_ask_slowly(requests, *body) for body in bodies))


async def _ask_slowly(requests: Requests, path: str, method: str, kind: str) -> tuple[str, str, Got]:
    async with connected(requests.web.port) as raw:
        sent = (
            f"Authorization: {requests.token}",
            f"Content-Type: {kind}; boundary=x",
            "Content-Length: 5",
            "Sec-Fetch-Site: same-origin",
        )
        raw.say(request(concrete(path, "slow"), *sent, method=method.upper()))
        heard = await raw.hear()
    return path, method, Got(heard.status, {"Content-Type": heard.headers["content-type"]}, heard.body)


def _handlers(web: Web) -> Parts:
    assert web.component.app.site is not None
    return web.component.app.site.handlers


PARTS = (
    ask_feeds,
    ask_lists,
    ask_conflicts,
    ask_requirements,
    ask_administration,
    ask_moderation,
    ask_look,
    ask_following,
    ask_items,
    ask_files,
    ask_micropub,
    ask_images,
    ask_other_pages,
)
