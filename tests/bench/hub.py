"""The work of the hub: one publish to many callbacks, and publishes meanwhile (`bench.rows` has the rows)."""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench import stanzas, targets, work
from bench.runs import Collector, fresh
from bench.targets import Target
from bench.web_targets import free_port
from bench.wire import BenchError, Wire, cpu_s
from bench.work import Number, Numbers
from smartfeeds.core.view import Order
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.hub.protocol import HUB_TERMS, HubTerms
from smartfeeds.features.hub.requests import HUB
from smartfeeds.service.consumers import add_consumer
from smartfeeds.store.base import WriteTx
from support.service import stored_service

SITE = "http://feeds.example"
NODE = "hub"
HOSTS = 250  # addresses of this machine, each of which stands for a host
PUBLISHES = 200  # one at a time, for their latency
PATIENCE_S = 60.0
# No lease ends while the benchmark runs.
_ENDS_US = 2**60


def measure(collect: Collector, folder: Path) -> None:
    """Our component with its hub, and callbacks in another process."""
    for run in range(collect.scale.runs):
        collect.take("ours", _run(fresh(folder / f"hub-{run}"), collect.scale.callbacks))


def _run(folder: Path, count: int) -> Numbers:
    http_port, callback_port = free_port(), free_port()
    http = {"listen": f"127.0.0.1:{http_port}", "base_url": SITE}
    database = folder / "feeds.db"
    with subprocess.Popen(
        [sys.executable, "-m", "bench.receiver", str(callback_port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=targets.environment(),
    ) as receiver:
        assert receiver.stdin is not None and receiver.stdout is not None
        try:
            if receiver.stdout.readline() != "ready\n":
                raise BenchError("the callbacks could not be started")
            target, _ = targets.ours(folder, targets.sqlite_url(database), http=http)
            try:
                target.wire.ask(stanzas.create(targets.FEEDS, NODE, "u0", {}))
                target.wire.ask(stanzas.create(targets.FEEDS, "alone", "u0", {}))
            finally:
                target.stop()
            asyncio.run(_subscribe(folder / "smartfeeds.toml", callback_port, count))
            target, _ = targets.ours(folder, targets.sqlite_url(database), http=http)
            try:
                yield from _deliver(target, receiver, count)
            finally:
                target.stop()
        finally:
            receiver.kill()


async def _subscribe(config: Path, port: int, count: int) -> None:
    """Subscriptions that are confirmed already."""
    terms = HUB_TERMS.write(HubTerms("", "", secret="secret"))

    def fill(tx: WriteTx) -> None:
        node = tx.node(NODE)
        assert node is not None
        for number in range(count):
            host = f"127.0.1.{number % HOSTS + 1}"
            url, topic = f"http://{host}:{port}/{number}", f"{SITE}/feeds/{NODE}/"
            row = Callback(HUB.name, node.node_no, url, topic, host, 0, _ENDS_US, active=True, settings=terms)
            add_consumer(tx, callback_rows.put(tx, row).consumer, Order.MODIFIED)

    async with stored_service(config) as service:
        await service.store.write(fill)


def _deliver(target: Target, receiver: "subprocess.Popen[str]", count: int) -> Numbers:
    wire = target.wire
    alone_ms = _latencies_ms(wire, "alone")
    source = stanzas.publishes(targets.FEEDS, NODE)
    for warm in (True, False):
        began_s, used_s = time.monotonic(), cpu_s(target.pid)
        wire.ask(next(source))
        published_ms = (time.monotonic() - began_s) * 1000
        first_s, last_s = _times(receiver, count)
        if not warm:
            cpu = f"CPU {(cpu_s(target.pid) - used_s) / count * 1e6:.0f} us each"
            note = f"first after {first_s - began_s:.3f} s, the publish itself {published_ms:.1f} ms, {cpu}"
            yield Number("hub", last_s - began_s, note)
    # A publish to the other feed while the deliveries of this one run.
    meanwhile_ms: list[float] = []
    while len(meanwhile_ms) < PUBLISHES:
        wire.ask(next(source))
        meanwhile_ms += _latencies_ms(wire, "alone", 10)
        _times(receiver, count)
    yield Number("hub_publish", statistics.median(meanwhile_ms), f"p99 {work.percentile(meanwhile_ms, 0.99):.1f} ms")
    yield Number("hub_publish_alone", statistics.median(alone_ms), f"p99 {work.percentile(alone_ms, 0.99):.1f} ms")


def _latencies_ms(wire: Wire, node: str, count: int = PUBLISHES) -> list[float]:
    found = []
    for _, stanza in zip(range(count), stanzas.publishes(targets.FEEDS, node), strict=False):
        began_s = time.monotonic()
        wire.ask(stanza)
        found.append((time.monotonic() - began_s) * 1000)
    return found


def _times(receiver: "subprocess.Popen[str]", count: int) -> tuple[float, float]:
    assert receiver.stdin is not None and receiver.stdout is not None
    receiver.stdin.write(f"{count}\n")
    receiver.stdin.flush()
    first, _, last = receiver.stdout.readline().partition(" ")
    return float(first), float(last)
