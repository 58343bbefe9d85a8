"""Answers on pages: what an entry answers, the answers to it, and what readers without rights learn of both."""

import asyncio
from dataclasses import replace
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import pytest
from lxml import etree, html

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import MAX_ITEM_NO, Edge, Slice
from smartfeeds.core.token import TokenScope
from smartfeeds.core.view import View
from smartfeeds.errors import FeedError
from smartfeeds.features.pages import reply_requests
from smartfeeds.features.pages.reply_requests import GetReplyContext, ReplyPlace, parse_reply_place
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.requests import Publish
from support.browsing import sign_in
from support.component import ALICE, BOB, CAROL, DOMAIN, bare
from support.web import Got, Web

pytestmark = pytest.mark.shared

HTML = "text/html"
ATOM_NS = "http://www.w3.org/2005/Atom"
THREAD = "xmlns:thr='http://purl.org/syndication/thread/1.0'"


def reply(title: str, ref: str, href: str = "", atom_id: str = "", inner: str = "") -> str:
    """An entry that answers another one."""
    own = f"<id>{escape(atom_id)}</id>" if atom_id else ""
    address = f" href={quoteattr(href)}" if href else ""
    answered = f"<thr:in-reply-to {THREAD} ref={quoteattr(ref)}{address}/>"
    return f"<entry xmlns='{ATOM_NS}'>{own}<title>{escape(title)}</title>{answered}{inner}</entry>"


def post(title: str, atom_id: str = "", inner: str = "") -> str:
    own = f"<id>{escape(atom_id)}</id>" if atom_id else ""
    return f"<entry xmlns='{ATOM_NS}'>{own}<title>{escape(title)}</title>{inner}</entry>"


def address(node: str, item_id: str) -> str:
    return f"xmpp:{DOMAIN}?;node={quote(node, safe='')};item={quote(item_id, safe='')}"


async def publish(web: Web, node: str, item_id: str, payload: str, user: str = ALICE) -> None:
    web.component.clock.advance(60)
    await web.component.publish(user, node, item_id, payload)


def tree(got: Got) -> etree._Element:
    assert got.status == 200, got.text
    return html.fromstring(got.body)


def answers(page: etree._Element) -> list[tuple[str, str]]:
    """What the entries on a page say that they answer: texts and addresses."""
    return [(link.text_content(), link.get("href", "")) for link in page.xpath("//*[@class='reply']/a")]


def thread(page: etree._Element) -> list[str]:
    """The titles of the answers on the page of an entry."""
    return [title.text_content() for title in page.xpath("//section[@class='thread']/article/h2")]


async def entry(web: Web, node: str, item_id: str, query: str = "", **headers: str) -> etree._Element:
    return tree(await web.get(f"/entries/{quote(node, safe='')}/{quote(item_id, safe='')}{query}", HTML, **headers))


# What an entry answers.


@pytest.mark.parametrize(
    ("ref", "href"),
    [
        ("tag:x,2026:q", address("notes", "q")),
        ("tag:x,2026:q", "{origin}/entries/notes/q"),
        ("tag:x,2026:q", "{origin}/entries/notes/q?x=1#y"),
        (address("notes", "q"), ""),
        ("q", ""),
        ("urn:x-smartfeeds:q", ""),
    ],
)
async def test_reply_says_what_it_answers(notes: Web, ref: str, href: str) -> None:
    """On its card in the feed and in the river, and on its page."""
    await publish(notes, "notes", "q", post("What now?", "tag:x,2026:q"))
    await publish(notes, "notes", "a", reply("This", ref, href.replace("{origin}", notes.origin)))
    for path in ("/feeds/notes/", "/", "/entries/notes/a"):
        assert answers(tree(await notes.get(path, HTML))) == [("What now?", "/entries/notes/q")], path


async def test_reply_to_an_entry_elsewhere_shows_its_address(notes: Web) -> None:
    await publish(notes, "notes", "a", reply("This", "urn:x:1", "https://other.example/q"))
    await publish(notes, "notes", "b", reply("That", "urn:x:2"))
    await publish(notes, "notes", "c", reply("Evil", "urn:x:3", "javascript:alert(1)"))
    for path in ("/feeds/notes/", "/"):
        page = tree(await notes.get(path, HTML))
        assert answers(page) == [("https://other.example/q", "https://other.example/q")], path


async def test_title_of_the_answered_entry_follows_its_changes(notes: Web) -> None:
    """Feed pages are stored by the version of the feed."""
    await publish(notes, "notes", "q", post("Old"))
    await publish(notes, "notes", "a", reply("This", "q"))
    assert answers(tree(await notes.get("/feeds/notes/", HTML)))[0][0] == "Old"
    await publish(notes, "notes", "q", post("<New> & bold"))
    assert answers(tree(await notes.get("/feeds/notes/", HTML)))[0][0] == "<New> & bold"
    await notes.component.retract(ALICE, "notes", "q")
    for path in ("/feeds/notes/", "/", "/entries/notes/a"):
        assert answers(tree(await notes.get(path, HTML))) == [("a deleted entry", "/entries/notes/q")]


async def test_answered_entry_of_a_closed_feed_is_shown_to_its_readers_only(web: Web) -> None:
    """Others learn what the answer itself says: a name and an id."""
    await web.component.create(ALICE, "notes")
    await web.component.create(ALICE, "secret", access_model="whitelist")
    await publish(web, "secret", "q", post("The secret title", "tag:x,2026:q"))
    await publish(web, "notes", "a", reply("This", "tag:x,2026:q", address("secret", "q")))
    alice, bob = await sign_in(web, ALICE), await sign_in(web, BOB)
    for path in ("/", "/entries/notes/a"):
        assert answers(tree(await alice.get(path, HTML)))[0] == ("The secret title", "/entries/secret/q")
        for got in (await bob.get(path, HTML), await web.get(path, HTML)):
            assert answers(tree(got)) == [("an entry of secret", "/entries/secret/q")]
            assert "The secret title" not in got.text
    # The page of a feed is stored with the version of that feed, so it never shows what belongs to another one.
    assert "The secret title" not in (await alice.get("/feeds/notes/", HTML)).text
    narrow = await sign_in(web, ALICE, TokenScope.READ, "notes")
    assert "The secret title" not in (await narrow.get("/entries/notes/a", HTML)).text
    await web.component.affiliate(ALICE, "secret", BOB, "member")
    assert "The secret title" in (await bob.get("/entries/notes/a", HTML)).text
    await web.component.affiliate(ALICE, "secret", BOB, "none")
    assert "The secret title" not in (await bob.get("/entries/notes/a", HTML)).text


@pytest.mark.parametrize(
    "href",
    [
        address("notes", "%00"),
        f"xmpp:{DOMAIN}?;node=%ff;item=q",
        f"xmpp:{DOMAIN}?;node=notes;item=",
        f"xmpp:{DOMAIN}?;node=notes%3Forder%3Dcreated;item=q",
        "{origin}/entries/%ff/q",
        "{origin}/entries/notes/" + "x" * 2_000,
        "{origin}/entries/",
        "xmpp:?;node=notes;item=q",
        "xmpp:other.example?;node=notes;item=q",
    ],
)
async def test_reference_that_no_item_can_have_is_not_followed(notes: Web, href: str) -> None:
    await publish(notes, "notes", "q", post("What now?"))
    await publish(notes, "notes", "a", reply("This", "urn:x", href.replace("{origin}", notes.origin)))
    for path in ("/feeds/notes/", "/", "/entries/notes/a"):
        assert "What now?" not in [label for label, _ in answers(tree(await notes.get(path, HTML)))]


async def test_entry_with_hundreds_of_references_follows_three(notes: Web) -> None:
    many = "".join(f"<thr:in-reply-to {THREAD} ref='q{number}'/>" for number in range(200))
    for number in range(5):
        await publish(notes, "notes", f"q{number}", post(f"Question {number}"))
    await publish(notes, "notes", "a", f"<entry xmlns='{ATOM_NS}'><title>This</title>{many}</entry>")
    assert [label for label, _ in answers(await entry(notes, "notes", "a"))] == [f"Question {n}" for n in range(3)]


# The answers to an entry.


async def test_entry_shows_its_replies_oldest_first(notes: Web) -> None:
    """An edit or a deletion of another answer moves none. The entry of the page is no answer to itself."""
    await publish(notes, "notes", "q", reply("What now?", "tag:x,2026:q", atom_id="tag:x,2026:q"))
    for name in ("a", "b", "c"):
        await publish(notes, "notes", name, reply(f"Answer {name}", "tag:x,2026:q"))
    await publish(notes, "notes", "a", reply("Answer a, edited", "tag:x,2026:q"))
    await notes.component.retract(ALICE, "notes", "b")
    await publish(notes, "notes", "other", post("Something else"))
    page = await entry(notes, "notes", "q")
    assert thread(page) == ["Answer a, edited", "Answer c"]
    assert page.xpath("string(//section[@class='thread']/h2)") == "2 replies"
    assert thread(await entry(notes, "notes", "other")) == []


@pytest.mark.parametrize("ref", ["{origin}/entries/notes/q", address("notes", "q"), "https://blog.example/q"])
async def test_reply_may_name_an_address_of_the_entry(notes: Web, ref: str) -> None:
    """Blog editors name the page (Micropub), other clients the XMPP address or the original page."""
    link = "<link rel='alternate' href='https://blog.example/q'/>"
    await publish(notes, "notes", "q", post("What now?", "tag:x,2026:q", link))
    await publish(notes, "notes", "a", reply("This", ref.replace("{origin}", notes.origin)))
    assert thread(await entry(notes, "notes", "q")) == ["This"]


async def test_entries_that_answer_each_other_have_finite_pages(notes: Web) -> None:
    for name, answered in (("a", "b"), ("b", "c"), ("c", "a")):
        await publish(
            notes, "notes", name, reply(f"Entry {name}", f"tag:x,2026:{answered}", atom_id=f"tag:x,2026:{name}")
        )
    for name, answer in (("a", "c"), ("b", "a"), ("c", "b")):
        assert thread(await entry(notes, "notes", name)) == [f"Entry {answer}"]


@pytest.mark.parametrize("cut", ["number", "bytes"])
async def test_replies_come_in_pages(notes: Web, monkeypatch: pytest.MonkeyPatch, cut: str) -> None:
    """Each answer once, also those with equal keys."""
    service = notes.component.app.service
    if cut == "number":
        monkeypatch.setattr(reply_requests, "REPLIES", 3)
    else:
        monkeypatch.setattr(service, "policy", replace(service.policy, page_bytes=1_000))
    await publish(notes, "notes", "q", post("What now?", "tag:x,2026:q"))
    for number in range(10):
        await publish(notes, "notes", f"a{number}", reply(f"Answer {number}", "tag:x,2026:q"))
    titles: list[str] = []
    query = ""
    while True:
        page = await entry(notes, "notes", "q", query)
        assert page.xpath("string(//section[@class='thread']/h2)") == "10 replies"
        assert bool(page.xpath("//a[text()='First replies']")) is bool(query)
        titles += thread(page)
        assert len(thread(page)) < 6
        following = page.xpath("//section[@class='thread']/p/a[starts-with(., 'More replies')]/@href")
        if not following:
            break
        query = f"?{following[0].partition('?')[2].partition('#')[0]}"
    assert titles == [f"Answer {number}" for number in range(10)]
    assert page.xpath("//link[@rel='canonical']/@href") == [f"{notes.origin}/entries/notes/q"]


@pytest.mark.parametrize(
    "text", ["x", "_", "2026_x_1", "2026_1", "2026_2_1", "2026_1_1000000000000000000", "2026_1_١", "9" * 40 + "_1_1"]
)
async def test_place_that_is_none_is_rejected(notes: Web, text: str) -> None:
    await publish(notes, "notes", "q", post("What now?"))
    got = await notes.get(f"/entries/notes/q?replies={quote(text)}", HTML)
    assert got.status == 400
    with pytest.raises(FeedError):
        parse_reply_place(text)


def test_place_is_written_as_it_is_read() -> None:
    place = ReplyPlace(1_767_225_600_000_001, 1, 3)
    assert parse_reply_place(str(place)) == place


@pytest.mark.parametrize("place", ["1_0_0", "1_1_999999999999999999"])
async def test_page_behind_any_place_reads_no_more_than_a_page(
    notes: Web, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Anybody may choose the place."""
    await notes.component.create(ALICE, "notes/comments", publish_model="open")
    await publish(notes, "notes", "q", post("What now?", "tag:x,2026:q", commented("notes/comments")))
    await publish(notes, "notes/comments", "1", reply("First", "tag:x,2026:q"), BOB)
    await publish(notes, "notes", "2", reply("Second", "tag:x,2026:q"))
    await entry(notes, "notes", "q")
    await notes.component.index()
    limits: list[int] = []

    def noted(view: View, limit: int, after: Edge | None = None, **rest: bool) -> Slice:
        limits.append(limit)
        return Slice(view, limit, after, **rest)

    monkeypatch.setattr(reply_requests, "Slice", noted)
    assert thread(await entry(notes, "notes", "q", f"?replies={quote(place)}")) == ["First", "Second"]
    assert limits == [reply_requests.REPLIES + 2] * 2


def test_place_between_the_comments_and_the_feed() -> None:
    """Of answers with one key, those among the comments come first."""
    assert [ReplyPlace(5, 0, 7).edge(in_feed) for in_feed in (0, 1)] == [Edge(5, 7), Edge(5, -1)]
    assert [ReplyPlace(5, 1, 7).edge(in_feed) for in_feed in (0, 1)] == [Edge(5, MAX_ITEM_NO), Edge(5, 7)]


async def test_new_reply_is_shown_at_once_and_changes_the_tag(notes: Web) -> None:
    await publish(notes, "notes", "q", post("What now?", "tag:x,2026:q"))
    tags = {(await notes.get("/entries/notes/q", HTML)).header("ETag")}
    await publish(notes, "notes", "a", reply("This", "tag:x,2026:q"))
    got = await notes.get("/entries/notes/q", HTML)
    assert thread(tree(got)) == ["This"]
    tags.add(got.header("ETag"))
    await publish(notes, "notes", "a", reply("That", "tag:x,2026:q"))
    got = await notes.get("/entries/notes/q", HTML)
    assert thread(tree(got)) == ["That"]
    assert len({*tags, got.header("ETag")}) == 3


async def test_answer_to_the_entry_of_another_feed_is_not_one_to_its_namesake(notes: Web) -> None:
    await publish(notes, "notes", "q", post("What now?"))
    await publish(notes, "notes", "a", reply("That", address("other", "q")))
    await publish(notes, "notes", "b", reply("This", address("notes", "q")))
    await publish(notes, "notes", "c", reply("Bare", "q"))
    await entry(notes, "notes", "q")
    await notes.component.index()
    assert thread(await entry(notes, "notes", "q")) == ["This", "Bare"]


async def test_cards_say_how_many_replies_an_entry_has(notes: Web) -> None:
    await publish(notes, "notes", "q", post("What now?", "tag:x,2026:q"))
    for name in ("a", "b"):
        await publish(notes, "notes", name, reply(f"Answer {name}", "tag:x,2026:q"))
    await entry(notes, "notes", "q")  # begins the index of the feed
    await notes.component.index()

    async def counts() -> list[tuple[str, str]]:
        page = tree(await notes.get("/feeds/notes/", HTML))
        return [(link.text_content(), link.get("href", "")) for link in page.xpath("//a[@class='replies']")]

    assert await counts() == [("2 replies", "/entries/notes/q#replies")]
    await notes.component.retract(ALICE, "notes", "b")
    await notes.component.index()
    assert await counts() == [("1 reply", "/entries/notes/q#replies")]


async def test_feed_without_replies_gets_no_index(notes: Web) -> None:
    """An index would make each publish of the feed dearer."""
    await publish(notes, "notes", "q", post("What now?"))
    for path in ("/entries/notes/q", "/feeds/notes/"):
        assert (await notes.get(path, HTML)).status == 200
    states = await notes.component.app.service.read(
        lambda tx, _context: tx.index_state(node.node_no) if (node := tx.node("notes")) is not None else None
    )
    assert states is not None and states.value == "unread"


# Comments in a node of their own (XEP-0277).


def commented(node: str) -> str:
    return f"<link rel='replies' href='xmpp:{DOMAIN}?;node={quote(node, safe='')}'/>"


async def test_comments_are_merged_with_the_replies_of_the_feed(notes: Web) -> None:
    await notes.component.create(ALICE, "notes/comments", publish_model="open")
    await publish(notes, "notes", "q", post("What now?", "tag:x,2026:q", commented("notes/comments")))
    await publish(notes, "notes/comments", "1", reply("First", "tag:x,2026:q"), BOB)
    await publish(notes, "notes", "2", reply("Second", "tag:x,2026:q"))
    await publish(notes, "notes/comments", "3", reply("Third", "tag:x,2026:q"), BOB)
    await publish(notes, "notes/comments", "4", reply("Of another entry", "tag:x,2026:z"), BOB)
    await entry(notes, "notes", "q")
    await notes.component.index()
    assert thread(await entry(notes, "notes", "q")) == ["First", "Second", "Third"]


async def test_node_for_the_comments_of_one_entry_has_nothing_else(notes: Web) -> None:
    """Some clients name the entry only by the node."""
    node = "urn:xmpp:microblog:0:comments/q"
    await notes.component.create(ALICE, node, publish_model="open")
    await publish(notes, "notes", "q", post("What now?", "", commented(node)))
    await publish(notes, node, "1", post("First"), BOB)
    assert thread(await entry(notes, "notes", "q")) == ["First"]


async def test_entry_does_not_show_the_comments_of_another_one_as_its_own(notes: Web) -> None:
    """Bob names the node for the comments of an entry of Alice, in a feed of his with an entry of the same id."""
    node = "urn:xmpp:microblog:0:comments/q"
    await notes.component.create(ALICE, node, publish_model="open")
    await notes.component.create(ALICE, "alices/talk", publish_model="open")
    await notes.component.create(BOB, "bobs")
    await publish(notes, node, "1", post("For Alice"), ALICE)
    await publish(notes, "alices/talk", "1", reply("Of her talk", "tag:x,2026:bob"), ALICE)
    for item_id, named in (("q", node), ("other", node), ("talk", "alices/talk")):
        await publish(notes, "bobs", item_id, post("Mine", "tag:x,2026:bob", commented(named)), BOB)
        await entry(notes, "bobs", item_id)
        await notes.component.index()
        assert thread(await entry(notes, "bobs", item_id)) == []
    await publish(notes, "notes", "other", post("Another", "", commented(node)))
    assert thread(await entry(notes, "notes", "other")) == []


async def test_comments_of_a_closed_node_are_shown_to_its_readers_only(web: Web) -> None:
    node = "urn:xmpp:microblog:0:comments/q"
    await web.component.create(ALICE, "notes")
    await web.component.create(ALICE, node, access_model="whitelist")
    await publish(web, "notes", "q", post("What now?", "", commented(node)))
    await publish(web, node, "1", post("Between us"))
    alice, bob = await sign_in(web, ALICE), await sign_in(web, BOB)
    assert "Between us" in (await alice.get("/entries/notes/q", HTML)).text
    narrow = await sign_in(web, ALICE, TokenScope.READ, "notes")
    for got in (
        await bob.get("/entries/notes/q", HTML),
        await web.get("/entries/notes/q", HTML),
        await narrow.get("/entries/notes/q", HTML),
    ):
        assert (got.status, "Between us" in got.text) == (200, False)


# The form.


@pytest.mark.needs("authoring", "accounts")
@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("open", "Everybody who signs in may reply."),
        ("subscribers", "Subscribers of this feed may reply."),
        ("publishers", "Publishers of this feed may reply."),
    ],
)
async def test_readers_who_may_not_reply_learn_who_may(notes: Web, model: str, hint: str) -> None:
    await notes.component.configure(ALICE, "notes", publish_model=model)
    await publish(notes, "notes", "q", post("What now?"))
    if model == "publishers":
        assert not (await entry(notes, "notes", "q")).xpath("//section[@class='thread']")
        await publish(notes, "notes", "a", reply("This", "q"))
    page = await entry(notes, "notes", "q")
    assert hint in page.xpath("string(//section[@class='thread'])")
    assert page.xpath("//section[@class='thread']/p/a/@href") == ["/login"]
    assert not page.xpath("//section[@class='thread']//form")
    carol = tree(await (await sign_in(notes, CAROL)).get("/entries/notes/q", HTML))
    assert bool(carol.xpath("//section[@class='thread']//form")) is (model == "open")
    assert (hint in carol.text_content()) is (model != "open")


@pytest.mark.needs("authoring", "accounts")
@pytest.mark.parametrize("item_id", ["q", "ü /?&%#'\"", "..", "a" * 1_000])
async def test_reply_is_written_on_the_page_of_the_entry(notes: Web, item_id: str) -> None:
    """[RFC 4685 3] The answer names id and address of the entry, and is under it afterwards."""
    await publish(notes, "notes", item_id, post("What now?"))
    alice = await sign_in(notes, ALICE)
    path = f"/entries/notes/{quote(item_id, safe='')}" if item_id != ".." else "/entries/notes/.."
    page = tree(await alice.get(path, HTML))
    (form,) = page.xpath("//section[@class='thread']//form")
    fields = {one.get("name"): one.get("value") for one in form.xpath(".//input") if one.get("name") != "csrf"}
    body = "&".join(f"{name}={quote(text, safe='')}" for name, text in {**fields, "text": "A *fine* one"}.items())
    got = await alice.post(form.get("action"), f"{body}&action=publish")
    assert got.status == 303
    target, _, anchor = got.header("Location").partition("#")
    assert anchor == "replies"
    page = tree(await alice.get(target, HTML))
    assert thread(page) == ["A fine…"]
    # The beginning of a text is no heading above it.
    assert page.xpath("//section[@class='thread']/article/h2/@class") == ["unseen"]
    (answer,) = page.xpath("//section[@class='thread']/article/@data-id")
    assert answers(await entry(notes, "notes", answer)) == [("What now?", target)]
    stored = etree.fromstring((await notes.get(f"/entries/notes/{answer}", "application/atom+xml")).body)
    (reference,) = stored.iter("{http://purl.org/syndication/thread/1.0}in-reply-to")
    assert reference.get("href") == f"{notes.origin}{target}"


async def test_thousands_of_replies_make_no_longer_page(notes: Web) -> None:
    await publish(notes, "notes", "q", post("What now?", "tag:x,2026:q"))
    actor = parse_jid(bare(ALICE))
    assert actor is not None
    service = notes.component.app.service

    async def answer(number: int) -> None:
        draft = draft_of(etree.fromstring(reply(f"Answer {number}", "tag:x,2026:q")))
        await service.handle(Publish(actor, DOMAIN, "notes", f"a{number:04}", draft))

    for start in range(0, 3_000, 500):
        await asyncio.gather(*map(answer, range(start, start + 500)))
    await notes.component.index()
    page = await entry(notes, "notes", "q")
    assert len(thread(page)) == reply_requests.REPLIES
    assert page.xpath("string(//section[@class='thread']/h2)") == "3\N{NARROW NO-BREAK SPACE}000 replies"
    assert len(page.xpath("//section[@class='thread']//a[starts-with(., 'More replies')]")) == 1


async def test_page_of_a_feed_asks_once_for_all_its_entries(notes: Web) -> None:
    """And not at all while it comes from the cache."""
    for number in range(5):
        await publish(notes, "notes", f"a{number}", reply(f"Answer {number}", "q"))
    answered = notes.component.app.service.answered
    before = answered[GetReplyContext]
    for _ in range(3):
        await notes.get("/feeds/notes/", HTML)
    assert answered[GetReplyContext] == before + 1
