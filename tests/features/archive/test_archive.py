"""The archive of nodes: queries with filters, pages, results in messages (XEP-0313, XEP-0431, XEP-0442)."""

from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import pytest
import pytest_asyncio

from smartfeeds.core.filters import MAX_FILTER_BYTES
from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    INFO,
    NS,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    body,
    ok,
    refusal,
    submit,
    text_of,
    tree,
)
from support.pulls import order_by, publish_all, pull, result_set

pytestmark = pytest.mark.shared

MAM = "urn:xmpp:mam:2"
FULL_TEXT = "{urn:xmpp:fulltext:0}fulltext"
XML = {**NS, "mam": MAM, "fwd": "urn:xmpp:forward:0", "cl": "jabber:client"}
NOT_FOUND = Refusal("cancel", "item-not-found")
BAD_REQUEST = Refusal("modify", "bad-request")
NO_FEATURE = Refusal("cancel", "feature-not-implemented")
LETTERS = "a b c d e f g"
ALL = LETTERS.split()
START = "2026-01-01T00:00:"  # the clock of the component; items come a second apart


@dataclass(frozen=True, slots=True)
class Archive:
    """The results of a query in the order in which they came, and the response that followed them."""

    messages: list[Element]
    answer: Element

    @property
    def ids(self) -> list[str]:
        """The ids of the items."""
        return [str(item) for message in self.messages for item in message.xpath(".//ev:item/@id", namespaces=XML)]

    @property
    def uids(self) -> list[str]:
        """The ids of the results."""
        return [str(uid) for message in self.messages for uid in message.xpath("mam:result/@id", namespaces=XML)]

    @property
    def complete(self) -> bool:
        """Whether the response says that there is nothing beyond the page."""
        return bool(self.answer.xpath("mam:fin/@complete = 'true'", namespaces=XML))

    def part(self, name: str) -> str | None:
        """The text of a part of the result set."""
        return self.answer.findtext(f"mam:fin/rsm:set/rsm:{name}", None, XML)


async def query(
    component: Component, node: str, beside: str = "", *, user: str = BOB, to: str = DOMAIN, **fields: str | list[str]
) -> Archive:
    """Queries an archive. Field names have `-` for `_`."""
    names = {name.replace("_", "-"): value if isinstance(value, list) else [value] for name, value in fields.items()}
    form = submit({"FORM_TYPE": [MAM], **names}) if names else ""
    xml = f"<query xmlns='{MAM}' queryid='f27' node={quoteattr(node)}>{form}{beside}</query>"
    answer = await component.ask(user, "set", xml, to)
    return Archive(await component.events(user), answer)


def payload(title: str, category: str = "") -> str:
    """An entry with a category."""
    inner = f"<category term={quoteattr(category)}/>" if category else ""
    return f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{title}</title>{inner}</entry>"


@pytest_asyncio.fixture(loop_scope="module")
async def feed(component: Component) -> Component:
    """A feed with the items a to g, a second apart."""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", LETTERS)
    return component


async def test_query_without_fields_gives_every_item_as_a_forwarded_notification(feed: Component) -> None:
    """XEP-0313 4.2, XEP-0442 3: results first, in the order of the node, then the response."""
    found = await query(feed, "comments")

    assert found.ids == ALL
    page = await pull(feed, "comments", max=1)
    message = found.messages[0]
    assert (message.get("from"), message.get("to"), bool(message.get("id"))) == (DOMAIN, BOB, True)
    (item,) = page.items
    (result,) = message
    assert (result.get("queryid"), result.get("id")) == ("f27", page.first)
    (forwarded,) = result
    delay, forwarded_message = forwarded
    assert delay.get("stamp") == f"{START}00Z"
    assert forwarded_message.tag == "{jabber:client}message"
    assert forwarded_message.attrib == {"type": "headline", "from": DOMAIN}
    events = forwarded_message.xpath("ev:event/ev:items[@node='comments']/ev:item", namespaces=XML)
    assert [tree(child) for each in events for child in each] == [tree(child) for child in item]
    assert events[0].get("publisher") == bare(ALICE)
    assert body(ok(found.answer)) == [
        tree(
            f"<fin xmlns='{MAM}' complete='true'><set xmlns='{NS['rsm']}'><first index='0'>{found.uids[0]}</first>"
            f"<last>{found.uids[-1]}</last><count>7</count></set></fin>"
        )
    ]
    assert " ".join(feed.kinds).count("message " * 7 + "iq") == 1


async def test_every_page_continues_behind_the_last_result(feed: Component) -> None:
    """XEP-0313 4.3.2: ids of results are positions, the last page is complete."""
    seen: list[str] = []
    after: str | None = ""
    complete = False
    while not complete:
        page = await query(feed, "comments", result_set(max=3, after=after))
        assert (page.part("first"), page.part("last")) == (page.uids[0], page.uids[-1])
        seen, after, complete = seen + page.ids, page.part("last"), page.complete

    assert seen == ALL
    beyond = await query(feed, "comments", result_set(after=after))
    assert (beyond.ids, beyond.complete, beyond.part("count")) == ([], True, "7")


async def test_last_page_is_the_newest_in_ascending_order(feed: Component) -> None:
    """XEP-0313 4.3.3."""
    newest = await query(feed, "comments", result_set(max=3, before=""))
    older = await query(feed, "comments", result_set(max=9, before=newest.uids[0]))

    assert (newest.ids, newest.complete) == (["e", "f", "g"], False)
    assert (older.ids, older.complete) == (["a", "b", "c", "d"], True)


async def test_flipped_page_is_the_same_page_in_reverse(feed: Component) -> None:
    """XEP-0313 4.3.4."""
    page = await query(feed, "comments", result_set(max=3) + "<flip-page/>")

    assert page.ids == ["c", "b", "a"]
    assert (page.part("first"), page.part("last")) == (page.uids[-1], page.uids[0])


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({"start": f"{START}02Z"}, "c d e f g"),
        ({"end": f"{START}02Z"}, "a b c"),
        ({"start": f"{START}02Z", "end": "2026-01-01T01:00:04+01:00"}, "c d e"),
        ({"start": f"{START}01.5Z", "end": f"{START}01.7Z"}, ""),
        ({"start": f"{START}05Z", "end": f"{START}01Z"}, ""),
        ({"after_id": "b"}, "c d e f g"),
        ({"before_id": "c"}, "a b"),
        ({"after_id": "b", "before_id": "f"}, "c d e"),
        ({"after_id": "b", "start": f"{START}04Z"}, "e f g"),
        ({"start": ""}, LETTERS),
        ({"ids": ["f", "b"]}, "b f"),
    ],
)
async def test_range_of_times_and_ids_limits_the_results(feed: Component, fields: dict[str, str], ids: str) -> None:
    """XEP-0313 4.1.2, 4.1.3: times are inclusive, ids are not; the count is that of the range."""
    everything = await query(feed, "comments")
    uids = dict(zip(everything.ids, everything.uids, strict=True))
    values = {
        name: [uids[each] for each in value] if name == "ids" else uids.get(value, value)
        for name, value in fields.items()
    }

    found = await query(feed, "comments", **values)
    first = await query(feed, "comments", result_set(max=2), **values)

    assert (found.ids, found.complete, found.part("count")) == (ids.split(), True, str(len(ids.split())))
    if "ids" not in fields:
        assert first.ids == ids.split()[:2]
        assert (first.complete, first.part("count")) == (len(ids.split()) <= 2, found.part("count"))


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({"category": "tea"}, "one three"),
        ({"category": ["tea", "milk"]}, "one two three"),
        ({"q": "green tea"}, "one"),
        ({"{urn:xmpp:fulltext:0}fulltext": "GREEN"}, "one two"),
        ({"author": bare(CAROL)}, "three"),
        ({"with": bare(CAROL)}, "three"),
        ({"with": bare(ALICE), "category": "milk"}, "two"),
        ({"q": "nothing"}, ""),
    ],
)
async def test_filters_of_views_are_fields_of_a_query(
    component: Component, fields: dict[str, str | list[str]], ids: str
) -> None:
    """XEP-0431 and the filters of views: in the bare node without deleted items, and with the count of the filter."""
    await component.create(ALICE, "comments", publish_model="open")
    await component.publish(ALICE, "comments", "one", payload("green tea", "tea"))
    await component.publish(ALICE, "comments", "two", payload("green milk", "milk"))
    await component.publish(CAROL, "comments", "three", payload("black", "tea"))
    await component.publish(ALICE, "comments", "gone", payload("green tea nothing", "tea"))
    await component.retract(ALICE, "comments", "gone")

    found = await query(component, "comments", **fields)

    assert (found.ids, found.part("count")) == (ids.split(), str(len(ids.split())))


async def test_query_of_a_view_contains_what_the_view_contains(feed: Component) -> None:
    """[xep-map 204]: deleted items in a Smart view; filters of the query are added to those of the view."""
    await feed.retract(ALICE, "comments", "b")
    await feed.publish(ALICE, "comments", "h", payload("x", "tea"))

    smart = await query(feed, "comments?order=modified")
    created = await query(feed, "comments?order=created", result_set(max=2))
    filtered = await query(feed, "comments?category=tea", kind="new")

    assert smart.ids == ["a", "c", "d", "e", "f", "g", "b", "h"]
    assert smart.messages[-2].find(".//sx:sync[@deleted='true']", XML) is not None
    assert created.ids == ["a", "b"] and created.uids[0].startswith("cursor:c")
    assert filtered.ids == ["h"]
    assert refusal((await query(feed, "comments?category=tea", category="milk")).answer) == BAD_REQUEST


async def test_order_of_xep_0413_applies(feed: Component) -> None:
    """XEP-0413 4.3."""
    found = await query(feed, "comments", order_by("creation", "true") + result_set(max=2))
    rest = await query(feed, "comments", order_by("creation", "true") + result_set(after=found.part("last")))

    assert (found.ids, rest.ids, rest.complete) == (["g", "f"], ["e", "d", "c", "b", "a"], True)


async def test_generic_nodes_have_archives(component: Component) -> None:
    """Times, ids, pages and filters work; the publisher is the author where it is shown."""
    await component.create(ALICE, "box", kind="generic")
    await publish_all(component, "box", "a b c")

    assert (await query(component, "box", start=f"{START}01Z")).ids == ["b", "c"]
    assert (await query(component, "box", **{"with": bare(ALICE)})).ids == ["a", "b", "c"]
    assert (await query(component, "box", q="nothing")).ids == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"colour": "red"}, NO_FEATURE),
        ({"start": "yesterday"}, BAD_REQUEST),
        ({"start": "2026-01-01T00:00:00"}, BAD_REQUEST),
        ({"start": [f"{START}00Z", f"{START}01Z"]}, BAD_REQUEST),
        ({"after_id": "cursor:1_0_00000000x"}, NOT_FOUND),
        ({"before_id": "nobody"}, NOT_FOUND),
        ({"ids": ["nobody"]}, NOT_FOUND),
        ({"ids": ["cursor:1304942400_0_00000000"]}, NOT_FOUND),
        ({"ids": ["time:0"]}, NOT_FOUND),
        ({"ids": [f"id:{number}" for number in range(501)]}, Refusal("modify", "not-acceptable")),
        ({"with": "@"}, Refusal("modify", "jid-malformed")),
        ({"with": bare(ALICE), "author": "x"}, BAD_REQUEST),
        ({"author": ["x"] * 33}, BAD_REQUEST),
        ({"kind": "old"}, BAD_REQUEST),
        ({"q": " ".join(f"w{number}" for number in range(33))}, BAD_REQUEST),
    ],
)
async def test_query_without_meaning_is_refused(
    feed: Component, fields: dict[str, str | list[str]], expected: Refusal
) -> None:
    """XEP-0313 4.1: unknown fields and ids, values of the wrong form, too many values. Nothing is sent before."""
    found = await query(feed, "comments", **fields)

    assert (refusal(found.answer), found.messages) == (expected, [])


async def test_malformed_queries_are_refused(feed: Component) -> None:
    """No node, a cancelled form, a form of another type, result sets without meaning, a long queryid."""

    async def ask(attributes: str, inner: str = "") -> Element:
        return await feed.ask(BOB, "set", f"<query xmlns='{MAM}' {attributes}>{inner}</query>")

    node = "node='comments'"
    assert refusal(await ask("")) == Refusal("modify", "bad-request", "nodeid-required")
    assert refusal(await ask(node, submit({"FORM_TYPE": ["urn:x"]}))) == BAD_REQUEST
    assert refusal(await ask(node, result_set(max="x"))) == BAD_REQUEST
    assert refusal(await ask(node, result_set(max=1) * 2)) == BAD_REQUEST
    assert refusal(await ask(f"{node} queryid='{'q' * 1_024}'")) == BAD_REQUEST
    assert refusal(await ask("node='missing'")) == NOT_FOUND
    assert not await feed.events(BOB)


async def test_archive_is_closed_to_those_who_may_not_read(component: Component) -> None:
    """XEP-0313 9: the errors are those of a pull."""
    await component.create(ALICE, "comments", access_model="whitelist")
    await component.publish(ALICE, "comments", "one")

    assert refusal((await query(component, "comments")).answer) == Refusal("cancel", "not-allowed", "closed-node")
    assert (await query(component, "comments", user=ALICE)).ids == ["one"]
    await component.affiliate(ALICE, "comments", BOB, "publish-only")
    assert refusal((await query(component, "comments")).answer) == Refusal("auth", "forbidden")


@pytest.mark.parametrize("field", ["author", "category", "in-reply-to", "kind", "lang", "q", FULL_TEXT])
async def test_long_filter_value_is_refused_before_it_is_folded(component: Component, field: str) -> None:
    """[A-24]: the cost of folding grows with the value."""
    await component.create(ALICE, "comments")

    answer = (await query(component, "comments", **{field: "\ufdfa" * 60_000})).answer

    assert refusal(answer) == Refusal("modify", "bad-request")
    assert f"have 180000 bytes; the limit is {MAX_FILTER_BYTES}" in text_of(answer)


async def test_hidden_publishers_are_neither_shown_nor_found(component: Component) -> None:
    """[SF-111]: `with` compares the publisher only if the node shows it."""
    await component.create(ALICE, "comments", itemreply="none")
    await component.publish(ALICE, "comments", "one")

    assert (await query(component, "comments", **{"with": bare(ALICE)})).ids == []
    (message,) = (await query(component, "comments")).messages
    assert bare(ALICE) not in text_of(message)


async def test_histories_of_hidden_publishers_are_for_publishers(component: Component) -> None:
    """[A-61] [SF-111]: items from before the option name their publisher in a view with sync data."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "one")
    await component.configure(ALICE, "comments", itemreply="none")
    node = "comments?sync=true"

    async def answers(user: str) -> list[Element]:
        pulled = await component.get(user, f"<items node='{node}'/>")
        subscribed = await component.set(user, f"<subscribe node='{node}' jid='{bare(user)}'/>")
        return [pulled, subscribed, (await query(component, node, user=user)).answer]

    assert [refusal(answer) for answer in await answers(BOB)] == [Refusal("auth", "forbidden")] * 3
    assert [answer.get("type") for answer in await answers(ALICE)] == ["result"] * 3


async def test_results_are_bounded_as_pages_are(start: Starter) -> None:
    """[xep-map 201]: by number and by bytes; the archive is then not complete."""
    component = await start(pubsub={"page_default": 2, "page_max": 3, "page_bytes": 1_024})
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", LETTERS)
    await component.publish(ALICE, "comments", "big", payload("x" * 2_000))

    assert [len((await query(component, "comments", beside)).ids) for beside in ("", result_set(max=9))] == [2, 3]
    big = await query(component, "comments", result_set(before="", max=3))
    assert (big.ids, big.complete) == (["big"], False)


async def test_form_lists_the_fields(component: Component) -> None:
    """XEP-0313 4.1.5: all fields, none of them required, types as demanded."""
    answer = ok(await component.ask(BOB, "get", f"<query xmlns='{MAM}'/>"))

    fields = {field.get("var"): field.get("type") for field in answer.iterfind(".//x:field", XML)}
    assert fields.pop("FORM_TYPE") == "hidden"
    assert {name: fields[name] for name in ("with", "start", "end", "before-id", "after-id", "ids")} == {
        "with": "jid-single",
        "start": "text-single",
        "end": "text-single",
        "before-id": "text-single",
        "after-id": "text-single",
        "ids": "list-multi",
    }
    assert {"q", "author", "category", "kind", "lang", "in-reply-to", "{urn:xmpp:fulltext:0}fulltext"} < fields.keys()
    assert answer.find(".//x:required", XML) is None
    opened = answer.xpath("count(.//x:field[@type='list-multi'][not(.//*[local-name()='open'])])", namespaces=XML)
    assert opened == 0


async def test_metadata_names_both_ends_of_the_archive(feed: Component) -> None:
    """XEP-0313 5."""
    everything = await query(feed, "comments")
    answer = ok(await feed.ask(BOB, "get", f"<metadata xmlns='{MAM}' node='comments'/>"))
    await feed.create(ALICE, "empty")
    empty = ok(await feed.ask(BOB, "get", f"<metadata xmlns='{MAM}' node='empty'/>"))

    assert body(answer) == [
        tree(
            f"<metadata xmlns='{MAM}'><start id='{everything.uids[0]}' timestamp='{START}00Z'/>"
            f"<end id='{everything.uids[-1]}' timestamp='{START}06Z'/></metadata>"
        )
    ]
    assert body(empty) == [tree(f"<metadata xmlns='{MAM}'/>")]


async def test_archives_are_announced(feed: Component) -> None:
    """XEP-0313 7, XEP-0442 2: by the service and by each node."""
    for node in ("", "node='comments'"):
        info = ok(await feed.ask(BOB, "get", f"<query xmlns='{INFO}' {node}/>"))
        features = set(info.xpath(".//info:feature/@var", namespaces=NS))
        assert {MAM, f"{MAM}#extended", f"urn:xmpp:order-by:1@{MAM}"} <= features


async def test_feed_at_an_address_of_its_own_has_its_archive_there(component: Component) -> None:
    """[SF-085]"""
    await component.create(ALICE, "article_1")
    await component.publish(ALICE, "article_1", "one")
    address = f"article_1@{DOMAIN}"

    ok(await component.ask(BOB, "set", f"<query xmlns='{MAM}'/>", address))

    (message,) = await component.events(BOB)
    assert message.get("from") == address
    assert message.find("mam:result", XML).get("queryid") is None
