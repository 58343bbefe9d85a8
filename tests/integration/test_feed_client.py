"""The public client of bots against the real service on real servers."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from smartfeeds.client import (
    ChangeKind,
    FeedClient,
    FollowError,
    LoginError,
    RefusedError,
    UnreachableError,
    connect,
    connect_blocking,
)
from smartfeeds.local.process import HOST
from support.servers import TestServer
from support.service import running, write_config
from support.waiting import HANG_S


@pytest.fixture
async def service(server: TestServer, tmp_path: Path) -> AsyncIterator[str]:
    """The name of a running service."""
    domain = server.take_name()
    async with running(write_config(tmp_path, server, domain)), asyncio.timeout(HANG_S):
        yield domain


async def account(server: TestServer, name: str) -> tuple[str, str]:
    made = await asyncio.to_thread(server.server.account, name)
    return made.jid, made.password


def address_of(server: TestServer) -> str:
    return f"{HOST}:{server.client_port}"


async def client_of(server: TestServer, name: str) -> FeedClient:
    return connect(*await account(server, name), server=address_of(server), plaintext=True)


async def test_published_item_is_followed_over_the_same_session(server: TestServer, service: str) -> None:
    """[SF-045] [xep-map 33]: with every text of the entry, and its deletion."""
    feed = f"xmpp:{service}?;node=news"
    async with await client_of(server, "alice") as alice:
        await alice.create(feed)
        first = await alice.publish(feed, title="before")
        changes = alice.follow(feed, mirror=True)
        assert [change.item_id async for change in changes.until_caught_up()] == [first]
        await alice.publish(
            feed, item_id="a", title="T & T", content="<x>", link="https://e.example/", author="A", tags=["x", "y"]
        )
        change = await anext(changes)
        await alice.retract(feed, "a")
        gone = await anext(changes)

    assert (change.kind, change.item_id) == (ChangeKind.NEW, "a")
    assert (change.title, change.link, change.author) == ("T & T", "https://e.example/", "A")
    for part in (b'<category term="x"', b'<category term="y"', b"&lt;x&gt;</content>"):
        assert part in change.payload.replace(b"></category>", b"/>")
    assert (gone.kind, gone.item_id) == (ChangeKind.DELETED, "a")


async def test_payload_is_published_as_it_is(server: TestServer, service: str) -> None:
    feed = f"xmpp:{service}?;node=news"
    entry = '<entry xmlns="http://www.w3.org/2005/Atom"><title>one</title><rights>mine</rights></entry>'
    async with await client_of(server, "alice") as alice:
        await alice.create(feed)
        await alice.publish(feed, entry, item_id="one")
        (change,) = [change async for change in alice.follow(feed, mirror=True).until_caught_up()]

    assert b"<rights>mine</rights>" in change.payload


async def test_account_subscribes_and_unsubscribes(server: TestServer, service: str) -> None:
    feed = f"xmpp:{service}?;node=news"
    async with await client_of(server, "alice") as alice, await client_of(server, "bob") as bob:
        await alice.create(feed)
        assert await bob.subscribe(feed) is True
        await bob.unsubscribe(feed)
        with pytest.raises(RefusedError) as raised:
            await bob.unsubscribe(feed)

    assert raised.value.condition == "unexpected-request"
    assert str(raised.value).startswith(f"cannot unsubscribe at {feed}: unexpected-request")


async def test_refusal_names_the_feed_and_the_reason(server: TestServer, service: str) -> None:
    feed = f"xmpp:{service}?;node=news"
    async with await client_of(server, "alice") as alice, await client_of(server, "bob") as bob:
        await alice.create(feed)
        with pytest.raises(RefusedError) as raised:
            await bob.publish(feed, title="two")
        with pytest.raises(FollowError) as missing:
            await bob.publish("xmpp:no-such-service.localhost?;node=news", title="three")

    assert raised.value.condition == "forbidden"
    assert str(raised.value).startswith(f"cannot publish at {feed}: forbidden")
    assert str(missing.value).startswith("cannot publish at xmpp:no-such-service.localhost?;node=news: ")


async def test_wrong_password_names_server_and_cause(prosody: TestServer) -> None:
    jid, _ = await account(prosody, "alice")
    with pytest.raises(LoginError) as raised:
        async with connect(jid, "wrong", server=address_of(prosody), plaintext=True):
            pass

    assert str(raised.value) == (
        f"{address_of(prosody)} refuses the login of {jid}: not-authorized; check the account and its password"
    )


async def test_server_that_is_away_ends_the_first_attempt(unused_tcp_port: int) -> None:
    """A script must not wait for ever; `follow` does."""
    with pytest.raises(UnreachableError) as raised:
        async with connect("a@localhost", "x", server=(HOST, unused_tcp_port), plaintext=True):
            pass

    assert str(raised.value) == f"cannot connect to {HOST}:{unused_tcp_port} as a@localhost: connection refused"


async def test_blocking_client_publishes_and_follows(server: TestServer, service: str) -> None:
    feed = f"xmpp:{service}?;node=news"
    threads = threading.active_count()
    credentials = await account(server, "alice")

    def script() -> list[tuple[str, str]]:
        with connect_blocking(*credentials, server=address_of(server), plaintext=True) as client:
            client.create(feed)
            client.publish(feed, item_id="a", title="one")
            changes = client.follow(feed, mirror=True)
            seen = [(change.kind.value, change.item_id) for change in changes.until_caught_up()]
            client.publish(feed, item_id="b", title="two")
            seen += [(change.kind.value, change.item_id) for change in changes.until_caught_up()]
            client.retract(feed, "a")
            change = next(changes)
            assert changes.proof().in_step
            assert client.subscribe(feed) is True
            client.unsubscribe(feed)
            changes.close()
        return [*seen, (change.kind.value, change.item_id)]

    seen = await asyncio.to_thread(script)

    assert seen == [("new", "a"), ("new", "b"), ("deleted", "a")]
    assert threading.active_count() <= threads + 1  # the pool of `to_thread`
    assert "smartfeeds client" not in {thread.name for thread in threading.enumerate()}


async def test_blocking_client_raises_what_the_server_says(prosody: TestServer) -> None:
    jid, _ = await account(prosody, "alice")

    def script() -> None:
        with connect_blocking(jid, "wrong", server=address_of(prosody), plaintext=True):
            pass

    with pytest.raises(LoginError, match="not-authorized"):
        await asyncio.to_thread(script)
    assert "smartfeeds client" not in {thread.name for thread in threading.enumerate()}
