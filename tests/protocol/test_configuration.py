"""Configuring nodes, and the default configuration, through the whole component (xep-map E; XEP-0060 8.2, 8.3)."""

import pytest

from support.component import (
    ALICE,
    BOB,
    NODE_CONFIG,
    NS,
    PS,
    Component,
    Refusal,
    Starter,
    bare,
    body,
    entry,
    fields,
    form,
    ok,
    refusal,
    submit,
)
from support.nodes import event, exists

pytestmark = pytest.mark.shared

NOT_FOUND = Refusal("cancel", "item-not-found")
NOT_ACCEPTABLE = Refusal("modify", "not-acceptable")
FORBIDDEN = Refusal("auth", "forbidden")
BAD_REQUEST = Refusal("modify", "bad-request")
NO_NODEID = Refusal("modify", "bad-request", "nodeid-required")
NO_COLLECTIONS = Refusal("cancel", "feature-not-implemented", "unsupported", "collections")


OFFERED = {  # xep-map 2.1: the defaults of a feed
    "access_model": ["open"],
    "contact": [],
    "deliver_notifications": ["true"],
    "deliver_payloads": ["true"],
    "description": [""],
    "frame_origins": [],
    "guest_replies": ["no"],
    "item_expire": ["max"],
    "itemreply": ["publisher"],
    "language": [""],
    "max_items": ["max"],
    "max_payload_size": ["65536"],
    "node_type": ["leaf"],
    "notification_type": ["headline"],
    "notify_config": ["false"],
    "notify_delete": ["true"],
    "notify_retract": ["true"],
    "notify_sub": ["false"],
    "persist_items": ["true"],
    "presence_based_delivery": ["false"],
    "publish_model": ["publishers"],
    "publish_node_full": ["retract-oldest"],
    "purge_offline": ["false"],
    "send_last_published_item": ["never"],
    "subscribe": ["true"],
    "sync_dialect": ["feedsync"],
    "tempsub": ["false"],
    "title": [""],
    "type": ["urn:xmpp:pubsub-social-feed:1"],
}
CHOICES = {
    "access_model": {"open", "authorize", "whitelist"},
    "publish_model": {"publishers", "subscribers", "open"},
    "itemreply": {"publisher", "owner", "none"},
    "publish_node_full": {"retract-oldest", "discard-oldest", "reject"},
    "notification_type": {"normal", "headline"},
    "send_last_published_item": {"never", "on_sub", "on_sub_and_presence"},
    "guest_replies": {"no", "approval"},
    "node_type": {"leaf"},
    "sync_dialect": {"feedsync", "sse"},
}


async def test_configure_form_shows_all_offered_fields_with_current_values(component: Component) -> None:
    """[xep-map 65]"""
    await component.create(ALICE, "comments", title="Ours & theirs", access_model="authorize")

    answer = ok(await component.owner_get(ALICE, "<configure node='comments'/>"))

    shown = answer.find("own:pubsub/own:configure[@node='comments']/x:x[@type='form']", NS)
    assert shown is not None
    assert fields(shown) == {
        "FORM_TYPE": [NODE_CONFIG],
        **OFFERED,
        "title": ["Ours & theirs"],
        "access_model": ["authorize"],
    }
    offered = {
        str(field.get("var")).removeprefix("pubsub#"): {
            option.text for option in field.iterfind("x:option/x:value", NS)
        }
        for field in shown.iterfind("x:field[@type='list-single']", NS)
    }
    assert offered == CHOICES


@pytest.mark.parametrize("kind", ["get", "set"])
async def test_configure_is_refused_to_strangers_and_without_a_node(component: Component, kind: str) -> None:
    """[xep-map 66]"""
    await component.create(ALICE, "comments")
    ask = component.owner_get if kind == "get" else component.owner_set
    inner = form(NODE_CONFIG, title="x") if kind == "set" else ""

    assert refusal(await ask(BOB, f"<configure node='comments'>{inner}</configure>")) == FORBIDDEN
    assert refusal(await ask(ALICE, f"<configure>{inner}</configure>")) == NO_NODEID
    assert refusal(await ask(ALICE, f"<configure node='missing'>{inner}</configure>")) == NOT_FOUND
    assert (await component.config(ALICE, "comments"))["title"] == [""]


async def test_configure_without_a_form_is_refused(component: Component) -> None:
    """XEP-0060 8.2.4: a set carries a form."""
    await component.create(ALICE, "comments")

    assert refusal(await component.owner_set(ALICE, "<configure node='comments'/>")) == BAD_REQUEST


async def test_configure_changes_only_the_fields_of_the_form(component: Component) -> None:
    """[xep-map 67]"""
    await component.create(ALICE, "comments", title="Kept", description="Old", notify_config="0")
    before = await component.config(ALICE, "comments")

    await component.configure(ALICE, "comments", description="New")

    assert await component.config(ALICE, "comments") == {**before, "description": ["New"]}


@pytest.mark.parametrize(("written", "meant"), [("0", "false"), ("false", "false"), ("1", "true"), ("true", "true")])
async def test_booleans_are_accepted_in_all_four_spellings(component: Component, written: str, meant: str) -> None:
    """[xep-map 68]"""
    await component.create(ALICE, "comments", notify_config="true" if meant == "false" else "false")

    await component.configure(ALICE, "comments", notify_config=written)

    assert (await component.config(ALICE, "comments"))["notify_config"] == [meant]


@pytest.mark.parametrize("written", ["yes", "", "TRUE", "2"])
async def test_other_booleans_are_refused(component: Component, written: str) -> None:
    """[xep-map 68]"""
    await component.create(ALICE, "comments")
    changed = form(NODE_CONFIG, notify_config=written, title="Changed")

    answer = await component.owner_set(ALICE, f"<configure node='comments'>{changed}</configure>")

    assert refusal(answer) == NOT_ACCEPTABLE
    assert (await component.config(ALICE, "comments"))["title"] == [""]


async def test_cancelled_form_changes_nothing(component: Component) -> None:
    """[xep-map 69]"""
    await component.create(ALICE, "comments")
    before = await component.config(ALICE, "comments")
    cancelled = submit({"FORM_TYPE": [NODE_CONFIG], "pubsub#title": ["Changed"]}, kind="cancel")

    answer = ok(await component.owner_set(ALICE, f"<configure node='comments'>{cancelled}</configure>"))

    assert body(answer) == []
    assert await component.config(ALICE, "comments") == before


async def test_form_of_another_type_is_refused(component: Component) -> None:
    """[xep-map 70]"""
    await component.create(ALICE, "comments")
    wrong = form(f"{PS}#publish-options", title="Changed")

    configured = await component.owner_set(ALICE, f"<configure node='comments'>{wrong}</configure>")
    created = await component.set(ALICE, f"<create node='other'/><configure>{wrong}</configure>")

    assert refusal(configured) == refusal(created) == BAD_REQUEST
    assert (await component.config(ALICE, "comments"))["title"] == [""]
    assert not await exists(component, "other")


@pytest.mark.parametrize("value", ["max", "10000", "4000000000"])
async def test_feed_takes_max_items_that_means_unlimited(component: Component, value: str) -> None:
    """[xep-map 71]"""
    await component.create(ALICE, "made", max_items=value)
    await component.create(ALICE, "comments")
    await component.configure(ALICE, "comments", max_items=value)

    assert (await component.config(ALICE, "made"))["max_items"] == ["max"]
    assert (await component.config(ALICE, "comments"))["max_items"] == ["max"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("max_items", "9999", id="[xep-map 71] lower"),
        pytest.param("max_items", "1", id="[xep-map 71] one"),
        pytest.param("max_items", "many", id="[xep-map 71] no number"),
        pytest.param("item_expire", "86400", id="[xep-map 72] item_expire"),
        pytest.param("persist_items", "false", id="[xep-map 72] persist_items"),
        pytest.param("purge_offline", "1", id="[xep-map 72] purge_offline"),
        pytest.param("max_payload_size", "65537", id="[xep-map 74] max_payload_size"),
        pytest.param("presence_based_delivery", "online", id="xep-map 2.1 presence_based_delivery"),
        pytest.param("tempsub", "2", id="xep-map 2.1 tempsub"),
        pytest.param("body_xslt", "http://example.org/x.xsl", id="xep-map 2.1 body_xslt"),
        pytest.param("dataform_xslt", "http://example.org/x.xsl", id="xep-map 2.1 dataform_xslt"),
        pytest.param("roster_groups_allowed", "friends", id="xep-map 2.1 roster_groups_allowed"),
        pytest.param("notification_type", "chat", id="xep-map 2.1 notification_type"),
        pytest.param("publish_model", "everybody", id="xep-map 2.1 publish_model"),
        pytest.param("itemreply", "room", id="xep-map 2.1 itemreply"),
        pytest.param("publish_node_full", "burst", id="xep-map 2.1 publish_node_full"),
    ],
)
async def test_feed_refuses_what_it_cannot_be_and_changes_nothing(component: Component, name: str, value: str) -> None:
    """[xep-map 71] [xep-map 72] [xep-map 74]; xep-map 2.1 (R10): refused, never silently ignored."""
    await component.create(ALICE, "comments")
    await component.publish(ALICE, "comments", "x")
    before = await component.config(ALICE, "comments")
    options = {"title": "Changed", name: value}

    configured = await component.owner_set(
        ALICE, f"<configure node='comments'>{form(NODE_CONFIG, '', **options)}</configure>"
    )
    created = await component.set(
        ALICE, f"<create node='made'/><configure>{form(NODE_CONFIG, 'feed', **options)}</configure>"
    )

    assert refusal(configured) == refusal(created) == NOT_ACCEPTABLE
    assert name in str(configured.xpath("string(c:error/st:text)", namespaces=NS))
    assert await component.config(ALICE, "comments") == before
    assert not await exists(component, "made")


@pytest.mark.parametrize("value", ["max", ""])
async def test_feed_takes_the_absence_of_an_expiry(component: Component, value: str) -> None:
    """[xep-map 72]"""
    await component.create(ALICE, "comments", item_expire=value)

    assert (await component.config(ALICE, "comments"))["item_expire"] == ["max"]


async def test_generic_node_keeps_the_newest_max_items(component: Component) -> None:
    """[xep-map 73]"""
    await component.create(ALICE, "box", kind="generic", max_items="2")

    for number in ("1", "2", "3", "1"):
        await component.publish(ALICE, "box", number, "<n xmlns='urn:example:n'/>")

    assert (await component.config(ALICE, "box"))["max_items"] == ["2"]
    assert await component.item_ids(ALICE, "box") == ["3", "1"]


async def test_payloads_may_have_the_size_of_the_services_ceiling(start: Starter) -> None:
    """[xep-map 74] [xep-map 77]: the defaults themselves obey the ceiling."""
    component = await start(pubsub={"max_payload_size_bytes": 2048})
    default = fields(ok(await component.owner_get(ALICE, "<default/>")))
    await component.create(ALICE, "comments")

    over = await component.owner_set(
        ALICE, f"<configure node='comments'>{form(NODE_CONFIG, max_payload_size='2049')}</configure>"
    )
    big = await component.set(ALICE, f"<publish node='comments'><item>{entry('x' * 2048)}</item></publish>")
    await component.configure(ALICE, "comments", max_payload_size="2048")

    assert default["max_payload_size"] == ["2048"]
    assert refusal(over) == NOT_ACCEPTABLE
    assert refusal(big) == Refusal("modify", "not-acceptable", "payload-too-big")


@pytest.mark.parametrize("payloads", ["true", "false"])
async def test_change_of_configuration_is_told_once_where_the_node_says_so(component: Component, payloads: str) -> None:
    """[xep-map 75]"""
    await component.create(ALICE, "comments", notify_config="true", deliver_payloads=payloads)
    await component.subscribe(BOB, "comments")

    await component.configure(ALICE, "comments", title="New")
    messages = await component.events(bare(BOB))

    assert len(messages) == 1
    (told,) = event(messages[0])
    assert (told.tag, dict(told.attrib)) == (f"{{{NS['ev']}}}configuration", {"node": "comments"})
    if payloads == "true":
        assert [child.get("type") for child in told] == ["result"]
        assert fields(told)["title"] == ["New"]
    else:
        assert len(told) == 0


async def test_change_of_configuration_is_not_told_otherwise(component: Component) -> None:
    """[xep-map 75]"""
    await component.create(ALICE, "comments")
    await component.subscribe(BOB, "comments")

    await component.configure(ALICE, "comments", title="New")

    assert await component.events(bare(BOB)) == []


# Defaults


async def test_default_form_of_leaves_is_told(component: Component) -> None:
    """[xep-map 76]"""
    for request in ("<default/>", "<default type='leaf'/>"):
        answer = ok(await component.owner_get(BOB, request))
        shown = answer.find("own:pubsub/own:default/x:x[@type='form']", NS)
        assert shown is not None
        told = fields(shown)
        assert told.pop("{urn:smartfeeds:0}kind") == [""]
        assert told == {"FORM_TYPE": [NODE_CONFIG], **OFFERED}


async def test_default_form_of_collections_is_unsupported(component: Component) -> None:
    """[xep-map 76]"""
    assert refusal(await component.owner_get(BOB, "<default type='collection'/>")) == NO_COLLECTIONS


@pytest.mark.parametrize("default_kind", ["feed", "generic"])
async def test_node_made_from_the_default_form_has_the_default_configuration(start: Starter, default_kind: str) -> None:
    """[xep-map 77]"""
    component = await start(pubsub={"default_kind": default_kind})
    answer = ok(await component.owner_get(ALICE, "<default/>"))
    told = {
        str(f.get("var")): [v.text or "" for v in f.iterfind("x:value", NS)] for f in answer.iterfind(".//x:field", NS)
    }
    await component.create(ALICE, "plain")

    ok(await component.set(ALICE, f"<create node='made'/><configure>{submit(told)}</configure>"))

    assert await component.config(ALICE, "made") == await component.config(ALICE, "plain")


@pytest.mark.parametrize(("name", "value"), [("max_items", "1"), ("persist_items", "0"), ("type", "urn:xmpp:spaces:0")])
async def test_default_form_with_one_other_value_makes_the_node_that_it_describes(
    component: Component, name: str, value: str
) -> None:
    """[xep-map 77] XEP-0060 8.1.3: as ejabberd's suite and Smack create nodes, with every field of the form."""
    answer = ok(await component.owner_get(ALICE, "<default/>"))
    values = {
        str(f.get("var")): [v.text or "" for v in f.iterfind("x:value", NS)] for f in answer.iterfind(".//x:field", NS)
    }

    form_ = submit({**values, f"pubsub#{name}": [value]})
    ok(await component.set(ALICE, f"<create node='made'/><configure>{form_}</configure>"))

    assert (await component.config(ALICE, "made"))[name] in ([value], ["false"])
