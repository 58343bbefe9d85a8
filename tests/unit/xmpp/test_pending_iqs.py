"""The one tracker of requests without an answer (RFC 6120 8.2.3)."""

import asyncio

import pytest
from lxml import etree

from smartfeeds.errors import LinkError
from smartfeeds.xmpp.pending_iqs import Requests

FEEDS = "feeds.b.example"


def iq(stanza_id: str, kind: str = "result", sender: str = FEEDS, name: str = "iq") -> bytes:
    return f"<{name} type='{kind}' id='{stanza_id}' from='{sender}'/>".encode()


@pytest.mark.parametrize("kind", ["result", "error"])
async def test_answer_of_the_entity_that_was_asked_is_claimed_once_and_resolves(kind: str) -> None:
    requests = Requests("p")
    stanza_id, answer = requests.add(FEEDS)
    other_id, other = requests.add(FEEDS)
    assert stanza_id != other_id

    assert [requests.claim(iq(stanza_id, kind)) for _ in range(2)] == [True, False]
    element = etree.fromstring(iq(stanza_id, kind))
    assert requests.resolve(element) and requests.resolve(element)

    assert await answer is element
    assert not other.done() and len(requests) == 2
    requests.remove(stanza_id)
    requests.remove(stanza_id)
    assert len(requests) == 1
    assert not requests.claim(iq(stanza_id)) and not requests.resolve(element)


@pytest.mark.parametrize(
    "frame",
    [
        iq("call-p-1", sender="evil.example"),
        iq("call-p-1", "get"),
        iq("call-p-2"),
        iq("call-p-1", name="message"),
        b"<iq type='result' id='call-p-1'/>",
        b"<iq type='result' from='feeds.b.example'/>",
    ],
    ids=["another sender", "a request", "another id", "a message", "no sender", "no id"],
)
async def test_stanza_that_answers_no_request_claims_none(frame: bytes) -> None:
    requests = Requests("p")
    assert not requests.claim(frame)
    _, answer = requests.add(FEEDS)

    assert not requests.claim(frame)
    if not frame.startswith(b"<message"):  # the stream offers IQs only
        assert not requests.resolve(etree.fromstring(frame))
    assert not answer.done()


async def test_answer_that_comes_too_late_is_no_error() -> None:
    """The caller has given up, and its request is about to be removed."""
    requests = Requests("p")
    stanza_id, answer = requests.add(FEEDS)
    answer.cancel()

    assert requests.resolve(etree.fromstring(iq(stanza_id)))
    requests.fail(LinkError("gone"))


async def test_lost_link_ends_all_requests() -> None:
    requests = Requests("p")
    answers = [requests.add(FEEDS)[1] for _ in range(3)]
    requests.fail(LinkError("gone"))

    assert len(requests) == 0
    results = await asyncio.gather(*answers, return_exceptions=True)
    assert [str(result) for result in results] == ["gone"] * 3
