"""The chat bot in the whole component: commands, answers, and what gets none."""

import pytest

from support.chat import body_of, send, write
from support.component import ALICE, BOB, DOMAIN, Component, Starter


@pytest.fixture
async def news(component: Component) -> Component:
    """A component with the feed `news` of Alice, in which Alice has published one item."""
    await component.create(ALICE, "news", title="The News")
    await component.publish(ALICE, "news", "first")
    return component


async def test_help_lists_the_commands_and_offers_buttons(component: Component) -> None:
    (message,) = await send(component, BOB, "help")

    assert message.get("from") == DOMAIN and message.get("type") == "chat"
    assert "subscribe FEED [FILTER=VALUE] - delivers new items here" in body_of(message)
    responses = message.findall("{urn:xmpp:tmp:quick-response}response")
    assert [one.get("value") for one in responses] == ["list", "latest", "subscriptions"]


async def test_list_search_show_and_latest_read_feeds(news: Component) -> None:
    assert await write(news, BOB, "list") == ["Feeds:\n- The News (news)"]
    assert await write(news, BOB, "search NEWS") == ["Feeds:\n- The News (news)"]
    (shown,) = await write(news, BOB, "show news")
    assert shown.startswith("The News (news)\n0 subscribers\nNewest items:\n- first\n  xmpp:")
    (latest,) = await write(news, BOB, "latest news 1")
    assert latest == f"first\nThe News (news)\nxmpp:{DOMAIN}?;node=news;item=first"


async def test_second_subscription_changes_nothing_and_says_so(news: Component) -> None:
    await write(news, BOB, "subscribe news")
    assert await write(news, BOB, "subscribe news") == ["You follow The News (news) already. To stop: unsubscribe news"]
    (filtered,) = await write(news, BOB, "subscribe news category=a")
    assert filtered.startswith("You follow The News (news) now.")
    await write(news, BOB, "unsubscribe news")
    assert (await write(news, BOB, "subscribe news"))[0].startswith("You follow The News (news) now.")


async def test_subscription_of_a_program_is_not_delivered_by_chat_yet(news: Component) -> None:
    await news.subscribe(BOB, "news?order=modified")
    assert (await write(news, BOB, "subscribe news"))[0].startswith("You follow The News (news) now.")


async def test_subscribe_and_unsubscribe(news: Component) -> None:
    (done,) = await write(news, BOB, "subscribe news")
    assert done == "You follow The News (news) now. New items arrive here. To stop: unsubscribe news"
    assert await write(news, BOB, "subscriptions") == ["You follow:\n- news: The News"]
    assert await write(news, BOB, "unsubscribe news") == ["You no longer follow news."]
    assert await write(news, BOB, "subscriptions") == ["You follow no feed yet."]
    assert await write(news, BOB, "unsubscribe news") == ["You do not follow this feed here."]


async def test_post_correct_edit_delete(news: Component) -> None:
    await news.affiliate(ALICE, "news", BOB, "publisher")
    (posted,) = await write(news, BOB, "post news Hello\nworld", id="p1")
    assert posted == "Published in news."
    replace = "<replace xmlns='urn:xmpp:message-correct:0' id='p1'/>"
    (changed,) = await write(news, BOB, "post news Hello again", replace, id="p2")
    assert changed == "Changed in news."
    assert len(await news.item_ids(BOB, "news")) == 2
    assert (await write(news, BOB, "latest news 1"))[0].startswith("Hello again\nbob in The News (news)\n")
    assert await write(news, BOB, "edit news Third text") == ["Changed in news."]
    assert (await write(news, BOB, "latest news 1"))[0].startswith("Third text\n")
    assert await write(news, BOB, "delete news") == ["Deleted from news: Third text"]
    assert await news.item_ids(BOB, "news") == ["first"]


async def test_answers_are_in_the_language_of_the_message(component: Component) -> None:
    assert await write(component, BOB, "list", xml_lang="fr") == ["There are no feeds."]


async def test_features_of_chat_are_announced_while_the_bot_is_on(start: Starter) -> None:
    component = await start()
    for enabled in (True, False):
        component = await start.again(component, bot={"enabled": enabled})
        answer = await component.ask(BOB, "get", "<query xmlns='http://jabber.org/protocol/disco#info'/>")
        names = {one.get("var") for one in answer.iter("{http://jabber.org/protocol/disco#info}feature")}
        identities = {one.get("type") for one in answer.iter("{http://jabber.org/protocol/disco#info}identity")}
        assert ("bot" in identities) is enabled
        assert ({"urn:xmpp:reply:0", "urn:xmpp:reactions:0", "jabber:x:conference"} <= names) is enabled
