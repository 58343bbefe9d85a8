"""Administration over HTTP by programs: options, members, subscriptions, tokens, consumers, mirrors, statistics."""

import json
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from smartfeeds.core.consumers import PUSH, Consumer, Failure
from smartfeeds.core.token import TokenScope
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from support.bearer import bearer
from support.component import ALICE, BOB, CAROL, EVE, NS, bare
from support.features import FEATURE_NAMES
from support.web import Got, Web

pytestmark = pytest.mark.shared

JSON = "application/json"
PATCH = "application/merge-patch+json"
ZOE = "zoe@example.org/desk"  # an admin of the service
NAMES = ["a/b", "a//b", "...", "quote\"d 'x", "übung", "\u05d0\u05d1\u05d2", "news?category=x", "<b>&", "a%2Fb"]
# What may be done with the feed notes: method, path, body.
NODE_DEEDS = {
    "read the options": ("GET", "/options/notes/", None),
    "configure": ("PATCH", "/feeds/notes/", {"title": "x"}),
    "list the members": ("GET", "/members/notes/", None),
    "affiliate": ("PUT", "/members/notes/bob@example.org", {"affiliation": "owner"}),
    "disaffiliate": ("DELETE", "/members/notes/carol@example.org", None),
    "list the subscriptions": ("GET", "/subscriptions/notes/", None),
    "subscribe": ("PUT", "/subscriptions/notes/alice@example.org", None),
    "unsubscribe": ("DELETE", "/subscriptions/notes/carol@example.org", None),
}
LISTS = ("tokens", "consumers", *FEATURE_NAMES.intersection(["mirrors"]))
LIST_DEEDS = {path: ("GET", f"/{path}/", None) for path in LISTS}
ADMIN_DEEDS = {
    "statistics": ("GET", "/statistics", None),
    "retry": ("POST", "/consumers/", {"consumer": "*"}),
}


@pytest.fixture(scope="module")
def shared_settings() -> dict[str, Any]:
    return {"pubsub": {"admins": [bare(ZOE)], "creators": ["example.org"], "closed_nodes": "hide"}}


@pytest_asyncio.fixture(loop_scope="module")
async def zoes(web: Web) -> Web:
    """A component whose admin is Zoe, with the closed feed notes of Alice, which Carol follows."""
    await web.component.create(ALICE, "notes", access_model="whitelist")
    await web.component.affiliate(ALICE, "notes", CAROL, "member")
    await web.component.subscribe(CAROL, "notes")
    return web


async def ask(web: Web, authorization: str, method: str, path: str, body: Any = None, **headers: str) -> Got:
    if body is not None:
        headers.setdefault("Content_Type", JSON)
    if authorization:
        headers["Authorization"] = authorization
    return await web.ask(method, path, None if body is None else json.dumps(body).encode(), **headers)


async def admin_of(web: Web, user: str, feed: str = "*") -> str:
    return await bearer(web, user, TokenScope.ADMIN, feed)


@pytest.mark.parametrize("deed", NODE_DEEDS)
@pytest.mark.parametrize("user", [ALICE, ZOE])
async def test_owners_and_admins_of_the_service_manage_a_node(zoes: Web, deed: str, user: str) -> None:
    """[SF-110] With a token for the feed or for all feeds."""
    for feed in ("notes", "*"):
        got = await ask(zoes, await admin_of(zoes, user, feed), *NODE_DEEDS[deed])
        if (deed, feed) == ("unsubscribe", "*"):
            assert got.status == 404  # done before
        elif (deed, user) == ("subscribe", ZOE):
            assert got.status == 403  # nobody but the user, unless the operator allows it
        else:
            assert got.status in (200, 204), got.text


@pytest.mark.parametrize("deed", NODE_DEEDS)
async def test_nobody_else_manages_a_node(zoes: Web, deed: str) -> None:
    """[SF-110] [SF-111] Members get 403; for strangers a hidden feed does not exist; other tokens are not enough."""
    method, path, body = NODE_DEEDS[deed]
    before = await state(zoes)
    refusals = {
        await admin_of(zoes, CAROL): 403,
        await admin_of(zoes, BOB): 404,
        await admin_of(zoes, EVE): 404,
        await admin_of(zoes, ALICE, "other"): 403,
        await bearer(zoes, ALICE, TokenScope.PUBLISH): 403,
        await bearer(zoes, ALICE, TokenScope.READ): 403,
        "": 401,
        "Bearer unknown": 401,
    }
    for authorization, status in refusals.items():
        got = await ask(zoes, authorization, method, path, body)
        assert got.status == status, (authorization, got.text)
    missing = await ask(zoes, await admin_of(zoes, BOB), method, path.replace("notes", "none"), body)
    hidden = await ask(zoes, await admin_of(zoes, BOB), method, path, body)
    assert (missing.status, missing.body) == (hidden.status, hidden.body)
    assert await state(zoes) == before


async def state(web: Web) -> tuple[Any, ...]:
    """Everything that these requests can change."""
    token = await admin_of(web, ZOE, "notes")
    paths = ("/options/notes/", "/members/notes/", "/subscriptions/notes/")
    return tuple([(await ask(web, token, "GET", path)).json for path in paths])


@pytest.mark.parametrize("deed", [*LIST_DEEDS, *ADMIN_DEEDS])
async def test_lists_of_the_service_take_a_token_for_all_feeds(zoes: Web, deed: str) -> None:
    method, path, body = (LIST_DEEDS | ADMIN_DEEDS)[deed]
    for authorization, status in {
        await admin_of(zoes, ZOE): 200,
        await admin_of(zoes, ALICE): 200 if deed in LIST_DEEDS else 403,
        await admin_of(zoes, ZOE, "notes"): 403,
        await bearer(zoes, ZOE, TokenScope.PUBLISH): 403,
        "": 401,
    }.items():
        got = await ask(zoes, authorization, method, path, body)
        assert got.status == status, (authorization, got.text)


async def test_patch_changes_the_named_options_and_null_restores_a_default(zoes: Web) -> None:
    """[SF-114] A merge patch (RFC 7396) of the options that PUT takes. Subscribers are notified as over XMPP."""
    token = await admin_of(zoes, ALICE, "notes")
    await ask(zoes, token, "PATCH", "/feeds/notes/", {"description": "d", "notify_config": True})
    await zoes.component.events(bare(CAROL))
    patch = {"title": "Notes", "description": None, "contact": [bare(ALICE)], "max_payload_size": 2_000}
    got = await ask(zoes, token, "PATCH", "/feeds/notes/", patch, Content_Type=PATCH)

    assert got.status == 200
    assert got.header("Content-Location") == f"{zoes.origin}/options/notes/"
    options = (await ask(zoes, token, "GET", "/options/notes/")).json
    assert options == got.json
    assert (options["title"], options["description"], options["notify_config"]) == ("Notes", "", True)
    assert (options["contact"], options["max_payload_size"]) == ([bare(ALICE)], "2000")
    assert (options["access_model"], options["kind"]) == ("whitelist", "feed")
    (event,) = await zoes.component.events(bare(CAROL))
    assert event.xpath("string(ev:event/ev:configuration/@node)", namespaces=NS) == "notes"


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        ({"tilte": "x"}, 400),
        ({"title": {"a": 1}}, 400),
        ([], 400),
        ({"access_model": "roster"}, 400),
        ({"deliver_payloads": "maybe"}, 400),
        ({"deliver_payloads": 0}, 400),
        ({"purge_offline": True}, 406),
        ({"kind": "generic"}, 406),
        ({"title": "x" * 3_000}, 406),
    ],
)
async def test_patch_with_an_error_changes_nothing(zoes: Web, patch: Any, status: int) -> None:
    token = await admin_of(zoes, ALICE)
    before = await state(zoes)
    assert (await ask(zoes, token, "PATCH", "/feeds/notes/", patch)).status == status
    assert await state(zoes) == before
    assert (await ask(zoes, token, "PATCH", "/feeds/notes/", {"kind": "feed"})).status == 200


async def test_patch_with_an_old_tag_changes_nothing(zoes: Web) -> None:
    """If-Match has the tag of the options, which no publish changes (RFC 9110 13.1.1)."""
    token = await admin_of(zoes, ALICE)
    first = (await ask(zoes, token, "GET", "/options/notes/")).header("ETag")
    await zoes.component.publish(ALICE, "notes", "a")
    assert (await ask(zoes, token, "GET", "/options/notes/", If_None_Match=first)).status == 304

    got = await ask(zoes, token, "PATCH", "/feeds/notes/", {"title": "one"}, If_Match=first)
    assert (got.status, got.header("ETag") != first) == (200, True)
    late = await ask(zoes, token, "PATCH", "/feeds/notes/", {"title": "two"}, If_Match=first)
    assert (late.status, late.json["condition"]) == (412, "precondition-not-met")
    for tag, status in ((got.header("ETag"), 200), ("*", 200), (f"W/{first}", 412)):
        assert (await ask(zoes, token, "PATCH", "/feeds/notes/", {"title": tag}, If_Match=tag)).status == status


async def test_members_are_listed_given_and_taken(zoes: Web) -> None:
    token = await admin_of(zoes, ALICE, "notes")
    assert (
        await ask(zoes, token, "PUT", "/members/notes/Bob%40Example.org", {"affiliation": "publisher"})
    ).status == 204
    got = (await ask(zoes, token, "GET", "/members/notes/")).json
    roles = {bare(ALICE): "owner", bare(BOB): "publisher", bare(CAROL): "member"}
    assert (got["count"], got["totalItems"]) == (3, 3)
    assert {row["jid"]: row["affiliation"] for row in got["items"]} == roles

    assert (await ask(zoes, token, "DELETE", "/members/notes/bob@example.org")).status == 204
    assert (await ask(zoes, token, "PUT", "/members/notes/carol@example.org", {"affiliation": "outcast"})).status == 204
    assert (await ask(zoes, token, "GET", "/subscriptions/notes/")).json["items"] == []
    got = (await ask(zoes, token, "GET", "/members/notes/")).json
    assert {row["jid"]: row["affiliation"] for row in got["items"]} == {bare(ALICE): "owner", bare(CAROL): "outcast"}


async def test_the_last_owner_stays(zoes: Web) -> None:
    token = await admin_of(zoes, ALICE)
    for method, body in (("DELETE", None), ("PUT", {"affiliation": "member"})):
        got = await ask(zoes, token, method, "/members/notes/alice@example.org", body)
        assert (got.status, "last owner" in got.json["detail"]) == (409, True)


@pytest.mark.parametrize(
    "body", [{}, {"affiliation": "king"}, {"affiliation": 1}, {"affiliation": "owner", "x": 1}, []]
)
async def test_a_wrong_affiliation_is_refused(zoes: Web, body: Any) -> None:
    got = await ask(zoes, await admin_of(zoes, ALICE), "PUT", "/members/notes/bob@example.org", body)
    assert got.status == 400


@pytest.mark.parametrize("jid", ["bob@example.org%2Fphone", "@@", "%00", "%FF"])
async def test_a_member_is_a_bare_jid(zoes: Web, jid: str) -> None:
    got = await ask(zoes, await admin_of(zoes, ALICE), "PUT", f"/members/notes/{jid}", {"affiliation": "member"})
    assert got.status in (400, 404)
    assert len((await ask(zoes, await admin_of(zoes, ALICE), "GET", "/members/notes/")).json["items"]) == 2


async def test_subscriptions_are_listed_approved_and_ended(zoes: Web) -> None:
    await zoes.component.configure(ALICE, "notes", access_model="authorize")
    assert await zoes.component.subscribe(BOB, "notes") == "pending"
    token = await admin_of(zoes, ALICE)
    assert (await ask(zoes, token, "PUT", "/subscriptions/notes/bob@example.org")).status == 204
    got = (await ask(zoes, token, "GET", "/subscriptions/notes/")).json
    assert [row["jid"] for row in got["items"]] == [bare(BOB), bare(CAROL)]
    assert (await ask(zoes, token, "DELETE", "/subscriptions/notes/bob@example.org")).status == 204
    events = await zoes.component.events(bare(BOB))
    states = [event.xpath("string(ev:event/ev:subscription/@subscription)", namespaces=NS) for event in events]
    assert [text for text in states if text] == ["subscribed", "none"]
    assert (await ask(zoes, token, "DELETE", "/subscriptions/notes/bob@example.org")).status == 404
    refused = await ask(zoes, token, "PUT", "/subscriptions/notes/eve@elsewhere.example")
    assert (refused.status, "cannot be subscribed" in refused.json["detail"]) == (403, True)


async def test_lists_have_pages_to_the_last_row(zoes: Web) -> None:
    """Each page has the address of the next one, whatever the names are."""
    token = await admin_of(zoes, ALICE)
    for number in range(5):
        await zoes.component.affiliate(ALICE, "notes", f"user{number}+=ü?@example.org/x", "member")
    jids: list[str] = []
    path = "/members/notes/?max=3"
    while path:
        page = (await ask(zoes, token, "GET", path)).json
        assert page["totalItems"] == 7 and page["count"] <= 3
        jids += [row["jid"] for row in page["items"]]
        path = page.get("next", "").removeprefix(zoes.origin)
    assert len(jids) == len(set(jids)) == 7


@pytest.mark.parametrize("query", ["max=x", "max=-1", "before=1", "max=1&max=2", "after=%FF"])
async def test_a_page_with_a_wrong_position_is_refused(zoes: Web, query: str) -> None:
    token = await admin_of(zoes, ZOE)
    for path in ("members/notes", *LISTS):
        assert (await ask(zoes, token, "GET", f"/{path}/?{query}")).status == 400
    assert (await ask(zoes, token, "GET", "/consumers/?after=x")).status == 400


@pytest.mark.parametrize("name", NAMES)
async def test_names_of_every_kind_have_addresses(zoes: Web, name: str) -> None:
    """[SF-057] A slash in a name is written as it is or as %2F; in a JID it is always %2F."""
    token = await admin_of(zoes, ALICE)
    part = quote(name, safe="")
    assert (await ask(zoes, token, "PUT", f"/feeds/{part}/", {})).status == 201
    assert (await ask(zoes, token, "PATCH", f"/feeds/{part}/", {"title": name})).json["title"] == name
    assert (await ask(zoes, token, "PUT", f"/members/{part}/bob@example.org", {"affiliation": "member"})).status == 204
    assert (await ask(zoes, token, "PUT", f"/subscriptions/{part}/alice@example.org%2Fhome")).status == 204
    rows = (await ask(zoes, token, "GET", f"/subscriptions/{part}/")).json["items"]
    assert rows == [{"jid": ALICE}]


async def test_a_token_is_created_shown_once_and_revoked(zoes: Web) -> None:
    """[SF-110] Owners create tokens for themselves and their nodes, as over XMPP."""
    token = await admin_of(zoes, ALICE)
    got = await ask(zoes, token, "POST", "/tokens/", {"feed": "notes", "scope": "read", "expires": "90d", "label": "ü"})
    assert (got.status, got.header("Cache-Control"), got.json["nodeExists"]) == (201, "no-store", True)
    new = f"Bearer {got.json['token']}"
    assert (await zoes.get("/feeds/notes.json", Authorization=new)).status == 200
    rows = (await ask(zoes, token, "GET", "/tokens/")).json["items"]
    (row,) = [row for row in rows if row["id"] == got.json["id"]]
    assert (row["jid"], row["scope"], row["feed"], row["label"]) == (bare(ALICE), "read", "notes", "ü")
    assert got.json["token"] not in json.dumps(rows) and {one["jid"] for one in rows} == {bare(ALICE)}

    assert (await ask(zoes, await admin_of(zoes, BOB), "DELETE", f"/tokens/{got.json['id']}")).status == 404
    assert (await ask(zoes, token, "DELETE", f"/tokens/{got.json['id']}")).status == 204
    assert (await zoes.get("/feeds/notes.json", Authorization=new)).status == 401
    assert (await ask(zoes, token, "DELETE", f"/tokens/{got.json['id']}")).status == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"scope": "read"}, 400),
        ({"feed": "notes", "scope": "all"}, 400),
        ({"feed": "notes", "scope": "read", "expires": "soon"}, 400),
        ({"feed": "notes", "scope": "read", "label": "\x07"}, 400),
        ({"feed": "notes", "scope": "read", "label": "x" * 201}, 400),
        ({"feed": "n" * 2_000, "scope": "read"}, 400),
        ({"feed": "notes", "scope": "read", "jid": "bob@example.org/x"}, 400),
        ({"feed": "notes", "scope": "read", "jid": "bob@example.org"}, 403),
        ({"feed": "*", "scope": "read"}, 403),
        ({"feed": "none", "scope": "read"}, 403),
    ],
)
async def test_a_wrong_token_is_refused(zoes: Web, body: Any, status: int) -> None:
    assert (await ask(zoes, await admin_of(zoes, ALICE), "POST", "/tokens/", body)).status == status


async def test_consumers_show_their_lag_and_are_retried(zoes: Web) -> None:
    await zoes.component.publish(ALICE, "notes", "a")
    await zoes.component.settle()

    def fail(tx: WriteTx, context: Context) -> None:
        node = tx.node("notes")
        assert node is not None
        tx.set_wait(Consumer(node.node_no, PUSH), Failure(3, context.now_us, None, "gone"))

    await zoes.component.app.service.write(fail)
    zoe, alice = await admin_of(zoes, ZOE), await admin_of(zoes, ALICE)
    (row,) = (await ask(zoes, alice, "GET", "/consumers/?behind=true")).json["items"]
    assert (row["consumer"], row["node"], row["state"], row["failures"], row["error"]) == (
        PUSH, "notes", "stopped", 3, "gone"
    )  # fmt: skip
    assert (await ask(zoes, zoe, "POST", "/consumers/", {"consumer": "other"})).status == 404
    assert (await ask(zoes, zoe, "POST", "/consumers/", {"consumer": PUSH})).json == {"retried": 1}
    (row,) = (await ask(zoes, zoe, "GET", "/consumers/?max=1")).json["items"]
    assert row["next_attempt"] == "now"


async def test_consumers_have_pages(zoes: Web) -> None:
    await zoes.component.many_nodes([f"n{number}" for number in range(4)])
    for number in range(4):
        await zoes.component.subscribe(CAROL, f"n{number}")
    nodes, path = [], "/consumers/?max=2"
    while path:
        page = (await ask(zoes, await admin_of(zoes, ZOE), "GET", path)).json
        nodes += [row["node"] for row in page["items"]]
        path = page.get("next", "").removeprefix(zoes.origin)
    assert nodes == ["notes", "n0", "n1", "n2", "n3"]


@pytest.mark.needs("mirrors")
async def test_mirrors_are_read(zoes: Web) -> None:
    token = await admin_of(zoes, ZOE)
    assert (await ask(zoes, token, "GET", "/mirrors/")).json == {"count": 0, "totalItems": 0, "items": []}


async def test_statistics_are_read(zoes: Web) -> None:
    token = await admin_of(zoes, ZOE)
    await zoes.component.publish(ALICE, "notes", "a")
    got = (await ask(zoes, token, "GET", "/statistics")).json
    assert (got["nodes"], got["items"], got["subscriptions"]) == (1, 1, 1)
    assert got["rates"].keys() == {"published", "notified", "pulled", "refused"}


async def test_bodies_are_json(zoes: Web) -> None:
    token = await admin_of(zoes, ALICE)
    for method, path in (("PATCH", "/feeds/notes/"), ("PUT", "/members/notes/bob@example.org"), ("POST", "/tokens/")):
        got = await ask(zoes, token, method, path, {}, Content_Type="text/plain")
        assert (got.status, JSON in got.header("Accept")) == (415, True)
        assert (await ask(zoes, token, method, path, {"a": "x" * 400_000})).status == 413
