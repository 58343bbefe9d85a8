"""Bearer tokens over HTTP: each scope with each thing that can be done, and tokens that are no good."""

import base64
from typing import Any

import pytest

from smartfeeds.core.token import ALL_FEEDS, TokenScope
from smartfeeds.features.accounts.tokens import revoke_token
from support.bearer import bearer
from support.component import ALICE, BOB, EVE, entry
from support.web import Got, Web, WebStarter

pytestmark = pytest.mark.shared

ATOM = "application/atom+xml"
# What can be done, and which scope it takes. The paths hold the name of a feed.
DEEDS = {
    "read the feed": ("GET", "/feeds/{}/?timeout=0", TokenScope.READ),
    "read a document": ("GET", "/feeds/{}.rss", TokenScope.READ),
    "read an item": ("GET", "/entries/{}/a", TokenScope.READ),
    "put an item": ("PUT", "/entries/{}/new", TokenScope.PUBLISH),
    "post an item": ("POST", "/entries/{}/", TokenScope.PUBLISH),
    "delete an item": ("DELETE", "/entries/{}/a", TokenScope.PUBLISH),
    "purge": ("DELETE", "/entries/{}/", TokenScope.ADMIN),
    "delete the feed": ("DELETE", "/feeds/{}/", TokenScope.ADMIN),
    "make a feed": ("PUT", "/feeds/{}/", TokenScope.ADMIN),
}
DONE = {"GET": {200}, "PUT": {201}, "POST": {201}, "DELETE": {204}}
BAD_TOKEN = "this token is not known, revoked or expired: ask for a new one"


async def do(web: Web, deed: str, feed: str, authorization: str = "") -> Got:
    method, path, _ = DEEDS[deed]
    headers = {"Authorization": authorization} if authorization else {}
    if method in ("PUT", "POST") and "/entries/" in path:
        headers["Content_Type"] = ATOM
        return await web.ask(method, path.format(feed), entry("x").encode(), **headers)
    return await web.ask(method, path.format(feed), **headers)


async def with_notes(web: Web, **options: str) -> Web:
    await web.component.create(ALICE, "notes", **options)
    await web.component.publish(ALICE, "notes", "a")
    return web


@pytest.mark.parametrize("feed", [ALL_FEEDS, "this", "other"])
@pytest.mark.parametrize("scope", TokenScope)
@pytest.mark.parametrize("deed", DEEDS)
async def test_a_token_does_what_its_scope_has_on_its_feed(web: Web, deed: str, scope: TokenScope, feed: str) -> None:
    """[SF-110] [SF-111] Every deed with every scope, of all feeds, of this one and of another; else 403, and nothing
    has happened."""
    method, _, needed = DEEDS[deed]
    await with_notes(web)
    name = "fresh" if deed == "make a feed" else "notes"
    token = await bearer(web, ALICE, scope, {"this": name, "other": "elsewhere"}.get(feed, feed))
    before = (await web.get("/feeds/notes/?timeout=0")).body
    got = await do(web, deed, name, token)
    if scope >= needed and feed != "other":
        assert got.status in DONE[method]
    else:
        assert (got.status, got.json["condition"]) == (403, "forbidden")
        assert (await web.get("/feeds/notes/?timeout=0")).body == before
        assert (await web.get("/feeds/fresh/?timeout=0")).status == 404


@pytest.mark.parametrize("deed", [deed for deed, (_, _, scope) in DEEDS.items() if scope > TokenScope.READ])
@pytest.mark.parametrize("feed", ["notes", "none"])
async def test_who_brings_no_token_changes_nothing(web: Web, deed: str, feed: str) -> None:
    """[SF-110] 401 with a challenge, whether the feed is there or not."""
    await with_notes(web)
    got = await do(web, deed, feed)
    assert (got.status, got.json["condition"]) == (401, "not-authorized")
    assert "Bearer " in got.header("WWW-Authenticate")


@pytest.mark.parametrize("deed", DEEDS)
async def test_a_token_has_the_rights_of_its_jid_and_no_more(web: Web, deed: str) -> None:
    """[SF-110] [SF-111] With every scope Bob still does only what Bob may: here he is an outcast, as over XMPP."""
    await with_notes(web)
    await web.component.affiliate(ALICE, "notes", BOB, "outcast")
    name = "notes"
    got = await do(web, deed, name, await bearer(web, BOB, TokenScope.ADMIN))
    assert got.status == (409 if deed == "make a feed" else 403)


async def test_feeds_are_made_by_those_who_may_make_nodes(web: Web) -> None:
    """[xep-map 59] The creators of the configuration, as over XMPP."""
    eve, alice = await bearer(web, EVE, TokenScope.ADMIN), await bearer(web, ALICE, TokenScope.ADMIN)
    assert (await do(web, "make a feed", "fresh", eve)).status == 403
    assert (await do(web, "make a feed", "fresh", alice)).status == 201


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("feed", [ALL_FEEDS, "fresh"])
@pytest.mark.parametrize(
    ("scope", "status"),
    [(TokenScope.READ, 403), (TokenScope.PUBLISH, 404), (TokenScope.ADMIN, 201)],
    ids=lambda one: str(one),
)
async def test_publishing_makes_a_feed_only_with_the_scope_that_makes_feeds(
    start_web: WebStarter, method: str, feed: str, scope: TokenScope, status: int
) -> None:
    """[SF-110] [xep-map 133] Where publishing to a missing node makes it: not for a token that may only publish."""
    web = await start_web(pubsub={"auto_create": True})
    token = await bearer(web, ALICE, scope, feed)
    path = "/entries/fresh/x" if method == "PUT" else "/entries/fresh/"
    got = await web.ask(method, path, entry("x").encode(), Authorization=token, Content_Type=ATOM)
    assert got.status == status
    assert (await web.get("/feeds/fresh/?timeout=0")).status == (200 if status == 201 else 404)


async def test_what_is_wrong_with_a_token_is_not_told(web: Web) -> None:
    """[SF-110] Unknown, revoked, expired, false or no token at all: the same answer to the byte for each."""
    await with_notes(web)
    good = await bearer(web, ALICE, TokenScope.ADMIN)
    revoked = await bearer(web, ALICE, TokenScope.ADMIN)
    expired = await bearer(web, ALICE, TokenScope.ADMIN, lifetime_s=10)
    service = web.component.app.service
    await service.write(lambda tx, context: revoke_token(tx, context, revoked.split("_")[1]))
    web.component.clock.advance(10)
    unknown = f"Bearer sf_{'f' * 12}_{'x' * 43}"
    false = f"{good[:-1]}{'A' if good[-1] != 'A' else 'B'}"
    answers: set[Any] = set()
    for bad in (revoked, expired, unknown, false, "Bearer x", f"Bearer sf_{'f' * 12}_"):
        for deed in ("read the feed", "put an item", "make a feed"):
            got = await do(web, deed, "notes", bad)
            answers.add((got.status, got.body, got.header("WWW-Authenticate")))
    assert len(answers) == 1
    status, body, challenge = answers.pop()
    assert (status, BAD_TOKEN in body.decode()) == (401, True)
    assert challenge.startswith("Basic ") and ", Bearer " in challenge
    assert (await do(web, "put an item", "notes", good)).status == 201


@pytest.mark.parametrize("header", ["Digest x", "Bearer", f"Bearer {'x' * 300}", "Basic !", "Basic Ym9i"])
async def test_credentials_that_are_no_token(web: Web, header: str) -> None:
    """[SF-110] Nobody is taken for anonymous who meant to be somebody."""
    await with_notes(web)
    got = await do(web, "read the feed", "notes", header)
    assert (got.status, "WWW-Authenticate" in got.headers) == (401, True)


async def test_a_token_as_the_password_of_basic(web: Web) -> None:
    """[SF-110] For programs that know nothing else."""
    await with_notes(web)
    token = (await bearer(web, ALICE, TokenScope.PUBLISH)).removeprefix("Bearer ")
    basic = base64.b64encode(f"anybody:{token}".encode()).decode()
    assert (await do(web, "put an item", "notes", f"Basic {basic}")).status == 201


async def test_what_is_published_with_a_token_is_its_jids(web: Web) -> None:
    """[SF-110] The publisher is the token's JID: another one may not replace its item, and it may."""
    await with_notes(web, publish_model="open")
    bob, alice = await bearer(web, BOB, TokenScope.PUBLISH), await bearer(web, ALICE, TokenScope.PUBLISH)
    assert (await do(web, "put an item", "notes", bob)).status == 201
    assert (await do(web, "put an item", "notes", bob)).status == 200
    carol = await bearer(web, "carol@example.org/x", TokenScope.PUBLISH)
    assert (await do(web, "put an item", "notes", carol)).status == 403
    assert (await do(web, "put an item", "notes", alice)).status == 200
