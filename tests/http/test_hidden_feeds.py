"""A closed feed does not exist for readers who are not signed in. If the operator hides closed feeds, it does not exist
for others who may not read it either: status, headers and body are the same (`pubsub.closed_nodes`; SF-111)."""

import asyncio
import json
from typing import Any

import pytest

from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.component import ALICE, BOB, EVE, bare, entry
from support.web import Got, Web, WebStarter

pytestmark = pytest.mark.shared

ATOM = "application/atom+xml"
JSON = "application/json"
HTML = "text/html"
CLOSED, ABSENT = "plans-1", "plans-2"
# Method, path, headers, body.
REQUESTS: dict[str, tuple[str, str, dict[str, str], bytes | None]] = {
    "pull": ("GET", "/feeds/{}/?timeout=0", {}, None),
    "held pull": ("GET", "/feeds/{}/", {}, None),
    "head": ("HEAD", "/feeds/{}/", {}, None),
    "options": ("OPTIONS", "/feeds/{}/", {}, None),
    "without a slash": ("GET", "/feeds/{}", {}, None),
    "pull from a cursor": ("GET", "/feeds/{}/?since=cursor:1_0_00000000", {}, None),
    "view": ("GET", "/feeds/{}/?order=created&q=x", {}, None),
    "unknown parameter": ("GET", "/feeds/{}/?colour=red", {}, None),
    "conditional pull": ("GET", "/feeds/{}/", {"If_None_Match": "*"}, None),
    "callback": ("GET", "/feeds/{}/?callback=f", {}, None),
    "Atom": ("GET", "/feeds/{}/", {"Accept": ATOM}, None),
    "page": ("GET", "/feeds/{}/", {"Accept": HTML}, None),
    "stream": ("GET", "/feeds/{}/", {"Accept": "text/event-stream"}, None),
    **{f"document {suffix}": ("GET", f"/feeds/{{}}.{suffix}", {}, None) for suffix in ("rss", "atom", "json", "opml")},
    "complete document": ("GET", "/feeds/{}.atom?sync=true&max=all", {}, None),
    "create": ("PUT", "/feeds/{}/", {"Content_Type": JSON}, b"{}"),
    "delete": ("DELETE", "/feeds/{}/", {}, None),
    "item": ("GET", "/entries/{}/a", {}, None),
    "item that is not there": ("GET", "/entries/{}/b", {}, None),
    "put": ("PUT", "/entries/{}/a", {"Content_Type": ATOM}, entry("x").encode()),
    "put of a new item": ("PUT", "/entries/{}/b", {"Content_Type": ATOM, "If_None_Match": "*"}, entry("x").encode()),
    "put of a known item": ("PUT", "/entries/{}/a", {"Content_Type": ATOM, "If_Match": "*"}, entry("x").encode()),
    "post": ("POST", "/entries/{}/", {"Content_Type": ATOM}, entry("x").encode()),
    "retract": ("DELETE", "/entries/{}/a", {}, None),
    "purge": ("DELETE", "/entries/{}/", {}, None),
    "outline": ("GET", "/outline/{}/", {"Accept": HTML}, None),
    "move": ("PATCH", "/entries/{}/a", {"Content_Type": JSON}, b'{"step": "up"}'),
    "conflicts": ("GET", "/conflicts/{}/", {}, None),
    "conflict": ("GET", "/conflicts/{}/a", {"Accept": HTML}, None),
    "decision": ("POST", "/conflicts/{}/a", {"Content_Type": JSON}, b"{}"),
}


def response_of(got: Got, name: str) -> tuple[int, dict[str, str], str]:
    headers = {key: value for key, value in got.headers.items() if key != "Date"}
    return got.status, headers, f"{headers}{got.text}".replace(name, ABSENT)


@pytest.mark.parametrize(
    ("setting", "caller"),
    [("answer", "anonymous"), ("hide", "anonymous"), ("hide", "stranger"), ("hide", "outcast")],
)
async def test_closed_feed_answers_as_one_that_does_not_exist(start_web: WebStarter, setting: str, caller: str) -> None:
    """[SF-111] Byte by byte, for every kind of request."""
    web = await start_web(pubsub={"closed_nodes": setting})
    await web.component.create(ALICE, CLOSED, access_model="whitelist", title="Plans")
    await web.component.publish(ALICE, CLOSED, "a")
    await web.component.affiliate(ALICE, CLOSED, EVE, "outcast" if caller == "outcast" else "none")
    own = {} if caller == "anonymous" else {"Authorization": await bearer(web, EVE, TokenScope.ADMIN)}
    for name, (method, path, headers, body) in REQUESTS.items():
        closed, absent = [
            response_of(await web.ask(method, path.format(feed), body, **{**headers, **own}), feed)
            for feed in (CLOSED, ABSENT)
        ]
        assert closed[2] == absent[2] and closed[0] == absent[0], name
        assert closed[0] in {204, 308, 400, 401, 403, 404, 405}, name


async def test_user_who_is_signed_in_learns_that_a_feed_is_closed(web: Web) -> None:
    """[SF-111] [xep-map 103] And whom to ask, so that a link to it leads somewhere. An outcast learns nothing more."""
    await web.component.create(ALICE, CLOSED, access_model="whitelist", title="Plans", contact="carol@example.org")
    await web.component.publish(ALICE, CLOSED, "a")
    await web.component.affiliate(ALICE, CLOSED, EVE, "outcast")
    answers = {}
    for user in (BOB, EVE):
        token = await bearer(web, user, TokenScope.ADMIN)
        for path in (f"/feeds/{CLOSED}/", f"/feeds/{CLOSED}.atom", f"/entries/{CLOSED}/a"):
            got = await web.get(path, Authorization=token)
            assert got.status == 403, path
            assert "Plans" not in got.text
            answers[user, path] = got.json
    for path in (f"/feeds/{CLOSED}/", f"/feeds/{CLOSED}.atom", f"/entries/{CLOSED}/a"):
        assert answers[BOB, path]["condition"] == "closed-node"
        assert "ask carol@example.org" in answers[BOB, path]["detail"]
        assert answers[EVE, path]["condition"] == "forbidden"
        assert "carol" not in json.dumps(answers[EVE, path])


@pytest.mark.parametrize("caller", ["stranger", "outcast"])
async def test_closed_feed_shows_nothing_else(web: Web, caller: str) -> None:
    """[SF-111] Neither its title, nor its owner, nor an entry, in whatever request of a user who is signed in."""
    texts = ("Plans of the club", "our plan", bare(ALICE))
    await web.component.create(ALICE, CLOSED, access_model="whitelist", title=texts[0])
    await web.component.publish(ALICE, CLOSED, "a", entry(texts[1]))
    await web.component.affiliate(ALICE, CLOSED, EVE, "outcast" if caller == "outcast" else "none")
    token = await bearer(web, EVE, TokenScope.ADMIN)
    more = {path: ("GET", path, {"Accept": HTML}, None) for path in ("/feeds/", "/", "/search?q=plan")}
    for name, (method, path, headers, body) in {**REQUESTS, **more}.items():
        got = await web.ask(method, path.format(CLOSED), body, Authorization=token, **headers)
        shown = f"{got.headers}{got.text}"
        assert not [text for text in texts if text in shown], name
        if method == "GET" and CLOSED in path.format(CLOSED):
            assert got.status in {308, 400, 403}, name


async def test_feed_closed_to_its_reader_ends_as_one_that_was_deleted(web: Web) -> None:
    """[SF-111] A held pull."""
    for feed, end in ((CLOSED, "close"), (ABSENT, "delete")):
        await web.component.create(ALICE, feed)
        held: asyncio.Task[Any] = asyncio.create_task(web.get(f"/feeds/{feed}/"))
        await web.holding(1)
        if end == "close":
            await web.component.configure(ALICE, feed, access_model="whitelist")
            await web.component.publish(ALICE, feed, "a")
        else:
            await web.component.owner_set(ALICE, f"<delete node='{feed}'/>")
        got = await held
        assert (got.status, got.json["condition"]) == (404, "item-not-found")


@pytest.mark.parametrize(
    ("options", "affiliation", "statuses"),
    [
        ({"access_model": "whitelist"}, "publish-only", (404, 403)),
        ({"access_model": "whitelist", "publish_model": "open"}, "none", (401, 403)),
        ({"access_model": "authorize"}, "none", (401, 403)),
        ({"access_model": "authorize"}, "outcast", (401, 403)),
        ({"access_model": "open"}, "outcast", (200, 403)),
        ({"access_model": "whitelist"}, "member", (404, 200)),
    ],
)
async def test_those_who_may_know_of_a_feed_hear_why_they_may_not_read(
    web: Web, options: dict[str, str], affiliation: str, statuses: tuple[int, int]
) -> None:
    """[SF-111] [xep-map 185] The answers to an anonymous caller and to Bob."""
    await web.component.create(ALICE, CLOSED, **options)
    await web.component.affiliate(ALICE, CLOSED, BOB, affiliation)
    token = await bearer(web, BOB, TokenScope.READ)
    path = f"/feeds/{CLOSED}/?timeout=0"
    assert ((await web.get(path)).status, (await web.get(path, Authorization=token)).status) == statuses


async def test_login_asks_for_the_password_and_leads_to_the_feeds(web: Web) -> None:
    """A closed feed cannot ask a browser for the password; the page that says 404 leads here."""
    page = await web.get("/feeds/any/", accept=HTML)
    assert 'href="/login"' in page.text
    asked = await web.get("/login-basic", accept=HTML)
    assert asked.status == 401 and asked.header("WWW-Authenticate").startswith("Basic ")
    done = await web.get("/login-basic", Authorization=await bearer(web, BOB, TokenScope.READ))
    assert (done.status, done.header("Location"), done.header("Cache-Control")) == (303, "/feeds/", "no-store")
