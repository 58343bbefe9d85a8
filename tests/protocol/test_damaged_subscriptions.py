"""A damaged row of a subscription: its subscriber gets nothing, and the others get everything."""

import pytest
from structlog.testing import capture_logs

from smartfeeds.store import rows
from smartfeeds.store.base import WriteTx
from support.component import ALICE, BOB, CAROL, Component, Element, bare, ok

pytestmark = pytest.mark.both_engines


@pytest.fixture(autouse=True)
def _logs_again() -> None:
    rows._log_damaged.cache_clear()


async def feed(component: Component, column: str, value: str, **options: str) -> None:
    """Two users follow a feed, and a column of the first subscription is damaged."""
    await component.create(ALICE, "news")
    await component.subscribe(BOB, "news", **options)
    await component.subscribe(CAROL, "news")
    await component.cut()
    statement = f"UPDATE subscription SET {column} = ? WHERE bare = ?"

    def change(tx: WriteTx) -> None:
        tx.db.run(statement, (value, bare(BOB)))
        # The disk changes no number of the audience, but a service that starts has read no page of it.
        tx.db.run("UPDATE node SET audience = audience + 1")

    await component.app.service.store.write(change)
    await component.publish_unseen("news", "one")


def ids(events: list[Element]) -> list[str | None]:
    return [item.get("id") for event in events for item in event.iter("{http://jabber.org/protocol/pubsub#event}item")]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("options", ""),
        ("options", '{"digest":'),
        ("options", '{"digest":1}'),
        ("options", '{"digest":"1"}'),
        ("options", '{"digest":[1]}'),
        ("options", '["digest"]'),
        ("options", "null"),
        ("options", "9"),
        ("options", '{"digest":["\x01"]}'),
        ("options", "[" * 100_000),
        ("view", "order"),
        ("view", "order=modifiee"),
        ("view", "orde\x01=modified"),
        ("view", "order=modified&order=created"),
        ("node_text", "ne\x01ws"),
        ("service", "feeds\x02.example.org"),
        ("jid", "bob\x7f@example.org"),
        ("jid", "bob\x03@example.org"),
        ("jid", "@"),
    ],
)
async def test_damaged_subscription_stops_no_others(component: Component, column: str, value: str) -> None:
    await feed(component, column, value)
    with capture_logs() as logs:
        await component.link()
        assert ids(await component.events(bare(CAROL))) == ["one"]
        assert ids(await component.events(bare(BOB))) == []
        await component.publish(ALICE, "news", "two")
        assert ids(await component.events(bare(CAROL))) == ["two"]
        ok(await component.owner_get(ALICE, "<subscriptions node='news'/>"))
        ok(await component.get(BOB, "<subscriptions/>"))
        ok(await component.get(CAROL, "<subscriptions/>"))
    named = [log for log in logs if log["event"] == "subscription_damaged"]
    assert len(named) == (1 if value not in {"@", "bob\x7f@example.org"} else 0), "once"
    assert not [log for log in logs if "exc_info" in log]


@pytest.mark.parametrize(("column", "value"), [("options", "{"), ("view", "x"), ("node_text", "\x01")])
async def test_subscribing_again_ends_the_damage(component: Component, column: str, value: str) -> None:
    await feed(component, column, value)
    await component.link()
    assert await component.subscribe(BOB, "news") == "subscribed"
    await component.publish(ALICE, "news", "two")
    assert ids(await component.events(bare(BOB))) == ["two"]
