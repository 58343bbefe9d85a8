"""What the stream relies on inside slixmpp: when one of these fails, read what slixmpp has changed."""

import inspect
import xml.etree.ElementTree as ET

from slixmpp import ComponentXMPP
from slixmpp.stanza import Handshake
from slixmpp.xmlstream import XMLStream
from slixmpp.xmlstream.stanzabase import StanzaBase

from support.link import DOMAIN, Taken, linked


def parameters(function: object) -> list[str]:
    assert callable(function)
    return list(inspect.signature(function).parameters)


def test_slixmpp_methods_we_replace_or_call_exist_with_their_parameters() -> None:
    assert parameters(XMLStream._spawn_event) == ["self", "xml"]
    assert parameters(XMLStream.init_parser) == ["self"]
    assert parameters(XMLStream.data_received) == ["self", "data"]
    assert parameters(XMLStream.connection_made) == ["self", "transport", "send_event"]
    assert parameters(XMLStream.connection_lost) == ["self", "exception"]
    assert parameters(XMLStream.send) == ["self", "data", "use_filters"]
    assert parameters(XMLStream._start_keepalive) == ["self", "event"]
    assert parameters(XMLStream.run_filters) == ["self"]
    assert parameters(ComponentXMPP._handle_handshake) == ["self", "xml"]
    assert parameters(ComponentXMPP.start_stream_handler) == ["self", "xml"]
    assert parameters(ComponentXMPP.init_plugins) == ["self"]


def test_slixmpp_transport_pauses_are_still_ours_to_implement() -> None:
    """When slixmpp starts to use them itself, the outbox has to be looked at again."""
    assert "pause_writing" not in vars(XMLStream)
    assert "resume_writing" not in vars(XMLStream)


async def test_slixmpp_connection_made_calls_init_parser_and_sends_our_header() -> None:
    async with linked() as (server, stream):
        assert server.sessions[0].header == stream.stream_header
        assert stream.parser is None


async def test_slixmpp_handshake_handler_of_the_subclass_is_the_one_registered() -> None:
    """`_handle_handshake` is bound at construction; an override must be found."""
    async with linked() as (_, stream):
        assert stream.sessionstarted
        assert stream.outbox.online


async def test_slixmpp_handshake_goes_through_send_before_the_session() -> None:
    async with linked() as (server, _):
        assert server.sessions[0].handshake != ""
        assert Handshake.namespace == "jabber:component:accept"


async def test_slixmpp_gets_nothing_that_was_taken() -> None:
    async with linked(Taken(lambda element: element.get("id") != "sync")) as (server, stream):
        seen: list[str] = []

        def look(stanza: StanzaBase) -> StanzaBase:
            seen.append(str(stanza["id"]))
            return stanza

        stream.add_filter("in", look)
        session = await server.session()
        await session.send(f"<message id='ours' from='a@b.example' to='{DOMAIN}'><body>x</body></message>")
        await session.send(f"<iq type='get' id='sync' from='a@b.example' to='{DOMAIN}'><x xmlns='y'/></iq>")
        await session.expect()

        assert seen == ["sync"]


async def test_slixmpp_connection_lost_resets_and_tells() -> None:
    async with linked() as (server, stream):
        told: list[object] = []
        stream.add_event_handler("disconnected", told.append)
        (await server.session()).cut()
        await stream.wait_closed()

        assert len(told) == 1
        assert stream.transport is None
        assert not stream.sessionstarted
        assert not stream._session_started


async def test_slixmpp_has_no_keepalive_or_retry_of_its_own_running() -> None:
    async with linked() as (_, stream):
        assert stream.scheduled_events == {}
        assert not stream.is_connecting()


async def test_slixmpp_handlers_do_not_grow_with_requests() -> None:
    """Every outstanding `iq.send()` would make each incoming stanza slower: we use none."""
    async with linked(Taken(lambda _: False)) as (server, stream):
        session = await server.session()
        handlers = vars(stream)["_XMLStream__handlers"]
        before = len(handlers)
        for number in range(20):
            stream.ping()
            await session.send(f"<iq type='get' id='{number}' from='a@b.example' to='{DOMAIN}'><x xmlns='y'/></iq>")
            await session.expect()

        assert len(handlers) == before
        assert stream.waiting_queue.empty()


async def test_slixmpp_send_raw_writes_at_once() -> None:
    async with linked() as (server, stream):
        session = await server.session()
        stream.send_raw(b"<message id='raw'/>")

        assert (await session.expect()).get("id") == "raw"


def test_slixmpp_start_stream_handler_reads_a_plain_element() -> None:
    """The root is handed over as an element with attributes only."""
    source = inspect.getsource(ComponentXMPP.start_stream_handler)
    assert "xml.get('id', '')" in source
    assert ET.Element("stream", {"id": "x"}).get("id", "") == "x"
