"""The kind of a node from what clients request, without a field of our own (docs/xmpp.md 2.1)."""

import pytest

from smartfeeds.delivery.sweeps import EXPIRY
from support.component import (
    ALICE,
    BOB,
    CAROL,
    INFO,
    ITEMS,
    NODE_CONFIG,
    NS,
    PUBLISH_OPTIONS,
    Component,
    Refusal,
    Starter,
    bare,
    entry,
    form,
    headers,
    ok,
    refusal,
    submit,
)

pytestmark = pytest.mark.shared

NOTE = "<n xmlns='urn:example:n'/>"
NOT_ACCEPTABLE = Refusal("modify", "not-acceptable")
NO_ITEMS = Refusal("cancel", "feature-not-implemented", "unsupported", "persistent-items")
GENERIC_FIELDS = [
    pytest.param({"max_items": "9999"}, id="fewer items than the ceiling"),
    pytest.param({"item_expire": "86400"}, id="items expire"),
    pytest.param({"persist_items": "0"}, id="no items"),
    pytest.param({"type": "urn:xmpp:spaces:0"}, id="spaces of Movim"),
    pytest.param({"type": "fdp/submitted/org.example.bugs"}, id="a schema of XEP-0346"),
]
FEED_FIELDS = [
    pytest.param({"max_items": "10000"}, id="the ceiling"),
    pytest.param({"item_expire": "max"}, id="no expiry"),
    pytest.param({"persist_items": "1"}, id="items"),
    pytest.param({"type": ""}, id="no type"),
    pytest.param({"type": "http://www.w3.org/2005/Atom"}, id="Atom"),
    pytest.param({"type": "urn:xmpp:microblog:0"}, id="microblog"),
    pytest.param({"type": "urn:xmpp:pubsub-social-feed:gallery:1"}, id="gallery"),
    pytest.param({"type": "urn:xmpp:pubsub-social-feed:stories:0"}, id="stories"),
]


async def kind(component: Component, node: str) -> str:
    """The kind of a node: only feeds announce the requests that they accept."""
    answer = ok(await component.ask(ALICE, "get", f"<query xmlns='{INFO}' node='{node}'/>"))
    forms = answer.findall(".//x:field[@var='FORM_TYPE']/x:value", NS)
    return "feed" if len(forms) == 2 else "generic"


async def publish(
    component: Component, item: str, node: str = "box", user: str = ALICE, **options: str
) -> Refusal | None:
    """Publishes with publish-options; the refusal, if it is refused."""
    beside = f"<publish-options>{form(PUBLISH_OPTIONS, '', **options)}</publish-options>" if options else ""
    answer = await component.set(user, f"<publish node='{node}'>{item}</publish>{beside}")
    return refusal(answer) if answer.get("type") == "error" else None


def note(item_id: str, payload: str = NOTE) -> str:
    return f"<item id='{item_id}'>{payload}</item>"


# Creating and configuring


@pytest.mark.parametrize("options", GENERIC_FIELDS)
async def test_configuration_of_what_a_feed_is_not_makes_a_generic_node(
    component: Component, options: dict[str, str]
) -> None:
    await component.create(ALICE, "made", **options)
    await component.create(ALICE, "changed", title="T")
    await component.configure(ALICE, "changed", **options)

    for node in ("made", "changed"):
        assert await kind(component, node) == "generic"
    config = await component.config(ALICE, "changed")
    assert config["title"] == ["T"]
    assert {name: config[name] for name in options} == {
        name: [{"0": "false"}.get(value, value)] for name, value in options.items()
    }


@pytest.mark.parametrize("options", FEED_FIELDS)
async def test_configuration_that_feeds_accept_makes_a_feed(component: Component, options: dict[str, str]) -> None:
    await component.create(ALICE, "made", **options)
    await component.create(ALICE, "changed")
    await component.configure(ALICE, "changed", **options)

    assert [await kind(component, node) for node in ("made", "changed")] == ["feed", "feed"]


async def test_field_of_the_kind_comes_before_all_reasons(component: Component) -> None:
    answer = await component.set(
        ALICE, f"<create node='made'/><configure>{form(NODE_CONFIG, 'feed', max_items='5')}</configure>"
    )
    await component.create(ALICE, "spaces", kind="feed", type="urn:xmpp:spaces:0")
    await component.create(ALICE, "later")
    await component.configure(ALICE, "later", kind="generic")

    assert refusal(answer) == NOT_ACCEPTABLE
    assert "persist_items false, item_expire, max_items below 10000, or another pubsub#type" in str(
        answer.xpath("string(c:error/st:text)", namespaces=NS)
    )
    assert [await kind(component, node) for node in ("spaces", "later")] == ["feed", "generic"]


@pytest.mark.parametrize("options", [{"kind": "generic"}, {"max_items": "5"}, {"persist_items": "0"}])
async def test_feed_that_has_held_an_item_stays_a_feed(component: Component, options: dict[str, str]) -> None:
    """A tombstone is an item too."""
    await component.create(ALICE, "box")
    await component.publish(ALICE, "box", "x")
    await component.retract(ALICE, "box", "x")

    submitted = form(NODE_CONFIG, title="Changed", **options)
    answer = await component.owner_set(ALICE, f"<configure node='box'>{submitted}</configure>")

    assert refusal(answer) == NOT_ACCEPTABLE
    assert await kind(component, "box") == "feed"
    assert (await component.config(ALICE, "box"))["title"] == [""]


async def test_generic_node_never_becomes_a_feed(component: Component) -> None:
    await component.create(ALICE, "box", kind="generic")

    submitted = form(NODE_CONFIG, "feed")
    assert refusal(await component.owner_set(ALICE, f"<configure node='box'>{submitted}</configure>")) == NOT_ACCEPTABLE
    await component.configure(ALICE, "box", type="urn:xmpp:pubsub-social-feed:1", max_items="max")
    assert await kind(component, "box") == "generic"


async def test_feed_with_subscribers_of_sync_data_stays_a_feed(component: Component) -> None:
    """Items of generic nodes have no sync data, so the subscription would never receive anything."""
    await component.create(ALICE, "viewed")
    await component.create(ALICE, "plain")
    await component.subscribe(BOB, "viewed?sync=true")
    await component.subscribe(BOB, "plain")

    submitted = form(NODE_CONFIG, max_items="5")
    refused = await component.owner_set(ALICE, f"<configure node='viewed'>{submitted}</configure>")
    await component.configure(ALICE, "plain", max_items="5")
    assert await publish(component, note("a"), "plain") is None

    assert refusal(refused) == NOT_ACCEPTABLE
    assert [await kind(component, node) for node in ("viewed", "plain")] == ["feed", "generic"]
    (message,) = await component.events(bare(BOB))
    assert message.find(".//{urn:example:n}n") is not None


# Event types (XEP-0060 4.3, 7.1.3.6)


@pytest.mark.parametrize(
    ("persist", "payloads", "item"),
    [("1", "0", "<item id='x'/>"), ("1", "0", note("x")), ("0", "1", note("x")), ("0", "0", "")],
)
async def test_event_of_each_type_has_its_parts_of_an_item(
    component: Component, persist: str, payloads: str, item: str
) -> None:
    """[xep-map 135] [xep-map 136]"""
    await component.create(ALICE, "box", kind="generic", persist_items=persist, deliver_payloads=payloads)
    await component.subscribe(BOB, "box")

    assert await publish(component, item) is None

    (message,) = await component.events(bare(BOB))
    (items,) = message.iterfind("ev:event/ev:items", NS)
    assert items.get("node") == "box"
    assert [(i.get("id"), i.get("publisher"), len(i)) for i in items] == (
        [("x", bare(ALICE), int(payloads))] if item else []
    )
    stored = await component.get(ALICE, "<items node='box'/>")
    if persist == "1":
        assert [i.get("id") for i in ok(stored).iterfind(".//ps:item", NS)] == ["x"]
    else:
        assert refusal(stored) == NO_ITEMS


async def test_transient_items_are_sent_in_order_with_cursors_and_stored_nowhere(component: Component) -> None:
    await component.create(ALICE, "box", persist_items="0")
    await component.subscribe(BOB, "box")

    for text in ("a b", "<&'", "é"):
        item_id = text.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&apos;")
        assert await publish(component, note(item_id, f"<n xmlns='urn:example:n'>{item_id}</n>")) is None

    messages = await component.events(bare(BOB))
    assert [i.get("id") for m in messages for i in m.iterfind(".//ev:item", NS)] == ["a b", "<&'", "é"]
    assert [n.text for m in messages for n in m.iterfind(".//{urn:example:n}n")] == ["a b", "<&'", "é"]
    marks = [headers(message) for message in messages]
    assert [each["PreviousCursor"] for each in marks[1:]] == [each["LastCursor"] for each in marks[:-1]]
    assert {each["TotalItems"] for each in marks} == {"0"}


async def test_publish_without_id_to_a_transient_node_names_the_new_id(component: Component) -> None:
    await component.create(ALICE, "box", persist_items="0")
    await component.create(ALICE, "bell", persist_items="0", deliver_payloads="0")

    answer = ok(await component.set(ALICE, f"<publish node='box'><item>{NOTE}</item></publish>"))
    bell = ok(await component.set(ALICE, "<publish node='bell'/>"))

    assert [i.get("id", "").partition("-")[0] for i in answer.iterfind(".//ps:item", NS)] == ["fresh"]
    (published,) = bell.iterfind("ps:pubsub/ps:publish", NS)
    assert (published.get("node"), len(published)) == ("bell", 0)


async def test_transient_node_refuses_what_needs_items(component: Component) -> None:
    """XEP-0060 6.5.9.8, 7.2.3.5, 8.5.3.3. Items from before are still there to be read and removed."""
    await component.create(ALICE, "box", kind="generic")
    assert await publish(component, note("old")) is None
    await component.configure(ALICE, "box", persist_items="0")
    assert await component.item_ids(BOB, "box") == ["old"]
    await component.retract(ALICE, "box", "old")

    assert refusal(await component.get(BOB, "<items node='box'/>")) == NO_ITEMS
    assert refusal(await component.set(ALICE, "<retract node='box'><item id='old'/></retract>")) == NO_ITEMS
    assert refusal(await component.owner_set(ALICE, "<purge node='box'/>")) == NO_ITEMS


# Round trip


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_items": "7", "item_expire": "60", "publish_node_full": "reject", "itemreply": "owner"},
        {"persist_items": "0", "deliver_payloads": "0", "type": "urn:xmpp:spaces:0", "contact": "a@example.org"},
    ],
)
async def test_configuration_form_submitted_unchanged_changes_nothing(
    component: Component, options: dict[str, str]
) -> None:
    """[xep-map 67]: with the values of the form as they are, before the first item and after it."""
    await component.create(ALICE, "box", notify_config="1", **options)
    before = await kind(component, "box")
    await component.subscribe(BOB, "box")
    for published in (False, True):
        if published and options.get("persist_items") is None:
            assert await publish(component, note("x", entry("x"))) is None
            await component.events(bare(BOB))
        shown = ok(await component.owner_get(ALICE, "<configure node='box'/>"))
        values = {
            str(field.get("var")): [value.text or "" for value in field.iterfind("x:value", NS)]
            for field in shown.iterfind(".//x:field", NS)
        }
        ok(await component.owner_set(ALICE, f"<configure node='box'>{submit(values)}</configure>"))

        again = ok(await component.owner_get(ALICE, "<configure node='box'/>"))
        assert [f.xpath("string()") for f in again.iter()] == [f.xpath("string()") for f in shown.iter()]
        assert await component.events(bare(BOB)) == []
        assert await kind(component, "box") == before


# Expiry (XEP-0060 16.4.4)


async def test_expired_items_are_seen_by_no_request(component: Component) -> None:
    """Each request finds the items that are younger than item_expire, and counts of these alone."""
    await component.create(ALICE, "box", item_expire="60")
    for item_id in "abc":
        assert await publish(component, note(item_id)) is None
        component.clock.advance(20)
    await component.subscribe(BOB, "box")

    assert await component.item_ids(BOB, "box") == ["b", "c"]
    component.clock.advance(20)
    listed = ok(await component.ask(BOB, "get", f"<query xmlns='{ITEMS}' node='box'/>"))
    assert [item.get("name") for item in listed.iterfind("items:query/items:item", NS)] == ["c"]
    retracted = await component.set(ALICE, "<retract node='box'><item id='b'/></retract>")
    assert refusal(retracted).condition == "item-not-found"
    component.clock.advance(20)
    assert await publish(component, note("d")) is None
    assert [headers(message)["TotalItems"] for message in await component.events(bare(BOB))] == ["1"]
    assert await component.item_ids(BOB, "box") == ["d"]


async def test_sweep_removes_expired_items_without_events(component: Component) -> None:
    await component.create(ALICE, "box", item_expire="60")
    await component.create(ALICE, "kept", max_items="5")
    await component.subscribe(BOB, "box")
    for node in ("box", "kept"):
        for item_id in "ab":
            assert await publish(component, note(item_id), node) is None
    await component.events(bare(BOB))

    component.clock.advance(59)
    await EXPIRY.sweep(component.app.service)
    numbers = [await stored(component, node) for node in ("box", "kept")]
    component.clock.advance(2)
    await EXPIRY.sweep(component.app.service)

    assert [*numbers, *[await stored(component, node) for node in ("box", "kept")]] == [2, 2, 0, 2]
    assert await component.events(bare(BOB)) == []


async def stored(component: Component, name: str) -> int:
    """The number of items in the store, with expired ones."""
    node = await component.app.service.store.read(lambda tx: tx.node(name))
    assert node is not None
    return node.live


async def test_many_expired_items_are_removed_in_steps(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smartfeeds.service.expiry.CHUNK", 2)
    monkeypatch.setattr("smartfeeds.service.expiry.NODES", 1)
    for node in ("one", "two", "three"):
        await component.create(ALICE, node, item_expire="60")
        for item_id in "abcd":
            assert await publish(component, note(item_id), node) is None

    component.clock.advance(61)
    assert await component.item_ids(BOB, "one") == []
    await EXPIRY.sweep(component.app.service)

    assert [await stored(component, node) for node in ("one", "two", "three")] == [0, 0, 0]


async def test_clock_that_steps_back_neither_expires_nor_blocks(component: Component) -> None:
    await component.create(ALICE, "box", item_expire="60")
    assert await publish(component, note("a")) is None
    component.clock.advance(-3_600)

    assert await component.item_ids(BOB, "box") == ["a"]


async def test_largest_expiry_is_accepted(component: Component) -> None:
    """Hostile values: times before the epoch are times as well."""
    await component.create(ALICE, "box", item_expire="9" * 10)
    refused = await component.set(
        ALICE, f"<create node='x'/><configure>{form(NODE_CONFIG, 'generic', item_expire='9' * 30)}</configure>"
    )

    assert await publish(component, note("a")) is None
    assert await component.item_ids(BOB, "box") == ["a"]
    await EXPIRY.sweep(component.app.service)
    assert refusal(refused) == NOT_ACCEPTABLE


async def test_lower_max_items_removes_the_oldest_items_at_once(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 73]"""
    monkeypatch.setattr("smartfeeds.service.expiry.CHUNK", 2)
    await component.create(ALICE, "box", max_items="9")
    for item_id in "abcdef":
        assert await publish(component, note(item_id)) is None

    await component.configure(ALICE, "box", max_items="1")

    assert await component.item_ids(BOB, "box") == ["f"]
    await component.configure(ALICE, "box", max_items="max")
    assert await component.item_ids(BOB, "box") == ["f"]


# Redirects (XEP-0060 8.4.1, 6.1.3.12)


NEW = "xmpp:other.example?;node=a&amp;b"


async def delete(component: Component, node: str, redirect: str = f"<redirect uri='{NEW}'/>") -> Refusal | None:
    answer = await component.owner_set(ALICE, f"<delete node='{node}'>{redirect}</delete>")
    return refusal(answer) if answer.get("type") == "error" else None


async def test_deletion_with_a_redirect_names_the_new_address_to_everybody(start: Starter) -> None:
    component = await start(pubsub={"auto_create": True})
    await component.create(ALICE, "box")
    await component.subscribe(BOB, "box")

    assert await delete(component, "box") is None

    (message,) = await component.events(bare(BOB))
    (redirect,) = message.iterfind("ev:event/ev:delete[@node='box']/ev:redirect", NS)
    assert redirect.get("uri") == "xmpp:other.example?;node=a&b"
    for answer in (
        await component.set(BOB, f"<subscribe node='box' jid='{bare(BOB)}'/>"),
        await component.get(BOB, "<items node='box'/>"),
        await component.get(BOB, "<items node='box?order=created'/>"),
        await component.ask(BOB, "get", f"<query xmlns='{INFO}' node='box'/>"),
        await component.set(BOB, f"<publish node='box'>{note('x')}</publish>"),
        await component.owner_set(ALICE, "<delete node='box'/>"),
    ):
        assert refusal(answer) == Refusal("modify", "gone")
        assert answer[-1][0].text == "xmpp:other.example?;node=a&b"
    await component.create(BOB, "box")
    assert await component.item_ids(ALICE, "box") == []
    assert await component.owner_set(BOB, "<delete node='box'/>") is not None
    assert refusal(await component.get(BOB, "<items node='box'/>")).condition == "item-not-found"


@pytest.mark.parametrize(
    ("redirect", "expected"),
    [
        ("<redirect/>", "bad-request"),
        ("<redirect uri=''/>", "bad-request"),
        (f"<redirect uri='{NEW}'/><redirect uri='{NEW}'/>", "bad-request"),
        ("<redirect uri='nowhere'/>", "not-acceptable"),
        ("<redirect uri='xmpp:a b'/>", "not-acceptable"),
        ("<redirect uri='javascript:alert(1)'/>", "not-acceptable"),
        ("<redirect uri='JavaScript:alert(1)'/>", "not-acceptable"),
        ("<redirect uri='data:text/html,x'/>", "not-acceptable"),
        ("<redirect uri='file:///etc/passwd'/>", "not-acceptable"),
        ("<redirect uri='xmpp:f?;node=x\u202e'/>", "not-acceptable"),
        ("<redirect uri='https://x.example/\u200b'/>", "not-acceptable"),
        (f"<redirect uri='xmpp:{'x' * 2_000}'/>", "not-acceptable"),
    ],
)
async def test_redirect_to_no_address_deletes_nothing(component: Component, redirect: str, expected: str) -> None:
    await component.create(ALICE, "box")

    refused = await delete(component, "box", redirect)

    assert refused is not None and refused.condition == expected
    assert await component.item_ids(ALICE, "box") == []


async def test_redirect_of_a_hidden_node_is_shown_to_its_subscribers_only(component: Component) -> None:
    await component.create(ALICE, "box", access_model="whitelist")
    await component.affiliate(ALICE, "box", BOB, "member")
    await component.subscribe(BOB, "box")

    assert await delete(component, "box") is None

    assert len(await component.events(bare(BOB))) == 1
    assert refusal(await component.get(CAROL, "<items node='box'/>")).condition == "item-not-found"


async def test_redirects_have_the_quota_of_nodes(start: Starter) -> None:
    component = await start(limits={"nodes_per_jid": 1})
    await component.create(ALICE, "one")
    assert await delete(component, "one") is None
    await component.create(ALICE, "two")

    assert await delete(component, "two") == Refusal("wait", "policy-violation")
    assert await delete(component, "two", "") is None


async def test_newest_items_of_a_plain_node_as_the_transcript_of_prosody_requests_them(component: Component) -> None:
    """pubsub_max_items.scs of Prosody: a node without configuration, payloads of aioxmpp, then max_items."""
    ok(await component.set(ALICE, "<create node='box'/>"))
    for text in ("foo", "bar"):
        payload = f"<foo xmlns='https://zombofant.net/xmlns/aioxmpp#test'>{text}</foo>"
        answer = ok(await component.set(ALICE, f"<publish node='box'>{note(text, payload)}</publish>"))
        assert [i.get("id") for i in answer.iterfind("ps:pubsub/ps:publish[@node='box']/ps:item", NS)] == [text]

    newest = ok(await component.get(ALICE, "<items node='box' max_items='1'/>"))

    (item,) = newest.iterfind("ps:pubsub/ps:items[@node='box']/ps:item", NS)
    assert (item.get("id"), item.get("publisher"), item[0].text) == ("bar", bare(ALICE), "bar")
    assert await component.item_ids(ALICE, "box") == ["foo", "bar"]
    assert refusal(await component.owner_set(BOB, "<delete node='box'/>")).condition == "forbidden"
    ok(await component.owner_set(ALICE, "<delete node='box'/>"))
