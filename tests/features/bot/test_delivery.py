"""New items as chat messages: once, in order, later where the person wants it, again where they came back."""

import pytest

from smartfeeds.core.jid import parse_jid
from smartfeeds.service.consumer_requests import ConsumerList, ListConsumers
from smartfeeds.service.consumers import ConsumerState
from support.chat import body_of, write
from support.component import ALICE, BOB, DOMAIN, Component, Starter, bare

BOB_BARE = bare(BOB)


@pytest.fixture
async def news(component: Component) -> Component:
    """A component with the feed `news`, which Bob follows by chat."""
    await component.create(ALICE, "news", title="The News")
    await write(component, BOB, "subscribe news")
    return component


async def texts(component: Component) -> list[str]:
    """The first lines of what has been delivered to Bob since the last call."""
    messages = await component.events(BOB_BARE)
    return [body_of(message).split("\n")[0] for message in messages if message.get("type") == "chat"]


async def test_new_items_arrive_as_chat_messages(news: Component) -> None:
    await news.publish(ALICE, "news", "one")
    (message,) = await news.events(BOB_BARE)

    assert (message.get("type"), message.get("from")) == ("chat", DOMAIN)
    assert body_of(message) == f"one\nThe News (news)\nxmpp:{DOMAIN}?;node=news;item=one"
    assert len(message) == 1, "no notification beside the chat"


@pytest.mark.parametrize(
    ("access", "address"),
    [("open", "https://feeds.example.org/entries/club/one"), ("authorize", f"xmpp:{DOMAIN}?;node=club;item=one")],
)
async def test_item_is_linked_to_its_page_if_everybody_can_read_that(start: Starter, access: str, address: str) -> None:
    component = await start(http={"listen": "127.0.0.1:0", "base_url": "https://feeds.example.org"})
    await component.create(ALICE, "club", access_model=access)
    await write(component, BOB, "subscribe club")
    await write(component, ALICE, f"allow club {BOB_BARE}")
    await component.events(BOB_BARE)
    await component.publish(ALICE, "club", "one")
    (message,) = await component.events(BOB_BARE)

    assert body_of(message).split("\n")[-1] == address


async def test_items_of_before_and_own_items_and_deletions_are_not_delivered(component: Component) -> None:
    await component.create(ALICE, "news", publish_model="open")
    await component.publish(ALICE, "news", "old")
    await write(component, BOB, "subscribe news")
    await component.publish(BOB, "news", "mine")
    await component.retract(ALICE, "news", "old")
    await component.publish(ALICE, "news", "new")

    assert await texts(component) == ["new"]


async def test_edit_arrives_as_an_edit_with_an_id_of_its_own(news: Component) -> None:
    await news.publish(ALICE, "news", "one")
    (first,) = await news.events(BOB_BARE)
    await news.publish(ALICE, "news", "one")
    (second,) = await news.events(BOB_BARE)

    assert body_of(second).split("\n")[0] == "one (edited)"
    assert first.get("id") != second.get("id")


async def test_filters_select_what_is_delivered(component: Component) -> None:
    await component.create(ALICE, "news")
    assert (await write(component, BOB, "subscribe news category=music"))[0].startswith("You follow news now.")
    category = "<category term='{}'/>"
    for term in ("music", "sports"):
        payload = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{term}</title>{category.format(term)}</entry>"
        await component.publish(ALICE, "news", term, payload)

    assert await texts(component) == ["music"]


async def test_returned_message_is_sent_again_with_the_same_id(news: Component) -> None:
    """Nothing is lost while a person is away, and the id lets the client recognise a repetition."""
    news.returned[BOB_BARE] = "service-unavailable"
    await news.publish(ALICE, "news", "one")
    (returned,) = await news.events(BOB_BARE)
    await news.publish(ALICE, "news", "two")
    assert await texts(news) == [], "the next attempt follows a pause"
    del news.returned[BOB_BARE]
    # Bob is back and writes: the attempt is made at once.
    await write(news, BOB, "help")
    first, second = await news.events(BOB_BARE)

    assert first.get("id") == returned.get("id")
    assert [body_of(one).split("\n")[0] for one in (first, second)] == ["one", "two"]
    await news.publish(ALICE, "news", "three")
    assert await texts(news) == ["three"]


async def test_delivery_goes_on_from_the_mark_after_a_restart(news: Component, start: Starter) -> None:
    await news.publish(ALICE, "news", "one")
    assert await texts(news) == ["one"]
    news = await start.again(news)
    await news.publish(ALICE, "news", "two")

    assert await texts(news) == ["two"]


async def test_many_items_come_in_one_message(news: Component) -> None:
    await news.cut()
    for number in range(7):
        await news.publish_unseen("news", f"item {number}")
    await news.link()
    (message,) = await news.events(BOB_BARE)

    lines = body_of(message).split("\n")
    assert lines[0] == "7 new items in The News (news)"
    assert [line for line in lines if line.startswith("- ")] == [f"- item {number}" for number in range(7)]


async def test_quiet_hours_are_a_pause_in_the_list_of_consumers(news: Component) -> None:
    """Not a failure, which would be an alarm for the operator."""
    await write(news, BOB, "quiet 22-7")
    await news.publish(ALICE, "news", "one")
    await news.app.dispatcher.idle()
    await news.app.dispatcher.save_marks()

    consumers = await news.app.service.handle(ListConsumers(parse_jid(ALICE), DOMAIN))

    assert isinstance(consumers, ConsumerList)
    states = {status.consumer.name: (status.state, status.failure) for status in consumers.statuses}
    assert states[f"chat:{bare(BOB)}"] == (ConsumerState.PAUSED, None)
    assert {reading.retrying for reading in news.app.dispatcher.readings()} == {0}


async def test_quiet_hours_hold_items_back_and_turning_them_off_releases_them(news: Component) -> None:
    """The clock of the test is at midnight UTC."""
    (answer,) = await write(news, BOB, "quiet 22-7")
    assert answer.startswith("Nothing is delivered from 22:00 to 07:00 (UTC).")
    await news.publish(ALICE, "news", "one")
    assert await texts(news) == []
    await write(news, BOB, "quiet off")

    assert await texts(news) == ["one"]


async def test_digest_collects_items_until_its_time(news: Component, start: Starter) -> None:
    await write(news, BOB, "digest daily 8:00")
    for item in ("one", "two"):
        await news.publish(ALICE, "news", item)
    assert await texts(news) == []
    news = await start.again(news)
    assert await texts(news) == [], "the plan survives a restart"
    news.clock.advance(8 * 3_600 + 1)
    news = await start.again(news)
    (message,) = await news.next_event(BOB_BARE)

    assert body_of(message).startswith("2 new items in The News (news)\n- one\n")


async def test_unsubscribe_ends_the_consumer(news: Component) -> None:
    await write(news, BOB, "unsubscribe news")
    await news.publish(ALICE, "news", "one")

    assert await texts(news) == []
    rows = await news.app.service.read(lambda tx, _context: tx.consumers((0, "", ""), 10))
    assert [row.consumer.name for row in rows if row.consumer.kind == "chat"] == []


async def test_subscription_that_waits_for_approval_delivers_after_it(component: Component) -> None:
    await component.create(ALICE, "club", access_model="authorize")
    (answer,) = await write(component, BOB, "subscribe club")
    assert answer == "Your request to follow club waits for its owner."
    await component.publish(ALICE, "club", "before")
    approval = f"<subscriptions node='club'><subscription jid='{BOB_BARE}' subscription='subscribed'/></subscriptions>"
    await component.owner_set(ALICE, approval)
    await component.events(BOB_BARE)
    await component.publish(ALICE, "club", "after")

    assert await texts(component) == ["after"]


async def test_person_who_loses_the_right_to_read_receives_nothing(news: Component) -> None:
    await news.affiliate(ALICE, "news", BOB, "outcast")
    await news.publish(ALICE, "news", "one")

    assert await texts(news) == []


async def test_subscription_of_a_client_stays_when_the_chat_ends(component: Component) -> None:
    await component.create(ALICE, "news")
    await component.subscribe(BOB, "news")
    await write(component, BOB, "subscribe news")
    await component.publish(ALICE, "news", "one")
    assert len(await component.events(BOB_BARE)) == 2, "a notification and a chat message"
    await write(component, BOB, "unsubscribe news")
    await component.publish(ALICE, "news", "two")
    (message,) = await component.events(BOB_BARE)

    assert message.find(".//{http://jabber.org/protocol/pubsub#event}item") is not None


async def test_deleted_feed_ends_the_delivery(news: Component) -> None:
    await news.owner_set(ALICE, "<delete node='news'/>")
    await news.create(ALICE, "news")
    await news.publish(ALICE, "news", "one")

    assert await texts(news) == []


async def test_admin_subscribes_another_person(start: Starter) -> None:
    component = await start(pubsub={"admins": [bare(ALICE)]})
    await component.create(ALICE, "news")
    assert await write(component, ALICE, f"subscribe news for {BOB_BARE}") == [f"{BOB_BARE} follows news now."]
    await component.publish(ALICE, "news", "one")
    assert await texts(component) == ["one"]

    refused = await write(component, BOB, f"subscribe news for {bare(ALICE)}")
    assert refused[0].startswith("Filters are written NAME=VALUE")
