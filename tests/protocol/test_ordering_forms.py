"""Orders asked for in requests, and data forms, through the whole component (xep-map N; XEP-0413, 0004, 0068, 0122)."""

import itertools

import pytest
import pytest_asyncio

from support.component import (
    ALICE,
    BOB,
    DATA,
    INFO,
    NODE_CONFIG,
    NS,
    PUBLISH_OPTIONS,
    SUBSCRIBE_OPTIONS,
    Component,
    Element,
    Refusal,
    bare,
    entry,
    fields,
    form,
    ok,
    refusal,
    submit,
)
from support.pulls import order_by, publish_all, pull, request

pytestmark = pytest.mark.shared

BAD_REQUEST = Refusal("modify", "bad-request")
MODIFIED = "comments?order=modified"
CREATED = "comments?order=created"
BY_CREATION, BY_MODIFICATION = list("abcde"), list("bdeca")


@pytest_asyncio.fixture(loop_scope="module")
async def feed(component: Component) -> Component:
    """A feed whose two orders differ: created a b c d e, modified b d e c a."""
    await component.create(ALICE, "comments")
    await publish_all(component, "comments", "a b c d e c a")
    return component


# Orders


@pytest.mark.parametrize("desc", ["true", "1"])
async def test_creation_descending_gives_the_newest_first(feed: Component, desc: str) -> None:
    """[xep-map 224] [xep-map 226] [xep-map 227]: across pages and inside a page; index 0 is the newest."""
    order = order_by("creation", desc)
    seen: list[str] = []
    page = await pull(feed, "comments", beside=order, max=2)
    while page.ids:
        assert (page.index, page.count) == (len(seen), 5)
        seen += page.ids
        page = await pull(feed, "comments", beside=order, max=2, after=page.last)

    assert seen == BY_CREATION[::-1]
    assert page.set == (None, None, None, 5)


async def test_descending_order_is_the_whole_set_reversed(feed: Component) -> None:
    """[xep-map 224] [xep-map 226]: before, index and a plain request mean the reversed set too."""
    order = order_by("creation", "true")
    down = BY_CREATION[::-1]

    last = await pull(feed, "comments", beside=order, max=2, before="", index="")
    assert (last.ids, last.index) == (down[3:], 3)
    previous = await pull(feed, "comments", beside=order, max=2, before=last.first)
    assert previous.index is None
    assert previous.ids == down[1:3]
    there = await pull(feed, "comments", beside=order, max=2, index=1)
    assert (there.ids, there.index) == (down[1:3], 1)
    assert (await pull(feed, "comments", beside=order)).ids == down
    assert (await pull(feed, "comments", beside=order, max_items=2)).ids == down[:2]
    between = await pull(feed, "comments", beside=order, after=there.first, before=last.last)
    assert between.ids == down[2:4]


@pytest.mark.parametrize("desc", ["", "false", "0"])
async def test_modification_ascending_is_the_bare_view(feed: Component, desc: str) -> None:
    """[xep-map 225] [xep-map 227]: a missing desc is ascending."""
    order = order_by("modification", desc)

    for size, after in itertools.product((1, 2, 9), ("", "time:2026-01-01T00:00:03Z")):
        ordered = await pull(feed, "comments", beside=order, max=size, after=after)
        plain = await pull(feed, "comments", max=size, after=after)
        assert (ordered.ids, ordered.set) == (plain.ids, plain.set)
    assert (await pull(feed, "comments", beside=order)).ids == BY_MODIFICATION


async def test_creation_ascending_is_the_sister_view(feed: Component) -> None:
    """[xep-map 224]; D18: without tombstones, as the bare node is."""
    await feed.retract(ALICE, "comments", "b")
    order = order_by("creation")

    page = await pull(feed, "comments", beside=order, max=3)

    assert (page.ids, page.count) == (["a", "c", "d"], 4)
    assert (await pull(feed, "comments", beside=order, after=page.last)).ids == ["e"]
    assert refusal(await request(feed, "comments", after=page.last)) == Refusal("cancel", "item-not-found")


@pytest.mark.parametrize("where", ["beside", "inside"])
async def test_order_beside_or_inside_items_is_understood(feed: Component, where: str) -> None:
    """[xep-map 224]; XEP-0413 4: a child of pubsub; inside items it cannot mean anything else."""
    order = order_by("creation", "true")
    inner = f"<items node='comments'>{order}</items>" if where == "inside" else f"<items node='comments'/>{order}"

    answer = ok(await feed.get(BOB, inner))

    assert [item.get("id") for item in answer.iterfind(".//ps:item", NS)] == BY_CREATION[::-1]


@pytest.mark.parametrize(
    "orders",
    [
        order_by("votes"),
        order_by(""),
        "<order xmlns='urn:xmpp:order-by:1'/>",
        order_by("creation", "yes"),
        order_by("creation") + order_by("votes"),
        order_by("Creation"),
    ],
)
async def test_unknown_order_is_refused(feed: Component, orders: str) -> None:
    """[xep-map 228]"""
    for node in ("comments", MODIFIED, CREATED):
        assert refusal(await request(feed, node, beside=orders)) == BAD_REQUEST


async def test_second_order_breaks_ties_of_the_first(feed: Component) -> None:
    """[xep-map 228]: keys of one order never tie here, so it changes nothing."""
    first, second = order_by("creation", "true"), order_by("modification")

    assert (await pull(feed, "comments", beside=first + second)).ids == BY_CREATION[::-1]
    assert (await pull(feed, "comments", beside=second + first)).ids == BY_MODIFICATION


async def test_order_that_contradicts_the_node_is_refused(feed: Component) -> None:
    """[xep-map 229] [SF-016]; D18: one that says the same may stand."""
    assert refusal(await request(feed, MODIFIED, beside=order_by("creation"))) == BAD_REQUEST
    assert refusal(await request(feed, CREATED, beside=order_by("modification", "true"))) == BAD_REQUEST
    assert (await pull(feed, CREATED, beside=order_by("creation"))).ids == BY_CREATION
    assert (await pull(feed, CREATED, beside=order_by("creation", "true"))).ids == BY_CREATION[::-1]
    assert (await pull(feed, MODIFIED, beside=order_by("modification", "1"))).ids == BY_MODIFICATION[::-1]


# Forms


async def every_form(component: Component) -> dict[str, Element]:
    """Every kind of data form that the component sends, by what it is."""
    await component.create(ALICE, "comments", notify_config="true", access_model="authorize")
    await component.affiliate(ALICE, "comments", BOB, "member")
    options = f"<options>{form(SUBSCRIBE_OPTIONS, deliver='1')}</options>"
    subscribed = ok(await component.set(BOB, f"<subscribe node='comments' jid='{bare(BOB)}'/>{options}"))
    await component.configure(ALICE, "comments", title="x")
    (configured,) = await component.events(bare(BOB))
    here = f"<options node='comments' jid='{bare(BOB)}'/>"
    return {
        "configure": ok(await component.owner_get(ALICE, "<configure node='comments'/>")),
        "default": ok(await component.owner_get(ALICE, "<default/>")),
        "options": ok(await component.get(BOB, here)),
        "default options": ok(await component.get(BOB, "<default/>")),
        "subscribed": subscribed,
        "configuration event": configured,
        "node": ok(await component.ask(BOB, "get", f"<query xmlns='{INFO}' node='comments'/>")),
        "view": ok(await component.ask(BOB, "get", f"<query xmlns='{INFO}' node='{CREATED}'/>")),
    }


async def test_every_form_has_a_hidden_form_type(component: Component) -> None:
    """[xep-map 230] [SF-112]"""
    found = {name: stanza.findall(".//x:x", NS) for name, stanza in (await every_form(component)).items()}

    kinds = {name: [each.get("type") for each in forms] for name, forms in found.items()}
    assert kinds == {
        "configure": ["form"],
        "default": ["form"],
        "options": ["form"],
        "default options": ["result"],
        "subscribed": ["result"],
        "configuration event": ["result"],
        "node": ["result", "result"],
        "view": ["result", "result"],
    }
    for forms in found.values():
        names = []
        for each in forms:
            first = each[0]
            assert (first.get("var"), first.get("type")) == ("FORM_TYPE", "hidden")
            names += [value.text for value in first]
        assert len(set(names)) == len(names) == len(forms)


async def test_every_field_has_a_name_a_type_and_values_of_it(component: Component) -> None:
    """[xep-map 230] [xep-map 231]; XEP-0004 3.3: once each, and a list names its choices."""
    for stanza in (await every_form(component)).values():
        for found in stanza.iterfind(".//x:x", NS):
            variables = [field.get("var") for field in found]
            assert len(variables) == len(set(variables))
            for field in found:
                values = [value.text for value in field.iterfind("x:value", NS)]
                choices = [value.text for value in field.iterfind("x:option/x:value", NS)]
                assert field.get("var") and field.get("type")
                if field.get("type") in ("boolean", "list-single", "hidden", "text-single", "jid-single"):
                    assert len(values) <= 1, field.get("var")
                if field.get("type") == "boolean":
                    assert values[0] in ("true", "false")
                if field.get("type") == "list-single" and found.get("type") == "form":
                    assert values[0] in choices and len(set(choices)) == len(choices)


async def test_lists_name_exactly_what_is_taken(component: Component) -> None:
    """[xep-map 231] [xep-map 65]: every choice that the form offers can be submitted."""
    await component.create(ALICE, "comments")
    answer = ok(await component.owner_get(ALICE, "<configure node='comments'/>"))
    lists = [each for each in answer.iterfind(".//x:field", NS) if each.get("type") == "list-single"]

    assert len(lists) >= 6
    for field in lists:
        for choice in field.iterfind("x:option/x:value", NS):
            values = {"FORM_TYPE": [NODE_CONFIG], str(field.get("var")): [str(choice.text)]}
            ok(await component.owner_set(ALICE, f"<configure node='comments'>{submit(values)}</configure>"))


async def test_submits_with_an_untyped_form_type_are_taken(component: Component) -> None:
    """[xep-map 230]; XEP-0068 5: with or without a type, or with none at all."""
    await component.create(ALICE, "comments")
    typed = "<field var='FORM_TYPE' type='hidden'><value>{0}</value></field>"
    untyped = "<field var='FORM_TYPE'><value>{0}</value></field>"
    for number, kind in enumerate((typed, untyped, "")):
        title = f"<field var='pubsub#title'><value>T{number}</value></field>"
        given = f"<x xmlns='{DATA}' type='submit'>{kind.format(NODE_CONFIG)}{title}</x>"
        ok(await component.owner_set(ALICE, f"<configure node='comments'>{given}</configure>"))
        config = fields(ok(await component.owner_get(ALICE, "<configure node='comments'/>")))
        assert config["title"] == [f"T{number}"]
        wanted = given.replace(NODE_CONFIG, PUBLISH_OPTIONS)
        publishing = f"<publish node='comments'><item>{entry('x')}</item></publish>"
        ok(await component.set(ALICE, f"{publishing}<publish-options>{wanted}</publish-options>"))


async def test_fields_of_several_values_take_several(component: Component) -> None:
    """[xep-map 231]: addresses in their normal form; a field that occurs twice has the values of both."""
    await component.create(ALICE, "comments")
    values = {"FORM_TYPE": [NODE_CONFIG], "pubsub#contact": ["Ann@Example.org", "bob@example.org"]}

    ok(await component.owner_set(ALICE, f"<configure node='comments'>{submit(values)}</configure>"))

    config = fields(ok(await component.owner_get(ALICE, "<configure node='comments'/>")))
    assert config["contact"] == ["ann@example.org", "bob@example.org"]
    told = ok(await component.ask(BOB, "get", f"<query xmlns='{INFO}' node='comments'/>"))
    assert fields(told)["contact"] == ["ann@example.org", "bob@example.org"]
    field = "<field var='pubsub#title'><value>a</value></field>"
    twice = f"<x xmlns='{DATA}' type='submit'>{field}{field}</x>"
    answer = await component.owner_set(ALICE, f"<configure node='comments'>{twice}</configure>")
    assert refusal(answer) == Refusal("modify", "not-acceptable")


@pytest.mark.parametrize("kind", ["feed", "generic"])
async def test_numbers_that_may_be_max_say_so(component: Component, kind: str) -> None:
    """[xep-map 232]"""
    await component.create(ALICE, "comments", kind=kind)
    for answer in (
        ok(await component.owner_get(ALICE, "<configure node='comments'/>")),
        ok(await component.owner_get(ALICE, "<default/>")),
    ):
        hints = {
            str(field.get("var")): hint.get("datatype")
            for field in answer.iterfind(".//x:field", NS)
            for hint in field.iterfind("{http://jabber.org/protocol/xdata-validate}validate")
        }
        assert hints == {
            "pubsub#max_items": "pubsub:integer-or-max",
            "pubsub#item_expire": "pubsub:integer-or-max",
        }


async def test_feed_tells_how_to_reach_it_and_what_it_takes(component: Component) -> None:
    """[SF-112] [SF-113] [SF-024]: and what it does not take is an error."""
    await component.create(ALICE, "comments")
    found = {}
    for node in ("comments", MODIFIED, CREATED):
        answer = ok(await component.ask(BOB, "get", f"<query xmlns='{INFO}' node='{node}'/>"))
        told = fields(answer.findall(".//x:x", NS)[1])
        found[node] = told["positions"]
        assert (told["xmpp-jid"], told["item-format"]) == (["feeds.example.org"], ["http://www.w3.org/2005/Atom"])
        assert told["orders"] == ["modified", "created"]
        assert {"order", "author", "category", "q", "in-reply-to", "kind"} <= set(told["parameters"])
        ok(await component.get(BOB, f"<items node='{told['xmpp-node'][0]}'/>"))
        assert "http-url" not in told

    assert found == {
        "comments": ["cursor", "id", "time"],
        MODIFIED: ["cursor", "time"],
        CREATED: ["cursor", "id", "time"],
    }
