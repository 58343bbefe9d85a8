"""Faults of the component link: what breaks, and that nothing is left behind (design section 3)."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from lxml import etree

from smartfeeds.errors import LinkError
from smartfeeds.xmpp.settings import LinkSettings
from smartfeeds.xmpp.stream import ComponentStream
from smartfeeds.xmpp.supervisor import Supervisor
from support.fakeserver import FakeServer
from support.faketime import FakeTime, settle
from support.link import DOMAIN, Taken, linked, make_stream
from support.waiting import wait_for

SETTINGS = LinkSettings(
    retry_first_s=0.5,
    retry_most_s=30.0,
    healthy_after_s=30.0,
    open_timeout_s=500.0,
    ping_idle_s=1_000.0,
    ping_timeout_s=200.0,
)
BACK_OFF_MOST_S = 30.0


@asynccontextmanager
async def supervised(server: FakeServer, taken: Taken) -> AsyncIterator[tuple[Supervisor, ComponentStream, FakeTime]]:
    """A supervisor that is running; whether it is online is the test's business."""
    time = FakeTime()
    stream = make_stream(server, taken)
    supervisor = Supervisor(stream, SETTINGS, clock=time.clock, sleep=time.sleep, random=lambda: 0.5)
    task = asyncio.create_task(supervisor.run())
    try:
        yield supervisor, stream, time
    finally:
        await supervisor.stop()
        await task


async def until_paused(stream: ComponentStream) -> None:
    while not stream.outbox.paused:  # noqa: ASYNC110 the transport tells only the outbox
        await asyncio.sleep(0)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_link_fifty_connects_leave_nothing_behind() -> None:
    """No descriptor, task, thread or timer is left after 50 links that ended in every way."""
    async with FakeServer(DOMAIN) as server:
        stream = make_stream(server, Taken())

        async def live(number: int) -> None:
            await stream.open()
            session = await server.session(number)
            if number % 4 == 0:
                session.cut()
            elif number % 4 == 1:
                await session.end()
            elif number % 4 == 2:
                stream.drop("lost")
            else:
                await session.stream_error("conflict")
            await stream.wait_closed()
            await wait_for(session.closed.wait(), "the end of the connection")

        await live(1)
        await settle()
        gc.collect()
        descriptors, tasks, threads = open_descriptors(), len(asyncio.all_tasks()), threading.active_count()
        for number in range(2, 52):
            await live(number)
        await settle()
        gc.collect()

        assert open_descriptors() == descriptors
        assert len(asyncio.all_tasks()) == tasks
        assert threading.active_count() == threads
        assert stream.outbox.epoch == 51
        await stream.close()
        await settle()
        assert len(asyncio.all_tasks()) == tasks - 1


async def test_link_twenty_streams_leave_no_task() -> None:
    """Also when each is a new object that is opened and closed in good order."""
    async with FakeServer(DOMAIN) as server:
        await settle()
        tasks = len(asyncio.all_tasks())
        for number in range(1, 21):
            stream = make_stream(server, Taken())
            await stream.open()
            await stream.close()
            await wait_for((await server.connection(number)).closed.wait(), f"the end of connection {number}")
        await settle()

        assert len(asyncio.all_tasks()) == tasks


@pytest.mark.parametrize(
    "cut",
    ["<iq type='set' id='half'><pub", "<iq type='set' id='half'><pubsub xmlns='p'>", "<iq type='set' id='ha", "<"],
)
async def test_link_closed_in_the_middle_of_a_stanza_forgets_the_half(cut: str) -> None:
    """A half stanza is never acted on, and never glued to the next link's first one. [xep-map 9]"""
    taken = Taken()
    async with FakeServer(DOMAIN) as server, supervised(server, taken) as (supervisor, _, time):
        session = await server.session(1)
        await session.send(f"<message id='whole'/>{cut}")
        session.writer.close()
        await time.until_sleeping(BACK_OFF_MOST_S)
        await time.advance(BACK_OFF_MOST_S)
        again = await server.session(2)
        await again.send("<message id='first'/>")
        await again.end()
        await time.until_sleeping(BACK_OFF_MOST_S)

        assert taken.ids == ["whole", "first"]
        assert supervisor.epoch == 2


async def test_link_garbage_is_followed_by_a_new_link() -> None:
    """[xep-map 9]"""
    taken = Taken()
    async with FakeServer(DOMAIN) as server, supervised(server, taken) as (supervisor, stream, time):
        await (await server.session(1)).send("<message></iq></message>")
        await time.until_sleeping(BACK_OFF_MOST_S)
        assert supervisor.last_error is not None
        assert supervisor.last_error.condition == "not-well-formed"
        assert not stream.outbox.online

        await time.advance(BACK_OFF_MOST_S)
        await server.session(2)
        await wait_for(supervisor.online.wait(), "the link")

        assert stream.outbox.epoch == 2


async def test_link_half_open_is_noticed_by_the_ping() -> None:
    """The server is gone and TCP does not know. [xep-map 11]"""
    async with FakeServer(DOMAIN) as server, supervised(server, Taken()) as (supervisor, _, time):
        first = await server.session(1)
        await wait_for(supervisor.online.wait(), "the link")
        server.switches.answer_pings = False
        first.stop_reading()
        await time.advance(SETTINGS.ping_idle_s)
        assert supervisor.online.is_set()
        await time.advance(SETTINGS.ping_timeout_s)
        await time.until_sleeping(BACK_OFF_MOST_S)
        assert supervisor.last_error is not None
        assert supervisor.last_error.condition == "ping-timeout"

        await time.advance(BACK_OFF_MOST_S)
        await server.session(2)


async def test_link_mute_server_is_given_up() -> None:
    """[xep-map 11]"""
    async with FakeServer(DOMAIN) as server:
        server.switches.mute = True
        async with supervised(server, Taken()) as (supervisor, _, time):
            session = await server.connection(1)
            await time.advance(SETTINGS.open_timeout_s)
            await time.until_sleeping(BACK_OFF_MOST_S)
            await wait_for(session.closed.wait(), "the end of the connection")

            assert supervisor.last_error is not None
            assert supervisor.last_error.condition == "timeout"


async def test_link_server_that_stops_reading_holds_memory_within_bounds() -> None:
    """Notifications wait; replies are dropped and counted beyond their bound; afterwards all is well."""
    async with linked() as (server, stream):
        session = await server.session()
        assert stream.transport is not None
        session.stop_reading()
        sending = asyncio.create_task(stream.outbox.notify([b"<message id='n'/>".ljust(1_300)] * 20_000))
        await until_paused(stream)
        reply = b"<iq type='result' id='r'/>".ljust(100_000)
        sent = sum(stream.outbox.reply(reply) for _ in range(200))
        await settle()

        assert 0 < sent < 90
        assert stream.outbox.dropped_replies == 200 - sent
        assert stream.transport.get_write_buffer_size() < 9_000_000
        session.read_again()
        assert await sending == 20_000
        while session.stanzas.qsize() < 20_000 + sent:
            await session.stanzas.join() if session.stanzas.empty() else await asyncio.sleep(0)
        assert not stream.outbox.paused
        assert stream.outbox.paused_s > 0.0


async def test_link_lost_during_a_fan_out_tells_the_sender_where_it_was() -> None:
    """[xep-map 9]"""
    async with linked() as (server, stream):
        session = await server.session()
        session.stop_reading()
        sending = asyncio.create_task(stream.outbox.notify([b"<message/>".ljust(1_300)] * 100_000))
        await until_paused(stream)
        session.cut()

        with pytest.raises(LinkError):
            await sending
        assert 0 < stream.outbox.written_notifications < 100_000
        assert not stream.outbox.online


async def test_link_close_does_not_wait_for_a_server_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping takes at most the time-out, whatever the server does."""
    monkeypatch.setattr("smartfeeds.xmpp.stream.CLOSE_TIMEOUT_S", 0.01)
    async with linked() as (server, stream):
        server.switches.close_with_footer = False
        session = await server.session()
        session.stop_reading()
        sending = asyncio.create_task(stream.outbox.notify([b"<message/>".ljust(1_300)] * 100_000))
        await until_paused(stream)

        await stream.close()

        with pytest.raises(LinkError):
            await sending
        assert stream.transport is None


async def test_link_server_end_while_it_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer to the server's footer that can never be flushed does not keep the old link for ever."""
    monkeypatch.setattr("smartfeeds.xmpp.stream.CLOSE_TIMEOUT_S", 0.01)
    async with linked() as (server, stream):
        session = await server.session()
        session.stop_reading()
        sending = asyncio.create_task(stream.outbox.notify([b"<message/>".ljust(1_300)] * 100_000))
        await until_paused(stream)
        await session.send("</stream:stream>")

        assert (await wait_for(stream.wait_closed(), "the end of the stream")).condition == "closed"
        with pytest.raises(LinkError):
            await sending


async def test_link_callback_that_closes_the_link_reads_no_further() -> None:
    """What is decided while a segment is read holds for the rest of the segment."""
    seen: list[str | None] = []
    holder: list[ComponentStream] = []

    def drop_at_two(element: etree._Element) -> bool:
        seen.append(element.get("id"))
        if element.get("id") == "2":
            holder[0].drop("stopped")
        return True

    async with FakeServer(DOMAIN) as server:
        stream = ComponentStream(DOMAIN, "secret", port=server.port, on_stanza=drop_at_two)
        holder.append(stream)
        await stream.open()
        await (await server.session()).send("".join(f"<message id='{number}'/>" for number in range(1, 6)))
        await stream.wait_closed()

        assert seen == ["1", "2"]
        await stream.close()
