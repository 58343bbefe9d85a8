"""The description at /openapi.json is a valid one, is complete, and is what the running service does."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
from openapi_spec_validator import validate

from smartfeeds.core.options import OPTIONS
from smartfeeds.core.tokens import TokenScope
from smartfeeds.errors import StoreError
from smartfeeds.http.negotiation import MULTIPART
from smartfeeds.http.openapi import document as document_of
from smartfeeds.http.operations import Operation
from smartfeeds.http.routes import TABLE, document
from smartfeeds.http.server import AddressQuota
from smartfeeds.http.web.admin_sections import SECTIONS
from smartfeeds.http.web.static_files import static_path
from support.bearer import bearer
from support.component import ALICE, BOB, CAROL, EVE, bare, entry
from support.raw import connected, request
from support.versions import B1, C1, version
from support.web import Got, Web, WebStarter
from support.website import running_site

MICROPUB, MEDIA = "/micropub/{name}", "/media/{name}"
NOTE = b'{"type":["h-entry"],"properties":{"content":["x"]}}'
METHODS = ("get", "put", "post", "patch", "delete")
EXAMPLES = 20
ATOM = "application/atom+xml"
JSON = "application/json"
PROBLEM = "application/problem+json"
ACTIVITY = json.dumps({"verb": "post", "object": {"objectType": "note", "content": "hello"}}).encode()
BIG = b"x" * 400_000

# The bodies of the operations of administration, by path and method.
ADMINISTRATION = {
    ("/feeds/{name}/", "patch"): "{}",
    ("/options/{name}/", "get"): "",
    ("/members/{name}/", "get"): "",
    ("/members/{name}/{jid}", "put"): '{"affiliation": "member"}',
    ("/members/{name}/{jid}", "delete"): "",
    ("/subscriptions/{name}/", "get"): "",
    ("/subscriptions/{name}/{jid}", "put"): "",
    ("/subscriptions/{name}/{jid}", "delete"): "",
    ("/tokens/", "get"): "",
    ("/tokens/", "post"): '{"feed": "*", "scope": "read"}',
    ("/tokens/{token}", "delete"): "",
    ("/consumers/", "get"): "",
    ("/consumers/", "post"): '{"consumer": "*"}',
    ("/mirrors/", "get"): "",
    ("/statistics", "get"): "",
    ("/admin/", "get"): "",
    **{(section.path, "get"): "" for section in SECTIONS},
    **{(section.path, "post"): "action=x" for section in SECTIONS if section.actions},
    ("/admin/members/{name}/", "post"): "action=affiliate&jid=bob@example.org&affiliation=member",
    ("/admin/subscriptions/{name}/", "post"): "action=unsubscribe&jid=bob@example.org",
    ("/admin/feeds/{name}/", "get"): "",
    ("/admin/feeds/{name}/", "post"): "action=delete&confirm=x",
}
WEB_FORM = "application/x-www-form-urlencoded"


def of_administration(path: str, method: str) -> tuple[bytes | None, dict[str, str]]:
    """The body of an operation of administration, and its headers."""
    body = ADMINISTRATION.get((path, method), "").encode()
    form = {"Content_Type": WEB_FORM, "Sec_Fetch_Site": "same-origin"}
    return (body, form if path.startswith("/admin/") else {"Content_Type": JSON}) if body else (None, {})


IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBP", b"....ftypavif")

PathMethod = tuple[str, str]  # the path as it is documented, the method
Seen = tuple[str, str, str, str]  # and the status and media type of an answer


def operations() -> list[PathMethod]:
    """Every path of the document with each of its methods."""
    return [(path, method) for path, item in document()["paths"].items() for method in METHODS if method in item]


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
    query = "?timeout=0" if path == "/feeds/{name}/" else ""
    return re.sub(r"{(\w+)}", lambda found: known[found[1]], path) + query


def documented() -> set[Seen]:
    """Everything that the document says may come."""
    found: set[Seen] = set()
    for path, method in operations():
        for status, answer in document()["paths"][path][method]["responses"].items():
            found |= {(path, method, status, media_type) for media_type in answer.get("content", {"": None})}
    return found


def check(path: str, method: str, got: Got) -> Seen:
    """What an answer shows of an operation. Fails where the document does not say so."""
    media_type = got.header("Content-Type").partition(";")[0]
    answer = document()["paths"][path][method]["responses"].get(str(got.status))
    assert answer is not None, (path, method, got)
    content = answer.get("content", {"": {}})
    assert media_type in content, (path, method, got)
    if media_type.endswith("json"):
        schema = {**content[media_type]["schema"], "components": document()["components"]}
        jsonschema.Draft202012Validator(schema).validate(got.json)
    assert not got.body or media_type, (path, method, got)
    return path, method, str(got.status), media_type


def test_document_is_valid() -> None:
    """OpenAPI 3.1."""
    validate(document())


def test_options_are_named() -> None:
    """[SF-114] Every option of a node and its kind, and no other member; choices as they are offered."""
    schema = document()["components"]["schemas"]["Options"]
    assert schema["properties"].keys() == {"kind", *OPTIONS}
    validator = jsonschema.Draft202012Validator(schema)
    good = {"title": "News", "access_model": "open", "deliver_payloads": True, "max_payload_size": 2_000, "contact": []}
    assert validator.is_valid(good)
    for bad in ({"access_mode": "whitelist"}, {"access_model": "closed"}, {"kind": "leaf"}):
        assert not validator.is_valid(bad), bad


async def test_document_is_served(web: Web) -> None:
    """As JSON, and packed for who takes it."""
    got = await web.get("/openapi.json")
    assert (got.status, got.header("Content-Type"), got.json) == (200, JSON, document())
    assert (await web.get("/openapi.json", Accept_Encoding="gzip")).header("Content-Encoding") == "gzip"


async def test_every_route_is_documented_and_every_path_is_routed(web: Web) -> None:
    """[SF-112] The document has all routes and no other; the service takes each path for the route of its template."""
    assert set(operations()) == {
        (route.path, route.method.lower()) for route in TABLE if not route.operation.for_people
    }
    site = web.component.app.site
    assert site is not None
    router = site.router
    for route in TABLE:
        path = concrete(route.path).partition("?")[0]
        resource, _ = router._resource(Mock(path=path))
        assert resource.template.text == route.path
        assert resource.methods[route.method][0] is route.operation


def test_operation_documents_what_follows_from_its_fields() -> None:
    """[SF-112] A new route needs no other line: statuses, security and the body come from the operation."""
    body = {ATOM: {"type": "string"}}
    operation = Operation("x", "An x", {200: {}}, errors=(409,), body=body, scope=TokenScope.ADMIN)
    paths = document_of([("GET", "/x", Operation("y", "A y", {200: {}})), ("PUT", "/x/{name}/", operation)])["paths"]
    assert list(paths["/x"]["get"]["responses"]) == ["200", "400", "401", "503"]
    put = paths["/x/{name}/"]["put"]
    assert list(put["responses"]) == ["200", *map(str, (400, 401, 403, 404, 408, 409, 413, 415, 503))]
    assert (put["security"], put["requestBody"]["content"].keys()) == ([{"token": []}], body.keys())
    assert [one["name"] for one in paths["/x/{name}/"]["parameters"]] == ["name"]


async def tear(web: Web, token: str, by: str) -> None:
    """Makes a conflict of the item torn."""
    await web.component.publish(ALICE, "notes", "torn")
    body = version(by, sync_id="torn").encode()
    headers = {"Authorization": token, "Content_Type": ATOM}
    assert (await web.ask("PUT", "/entries/notes/torn", body, **headers)).status == 200


async def everything(  # noqa: C901 - one list
    web: Web, token: str, small: Web, small_token: str
) -> list[tuple[str, str, Got]]:
    """Requests that together get every answer of the document that only one operation has."""
    pull, suffixed, item, items = "/feeds/{name}/", "/feeds/{name}.{suffix}", "/entries/{name}/{id}", "/entries/{name}/"
    found: list[tuple[str, str, Got]] = []

    async def ask(template: str, method: str, path: str, body: bytes | None = None, **headers: str) -> Got:
        got = await web.ask(method, path, body, **headers)
        found.append((template, method.lower(), got))
        return got

    kinds = document()["paths"][pull]["get"]["responses"]["200"]["content"]
    for kind in kinds.keys() - {"text/event-stream", "application/javascript"}:
        await ask(pull, "GET", concrete(pull), Accept=kind)
    await ask(pull, "GET", f"{concrete(pull)}&callback=f")
    page = await ask(pull, "GET", concrete(pull))
    await ask(pull, "GET", concrete(pull), If_None_Match=page.header("ETag"))
    await ask(pull, "GET", concrete(pull), Accept="image/png")
    async with web.session.get(f"{web.origin}/feeds/notes/", headers={"Accept": "text/event-stream"}) as stream:
        found.append((pull, "get", Got(stream.status, stream.headers, await stream.content.readany())))
    for suffix in document()["paths"][suffixed]["parameters"][1]["schema"]["enum"]:
        page = await ask(suffixed, "GET", f"/feeds/notes.{suffix}")
        await ask(suffixed, "GET", f"/feeds/notes.{suffix}", If_None_Match=page.header("ETag"))
    await ask(suffixed, "GET", "/feeds/notes.json?callback=f")
    await ask(suffixed, "GET", "/feeds/notes.unknown")
    await ask("/feeds/{name}", "GET", "/feeds/notes")

    await ask("/feeds", "GET", "/feeds")
    for kind in [*document()["paths"]["/feeds/"]["get"]["responses"]["200"]["content"], "image/png"]:
        page = await ask("/feeds/", "GET", "/feeds/", Accept=kind)
    await ask("/feeds/", "GET", "/feeds/", If_None_Match="*")
    for path in ("/feeds.json", "/feeds.opml", "/feeds.nno"):
        await ask(path, "GET", path)
        await ask(path, "GET", path, If_None_Match="*")

    for path in ("/", "/river.json", "/river.atom", "/search?q=t"):
        template = path.partition("?")[0]
        for kind in [*document()["paths"][template]["get"]["responses"]["200"]["content"], "image/png"]:
            page = await ask(template, "GET", path, Accept=kind)
        await ask(template, "GET", path, If_None_Match="*")

    mine = {"Authorization": token}
    conflicts, conflict = "/conflicts/{name}/", "/conflicts/{name}/{id}"
    for accept in (JSON, "text/html", "image/png"):
        await ask(conflicts, "GET", concrete(conflicts), Accept=accept)
        await ask(conflict, "GET", concrete(conflict), Accept=accept)
    decided = {**mine, "Content_Type": JSON}
    await ask(conflict, "POST", concrete(conflict), b'{"seen": []}', **decided)
    await ask(conflict, "POST", concrete(conflict), b"x", **mine, Content_Type="text/plain")
    await ask(conflict, "POST", concrete(conflict), BIG, **decided)
    await ask(conflict, "POST", "/conflicts/notes/none", b"{}", **decided)
    await ask(conflict, "POST", concrete(conflict), b"{}", **decided)
    form = {**mine, "Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
    await tear(web, token, C1)
    await ask(conflict, "POST", concrete(conflict), b"keep=", **form)
    await ask(item, "GET", "/entries/notes/torn?sync=true", Accept=JSON)
    for accept in (ATOM, JSON, "text/html", "image/png"):
        await ask(item, "GET", concrete(item), Accept=accept)
        await ask(item, "GET", "/entries/notes/gone", Accept=accept)
    await ask(item, "GET", concrete(item), If_None_Match="*")
    atom, json_ = {**mine, "Content_Type": ATOM}, {**mine, "Content_Type": JSON}
    for number, headers in enumerate((atom, json_)):
        body = ACTIVITY if headers is json_ else entry("t").encode()
        for _ in range(2):
            await ask(item, "PUT", f"/entries/notes/p{number}", body, **headers)
        await ask(items, "POST", "/entries/notes/", body, **headers)
    await administer(ask, mine, await bearer(web, BOB, TokenScope.ADMIN))
    carol = {"Authorization": await bearer(web, CAROL, TokenScope.ADMIN), "Content_Type": ATOM}
    bob = await bearer(web, BOB, TokenScope.PUBLISH)
    await ask(conflict, "POST", concrete(conflict), b"{}", Authorization=bob, Content_Type=JSON)
    # Who may not read the feed gets no body.
    await web.ask("POST", "/entries/notes/", version(B1, sync_id="hers").encode(), **carol)
    await ask(items, "POST", "/entries/notes/", version(B1, sync_id="hers").encode(), **carol)
    for accept in (ATOM, JSON):
        await ask(items, "POST", "/entries/notes/", version(B1, sync_id="torn").encode(), Accept=accept, **atom)
    await ask(item, "PUT", "/entries/notes/p0", version(B1, sync_id="p1").encode(), **atom)
    await ask(item, "PUT", "/entries/notes/p0", version(B1, sync_id="p2").encode(), **atom)
    await ask(item, "PUT", "/entries/notes/a", entry("of Carol").encode(), **carol)
    await ask(item, "PUT", concrete(item), entry("t").encode(), If_Match='"other"', **atom)
    await ask(item, "DELETE", concrete(item), If_Match='"other"', **mine)
    for template, method, headers in ((item, "PUT", atom), (items, "POST", atom), (pull, "PUT", json_)):
        await ask(template, method, concrete(template, "new"), BIG, **headers)
        await ask(template, method, concrete(template, "new"), b"x", **mine, Content_Type="text/xml")
    await ask(pull, "PUT", "/feeds/new/", b'{"deliver_payloads": "maybe"}', **json_)
    await ask(pull, "PUT", "/feeds/new/", **mine)
    await ask(pull, "PUT", "/feeds/new/", **mine)
    await ask(pull, "PUT", "/feeds/new/", b'{"title": "New"}', **json_)
    await ask(item, "DELETE", "/entries/notes/p0", **mine)
    await ask(items, "DELETE", "/entries/notes/", **mine)
    await ask(pull, "DELETE", "/feeds/new/", **mine)

    found += await of_files(web, token, bob)
    found += await of_micropub(web, token, bob)
    image = "/images/{digest}"
    links = web.component.app.site.handlers.images.links if web.component.app.site else None
    assert links is not None
    async with running_site() as host:
        for number, body in enumerate((*IMAGES, b"<svg/>")):
            host.pages[f"/{number}"] = body
            await ask(image, "GET", links.path(host.url(f"/{number}")))
        await ask(image, "GET", links.path(host.url("/0")), If_None_Match="*")
        await ask(image, "GET", "/images/0?url=http%3A%2F%2Fx.example%2F")
        await ask(image, "GET", "/images/0?link=x")
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
        await ask(path, "GET", path)
    for name in ("app.js", "style.css", "icon.svg"):
        got = await ask("/static/{file}", "GET", static_path(name))
    await ask("/static/{file}", "GET", static_path(name), If_None_Match=got.header("ETag"))
    await ask("/login-basic", "GET", "/login-basic", **mine)
    got = await ask("/favicon.ico", "GET", "/favicon.ico")
    await ask("/favicon.ico", "GET", "/favicon.ico", If_None_Match=got.header("ETag"))
    await ask("/metrics", "GET", "/metrics", X_Forwarded_For="203.0.113.9")

    # Where one may do little, and that quickly.
    theirs = {"Authorization": small_token, "Content_Type": ATOM}
    bodies = {conflict: (b"{}", JSON), MICROPUB: (NOTE, JSON)}
    for template, method in ((item, "PUT"), (items, "POST"), (item, "DELETE"), (conflict, "POST"), (MICROPUB, "POST")):
        body, kind = bodies.get(template, (None if method == "DELETE" else entry("t").encode(), ATOM))
        for _ in range(20):
            got = await small.ask(method, concrete(template), body, **{**theirs, "Content_Type": kind})
            if got.status == 429:
                break
        found.append((template, method.lower(), got))
    kinds_of_bodies = {item: ATOM, items: ATOM, MEDIA: f"{MULTIPART}; boundary=x"}
    slow = ((pull, "PATCH"), ("/members/{name}/{jid}", "PUT"), ("/tokens/", "POST"), ("/consumers/", "POST"))
    forms = [
        (path, method.upper()) for path, method in ADMINISTRATION if path.startswith("/admin/") and method == "post"
    ]
    slow = (
        *slow,
        *forms,
        (item, "PUT"),
        (items, "POST"),
        (pull, "PUT"),
        (conflict, "POST"),
        (MICROPUB, "POST"),
        (MEDIA, "POST"),
    )
    for template, method in slow:
        kind = WEB_FORM if template.startswith("/admin/") else kinds_of_bodies.get(template, JSON)
        async with connected(small.port) as raw:
            headers = (
                f"Authorization: {small_token}",
                f"Content-Type: {kind}",
                "Content-Length: 5",
                "Sec-Fetch-Site: same-origin",
            )
            raw.say(request(concrete(template, "slow"), *headers, method=method))
            heard = await raw.hear()
            found.append((template, method.lower(), Got(heard.status, {"Content-Type": PROBLEM}, heard.body)))
    return found


async def of_files(web: Web, token: str, other: str) -> list[tuple[str, str, Got]]:
    """A file of each type, whole, in parts, and where there is none."""
    path = "/files/{name}/{id}"
    found: list[tuple[str, str, Got]] = []
    for kind in document()["paths"][path]["get"]["responses"]["200"]["content"]:
        made = await web.ask(
            "POST", "/entries/notes/", b"file", Authorization=token, Content_Type=kind, Filename="x", Accept=JSON
        )
        address = made.json["object"]["attachments"][0]["url"].removeprefix(web.origin)
        parts: tuple[dict[str, str], ...] = ({}, {"Range": "bytes=1-2"}, {"Range": "bytes=9-"}, {"If_None_Match": "*"})
        found += [(path, "get", await web.get(address, **headers)) for headers in parts]
    found.append((path, "get", await web.get("/files/closed/x", Authorization=other)))
    return found


async def of_micropub(web: Web, token: str, other: str) -> list[tuple[str, str, Got]]:
    """What Micropub clients are answered."""
    found: list[tuple[str, str, Got]] = []

    async def ask(template: str, method: str, path: str, body: bytes | None = None, **headers: str) -> None:
        headers = {"Authorization": token, **headers}
        found.append((template, method.lower(), await web.ask(method, path, body, **headers)))

    await ask(MICROPUB, "GET", "/micropub/notes?q=config")
    await ask(MICROPUB, "GET", f"/micropub/notes?q=source&url={web.origin}/entries/notes/none")
    await ask(MICROPUB, "GET", f"/micropub/x?q=source&url={web.origin}/entries/closed/x", Authorization=other)
    as_json = {"Content_Type": JSON}
    await ask(MICROPUB, "POST", "/micropub/notes", NOTE, **as_json)
    address = found[-1][2].header("Location")
    for headers in ({"Authorization": other}, {}):
        await ask(
            MICROPUB,
            "POST",
            "/micropub/notes",
            json.dumps({"action": "delete", "url": address}).encode(),
            **as_json,
            **headers,
        )
    await ask(MICROPUB, "POST", "/micropub/missing", NOTE, **as_json)
    await ask(MICROPUB, "POST", "/micropub/notes", BIG, **as_json)
    await ask(MICROPUB, "POST", "/micropub/notes", b"x", Content_Type="text/plain")
    form = {"Content_Type": f"{MULTIPART}; boundary=x"}
    part = b"--x\r\nContent-Disposition: form-data; name=file%b\r\n\r\n%b\r\n--x--\r\n"
    file = part % (b"; filename=a", b"file")
    await ask(MEDIA, "POST", "/media/notes", file, **form)
    await ask(MEDIA, "POST", "/media/notes", file, **form, Authorization=other)
    await ask(MEDIA, "POST", "/media/missing", file, **form)
    await ask(MEDIA, "POST", "/media/notes", part % (b"", BIG), **form)
    await ask(MEDIA, "POST", "/media/notes", b"x", Content_Type="text/plain")
    assert web.component.app.site is not None
    uploads = web.component.app.site.handlers.micropub._uploads
    running, uploads._running = uploads._running, AddressQuota(0)
    await ask(MEDIA, "POST", "/media/notes", file, **form)
    uploads._running = running
    return found


async def administer(ask: Callable[..., Awaitable[Got]], mine: dict[str, str], owner: str) -> None:
    """Requests that get the answers of administration that only one operation has."""
    patch, member, subscription = "/feeds/{name}/", "/members/{name}/{jid}", "/subscriptions/{name}/{jid}"
    json_ = {**mine, "Content_Type": JSON}
    options = await ask("/options/{name}/", "GET", "/options/notes/", **mine)
    await ask("/options/{name}/", "GET", "/options/notes/", **mine, If_None_Match=options.header("ETag"))
    await ask(patch, "PATCH", "/feeds/notes/", b'{"title": "x"}', **json_)
    await ask(patch, "PATCH", "/feeds/notes/", b'{"title": "y"}', **json_, If_Match=options.header("ETag"))
    await ask(patch, "PATCH", "/feeds/notes/", b'{"deliver_payloads": "maybe"}', **json_)
    await ask(member, "PUT", "/members/notes/zoe@example.org", b'{"affiliation": "member"}', **json_)
    await ask(member, "PUT", "/members/notes/alice@example.org", b'{"affiliation": "none"}', **json_)
    await ask(member, "DELETE", "/members/notes/alice@example.org", **mine)
    await ask(member, "DELETE", "/members/notes/zoe@example.org", **mine)
    await ask(subscription, "PUT", "/subscriptions/notes/alice@example.org", **mine)
    for folder in ("members", "subscriptions"):
        await ask(f"/{folder}/{{name}}/", "GET", f"/{folder}/notes/", **mine)
    await ask(subscription, "DELETE", "/subscriptions/notes/alice@example.org", **mine)
    created = await ask("/tokens/", "POST", "/tokens/", b'{"feed": "*", "scope": "read"}', **json_)
    for _ in range(2):
        await ask("/tokens/{token}", "DELETE", f"/tokens/{created.json['id']}", **mine)
    for path in ("/tokens/", "/consumers/", "/mirrors/", "/statistics"):
        await ask(path, "GET", path, **mine)
    await ask("/consumers/", "POST", "/consumers/", b'{"consumer": "*"}', **json_)
    await ask("/consumers/", "POST", "/consumers/", b'{"consumer": "none"}', **json_)
    await administer_by_forms(ask, {**mine, "Content_Type": WEB_FORM, "Sec_Fetch_Site": "same-origin"}, owner)
    for template, method in ((patch, "PATCH"), (member, "PUT"), ("/tokens/", "POST"), ("/consumers/", "POST")):
        await ask(template, method, concrete(template), BIG, **json_)
        await ask(template, method, concrete(template), b"x", **mine, Content_Type="text/plain")


async def administer_by_forms(ask: Callable[..., Awaitable[Got]], form: dict[str, str], owner: str) -> None:
    """Requests that get the answers of the web administration that only one operation has."""
    feeds, feed, tokens = "/admin/feeds/", "/admin/feeds/{name}/", "/admin/tokens/"
    members, subscriptions = "/admin/members/{name}/", "/admin/subscriptions/{name}/"
    forms = {
        feeds: ["action=create&name=made", "action=create&name=made", "action=create&name=b&kind=x"],
        members: ["action=affiliate&jid=a@x&affiliation=member", "action=affiliate&jid=alice@example.org"],
        subscriptions: [f"action={action}&jid=alice@example.org" for action in ("subscribe", "unsubscribe")],
        tokens: ["action=create&feed=*&scope=read", "action=revoke&id=1"],
        "/admin/consumers/": ["action=retry&consumer=", "action=retry&consumer=none"],
    }
    for template in ("/admin/", *(section.path for section in SECTIONS), feed):
        await ask(template, "GET", concrete(template), **form)
        await ask(template, "GET", f"{concrete(template)}?after=x", **form)
        await ask(template, "GET", f"{concrete(template)}?wrong=1", **form)
    await ask(feeds, "GET", "/admin/feeds/?after=x", Authorization=owner)
    for template, bodies in forms.items():
        for body in (*bodies, "action=x"):
            await ask(template, "POST", concrete(template), body.encode(), **form)
    page = await ask(tokens, "GET", tokens, **form)
    # The last one is not the token of these requests.
    token_id = re.findall(r'name="id" value="([0-9a-f]+)"', page.text)[-1]
    await ask(tokens, "POST", tokens, f"action=revoke&id={token_id}".encode(), **form)
    await ask(feed, "POST", "/admin/feeds/made/", b"action=configure&tag=old", **form)
    page = await ask(feed, "GET", "/admin/feeds/made/", **form)
    tag = re.findall(r'name="tag" value="([0-9a-f]+)"', page.text)[0]
    await ask(feed, "POST", "/admin/feeds/made/", f"action=configure&tag={tag}&language=!".encode(), **form)
    await ask(feed, "POST", "/admin/feeds/made/", b"action=delete&confirm=x", **form)
    await ask(feed, "POST", "/admin/feeds/made/", b"action=delete&confirm=made", **form)
    for template in (*forms, feed):
        await ask(template, "POST", concrete(template), b"x", **{**form, "Content_Type": "text/plain"})
        await ask(template, "POST", concrete(template), BIG, **form)


async def refused(web: Web, token: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Got]]:
    """What any operation may be answered with: no host, no credentials, no rights, nothing there, no store."""
    found: list[tuple[str, str, Got]] = []
    eve = await bearer(web, EVE, TokenScope.ADMIN)
    publisher = await bearer(web, ALICE, TokenScope.PUBLISH)
    for path, method in operations():
        body = entry("t").encode() if path.startswith("/entries") and method in ("put", "post") else None
        kind = {"Content_Type": ATOM} if body else {}
        if body is None:
            body, kind = of_administration(path, method)

        async def ask(target: str, path: str = path, method: str = method, **headers: str) -> None:
            found.append((path, method, await web.ask(method.upper(), target, body, **kind, **headers)))  # noqa: B023

        await ask(concrete(path), Host="no host")
        await ask(concrete(path), Authorization="Bearer unknown")
        if "{name}" in path:
            if path != "/feeds/{name}":
                await ask(concrete(path, "closed"), Authorization=eve)
            nameless = (path, method) in (("/feeds/{name}/", "put"), ("/feeds/{name}", "get"))
            missing = "a" * 2_000 if nameless else "missing"
            await ask(concrete(path, missing), Authorization=token)
        elif path == "/static/{file}":
            await ask("/static/missing")
        if (path, method) in ADMINISTRATION:
            await ask(concrete(path), Authorization=publisher)

    async def fail(*_values: object, **_more: object) -> Any:
        raise StoreError("gone")

    monkeypatch.setattr(web.component.app.service, "read", fail)
    for path, method in operations():
        body, kind = of_administration(path, method)
        got = await web.ask(method.upper(), concrete(path), body, Authorization=token, **kind)
        found.append((path, method, got))
    monkeypatch.undo()
    return found


async def test_every_documented_answer_comes_and_no_other(
    start_web: WebStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-112] Each status and each media type of each operation, with bodies as their schemas say."""
    web = await start_web(
        pubsub={"admins": [bare(ALICE)], "creators": ["example.org"]},
        site={"images": "on"},
        net={"fetch_allow": ["127.0.0.0/8"]},
    )
    await web.component.create(ALICE, "notes", access_model="open")
    await web.component.create(ALICE, "closed", access_model="authorize")
    await web.component.affiliate(ALICE, "notes", CAROL, "publish-only")
    for item_id in ("gone", "a"):
        await web.component.publish(ALICE, "notes", item_id)
    await web.component.retract(ALICE, "notes", "gone")
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    await tear(web, token, B1)
    small = await start_web(
        store={"url": f"sqlite:///{tmp_path / 'small.db'}"},  # one process serves a database
        http={"first_request_s": 0.5},
        limits={"publishes_per_s": 0.05},
    )
    await small.component.create(ALICE, "notes", access_model="open")
    small_token = await bearer(small, ALICE, TokenScope.ADMIN)
    found = await refused(web, token, monkeypatch)
    found += await everything(web, token, small, small_token)
    seen = {check(*one) for one in found}
    assert sorted(documented() - seen) == [] == sorted(seen - documented())


# Whether a payload or an option is acceptable is decided by Atom, ActivityStreams and XEP-0060, which JSON Schema
# cannot describe. Whether an entity tag is current depends on the item. An unknown suffix belongs to the name of a
# feed, whose address redirects. For all other operations each request that the schemas allow must be accepted.
CONFIGURATION = """
[[operations]]
include-operation-id = ["putItem", "postItem", "createFeed"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "406", "409", "412", "429"]
[[operations]]
include-operation-id = "retractItem"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "412", "429"]
[[operations]]
include-operation-id = "document"
checks.negative_data_rejection.expected-statuses = ["308", "400", "401", "403", "404", "405", "406", "409", "429"]
"""


@pytest.mark.timeout(600)
async def test_schemathesis_finds_nothing(
    start_web: WebStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[design 5] All checks in the phases examples, coverage and fuzzing, with valid and invalid data."""
    monkeypatch.setattr("smartfeeds.http.feeds.Feeds._wait_s", lambda *_values: 0)  # nobody waits for items
    web = await start_web(limits={"publishes_per_s": 1_000_000})
    await web.component.create(ALICE, "notes", access_model="open")
    await web.component.publish(ALICE, "notes", "a")
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(tmp_path / "schemathesis.toml")),
        *(
            "run",
            f"{web.origin}/openapi.json",
            "--header",
            f"Authorization: {token}",
            "--no-color",
            "--output-sanitize",
            "false",
        ),
        *("--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES)),
        *("--continue-on-failure", "--seed", "1", "--generation-deterministic"),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    report = output.decode()
    cases = re.search(r"(\d+) generated", report)

    assert process.returncode == 0, report
    assert cases is not None and int(cases[1]) > 1_000, report
    assert (await web.get("/readyz")).status == 200
