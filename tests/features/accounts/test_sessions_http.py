"""Sessions over HTTP: who a cookie stands for, which changes it allows, and that nothing of one reader reaches another.

"Here" is a page of the service, as the browser states it in `Sec-Fetch-Site` or `Origin`.
"""

import asyncio
import json
from typing import Any

import pytest
import pytest_asyncio

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.token import TokenScope
from smartfeeds.features.accounts import rows as account_rows
from smartfeeds.features.accounts.session import IDLE_S, RENEWED_S, form_token
from smartfeeds.features.accounts.sessions import EndSessions
from smartfeeds.features.accounts.tokens import revoke_token
from support.bearer import bearer
from support.browsing import FORM, SignedIn, sign_in
from support.component import ALICE, BOB, DOMAIN, bare, entry
from support.raw import connected, request
from support.routes import TABLE
from support.web import Web, WebStarter

pytestmark = pytest.mark.shared

ATOM = "application/atom+xml"


@pytest_asyncio.fixture(loop_scope="module")
async def closed(web: Web) -> Web:
    """A feed that Alice alone reads, and one for everybody."""
    await web.component.create(ALICE, "closed", access_model="whitelist", title="Closed")
    await web.component.publish(ALICE, "closed", "secret")
    await web.component.create(ALICE, "open")
    await web.component.publish(ALICE, "open", "a")
    return web


async def test_session_of_a_token_sees_and_ends_its_own_only(web: Web) -> None:
    """A token with few rights does not sign its owner out; with all rights it does."""
    texts = [await bearer(web, ALICE, scope) for scope in (TokenScope.READ, TokenScope.ADMIN)]
    ids = [text.split("_")[1] for text in texts]
    owner = await sign_in(web, ALICE)
    reader = await sign_in(web, ALICE, TokenScope.READ, token_id=ids[0])
    admin = await sign_in(web, ALICE, token_id=ids[1])
    page = (await reader.get("/account", "text/html")).text
    assert (reader.session_id in page, owner.session_id in page) == (True, False)
    assert (await reader.post("/account", f"session={owner.session_id}")).status == 404
    assert (await reader.post("/account", "session=all")).status == 303
    assert [(await one.get("/account")).status for one in (reader, owner, admin)] == [303, 200, 200]
    assert owner.session_id in (await admin.get("/account", "text/html")).text
    await admin.post("/account", "session=all")
    assert [(await one.get("/account")).status for one in (owner, admin)] == [303, 303]


@pytest.mark.needs("administration")
async def test_account_shows_the_administration_to_its_users(web: Web) -> None:
    """The pages of the administration refuse every session with fewer rights."""
    for scope, feed in ((TokenScope.ADMIN, "*"), (TokenScope.ADMIN, "news"), (TokenScope.READ, "*")):
        browser = await sign_in(web, ALICE, scope, feed)
        page = await browser.get("/account", "text/html")
        allowed = (await browser.get("/admin/", "text/html")).status == 200
        assert ('href="/admin/"' in page.text, allowed) == (feed == "*" and scope is TokenScope.ADMIN,) * 2


async def end_all(web: Web, user: str) -> None:
    actor = parse_jid(bare(user))
    assert actor is not None
    await web.component.app.service.handle(EndSessions(actor, DOMAIN, None))


async def put(browser: SignedIn, **headers: str) -> int:
    """Publishes an entry by a script of our page, and returns the status."""
    answer = await browser.change("PUT", "/entries/closed/new", entry("x").encode(), Content_Type=ATOM, **headers)
    return answer.status


async def test_session_reads_and_writes_as_its_user(closed: Web) -> None:
    alice, bob = await sign_in(closed, ALICE), await sign_in(closed, BOB)
    assert (await alice.get("/feeds/closed/?timeout=0")).status == 200
    assert (await bob.get("/feeds/closed/?timeout=0")).status == 403
    assert await put(alice) == 201
    assert await put(bob) == 403


async def test_session_has_the_scope_and_the_feed_of_its_token(closed: Web) -> None:
    reader = await sign_in(closed, ALICE, TokenScope.READ)
    elsewhere = await sign_in(closed, ALICE, TokenScope.ADMIN, "open")
    assert (await reader.get("/feeds/closed/?timeout=0")).status == 200
    assert await put(reader) == 403
    assert (await elsewhere.get("/feeds/closed/?timeout=0")).status == 403
    assert await put(elsewhere) == 403


async def test_ended_session_is_that_of_an_anonymous_reader(closed: Web) -> None:
    """An open feed stays readable, a closed one disappears, and a change asks for a sign-in."""
    alice = await sign_in(closed, ALICE)
    await end_all(closed, ALICE)
    assert (await alice.get("/feeds/open/?timeout=0")).status == 200
    assert (await alice.get("/feeds/closed/?timeout=0")).status == 404
    assert await put(alice) == 401


async def test_authorization_header_wins_over_the_cookie(closed: Web) -> None:
    alice = await sign_in(closed, ALICE)
    token = await bearer(closed, BOB, TokenScope.READ)
    assert (await alice.get("/feeds/closed/?timeout=0", Authorization=token)).status == 403
    assert (await alice.get("/feeds/open/?timeout=0", Authorization="Bearer wrong")).status == 401


async def test_text_of_a_session_is_no_bearer_token(closed: Web) -> None:
    """Otherwise a request could do without the form token."""
    alice = await sign_in(closed, ALICE)
    assert (await closed.get("/feeds/open/?timeout=0", Authorization=f"Bearer {alice.text}")).status == 401


async def test_requests_keep_a_session_alive(closed: Web) -> None:
    alice = await sign_in(closed, ALICE)
    for _ in range(3):
        closed.component.clock.advance(IDLE_S - 1)
        assert (await alice.get("/feeds/closed/?timeout=0")).status == 200
    closed.component.clock.advance(IDLE_S)
    assert (await alice.get("/feeds/closed/?timeout=0")).status == 404


async def test_session_is_renewed_once_an_hour(closed: Web) -> None:
    alice = await sign_in(closed, ALICE)
    service = closed.component.app.service

    async def seen_us() -> int:
        session = await service.read(lambda tx, _context: account_rows.session(tx, alice.session_id))
        assert session is not None
        return session.seen_us

    began_us = await seen_us()
    closed.component.clock.advance(RENEWED_S - 1)
    await alice.get("/feeds/closed/?timeout=0")
    assert await seen_us() == began_us
    closed.component.clock.advance(1)
    await alice.get("/feeds/closed/?timeout=0")
    assert await seen_us() == began_us + RENEWED_S * 1_000_000


@pytest.mark.parametrize(
    "headers",
    [
        {"X_CSRF_Token": ""},
        {"X_CSRF_Token": "forged"},
        {"X_CSRF_Token": form_token("sfs_another_session")},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "none"},
        {"Sec_Fetch_Site": ""},
        {"Sec_Fetch_Site": "", "Origin": "https://evil.example"},
        {"Sec_Fetch_Site": "", "Origin": "null"},
    ],
    ids=str,
)
async def test_change_by_cookie_needs_the_form_token_and_a_page_of_ours(closed: Web, headers: dict[str, str]) -> None:
    alice = await sign_in(closed, ALICE)
    assert await put(alice, **headers) in (401, 403)
    assert (await alice.get("/entries/closed/new")).status == 404
    assert await put(alice) == 201


async def test_origin_is_enough_for_browsers_without_fetch_metadata(closed: Web) -> None:
    alice = await sign_in(closed, ALICE)
    assert await put(alice, Sec_Fetch_Site="", Origin=closed.origin) == 201


async def test_form_token_of_one_user_does_not_serve_another(closed: Web) -> None:
    alice, bob = await sign_in(closed, ALICE), await sign_in(closed, BOB)
    assert await put(alice, X_CSRF_Token=bob.csrf) == 403


@pytest.mark.needs("conflicts")
async def test_form_carries_its_token_as_a_field(closed: Web) -> None:
    """The field counts; the form reaches its handler, which here rejects a feed without conflicts."""
    alice = await sign_in(closed, ALICE)
    assert (await alice.post("/conflicts/closed/secret", "keep=x")).status == 404
    headers = {"Cookie": alice.cookie, "Sec_Fetch_Site": "same-origin", "Content_Type": FORM}
    for body in (b"keep=x", b"keep=x&csrf=", b"keep=x&csrf=forged"):
        assert (await closed.ask("POST", "/conflicts/closed/secret", body, **headers)).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
        {"Origin": "https://evil.example"},
    ],
    ids=str,
)
async def test_cookie_does_not_count_in_requests_of_other_pages(closed: Web, headers: dict[str, str]) -> None:
    """The other page receives what everybody may read, and a closed feed does not exist for it."""
    alice = await sign_in(closed, ALICE)
    assert (await closed.get("/feeds/closed/?timeout=0", Cookie=alice.cookie, **headers)).status == 404
    public = await closed.get("/feeds/open/?timeout=0", Cookie=alice.cookie, **headers)
    assert (public.status, public.header("Access-Control-Allow-Origin")) == (200, "*")


async def test_link_from_another_page_opens_a_closed_feed(closed: Web) -> None:
    alice = await sign_in(closed, ALICE)
    headers = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert (await closed.get("/feeds/closed/", "text/html", Cookie=alice.cookie, **headers)).status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/feeds/open/", "/feeds/open.rss", "/entries/open/a", "/feeds/"),
        pytest.param("/conflicts/open/", marks=pytest.mark.needs("conflicts")),
    ],
)
@pytest.mark.parametrize("accept", ["text/html, */*;q=0.1", "*/*"])
async def test_no_shared_cache_stores_what_a_session_read(closed: Web, path: str, accept: str) -> None:
    alice = await sign_in(closed, ALICE)
    answer = await alice.get(f"{path}{'?timeout=0' if path == '/feeds/open/' else ''}", accept)
    assert answer.status == 200
    directives = answer.header("Cache-Control")
    assert "private" in directives or "no-store" in directives
    if "html" in answer.header("Content-Type"):
        assert "Cookie" in answer.header("Vary")


async def test_page_of_one_reader_does_not_reach_another(closed: Web) -> None:
    """Pages are cached by reader: each has its own form token, and an anonymous reader none."""
    alice, bob = await sign_in(closed, ALICE), await sign_in(closed, BOB)
    other = await sign_in(closed, ALICE)
    tags = set()
    for _ in range(2):
        for browser in (alice, bob, other):
            page = await browser.get("/feeds/open/", "text/html")
            tags.add(page.header("ETag"))
            assert page.status == 200
            assert not any(
                one.csrf in page.text or one.text in page.text for one in (alice, bob, other) if one is not browser
            )
        page = await closed.get("/feeds/open/", "text/html")
        tags.add(page.header("ETag"))
        assert not any(text in page.text for one in (alice, bob) for text in (one.csrf, one.text, "alice@"))
    assert len(tags) == 4


async def test_stream_and_held_pull_end_with_the_session(start_web: Any) -> None:
    web = await start_web(http={"heartbeat_s": 3_600})
    await web.component.create(ALICE, "closed", access_model="whitelist")
    alice = await sign_in(web, ALICE)
    held = asyncio.create_task(alice.get("/feeds/closed/"))
    headers = {"Cookie": alice.cookie, "Accept": "text/event-stream", "Sec-Fetch-Site": "same-origin"}
    async with web.session.get(f"{web.origin}/feeds/closed/", headers=headers) as stream:
        await web.holding(2)
        await end_all(web, ALICE)
        await web.component.publish(ALICE, "closed", "secret")
        text = (await stream.content.read()).decode()
    assert (await held).status == 401
    assert "event: error" in text and "secret" not in text
    assert json.loads(text.rpartition("data: ")[2])["status"] == 401


async def test_session_of_a_revoked_token_ends(closed: Web) -> None:
    token_id = (await bearer(closed, ALICE, TokenScope.READ)).split("_")[1]
    alice = await sign_in(closed, ALICE, TokenScope.READ, token_id=token_id)
    assert (await alice.get("/feeds/closed/?timeout=0")).status == 200
    await closed.component.app.service.write(lambda tx, context: revoke_token(tx, context, token_id))
    assert (await alice.get("/feeds/closed/?timeout=0")).status == 404


FORMS = [route.path for route in TABLE if route.operation.for_people and route.operation.body]


@pytest.mark.parametrize("path", FORMS)
async def test_every_form_bounds_its_body(start_web: WebStarter, path: str) -> None:
    """A page says that a body is too large (413), or that it did not arrive in time (408)."""
    web = await start_web(http={"first_request_s": 0.2}, pubsub={"admins": [bare(ALICE)]})
    web.wait_for_heads()
    await web.component.create(ALICE, "notes")
    browser = await sign_in(web, ALICE)
    target = path.format(name="notes", id="a")
    large = await browser.post(target, "text=" + "x" * 1_000_000)
    assert (large.status, large.header("Content-Type")) == (413, "text/html; charset=utf-8")
    async with connected(web.port) as raw:
        headers = (f"Cookie: {browser.cookie}", f"Content-Type: {FORM}", "Content-Length: 5", "Accept: text/html")
        raw.say(request(target, *headers, "Sec-Fetch-Site: same-origin", method="POST"))
        late = await raw.hear()
    assert (late.status, late.headers["content-type"]) == (408, "text/html; charset=utf-8")
