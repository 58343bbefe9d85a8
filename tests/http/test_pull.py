"""Pulls over HTTP: windows, cursors, forms, against the golden values and against XMPP (Smart Feeds, HTTP Pull)."""

import asyncio
import gzip
import itertools
import json
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
import pytest_asyncio
from lxml import etree

from smartfeeds.app.site import feed_forms
from smartfeeds.core.model import Node, NodeKind
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.times import US_PER_S, parse_t
from smartfeeds.http import feeds
from smartfeeds.http.feeds import FeedRequest, Feeds
from smartfeeds.http.replies import Reply
from smartfeeds.http.waiting import HeldPulls
from smartfeeds.service.requests import FeedPage
from smartfeeds.store.base import ReadTx, Work, WriteTx
from support.component import ALICE, BOB, NS, bare, ok
from support.features import FEATURE_NAMES
from support.golden import GOLDEN
from support.pulls import Shown, publish_all, pull, put
from support.web import Web, WebStarter

pytestmark = pytest.mark.shared

ATOM = "application/atom+xml"
JSON = "application/json"
A = "{http://www.w3.org/2005/Atom}"
FO = "{http://fanout.org/protocol/atom}"
WINDOWS = GOLDEN["windows"]
LETTER = {"created": "c", "modified": ""}
STATUS = {"error 400 / bad-request": 400, "error 404 / item-not-found": 404, "error 400": 400}


def lettered(text: str, order: str) -> str:
    """A golden text with the cursors of an order."""
    return text.replace("cursor:", f"cursor:{LETTER[order]}")


def ids(page: Any) -> list[str]:
    """The ids of a JSON page."""
    return [item["id"] for item in page["items"]]


async def golden_feed(web: Web) -> Web:
    """The golden feed, whose items share keys, under the name `comments`."""
    await web.component.create(ALICE, "comments")
    await put(web.component, "comments", [(name, parse_t(t) or 0) for name, t in WINDOWS["feed"]])
    return web


@pytest_asyncio.fixture(loop_scope="module")
async def golden(web: Web) -> Web:
    return await golden_feed(web)


@pytest.mark.parametrize("order", ["created", "modified"])
async def test_golden_windows(golden: Web, order: str) -> None:
    """[SF-019] [SF-054] [SF-057] [SF-060] [SF-061] [SF-063] [A-02] [A-03] [A-29] [A-33]: ids, counts, errors."""
    for case in WINDOWS["cases"]:
        query = lettered(case["query"], order).replace("(none)", "").replace(" (empty)", "")
        got = await golden.get(f"/feeds/comments/?order={order}&timeout=0&{query}")
        if order == "modified" and "id:" in query:
            assert (got.status, got.json["condition"]) == (400, "feature-not-implemented"), case
        elif str(case["ids"]).startswith("error"):
            status = next(status for text, status in STATUS.items() if case["ids"].startswith(text[:9]))
            assert (got.status, got.header("Content-Type")) == (status, "application/problem+json"), case
        else:
            expected = ["p", "q", "r", "s", "t"] if isinstance(case["ids"], str) else case["ids"]
            assert (ids(got.json), got.json["count"], got.json["totalItems"]) == (expected, len(expected), 5), case
            if expected:
                assert got.json["last_cursor"] == LETTER[order] + WINDOWS["cursors"][expected[-1]], case


@pytest.mark.both_engines
async def test_golden_json_pages(start_web: WebStarter) -> None:
    """[SF-060] [SF-061] [SF-062] [SF-063] [SF-064] [SF-065] [A-09] [A-35]: member by member, base URL and next too."""
    web = await start_web()
    await articles(web)
    for row in GOLDEN["http"]["json"]:
        path = lettered(row["request"].removeprefix("GET "), "created").replace("cursor%3A", "cursor%3Ac")
        if path.startswith("/empty"):
            await web.component.create(ALICE, "empty")
        got = await web.get(f"/feeds{path}", row.get("accept", ""), Host="feeds.example")
        assert got.status == row["status"]
        assert got.header("Content-Type") == "application/json; charset=utf-8"
        assert got.json == told(row["body"])


async def test_golden_json_p(web: Web) -> None:
    """[SF-055] [SF-058] [SF-059] [A-12]: the same document in a call, Atom as one string; a call of nothing else."""
    await articles(web)
    since = f"cursor%3Ac{GOLDEN['http']['json'][0]['body']['last_cursor']}"
    path = f"/feeds/articles/1/comments/?order=created&since={since}"
    row = GOLDEN["http"]["jsonp"][0]
    got = await web.get(f"{path}&callback=app.cb", "*/*", Host="feeds.example")
    assert got.header("Content-Type") == row["content_type"]
    assert got.header("X-Content-Type-Options") == "nosniff"
    assert got.text.startswith("/**/app.cb(") and got.text.endswith(");")
    assert json.loads(got.text[11:-2]) == told(json.loads(row["body"][11:-2]))
    atom = await web.get(f"{path}&callback=app.cb", ATOM, Host="feeds.example")
    plain = await web.get(path, ATOM, Host="feeds.example")
    assert atom.header("Content-Type") == row["content_type"]
    assert json.loads(atom.text[11:-2]) == plain.text
    assert (await web.get(f"{path}&callback=alert(1)//")).status == 400


@pytest.mark.both_engines
async def test_golden_atom_page(start_web: WebStarter) -> None:
    """[SF-066] [SF-067] [SF-068] [SF-069] [SF-070] [SF-071] [SF-072] [A-14] [A-36]: element by element."""
    web = await start_web()
    await articles(web)
    row = GOLDEN["http"]["atom"][0]
    got = await web.get("/feeds/articles/1/comments/?order=created&max=2", row["accept"], Host="feeds.example")
    assert got.header("Content-Type") == row["content_type"]
    assert atom_of(got.text) == atom_of(row["body"])
    assert "count" not in {child.tag.rpartition("}")[2] for child in etree.fromstring(got.body)}


async def articles(web: Web) -> None:
    """The feed of the golden HTTP pages."""
    await web.component.create(ALICE, "articles/1/comments", title="comments")
    node = "articles/1/comments"
    source = etree.fromstring(GOLDEN["http"]["atom"][0]["body"].encode())
    entries = {entry.findtext(f"{FO}id"): entry for entry in source.iter(f"{A}entry")}
    third = etree.fromstring(GOLDEN["http"]["push"][0]["body"].encode()).find(f"{A}entry")
    assert third is not None
    entries["r"] = third
    times = {"p": 1_304_942_400, "q": 1_304_942_400, "r": 1_304_942_401}
    await put(web.component, node, [(name, t * US_PER_S) for name, t in times.items()])

    def work(tx: WriteTx) -> None:
        made = tx.lock(node)
        assert made is not None
        for name, entry in entries.items():
            item = tx.item(made.node_no, str(name))
            own_id = entry.find(f"{FO}id")
            assert item is not None and own_id is not None
            entry.remove(own_id)
            etree.cleanup_namespaces(entry)
            tx.put_item(made.node_no, item._replace(payload=etree.tostring(entry, method="c14n", exclusive=True)))

    await web.component.app.service.store.write(work)


def told(body: dict[str, Any]) -> dict[str, Any]:
    """A golden body at the address where the feeds of a service are, with the letter of created cursors."""
    text = json.dumps(body).replace("feeds.example/", "feeds.example/feeds/")
    text = text.replace("cursor%3A", "cursor%3Ac").replace('last_cursor": "', 'last_cursor": "c')
    found: dict[str, Any] = json.loads(text)
    return found


def atom_of(text: str) -> list[tuple[str, list[tuple[str, str]], str]]:
    """The elements of a document in an order of their own, addresses and cursors as here."""
    text = text.replace("feeds.example/feeds/", "feeds.example/").replace("_cursor>c", "_cursor>")
    text = text.replace("cursor%3Ac1", "cursor%3A1").replace('atom">c1', 'atom">1')
    root = etree.fromstring(text.encode())
    return sorted((el.tag, sorted(el.attrib.items()), (el.text or "").strip()) for el in root.iter(etree.Element))


@pytest.fixture
async def busy(start_web: WebStarter) -> Web:
    """A feed with edits, a deletion, an item that came back, replies, authors and categories."""
    web = await start_web()
    await web.component.create(ALICE, "busy feed/ü")
    node = "busy feed/ü"
    await _publish_busy(web, "abcdefbg")
    await web.component.retract(ALICE, node, "d")
    await web.component.retract(ALICE, node, "e")
    await _publish_busy(web, "eh")
    return web


async def _publish_busy(web: Web, letters: str) -> None:
    """Entries a second apart: of Ann and Bo by turns, every third is red, and three at a time answer the same one."""
    for letter in letters:
        number = ord(letter) - ord("a")
        payload = (
            f"<entry xmlns='http://www.w3.org/2005/Atom' xml:lang='{('en', 'en-GB', 'fr', 'fr')[number % 4]}'>"
            f"<id>tag:example.org,2026:{letter}</id><title>{letter}</title>"
            f"<author><name>{('Ann', 'Bo')[number % 2]}</name></author><rights>at {web.component.clock.now_us}</rights>"
            f"<category term='{('red', 'blue', 'green')[number % 3]}'/><content type='text'>entry {letter}</content>"
            f"<in-reply-to xmlns='http://purl.org/syndication/thread/1.0' ref='tag:example.org,2026:{number // 3}'/>"
            "</entry>"
        )
        await web.component.publish(ALICE, "busy feed/ü", letter, payload=payload)
        web.component.clock.advance(1)


QUERIES = [
    "order=created",
    "order=modified",
    "order=modified&kind=edited",
    "order=created&q=a",
    "kind=deleted&kind=new",
    "order=created&author=Ann",
    "category=red&category=blue",
    "order=created&in-reply-to=tag%3Aexample.org%2C2026%3A0",
    "author=bo&category=blue&q=entry",
    "order=created&lang=en",
    "lang=en-gb&lang=fr&author=bo&q=entry",
]


@pytest.mark.parametrize("view", QUERIES)
async def test_every_window_is_the_same_on_both_wires(busy: Web, view: str) -> None:
    """[A-01] [A-26] [SF-001] [SF-002] [SF-031] [SF-034] [A-03] [A-10] [A-34]: ids, total, cursors.

    A quarter of the windows for each view, another one for the next view.
    """
    node = f"busy feed/ü?{view}"
    base = f"/feeds/busy%20feed/%C3%BC/?{view}&timeout=0"
    whole = await pull(busy.component, node, max=100)
    assert whole.ids
    uids = [(await pull(busy.component, node, index=n, max=1)).first for n in range(len(whole.ids))]
    places = [None, *uids[:: max(1, len(uids) // 3)], "time:2026-01-01T00:00:03Z"]
    windows = itertools.product([None, 0, 1, 3], places, [*places, ""])
    for most, since, until in itertools.islice(windows, QUERIES.index(view) % 4, None, 4):
        if since is None and until is None and most is None:
            most = 100
        shown = await pull(busy.component, node, after=since, before=until, max=most if most is not None else 50)
        fields = {"since": since, "until": until, "max": most}
        query = "".join(f"&{name}={quote(str(value))}" for name, value in fields.items() if value is not None)
        got = await busy.get(base + query)
        assert got.status == 200, (query, got.text)
        assert (ids(got.json), got.json["totalItems"]) == (shown.ids, shown.count), query
        assert got.json.get("last_cursor", "") == _last(shown, since), query
        atom = etree.fromstring((await busy.get(base + query, ATOM)).body)
        assert [entry.findtext(f"{FO}id") for entry in atom.iter(f"{A}entry")] == shown.ids
        assert atom.findtext(f"{FO}total") == str(shown.count)
        assert (atom.findtext(f"{FO}last_cursor") or "") == got.json.get("last_cursor", "")
        links = [link.get("href") for link in atom.findall(f"{A}link") if link.get("rel") == "next"]
        assert links == ([got.json["next"]] if "next" in got.json else []), query


async def test_atom_page_follows_the_options_of_its_feed_and_its_own_address(web: Web) -> None:
    """Pages share what they say of the feed."""
    await golden_feed(web)

    async def head(host: str = "a.example") -> tuple[str | None, str | None]:
        atom = etree.fromstring((await web.get("/feeds/comments/?max=1&timeout=0", ATOM, Host=host)).body)
        return atom.findtext(f"{A}title"), atom.findtext(f"{A}id")

    assert await head() == ("comments", "http://a.example/feeds/comments/")
    await web.component.configure(ALICE, "comments", title="News & more")
    assert await head() == ("News & more", "http://a.example/feeds/comments/")
    assert await head("b.example") == ("News & more", "http://b.example/feeds/comments/")


def _last(shown: Shown, since: str | None) -> str:
    last = shown.last or (since if since and since.startswith("cursor:") else "")
    return (last or "").removeprefix("cursor:")


@pytest.mark.parametrize("accept", [JSON, ATOM])
@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        ("order=created&max=3", {"order", "since", "max"}, "abcdefgh"),
        ("order=created&since=time:0&max=2&until=UNTIL", {"order", "since", "until", "max"}, "abcdef"),
        ("order=created&max=2&until=UNTIL", set(), "ef"),
        ("max=3", {"since", "max"}, "acfbgdeh"),
    ],
)
async def test_next_leads_through_every_item_once_and_ends(
    busy: Web, accept: str, query: str, names: set[str], expected: str
) -> None:
    """[SF-064] [SF-069] [A-10]: it keeps until, max and the feed's parameters, and drops timeout."""
    until = (await pull(busy.component, "busy feed/ü?order=created", index=6, max=1)).last
    url = f"/feeds/busy%20feed/%C3%BC/?{query}&timeout=0".replace("UNTIL", str(until))
    seen: list[str] = []
    while url:
        got = await busy.get(url, accept)
        if accept == JSON:
            page, url = ids(got.json), got.json.get("next", "")
        else:
            root = etree.fromstring(got.body)
            page = [str(entry.findtext(f"{FO}id")) for entry in root.iter(f"{A}entry")]
            url = next((str(link.get("href")) for link in root.iter(f"{A}link") if link.get("rel") == "next"), "")
        seen += page
        assert page
        if url:
            parts = urlsplit(url)
            assert {name for name, _ in parse_qsl(parts.query)} == names
            url = f"{parts.path}?{parts.query}"
    assert "".join(seen) == expected


async def test_tombstones_are_seen_and_counted(busy: Web) -> None:
    """[SF-013] [SF-061] [A-18] [A-19]: an id, a time and the mark in JSON, the marked entry in Atom."""
    page = (await busy.get("/feeds/busy%20feed/%C3%BC/?kind=deleted")).json
    item, restored = page["items"]
    assert set(item) == {"id", "updated", "deleted"}
    assert (item["id"], item["deleted"]) == ("d", True)
    assert restored == {"id": restored["id"], "updated": restored["updated"], "deleted": True, "left": True}
    atom = etree.fromstring((await busy.get("/feeds/busy%20feed/%C3%BC/?kind=deleted", ATOM)).body)
    assert [mark.get("deleted") for mark in atom.iterfind(".//sx:sync", NS)] == ["true", "true"]
    assert (await busy.get("/feeds/busy%20feed/%C3%BC/")).json["totalItems"] == 8


async def test_a_document_by_suffix_is_the_newest_page_of_what_is_there(busy: Web) -> None:
    """[A-02] [SF-058]: readers that know no cursors get the newest items, without tombstones, and never wait."""
    path = "/feeds/busy%20feed/%C3%BC"
    live = list("acfbgeh")
    got = await busy.get(f"{path}.json")
    assert ids(got.json) == live
    atom = etree.fromstring((await busy.get(f"{path}.atom")).body)
    assert [entry.findtext(f"{FO}id") for entry in atom.iter(f"{A}entry")] == live[::-1]
    # With a position a suffix only says the form.
    assert ids((await busy.get(f"{path}.json?max=2")).json) == ["a", "c"]
    await busy.component.create(ALICE, "empty")
    assert (await busy.get("/feeds/empty.json")).json["items"] == []


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "application/json; charset=utf-8"),
        ("*/*", "application/json; charset=utf-8"),
        ("application/*", "application/json; charset=utf-8"),
        ("application/activity+json", "application/json; charset=utf-8"),
        ("application/atom+xml", "application/atom+xml; charset=utf-8"),
        ("application/json;q=0.5, application/atom+xml;q=0.9", "application/atom+xml; charset=utf-8"),
        ("image/png, application/atom+xml;q=0.1", "application/atom+xml; charset=utf-8"),
        ("APPLICATION/ATOM+XML ; q=1", "application/atom+xml; charset=utf-8"),
    ],
)
async def test_accept_chooses_the_form(golden: Web, accept: str, media_type: str) -> None:
    """[SF-058] [A-12] [A-13]"""
    got = await golden.get("/feeds/comments/", accept)
    assert (got.status, got.header("Content-Type")) == (200, media_type)
    assert "Accept" in got.header("Vary")


@pytest.mark.parametrize("accept", ["image/png", "application/json;q=0", "nonsense", "text/*;q=0, audio/mpeg"])
async def test_what_is_not_offered_is_said_so(golden: Web, accept: str) -> None:
    """[SF-058]: 406, with what there is."""
    got = await golden.get("/feeds/comments/", accept)
    assert got.status == 406
    assert "application/atom+xml" in got.json["detail"]


@pytest.mark.parametrize("method", ["POST", "PROPFIND"])
async def test_other_methods_than_those_there_are(golden: Web, method: str) -> None:
    """[SF-053]: 405, and which there are."""
    got = await golden.ask(method, "/feeds/comments/")
    assert got.status == 405
    assert got.header("Allow").startswith("GET, HEAD")


async def test_a_page_that_is_known_is_not_sent_again(golden: Web) -> None:
    """An ETag changes with every change of the feed and of who may read it, is one of its form, and answers 304."""
    path = "/feeds/comments/?order=created&max=2"
    first = await golden.get(path)
    tag = first.header("ETag")
    again = await golden.get(path, If_None_Match=f'"other", {tag}')
    assert (again.status, again.body, again.header("ETag")) == (304, b"", tag)
    assert (await golden.get(path, ATOM, If_None_Match=tag)).status == 200
    await golden.component.publish(ALICE, "comments", "u")
    later = await golden.get(path, If_None_Match=tag)
    assert (later.status, later.json["totalItems"]) == (200, 6)
    tag = later.header("ETag")
    await golden.component.subscribe(BOB, "comments")
    assert (await golden.get(path, If_None_Match=tag)).status == 304
    await golden.component.configure(ALICE, "comments", title="other")
    assert (await golden.get(path, If_None_Match=tag)).status == 200


async def test_different_representations_of_a_feed_have_different_tags(golden: Web) -> None:
    """RFC 9110 8.8.3. A cached response has the tag of the first one."""
    paths = [
        "/feeds/comments/",
        "/feeds/comments/?max=2",
        "/feeds/comments/?max=3",
        "/feeds/comments/?max=2&order=created",
        "/feeds/comments/?max=2&sync=true",
        "/feeds/comments/?max=2&since=time:1980-01-01T00:00:00Z",
        "/feeds/comments/?max=2&until=",
        "/feeds/comments/?max=2&callback=x",
        "/feeds/comments/?max=2&callback=y",
        "/feeds/comments.json",
        "/feeds/comments.atom",
        "/feeds/comments.atom?sync=true",
        "/feeds/comments.atom?sync=true&max=all",
        "/feeds/comments.atom?sync=true&max=all&order=created",
        "/feeds/comments.rss",
        "/feeds/comments.rss?max=2",
    ]
    tags = {path: (await golden.get(path)).header("ETag") for path in paths}
    assert len(set(tags.values())) == len(paths)
    for path, tag in tags.items():
        again = await golden.get(path, If_None_Match=tag)
        assert (again.status, again.body, again.header("ETag")) == (304, b"", tag)
        others = ", ".join(other for other in tags.values() if other != tag)
        assert (await golden.get(path, If_None_Match=others)).status == 200
        assert (await golden.get(path)).header("ETag") == tag
    for same in ("/feeds/comments/?timeout=0&max=2", "/feeds/comments.json?max=2"):
        assert (await golden.get(same)).header("ETag") == tags["/feeds/comments/?max=2"]


async def test_held_pull_has_the_tag_of_its_page(golden: Web) -> None:
    last = (await golden.get("/feeds/comments/?until=&max=1")).json["last_cursor"]
    path = f"/feeds/comments/?since=cursor:{last}&max=2"
    held = asyncio.create_task(golden.get(f"{path}&timeout=120"))
    await golden.holding(1)
    await golden.component.publish(ALICE, "comments", "z")
    tag = (await held).header("ETag")
    assert tag
    again = await golden.get(path, If_None_Match=tag)
    assert (again.status, again.header("ETag")) == (304, tag)
    assert (await golden.get(f"/feeds/comments/?since=cursor:{last}&max=3", If_None_Match=tag)).status == 200


async def test_tags_do_not_count_the_feeds_of_others(web: Web) -> None:
    """The number of a node grows with every node of the service, closed ones included."""
    tags = set()
    await web.component.many_nodes([f"closed{number}" for number in range(20)])
    for _ in range(2):
        web.component.clock.advance(1)
        await web.component.create(ALICE, "notes")
        await web.component.publish(ALICE, "notes", "a")
        node = await web.component.app.service.store.read(lambda tx: tx.node("notes"))
        tag = (await web.get("/feeds/notes/")).header("ETag")
        assert node is not None
        assert node.node_no > 20
        assert str(node.node_no) not in tag.strip('W/"').split(".")
        tags.add(tag)
        ok(await web.component.owner_set(ALICE, "<delete node='notes'/>"))
    assert len(tags) == 2


async def test_a_search_without_words_is_refused(golden: Web) -> None:
    for path in ("/feeds/comments/?q=%F0%9F%8E%89", "/feeds/comments.rss?q=!!!", "/feeds/comments/?max=2&q=%23"):
        got = await golden.get(path)
        assert (got.status, got.json["condition"]) == (400, "bad-request")


async def test_an_empty_page_has_no_tag(golden: Web) -> None:
    """Who waits for more must never be told that nothing is what it has."""
    got = await golden.get("/feeds/comments/?since=time:2050-01-01T00:00:00Z&timeout=0")
    assert got.json["items"] == []
    assert got.header("ETag") == ""


async def test_head_has_the_headers_of_get_and_never_waits(golden: Web) -> None:
    """[A-11]"""
    path = "/feeds/comments/?max=2"
    head, got = await golden.ask("HEAD", path), await golden.get(path)
    for name in ("Content-Type", "Content-Length", "ETag", "Link"):
        assert head.header(name) == got.header(name)
    assert head.body == b""
    assert (await golden.ask("HEAD", "/feeds/comments/?since=time:2050-01-01T00:00:00Z")).status == 200


async def test_gzip_for_those_who_ask(golden: Web) -> None:
    """A long page goes out compressed, and is the same page; a short one does not."""
    path = "/feeds/comments/"
    plain = await golden.get(path, ATOM)
    small = await golden.get(path, ATOM, Accept_Encoding="gzip, deflate")
    assert small.header("Content-Encoding") == "gzip"
    assert gzip.decompress(small.body) == plain.body
    assert len(small.body) < len(plain.body)
    assert (await golden.get("/feeds/comments/?max=0", Accept_Encoding="gzip")).header("Content-Encoding") == ""


async def test_pages_of_other_hosts_may_read_open_feeds(golden: Web) -> None:
    """CORS: open feeds need no token."""
    assert (await golden.get("/feeds/comments/", Origin="https://a.example")).header(
        "Access-Control-Allow-Origin"
    ) == "*"
    ask = await golden.ask("OPTIONS", "/feeds/comments/", Origin="https://a.example")
    assert ask.status == 204
    assert "Authorization" in ask.header("Access-Control-Allow-Headers")


async def test_listed_feeds_that_are_not_open_ask_who_reads(web: Web) -> None:
    """[SF-111] [xep-map 184] [xep-map 185]: anonymous callers are asked for a token."""
    await web.component.create(ALICE, "closed", access_model="authorize", title="secret")
    await publish_all(web.component, "closed", "a")
    got = await web.get("/feeds/closed/")
    assert got.status == 401
    assert "Bearer" in got.header("WWW-Authenticate")
    assert "secret" not in got.text


@pytest.mark.both_engines
async def test_held_pull_hears_that_its_feed_has_gone(start_web: WebStarter) -> None:
    """[A-11]: an error ends the wait."""
    golden = await golden_feed(await start_web())
    held = asyncio.create_task(golden.get("/feeds/comments/?since=time:2050-01-01T00:00:00Z"))
    await golden.holding(1)
    await golden.component.owner_set(ALICE, "<delete node='comments'/>")
    assert (await held).status == 404


async def test_held_pulls_that_are_alike_have_one_answer(golden: Web) -> None:
    """[SF-056]: many wait, the page is read once, all get the same bytes."""
    since = "time:2026-01-01T00:00:00Z"
    held = [asyncio.create_task(golden.get(f"/feeds/comments/?since={since}")) for _ in range(20)]
    await golden.holding(20)
    await golden.component.publish(ALICE, "comments", "new")
    answers = [await one for one in held]
    assert {answer.body for answer in answers} == {answers[0].body}
    assert ids(answers[0].json) == ["new"]
    site = golden.component.app.site
    assert site is not None
    assert site.feeds.waiting.held == 0


@pytest.mark.both_engines
async def test_a_filtered_pull_waits_for_what_it_filters(start_web: WebStarter) -> None:
    """[A-11]: it wakes on an item that enters this view, and on no other."""
    golden = await golden_feed(await start_web())
    held = asyncio.create_task(golden.get("/feeds/comments/?q=needle"))
    await golden.holding(1)
    await golden.component.publish(ALICE, "comments", "hay")
    assert not held.done()
    await golden.component.publish(ALICE, "comments", "needle")
    assert ids((await held).json) == ["needle"]


@pytest.mark.parametrize(
    ("query", "waited_s"),
    [
        ("", 55),
        ("&timeout=7", 7),
        ("&timeout=0", None),
        ("&timeout=9999", 120),
        ("&until=time:2060-01-01T00:00:00Z", None),
        ("&until=", None),
        ("&max=0", None),
    ],
)
async def test_how_long_a_pull_waits(
    golden: Web, query: str, waited_s: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-056] [A-11]: 55 seconds unless told, at most 120; a timed out pull is an empty page with its cursor."""
    asked: list[float] = []

    async def over(_self: object, _node: int, _key: object, _seen: int, timeout_s: float, _write: object) -> None:
        asked.append(timeout_s)

    monkeypatch.setattr(HeldPulls, "wait", over)
    last = WINDOWS["cursors"]["t"]
    got = await golden.get(f"/feeds/comments/?since=cursor:{last}{query}")
    expected = [] if query.startswith("&until") else [last]
    assert got.status == 200
    assert (got.json["items"], [got.json["last_cursor"]][: len(expected)]) == ([], expected)
    assert asked == ([] if waited_s is None else [waited_s])


@pytest.mark.parametrize("query", ["timeout=-1", "timeout=x", "timeout=", "timeout=1.5", "max=x", "max=1&max=2"])
async def test_numbers_are_numbers(golden: Web, query: str) -> None:
    """[SF-056] [A-11]"""
    assert (await golden.get(f"/feeds/comments/?{query}")).status == 400


@pytest.mark.parametrize("query", ["order=score", "catgory=x", "order=created&order=created", "author=", "Max=1"])
async def test_unknown_parameters_are_refused(golden: Web, query: str) -> None:
    """[SF-024] [A-24] Those that are misspelt, and unknown values."""
    got = await golden.get(f"/feeds/comments/?{query}")
    assert (got.status, got.json["title"]) == (400, "Bad Request")


async def test_the_address_of_a_feed_leads_to_its_base_url(golden: Web) -> None:
    """Without its slash an address leads on, and never to another host."""
    got = await golden.get("/feeds/comments?order=created")
    assert (got.status, got.header("Location")) == (308, "/feeds/comments/?order=created")
    got = await golden.get("/feeds//evil.example")
    assert (got.status, got.header("Location")) == (308, "/feeds/%2Fevil.example/")
    assert (await golden.get("/feeds/nobody/")).status == 404


async def test_feed_says_how_it_can_be_reached(golden: Web) -> None:
    """[SF-112]: its base URL, and its forms."""
    link = (await golden.get("/feeds/comments/?order=created&max=1")).header("Link")
    assert f'<{golden.origin}/feeds/comments/?order=created>; rel="self"' in link
    assert f'<{golden.origin}/feeds/comments.atom?order=created>; rel="alternate"; type="{ATOM}"' in link


@pytest.mark.both_engines
async def test_name_with_a_query_string_of_its_own(start_web: WebStarter) -> None:
    """[SF-057] [SF-087]: it stands percent-encoded in the path, and shares the space with the parameters."""
    web = await start_web()
    await web.component.create(ALICE, "a?b=1")
    await publish_all(web.component, "a?b=1", "x y")
    assert ids((await web.get("/feeds/a%3Fb=1/?order=created&max=1")).json) == ["x"]
    assert (await web.get("/feeds/a%3Fb=1/")).json["url"] == f"{web.origin}/feeds/a%3Fb=1/"


async def test_node_that_is_named_like_a_view_is_not_that_view(start_web: Any) -> None:
    """[SF-057] [SF-111]: what a token lets read is the feed of the path, whatever other names there are."""
    web = await start_web()
    await web.component.create(ALICE, "a")
    await publish_all(web.component, "a", "mine")
    options = {"access_model": ("whitelist",)}

    def older(tx: WriteTx) -> None:
        """A node of such a name, as former versions allowed it."""
        tx.add_node(Node(0, "a?order=created", NodeKind.FEED, bare(ALICE), 0, NodeOptions(NodeKind.FEED, options)))

    await web.component.app.service.store.write(older)
    assert ids((await web.get("/feeds/a/?order=created")).json) == ["mine"]
    assert (await web.get("/feeds/a%3Forder=created/")).status == 404


async def test_a_callback_gets_what_everybody_may_read_and_nothing_else(golden: Web) -> None:
    """[SF-055]: a browser sends a password that it knows with every script."""
    got = await golden.get("/feeds/comments/?callback=steal", Authorization="Bearer sf_0123456789ab_" + "s" * 43)
    assert got.status == 401
    text = (await golden.get("/feeds/comments/?callback=steal")).text
    assert text.startswith("/**/steal(")


async def test_every_address_has_its_own_turn(start_web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks much keeps nobody else waiting: works of one address wait for each other, not for those of others."""
    web = await start_web(http={"proxies": ["127.0.0.1"]})
    await web.component.create(ALICE, "notes")
    turns: list[str] = []
    service = web.component.app.service
    submit = service.store.submit_read

    def noted(work: Work) -> None:
        turns.append(work.turn)
        submit(work)

    monkeypatch.setattr(service.store, "submit_read", noted)
    for address in ("203.0.113.1", "203.0.113.2"):
        await web.get("/feeds/notes/?timeout=0", X_Forwarded_For=address)
    assert turns == ["203.0.113.1", "203.0.113.2"]


@pytest.mark.both_engines
async def test_refusals_say_what_to_do(start_web: WebStarter) -> None:
    """An unknown parameter is named, a feed for subscribers says how to get in."""
    golden = await golden_feed(await start_web())
    assert "'catgory'" in (await golden.get("/feeds/comments/?catgory=red")).json["detail"]
    await golden.component.create(ALICE, "closed", access_model="authorize")
    got = await golden.get("/feeds/closed/")
    assert "token" in got.json["detail"]
    assert got.header("WWW-Authenticate").startswith("Basic ") and "Bearer" in got.header("WWW-Authenticate")
    assert "/entries/" in (await golden.ask("POST", "/feeds/comments/")).json["detail"]


async def test_generic_node_shows_what_left_it(web: Web) -> None:
    """[SF-057]: a pull since a cursor has the tombstones of what max_items and item_expire removed, too."""
    await web.component.create(ALICE, "plain", kind="generic", max_items="2", item_expire="60")
    for item_id in "abcd":
        await web.component.publish(ALICE, "plain", item_id, "<note xmlns='urn:example'>hello</note>")
        if item_id == "a":
            first = (await web.get("/feeds/plain/")).json
    changes = (await web.get(f"/feeds/plain/?since=cursor:{first['last_cursor']}")).json
    web.component.clock.advance(61)
    later = (await web.get(f"/feeds/plain/?since=cursor:{changes['last_cursor']}")).json

    shown = [[(item["id"], item.get("deleted", False)) for item in page["items"]] for page in (first, changes, later)]
    assert shown == [
        [("a", False)],
        [("a", True), ("c", False), ("b", True), ("d", False)],
        [("c", True), ("d", True)],
    ]
    assert (first["totalItems"], changes["totalItems"], later["totalItems"]) == (1, 4, 4)
    assert ids((await web.get("/feeds/plain/?order=created")).json) == list("abcd")
    assert (await web.get("/feeds/plain/?sync=true")).status == 404


async def test_cursor_of_an_empty_page_is_canonical(golden: Web) -> None:
    """[A-09]: the one that came, as we write it."""
    got = await golden.get("/feeds/comments/?since=cursor:9904942400.500000_0_e8b7be43&timeout=0")
    assert (got.json["items"], got.json["last_cursor"]) == ([], "9904942400.5_0_e8b7be43")


async def test_slow_pages_are_made_one_at_a_time(golden: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other requests run after each page that takes longer than the event loop may be occupied."""
    monkeypatch.setattr(feeds, "PAUSE_EVERY_S", 0.0)
    site = golden.component.app.site
    assert site is not None
    turns: list[int] = []
    turn = 0
    make = Feeds._reply

    def counted(self: Feeds, asked: FeedRequest, answer: FeedPage) -> Reply:
        turns.append(turn)
        return make(self, asked, answer)

    monkeypatch.setattr(Feeds, "_reply", counted)
    loop = asyncio.get_running_loop()

    def count() -> None:
        nonlocal turn
        turn += 1
        handle.append(loop.call_soon(count))

    handle = [loop.call_soon(count)]
    got = await asyncio.gather(*(golden.get(f"/feeds/comments/?max={n}&since=time:0") for n in range(1, 40)))
    handle[-1].cancel()
    assert {one.status for one in got} == {200}
    assert len(turns) == len(set(turns)) == 39


async def test_if_none_match_any(golden: Web) -> None:
    """`*` means whatever there is (RFC 9110 13.1.2)."""
    assert (await golden.get("/feeds/comments/", If_None_Match="*")).status == 304
    assert (await golden.get("/feeds/comments/?max=0", If_None_Match="*")).status == 200


async def test_publisher_is_named_only_where_the_feed_names_it(web: Web) -> None:
    """A pull shows what is in the entry; who published it is for XMPP, as its owner decided."""
    await web.component.create(ALICE, "anon", itemreply="none")
    await publish_all(web.component, "anon", "x")
    for form in (JSON, ATOM):
        assert "alice" not in (await web.get("/feeds/anon/", form)).text


async def test_sync_data_of_a_feed_that_hides_its_publishers_are_not_public(web: Web) -> None:
    """[A-61] [SF-111] The history of an item from before names its publisher, on every path that shows sync data."""
    await web.component.create(ALICE, "anon")
    await publish_all(web.component, "anon", "x")
    paths = ("/feeds/anon/?sync=true", "/feeds/anon/?sync=true&since=", "/entries/anon/x?sync=true")
    before = [(await web.get(path, ATOM)) for path in paths]
    await web.component.configure(ALICE, "anon", itemreply="none")

    after = [(await web.get(path, ATOM)) for path in paths]

    assert [(answer.status, "alice" in answer.text) for answer in before] == [(200, True)] * 3
    assert [(answer.status, "alice" in answer.text) for answer in after] == [(401, False)] * 3
    assert (await web.get("/feeds/anon/?order=modified&since=")).status == 200


def test_forms_have_suffixes_of_their_own() -> None:
    """Each suffix is one form."""
    suffixes = [form.suffix for form in (*feed_forms().of_feed, *feed_forms().of_list)]
    assert {"json", "atom", "rss", "opml"} <= set(suffixes)


async def test_category_that_is_a_path_is_found_by_its_parts(web: Web) -> None:
    """[A-139] [SF-014] A filter by category matches each level of a path; the entry keeps the term as published."""
    await web.component.create(ALICE, "notes")
    term = "/standards//xsl/"
    payload = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title><category term='{term}'/></entry>"
    await web.component.publish(ALICE, "notes", "a", payload=payload)
    await web.component.publish(ALICE, "notes", "b")
    for category in ("standards", "xsl", "standards%2Fxsl", quote(term, safe="")):
        assert ids((await web.get(f"/feeds/notes/?category={category}")).json) == ["a"]
    for category in ("standard", "standards%2Fx", "%2F"):
        assert ids((await web.get(f"/feeds/notes/?category={category}&timeout=0")).json) == []
    assert f'term="{term}"' in (await web.get("/feeds/notes.atom")).text


@pytest.mark.both_engines
async def test_view_that_is_not_counted_has_no_total(start_web: WebStarter, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SF-061] [SF-066] A wrong total would be worse than none; items, cursors and links are there as always."""
    golden = await golden_feed(await start_web())
    path = "/feeds/comments/?kind=new&max=2&timeout=0&until="
    counted = await golden.get(path)
    monkeypatch.setattr(ReadTx, "bounded_count", lambda _tx, _node_no, _view: None)
    await put(golden.component, "comments", [("late", 2_000_000_000 * US_PER_S)])

    got = await golden.get(path)
    atom = etree.fromstring((await golden.get(path, Accept=ATOM)).body)

    assert counted.json["totalItems"] > 2 and "totalItems" not in got.json
    assert ids(got.json)[-1] == "late" and got.json["last_cursor"]
    assert atom.find(f"{FO}total") is None and atom.find(f"{FO}last_cursor") is not None
    if "pages" in FEATURE_NAMES:
        assert b"not counted" in (await golden.get(path, Accept="text/html")).body
