"""The follower over the stream of the component."""

import asyncio

import pytest
from lxml import etree

from smartfeeds.client import Follower
from smartfeeds.client.follow import FollowerClock
from smartfeeds.features.mirrors.stream_link import StreamLink
from support.fakeserver import Session
from support.link import linked
from support.waiting import wait_for
from unit.client.model_link import FakeTimers

PUBSUB = "http://jabber.org/protocol/pubsub"
RSM = "http://jabber.org/protocol/rsm"
ADDRESS = "xmpp:feeds.example.org?;node=comments"
ENTRY = '<entry xmlns="http://www.w3.org/2005/Atom" xmlns:t="urn:t" t:count="2"><title>one</title></entry>'


async def answer(session: Session, body: str = "", kind: str = "result") -> etree._Element:
    """Takes the next request and answers it."""
    request = await session.expect()
    await session.send(
        f'<iq type="{kind}" from="{request.get("to")}" to="{request.get("from")}" id="{request.get("id")}">{body}</iq>'
    )
    return request


def page(*items: str, first: int = 0, count: int = 1) -> str:
    cursors = f'<first index="{first}">cursor:{first}</first><last>cursor:{first + len(items) - 1}</last>'
    return (
        f'<pubsub xmlns="{PUBSUB}"><items node="comments?order=modified">{"".join(items)}</items>'
        f'<set xmlns="{RSM}">{cursors if items else ""}<count>{count}</count></set></pubsub>'
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("&quot;" * 300_000, "the stanza is too long"),
        ("<a>" * 260 + "</a>" * 260, "the stanza is nested too deeply"),
    ],
    ids=["long", "deep"],
)
async def test_follower_on_our_stream_answer_that_cannot_be_read_is_no_page(content: str, reason: str) -> None:
    """[SF-045]: the stream cuts it down to its head; one item is asked for then, and what is stuck is told."""
    bad, good = ENTRY.replace("one", content), f'<item id="a">{ENTRY}</item>'
    told: asyncio.Queue[str] = asyncio.Queue()
    async with linked(lambda _: False) as (server, stream):
        session = await server.session()
        feed = Follower(
            StreamLink(stream, 10.0),
            ADDRESS,
            mirror=True,
            page_items=2,
            clock=FollowerClock(FakeTimers()),
            on_trouble=lambda e: told.put_nowait(str(e)),
        )
        async with feed:
            coming = asyncio.ensure_future(anext(feed))
            await answer(session)
            first = await answer(session, page(good, f'<item id="b">{bad}</item>', count=2))
            second = await answer(session, page(good, count=2))
            assert (await coming).item_id == "a"
            coming = asyncio.ensure_future(anext(feed))
            third = await answer(session, page(f'<item id="b">{bad}</item>', first=1, count=2))
            text = await wait_for(told.get(), "the log line")
            assert not feed.proof().in_step
            coming.cancel()

    assert [one.findtext(f".//{{{RSM}}}max") for one in (first, second, third)] == ["2", "1", "1"]
    assert text.startswith(
        f"cannot read the item after 0, even in a page of one item: the response was truncated: {reason}"
    )
