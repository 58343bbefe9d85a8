"""The hub of a whole component over HTTP: its address, the links that lead to it, and deliveries through every door."""

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import quote, urlencode

import pytest
from lxml import etree, html

from smartfeeds.app.formats import read_document
from smartfeeds.core.jid import Jid
from smartfeeds.core.token import TokenScope
from smartfeeds.features.hub.hub import Hub
from smartfeeds.service.importing import import_document
from support.api_requests import tear
from support.bearer import bearer
from support.callbacks import Subscribers, fixed, running_subscribers
from support.component import ALICE, BOB
from support.golden import GOLDEN
from support.waiting import until
from support.web import Got, Web, WebStarter

SITE = "https://feeds.example"
HUB = f"{SITE}/feeds/notes/hub/"
FORM = "application/x-www-form-urlencoded"
ENTRY = b"<entry xmlns='http://www.w3.org/2005/Atom'><title>one</title></entry>"
LOOPBACK = {"allowed_networks": ["127.0.0.0/8"]}
REPRESENTATIONS = [
    ("/feeds/notes/", "application/json", ""),
    ("/feeds/notes/", "application/atom+xml", ""),
    ("/feeds/notes/", "text/html", ""),
    ("/feeds/notes/", "application/rss+xml", ".rss"),
    ("/feeds/notes.json", "", ""),
    ("/feeds/notes.atom", "", ".atom"),
    ("/feeds/notes.rss", "", ".rss"),
    pytest.param("/feeds/notes.jsonfeed", "", ".jsonfeed", marks=pytest.mark.needs("documents")),
    pytest.param("/feeds/notes.ess", "", ".rss", marks=pytest.mark.needs("documents")),
]


@pytest.fixture
async def subscribers() -> AsyncIterator[Subscribers]:
    async with running_subscribers() as running:
        yield running


@pytest.fixture
async def site(start_web: WebStarter) -> Web:
    """A component with a public address and the feed notes of Alice, which may call back to this machine."""
    web = await start_web(http={"base_url": SITE}, webhooks=LOOPBACK)
    await web.component.create(ALICE, "notes", access_model="open")
    return web


async def post(web: Web, fields: dict[str, str], path: str = "/feeds/notes/hub/", **headers: str) -> Got:
    return await web.ask("POST", path, urlencode(fields).encode(), **{"Content_Type": FORM, **headers})


def request(
    subscribers: Subscribers, name: str = "reader", topic: str = "/feeds/notes/", **more: str
) -> dict[str, str]:
    fields = {"callback": subscribers.url(name), "mode": "subscribe", "topic": f"{SITE}{topic}", **more}
    return {f"hub.{key}": value for key, value in fields.items()}


async def pushed(subscribers: Subscribers, name: str = "reader") -> list[str]:
    """The items of the next deliveries, when at least one has come."""
    await subscribers.receive_push(name)
    return subscribers.got(name)


async def subscribed(web: Web, subscribers: Subscribers, name: str = "reader", topic: str = "/feeds/notes/") -> None:
    """A subscription whose check the hub has made before it answers."""
    got = await post(web, request(subscribers, name, topic, verify="sync"))
    assert got.status == 204, got.text


def links(got: Got) -> list[tuple[str, str]]:
    """The relations and addresses of the header Link, in one header."""
    parts = [part.strip().split(">; ") for part in got.header("Link").split(", ") if part]
    return [(part[1].partition('rel="')[2].partition('"')[0], part[0].lstrip("<")) for part in parts]


def addresses(got: Got, rel: str) -> list[str]:
    return [address for name, address in links(got) if name == rel]


async def test_request_is_a_form(site: Web, subscribers: Subscribers) -> None:
    """[WS-001] [WS-002]"""
    body = urlencode(request(subscribers)).encode()
    for content_type in (FORM, "Application/X-WWW-Form-Urlencoded; Charset=UTF-8"):
        got = await site.ask("POST", "/feeds/notes/hub/", body, Content_Type=content_type)
        assert (got.status, got.body) == (202, b"")
    for content_type in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
        got = await site.ask("POST", "/hub", body, Content_Type=content_type)
        assert (got.status, got.header("Accept")) == (415, FORM)


async def test_other_methods_are_refused(site: Web) -> None:
    """[WS-002] [WS-030] Nothing lists subscriptions."""
    for path in ("/hub", "/feeds/notes/hub/"):
        for method in ("GET", "PUT", "DELETE"):
            got = await site.ask(method, path)
            assert got.status == 405 and "POST" in got.header("Allow") and "GET" not in got.header("Allow")


async def test_golden_request_gets_the_answer_of_the_golden_values(start_web: WebStarter) -> None:
    """[WS-001] [SF-076] Its addresses are those of another service, so the path and the hosts differ."""
    golden = GOLDEN["http"]["subscribe"]
    web = await start_web(http={"base_url": "http://feeds.example"})
    await web.component.create(ALICE, "articles/1/comments")
    body = golden["body"].replace("feeds.example%2Farticles", "feeds.example%2Ffeeds%2Farticles").encode()
    path = golden["request"].removeprefix("POST ")
    got = await web.ask("POST", f"/feeds{path}", body, Content_Type=golden["content_type"])
    assert golden["answer"].startswith(f"{got.status};")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"hub.callback": ""}, "hub.callback is empty\n"),
        ({"hub.topic": "https://other.example/"}, "hub.topic is not an address of this service"),
        ({"hub.topic": f"{SITE}/feeds/missing/"}, "hub.topic is another feed than that of this hub\n"),
        ({"hub.topic": f"{SITE}/feeds/notes/?max=1"}, "hub.topic has a parameter that topics cannot have"),
        ({"hub.mode": "publish"}, 'hub.mode is "publish"'),
    ],
)
async def test_error_is_plain_text(site: Web, subscribers: Subscribers, changes: dict[str, str], text: str) -> None:
    """[WS-003] [WS-006] [WS-007] [WS-009] [WS-022]"""
    got = await post(site, {**request(subscribers), **changes})
    assert (got.status, got.header("Content-Type")) == (400, "text/plain; charset=utf-8")
    assert got.text.startswith(text)


async def test_query_of_the_address_means_nothing(site: Web, subscribers: Subscribers) -> None:
    """[WS-004] [A-22]"""
    path = f"/feeds/notes/hub/?order=created&hub.mode=unsubscribe&hub.topic={quote(SITE)}"
    got = await post(site, request(subscribers, verify="sync"), path)
    assert got.status == 204
    assert subscribers.checks["reader"][0]["hub.mode"] == "subscribe"


async def test_one_address_serves_all_feeds(site: Web, subscribers: Subscribers) -> None:
    """(WD-13)"""
    await site.component.create(ALICE, "plans", access_model="open")
    for topic in ("/feeds/notes/", "/feeds/plans/"):
        assert (await post(site, request(subscribers, topic=topic, verify="sync"), "/hub")).status == 204


async def test_body_is_bounded(site: Web, subscribers: Subscribers) -> None:
    """[WS-026]"""
    got = await post(site, request(subscribers) | {"x": "x" * 20_000})
    assert (got.status, got.header("Content-Type")) == (413, "text/plain; charset=utf-8")
    assert (await post(site, request(subscribers) | {"x": "x" * 15_000})).status == 202


async def test_too_many_requests_are_told_when_to_come_back(start_web: WebStarter, subscribers: Subscribers) -> None:
    """[WS-027]"""
    web = await start_web(http={"base_url": SITE}, webhooks={**LOOPBACK, "requests_per_minute": 3})
    await web.component.create(ALICE, "notes")
    statuses = [await post(web, request(subscribers)) for _ in range(4)]
    assert [got.status for got in statuses] == [202, 202, 202, 429]
    assert statuses[-1].header("Retry-After") and statuses[-1].text == "more than 3 requests in a minute\n"


async def test_token_opens_a_closed_feed_to_its_jid(site: Web, subscribers: Subscribers) -> None:
    """[WS-028]"""
    await site.component.create(ALICE, "closed", access_model="authorize")
    fields = request(subscribers, topic="/feeds/closed/", verify="sync")
    missing = await post(site, request(subscribers, topic="/feeds/missing/"), "/hub")
    alice, bob = await bearer(site, ALICE, TokenScope.READ), await bearer(site, BOB, TokenScope.READ)
    for headers in ({}, {"Authorization": bob}):
        got = await post(site, fields, "/hub", **headers)
        assert (got.status, got.text) == (missing.status, missing.text) == (400, missing.text)
    assert (await post(site, fields, "/hub", Authorization=alice)).status == 204
    await site.component.publish(ALICE, "closed", "secret")
    assert await pushed(subscribers) == ["secret"]


async def test_strange_headers_change_nothing(site: Web, subscribers: Subscribers) -> None:
    """[WS-029] A form of another site is a request as any other: it has no rights of its sender."""
    headers = {"From": "reader@example.org", "Cookie": "smartfeeds-session=x", "Origin": "https://other.example"}
    got = await post(site, request(subscribers, verify="sync"), Sec_Fetch_Site="cross-site", **headers)
    assert got.status == 204


async def test_callback_on_this_machine_needs_its_own_permission(
    start_web: WebStarter, subscribers: Subscribers
) -> None:
    """[WS-049] The list for sources does not count."""
    web = await start_web(http={"base_url": SITE}, sources=LOOPBACK)
    await web.component.create(ALICE, "notes")
    got = await post(web, request(subscribers, verify="sync"))
    assert got.status == 503 and "its address is not public" in got.text
    assert subscribers.raw_checks == []


async def test_service_without_a_public_address_has_no_hub(web: Web, subscribers: Subscribers) -> None:
    """[WS-083]"""
    await web.component.create(ALICE, "notes", access_model="open")
    assert addresses(await web.get("/feeds/notes.atom"), "hub") == []
    assert b'rel="hub"' not in (await web.get("/feeds/notes.atom")).body
    got = await post(web, request(subscribers))
    assert got.status == 404 and "http.base_url" in got.text


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("path", "accept", "suffix"), REPRESENTATIONS)
async def test_headers_name_the_hub_and_one_address(
    site: Web, method: str, path: str, accept: str, suffix: str
) -> None:
    """[WS-080] [WS-083] [SF-074] Behind any Host header the addresses are the public ones."""
    await site.component.publish(ALICE, "notes", "1")
    got = await site.ask(method, path, accept=accept, Host="other.example")
    assert got.status == 200
    assert addresses(got, "hub") == [HUB]
    own = f"{SITE}/feeds/notes{suffix}" if suffix else f"{SITE}/feeds/notes/"
    assert addresses(got, "self") == [own]


def document_links(got: Got) -> dict[str, list[str]]:
    """The relations that a document says of itself: first-level links of Atom and RSS, JSON Feed, or a page."""
    kind = got.header("Content-Type").partition(";")[0]
    if kind == "application/feed+json":
        feed = json.loads(got.body)
        hubs = [hub["url"] for hub in feed["hubs"] if hub["type"] == "WebSub"]
        return {"hub": hubs, "self": [feed["feed_url"]]}
    if kind == "text/html":
        nodes = html.fromstring(got.body).xpath("//head/link")
        assert not html.fromstring(got.body).xpath("//body//link")
    else:
        root = etree.fromstring(got.body)
        parent = root if root.tag.endswith("feed") else root[0]
        nodes = [node for node in parent if node.tag == "{http://www.w3.org/2005/Atom}link"]
    return {rel: [node.get("href") for node in nodes if node.get("rel") == rel] for rel in ("hub", "self")}


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/feeds/notes/", "application/atom+xml"),
        ("/feeds/notes/", "text/html"),
        ("/feeds/notes.atom", ""),
        ("/feeds/notes.rss", ""),
        pytest.param("/feeds/notes.jsonfeed", "", marks=pytest.mark.needs("documents")),
        ("/feeds/notes.atom?order=created", ""),
        ("/feeds/notes/?order=created", "text/html"),
    ],
)
async def test_header_and_document_name_the_same(site: Web, path: str, accept: str) -> None:
    """[WS-081] [WS-082]"""
    await site.component.publish(ALICE, "notes", "1")
    got = await site.get(path, accept)
    assert document_links(got) == {"hub": addresses(got, "hub"), "self": addresses(got, "self")}
    assert document_links(got)["hub"] == [HUB]


async def test_answer_without_a_body_names_the_hub_too(site: Web) -> None:
    """[WS-084]"""
    await site.component.publish(ALICE, "notes", "1")
    first = await site.get("/feeds/notes.atom")
    again = await site.get("/feeds/notes.atom", If_None_Match=first.header("ETag"))
    assert again.status == 304
    assert links(again) == links(first)


async def test_page_leads_to_the_hub_by_its_documents(site: Web) -> None:
    """[WS-086]"""
    page = html.fromstring((await site.get("/feeds/notes/", "text/html")).body)
    (address,) = page.xpath("//head/link[@rel='alternate'][@type='application/atom+xml']/@href")
    assert document_links(await site.get(address.removeprefix(SITE)))["hub"] == [HUB]


async def test_closed_feed_names_its_hub_to_its_readers_only(site: Web) -> None:
    """[WS-090]"""
    await site.component.create(ALICE, "closed", access_model="authorize")
    await site.component.publish(ALICE, "closed", "1")
    got = await site.get("/feeds/closed/")
    assert got.status == 401 and got.header("Link") == "" and b"hub" not in got.body
    token = await bearer(site, ALICE, TokenScope.READ)
    got = await site.get("/feeds/closed/", Authorization=token)
    assert addresses(got, "hub") == [f"{SITE}/feeds/closed/hub/"]


@pytest.mark.parametrize(
    "topic",
    [
        "/feeds/notes/",
        "/feeds/notes.atom",
        "/feeds/notes.rss",
        pytest.param("/feeds/notes.jsonfeed", marks=pytest.mark.needs("documents")),
    ],
)
async def test_delivery_says_what_a_request_of_the_topic_says(site: Web, subscribers: Subscribers, topic: str) -> None:
    """[WS-053] [WS-055] [WS-057]"""
    await subscribed(site, subscribers, topic=topic)
    await site.component.publish(ALICE, "notes", "1")
    await subscribers.receive_push("reader")
    (push,) = subscribers.pushes["reader"]
    got = await site.get(topic, "application/atom+xml" if topic.endswith("/") else "")
    assert push.headers["Content-Type"] == got.header("Content-Type")
    assert [address for name, address in links(Got(200, push.headers, b"")) if name == "self"] == addresses(got, "self")
    if "json" in topic:
        mine, theirs = json.loads(push.body), json.loads(got.body)
        assert mine["items"] == theirs["items"]
        assert {name: mine.get(name) for name in ("feed_url", "home_page_url", "title", "hubs")} == {
            name: theirs.get(name) for name in ("feed_url", "home_page_url", "title", "hubs")
        }
        return
    mine, theirs = push.root, etree.fromstring(got.body)
    if "rss" in topic:
        mine, theirs = mine[0], theirs[0]
    cursors = {"{http://fanout.org/protocol/atom}prev_cursor"}
    assert [etree.tostring(node) for node in mine if node.tag not in cursors] == [
        etree.tostring(node) for node in theirs
    ]


@pytest.mark.needs("conflicts")
async def test_every_way_to_publish_is_delivered(site: Web, subscribers: Subscribers) -> None:
    """[WS-087] XMPP, HTTP, Micropub, an import, a merge as mirrors do it, and the decision on its conflict."""

    await subscribed(site, subscribers)
    await site.component.publish(ALICE, "notes", "xmpp")
    assert await pushed(subscribers) == ["xmpp"]
    token = await bearer(site, ALICE, TokenScope.PUBLISH)
    atom = {"Content_Type": "application/atom+xml"}
    assert (await site.ask("PUT", "/entries/notes/http", ENTRY, Authorization=token, **atom)).status == 201
    assert await pushed(subscribers) == ["http"]
    micropub = {"Content_Type": FORM, "Authorization": token}
    assert (await site.ask("POST", "/micropub/notes", b"h=entry&content=hello", **micropub)).status == 201
    (item_id,) = await pushed(subscribers)
    await site.component.retract(ALICE, "notes", item_id)
    assert await pushed(subscribers) == [f"-{item_id}"]
    document = read_document(
        b"<feed xmlns='http://www.w3.org/2005/Atom'><title>F</title><entry><id>i</id></entry></feed>"
    )
    await import_document(site.component.app.service, "notes", document, Jid("alice", "example.org"))
    assert len(await pushed(subscribers)) == 1
    await tear(site, token, "feeds.c.example")
    assert set(await pushed(subscribers)) == {"torn"}
    (item,) = (await site.get("/conflicts/notes/")).json["items"]
    decision = json.dumps({"keep": item["versions"][1]["tag"]}).encode()
    got = await site.ask(
        "POST", "/conflicts/notes/torn", decision, Content_Type="application/json", Authorization=token
    )
    assert got.json["left"] == 0
    assert set(await pushed(subscribers)) == {"torn"}


async def test_tls_hello_on_the_plain_port_harms_nothing(site: Web) -> None:
    """[WS-078]"""
    await site.component.publish(ALICE, "notes", "1")
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(bytes.fromhex("16030100c8010000c40303") + bytes(200))
    assert (await reader.readline()).split()[1] == b"400"
    writer.close()
    assert (await site.get("/feeds/notes/", "application/json")).status == 200


async def test_publish_is_not_slower_with_a_dead_callback(site: Web, subscribers: Subscribers) -> None:
    """[WS-088] The publish is answered while the callback is silent."""
    gate = subscribers.silence("reader")
    await subscribed(site, subscribers)
    await site.component.publish(ALICE, "notes", "1")
    await subscribers.began.wait()
    for number in range(20):
        await site.component.publish(ALICE, "notes", f"n{number}")
    assert not gate.is_set() and subscribers.tries["reader"] == 1
    gate.set()


async def test_hub_of_a_feed_is_no_feed(site: Web, subscribers: Subscribers) -> None:
    """The name of a feed may end with /hub; its address then escapes the slash."""
    await site.component.create(ALICE, "notes/hub", access_model="open")
    await site.component.publish(ALICE, "notes/hub", "1")
    got = await site.get("/feeds/notes%2Fhub/", "application/json")
    assert got.json["url"] == f"{SITE}/feeds/notes%2Fhub/"
    assert addresses(got, "hub") == [f"{SITE}/feeds/notes%2Fhub/hub/"]
    fields = request(subscribers, topic="/feeds/notes%2Fhub/", verify="sync")
    assert (await post(site, fields, "/feeds/notes%2Fhub/hub/")).status == 204
    assert (await site.get("/feeds/notes/hub/")).status == 405


class TestWebsubRocks:
    """The cases of websub.rocks for hubs and publishers, rebuilt: the tester subscribes, and the feed publishes.

    Those for subscribers are in tests/features/polling/test_websub_rocks.py.
    """

    async def deliver(self, site: Web, subscribers: Subscribers, item_id: str) -> dict[str, str]:
        await site.component.publish(ALICE, "notes", item_id)
        await subscribers.receive_push("tester")
        (push,) = subscribers.pushes.pop("tester")
        assert push.body
        return push.headers

    async def check_made(self, site: Web, subscribers: Subscribers, count: int) -> dict[str, str]:
        await until(lambda: len(subscribers.checks["tester"]) >= count, f"check {count} of the subscription")
        await site.component.app.parts.get(Hub).questions.idle()
        return subscribers.checks["tester"][-1]

    async def test_100_typical_subscription(self, site: Web, subscribers: Subscribers) -> None:
        """[WS-017] [WS-031] [WS-053] [WS-054] [WS-066] [WR 100]"""
        topic = await site.get("/feeds/notes.atom")
        (hub,), (own,) = addresses(topic, "hub"), addresses(topic, "self")
        fields = request(subscribers, "tester", own.removeprefix(SITE), lease_seconds="7200")
        assert (await post(site, fields, hub.removeprefix(SITE))).status == 202
        check = await self.check_made(site, subscribers, 1)
        assert (check["hub.mode"], check["hub.topic"]) == ("subscribe", own)
        assert check["hub.challenge"] and check["hub.lease_seconds"] == "7200"
        headers = await self.deliver(site, subscribers, "1")
        assert headers["Content-Type"] == topic.header("Content-Type")
        got = links(Got(200, headers, b""))
        assert got[0] == ("hub", hub) and ("self", own) in got
        assert "X-Hub-Signature" not in headers

    async def test_101_with_a_secret(self, site: Web, subscribers: Subscribers) -> None:
        """[WS-066] [WR 101]"""
        await post(site, request(subscribers, "tester", secret="s3cret"))
        await self.check_made(site, subscribers, 1)
        assert (await self.deliver(site, subscribers, "1"))["X-Hub-Signature"].startswith("sha256=")

    async def test_102_with_more_parameters(self, site: Web, subscribers: Subscribers) -> None:
        """[WS-005] [WR 102]"""
        fields = request(subscribers, "tester") | {"foo": "bar", "hub.foo": "bar"}
        assert (await post(site, fields)).status == 202
        await self.check_made(site, subscribers, 1)
        assert await self.deliver(site, subscribers, "1")

    async def test_103_subscribed_again(self, site: Web, subscribers: Subscribers) -> None:
        """[WS-041] [WR 103]"""
        for count in (1, 2):
            assert (await post(site, request(subscribers, "tester"))).status == 202
            await self.check_made(site, subscribers, count)
        assert await self.deliver(site, subscribers, "1")
        assert await self.deliver(site, subscribers, "2")

    async def test_104_unsubscribed(self, site: Web, subscribers: Subscribers) -> None:
        """[WS-044] [WR 104]"""
        await post(site, request(subscribers, "tester"))
        await self.check_made(site, subscribers, 1)
        assert (await post(site, request(subscribers, "tester", mode="unsubscribe"))).status == 202
        check = await self.check_made(site, subscribers, 2)
        assert check["hub.mode"] == "unsubscribe" and "hub.lease_seconds" not in check
        await subscribed(site, subscribers, "other")
        await site.component.publish(ALICE, "notes", "1")
        assert await pushed(subscribers, "other") == ["1"]
        assert subscribers.pushes["tester"] == []

    @pytest.mark.parametrize("name", ["105_plain_text.txt", "106_json.json"])
    async def test_topic_of_another_server(self, site: Web, subscribers: Subscribers, name: str) -> None:
        """[WS-007] [SF-083] [WR 105] [WR 106] No remote feed is tracked: nothing is asked and stored.

        These cases are for hubs that take all topics; this one refuses them.
        """
        fields = request(subscribers, "tester") | {"hub.topic": f"https://websub.example/{name}"}
        got = await post(site, fields, "/hub")
        assert (got.status, subscribers.checks["tester"]) == (400, [])

    @pytest.mark.parametrize(
        ("path", "accept"),
        [
            pytest.param("/feeds/notes/", "text/html", id="html"),
            pytest.param("/feeds/notes.atom", "", id="atom"),
            pytest.param("/feeds/notes.rss", "", id="rss"),
        ],
    )
    @pytest.mark.parametrize("in_header", [True, False], ids=["by_header", "by_document"])
    async def test_publisher(
        self, site: Web, subscribers: Subscribers, path: str, accept: str, *, in_header: bool
    ) -> None:
        """[WS-015] [WS-080] [WS-081] [WS-082] Discovery, a lease of 7,200 s, and a push after a change."""
        got = await site.get(path, accept)
        hubs, own = (
            (addresses(got, "hub"), addresses(got, "self"))
            if in_header
            else (document_links(got)["hub"], document_links(got)["self"])
        )
        assert (len(hubs), len(own)) == (1, 1)
        fields = request(subscribers, "tester", own[0].removeprefix(SITE), lease_seconds="7200")
        assert (await post(site, fields, hubs[0].removeprefix(SITE))).status == 202
        check = await self.check_made(site, subscribers, 1)
        assert (check["hub.topic"], check["hub.lease_seconds"]) == (own[0], "7200")
        assert await self.deliver(site, subscribers, "1")


async def test_subscriber_of_the_older_dialect(site: Web, subscribers: Subscribers) -> None:
    """[WS-018] [WS-022] The reason of a failed check is in the response."""
    subscribers.confirm["reader"] = fixed(404)
    got = await post(site, request(subscribers, verify="sync"))
    assert (got.status, got.text) == (400, "the subscription was not confirmed: the callback answered 404\n")
