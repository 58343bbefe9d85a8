"""The component stream against a fake XEP-0114 server (checklist A and B; RFC 6120 section 4)."""

import asyncio
import hashlib
import socket
import time
from xml.etree.ElementTree import Element

import pytest
from lxml import etree
from structlog.testing import capture_logs

from smartfeeds.core.text import ForbiddenCharacterError, attribute, escape
from smartfeeds.xmpp.link import LinkDownError
from smartfeeds.xmpp.stream import ComponentStream
from smartfeeds.xmpp.turns import BYTE_COST_S, COSTLY_S, REST_MOST_S, WORK_BYTES, QueueBounds, StanzaTurns
from support.fakeserver import FakeServer, Session
from support.faketime import FakeTime
from support.link import DOMAIN, Taken, linked, make_stream
from support.waiting import until, wait_for

ACCEPT = "{jabber:component:accept}"
STANZAS = "{urn:ietf:params:xml:ns:xmpp-stanzas}"


async def synchronise(session: Session) -> None:
    """Returns once the component has read everything that was sent before."""
    await session.send(
        f"<iq type='get' id='sync' from='{DOMAIN.partition('.')[2]}' to='{DOMAIN}'><sync xmlns='s'/></iq>"
    )
    while (await session.expect()).get("id") != "sync":
        pass


def take_all_but_sync(element: etree._Element) -> bool:
    return element.get("id") != "sync"


async def test_stream_header_has_the_namespace_and_the_domain() -> None:
    """[xep-map 1]"""
    async with linked() as (server, _):
        header = etree.fromstring(server.sessions[0].header.encode() + b"</stream:stream>")

        assert header.tag == "{http://etherx.jabber.org/streams}stream"
        assert header.nsmap[None] == "jabber:component:accept"
        assert header.items() == [("to", DOMAIN)]


@pytest.mark.parametrize("stream_id", ["3BF96D32", "a&b<c>\"d'e", "\u00fc\u20ac", ""])
async def test_stream_handshake_is_sha1_of_the_unescaped_id_and_secret(stream_id: str) -> None:
    """[xep-map 2]"""
    async with FakeServer(DOMAIN) as server:
        server.switches.stream_id = stream_id
        stream = make_stream(server, Taken())
        await stream.open()

        assert server.sessions[0].handshake == hashlib.sha1(f"{stream_id}secret".encode()).hexdigest()
        await stream.close()


async def test_stream_before_the_handshake_is_answered_sends_nothing() -> None:
    """[xep-map 3]"""
    async with FakeServer(DOMAIN) as server:
        server.switches.mute = True
        stream = make_stream(server, Taken())
        opening = asyncio.create_task(stream.open())
        session = await server.connection()
        stream.send("<message to='a@example.org'/>")
        stream.make_presence(pto="a@example.org").send()
        assert not stream.outbox.reply(b"<iq type='result'/>")
        opening.cancel()
        await asyncio.wait((opening,))
        await wait_for(session.closed.wait(), "the end of the connection")

        assert b"<message" not in session.received
        assert b"<presence" not in session.received
        assert b"<iq" not in session.received
        await stream.close()


async def test_stream_after_reconnect_sends_nothing_that_was_offered_while_offline() -> None:
    """[xep-map 3] [xep-map 9]"""
    async with FakeServer(DOMAIN) as server:
        stream = make_stream(server, take_all_but_sync)
        await stream.open()
        (await server.session(1)).cut()
        await stream.wait_closed()
        stream.send("<message to='old@example.org'/>")
        assert not stream.outbox.reply(b"<message to='old@example.org'/>")
        await stream.open()
        session = await server.session(2)
        await synchronise(session)

        assert b"old@example.org" not in session.received
        assert stream.outbox.epoch == 2
        await stream.close()


@pytest.mark.parametrize("kind", ["iq", "message", "presence"])
async def test_stream_stanza_is_offered_to_the_callback_and_not_answered(kind: str) -> None:
    taken = Taken(take_all_but_sync)
    async with linked(taken) as (server, _):
        session = await server.session()
        await session.send(f"<{kind} type='get' id='1' from='a@example.org/x' to='{DOMAIN}'><p xmlns='q'/></{kind}>")
        await synchronise(session)

        assert [element.tag for element in taken.stanzas] == [f"{ACCEPT}{kind}"]
        assert taken.stanzas[0][0].tag == "{q}p"
        assert session.stanzas.empty()


@pytest.mark.parametrize("where", ["root", "stanza"])
async def test_stream_client_namespace_is_mapped(where: str) -> None:
    """Some servers speak jabber:client to components."""
    taken = Taken(take_all_but_sync)
    async with FakeServer(DOMAIN) as server:
        if where == "root":
            server.switches.namespace = "jabber:client"
        stream = make_stream(server, taken)
        opening = asyncio.create_task(stream.open())
        session = await server.connection()
        await opening
        xmlns = " xmlns='jabber:client'" if where == "stanza" else ""
        await session.send(f"<message{xmlns} type='error' id='1'><error type='cancel'/></message>")
        await synchronise(session)

        assert [element.tag for element in taken.stanzas] == [f"{ACCEPT}message"]
        assert taken.stanzas[0][0].tag == f"{ACCEPT}error"
        await stream.close()


async def test_stream_ping_is_answered_by_slixmpp() -> None:
    """XEP-0199. [xep-map 12]"""
    async with linked(Taken(lambda _: False)) as (server, _):
        session = await server.session()
        await session.send(
            f"<iq type='get' id='p1' from='a@example.org/x' to='{DOMAIN}'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        answer = await session.expect()

        assert (answer.get("type"), answer.get("id")) == ("result", "p1")
        assert (answer.get("from"), answer.get("to")) == (DOMAIN, "a@example.org/x")


async def test_stream_request_to_a_local_part_is_answered_from_there() -> None:
    """[xep-map 8] [xep-map 6] [xep-map 7]"""
    async with linked(Taken(lambda _: False)) as (server, _):
        session = await server.session()
        await session.send(
            f"<iq type='get' id='p' from='a@b.example' to='u@{DOMAIN}'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        answer = await session.expect()

        assert (answer.get("from"), answer.get("to")) == (f"u@{DOMAIN}", "a@b.example")


async def test_stream_version_names_no_operating_system_by_default() -> None:
    """XEP-0092: `os` must be switchable, and is off."""
    async with linked(Taken(lambda _: False)) as (server, _):
        session = await server.session()
        await session.send(
            f"<iq type='get' id='v' from='a@example.org' to='{DOMAIN}'><query xmlns='jabber:iq:version'/></iq>"
        )
        answer = await session.expect()

        query = answer[0]
        assert {child.tag.rpartition("}")[2]: child.text for child in query if child.text} == {
            "name": "smartfeeds",
            "version": "1.2",
        }


async def test_stream_unknown_request_nobody_takes_gets_one_error() -> None:
    """[xep-map 12]"""
    async with linked(Taken(lambda _: False)) as (server, _):
        session = await server.session()
        await session.send(f"<iq type='set' id='u' from='a@example.org' to='{DOMAIN}'><x xmlns='unknown'/></iq>")
        answer = await session.expect()

        assert (answer.get("type"), answer.get("id"), answer.get("to")) == ("error", "u", "a@example.org")


@pytest.mark.parametrize("stanza", ["<iq type='result' id='1'", "<iq type='error' id='1'", "<message type='error'"])
async def test_stream_results_and_errors_are_never_answered(stanza: str) -> None:
    """[xep-map 14]"""
    async with linked(Taken(lambda _: False)) as (server, _):
        session = await server.session()
        await session.send(
            f"{stanza} from='a@example.org' to='{DOMAIN}'><x xmlns='unknown'/></{stanza[1:].split()[0]}>"
        )
        await synchronise(session)

        assert session.stanzas.empty()


async def test_stream_presence_that_nobody_takes_is_forgotten() -> None:
    """slixmpp would keep each sender for ever and answer probes and requests."""
    async with linked(Taken(lambda _: False)) as (server, stream):
        session = await server.session()
        before = len(stream.roster[DOMAIN])
        for kind in ("", " type='unavailable'", " type='probe'", " type='subscribe'"):
            for number in range(50):
                await session.send(f"<presence{kind} from='u{number}@example.org/r' to='{DOMAIN}'/>")
        await synchronise(session)

        assert len(stream.roster[DOMAIN]) == before
        assert session.stanzas.empty()


async def test_stream_callback_that_raises_answers_internal_server_error_and_goes_on() -> None:
    """[xep-map 12] Nothing internal reaches the wire."""

    def explode(element: etree._Element) -> bool:
        if element.get("id") == "sync":
            return False
        raise RuntimeError("private detail")

    async with linked(explode) as (server, stream):
        session = await server.session()
        with capture_logs() as logs:
            await session.send(
                f"<iq type='set' id='a&amp;&#39;b' from='a@b/&lt;' to='u@{DOMAIN.upper()}'><x xmlns='y'/></iq>"
            )
            answer = await session.expect()
            await session.send(f"<message id='2' from='a@b' to='{DOMAIN}'/><iq type='result' id='3' from='a@b'/>")
            await synchronise(session)

        assert (answer.get("type"), answer.get("id")) == ("error", "a&'b")
        assert (answer.get("to"), answer.get("from")) == ("a@b/<", f"u@{DOMAIN}")
        assert answer.find(f"{ACCEPT}error/{STANZAS}internal-server-error") is not None
        assert b"private detail" not in etree.tostring(answer)
        assert session.stanzas.empty()
        assert [entry["event"] for entry in logs].count("stanza_failed") == 3
        assert stream.outbox.online


@pytest.mark.parametrize("sender", ["a\u0221@b", "a@b/\u0221", "a@b..c", f"a@b/{'x' * 2_000}"])
async def test_stream_address_that_slixmpp_refuses_ends_nothing(sender: str) -> None:
    """What a server takes for an address need not be one for a library. [xep-map 246]"""
    async with linked(lambda _: False) as (server, stream):
        session = await server.session()
        with capture_logs() as logs:
            await session.send(
                f"<iq type='get' id='1' from='{sender}' to='{DOMAIN}'><ping xmlns='urn:xmpp:ping'/></iq>"
            )
            answer = await session.expect()
            await session.send(f"<iq type='get' id='2' from='a@b' to='{DOMAIN}'><ping xmlns='urn:xmpp:ping'/></iq>")
            after = await session.expect()

        assert (answer.get("type"), answer.get("id"), answer.get("to")) == ("error", "1", sender)
        assert answer.find(f"{ACCEPT}error[@type='modify']/{STANZAS}jid-malformed") is not None
        assert (after.get("type"), after.get("id")) == ("result", "2")
        # The log has no address of a user above the level debug.
        domain = sender.partition("/")[0].partition("@")[2]
        assert [(entry["event"], entry["sender"]) for entry in logs] == [("address_refused", domain)]
        assert "exc_info" not in logs[0]
        assert stream.outbox.online


async def test_stream_one_segment_with_many_stanzas_keeps_order() -> None:
    taken = Taken()
    async with linked(taken) as (server, stream):
        session = await server.session()
        await session.send("".join(f"<message id='{number}'><b>{'x' * 500}</b></message>" for number in range(1_000)))
        await session.end()
        await stream.wait_closed()

        assert taken.ids == [str(number) for number in range(1_000)]


async def test_stream_byte_by_byte_is_the_same() -> None:
    taken = Taken(take_all_but_sync)
    async with FakeServer(DOMAIN) as server:
        server.switches.byte_by_byte = True
        stream = make_stream(server, taken)
        await stream.open()
        session = await server.session()
        await session.send("<message id='1'><iq>\u20ac</iq></message> <iq id='2' type='result'/>")
        await session.send("<presence id='3'><![CDATA[</]]></presence>")
        await synchronise(session)

        assert taken.ids == ["1", "2", "3"]
        await stream.close()


@pytest.mark.parametrize(
    "content",
    [
        "".join(f"<n{number}/>" for number in range(10_000)),
        "<a>" * 255 + "</a>" * 255,
        "<a>" * 20_000 + "</a>" * 20_000,
        "<" + "n" * 60_000 + "/>",
        f"<a {'n' * 60_000}='1'/>",
        "x" * 600_000,
        "<a>x</a>" * 75_000,
        "x" * 3_000_000,
        "<![CDATA[</iq><iq>]]>",
    ],
    ids=["names", "deep", "deeper", "long-name", "long-attribute", "600KB", "600KB-tags", "3MB", "cdata"],
)
async def test_stream_stanza_that_is_hard_to_read_closes_nothing(content: str) -> None:
    """One user's stanza must not take the component from everybody else. [xep-map 246]"""
    taken = Taken(take_all_but_sync)
    async with linked(taken) as (server, stream):
        session = await server.session()
        await session.send(
            f"<iq type='set' id='1' from='a@b' to='{DOMAIN}'><p xmlns='q'>{content}</p></iq><message id='2'/>"
        )
        await synchronise(session)

        assert taken.ids == ["1", "2"]
        assert taken.stanzas[0].get("from") == "a@b"
        assert stream.outbox.online


async def test_stream_600_kb_stanza_is_whole() -> None:
    taken = Taken(take_all_but_sync)
    async with linked(taken) as (server, _):
        session = await server.session()
        await session.send(f"<message id='1'><b>{'x' * 600_000}</b></message>")
        await synchronise(session)

        assert len(taken.stanzas[0][0].text or "") == 600_000


@pytest.mark.parametrize("name", ["bell\x07", "null\x00", "\ufffe", "half \ud800"])
def test_writer_helpers_character_that_xml_forbids_raises(name: str) -> None:
    """What would close the link for everybody cannot be written: the outbox takes bytes only from these helpers."""
    with pytest.raises(ForbiddenCharacterError):
        escape(name)
    with pytest.raises(ForbiddenCharacterError):
        attribute(name)


@pytest.mark.parametrize(
    ("garbage", "condition"),
    [
        ("<iq><b></iq></b>", "not-well-formed"),
        ("<iq>\x01</iq>", "not-well-formed"),
        ("GET / HTTP/1.1\r\n", "not-well-formed"),
        (b"\xff\xfe\x00", "not-well-formed"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]>", "restricted-xml"),
        ("<message><!-- hidden --></message>", "restricted-xml"),
        ("<iq>&undefined;</iq>", "not-well-formed"),
    ],
)
async def test_stream_garbage_from_the_server_closes_with_a_stream_error(garbage: str | bytes, condition: str) -> None:
    """[xep-map 246] What came before is still served."""
    taken = Taken()
    async with linked(taken) as (server, stream):
        session = await server.session()
        await session.send(b"<message id='1'/>" + (garbage.encode() if isinstance(garbage, str) else garbage))
        down = await stream.wait_closed()
        await wait_for(session.closed.wait(), "the end of the connection")

        assert down.condition == condition
        assert taken.ids == ["1"]
        assert b"<" + condition.encode() + b" xmlns=" in session.received
        assert session.footer


@pytest.mark.parametrize(
    "condition", ["conflict", "host-unknown", "not-authorized", "policy-violation", "not-well-formed", "invalid-from"]
)
async def test_stream_error_from_the_server_is_reported_by_its_condition(condition: str) -> None:
    """[xep-map 4] [xep-map 5]"""
    async with linked() as (server, stream):
        await (await server.session()).stream_error(condition, "because")
        down = await stream.wait_closed()

        assert (down.condition, down.detail) == (condition, "because")


@pytest.mark.parametrize("condition", ["conflict", "host-unknown", "not-authorized"])
async def test_stream_refused_handshake_raises_its_condition(condition: str) -> None:
    """[xep-map 4] [xep-map 5]"""
    async with FakeServer(DOMAIN) as server:
        server.switches.refuse = condition
        stream = make_stream(server, Taken())

        with pytest.raises(LinkDownError) as caught:
            await stream.open()

        assert caught.value.condition == condition
        assert not stream.outbox.online
        await stream.close()


async def test_stream_wrong_secret_is_not_authorized() -> None:
    """[xep-map 4]"""
    async with FakeServer(DOMAIN) as server:
        stream = make_stream(server, Taken(), secret="wrong")

        with pytest.raises(LinkDownError, match="not-authorized"):
            await stream.open()
        await stream.close()


async def test_stream_closed_during_the_handshake_is_a_refusal() -> None:
    """[xep-map 4]"""
    async with FakeServer(DOMAIN) as server:
        server.switches.refuse_silently = True
        stream = make_stream(server, Taken())

        with pytest.raises(LinkDownError, match="handshake-refused"):
            await stream.open()
        await stream.close()


async def test_stream_port_that_speaks_something_else_is_invalid_namespace() -> None:
    """[xep-map 4]"""
    async with FakeServer(DOMAIN) as server:
        server.switches.namespace = "jabber:server"
        stream = make_stream(server, Taken())

        with pytest.raises(LinkDownError, match="invalid-namespace"):
            await stream.open()
        await stream.close()


async def test_stream_nobody_listening_is_connect_failed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        stream = ComponentStream(DOMAIN, "secret", port=free.getsockname()[1], on_stanza=Taken())

        with pytest.raises(LinkDownError, match="connect-failed"):
            await stream.open()
        await stream.close()


async def test_stream_close_flushes_and_sends_the_footer() -> None:
    async with linked() as (server, stream):
        session = await server.session()
        stream.outbox.reply(b"<message id='last'/>")
        await stream.close()

        assert (await session.expect()).get("id") == "last"
        assert session.footer
        assert (await stream.wait_closed()).condition == "stopped"


async def test_stream_closes_although_the_server_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is aborted after a time: a server that hangs does not keep the process from its end."""
    monkeypatch.setattr("smartfeeds.xmpp.stream.CLOSE_TIMEOUT_S", 0.01)
    async with linked() as (server, stream):
        session = await server.session()
        session.stop_reading()
        await wait_for(stream.close(), "the end of the connection")

        assert stream.transport is None
        assert (await stream.wait_closed()).condition == "stopped"


async def test_stream_closed_by_the_server_answers_with_a_footer() -> None:
    async with linked() as (server, stream):
        session = await server.session()
        await session.send("</stream:stream>")
        down = await stream.wait_closed()
        await wait_for(session.closed.wait(), "the end of the connection")

        assert down.condition == "closed"
        assert session.footer


async def test_stream_socket_sends_small_writes_at_once() -> None:
    """Without TCP_NODELAY two small writes in a row wait for a delayed acknowledgement (design section 3)."""
    async with linked() as (_, stream):
        assert stream.transport is not None
        sock = stream.transport.get_extra_info("socket")

        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


async def test_stream_own_ping_through_the_server_is_neither_offered_nor_answered() -> None:
    """[xep-map 11]"""
    taken = Taken(take_all_but_sync)
    async with linked(taken) as (server, stream):
        session = await server.session()
        before = stream.received_bytes
        stream.ping()
        await synchronise(session)

        assert taken.stanzas == [] and session.stanzas.empty()
        assert b"id='link--1'" in session.received
        assert session.received.count(b"link--1") == 1
        await until(lambda: stream.received_bytes > before + 100, "the ping")


async def test_stream_finished_stanzas_are_let_go() -> None:
    """Memory stays flat: nothing of a stanza is kept once the callback is done with it."""
    seen = 0

    def count(element: etree._Element) -> bool:
        nonlocal seen
        seen += 1
        parent = element.getparent()
        assert parent is not None and len(parent) <= 20
        return True

    async with linked(count) as (server, stream):
        # One sender has all of them; on a busy machine more than its share of them waits.
        stream.turns = StanzaTurns(QueueBounds(sender_stanzas=2_000), clock=time.monotonic)
        session = await server.session()
        for _ in range(20):
            await session.send(f"<message><b>{'x' * 1_000}</b></message>" * 100)
        await session.end()
        await stream.wait_closed()

        assert seen == 2_000
        assert stream.xml_root is None and stream.parser is None


async def test_stream_broken_stanza_releases_its_batch_and_its_sender_is_served_after_the_reconnect() -> None:
    """The counts of a sender outlive the connection, so a stanza that is never read must not stay in them."""
    taken = Taken(take_all_but_sync)
    async with linked(taken) as (server, stream):
        time = FakeTime()
        turns = stream.turns = StanzaTurns(QueueBounds(), clock=time.clock)
        eve = f"from='eve@example.org' to='{DOMAIN}'"
        broken = f"<message id='2' {eve}><b>{'x' * WORK_BYTES}</message></b>"
        session = await server.session(1)
        await session.send(f"<message id='1' {eve}/>{broken}<message id='3' {eve}/>")
        await stream.wait_closed()
        assert (turns.stanzas, turns.size_bytes) == (0, 0)

        time.now_s += REST_MOST_S
        await stream.open()
        session = await server.session(2)
        await session.send(f"<message id='4' {eve}/>")
        await synchronise(session)

        assert taken.ids == ["1", "4"]
        assert (turns.stanzas, turns.size_bytes) == (0, 0)


PAYLOAD = b"<q xmlns='urn:q' xmlns:p='urn:p' p:name='kept'/>"


async def test_stream_own_request_goes_out_as_it_is_and_gets_its_answer() -> None:
    """Attributes with a namespace stay, which slixmpp's own stanzas lose; the answer is offered to nobody else."""
    taken = Taken(lambda element: element.get("type") not in ("result", "error"))
    async with linked(taken) as (server, stream):
        asking = asyncio.ensure_future(stream.call("set", "feeds.b.example", PAYLOAD, 10))
        request = await server.sessions[0].expect()
        assert (request.get("type"), request.get("from"), request.get("to")) == ("set", DOMAIN, "feeds.b.example")
        assert request[0].get("{urn:p}name") == "kept"
        stanza_id = request.get("id")
        for sender, kind in (("evil.example", "result"), ("feeds.b.example", "get")):
            await server.sessions[0].send(f"<iq type='{kind}' id='{stanza_id}' from='{sender}' to='{DOMAIN}'/>")
        await server.sessions[0].send(
            f"<iq type='result' id='{stanza_id}' from='feeds.b.example' to='{DOMAIN}'><r xmlns='urn:r'/></iq>"
        )

        answer = await wait_for(asking, "the answer")
        assert (answer.get("type"), answer[0].tag) == ("result", "{urn:r}r")
        assert len(stream._requests) == 0


async def test_stream_own_request_without_an_answer_ends() -> None:
    """In time, or with the link."""
    async with linked() as (server, stream):
        with pytest.raises(TimeoutError):
            await stream.call("get", "feeds.b.example", PAYLOAD, 0.01)
        await server.sessions[0].expect()
        asking = asyncio.ensure_future(stream.call("get", "feeds.b.example", PAYLOAD, 60))
        await server.sessions[0].expect()
        server.sessions[0].cut()
        with pytest.raises(LinkDownError):
            await wait_for(asking, "the failure of the request")
        with pytest.raises(LinkDownError):
            await stream.call("get", "feeds.b.example", PAYLOAD, 60)
        assert len(stream._requests) == 0


async def test_stream_tells_its_listeners_what_happens_and_gives_them_messages() -> None:
    """Answers and messages reach them as the stream has parsed them, and slixmpp's tree never."""
    taken = Taken(lambda element: element.get("id") == "taken")
    async with linked(taken) as (server, stream):
        heard: list[object] = []
        handed_on: list[str] = []
        spawn_event = stream._spawn_event

        def note(xml: Element) -> None:
            handed_on.append(xml.tag.partition("}")[2])
            spawn_event(xml)  # type: ignore[no-untyped-call]

        stream._spawn_event = note  # type: ignore[method-assign]
        ends = [
            stream.listen(
                lambda name=name: heard.append((name, "up")),  # type: ignore[misc]
                lambda name=name: heard.append((name, "down")),  # type: ignore[misc]
                lambda element, name=name: heard.append((name, element.get("id"))),  # type: ignore[misc]
            )
            for name in ("a", "b")
        ]
        session = server.sessions[0]
        asking = asyncio.ensure_future(stream.call("get", "feeds.b.example", PAYLOAD, 10))
        stanza_id = (await session.expect()).get("id")
        await session.send(
            "<message id='taken' from='x@y'/><message id='left' from='x@y'/>"
            f"<iq type='error' id='{stanza_id}' from='feeds.b.example'/>"
        )
        assert isinstance(await wait_for(asking, "the error"), etree._Element)
        ends[1]()
        session.cut()
        await stream.wait_closed()
        await stream.open()

        assert heard == [("a", "up"), ("b", "up"), ("a", "left"), ("b", "left"), ("a", "down"), ("a", "up")]
        assert handed_on == ["handshake"]


async def test_stream_listener_that_fails_does_not_end_the_link() -> None:
    async with linked(Taken(lambda _: False)) as (server, stream):
        heard: list[str | None] = []

        def fail(_element: etree._Element) -> None:
            raise ValueError("unforeseen")

        stream.listen(lambda: None, lambda: None, fail)
        stream.listen(lambda: None, lambda: None, lambda element: heard.append(element.get("id")))
        with capture_logs() as logs:
            await server.sessions[0].send("<message id='1' from='x@y'/><message id='2' from='x@y'/>")
            await synchronise(server.sessions[0])

        assert heard == ["1", "2"]
        assert [line["event"] for line in logs] == ["stanza_failed"] * 2


FEEDS = "feeds.b.example"
LARGE_BYTES = int(COSTLY_S / BYTE_COST_S)  # costly by its size alone, however fast the machine is


async def call(stream: ComponentStream, timeout_s: float = 10.0) -> object:
    """Asks as the service does."""
    return await stream.call("get", FEEDS, PAYLOAD, timeout_s)


@pytest.mark.parametrize(
    ("sender", "kind", "stanza_id", "copies", "rests"),
    [
        (FEEDS, "result", "", 1, False),
        (FEEDS, "error", "", 1, False),
        (FEEDS, "result", "", 2, True),
        (FEEDS, "result", "another", 1, True),
        (FEEDS, "get", "", 1, True),
        ("evil.example", "result", "", 1, True),
    ],
)
async def test_stream_sender_rests_after_a_large_stanza_unless_we_asked_for_it(
    sender: str,
    kind: str,
    stanza_id: str,
    copies: int,
    rests: bool,
) -> None:
    """An answer counts as requested once, from the entity that was asked, with the id of a request that is open."""
    taken = Taken(lambda element: element.tag.endswith("message"))
    async with linked(taken) as (server, stream):
        stream.turns = StanzaTurns(QueueBounds(), clock=FakeTime().clock)  # nobody's rest ends
        asking = asyncio.ensure_future(call(stream))
        open_id = (await server.sessions[0].expect()).get("id")
        large = (
            f"<iq type='{kind}' id='{stanza_id or open_id}' from='{sender}' to='{DOMAIN}'>"
            f"<r xmlns='urn:r'>{'x' * LARGE_BYTES}</r></iq>"
        )
        await server.sessions[0].send(large * copies + f"<message id='next' from='{sender}'/>")
        await synchronise(server.sessions[0])

        assert taken.ids == ([] if rests else ["next"])
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_stream_request_is_closed_by_its_timeout_or_with_the_link() -> None:
    """A late answer is charged as others are, and ids do not pile up."""
    async with linked() as (server, stream):
        await asyncio.gather(call(stream, 0.01), return_exceptions=True)
        assert len(stream._requests) == 0

        asking = asyncio.ensure_future(call(stream, 10))
        await server.sessions[0].expect()
        await server.sessions[0].expect()
        assert len(stream._requests) == 1
        server.sessions[0].cut()
        await stream.wait_closed()
        assert len(stream._requests) == 0
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
