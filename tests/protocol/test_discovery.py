"""Service discovery through the whole component (xep-map C; XEP-0030, 0059, 0128, 0131, 0462; Smart Feeds)."""

import re

import pytest
import pytest_asyncio
from lxml import etree

from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    EVE,
    INFO,
    ITEMS,
    NS,
    PS,
    RSM,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    body,
    fields,
    ok,
    refusal,
    submit,
    tree,
)
from support.features import FEATURE_NAMES

pytestmark = pytest.mark.shared

NOT_FOUND = Refusal("cancel", "item-not-found")
META_DATA = f"{PS}#meta-data"
REQUIREMENTS = "urn:smartfeeds:0#requirements"
FILTER = "urn:xmpp:pubsub-filter:0"
SHIM = NS["shim"]

# xep-map 1.5.
PUBSUB_FEATURES = {
    f"{PS}#access-authorize",
    f"{PS}#access-open",
    f"{PS}#access-whitelist",
    f"{PS}#config-node",
    f"{PS}#config-node-max",
    f"{PS}#create-and-configure",
    f"{PS}#create-nodes",
    f"{PS}#delete-items",
    f"{PS}#delete-nodes",
    f"{PS}#filtered-notifications",
    f"{PS}#get-pending",
    f"{PS}#instant-nodes",
    f"{PS}#item-ids",
    f"{PS}#leased-subscription",
    f"{PS}#manage-subscriptions",
    f"{PS}#member-affiliation",
    f"{PS}#meta-data",
    f"{PS}#modify-affiliations",
    f"{PS}#multi-items",
    f"{PS}#outcast-affiliation",
    f"{PS}#persistent-items",
    f"{PS}#presence-notifications",
    f"{PS}#publish",
    f"{PS}#publish-node-full",
    f"{PS}#publish-only-affiliation",
    f"{PS}#publish-options",
    f"{PS}#publisher-affiliation",
    f"{PS}#purge-nodes",
    f"{PS}#retract-items",
    f"{PS}#retrieve-affiliations",
    f"{PS}#retrieve-default",
    f"{PS}#retrieve-default-sub",
    f"{PS}#retrieve-items",
    f"{PS}#retrieve-subscriptions",
    f"{PS}#rsm",
    f"{PS}#subscribe",
    f"{PS}#subscription-notifications",
    f"{PS}#subscription-options",
}
OTHER_FEATURES = {
    INFO,
    ITEMS,
    PS,
    RSM,
    SHIM,
    "jabber:iq:version",
    "jabber:iq:last",
    "urn:xmpp:ping",
    "urn:xmpp:time",
    "vcard-temp",
    "urn:xmpp:order-by:1",
    f"urn:xmpp:order-by:1@{PS}",
    FILTER,
    "http://jabber.org/protocol/caps",
    "http://jabber.org/protocol/commands",
    "urn:xmpp:pubsub-social-feed:1",
}
OF_FEATURES = {
    "archive": {"urn:xmpp:mam:2", "urn:xmpp:mam:2#extended", "urn:xmpp:order-by:1@urn:xmpp:mam:2"},
    "attachments": {"urn:xmpp:pubsub-attachments:1"},
    "bot": {
        "jabber:x:conference",
        "urn:xmpp:message-correct:0",
        "urn:xmpp:reactions:0",
        "urn:xmpp:receipts",
        "urn:xmpp:reply:0",
        "urn:xmpp:tmp:quick-response",
    },
}
HAS_BOT = "bot" in FEATURE_NAMES


async def info(component: Component, node: str = "", user: str = BOB) -> Element:
    """The answer to disco#info."""
    attribute = f" node='{node}'" if node else ""
    return await component.ask(user, "get", f"<query xmlns='{INFO}'{attribute}/>")


async def items(component: Component, node: str = "", inner: str = "", user: str = BOB) -> Element:
    """The answer to disco#items."""
    attribute = f" node='{node}'" if node else ""
    return await component.ask(user, "get", f"<query xmlns='{ITEMS}'{attribute}>{inner}</query>")


def features(answer: Element) -> list[str]:
    """The features that an answer tells."""
    return [str(each.get("var")) for each in ok(answer).iterfind("info:query/info:feature", NS)]


def form_of(answer: Element, form_type: str) -> dict[str, list[str]]:
    """The one result form of this type in an answer; its FORM_TYPE is hidden."""
    forms = ok(answer).findall("info:query/x:x[@type='result']", NS)
    found = [form for form in forms if fields(form)["FORM_TYPE"] == [form_type]]
    assert len(found) == 1
    assert found[0].find("x:field[@var='FORM_TYPE'][@type='hidden']", NS) is not None
    return fields(found[0])


def nodes(answer: Element) -> list[str]:
    """The nodes that an answer lists."""
    return [str(each.get("node")) for each in ok(answer).iterfind("items:query/items:item", NS)]


def rsm(inner: str = "") -> str:
    """A result set."""
    return f"<set xmlns='{RSM}'>{inner}</set>"


def result_set(answer: Element) -> tuple[str | None, str | None, str | None, str | None]:
    """First, its index, last and count of an answer."""
    found = answer.find("items:query/rsm:set", NS)
    assert found is not None
    first = found.find("rsm:first", NS)
    last, count = (found.findtext(f"rsm:{name}", namespaces=NS) for name in ("last", "count"))
    return (None, None, last, count) if first is None else (first.text, first.get("index"), last, count)


# The service


async def test_service_is_a_pubsub_service(component: Component) -> None:
    """[xep-map 22]"""
    answer = ok(await info(component))

    identity, forms, *bots = answer.iterfind("info:query/info:identity", NS)
    assert (identity.get("category"), identity.get("type")) == ("pubsub", "service")
    assert (forms.get("category"), forms.get("type")) == ("pubsub", "urn:xmpp:fdp:0")  # XEP-0346 5
    expected = [("client", "bot", identity.get("name"))] if HAS_BOT else []
    assert [(bot.get("category"), bot.get("type"), bot.get("name")) for bot in bots] == expected
    assert identity.get("name") and "gateway" not in str(identity.get("name")).lower()
    assert dict(answer[0].attrib) == {}


async def test_service_announces_what_it_does_and_nothing_else(component: Component) -> None:
    """[xep-map 23] [xep-map 24] [xep-map 25]"""
    told = set(features(await info(component)))

    assert {name for name in told if name.startswith(PS + "#")} == PUBSUB_FEATURES
    assert told - PUBSUB_FEATURES == OTHER_FEATURES.union(*(OF_FEATURES.get(name, ()) for name in FEATURE_NAMES))
    assert {f"{PS}#rsm", RSM} <= told
    absent = {f"{PS}#{name}" for name in ("last-published", "auto-subscribe", "presence-subscribe")}
    absent |= {f"{PS}#{name}" for name in ("collections", "multi-collection", "access-presence", "access-roster")}
    assert not told & (absent | {"jabber:iq:register"})


@pytest.mark.parametrize("auto_create", [True, False])
async def test_auto_create_is_announced_while_it_is_on(start: Starter, auto_create: bool) -> None:
    """[xep-map 26]"""
    component = await start(pubsub={"auto_create": auto_create})

    assert (f"{PS}#auto-create" in features(await info(component))) is auto_create


async def test_answers_are_well_formed_for_hashing(component: Component) -> None:
    """[xep-map 27]"""
    await component.create(ALICE, "comments", title="Comments")
    await component.create(ALICE, "box", kind="generic")

    for node in ("", "comments", "comments?order=created", "box"):
        answer = await info(component, node)
        told = features(answer)
        identities = [tuple(sorted(e.attrib.items())) for e in answer.iterfind("info:query/info:identity", NS)]
        types = [fields(form)["FORM_TYPE"][0] for form in answer.iterfind("info:query/x:x", NS)]
        assert INFO in told and len(identities) == (1 if node else 2 + HAS_BOT)
        for found in (told, types, identities):
            assert len(set(found)) == len(found)


# Nodes


@pytest.mark.parametrize(
    ("node", "kind"), [("comments", "feed"), ("box", "generic"), ("comments?order=created", "feed")]
)
async def test_node_is_a_leaf_and_is_mirrored(component: Component, node: str, kind: str) -> None:
    """[xep-map 28] [xep-map 50]"""
    await component.create(ALICE, node.partition("?")[0], kind=kind, title="A title")

    answer = ok(await info(component, node))

    assert dict(answer[0].attrib) == {"node": node}
    (identity,) = answer.iterfind("info:query/info:identity", NS)
    assert dict(identity.attrib) == {"category": "pubsub", "type": "leaf", "name": "A title"}
    assert {INFO, PS} <= set(features(answer))


async def test_missing_node_is_not_found(component: Component) -> None:
    """[xep-map 29]"""
    assert refusal(await info(component, "missing")) == NOT_FOUND
    assert refusal(await items(component, "missing")) == NOT_FOUND


async def test_metadata_of_a_node_are_told(component: Component) -> None:
    """[xep-map 30] [xep-map 31] [xep-map 32]"""
    options = {"title": "T", "description": "D", "language": "en", "type": "urn:example:t", "publish_model": "open"}
    await component.create(ALICE, "comments", **options)
    contact = {"pubsub#contact": ["ann@example.org", "bo@example.org"]}
    ok(await component.owner_set(ALICE, f"<configure node='comments'>{submit(contact)}</configure>"))
    component.clock.advance(3600)

    told = form_of(await info(component, "comments"), META_DATA)

    assert {name: told[name] for name in options} == {name: [value] for name, value in options.items()}
    assert told["contact"] == contact["pubsub#contact"]
    assert (told["access_model"], told["max_items"], told["creator"]) == (["open"], ["max"], [bare(ALICE)])
    assert re.fullmatch(r"2026-01-01T00:00:00(\.0+)?Z", told["creation_date"][0])


async def test_subscribers_are_counted_that_are_subscribed(component: Component) -> None:
    """[xep-map 33]"""
    await component.create(ALICE, "comments", access_model="authorize")
    await component.affiliate(ALICE, "comments", BOB, "member")
    await component.subscribe(BOB, "comments")
    await component.subscribe(BOB, "comments?order=created")
    await component.subscribe(CAROL, "comments")

    assert form_of(await info(component, "comments"), META_DATA)["num_subscribers"] == ["2"]
    ok(await component.set(BOB, f"<unsubscribe node='comments' jid='{bare(BOB)}'/>"))
    assert form_of(await info(component, "comments"), META_DATA)["num_subscribers"] == ["1"]


@pytest.mark.parametrize("model", ["open", "authorize"])
async def test_people_of_a_node_are_told_to_its_readers_alone(component: Component, model: str) -> None:
    """[xep-map 34]"""
    await component.create(ALICE, "comments", access_model=model, title="T", type="urn:x")
    await component.affiliate(ALICE, "comments", BOB, "publisher")
    await component.affiliate(ALICE, "comments", CAROL, "outcast")

    told = form_of(await info(component, "comments"), META_DATA)
    outcasts = form_of(await info(component, "comments", CAROL), META_DATA)
    strangers = form_of(await info(component, "comments", user=EVE), META_DATA)

    people = {"owner": [bare(ALICE)], "publisher": [bare(BOB)], "num_subscribers": ["0"]}
    assert {name: told.get(name) for name in people} == people
    assert not people.keys() & outcasts.keys()
    assert bool(people.keys() & strangers.keys()) is (model == "open")
    assert strangers["access_model"] == [model]
    closed = {"FORM_TYPE": [META_DATA], "type": ["urn:x"], "access_model": [model]}
    assert outcasts == closed
    assert strangers["title"] == ["T"]


async def test_node_that_is_closed_to_one_has_no_name_either(component: Component) -> None:
    """[xep-map 34] An entity that may not read it learns only what it is."""
    await component.create(ALICE, "comments", access_model="whitelist", title="Secret plans", description="D")
    for affiliation in ("none", "outcast", "publish-only"):
        await component.affiliate(ALICE, "comments", EVE, affiliation)

        answer = await info(component, "comments", user=EVE)

        (identity,) = answer.iterfind("info:query/info:identity", NS)
        assert dict(identity.attrib) == {"category": "pubsub", "type": "leaf"}
        text = etree.tostring(answer)
        assert b"Secret" not in text and bare(ALICE).encode() not in text
    assert b"Secret" in etree.tostring(await info(component, "comments", user=ALICE))


async def test_view_of_a_feed_tells_the_feed_requirements(component: Component) -> None:
    """[xep-map 35] [SF-112]"""
    await component.create(ALICE, "comments")

    for node in ("comments?order=created", "comments?q=x", "comments"):
        told = form_of(await info(component, node), REQUIREMENTS)
        assert told["xmpp-jid"] == [DOMAIN]
        assert told["xmpp-node"] == [node if "?" in node else "comments?order=modified"]
        assert {"cursor", "time"} <= set(told["positions"])
        assert set(told["orders"]) == {"modified", "created"}
        assert {"order", "author", "category", "q", "in-reply-to", "kind", "lang"} <= set(told["parameters"])
        assert told["item-format"] == ["http://www.w3.org/2005/Atom"]


@pytest.mark.parametrize("query", ["colour=red", "order=random", "order", "order=modified&amp;colour=red"])
async def test_view_with_unknown_parameters_is_not_found(component: Component, query: str) -> None:
    """[xep-map 35] [xep-map 53]"""
    await component.create(ALICE, "comments")

    assert refusal(await info(component, f"comments?{query}")) == NOT_FOUND


async def test_feed_requirements_hold_an_address_that_can_be_passed_on(component: Component) -> None:
    """[xep-map 35]; XEP-0060 12.22 (xep-map 1.7): node names are percent-encoded."""
    await component.create(ALICE, "a/b c")

    told = form_of(await info(component, "a/b c?order=created"), REQUIREMENTS)

    assert told["xmpp-uri"] == [f"xmpp:{DOMAIN}?;node=a%2Fb%20c%3Forder%3Dcreated"]


async def test_generic_node_has_no_feed_requirements(component: Component) -> None:
    """[xep-map 35]"""
    await component.create(ALICE, "box", kind="generic")

    types = [fields(form)["FORM_TYPE"] for form in (await info(component, "box")).iterfind(".//x:x", NS)]
    assert types == [[META_DATA]]


# Lists


async def test_service_lists_bare_nodes(component: Component) -> None:
    """[xep-map 36] [xep-map 37]"""
    await component.create(ALICE, "titled", title="A & B")
    await component.create(ALICE, "plain")
    await component.subscribe(BOB, "plain?order=created")

    answer = ok(await items(component))

    plain, titled = f"<item jid='{DOMAIN}' node='plain'/>", f"<item jid='{DOMAIN}' node='titled' name='A &amp; B'/>"
    assert body(answer) == [tree(f"<query xmlns='{ITEMS}'>{plain}{titled}</query>")]


async def test_nodes_that_the_asker_may_not_know_are_not_listed(component: Component) -> None:
    """[xep-map 38]"""
    for node, model in (("a", "open"), ("b", "whitelist"), ("c", "authorize"), ("d", "open")):
        await component.create(ALICE, node, access_model=model)
    await component.affiliate(ALICE, "b", CAROL, "member")
    await component.affiliate(ALICE, "d", BOB, "outcast")

    assert nodes(await items(component)) == ["a", "c"]
    assert nodes(await items(component, user=CAROL)) == ["a", "b", "c", "d"]
    assert nodes(await items(component, user=ALICE)) == ["a", "b", "c", "d"]


async def test_hidden_nodes_are_not_counted_either(component: Component) -> None:
    """[xep-map 38] [xep-map 204]"""
    for node, model in (("a", "open"), ("b", "whitelist"), ("c", "open")):
        await component.create(ALICE, node, access_model=model)

    assert ok(await items(component)).find(".//rsm:set", NS) is None
    assert result_set(await items(component, inner=rsm("<max>10</max>"))) == ("a", "0", "c", "2")


async def test_service_without_nodes_lists_nothing(component: Component) -> None:
    """[xep-map 39]"""
    assert body(ok(await items(component))) == [tree(f"<query xmlns='{ITEMS}'/>")]


async def test_node_lists_the_ids_of_its_live_items(component: Component) -> None:
    """[xep-map 40] [xep-map 41]"""
    await component.create(ALICE, "comments")
    for item_id in ("one", "two", "a&amp;b"):
        await component.publish(ALICE, "comments", item_id.replace("&amp;", "&"))
    await component.retract(ALICE, "comments", "two")

    answer = ok(await items(component, "comments"))

    entries = "".join(f"<item jid='{DOMAIN}' name='{name}'/>" for name in ("one", "a&amp;b"))
    assert body(answer) == [tree(f"<query xmlns='{ITEMS}' node='comments'>{entries}</query>")]


async def test_items_of_a_node_are_listed_to_its_readers_alone(component: Component) -> None:
    """[xep-map 40]; XEP-0060 5.5, 6.5.9."""
    await component.create(ALICE, "comments", access_model="whitelist")

    assert refusal(await items(component, "comments")) == Refusal("cancel", "not-allowed", "closed-node")


async def test_items_of_a_node_are_paged(start: Starter) -> None:
    """[xep-map 42]; section 3.1, row 26."""
    component = await start(pubsub={"page_max": 3, "page_default": 2})
    await component.create(ALICE, "comments")
    for number in range(5):
        await component.publish(ALICE, "comments", f"n{number}")

    def ids(answer: Element) -> list[str]:
        return [str(each.get("name")) for each in ok(answer).iterfind("items:query/items:item", NS)]

    newest = await items(component, "comments")
    first = await items(component, "comments", rsm("<max>2</max>"))
    second = await items(component, "comments", rsm(f"<max>2</max><after>{result_set(first)[2]}</after>"))
    last = await items(component, "comments", rsm("<max>2</max><before/>"))

    assert ids(newest) == ["n2", "n3", "n4"] and result_set(newest)[1::2] == ("2", "5")
    assert ids(first) == ["n0", "n1"] and result_set(first)[1::2] == ("0", "5")
    assert ids(second) == ["n2", "n3"]
    assert ids(last) == ["n3", "n4"]
    assert body(await items(component, "comments", rsm("<max>0</max>"))) == [
        tree(f"<query xmlns='{ITEMS}' node='comments'>{rsm('<count>5</count>')}</query>")
    ]


async def test_nodes_of_the_service_are_paged(start: Starter) -> None:
    """[xep-map 42]; section 3.1 rows 4 to 17, 26, 27."""
    component = await start(pubsub={"page_max": 3, "page_default": 2})
    for node in "edcba":
        await component.create(ALICE, node)

    async def page(inner: str) -> Element:
        return await items(component, inner=rsm(inner))

    whole = await items(component)
    assert nodes(whole) == ["a", "b", "c"] and result_set(whole) == ("a", "0", "c", "5")
    first = await page("")
    assert nodes(first) == ["a", "b"] and result_set(first) == ("a", "0", "b", "5")
    assert nodes(await page("<max>9</max>")) == ["a", "b", "c"]
    assert nodes(await page("<max>2</max><after>b</after>")) == ["c", "d"]
    assert nodes(await page("<max>2</max><after>d</after>")) == ["e"]
    assert nodes(await page("<max>2</max><before/>")) == ["d", "e"]
    assert nodes(await page("<max>2</max><before>d</before>")) == ["b", "c"]
    indexed = await page("<max>2</max><index>3</index>")
    assert nodes(indexed) == ["d", "e"] and result_set(indexed)[1] == "3"
    assert result_set(await page("<max>0</max>")) == (None, None, None, "5")
    assert result_set(await page("<after>e</after>")) == (None, None, None, "5")
    assert refusal(await page("<max>-1</max>")) == Refusal("modify", "bad-request")


def filtered(*values: str, name: str = "included-types") -> str:
    """A filter by types."""
    return type_filter({name: list(values)})


def type_filter(wanted: dict[str, list[str]]) -> str:
    """A filter with these fields."""
    return f"<filter xmlns='{FILTER}'>{submit({'FORM_TYPE': [FILTER], **wanted})}</filter>"


@pytest_asyncio.fixture(loop_scope="module")
async def typed(component: Component) -> Component:
    """A component with nodes of several types."""
    await component.create(ALICE, "feed")
    await component.create(ALICE, "x1", type="urn:x")
    await component.create(ALICE, "x2", type="urn:x")
    await component.create(ALICE, "y", type="urn:y")
    await component.create(ALICE, "untyped", kind="generic")
    return component


async def test_filter_with_included_types(typed: Component) -> None:
    """[xep-map 43]"""
    assert nodes(await items(typed, inner=filtered("urn:x"))) == ["x1", "x2"]
    assert nodes(await items(typed, inner=filtered("urn:x", "urn:y"))) == ["x1", "x2", "y"]
    assert nodes(await items(typed, inner=filtered(""))) == ["untyped"]
    assert nodes(await items(typed, inner=filtered("", "urn:y"))) == ["untyped", "y"]
    assert nodes(await items(typed, inner=filtered("urn:z"))) == []


async def test_filter_with_excluded_types(typed: Component) -> None:
    """[xep-map 44]"""
    name = "excluded-types"
    assert nodes(await items(typed, inner=filtered("urn:x", name=name))) == ["feed", "untyped", "y"]
    assert nodes(await items(typed, inner=filtered("", "urn:x", name=name))) == ["feed", "y"]


async def test_filter_with_both_is_refused(typed: Component) -> None:
    """[xep-map 44]"""
    both = type_filter({"included-types": ["urn:x"], "excluded-types": ["urn:y"]})

    assert refusal(await items(typed, inner=both)) == Refusal("modify", "bad-request")


async def test_filter_is_paged_and_counted(typed: Component) -> None:
    """[xep-map 43] [xep-map 42]"""
    answer = await items(typed, inner=filtered("urn:x", "urn:y") + rsm("<max>2</max><after>x1</after>"))
    whole = await items(typed, inner=filtered("urn:x", "urn:y") + rsm("<max>9</max>"))

    assert nodes(answer) == ["x2", "y"]
    assert result_set(whole) == ("x1", "0", "y", "3")


# Nodes of our own


async def test_headers_that_are_sent_are_told(component: Component) -> None:
    """[xep-map 45]"""
    answer = await info(component, SHIM)

    assert set(features(answer)) - {INFO} == {
        f"{SHIM}#{name}" for name in ("TotalItems", "PreviousCursor", "LastCursor", "SubID")
    }
    assert answer[0].get("node") == SHIM


@pytest.mark.needs("conflicts")
async def test_commands_of_the_service_are_listed(component: Component) -> None:
    """[xep-map 46]"""
    commands = "http://jabber.org/protocol/commands"
    conflicts = f"<item jid='{DOMAIN}' node='urn:smartfeeds:0#conflicts' name='Conflicts of a node'/>"

    answer = ok(await component.ask(EVE, "get", f"<query xmlns='{ITEMS}' node='{commands}'/>"))

    assert body(answer) == [tree(f"<query xmlns='{ITEMS}' node='{commands}'>{conflicts}</query>")]


async def test_contact_addresses_are_those_of_the_configuration(start: Starter) -> None:
    """XEP-0157: whoever has to complain finds whom to turn to."""
    abuse = ["mailto:abuse@example.org", "xmpp:abuse@example.org"]
    component = await start(contact={"abuse": abuse, "status": ["https://example.org/status"]})

    answer = ok(await component.ask(ALICE, "get", f"<query xmlns='{INFO}'/>"))

    forms = [fields(form) for form in answer.iterfind("info:query/x:x", NS)]
    kind = ["http://jabber.org/network/serverinfo"]
    assert forms == [{"FORM_TYPE": kind, "abuse-addresses": abuse, "status-addresses": ["https://example.org/status"]}]
