"""The pages of the web administration: what they show to whom, and what their forms do."""

import html
import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import pytest_asyncio
import structlog
from lxml import etree

from smartfeeds.app.sides import all_resources
from smartfeeds.core.consumers import PUSH, Consumer, Failure
from smartfeeds.core.token import TokenScope
from smartfeeds.features.administration.log_list import LOG
from smartfeeds.features.administration.plots import axis_top
from smartfeeds.features.administration.tables import tabs_of
from smartfeeds.service import node_people
from smartfeeds.service.consumer_requests import CONSUMERS
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from smartfeeds.telemetry import set_up_logging
from support.bearer import bearer
from support.browsing import sign_in
from support.component import ALICE, BOB, CAROL, EVE, NS, bare
from support.features import FEATURE_NAMES
from support.web import Got, Web, WebStarter

FORM = "application/x-www-form-urlencoded"
ZOE = "zoe@example.org/desk"  # an admin of the service
FEED, MEMBERS, SUBSCRIPTIONS = "/admin/feeds/notes/", "/admin/members/notes/", "/admin/subscriptions/notes/"
LISTS = [
    *("/admin/", "/admin/feeds/", "/admin/tokens/", "/admin/consumers/"),
    *(["/admin/mirrors/"] if "mirrors" in FEATURE_NAMES else []),
    *(["/admin/enclosures/"] if "prefetch" in FEATURE_NAMES else []),
]
NODE_PAGES = [FEED, MEMBERS, SUBSCRIPTIONS]
NAMES = ["a/b", "a//b", "...", "quote\"d 'x", "übung", "\u05d0\u05d1\u05d2", "news?category=x", "<b>&", "a%2Fb"]
# The forms that change something, by page.
CHANGES = [
    (FEED, {"action": "configure", "title": "x"}),
    (FEED, {"action": "delete", "confirm": "notes"}),
    (MEMBERS, {"action": "affiliate", "jid": "bob@example.org", "affiliation": "owner"}),
    (SUBSCRIPTIONS, {"action": "unsubscribe", "jid": "carol@example.org"}),
    ("/admin/feeds/", {"action": "create", "name": "new"}),
    ("/admin/tokens/", {"action": "create", "feed": "notes", "scope": "read"}),
    ("/admin/consumers/", {"action": "retry", "consumer": ""}),
]


async def test_tabs_are_the_lists_that_the_service_has(zoes: Web) -> None:
    """A list that leaves with its feature takes its tab along."""

    async def links(path: str, which: str = "") -> list[str]:
        page = etree.fromstring((await see(zoes, ZOE, path)).body, etree.HTMLParser())
        return [str(link) for link in page.xpath(f"//nav[@class='views']/a{which}/@href")]

    shown = await links("/admin/")
    tabs = [path for path, _title in tabs_of(all_resources())]
    assert shown == ["/admin/", *tabs, "/admin/log/"] and set(LISTS) <= set(shown)
    for path in shown:
        assert await links(path, "[@aria-current='page']") == [path]
    assert [path for path, _title in tabs_of((CONSUMERS, node_people.MEMBERS, LOG))] == ["/admin/consumers/"]


async def test_navigation_leads_admins_to_the_administration(zoes: Web) -> None:
    """Owners find the link on the page of their account, as admins with few rights do."""

    async def leads(user: str, scope: TokenScope = TokenScope.ADMIN, feed: str = "*") -> bool:
        got = await (await sign_in(zoes, user, scope, feed)).get("/", "text/html")
        both = etree.fromstring(got.body, etree.HTMLParser()).xpath("//nav[@class='places']")
        links = [places.xpath("a/@href") for places in both]
        assert len(links) == 2 and links[0] == links[1], "in the bar, and in its menu"
        return "/admin/" in links[0]

    assert await leads(ZOE)
    assert not await leads(ALICE)
    assert not await leads(ZOE, TokenScope.PUBLISH)
    assert not await leads(ZOE, feed="notes")


@pytest.fixture(scope="module")
def shared_settings() -> dict[str, Any]:
    return {"pubsub": {"admins": [bare(ZOE)], "creators": [bare(ALICE)]}}


@pytest_asyncio.fixture(loop_scope="module")
async def zoes(shared_web: Web) -> Web:
    """The component of the file, whose admin is Zoe."""
    return await with_notes(shared_web)


@pytest.fixture
async def zoes_own(start_web: WebStarter, shared_settings: dict[str, Any]) -> Web:
    """A component as `zoes`, for one test."""
    return await with_notes(await start_web(**shared_settings))


async def with_notes(web: Web) -> Web:
    """Makes the closed feed notes of Alice, which Carol follows."""
    await web.component.create(ALICE, "notes", access_model="whitelist", title="Notes of Alice")
    await web.component.affiliate(ALICE, "notes", CAROL, "member")
    await web.component.subscribe(CAROL, "notes")
    return web


async def admin_of(web: Web, user: str) -> str:
    return await bearer(web, user, TokenScope.ADMIN)


async def see(web: Web, user: str, path: str) -> Got:
    """A page as the browser of a user gets it."""
    return await web.get(path, "text/html", Authorization=await admin_of(web, user))


async def send(web: Web, user: str, path: str, fields: dict[str, Any], **headers: str) -> Got:
    """Sends a form as the browser of a user does."""
    headers = {"Sec_Fetch_Site": "same-origin", "Accept": "text/html", "Content_Type": FORM, **headers}
    return await web.ask(
        "POST", path, urlencode(fields, doseq=True).encode(), Authorization=await admin_of(web, user), **headers
    )


def table(got: Got) -> list[list[str]]:
    """The texts of the rows of a page with one table."""
    root = etree.fromstring(got.body, etree.HTMLParser())
    rows = root.xpath("//table[1]/tbody/tr")
    return [[" ".join("".join(cell.itertext()).split()) for cell in row.xpath("th|td")] for row in rows]


def values(got: Got, form: int) -> dict[str, str]:
    """What a browser would send with a form of a page if nobody changed anything."""
    (root,) = etree.fromstring(got.body, etree.HTMLParser()).xpath(f"(//main//form)[{form}]")
    fields = {one.get("name"): one.get("value", "") for one in root.xpath(".//input[@type != 'checkbox' or @checked]")}
    fields |= {one.get("name"): one.text or "" for one in root.xpath(".//textarea")}
    fields |= {one.getparent().get("name"): one.get("value") for one in root.xpath(".//option[@selected]")}
    return fields


async def options(web: Web) -> dict[str, list[str]]:
    return await web.component.config(ALICE, "notes")


@pytest.mark.parametrize("user", [ALICE, ZOE])
async def test_pages_are_for_owners_and_admins(zoes: Web, user: str) -> None:
    for path in [*LISTS, *NODE_PAGES]:
        got = await see(zoes, user, path)
        assert (got.status, got.header("Cache-Control")) == (200, "no-store"), path
        assert "script-src 'self'" in got.header("Content-Security-Policy")
        assert "style=" not in got.text and "<script>" not in got.text
    assert (await see(zoes, user, "/admin/log/")).status == (200 if user is ZOE else 403)


async def test_pages_are_for_nobody_else(zoes: Web) -> None:
    """[SF-110] Strangers, members and tokens that are not enough; a closed feed is not found out."""
    for path in [*LISTS, *NODE_PAGES, "/admin/log/"]:
        assert (await zoes.get(path, "text/html")).status == 401
        assert (await see(zoes, EVE, path)).status == 403
        assert (await see(zoes, CAROL, path)).status == 403
        publisher = await bearer(zoes, ALICE, TokenScope.PUBLISH)
        assert (await zoes.get(path, "text/html", Authorization=publisher)).status == 403
        other = path.replace("notes", "none")
        # The link to sign in leads back to the path.
        hidden, missing = [(await see(zoes, EVE, name)).body for name in (path, other)]
        assert missing == hidden.replace(b"notes", b"none")


async def test_an_owner_of_another_feed_sees_only_its_own(zoes: Web) -> None:
    await zoes.component.affiliate(ALICE, "notes", BOB, "outcast")
    await zoes.component.older_nodes(["bobs"], BOB)
    assert [row[0] for row in table(await see(zoes, BOB, "/admin/feeds/"))] == ["bobs"]
    for path, fields in CHANGES[:4]:
        assert (await see(zoes, BOB, path)).status in (403, 404)
        assert (await send(zoes, BOB, path, fields)).status in (403, 404)
    assert [row[0] for row in table(await see(zoes, ZOE, "/admin/feeds/"))] == ["bobs", "notes"]


@pytest.mark.parametrize(("path", "fields"), CHANGES)
async def test_forms_come_from_our_own_pages(zoes: Web, path: str, fields: dict[str, str]) -> None:
    """Another site cannot make the browser of an admin send a form."""
    before = [(await see(zoes, ZOE, one)).body for one in (*NODE_PAGES, "/admin/feeds/")]
    for site in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "", "Origin": "https://evil.example"}):
        assert (await send(zoes, ZOE, path, fields, **site)).status == 403
    assert (await send(zoes, ZOE, path, fields, Content_Type="text/plain")).status == 415
    assert [(await see(zoes, ZOE, one)).body for one in (*NODE_PAGES, "/admin/feeds/")] == before


@pytest.mark.parametrize(("path", "fields"), CHANGES)
async def test_forms_of_a_session_carry_its_form_token(zoes: Web, path: str, fields: dict[str, str]) -> None:
    """A form without the form token, or with that of another session, changes nothing."""
    mine, other = await sign_in(zoes, ZOE), await sign_in(zoes, ZOE)
    assert values(await mine.get(path, "text/html"), 1)["csrf"] == mine.csrf
    before = [table(await see(zoes, ZOE, one)) for one in (MEMBERS, SUBSCRIPTIONS, "/admin/feeds/")]
    headers = {"Cookie": mine.cookie, "Sec_Fetch_Site": "same-origin", "Content_Type": FORM}
    for token in ({}, {"csrf": ""}, {"csrf": other.csrf}):
        got = await zoes.ask("POST", path, urlencode({**fields, **token}).encode(), "text/html", **headers)
        assert got.status == 403
    assert [table(await see(zoes, ZOE, one)) for one in (MEMBERS, SUBSCRIPTIONS, "/admin/feeds/")] == before
    assert "title" not in fields or (await options(zoes))["title"] == ["Notes of Alice"]


@pytest.mark.parametrize(("path", "fields"), CHANGES[1:6])
async def test_forms_of_a_session_do_what_they_say(zoes: Web, path: str, fields: dict[str, str]) -> None:
    got = await (await sign_in(zoes, ALICE)).post(path, urlencode(fields))
    assert got.status in (201, 303), got.text


async def test_a_session_that_may_only_read_administers_nothing(zoes: Web) -> None:
    reader = await sign_in(zoes, ALICE, TokenScope.READ)
    for path, fields in CHANGES:
        assert (await reader.get(path, "text/html")).status == 403
        assert (await reader.post(path, urlencode(fields))).status == 403


async def test_a_feed_is_created_configured_and_deleted(zoes: Web) -> None:
    made = await send(
        zoes, ALICE, "/admin/feeds/", {"action": "create", "name": "new", "title": "N", "access_model": "open"}
    )
    assert (made.status, made.header("Location")) == (303, "/admin/feeds/new/?done=created")
    page = await see(zoes, ALICE, made.header("Location"))
    assert "Created." in page.text
    form = values(page, 1)
    assert (form["title"], form["access_model"], form["notify_delete"]) == ("N", "open", "true")

    del form["notify_delete"]
    changed = await send(zoes, ALICE, "/admin/feeds/new/", {**form, "title": 'T "<b>', "contact": "a@x\r\n\r\nb@x"})
    assert (changed.status, changed.header("Location")) == (303, "/admin/feeds/new/?done=saved")
    form = values(await see(zoes, ALICE, "/admin/feeds/new/"), 1)
    assert (form["title"], form["contact"], "notify_delete" in form) == ('T "<b>', "a@x\nb@x", False)

    wrong = await send(zoes, ALICE, "/admin/feeds/new/", {"action": "delete", "confirm": "notes"})
    assert (wrong.status, "type its name" in wrong.text) == (400, True)
    gone = await send(zoes, ALICE, "/admin/feeds/new/", {"action": "delete", "confirm": "new"})
    assert (gone.status, gone.header("Location")) == (303, "/admin/feeds/?done=deleted")
    assert (await see(zoes, ALICE, "/admin/feeds/new/")).status == 404


async def test_a_refused_form_keeps_what_was_written(zoes: Web) -> None:
    form = {**values(await see(zoes, ALICE, FEED), 1), "title": "My new title", "language": "not a language"}
    got = await send(zoes, ALICE, FEED, form)
    assert (got.status, "is not a language tag" in html.unescape(got.text)) == (406, True)
    assert values(got, 1)["title"] == "My new title"
    assert (await options(zoes))["title"] == ["Notes of Alice"]


async def test_a_form_does_not_overwrite_the_change_of_somebody_else(zoes: Web) -> None:
    form = {**values(await see(zoes, ALICE, FEED), 1), "title": "mine"}
    await zoes.component.configure(ALICE, "notes", title="theirs")
    got = await send(zoes, ALICE, FEED, form)
    assert (got.status, "have changed" in got.text) == (412, True)
    assert (await options(zoes))["title"] == ["theirs"]
    assert (await send(zoes, ALICE, FEED, values(got, 1))).status == 303
    assert (await options(zoes))["title"] == ["mine"]


async def test_members_are_added_changed_and_removed(zoes: Web) -> None:
    got = await send(
        zoes, ALICE, MEMBERS, {"action": "affiliate", "jid": " Bob@example.org ", "affiliation": "publisher"}
    )
    assert got.header("Location") == f"{MEMBERS}?done=saved"
    rows = {row[0]: row[1] for row in table(await see(zoes, ALICE, MEMBERS))}
    assert rows == {bare(ALICE): "owner", bare(BOB): "publisher", bare(CAROL): "member"}
    page = await see(zoes, ALICE, MEMBERS)
    assert values(page, 2) == {"action": "affiliate", "jid": bare(BOB)}
    assert (await send(zoes, ALICE, MEMBERS, values(page, 2))).header("Location") == f"{MEMBERS}?done=removed"
    assert bare(BOB) not in {row[0] for row in table(await see(zoes, ALICE, MEMBERS))}
    last = await send(zoes, ALICE, MEMBERS, {"action": "affiliate", "jid": bare(ALICE)})
    assert (last.status, "last owner" in last.text) == (409, True)
    assert (await send(zoes, ALICE, MEMBERS, {"action": "affiliate", "jid": "bob@example.org/x"})).status == 400


async def test_subscriptions_are_ended(zoes: Web) -> None:
    await zoes.component.events(bare(CAROL))
    page = await see(zoes, ALICE, SUBSCRIPTIONS)
    assert [row[0] for row in table(page)] == [bare(CAROL)]
    assert (await send(zoes, ALICE, SUBSCRIPTIONS, values(page, 1))).header("Location").endswith("?done=removed")
    (event,) = await zoes.component.events(bare(CAROL))
    assert event.xpath("string(ev:event/ev:subscription/@subscription)", namespaces=NS) == "none"
    assert (await send(zoes, ALICE, SUBSCRIPTIONS, values(page, 1))).status == 404


async def test_a_token_is_shown_once_and_revoked(zoes_own: Web) -> None:
    """In the component of the file the tokens of the other tests fill more than a page."""
    fields = {"action": "create", "feed": "notes", "scope": "read", "expires": "", "label": "<reader>"}
    got = await send(zoes_own, ALICE, "/admin/tokens/", fields)
    (text,) = re.findall(r"sf_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", got.text)
    assert (got.status, got.header("Cache-Control")) == (201, "no-store")
    assert (await zoes_own.get("/feeds/notes.json", Authorization=f"Bearer {text}")).status == 200
    page = await see(zoes_own, ALICE, "/admin/tokens/")
    token_id = text.split("_")[1]
    assert text not in page.text and [row[1] for row in table(page) if row[0] == token_id] == ["<reader>"]
    assert (await send(zoes_own, ALICE, "/admin/tokens/", {"action": "revoke", "id": token_id})).status == 303
    assert (await zoes_own.get("/feeds/notes.json", Authorization=f"Bearer {text}")).status == 401
    for wrong, status in (({"feed": "none"}, 403), ({"scope": "x"}, 400), ({"expires": "soon"}, 400)):
        assert (await send(zoes_own, ALICE, "/admin/tokens/", {**fields, **wrong})).status == status


async def test_consumers_show_their_failure_and_admins_retry_them(zoes: Web) -> None:
    def fail(tx: WriteTx, context: Context) -> None:
        node = tx.node("notes")
        assert node is not None
        tx.set_wait(Consumer(node.node_no, PUSH), Failure(3, context.now_us, None, "<gone> away"))

    await zoes.component.app.service.write(fail)
    (row,) = table(await see(zoes, ALICE, "/admin/consumers/"))
    assert row == [PUSH, "notes", "stopped", "0", "0", "3", "", "<gone> away"]
    page = await see(zoes, ZOE, "/admin/consumers/")
    assert (await send(zoes, ALICE, "/admin/consumers/", values(page, 1))).status == 403
    assert (await send(zoes, ZOE, "/admin/consumers/", values(page, 1))).status == 303
    assert table(await see(zoes, ZOE, "/admin/consumers/"))[0][6] == "now"


async def test_errors_of_the_log_are_shown_to_admins(zoes: Web) -> None:
    set_up_logging("json", "info")
    structlog.get_logger().warning("mirror_failed", reason="<b>no</b>", token="sf_0123456789ab_" + "x" * 43)
    row = table(await see(zoes, ZOE, "/admin/log/"))[0]
    assert row[1:] == ["warning", "mirror_failed", "reason: <b>no</b>, token: (hidden)"]


@pytest.mark.parametrize(
    ("most", "top"),
    [(0, 2), (0.3, 2), (2, 2), (2.1, 4), (7, 8), (9, 10), (10, 10), (11, 20), (79, 80), (123_456, 200_000)],
)
def test_axes_end_with_a_round_number_whose_half_is_whole(most: float, top: int) -> None:
    assert axis_top(most) == top


async def test_overview_has_plots_and_the_same_numbers(zoes_own: Web) -> None:
    """Two publishes and a pull in one minute; owners see no numbers of the whole service."""
    component = zoes_own.component
    component.app.recent.take()
    for item_id in ("a", "b"):
        await component.publish(ALICE, "notes", item_id)
    await component.item_ids(ALICE, "notes")
    await component.settle()
    component.clock.advance(61)
    component.app.recent.take()
    page = await see(zoes_own, ZOE, "/admin/")
    rows = table(page)
    assert len(rows) == 48 and rows[0][1:] == ["2", "2", "1", "0.0"]
    assert all(row[1:4] == ["0", "0", "0"] for row in rows[1:])
    bars = etree.fromstring(page.body, etree.HTMLParser()).xpath("//main//svg/rect/title/text()")
    assert [text.rpartition(": ")[2] for text in bars] == ["2", "2", "1"]
    # Places along the time axis are shares of the width, so that the letters of a narrow plot keep their size.
    published = etree.fromstring(page.body, etree.HTMLParser()).xpath("//main//figure")[0]
    assert published.xpath(".//*[@class='scale']/text()") == ["0", "1", "2"]
    hours = published.xpath(".//*[local-name()='text'][@data-time]")
    assert len(hours) >= 5 and {hour.text[2:] for hour in hours} == {":00"}
    assert all(hour.get("x").endswith("%") for hour in hours)
    assert published.xpath(".//svg/@viewbox | .//svg/@viewBox") == []
    assert "in half an hour" in published.xpath("string(p)")
    owners = etree.fromstring((await see(zoes_own, ALICE, "/admin/")).body, etree.HTMLParser())
    assert owners.xpath("//main//svg") == []


@pytest.mark.parametrize("name", NAMES)
async def test_names_of_every_kind_have_pages(zoes: Web, name: str) -> None:
    made = await send(zoes, ALICE, "/admin/feeds/", {"action": "create", "name": name})
    assert made.status == 303
    path = made.header("Location").partition("?")[0]
    page = await see(zoes, ALICE, path)
    assert page.status == 200 and html.escape(name, quote=False) in page.text.replace("&#34;", '"').replace(
        "&#39;", "'"
    )
    links = etree.fromstring(page.body, etree.HTMLParser()).xpath("//p[@class='count']/a/@href")
    for link in links:
        assert (await see(zoes, ALICE, link)).status == 200, link
    form = {**values(page, 1), "title": name}
    assert (await send(zoes, ALICE, path, form)).status == 303
    assert (await send(zoes, ALICE, path, {"action": "delete", "confirm": name})).status == 303
    assert quote(name) not in [row[0] for row in table(await see(zoes, ALICE, "/admin/feeds/"))]


async def test_ten_thousand_feeds_have_pages(zoes_own: Web) -> None:
    """A page shows fifty of them and leads to the next one."""
    await zoes_own.component.older_nodes([f"n{number:05}" for number in range(10_000)], ALICE)
    seen, path = 0, "/admin/feeds/"
    for _ in range(3):
        page = await see(zoes_own, ZOE, path)
        assert len(table(page)) == 50 and "10\u202f001" in page.text
        seen += 50
        (path,) = etree.fromstring(page.body, etree.HTMLParser()).xpath("//a[@rel='next']/@href")
    assert path == "/admin/feeds/?after=n00149"


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/admin/feeds/", {"action": "explode"}, 400),
        ("/admin/feeds/", {}, 400),
        ("/admin/feeds/", {"action": "create", "name": " "}, 400),
        ("/admin/feeds/", {"action": ["create", "create"], "name": "x"}, 400),
        ("/admin/feeds/", {"action": "create", "name": "notes"}, 409),
        ("/admin/feeds/", {"action": "create", "name": "x", "access_model": "roster"}, 400),
        (MEMBERS, {"action": "affiliate", "jid": "@@", "affiliation": "owner"}, 400),
        (MEMBERS, {"action": "affiliate", "jid": "b@x", "affiliation": "king"}, 400),
        ("/admin/tokens/", {"action": "revoke", "id": "none"}, 404),
    ],
)
async def test_a_wrong_form_is_explained(zoes: Web, path: str, fields: dict[str, Any], status: int) -> None:
    got = await send(zoes, ALICE, path, fields)
    assert (got.status, got.header("Content-Type")) == (status, "text/html; charset=utf-8")
