"""Mirrors over the component's stream: what goes out, and what becomes of failures."""

import pytest
from lxml import etree

from smartfeeds.client import stanzas
from smartfeeds.client.errors import RequestError, RequestTimeoutError
from smartfeeds.errors import LinkError
from smartfeeds.features.mirrors.stream_link import StreamLink

THERE = "feeds.b.example"
ITEM = b"<entry xmlns='urn:e' xmlns:p='urn:p' p:at='here'/>"


class Stream:
    """A stream whose answer the test decides; `calls` are the requests."""

    domain = "feeds.a.example"

    def __init__(self, answer):
        self.answer = answer
        self.calls = []
        self.listening = []

    async def call(self, kind, to, payload, timeout_s):
        self.calls.append((kind, to, payload, timeout_s))
        if isinstance(self.answer, Exception):
            raise self.answer
        return etree.fromstring(self.answer)

    def listen(self, *callbacks):
        self.listening.append(callbacks)
        return lambda: self.listening.remove(callbacks)


async def test_request_goes_out_as_bytes_and_its_answer_is_our_parsers():
    stream = Stream(b"<iq type='result'/>")
    link = StreamLink(stream, 7.0)
    reply = await link.ask("set", THERE, stanzas.request("subscribe", node="plans", jid=link.subscriber))

    assert isinstance(reply, etree._Element)
    ((kind, to, payload, timeout_s),) = stream.calls
    assert (kind, to, timeout_s) == ("set", THERE, 7.0)
    subscribe = etree.fromstring(payload)[0]
    assert (etree.QName(subscribe).localname, dict(subscribe.attrib)) == (
        "subscribe",
        {"node": "plans", "jid": "feeds.a.example"},
    )


@pytest.mark.parametrize(("item_id", "named"), [("a'b", {"id": "a'b"}), ("", {})])
async def test_item_is_published_byte_for_byte(item_id, named):
    stream = Stream(b"<iq type='result'/>")
    await StreamLink(stream, 7.0).publish(THERE, "n'1", item_id, ITEM)

    ((kind, _to, payload, _timeout_s),) = stream.calls
    publish = etree.fromstring(payload)[0]
    assert (kind, publish.get("node"), dict(publish[0].attrib)) == ("set", "n'1", named)
    assert ITEM in payload


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (TimeoutError(), RequestTimeoutError, "feeds.b.example did not answer in 7 s"),
        (LinkError("lost: there is no link"), RequestTimeoutError, "lost: there is no link"),
        (
            b"<iq xmlns='jabber:component:accept' type='error'><error type='wait'>"
            b"<policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
            RequestError,
            "policy-violation",
        ),
    ],
    ids=["timeout", "link", "error"],
)
async def test_failures_are_those_of_the_client(answer, error, text):
    link = StreamLink(Stream(answer), 7.0)
    with pytest.raises(error, match=text):
        await link.ask("get", THERE, stanzas.request("unsubscribe", node="plans", jid="x"))
    # A deliverer has to tell the end of our own link from a failure of the other service.
    with pytest.raises(type(answer) if isinstance(answer, LinkError) else error, match=text) as caught:
        await link.publish(THERE, "plans", "x", ITEM)
    assert isinstance(caught.value, RequestTimeoutError | RequestError) != isinstance(answer, LinkError)


async def test_listener_is_told_until_the_link_is_closed():
    class Listener:
        def on_up(self): ...
        def on_down(self): ...
        def on_message(self, message): ...
        def on_failure(self, error): ...

    stream, listener = Stream(b""), Listener()
    link = StreamLink(stream, 7.0)
    link.open(listener)
    assert stream.listening == [(listener.on_up, listener.on_down, listener.on_message)]

    await link.close()
    await link.close()
    assert stream.listening == []
