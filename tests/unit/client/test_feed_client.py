"""The client of a bot over a model link: what shares the session, and what it says when there is none."""

import asyncio
import gc
import threading
import weakref
from typing import Any
from xml.etree.ElementTree import Element, tostring

import pytest

from smartfeeds.client import AddressError, FeedClient, FollowError, RefusedError, UnreachableError, connect_blocking
from smartfeeds.client.blocking import BlockingFeedClient
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.client.payload import ATOM
from smartfeeds.client.stanzas import PUBSUB
from smartfeeds.client.transport import parse_server
from support.waiting import wait_for
from unit.client.model_link import ADDRESS, SERVICE, ModelLink, atom


class Link(ModelLink):
    """A model link of an account, which also takes publishes."""

    server = "chat.example:5222"

    async def ask(self, kind: str, to: str, payload: Element) -> Element:
        """Answers a publish or a retraction with an empty result, the rest from the feed."""
        if payload[0].tag not in (f"{{{PUBSUB}}}create", f"{{{PUBSUB}}}publish", f"{{{PUBSUB}}}retract"):
            return await super().ask(kind, to, payload)
        self.asked.append(payload)
        if (error := self.fault(payload)) is not None:
            raise error
        return Element("{jabber:client}iq", {"type": "result"})


def client(link: Link, **options: Any) -> FeedClient:
    return FeedClient(link, new_id=lambda: "fresh", **options)


async def test_publish_without_an_id_chooses_one() -> None:
    link = Link()
    async with client(link) as feeds:
        assert await feeds.publish(ADDRESS, title="Hello") == "fresh"

    sent = tostring(link.asked[0], encoding="unicode")
    assert 'node="comments"' in sent
    assert 'id="fresh"' in sent
    assert link.closed


async def test_texts_of_an_item_are_an_entry() -> None:
    """What is empty is left out, except the title (RFC 4287)."""
    link = Link()
    async with client(link) as feeds:
        await feeds.publish(
            ADDRESS, title="T & T", content="<x>", link="https://e.example/", author="A", tags=["x", "y"]
        )
        await feeds.publish(ADDRESS, content="", link="", author="", tags=[])

    whole, least = (next(sent.iter(f"{{{ATOM}}}entry")) for sent in link.asked)
    assert [(part.tag.removeprefix(f"{{{ATOM}}}"), "".join(part.itertext()), part.attrib) for part in whole] == [
        ("title", "T & T", {}),
        ("author", "A", {}),
        ("link", "", {"rel": "alternate", "href": "https://e.example/"}),
        ("category", "", {"term": "x"}),
        ("category", "", {"term": "y"}),
        ("content", "<x>", {}),
    ]
    assert whole.findtext(f"{{{ATOM}}}author/{{{ATOM}}}name") == "A"
    assert [part.tag for part in least] == [f"{{{ATOM}}}title"]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (RequestError("forbidden", "auth", "not yours"), RefusedError, "forbidden: not yours"),
        (RequestTimeoutError("no answer"), UnreachableError, "no answer"),
    ],
)
async def test_failure_names_the_feed_and_the_cause(error: Exception, kind: type[Exception], text: str) -> None:
    link = Link()
    link.fault = lambda _request: error  # type: ignore[assignment,return-value]
    async with client(link) as feeds:
        with pytest.raises(kind) as raised:
            await feeds.retract(ADDRESS, "a")

    assert str(raised.value) == f"cannot retract at {ADDRESS}: {text}"


async def test_request_without_a_session_names_the_server() -> None:
    link = Link()
    async with client(link, session_s=0.0) as feeds:
        feeds.on_down()
        with pytest.raises(UnreachableError) as raised:
            await feeds.publish(ADDRESS, title="x")

    assert str(raised.value) == (
        f"cannot publish at {ADDRESS}: there was no session with chat.example:5222 for 0 s; the request was not sent"
    )
    assert link.asked == []


async def test_request_waits_for_the_next_session() -> None:
    link = Link()
    async with client(link) as feeds:
        feeds.on_down()
        request = asyncio.ensure_future(feeds.publish(ADDRESS, title="x"))
        await asyncio.sleep(0)
        assert link.asked == []
        feeds.on_up()
        assert await wait_for(request, "the answer") == "fresh"


async def test_failure_to_connect_is_raised_and_the_link_is_closed() -> None:
    link = Link()
    link.up_at_once = False
    feeds = client(link)
    entering = asyncio.ensure_future(feeds.__aenter__())
    await asyncio.sleep(0)
    feeds.on_failure(UnreachableError("cannot connect to chat.example:5222"))
    with pytest.raises(UnreachableError, match=r"chat\.example"):
        await entering
    assert link.closed


async def test_follower_that_is_closed_leaves_the_session_open() -> None:
    """[SF-045]: followers come and go, each with the events of the session."""
    link = Link()
    link.feed.put(atom("a", "one"))
    async with client(link) as feeds:
        for _ in range(2):
            async with feeds.follow(ADDRESS, mirror=True) as changes:
                assert [change.item_id async for change in changes.until_caught_up()] == ["a"]
        assert not link.closed
        assert await feeds.publish(ADDRESS, title="x") == "fresh"
        follower = feeds.follow(ADDRESS, mirror=True)
        assert (await anext(follower)).item_id == "a"
    with pytest.raises(FollowError, match="the follower was closed"):
        await anext(follower)


async def test_client_keeps_no_follower_that_was_closed() -> None:
    """A bot that looks at feeds every hour must not grow."""
    async with client(Link()) as feeds:
        async with feeds.follow(ADDRESS, mirror=True) as follower:
            assert [change async for change in follower.until_caught_up()] == []
        closed = weakref.ref(follower)
        del follower
        gc.collect()
        assert closed() is None


async def test_until_caught_up_proves_it_anew_at_each_call() -> None:
    """[SF-051]: what has arrived since is found although no push came."""
    link = Link()
    async with client(link) as feeds:
        changes = feeds.follow(ADDRESS, mirror=True)
        assert [change.item_id async for change in changes.until_caught_up()] == []
        for name in ("a", "b"):
            link.feed.put(atom(name, name))
        assert [change.item_id async for change in changes.until_caught_up()] == ["a", "b"]
        assert [change.item_id async for change in changes.until_caught_up()] == []


async def test_push_over_the_session_reaches_each_follower() -> None:
    """[SF-045]: as long as it is not closed."""
    link = Link()
    async with client(link) as feeds:
        followers = [feeds.follow(ADDRESS, mirror=True) for _ in range(3)]
        for follower in followers:
            assert [change async for change in follower.until_caught_up()] == []
        await followers.pop().aclose()
        pulls = len(link.asked)
        link.deliver(link.feed.put(atom("a", "one")))
        assert [(await wait_for(anext(one), "the push")).item_id for one in followers] == ["a", "a"]
        assert len(link.asked) == pulls, "the push has the item"


async def test_payload_and_texts_exclude_each_other() -> None:
    async with client(Link()) as feeds:
        with pytest.raises(ValueError, match="not both"):
            await feeds.publish(ADDRESS, "<entry/>", title="x")
        with pytest.raises(ValueError, match="not well-formed"):
            await feeds.publish(ADDRESS, "<entry>")
        with pytest.raises(ValueError, match=r"title .* has characters that XML forbids"):
            await feeds.publish(ADDRESS, title="\0")
        with pytest.raises(AddressError):
            await feeds.publish(SERVICE, title="x")


def test_server_is_host_and_port() -> None:
    assert parse_server("127.0.0.1:5222") == ("127.0.0.1", 5222)
    assert parse_server("[::1]:5222") == ("::1", 5222)
    for text in ("localhost", ":5222", "localhost:", "localhost:x"):
        with pytest.raises(ValueError, match="is not HOST:PORT"):
            parse_server(text)


# Without asyncio


def is_thread_left() -> bool:
    return "smartfeeds client" in {thread.name for thread in threading.enumerate()}


def test_blocking_client_asks_what_the_other_client_asks() -> None:
    """The thread of the client ends with the block."""
    link = Link()
    with BlockingFeedClient(lambda: client(link)) as feeds:
        feeds.create(ADDRESS)
        assert feeds.publish(ADDRESS, title="Hello") == "fresh"
        assert feeds.publish(ADDRESS, "<entry/>", item_id="a") == "a"
        feeds.retract(ADDRESS, "a")
        assert feeds.subscribe(ADDRESS) is True
        assert len(link.subscriptions) == 1
        feeds.unsubscribe(ADDRESS)
        assert link.subscriptions == set()
        assert is_thread_left() and not link.closed

    names = [payload[0].tag.removeprefix(f"{{{PUBSUB}}}") for payload in link.asked]
    assert names == ["create", "publish", "publish", "retract", "subscribe", "unsubscribe"]
    assert link.closed and not is_thread_left()


def test_blocking_follower_yields_what_there_is_and_what_comes() -> None:
    link = Link()
    link.feed.put(atom("a", "one"))
    with BlockingFeedClient(lambda: client(link)) as feeds:
        changes = feeds.follow(ADDRESS, mirror=True)
        assert [change.item_id for change in changes.until_caught_up()] == ["a"]
        assert changes.proof().in_step
        link.feed.put(atom("b", "two"))
        assert [change.item_id for change in changes.until_caught_up()] == ["b"]
        changes.close()
        with pytest.raises(FollowError, match="the follower was closed"):
            next(changes)
        assert not link.closed
        assert [change.item_id for change in (next(iter(feeds.follow(ADDRESS, mirror=True))),)] == ["a"]


def test_blocking_client_raises_what_the_other_client_raises() -> None:
    link = Link()
    link.fault = lambda _request: RequestError("forbidden", "auth", "not yours")
    with BlockingFeedClient(lambda: client(link)) as feeds:
        with pytest.raises(RefusedError, match="forbidden: not yours"):
            feeds.publish(ADDRESS, title="x")
        link.fault = lambda _request: None
        assert feeds.publish(ADDRESS, title="x") == "fresh", "the session stays"


def test_blocking_client_outside_of_its_block_says_so() -> None:
    feeds = BlockingFeedClient(lambda: client(Link()))
    with pytest.raises(FollowError, match="use it inside of its with block"):
        feeds.publish(ADDRESS, title="x")
    with feeds:
        changes = feeds.follow(ADDRESS, mirror=True)
    feeds.close()
    for late in (lambda: next(changes), changes.close, lambda: next(changes.until_caught_up())):
        with pytest.raises(FollowError, match="use it inside of its with block"):
            late()


def test_blocking_client_that_cannot_connect_leaves_no_thread(unused_tcp_port: int) -> None:
    feeds = connect_blocking("a@localhost", "x", server=f"127.0.0.1:{unused_tcp_port}", plaintext=True)
    with pytest.raises(UnreachableError, match="connection refused"), feeds:
        raise AssertionError("the block began")
    assert not is_thread_left()
