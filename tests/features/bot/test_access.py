"""Who may receive by chat, and chat beside the notifications of a client."""

import pytest

from support.chat import body_of, write
from support.component import ALICE, BOB, DOMAIN, Component, Starter, bare, ok


async def befriend(component: Component, user: str) -> None:
    """Makes a user a contact of the service, who is available."""
    for kind in ("subscribe", "subscribed"):
        await component.send(f"<presence from='{bare(user)}' to='{DOMAIN}' type='{kind}'/>")
        await component.settle()
    await component.send(f"<presence from='{user}' to='{DOMAIN}'/>")
    await component.settle()


@pytest.mark.needs("presence")
async def test_contact_receives_the_items_of_a_presence_node_by_chat(start: Starter) -> None:
    component = await start(pubsub={"contacts": ["example.org"]})
    await component.create(ALICE, "news", access_model="presence")
    await befriend(component, BOB)
    await write(component, BOB, "subscribe news")
    await component.publish(ALICE, "news", "one")

    assert [body_of(one).split("\n")[0] for one in await component.events(bare(BOB))] == ["one"]


@pytest.mark.needs("presence")
async def test_owner_subscribes_a_contact_who_may_read(start: Starter) -> None:
    component = await start(pubsub={"contacts": ["example.org"], "owners_subscribe_others": True})
    await component.create(ALICE, "news", access_model="presence")
    await befriend(component, BOB)
    entry = f"<subscription jid='{bare(BOB)}' subscription='subscribed'/>"
    ok(await component.owner_set(ALICE, f"<subscriptions node='news'>{entry}</subscriptions>"))

    assert await component.app.service.read(lambda tx, _context: tx.subscribed_by(bare(BOB))) == 1


async def kinds_of_delivery(component: Component, item: str) -> set[str]:
    """The types of the messages that Bob receives for a new item."""
    await component.publish(ALICE, "news", item)
    return {one.get("type") or "normal" for one in await component.events(bare(BOB))}


async def test_client_that_subscribes_after_the_chat_receives_notifications_too(component: Component) -> None:
    await component.create(ALICE, "news")
    await write(component, BOB, "subscribe news")
    assert await kinds_of_delivery(component, "one") == {"chat"}
    assert await component.subscribe(BOB, "news") == "subscribed"
    assert await kinds_of_delivery(component, "two") == {"chat", "headline"}
    await write(component, BOB, "subscribe news")
    assert await kinds_of_delivery(component, "three") == {"chat", "headline"}
    await write(component, BOB, "unsubscribe news")

    assert await kinds_of_delivery(component, "four") == {"headline"}


async def test_chat_after_a_client_that_receives_no_events_leaves_its_choice(component: Component) -> None:
    await component.create(ALICE, "news")
    await component.subscribe(BOB, "news", deliver="false")
    await write(component, BOB, "subscribe news")
    assert await kinds_of_delivery(component, "one") == {"chat"}
    await write(component, BOB, "unsubscribe news")

    assert await component.app.service.read(lambda tx, _context: tx.subscribed_by(bare(BOB))) == 1
