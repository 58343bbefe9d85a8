"""The bot as a contact: the request on the first subscription, and deliveries when a person comes online."""

import pytest

from support.chat import body_of, write
from support.component import ALICE, BOB, DOMAIN, Component, Starter, bare

pytestmark = pytest.mark.needs("presence")

NICK = "{http://jabber.org/protocol/nick}nick"


async def requests(component: Component) -> list[tuple[str | None, str | None]]:
    """Requests to subscribe to presence that the service sent since the last call: to whom, and its name."""
    await component.settle()
    found = [(one.get("to"), one.findtext(NICK)) for one in component.presences if one.get("type") == "subscribe"]
    component.presences.clear()
    return found


@pytest.fixture
async def news(component: Component) -> Component:
    await component.create(ALICE, "news")
    await component.create(ALICE, "other")
    return component


async def test_subscription_asks_to_become_a_contact(news: Component) -> None:
    """The bot is then in the list of contacts, with a name (XEP-0172)."""
    await write(news, BOB, "subscribe news")
    assert await requests(news) == [(bare(BOB), "feeds")]
    await write(news, BOB, "subscribe news")
    assert await requests(news) == [], "the subscription is not new"


async def test_contact_is_not_asked_again(news: Component) -> None:
    await news.send(f"<presence type='subscribe' from='{bare(BOB)}' to='{DOMAIN}'/>")
    assert await requests(news) == [(bare(BOB), None)], "the service subscribes back"
    await write(news, BOB, "subscribe news")
    await write(news, BOB, "subscribe other")
    assert await requests(news) == []


@pytest.mark.parametrize("command", ["list", "latest news", "subscribe nowhere", "help"])
async def test_other_commands_ask_nothing(news: Component, command: str) -> None:
    await write(news, BOB, command)
    assert await requests(news) == []


async def test_nobody_is_asked_whom_the_operator_does_not_admit_or_who_did_not_write(start: Starter) -> None:
    component = await start(pubsub={"contacts": ["elsewhere.example"], "admins": [bare(ALICE)]})
    await component.create(ALICE, "news")
    await write(component, BOB, "subscribe news")
    await write(component, ALICE, "subscribe news for eve@elsewhere.example")
    assert await requests(component) == []


async def test_presence_that_changes_without_end_makes_few_attempts(news: Component) -> None:
    """Each attempt sends messages, so a presence must not be worth more than a message."""
    await write(news, BOB, "subscribe news")
    news.returned[bare(BOB)] = "service-unavailable"
    await news.publish(ALICE, "news", "one")
    for _ in range(60):
        await news.send(f"<presence from='{BOB}' to='{DOMAIN}'/>")
        await news.settle()

    assert 10 < len(await news.events(bare(BOB))) < 25


async def befriend(component: Component) -> None:
    """Bob and the service become contacts, and Bob is online."""
    for kind in ("subscribe", "subscribed"):
        await component.send(f"<presence type='{kind}' from='{bare(BOB)}' to='{DOMAIN}'/>")
        await component.settle()
    await component.send(f"<presence from='{BOB}' to='{DOMAIN}'/>")
    await component.settle()


async def test_items_for_a_contact_who_is_away_come_in_one_message_on_the_return(news: Component) -> None:
    await write(news, BOB, "subscribe news")
    await befriend(news)
    await news.publish(ALICE, "news", "one")
    assert len(await news.events(bare(BOB))) == 1
    await news.send(f"<presence type='unavailable' from='{BOB}' to='{DOMAIN}'/>")
    for number in range(5):
        await news.publish(ALICE, "news", f"item {number}")
    assert await news.events(bare(BOB)) == []
    await news.send(f"<presence from='{BOB}' to='{DOMAIN}'/>")
    (message,) = await news.events(bare(BOB))

    assert body_of(message).startswith("5 new items in news\n- item 0\n")


async def test_items_wait_an_hour_for_a_contact_who_stays_away(news: Component, start: Starter) -> None:
    """The server of the person then stores them, and may wake a phone."""
    await write(news, BOB, "subscribe news")
    await befriend(news)
    await news.send(f"<presence type='unavailable' from='{BOB}' to='{DOMAIN}'/>")
    await news.publish(ALICE, "news", "one")
    await news.publish(ALICE, "news", "two")
    assert await news.events(bare(BOB)) == []
    news.clock.advance(3_601)
    news = await start.again(news)

    assert [body_of(one).split("\n")[0] for one in await news.next_event(bare(BOB))] == ["one", "two"]


async def test_returned_message_is_sent_again_when_the_person_comes_online(news: Component) -> None:
    await write(news, BOB, "subscribe news")
    news.returned[bare(BOB)] = "service-unavailable"
    await news.publish(ALICE, "news", "one")
    assert len(await news.events(bare(BOB))) == 1
    del news.returned[bare(BOB)]
    for presence in ("type='unavailable' ", "type='error' "):
        await news.send(f"<presence {presence}from='{BOB}' to='{DOMAIN}'/>")
        assert await news.events(bare(BOB)) == []
    for _ in range(2):
        await news.send(f"<presence from='{BOB}' to='{DOMAIN}'/>")
    (message,) = await news.events(bare(BOB))

    assert body_of(message).startswith("one\n")
