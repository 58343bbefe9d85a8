"""Changes by the command line while the service runs: subscribers receive them as any other change."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from smartfeeds.cli import main
from support.component import ALICE, BOB, DOMAIN, NS, Component, bare

Shell = Callable[..., Awaitable[str]]


@pytest.fixture
def shell(component: Component, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    """Runs a command beside the running service and lets the service look at its database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SMARTFEEDS_TEST_STORE", raising=False)  # a command would take it for a setting
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__JID", DOMAIN)
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__SECRET", "secret")
    monkeypatch.setenv("SMARTFEEDS_STORE__URL", component.app.settings.store.url)

    async def run(*arguments: str) -> str:
        result = await asyncio.to_thread(partial(CliRunner().invoke, main, arguments))
        assert result.exit_code == 0, result.output
        await component.app.dispatcher.look()
        return result.stdout.strip()

    return run


@pytest.fixture
async def news(component: Component) -> Component:
    """A component with the feed news of Alice, which Bob follows."""
    await component.create(ALICE, "news", notify_config="true")
    await component.subscribe(BOB, "news")
    await component.events(bare(BOB))
    return component


async def pushed(component: Component, path: str) -> list[str]:
    """The values of a path in the events to Bob."""
    return [str(text) for event in await component.events(bare(BOB)) for text in event.xpath(path, namespaces=NS)]


async def test_publish_and_retract_are_pushed(news: Component, shell: Shell) -> None:
    item_id = await shell("publish", "news", "hello")
    assert await pushed(news, "ev:event/ev:items/ev:item/@id") == [item_id]

    await shell("retract", "news", item_id)
    assert await pushed(news, "ev:event/ev:items/ev:retract/@id") == [item_id]


async def test_a_new_title_is_pushed_and_shown(news: Component, shell: Shell) -> None:
    await shell("node", "set", "news", "title=Our news")

    assert await pushed(news, "ev:event/ev:configuration/@node") == ["news"]
    assert (await news.config(ALICE, "news"))["title"] == ["Our news"]


async def test_a_ban_ends_the_subscription_and_the_reader_is_told(news: Component, shell: Shell) -> None:
    await shell("node", "deny", "news", bare(BOB))

    assert await pushed(news, "ev:event/ev:subscription/@subscription") == ["none"]
    await news.publish(ALICE, "news", "secret")
    assert await news.events(bare(BOB)) == []


async def test_a_new_subscriber_is_told_and_receives_what_follows(news: Component, shell: Shell) -> None:
    await shell("sub", "remove", "news", bare(BOB))
    await shell("sub", "add", "news", bare(BOB))
    assert await pushed(news, "ev:event/ev:subscription/@subscription") == ["none", "subscribed"]

    item_id = await shell("publish", "news", "hello")
    assert await pushed(news, "ev:event/ev:items/ev:item/@id") == [item_id]


async def test_a_deletion_is_pushed_with_the_new_address(news: Component, shell: Shell) -> None:
    await shell("node", "delete", "news", "--yes", "--redirect", "xmpp:feeds.b.example?;node=news")

    assert await pushed(news, "ev:event/ev:delete/ev:redirect/@uri") == ["xmpp:feeds.b.example?;node=news"]
    await news.create(ALICE, "news")
