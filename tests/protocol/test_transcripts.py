"""The dialogues of other suites, request by request: the transcripts of Prosody (spec/scansion/pubsub_*.scs) and the
cases of two users of ejabberd (test/pubsub_tests.erl). All addresses are full JIDs, as there."""

import pytest

from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    NS,
    PS,
    PUBLISH_OPTIONS,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    entry,
    ok,
    refusal,
    submit,
    tree,
)

pytestmark = pytest.mark.shared

AUTHORIZATION = f"{PS}#subscribe_authorization"
CONFLICT = Refusal("cancel", "conflict")
FORBIDDEN = Refusal("auth", "forbidden")
NOT_FOUND = Refusal("cancel", "item-not-found")
PRESENCE = "<presence xmlns='jabber:client' id='x' xml:lang='en'/>"


def subscription(state: str, user: str = BOB) -> object:
    return tree(f"<pubsub xmlns='{PS}'><subscription node='musings' jid='{user}' subscription='{state}'/></pubsub>")


async def subscribe(component: Component, user: str = BOB) -> Element:
    return await component.set(user, f"<subscribe node='musings' jid='{user}'/>")


async def unsubscribe(component: Component, user: str = BOB) -> Element:
    return await component.set(user, f"<unsubscribe node='musings' jid='{user}'/>")


async def publish(component: Component, user: str, item_id: str = "current", payload: str = PRESENCE) -> Element:
    return await component.set(user, f"<publish node='musings'><item id='{item_id}'>{payload}</item></publish>")


def published(messages: list[Element]) -> list[tuple[str | None, str | None, str | None]]:
    """The type of each message, and the publisher and id of its item."""
    found = [(message, message.find("ev:event/ev:items[@node='musings']/ev:item", NS)) for message in messages]
    return [(message.get("type"), item.get("publisher"), item.get("id")) for message, item in found if item is not None]


def states(messages: list[Element]) -> list[tuple[str | None, str | None]]:
    """The address and state of each notification of a subscription."""
    found = [message.find("ev:event/ev:subscription[@node='musings']", NS) for message in messages]
    return [(each.get("jid"), each.get("subscription")) for each in found if each is not None]


async def test_prosody_create_and_delete(component: Component) -> None:
    """pubsub_createdelete.scs [xep-map 58]"""
    ok(await component.set(ALICE, "<create node='musings'/>"))
    assert refusal(await component.set(ALICE, "<create node='musings'/>")) == CONFLICT
    ok(await component.owner_set(ALICE, "<delete node='musings'/>"))
    assert refusal(await component.owner_set(ALICE, "<delete node='musings'/>")) == NOT_FOUND


async def test_prosody_advanced(start: Starter) -> None:
    """pubsub_advanced.scs: creators, affiliations, and the answers to subscribe and unsubscribe"""
    component = await start(pubsub={"creators": [bare(ALICE)]})
    assert refusal(await component.set(BOB, "<create node='musings'/>")) == FORBIDDEN
    ok(await component.set(ALICE, "<create node='musings'/>"))
    assert (await component.set(BOB, f"<subscribe node='musings' jid='{CAROL}'/>")).get("type") == "error"

    assert tree(ok(await subscribe(component))[0]) == subscription("subscribed")
    owner = f"<affiliation affiliation='owner' jid='{bare(ALICE)}'/>"
    listed = ok(await component.owner_get(ALICE, "<affiliations node='musings'/>"))[0]
    assert tree(listed) == tree(
        f"<pubsub xmlns='{PS}#owner'><affiliations node='musings'>{owner}</affiliations></pubsub>"
    )
    publisher = f"<affiliation affiliation='publisher' jid='{bare(CAROL)}'/>"
    ok(await component.owner_set(ALICE, f"<affiliations node='musings'>{owner}{publisher}</affiliations>"))
    ok(await publish(component, CAROL, payload=entry("Soliloquy")))
    assert published(await component.events(BOB)) == [("headline", bare(CAROL), "current")]
    assert tree(ok(await unsubscribe(component))[0]) == subscription("none")
    ok(await component.owner_set(ALICE, "<delete node='musings'/>"))


async def test_prosody_resend_on_subscribe(component: Component) -> None:
    """pubsub_resend_on_sub.scs: the option may change between two subscriptions"""
    ok(await component.set(ALICE, "<create node='musings'/>"))
    await component.configure(ALICE, "musings", send_last_published_item="never")
    ok(await publish(component, ALICE, payload=entry("Soliloquy")))
    ok(await subscribe(component))
    ok(await unsubscribe(component))
    assert published(await component.events(BOB)) == []

    await component.configure(ALICE, "musings", send_last_published_item="on_sub")
    ok(await subscribe(component))
    assert published(await component.events(BOB)) == [("headline", bare(ALICE), "current")]
    ok(await unsubscribe(component))


async def test_prosody_preconditions(component: Component) -> None:
    """pubsub_preconditions.scs: the title is the name in the list, and the form needs no type"""
    ok(await component.set(ALICE, "<create node='musings'/>"))
    ok(await publish(component, ALICE, payload=entry("x")))
    await component.configure(ALICE, "musings", title="Nice tunes", itemreply="none")
    listed = ok(await component.ask(ALICE, "get", "<query xmlns='http://jabber.org/protocol/disco#items'/>"))
    assert [item.get("name") for item in listed[0]] == ["Nice tunes"]

    options = submit({"FORM_TYPE": [PUBLISH_OPTIONS], "pubsub#access_model": ["whitelist"]}).replace(
        " type='submit'", ""
    )
    item = f"<publish node='musings'><item id='current'>{entry('y')}</item></publish>"
    answer = await component.set(ALICE, f"{item}<publish-options>{options}</publish-options>")

    assert refusal(answer) == Refusal("cancel", "conflict", "precondition-not-met")


async def test_ejabberd_authorize(component: Component) -> None:
    """authorize_master, authorize_slave: the owner denies, then approves, both without a subid"""
    await component.create(ALICE, "musings", access_model="authorize", notify_delete="false")
    for allow, state in (("0", "none"), ("1", "subscribed")):
        assert tree(ok(await subscribe(component))[0]) == subscription("pending")
        (message,) = await component.events(bare(ALICE))
        values = {
            field.get("var"): field.findtext("x:value", None, NS) for field in message.iterfind("x:x/x:field", NS)
        }
        assert (values["pubsub#node"], values["pubsub#subscriber_jid"]) == ("musings", BOB)
        form = submit(
            {
                "FORM_TYPE": [AUTHORIZATION],
                "pubsub#node": ["musings"],
                "pubsub#subscriber_jid": [BOB],
                "pubsub#allow": [allow],
            }
        )
        await component.send(f"<message from='{ALICE}' to='{DOMAIN}'>{form}</message>")
        assert states(await component.events(BOB)) == [(BOB, state)]


async def test_ejabberd_subscriptions_set_by_the_owner(start: Starter) -> None:
    """subscriptions_master, subscriptions_slave, with the switch on [xep-map 94]"""
    component = await start(pubsub={"owners_subscribe_others": True})
    await component.create(ALICE, "musings")
    for state in ("subscribed", "none"):
        rows = f"<subscription jid='{BOB}' subscription='{state}'/>"
        ok(await component.owner_set(ALICE, f"<subscriptions node='musings'>{rows}</subscriptions>"))
        ok(await publish(component, ALICE, state))
        listed = ok(await component.owner_get(ALICE, "<subscriptions node='musings'/>"))
        seen = [(each.get("jid"), each.get("subscription")) for each in listed.iter(f"{{{PS}#owner}}subscription")]
        messages = await component.events(BOB)

        assert states(messages) == [(BOB, state)]
        assert seen == ([(BOB, state)] if state == "subscribed" else [])
        assert len(published(messages)) == len(seen)


MAY = {
    "outcast": "",
    "none": "subscribe items",
    "member": "subscribe items",
    "publish-only": "publish",
    "publisher": "subscribe items publish",
}


@pytest.mark.parametrize("affiliation", MAY)
async def test_ejabberd_affiliations(component: Component, affiliation: str) -> None:
    """affiliations_master, affiliations_slave: which requests are refused with `forbidden`"""
    await component.create(ALICE, "musings")
    ok(await publish(component, ALICE))
    row = f"<affiliation jid='{BOB}' affiliation='{affiliation}'/>"
    ok(await component.owner_set(ALICE, f"<affiliations node='musings'>{row}</affiliations>"))
    swap = f"<affiliation jid='{ALICE}' affiliation='outcast'/><affiliation jid='{BOB}' affiliation='owner'/>"
    answers = {
        "subscribe": await subscribe(component),
        "items": await component.get(BOB, "<items node='musings'/>"),
        # Users who may publish but not read choose no ids, because the answer would reveal which ids exist.
        "publish": await component.set(BOB, f"<publish node='musings'><item>{PRESENCE}</item></publish>"),
        "delete": await component.owner_set(BOB, "<delete node='musings'/>"),
        "purge": await component.owner_set(BOB, "<purge node='musings'/>"),
        "configure": await component.owner_get(BOB, "<configure node='musings'/>"),
        "subscriptions": await component.owner_get(BOB, "<subscriptions node='musings'/>"),
        "affiliations": await component.owner_get(BOB, "<affiliations node='musings'/>"),
        "set affiliations": await component.owner_set(BOB, f"<affiliations node='musings'>{swap}</affiliations>"),
    }

    refused = {name for name, answer in answers.items() if answer.get("type") == "error"}
    assert refused == answers.keys() - set(MAY[affiliation].split())
    assert {refusal(answers[name]) for name in refused} == {FORBIDDEN}


async def test_ejabberd_owner_takes_over(component: Component) -> None:
    """affiliations_slave, owner: full JIDs are those of the bare JID [xep-map 86]"""
    await component.create(ALICE, "musings")
    ok(await publish(component, ALICE))
    owner = f"<affiliation jid='{BOB}' affiliation='owner'/>"
    ok(await component.owner_set(ALICE, f"<affiliations node='musings'>{owner}</affiliations>"))
    ok(await publish(component, BOB, "own"))
    for item_id in ("own", "current"):
        ok(await component.set(BOB, f"<retract node='musings'><item id='{item_id}'/></retract>"))
    ok(await component.owner_set(BOB, "<purge node='musings'/>"))
    ok(await component.owner_set(BOB, "<subscriptions node='musings'/>"))
    swap = f"<affiliation jid='{ALICE}' affiliation='outcast'/>{owner}"
    ok(await component.owner_set(BOB, f"<affiliations node='musings'>{swap}</affiliations>"))

    own = ok(await component.get(BOB, "<affiliations/>"))
    assert [(a.get("node"), a.get("affiliation")) for a in own.iterfind(".//ps:affiliation", NS)] == [
        ("musings", "owner")
    ]
    assert refusal(await component.owner_set(ALICE, "<delete node='musings'/>")) == FORBIDDEN
    ok(await component.owner_set(BOB, "<delete node='musings'/>"))
