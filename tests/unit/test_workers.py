"""The processes that read documents: their limits, their end, what they return, and the turns of parties."""

import asyncio
import io
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.features.polling.reading import read_source
from smartfeeds.features.polling.source import new_source
from smartfeeds.formats.payload import Payload
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.worker_codec import dump_value, load_value, make
from smartfeeds.worker_process import WorkerLimits, read_frame, write_frame
from smartfeeds.workers import DocumentWorkers, WorkerError

URL = "https://a.example/feed"
SOURCE = new_source("n", URL, 0)


def feed(inside: bytes) -> bytes:
    head = b"<id>i</id><title>t</title><updated>2026-01-01T00:00:00Z</updated>"
    return b"<feed xmlns='http://www.w3.org/2005/Atom'>%s%s</feed>" % (head, inside)


def entry(number: int, inside: bytes = b"") -> bytes:
    times = b"<updated>2026-01-01T00:00:00Z</updated>"
    return b"<entry><id>urn:%d</id><title>t</title>%s%s</entry>" % (number, times, inside)


SMALL = feed(entry(1))
LARGE = feed(entry(1, b"<x>%s</x>" % (b"<a b='c' d='e'/>" * 20_000)))


@pytest.fixture
async def workers() -> AsyncIterator[DocumentWorkers]:
    """One process at a time, with a small limit of memory. A slow machine does not reach that of processor time."""
    workers = DocumentWorkers(WorkerLimits(cpu_s=60, memory_bytes=4 * 1024 * 1024), at_once=1)
    yield workers
    workers.close()


async def read(workers: DocumentWorkers, body: bytes, party: str = "") -> int:
    """The number of items in a document."""
    document = await workers(read_source, body, "", URL, SOURCE, "", (), party=party)
    return len(document.items)


def is_running(pid: int) -> bool:
    """Whether a process exists, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until(condition: Callable[[], object], what: str) -> None:
    # Here, because the processes import this module for its functions, and have no path to other modules of tests.
    from support import waiting

    await waiting.until(condition, what)


async def until_ended(pid: int) -> None:
    await until(lambda: not is_running(pid), f"the end of process {pid}")


async def test_no_process_is_started_before_the_first_document(workers: DocumentWorkers) -> None:
    assert not workers.pids
    assert await read(workers, SMALL) == 1
    assert len(workers.pids) == 1


async def test_processes_are_used_again(workers: DocumentWorkers) -> None:
    await read(workers, SMALL)
    pids = workers.pids
    await read(workers, SMALL)
    assert workers.pids == pids


LIMITS = {
    "memory of Python": (bytearray, (12_500_000,), "reading the document took more than 4 MB of memory"),
    "memory of the parser": (
        *(read_source, (LARGE, "", URL, SOURCE)),
        "reading the document took more than 5 MB of memory",  # the limit grows with the document
    ),
    "memory of the result": (
        *(bytes, (2_500_000,)),
        "reading the document took more than 4 MB of memory",
    ),
    "crash": (os.abort, (), "reading the document ended the process that read it (SIGABRT)"),
    "kill": (signal.raise_signal, (signal.SIGSEGV,), "reading the document ended the process that read it (SIGSEGV)"),
    "exit": (os._exit, (3,), "reading the document ended the process that read it (exit code 3)"),
}


@pytest.mark.parametrize(("work", "arguments", "text"), LIMITS.values(), ids=LIMITS)
async def test_document_beyond_a_limit_has_an_error_and_the_next_one_a_new_process(  # type: ignore[no-untyped-def]
    workers: DocumentWorkers, work, arguments, text: str
) -> None:
    """[xep-map 246]"""
    await read(workers, SMALL)
    (pid,) = workers.pids
    with pytest.raises(FeedError) as failure:
        await workers(work, *arguments)
    assert (failure.value.condition, failure.value.text) == (Condition.INVALID_PAYLOAD, text)
    assert pid not in workers.pids
    assert not is_running(pid)
    assert await read(workers, SMALL) == 1


@pytest.mark.parametrize("memory_mb", [2.0, 2.5, 3.0, 3.5])
async def test_parser_without_memory_is_no_fault_of_the_document(memory_mb: float) -> None:
    """Where the memory ends decides which errors of the parser follow the first one."""
    tags = ("<a " + " ".join(f"n{n}=''" for n in range(at, at + 200)) + "/>" for at in range(335))
    workers = DocumentWorkers(WorkerLimits(cpu_s=60, memory_bytes=int(memory_mb * 1024 * 1024)), at_once=1)
    with pytest.raises(FeedError, match="MB of memory"):
        await workers(read_source, feed(entry(1, "".join(tags).encode())), "", URL, SOURCE)
    workers.close()


async def test_document_beyond_the_processor_time_has_an_error() -> None:
    """[xep-map 246]"""
    workers = DocumentWorkers(WorkerLimits(cpu_s=1), at_once=1)
    with pytest.raises(FeedError, match="reading the document took more than 1 s of processor time"):
        await workers(sum, range(10**10))
    assert await workers(len, b"one") == 3
    workers.close()


def _grow() -> int:
    _KEPT.append(b"x" * 80_000_000)
    return len(_KEPT)


_KEPT: list[bytes] = []


async def test_process_that_has_grown_is_replaced() -> None:
    workers = DocumentWorkers(at_once=1)
    assert await workers(_grow) == 1
    assert await workers(_grow) == 1, "another process"
    workers.close()


async def test_errors_of_readers_arrive(workers: DocumentWorkers) -> None:
    with pytest.raises(FormatError) as failure:
        await read(workers, b"hello")
    assert failure.value.condition is Condition.INVALID_PAYLOAD
    assert failure.value.text
    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        await workers(divmod, 1, 0)
    with pytest.raises(WorkerError, match="PicklingError"):
        await workers(open, os.devnull)


async def test_processes_end_with_the_workers(workers: DocumentWorkers) -> None:
    await read(workers, SMALL)
    (pid,) = workers.pids
    waiting = [asyncio.create_task(workers(time.sleep, 30)) for _ in range(2)]
    await asyncio.sleep(0)
    workers.close()
    await until_ended(pid)
    assert {type(error) for error in await asyncio.gather(*waiting, return_exceptions=True)} <= {
        *(FeedError, WorkerError, asyncio.CancelledError)
    }


async def test_idle_processes_end() -> None:
    workers = DocumentWorkers(at_once=1, idle_s=0.0)
    await read(workers, SMALL)
    await until(lambda: not workers.pids, "the end of the idle process")
    assert await read(workers, SMALL) == 1
    workers.close()


PARENT = """
import asyncio, sys
from smartfeeds.workers import DocumentWorkers
async def main():
    workers = DocumentWorkers(at_once=1)
    await workers(len, "x")
    print(*workers.pids, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_process_ends_when_the_service_is_killed(how: signal.Signals) -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert is_running(pid)
    parent.send_signal(how)
    await parent.wait()
    await until_ended(pid)


@pytest.mark.parametrize("size_bytes", [0, 1, 40, -1])
def test_process_ends_quietly_after_half_a_request(size_bytes: int) -> None:
    """A service that is killed leaves it in the pipe."""
    request = pickle.dumps((WorkerLimits(), len, (b"x" * 1_000,)))[:size_bytes]
    run = subprocess.run((sys.executable, "-m", "smartfeeds.worker_process"), input=request, capture_output=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


async def test_end_of_the_service_does_not_end_a_document(workers: DocumentWorkers) -> None:
    """systemd sends the signal to all processes of a service."""
    await read(workers, SMALL)
    (pid,) = workers.pids
    os.kill(pid, signal.SIGTERM)
    assert await read(workers, SMALL) == 1
    assert pid in workers.pids


async def test_interrupt_at_the_terminal_is_not_for_the_process(workers: DocumentWorkers) -> None:
    await read(workers, SMALL)
    (pid,) = workers.pids
    assert os.getsid(pid) != os.getsid(0)


class Turns(DocumentWorkers):
    """Workers whose process is a table of costs: the order in which documents are read."""

    def __init__(self, costs_s: dict[Any, float]) -> None:
        super().__init__(WorkerLimits(), at_once=1)
        self.costs_s = costs_s
        self.order: list[Any] = []

    def _run(self, loop, share, job) -> None:  # type: ignore[no-untyped-def]
        (name,) = job.arguments
        self.order.append(name)
        loop.call_soon_threadsafe(self._end, share, job, (True, name), self.costs_s[name])


async def test_cheap_party_does_not_wait_for_thirty_expensive_ones() -> None:
    """Only for the document that is being read."""
    names = [f"hostile{number}" for number in range(30)]
    workers = Turns(dict.fromkeys(names, 10.0) | {"good": 0.01})
    for _ in range(2):
        await asyncio.gather(*(workers(str, name, party=name) for name in (*names, "good")))
    workers.order.clear()
    await asyncio.gather(*(workers(str, name, party=name) for name in (*names, "good")))
    assert workers.order.index("good") <= 1


async def test_expensive_party_is_not_starved() -> None:
    workers = Turns({"hostile": 1.0, "good": 0.1})
    await workers(str, "hostile", party="hostile")
    works = [workers(str, "hostile", party="hostile"), *(workers(str, "good", party="good") for _ in range(100))]
    await asyncio.gather(*works)
    assert workers.order.index("hostile", 1) <= 15


async def test_large_document_of_a_new_party_waits_behind_a_small_one() -> None:
    large = b"b" * 1_000_000
    workers = Turns({b"a": 0.1, large: 0.1, b"c": 0.1})
    await asyncio.gather(*(workers(len, body, party=str(body[:1])) for body in (b"a", large, b"c")))
    assert [body[:1] for body in workers.order] == [b"a", b"c", b"b"]


async def test_requests_of_a_party_keep_their_order() -> None:
    names = [str(number) for number in range(10)]
    workers = Turns(dict.fromkeys(names, 0.1))
    await asyncio.gather(*(workers(str, name, party="one") for name in names))
    assert workers.order == names


async def test_cancelled_request_is_not_read() -> None:
    workers = Turns({"a": 0.1, "b": 0.1, "c": 0.1})
    tasks = [asyncio.create_task(workers(str, name, party=name)) for name in "abc"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert workers.order == ["a", "c"]


# The codec.


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1, -1.5, "ä", b"\x00", (1, (2,)), [1], {"a": [1]}, {1}, frozenset({2})),
        *(Condition.GONE, SOURCE, FEEDSYNC, {"sources": [SOURCE, SOURCE]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_codec_keeps_values(value: object) -> None:
    copy = load_value(dump_value(value))
    assert copy == value
    assert type(copy) is type(value)


def test_codec_keeps_payloads_with_their_shape_and_without_their_tree() -> None:
    payload = Payload(b'<entry xmlns="http://www.w3.org/2005/Atom"></entry>')
    shape = payload.shape
    copy = load_value(dump_value(payload))
    assert (copy, type(copy), vars(copy)) == (payload, Payload, {"shape": shape})


def test_codec_keeps_errors() -> None:
    for error in (FeedError(Condition.GONE, "t", uri="u"), FeedError(Condition.UNSUPPORTED, feature="f")):
        copy = load_value(dump_value(error))
        assert (copy.condition, copy.text, copy.feature, copy.uri, str(copy)) == (
            *(error.condition, error.text, error.feature, error.uri, str(error)),
        )


def dump_all(value: object) -> bytes:
    """Pickles any value in the form of the codec, which has no references to earlier values."""
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=5)
    pickler.fast = True
    pickler.dump(value)
    return stream.getvalue()


class _Call:
    def __init__(self, function, *arguments) -> None:  # type: ignore[no-untyped-def]
        self.reduced = (function, arguments)

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return self.reduced


@pytest.mark.parametrize(
    "value",
    [
        *(_Call(os.system, "true"), _Call(eval, "1"), _Call(getattr, SOURCE, "host"), _Call(new_source, "n", URL, 0)),
        _Call(make, "os", "system", ("true",)),
        _Call(make, "builtins", "object", ()),
        _Call(make, "smartfeeds.workers", "DocumentWorkers", ()),
        _Call(make, "smartfeeds.features.polling.reading", "read_source", None),
        _Call(make, "smartfeeds.features.polling.reading", "Sequence", ()),
        _Call(make, "smartfeeds.net.fetch", "Response", ()),
        _Call(make, "smartfeeds.features.polling.source", "Source", ("one field",)),
        _Call(make, "smartfeeds.features.polling.source", "Source", None),
    ],
    ids=lambda call: " ".join([call.reduced[0].__name__, *(part for part in call.reduced[1] if isinstance(part, str))]),
)
def test_codec_calls_nothing_for_a_process_that_was_taken_over(value: object) -> None:
    """[xep-map 246]"""
    with pytest.raises((pickle.UnpicklingError, pickle.PicklingError, ValueError, TypeError)):
        load_value(dump_all(value))


@pytest.mark.parametrize(
    "shared", [("smartfeeds.errors", "Condition", "gone"), ("smartfeeds.sync.feedsync", "FEEDSYNC", None)]
)
def test_codec_changes_no_value_that_the_service_shares(shared: tuple[str, str, object]) -> None:
    """The operation BUILD of pickle would set attributes of a member of an enumeration. [xep-map 246]"""
    call = dump_all(_Call(make, *shared))
    frame_bytes = 9  # whose length would be wrong
    state = b"}\x8c\x04name\x8c\x05owneds"  # {"name": "owned"}
    attack = call[:2] + call[2 + frame_bytes : -1] + state + pickle.BUILD + pickle.STOP
    with pytest.raises(KeyError, match=str(pickle.BUILD[0])):
        load_value(attack)
    assert FEEDSYNC.name == "FeedSync"


def test_frames_end_with_the_stream() -> None:
    first, second = os.pipe()
    with os.fdopen(first, "rb") as reading:
        with os.fdopen(second, "wb") as writing:
            write_frame(writing, b"abc")
            writing.write(b"\0\0")
        assert [read_frame(reading, 3), read_frame(reading, 3)] == [b"abc", None]


DEEP = b")" + b"\x85" * 200_000  # a tuple in a tuple, and so on
MAKE = b"\x8c\x17smartfeeds.worker_codec\x8c\x04make\x93"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"}" + DEEP + b"Ns.", id="key"),
        pytest.param(b"}(" + DEEP + b"Nu.", id="keys"),
        pytest.param(b"\x8f(" + DEEP + b"\x90.", id="member"),
        pytest.param(b"(" + DEEP + b"\x91.", id="frozenset"),
        pytest.param(MAKE + DEEP + b"NN\x87R.", id="module"),
        pytest.param(MAKE + b"N" + DEEP + b"N\x87R.", id="name"),
    ],
)
def test_deep_value_is_not_hashed(data: bytes) -> None:
    """The hash of a deep tuple ends the process of whoever reads it."""
    with pytest.raises(pickle.UnpicklingError, match="too deep"):
        load_value(b"\x80\x05" + data)


@pytest.mark.parametrize("operation", [b"\x94h\x00\x86", b"q\x00h\x00\x86", b"2\x86"], ids=["memoize", "put", "dup"])
def test_value_is_not_used_twice(operation: bytes) -> None:
    """Sixty bytes more would make a tuple of 2**60 parts."""
    with pytest.raises(KeyError):
        load_value(b"\x80\x05)" + operation + b".")


def test_frame_that_is_too_long_is_not_read() -> None:
    """A process that was taken over cannot fill the memory of the service."""
    stream = io.BytesIO()
    write_frame(stream, b"abcd")
    end = stream.tell()
    stream.seek(0)
    assert read_frame(stream, 3) is None
    assert stream.tell() == end - 4, "only its length was read"


def flood() -> None:
    """As whoever has taken over the process: says that a very long reply follows, and waits."""
    os.write(4, (1 << 60).to_bytes(8, "big"))  # the process has copied its two streams
    signal.pause()


async def test_process_that_promises_a_very_long_reply_is_ended(workers: DocumentWorkers) -> None:
    with pytest.raises(FeedError) as caught:
        await workers(flood)
    assert caught.value.condition is Condition.INVALID_PAYLOAD
    assert not workers.pids
