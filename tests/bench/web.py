"""The work over HTTP: pages beside other servers, held pulls, event streams (`bench.rows` has the rows)."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from bench import fill, stanzas, targets, work
from bench.runs import FILL_S, Collector, fresh
from bench.web_targets import PEERS, OurWeb, WebTarget, clients, get, ours
from bench.wire import BenchError, Wire, cpu_s, rss_mb
from bench.work import Number, Numbers, Scale

Server = TypeVar("Server", bound=WebTarget)

SCRIPT = Path(__file__).with_name("urls.lua")
CONNECTIONS = 16
FORMS: Final = {"json": "application/json", "atom": "application/atom+xml"}
PAGES = 2_000  # different ones, of which each is asked for in turn
SCATTER = 7_919
QUIET_S = 0.5
MOST_PATIENCE_S = 300.0
LONGEST_S = 600


@dataclass(frozen=True, slots=True)
class Load:
    """What wrk found out."""

    requests: int
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float  # of the server, for one request

    @property
    def note(self) -> str:
        """What is not the rate."""
        return f"median {self.p50_ms:.2f} ms, p99 {self.p99_ms:.2f} ms, CPU {self.cpu_us:.0f} us"


def measure(collect: Collector, folder: Path, peers: Collection[str] = tuple(PEERS)) -> None:
    """Everything over HTTP, and the pages of these peers."""
    scale = collect.scale
    database = fresh(folder) / "feeds.db"
    counts = (scale.web_items, 0, scale.web_polls)
    command = [sys.executable, "-m", "bench.fill", targets.sqlite_url(database), *map(str, counts)]
    subprocess.run(command, check=True, timeout=FILL_S, env=targets.environment())
    for _ in range(scale.runs):
        for piece in (pages, polls, many_polls, polls_apart, streams):
            with _running(partial(ours, folder, database)) as target:
                collect.take("ours", piece(target, scale))
        prepared = [folder / f"page.{suffix}" for suffix in FORMS]
        for name in peers:
            with _running(partial(PEERS[name], fresh(folder / name), prepared)) as peer:
                collect.take(name, peer_pages(peer, scale))


@contextmanager
def _running(start: Callable[[], Server]) -> Iterator[Server]:
    target = start()
    try:
        yield target
    finally:
        target.stop()


def pages(target: OurWeb, scale: Scale) -> Numbers:
    """Pages of 50 items: the same one, ever other ones, and those that the asker has already."""
    feed = f"/feeds/{fill.node_name(scale.web_items)}/?max=50&since="
    size = scale.web_items
    same = feed + fill.cursor(size // 2)
    count = min(PAGES, size)
    many = [feed + fill.cursor(number * SCATTER % max(1, size - 51)) for number in range(count)]
    for suffix, accept in FORMS.items():
        got = get(target.port, same, accept)
        if got.body.count(b'"verb":') + got.body.count(b"<entry") != 50:
            raise BenchError(f"a page has not 50 items: {got.body[:300]!r}")
        (target.folder / f"page.{suffix}").write_bytes(got.body)
        yield _number(f"web_{suffix}_same", load(target, scale, [same], accept))
        yield _number(f"web_{suffix}_other", load(target, scale, many, accept))
        yield _number(f"web_{suffix}_304", load(target, scale, [same], accept, got.etag))
    yield from meanwhile(target, scale, many)


def meanwhile(target: OurWeb, scale: Scale, paths: list[str]) -> Numbers:
    """How long XMPP waits while as many pages are asked for as can be had."""
    node = _node(target.wire)
    source = stanzas.publishes(targets.FEEDS, node)
    found: list[Load] = []
    reading = threading.Thread(target=lambda: found.append(load(target, scale, paths, FORMS["json"])), daemon=True)
    pings: list[float] = []
    publishes: list[float] = []
    reading.start()
    while reading.is_alive():
        pings.append(_taken_s(target.wire, _ping()))
        publishes.append(_taken_s(target.wire, next(source)))
    slow_ms = work.percentile(publishes, 0.99) * 1000
    if not found:
        raise BenchError("the pages could not be had meanwhile")
    note = f"publish p99 {slow_ms:.1f} ms, pages {found[0].per_s:,.0f}/s"
    yield Number("web_ping", max(pings) * 1000, f"p99 {work.percentile(pings, 0.99) * 1000:.1f} ms; {note}")


def peer_pages(target: WebTarget, scale: Scale) -> Numbers:
    """The page with the same bytes, or of the same items."""
    for suffix, accept in FORMS.items():
        path = f"/page.{suffix}"
        got = get(target.port, path, accept)
        yield _number(f"web_{suffix}_same", load(target, scale, [path], accept))
        if got.etag:
            yield _number(f"web_{suffix}_304", load(target, scale, [path], accept, got.etag))


def load(target: WebTarget, scale: Scale, paths: list[str], accept: str, etag: str = "") -> Load:
    """As many requests as wrk gets answered on a few connections. Raises BenchError where one is not."""
    file = target.folder / "paths"
    file.write_text("".join(f"{path}\n" for path in paths))
    headers = [f"Accept: {accept}", *([f"If-None-Match: {etag}"] if etag else [])]
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(scale.slice_s))}s", "--timeout", "10s"]
    command += ["-s", str(SCRIPT), f"http://127.0.0.1:{target.port}/", "--", str(file), *headers]
    used_s = cpu_s(target.pid)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines[-1].startswith("{"):
        raise BenchError(f"wrk: {done.stdout[-500:]} {done.stderr[-500:]}")
    said = json.loads(lines[-1])
    if said["failed"] or not said["requests"]:
        raise BenchError(f"wrk: {said['failed']} of {said['requests']} requests failed")
    used_us = (cpu_s(target.pid) - used_s) / said["requests"] * 1e6
    return Load(said["requests"], said["requests"] / said["seconds"], said["p50_ms"], said["p99_ms"], used_us)


def polls(target: OurWeb, scale: Scale) -> Numbers:
    """A thousand held pulls of one feed."""
    return _polls(target, scale, min(1_000, scale.web_polls), "")


def many_polls(target: OurWeb, scale: Scale) -> Numbers:
    """Ten thousand."""
    return _polls(target, scale, scale.web_polls, "_many")


def _polls(target: OurWeb, scale: Scale, count: int, suffix: str) -> Numbers:
    """What each takes in memory, and when the first, the middle and the last has its answer."""
    node = _node(target.wire)
    source = stanzas.publishes(targets.FEEDS, node)
    target.wire.ask(next(source))
    get(target.port, "/feeds/w0/?max=1")
    before_mb = rss_mb(target.pid)
    path = f"/feeds/{node}/?since=cursor:{_cursor(target, node)}&timeout={LONGEST_S}"
    with _crowd("polls", target, count, scale.web_rounds, path) as crowd:
        for number in range(scale.web_rounds):
            crowd.heard()
            _settle(target.pid)
            if not number:
                yield _memory(f"web_poll_memory{suffix}", target, before_mb, count)
            yield from _woken(target, crowd, next(source), suffix, number)


def _woken(target: OurWeb, crowd: "_Crowd", stanza: bytes, suffix: str, number: int) -> Numbers:
    """One item for all that wait."""
    began_s = time.monotonic()
    target.wire.ask(stanza)
    acknowledged_s = time.monotonic()
    pings = [_taken_s(target.wire, _ping())]
    while not crowd.told:
        pings.append(_taken_s(target.wire, _ping()))
    answered = crowd.heard()
    first, middle, last = ((answered[key] - began_s) * 1000 for key in ("first", "middle", "last"))
    note = f"first {first:.1f} ms, middle {middle:.1f} ms, acknowledged {(acknowledged_s - began_s) * 1000:.1f} ms"
    if number:  # the first time, everything that is made once is made
        yield Number(f"web_woken{suffix}", last, note)
        yield Number(f"web_woken_ping{suffix}", max(pings) * 1000, f"median {statistics.median(pings) * 1000:.2f} ms")


def polls_apart(target: OurWeb, scale: Scale) -> Numbers:
    """As many pulls held on as many feeds, of which one changes."""
    count = scale.web_polls
    get(target.port, "/feeds/w0/?max=1")
    before_mb = rss_mb(target.pid)
    path = f"/feeds/w{{n}}/?since={fill.cursor(0)}&timeout={LONGEST_S}"
    with _crowd("polls", target, count, 1, path) as crowd:
        crowd.heard()
        _settle(target.pid)
        yield _memory("web_poll_memory_apart", target, before_mb, count)
        node = _node(target.wire)
        source = stanzas.publishes(targets.FEEDS, node)
        target.wire.ask(next(source))
        cursor = _cursor(target, node)
        for _ in range(scale.web_rounds):
            path = f"/feeds/{node}/?since=cursor:{cursor}&timeout={LONGEST_S}"
            with _crowd("polls", target, 1, 1, path) as one:
                one.heard()
                _settle(target.pid)
                began_s = time.monotonic()
                target.wire.ask(next(source))
                yield Number("web_woken_apart", (one.heard()["last"] - began_s) * 1000)
            cursor = _cursor(target, node)


def streams(target: OurWeb, scale: Scale) -> Numbers:
    """Event streams of one feed: what each takes in memory, and how many items a second they get together."""
    node = _node(target.wire)
    source = stanzas.publishes(targets.FEEDS, node)
    target.wire.ask(next(source))
    get(target.port, f"/feeds/{node}/?max=1")
    before_mb = rss_mb(target.pid)
    with _crowd("streams", target, scale.web_streams, scale.web_rounds, f"/feeds/{node}/") as crowd:
        crowd.heard()
        _settle(target.pid)
        yield _memory("web_stream_memory", target, before_mb, scale.web_streams)
        for _ in range(scale.web_rounds):
            crowd.tell(str(scale.web_changes))
            began_s = time.monotonic()
            for _ in range(scale.web_changes):
                target.wire.ask(next(source))
            published_s = time.monotonic() - began_s
            taken_s = crowd.heard()["last"] - began_s
            note = f"{scale.web_changes} publishes one after the other, acknowledged after {published_s:.2f} s"
            yield Number("web_stream", scale.web_streams * scale.web_changes / taken_s, note)


class _Crowd:
    """A crowd that is there; what it says is read by a thread, so that others can be asked meanwhile."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: list[dict[str, float]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._ended = False
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._lines.append(json.loads(line))
                self._news.notify()
        with self._news:
            self._ended = True
            self._news.notify()

    @property
    def told(self) -> bool:
        """Whether there is something to hear."""
        return bool(self._lines) or self._ended

    def heard(self) -> dict[str, float]:
        """What it says next."""
        with self._news:
            self._news.wait_for(lambda: self.told, MOST_PATIENCE_S)
            if not self._lines:
                raise BenchError("the crowd has gone, or hears nothing")
            return self._lines.pop(0)

    def tell(self, line: str) -> None:
        """Says something to it."""
        assert self._process.stdin is not None
        print(line, file=self._process.stdin, flush=True)


@contextmanager
def _crowd(kind: str, target: WebTarget, count: int, rounds: int, path: str) -> Iterator[_Crowd]:
    process = clients(kind, target.port, count, rounds, path)
    try:
        yield _Crowd(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _node(wire: Wire) -> str:
    name = f"web-{time.monotonic_ns()}"
    wire.ask(stanzas.create(targets.FEEDS, name, "u0", {}))
    return name


def _cursor(target: OurWeb, node: str) -> str:
    return str(json.loads(get(target.port, f"/feeds/{node}/?until=&max=1").body)["last_cursor"])


def _ping() -> bytes:
    return stanzas.iq("get", targets.FEEDS, "<query xmlns='http://jabber.org/protocol/disco#info'/>")


def _taken_s(wire: Wire, stanza: bytes) -> float:
    began_s = time.monotonic()
    wire.ask(stanza)
    return time.monotonic() - began_s


def _number(row: str, found: Load) -> Number:
    return Number(row, found.per_s, found.note)


def _memory(row: str, target: WebTarget, before_mb: float, count: int) -> Number:
    now_mb = rss_mb(target.pid)
    return Number(row, (now_mb - before_mb) * 1000 / count, f"{before_mb:.1f} MB before, {now_mb:.1f} MB with {count}")


def _settle(pid: int) -> None:
    """Waits until the target has nothing more to do: what was sent to it is being held then."""
    until = time.monotonic() + MOST_PATIENCE_S
    ticks = quiet = 0
    while quiet < 2:
        time.sleep(QUIET_S / 2)
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        now = int(fields[11]) + int(fields[12])
        quiet = quiet + 1 if now - ticks <= QUIET_S / 2 * os.sysconf("SC_CLK_TCK") * 0.05 else 0
        ticks = now
        if time.monotonic() > until:
            raise BenchError("the target does not come to rest")
