"""The lists of the bot with many subscriptions, and with feeds that were closed since."""

from smartfeeds.features.bot import schedule
from smartfeeds.features.bot.bot import Bot
from support.chat import write
from support.component import ALICE, BOB, Component, Starter, bare, ok


async def follow_many(component: Component, count: int) -> None:
    """Bob follows feeds by chat."""
    await component.many_nodes([f"n{number}" for number in range(count)])
    for number in range(count):
        # The quota of a minute is for another test.
        component.clock.advance(10)
        await write(component, BOB, f"subscribe n{number}")


async def test_chat_subscription_is_listed_behind_many_of_a_client(component: Component) -> None:
    await component.create(ALICE, "news")
    await component.many_nodes([f"n{number}" for number in range(200)])
    for number in range(200):
        await component.subscribe(BOB, f"n{number}")
    await write(component, BOB, "subscribe news")

    assert await write(component, BOB, "subscriptions") == ["You follow:\n- news"]


async def test_long_list_says_how_many_are_left_out(component: Component) -> None:
    await follow_many(component, 43)
    (answer,) = await write(component, BOB, "subscriptions")

    assert answer.split("\n")[1] == "- n0" and answer.split("\n")[-2:] == ["- n39", "and 3 more"]


async def test_latest_and_search_cover_all_followed_feeds(component: Component) -> None:
    await follow_many(component, 25)
    await component.publish(ALICE, "n24", "tea one")
    await component.publish(ALICE, "n0", "tea two")
    await component.events(bare(BOB))
    for command in ("latest 2", "search tea"):
        (answer,) = await write(component, BOB, command)
        assert sorted(line for line in answer.split("\n") if line.startswith("- ")) == ["- tea one", "- tea two"]


async def test_search_says_where_more_items_match(component: Component) -> None:
    """A feed shows its newest five. The answer has the command that shows the others."""
    await component.create(ALICE, "news")
    await write(component, BOB, "subscribe news")
    for number in range(7):
        await component.publish(ALICE, "news", f"tea and milk {number}")
    await component.events(bare(BOB))
    (answer,) = await write(component, BOB, "search milk tea")
    *items, rest = answer.splitlines()
    assert sum(line.startswith("- tea and milk") for line in items) == 5
    assert rest.startswith("More: latest news ")
    (answer,) = await write(component, BOB, rest.removeprefix("More: "))
    assert sum(line.startswith("- tea and milk") for line in answer.splitlines()) == 7
    await component.retract(ALICE, "news", "tea and milk 0")
    await component.retract(ALICE, "news", "tea and milk 1")
    assert "More:" not in (await write(component, BOB, "search milk tea"))[-1]


async def test_feed_that_was_closed_is_marked(component: Component) -> None:
    await component.create(ALICE, "news")
    await component.publish(ALICE, "news", "one")
    await write(component, BOB, "subscribe news")
    await component.configure(ALICE, "news", access_model="whitelist")

    listed = ["You follow:\n- news - closed to you now, so nothing arrives"]
    assert await write(component, BOB, "subscriptions") == listed
    assert await write(component, BOB, "latest") == ["1 feed that you follow is closed to you now."]


async def test_time_zones_are_read_before_the_first_command(start: Starter) -> None:
    """Reading them takes 20 ms, in which the event loop would stand still."""
    schedule._zones.cache_clear()
    await start()

    assert schedule._zones.cache_info().currsize == 1


async def test_failures_of_a_person_who_follows_no_more_are_forgotten(component: Component) -> None:
    await component.create(ALICE, "news")
    await write(component, BOB, "subscribe news")
    component.returned[bare(BOB)] = "service-unavailable"
    await component.publish(ALICE, "news", "one")
    await component.events(bare(BOB))
    assert component.app.parts.get(Bot).sender.has_failed(bare(BOB))
    entry = f"<subscription jid='{bare(BOB)}' subscription='none'/>"
    ok(await component.owner_set(ALICE, f"<subscriptions node='news'>{entry}</subscriptions>"))
    (consumer,) = component.app.parts.get(Bot).sender._failed[bare(BOB)]
    component.app.dispatcher.hurry(consumer)
    await component.settle()

    assert not component.app.parts.get(Bot).sender.has_failed(bare(BOB))
