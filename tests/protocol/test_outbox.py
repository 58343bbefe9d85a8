"""Two lanes of bytes, fair, within water marks (design section 3, fan-out)."""

import asyncio
from collections.abc import Iterator

import pytest

from smartfeeds.errors import LinkError
from smartfeeds.xmpp.outbox import BATCH_BYTES, HIGH_WATER_BYTES, REPLY_LIMIT_BYTES, Outbox
from support.faketime import FakeTime, settle
from support.link import linked
from support.waiting import until, wait_for


class Pipe:
    """A transport whose reader is the test: what is written waits until `read`."""

    def __init__(self, outbox: Outbox, high_bytes: int = 200_000, low_bytes: int = 50_000) -> None:
        self.outbox = outbox
        self.high_bytes = high_bytes
        self.low_bytes = low_bytes
        self.writes: list[bytes] = []
        self.waiting = 0

    def write(self, data: bytes, /) -> None:
        self.writes.append(data)
        self.waiting += len(data)
        if self.waiting > self.high_bytes:
            self.outbox.pause()

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def read(self) -> None:
        self.waiting = 0
        self.outbox.resume()


def online(reply_limit_bytes: int = REPLY_LIMIT_BYTES) -> tuple[Outbox, Pipe]:
    outbox = Outbox(reply_limit_bytes=reply_limit_bytes)
    pipe = Pipe(outbox)
    outbox.attach(pipe)
    pipe.waiting = 0
    return outbox, pipe


def stanzas(name: str, count: int, size_bytes: int = 1_300) -> Iterator[bytes]:
    for number in range(count):
        yield f"<message id='{name}{number}'/>".encode().ljust(size_bytes)


async def test_outbox_replies_of_one_turn_are_one_write_in_order() -> None:
    outbox, pipe = online()

    for number in range(5):
        assert outbox.reply(b"<%d/>" % number)
    assert pipe.writes == []
    await settle()
    outbox.reply(b"<5/>")
    await settle()

    assert pipe.writes == [b"<0/><1/><2/><3/><4/>", b"<5/>"]
    assert (outbox.written_replies, outbox.written_bytes) == (6, 24)


async def test_outbox_offline_refuses_both_lanes() -> None:
    """Nothing is queued while offline [xep-map 3]."""
    outbox = Outbox()

    assert not outbox.online
    assert not outbox.reply(b"<iq/>")
    with pytest.raises(LinkError):
        await outbox.notify([b"<message/>"])
    with pytest.raises(LinkError):
        await outbox.notify([])
    assert outbox.dropped_replies == 1


async def test_outbox_notifications_go_in_batches_of_whole_stanzas() -> None:
    outbox, pipe = online()
    reader = asyncio.create_task(outbox.notify(stanzas("a", 100)))
    await settle()
    pipe.read()

    assert await reader == 100
    assert b"".join(pipe.writes) == b"".join(stanzas("a", 100))
    assert all(len(write) % 1_300 == 0 and len(write) < BATCH_BYTES + 1_300 for write in pipe.writes)
    assert len(pipe.writes) == 2
    assert outbox.written_notifications == 100


async def test_outbox_paused_notifications_wait_and_go_on() -> None:
    outbox, pipe = online()
    sending = asyncio.create_task(outbox.notify(stanzas("a", 1_000)))
    await settle()

    assert outbox.paused and not sending.done()
    assert pipe.waiting <= pipe.high_bytes + BATCH_BYTES + 1_300
    while not sending.done():
        pipe.read()
        await settle()

    assert await sending == 1_000
    assert b"".join(pipe.writes) == b"".join(stanzas("a", 1_000))


async def test_outbox_reads_its_stanzas_only_as_fast_as_they_leave() -> None:
    """A fan-out to very many is never in memory as a whole."""
    outbox, _ = online()
    made = 0

    def counted() -> Iterator[bytes]:
        nonlocal made
        for stanza in stanzas("a", 100_000):
            made += 1
            yield stanza

    sending = asyncio.create_task(outbox.notify(counted()))
    await settle()

    assert made < 400
    sending.cancel()
    await asyncio.wait((sending,))


async def test_outbox_concurrent_senders_take_turns() -> None:
    """A small feed does not wait for a large one: fair between senders."""
    outbox, pipe = online()
    large = asyncio.create_task(outbox.notify(stanzas("L", 2_000)))
    await settle()
    small = asyncio.create_task(outbox.notify(stanzas("S", 10)))
    other = asyncio.create_task(outbox.notify(stanzas("O", 120)))
    await settle()
    while not (small.done() and other.done()):
        pipe.read()
        await settle()

    order = [write[13:14] for write in pipe.writes]
    first_small = order.index(b"S")
    assert not large.done()
    assert order.count(b"S") == 1 and order.count(b"O") == 3
    assert order[first_small : first_small + 2] == [b"S", b"O"]
    assert order[first_small + 2 : first_small + 6] in ([b"L", b"O", b"L", b"O"], [b"O", b"L", b"O", b"L"])
    large.cancel()
    await asyncio.wait((large,))


async def test_outbox_reply_goes_before_the_next_batch_and_while_paused() -> None:
    outbox, pipe = online()
    sending = asyncio.create_task(outbox.notify(stanzas("a", 1_000)))
    await settle()
    assert outbox.paused
    before = len(pipe.writes)

    outbox.reply(b"<iq/>")
    await settle()

    assert pipe.writes[before:] == [b"<iq/>"]
    outbox.reply(b"<iq2/>")
    pipe.read()
    outbox.flush()
    await settle()
    assert pipe.writes[before + 1] == b"<iq2/>"
    sending.cancel()
    await asyncio.wait((sending,))


async def test_outbox_reply_of_this_turn_goes_before_a_batch_of_this_turn() -> None:
    outbox, pipe = online()
    outbox.reply(b"<iq/>")

    await outbox.notify([b"<message/>"])

    assert pipe.writes == [b"<iq/>", b"<message/>"]


async def test_outbox_many_waiting_senders_go_over_the_mark_by_one_batch() -> None:
    """When the server reads again, one sender writes and the others see what that did."""
    outbox, pipe = online()
    senders = [asyncio.create_task(outbox.notify(stanzas("a", 200))) for _ in range(50)]
    await settle()
    while not all(sender.done() for sender in senders):
        pipe.read()
        await settle()
        assert pipe.waiting <= pipe.high_bytes + BATCH_BYTES + 1_300

    assert outbox.written_notifications == 10_000


async def test_outbox_server_that_does_not_read_bounds_the_reply_lane() -> None:
    """The component's memory is not the server's buffer [xep-map 249]."""
    outbox, pipe = online(reply_limit_bytes=10_000)

    sent = 0
    for _ in range(100):
        sent += outbox.reply(b"x" * 1_000)
        await settle()

    assert sent == 10
    assert outbox.dropped_replies == 90
    pipe.read()
    assert outbox.reply(b"x")


async def test_outbox_link_lost_while_waiting_raises_and_writes_nothing_more() -> None:
    """The caller keeps its mark [xep-map 9]."""
    outbox, pipe = online()
    sending = asyncio.create_task(outbox.notify(stanzas("a", 1_000)))
    await settle()
    behind = asyncio.create_task(outbox.notify(stanzas("b", 10)))
    await settle()
    written = len(pipe.writes)

    outbox.detach()
    await settle()

    for task in (sending, behind):
        with pytest.raises(LinkError):
            await task
    assert len(pipe.writes) == written
    assert not outbox.paused


async def test_outbox_new_link_while_waiting_raises_too() -> None:
    """The epoch is looked at again after every wait: half a fan-out never continues on another link [xep-map 9]."""
    outbox, pipe = online()
    sending = asyncio.create_task(outbox.notify(stanzas("a", 1_000)))
    await settle()
    outbox.detach()
    fresh = Pipe(outbox)
    outbox.attach(fresh)
    await settle()

    with pytest.raises(LinkError):
        await sending
    assert fresh.writes == []
    assert outbox.epoch == 2
    assert await outbox.notify(stanzas("b", 1)) == 1
    assert pipe.writes != fresh.writes


async def test_outbox_lost_link_takes_its_unsent_replies_with_it() -> None:
    outbox, pipe = online()
    outbox.reply(b"<iq/>")
    outbox.detach()
    fresh = Pipe(outbox)
    outbox.attach(fresh)
    await settle()

    assert pipe.writes == [] and fresh.writes == []
    assert outbox.dropped_replies == 1


async def test_outbox_caller_that_gives_up_leaves_the_turn_to_others() -> None:
    """Notifications wait up to a bound of age; then the caller drops them."""
    outbox, pipe = online()
    waiting = asyncio.create_task(outbox.notify(stanzas("a", 1_000)))
    await settle()
    second = asyncio.create_task(outbox.notify(stanzas("b", 10)))
    await settle()

    waiting.cancel()
    await asyncio.wait((waiting,))
    pipe.read()

    assert await second == 10


async def test_outbox_pause_counts_seconds() -> None:
    time = FakeTime()
    outbox = Outbox(clock=time.clock)
    outbox.attach(Pipe(outbox))

    outbox.pause()
    time.now_s += 3.0
    assert outbox.paused_s == pytest.approx(3.0)
    outbox.resume()
    time.now_s += 5.0
    outbox.pause()
    outbox.pause()
    time.now_s += 1.0
    outbox.detach()

    assert outbox.paused_s == pytest.approx(4.0)


async def test_outbox_ten_thousand_recipients_never_hold_the_loop() -> None:
    """Other tasks run between any two batches: the work between two turns of the loop is one batch (section 6).

    Counted in bytes and turns, not in time, so that a busy machine does not decide.
    """
    count = 10_000
    turns = 0
    finished = False

    async with linked() as (server, stream):
        session = await server.session()
        largest = 0

        async def watch() -> None:
            nonlocal turns, largest
            before = stream.outbox.written_bytes
            while not finished:
                await asyncio.sleep(0)
                turns += 1
                largest = max(largest, stream.outbox.written_bytes - before)
                before = stream.outbox.written_bytes

        watching = asyncio.create_task(watch())
        assert await stream.outbox.notify(stanzas("a", count)) == count
        finished = True
        await watching

        assert turns >= count * 1_300 // (BATCH_BYTES + 1_300)
        assert largest <= BATCH_BYTES + 1_300
        assert session is not None


async def test_outbox_slow_server_pauses_the_real_transport() -> None:
    """slixmpp leaves `pause_writing` empty; here it reaches the outbox."""
    async with linked() as (server, stream):
        session = await server.session()
        assert stream.transport is not None
        session.stop_reading()
        sending = asyncio.create_task(stream.outbox.notify(stanzas("a", 40_000)))
        await until(lambda: stream.outbox.paused, "the pause of the outbox")
        await settle()

        size_bytes = stream.transport.get_write_buffer_size()
        assert HIGH_WATER_BYTES < size_bytes <= HIGH_WATER_BYTES + BATCH_BYTES + 1_300
        assert not sending.done()
        session.cut()
        with pytest.raises(LinkError):
            await sending


async def test_outbox_goes_on_when_the_slow_server_reads_again() -> None:
    """The transport says when its buffer is empty enough, and the sender waits for nothing else."""
    async with linked() as (server, stream):
        session = await server.session()
        session.stop_reading()
        sending = asyncio.create_task(stream.outbox.notify(stanzas("a", 4_000)))
        await until(lambda: stream.outbox.paused, "the pause of the outbox")
        session.read_again()

        assert await wait_for(sending, "the rest of the notifications") == 4_000
        await until(lambda: not stream.outbox.paused, "the end of the pause")
        await stream.close()
