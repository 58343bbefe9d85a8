"""Sources of the configuration and of owners, in the store."""

import re
from dataclasses import replace
from functools import partial

import pytest

from smartfeeds.errors import ConfigError, FeedError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.polls import paused
from smartfeeds.features.polling.source import Source, SourceProgress, SourceSettings, SourceState, new_source
from smartfeeds.features.polling.source_items import with_source
from smartfeeds.features.polling.sources import (
    add_source,
    change_source,
    find_source,
    in_own_node,
    remove_source,
    set_configured_sources,
)
from support.world import World

URL, OTHER = "https://a.example/feed", "https://b.example/feed"


def configured(url: str, node: str = "news", **settings: object) -> Source:
    return new_source(node, url, 0, SourceSettings(**settings), configured=True)


async def rows(world: World) -> list[Source]:
    return await world.store.read(lambda tx: source_rows.sources(tx, 0, 99))


async def start(world: World, *sources: Source) -> None:
    await world.service.write(partial(set_configured_sources, sources=sources))


async def test_configured_source_keeps_its_progress_over_restarts(world: World) -> None:
    """[SRC-006] [SRC-083] New settings count; what leaves the configuration is removed."""
    await start(world, configured(URL), configured(OTHER))
    one, two = await rows(world)
    progress = SourceProgress(failures=3)
    await world.store.write(lambda tx: source_rows.put(tx, replace(one, progress=progress, state=SourceState.SLOWED)))

    await start(world, configured(URL, every_s=900))
    (row,) = await rows(world)
    assert (row.source_no, row.progress, row.state, row.settings.every_s) == (
        one.source_no, progress, SourceState.SLOWED, 900,
    )  # fmt: skip
    assert two.configured
    await start(world)
    assert await rows(world) == []


async def test_source_of_a_command_stays_and_may_become_configured(world: World) -> None:
    """[SRC-083]"""
    added = await world.service.write(partial(add_source, source=new_source("news", URL, 0)))
    await start(world, configured(OTHER))
    assert [(row.first_url, row.configured) for row in await rows(world)] == [(URL, False), (OTHER, True)]

    await start(world, configured(URL))
    (row,) = await rows(world)
    assert (row.source_no, row.configured) == (added.source_no, True)
    with pytest.raises(ConfigError, match="comes from the configuration"):
        await world.service.write(partial(remove_source, source=row))


async def test_owner_has_a_limit_and_operators_have_none(world: World) -> None:
    """[SRC-084]"""
    world.service.policy = replace(world.service.policy, sources_per_jid=1)
    for owner in ("a@b.example", "c@b.example", "", ""):
        number = len(await rows(world))
        source = new_source(f"n{number}", URL, 0, owner=owner)
        await world.service.write(partial(add_source, source=source))
    with pytest.raises(FeedError, match="you have 1 sources"):
        await world.service.write(partial(add_source, source=new_source("x", URL, 0, owner="a@b.example")))


async def test_source_is_found_by_number_by_old_and_by_new_address(world: World) -> None:
    added = await world.service.write(partial(add_source, source=new_source("news", URL, 0)))
    await world.store.write(lambda tx: source_rows.put(tx, replace(added, url=OTHER)))

    for text in (str(added.source_no), URL, OTHER):
        source = await world.service.read(partial(find_source, text=text))
        assert source.source_no == added.source_no
    for text in ("99", "https://c.example/", "²"):
        with pytest.raises(ConfigError, match="there is no source"):
            await world.service.read(partial(find_source, text=text))
    by = "alice@example.org"
    source = await world.service.write(
        partial(change_source, source=source, change=lambda row, now_us: paused(row, by, now_us))
    )
    assert (source.state, source.since_us) == (SourceState.PAUSED, world.clock())


async def add_in_own_node(world: World, url: str, **settings: object) -> Source:
    source = new_source(url, url, 0, SourceSettings(**settings))
    return await world.service.write(
        lambda tx, context: add_source(tx, context, in_own_node(tx, source, lambda _node: True))
    )


async def test_each_address_gets_a_node_of_its_own(world: World) -> None:
    """[SRC-037] [SRC-083] Addresses of which the names are made of the same part."""
    urls = [
        *("https://v.example/feed.xml?channel_id=AAA", "https://v.example/feed.xml?channel_id=BBB"),
        *(
            "https://v.example/feed",
            "https://v.example/feed/",
            "https://v.example:8443/feed",
            "https://www.v.example/feed",
        ),
        *("https://bob:secret@v.example/feed", "https://eve:secret@v.example/feed"),
    ]
    nodes = [(await add_in_own_node(world, url)).node for url in urls]
    assert nodes[0] == "v.example/feed" and len(set(nodes)) == len(urls)
    assert all(node.startswith("v.example/feed-") for node in nodes[1:])
    for same in (
        urls[0],
        "HTTP://V.example:80/feed.xml?channel_id=AAA#x",
        "feed:https://v.example/feed.xml?channel_id=AAA",
    ):
        with pytest.raises(ConfigError, match=f"the node v.example/feed has a source {re.escape(urls[0])} already"):
            await add_in_own_node(world, same)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("https://v.example/%7Ejoe/feed", "https://v.example/~joe/feed"),
        ("https://v.example/f%65ed", "http://v.example:80/feed"),
        ("https://v.example/b%c3%bccher", "https://v.example/bücher"),
        ("https://Österreich.example/feed", "https://österreich.example/feed"),
        ("https://BÜCHER.example/feed", "https://xn--bcher-kva.example/feed"),
    ],
)
async def test_another_spelling_of_an_address_is_no_second_feed(world: World, first: str, second: str) -> None:
    """[SRC-037] Neither while the source is there, nor after it was removed."""
    source = await add_in_own_node(world, first)
    with pytest.raises(ConfigError, match=f"the node {source.node} has a source {re.escape(first)} already"):
        await add_in_own_node(world, second)
    await world.service.write(partial(remove_source, source=source))
    assert (await add_in_own_node(world, second)).node == source.node


async def test_feed_that_is_added_again_returns_to_its_node(world: World) -> None:
    """[SRC-037] Another feed with the same name does not get the node of a source that was removed."""
    one, other = "https://v.example/feed?c=1", "https://v.example/feed?c=2"
    await world.create("v.example/feed")
    source = await add_in_own_node(world, one)
    assert source.node == "v.example/feed", "a node without items"
    entry = with_source(b'<entry xmlns="http://www.w3.org/2005/Atom"><title>x</title></entry>', "", "x", one)
    await world.publish("1", entry.decode(), node=source.node)
    await world.service.write(partial(remove_source, source=source))

    second = await add_in_own_node(world, other)
    assert second.node != source.node
    assert (await add_in_own_node(world, one.replace("https", "http"))).node == source.node

    await world.delete(node=source.node)
    with pytest.raises(ConfigError, match=f"the node {second.node} has a source"):
        await add_in_own_node(world, other)  # although its first name is free now


async def test_source_is_found_in_each_spelling_of_its_address(world: World) -> None:
    """[SRC-083] Under its first address and under its present one."""
    added = await world.service.write(partial(add_source, source=new_source("news", "https://bücher.example/a", 0)))
    await world.store.write(lambda tx: source_rows.put(tx, replace(added, url="https://other.example/b")))
    for text in ("feed:http://xn--bcher-kva.example/a", "BÜCHER.example/a", "other.example/b#x", str(added.source_no)):
        assert (await world.service.read(partial(find_source, text=text))).source_no == added.source_no
    with pytest.raises(ConfigError, match="there is no source"):
        await world.service.read(partial(find_source, text="https://bücher.example/A"))


async def test_configured_source_keeps_its_progress_under_another_spelling(world: World) -> None:
    """[SRC-037] Its items have ids of the first one."""
    await start(world, configured("https://A.example/feed"))
    (row,) = await rows(world)
    await start(world, configured("feed:https://a.example/feed", every_s=900))
    assert await rows(world) == [replace(row, settings=replace(row.settings, every_s=900))]
