"""The pieces of work: each is done to a target and gives numbers by row (see `report.ROWS`)."""

import itertools
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from bench import fill, stanzas
from bench.targets import Routed, Target
from bench.wire import ANSWER, EVENT, BenchError, Pace, cpu_s, rss_mb

_LAST = re.compile(rb"<last[^>]*>([^<]*)</last>")
SLOW_PER_S = 50  # a target that answers fewer pages is asked one at a time: it works on one at a time anyway
IN_FLIGHT = 64
PAGES_IN_FLIGHT = 16
REST_S = 10.0
TICK_S = 0.01  # of the clock of CPU time
EVENTS_AHEAD = 8  # publishes whose events are on the way


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured: runs, seconds for a piece of work, and the greatest counts."""

    runs: int = 3
    slice_s: float = 3.0
    publishes: int = 100_000
    subscribers: int = 1_000
    nodes: int = 10_000
    subscriptions: int = 10_000
    items: int = 1_000_000
    standing: int = 100_000  # subscriptions that are there when the memory is measured
    pages: int = 20_000
    latencies: int = 2_000
    fill_s: float = 20.0  # how long a peer's large node is filled
    web_items: int = 10_000  # in the feed whose pages are read over HTTP
    web_polls: int = 10_000
    web_streams: int = 1_000
    web_changes: int = 100
    web_rounds: int = 5
    callbacks: int = 1_000
    merged: int = 100_000  # items of each of two feeds
    sources: int = 2_000  # feeds that are polled
    fair_items: int = 50_000  # in the feed that floods read
    fair_s: float = 5.0  # for the quiet users alone, and for them beside each flood
    fair_in_flight: int = IN_FLIGHT  # requests of the flood
    processes: tuple[int, ...] = (1, 2, 3)  # of the service on one database
    quiet_s: float = 1.3  # a target without work for so long has none: the filter index begins after a second


FULL: Final = Scale()
QUICK: Final = Scale(
    runs=1,
    slice_s=1.0,
    nodes=2_000,
    subscriptions=5_000,
    items=100_000,
    standing=10_000,
    fill_s=3.0,
    web_rounds=2,
    merged=20_000,
    sources=500,
    fair_s=1.5,
)
SMOKE: Final = Scale(
    runs=1,
    slice_s=0.2,
    publishes=40,
    subscribers=5,
    nodes=20,
    subscriptions=20,
    callbacks=10,
    items=200,
    standing=20,
    pages=20,
    latencies=10,
    fill_s=0.2,
    web_items=200,
    web_polls=20,
    web_streams=5,
    web_changes=3,
    web_rounds=2,
    merged=120,
    sources=30,
    fair_items=600,
    fair_s=0.1,
    fair_in_flight=2,
    quiet_s=0.05,
    processes=(1,),
)


@dataclass(frozen=True, slots=True)
class Number:
    """One measurement: which row it belongs to, its value, and what else there is to know about it."""

    row: str
    value: float
    note: str = ""


Numbers = Iterator[Number]
_fresh = itertools.count(1)


def new_node(target: Target) -> str:
    """A node of its own for a piece of work."""
    name = f"bench-{next(_fresh)}"
    target.wire.ask(stanzas.create(target.address, name, "u0", target.options))
    return name


def publish(target: Target, scale: Scale) -> Numbers:
    """64 in flight, then one at a time."""
    for row, in_flight in (("publish_64", IN_FLIGHT), ("publish_1", 1)):
        node = new_node(target)
        source = itertools.islice(stanzas.publishes(target.address, node), scale.publishes)
        yield from _paced(target, scale, row, source, in_flight=in_flight, seconds=scale.slice_s)


def notify(target: Target, scale: Scale) -> Numbers:
    """Events to the subscribers of one node, as the driver receives them."""
    node = new_node(target)
    count = scale.subscribers
    target.wire.rate(
        stanzas.many(lambda number: stanzas.subscribe(target.address, node, number), count), in_flight=16, seconds=60
    )
    target.wire.settle()
    source = stanzas.publishes(target.address, node)
    yield from _paced(
        target, scale, "notify", source, in_flight=EVENTS_AHEAD, seconds=scale.slice_s, marker=EVENT, each=count
    )


def _paced(
    target: Target,
    scale: Scale,
    row: str,
    source: Iterable[bytes],
    *,
    in_flight: int,
    seconds: float,
    marker: bytes = ANSWER,
    each: int = 1,
    note: str = "",
) -> Numbers:
    """The rate of a piece of work, and the CPU time of one answer, which differs less from run to run.

    The time includes what the target does afterwards, such as its index.
    """
    used_s = cpu_s(target.pid)
    pace = target.wire.rate(source, in_flight=in_flight, seconds=seconds, marker=marker, each=each)
    rest(target, scale)
    yield Number(row, pace.per_s, note or f"{pace.done} answers")
    yield Number(f"{row}_cpu", (cpu_s(target.pid) - used_s) / max(1, pace.done) * 1e6)


def rest(target: Target, scale: Scale) -> None:
    """Waits until the target has nothing to do, for some seconds at most."""
    until = time.monotonic() + REST_S
    used_s = -1.0
    while cpu_s(target.pid) > used_s and time.monotonic() < until:
        used_s = cpu_s(target.pid) + TICK_S
        target.wire.settle(scale.quiet_s)


def _us(seconds: float, count: int) -> str:
    return f"{seconds / max(1, count) * 1e6:.1f} us each"


def create_nodes(target: Target, scale: Scale) -> Numbers:
    """Nodes by ten users; in all runs together those that are listed then."""
    batch = next(_fresh)
    source = stanzas.many(
        lambda n: stanzas.create(target.address, f"made-{batch}-{n}", f"u{n % stanzas.USERS}", target.options),
        scale.nodes // scale.runs,
    )
    yield from _paced(target, scale, "create", source, in_flight=IN_FLIGHT, seconds=scale.slice_s * 2)


def list_nodes(target: Target, scale: Scale) -> Numbers:
    """Pages of 50 of all nodes: the first twenty over and over."""
    positions = [""]
    for _ in range(20):
        last = _LAST.search(target.wire.ask(stanzas.listing(target.address, positions[-1])))
        if last is None:
            break
        positions.append(f"<after>{last[1].decode()}</after>")
    yield from pages(target, scale, "list", lambda n: stanzas.listing(target.address, positions[n % len(positions)]))


def subscribe(target: Target, scale: Scale) -> Numbers:
    """Ever more subscribers to one node: the whole, and the last tenth against the first."""
    node = new_node(target)
    paces: list[Pace] = []
    step = max(1, scale.subscriptions // 10)
    left_s = scale.slice_s * 3
    used_s = cpu_s(target.pid)
    for first in range(0, scale.subscriptions, step):
        source = (stanzas.subscribe(target.address, node, number) for number in range(first, first + step))
        paces.append(target.wire.rate(source, in_flight=IN_FLIGHT, seconds=left_s))
        left_s -= paces[-1].seconds
        if left_s <= 0:
            break
    rest(target, scale)
    done, seconds = sum(pace.done for pace in paces), sum(pace.seconds for pace in paces)
    note = f"{done} subscribers, first {paces[0].per_s:.0f}/s, last {paces[-1].per_s:.0f}/s"
    yield Number("subscribe", done / seconds, note)
    yield Number("subscribe_cpu", (cpu_s(target.pid) - used_s) / max(1, done) * 1e6)


def pages(target: Target, scale: Scale, row: str, make: Callable[[int], bytes], note: str = "") -> Numbers:
    """The same kind of page over and over: how many a second, and how long the slowest of a hundred takes."""
    one_by_one = stanzas.many(make, scale.latencies)
    used_s = cpu_s(target.pid)
    taken = target.wire.latencies(one_by_one, seconds=scale.slice_s)
    used_s = cpu_s(target.pid) - used_s
    yield Number(f"{row}_p99", percentile(taken, 0.99) * 1000, f"median {statistics.median(taken) * 1000:.2f} ms")
    alone_per_s = len(taken) / sum(taken)
    if alone_per_s < SLOW_PER_S:
        yield Number(row, alone_per_s, note)
        yield Number(f"{row}_cpu", used_s / len(taken) * 1e6)
        return
    source = stanzas.many(make, scale.pages)
    yield from _paced(target, scale, row, source, in_flight=PAGES_IN_FLIGHT, seconds=scale.slice_s, note=note)


def percentile(values: list[float], part: float) -> float:
    """The value that this part of all values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def first_pages(target: Target, scale: Scale, node: str, row: str, items: int) -> Numbers:
    """The first page of a node, again and again."""
    yield from pages(target, scale, row, lambda _: target.page(target.address, node), f"{items} items")


def fill_node(target: Target, node: str, first: int, last: int, seconds: float) -> int:
    """Publishes until a node has so many items, or the time is over; how many it has."""
    source = itertools.islice(stanzas.publishes(target.address, node, first), last - first + 1)
    return first - 1 + target.wire.rate(source, in_flight=IN_FLIGHT, seconds=seconds).done


def our_pages(target: Target, scale: Scale) -> Numbers:
    """Pages of our filled nodes at the start, in the middle and at the end."""
    for size in fill.sizes(scale.items):
        for place, first in (("start", 0), ("middle", size // 2), ("end", max(0, size - 60))):
            if place == "start" and size in fill.sizes(scale.items)[:2]:
                continue  # measured beside other services
            # Not the same page each time: a few hundred neighbours, and at the end those before the newest items.
            spread = max(1, min(400, size // 4))
            direction = -1 if place == "end" else 1

            def make(
                n: int, first: int = first, step: int = direction, spread: int = spread, size: int = size
            ) -> bytes:
                after = fill.cursor(max(0, first + step * (n * 7 % spread)))
                return stanzas.page(target.address, fill.node_name(size), f"<after>{after}</after>")

            yield from pages(target, scale, f"page_{size}_{place}", make)


def memory(target: Target, row: str) -> Numbers:
    """What the process has in RAM now."""
    yield Number(row, rss_mb(target.pid))


def tell_crowd(target: Target, scale: Scale) -> Numbers:
    """One item to all the standing subscribers, and what the process has in RAM after that."""
    source = itertools.islice(stanzas.publishes(target.address, fill.CROWD, next(_fresh) * 1000), 1)
    pace = target.wire.rate(source, in_flight=1, seconds=1, marker=EVENT, each=scale.standing)
    target.wire.settle()
    yield Number("crowd", pace.per_s, f"{pace.done} events of one item in {pace.seconds:.2f} s")
    yield from memory(target, "rss_worked")


def through_server(routed: Routed, scale: Scale) -> Numbers:
    """Events by way of a real server to client-less users: how many arrive, and who has used how much CPU."""
    target = routed.target
    wait_for(target)
    node = new_node(target)
    count = scale.subscribers
    target.wire.rate(
        stanzas.many(lambda number: stanzas.subscribe(target.address, node, number), count), in_flight=16, seconds=60
    )
    target.wire.settle()
    before = cpu_s(target.pid), cpu_s(routed.server_pid)
    pace = target.wire.rate(
        stanzas.publishes(target.address, node),
        in_flight=EVENTS_AHEAD,
        seconds=scale.slice_s,
        marker=EVENT,
        each=count,
    )
    target.wire.settle()
    ours, servers = cpu_s(target.pid) - before[0], cpu_s(routed.server_pid) - before[1]
    name = target.name.split()[-1]
    yield Number(f"through_{name}", pace.per_s, f"CPU ours {_us(ours, pace.done)}, server {_us(servers, pace.done)}")
    yield Number(f"through_{name}_cpu", ours / servers * 100 if servers else 0.0)


def wait_for(target: Target) -> None:
    """Until our component answers through the server."""
    until = time.monotonic() + 20
    while True:
        try:
            target.wire.ask(stanzas.listing(target.address))
            return
        except BenchError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
