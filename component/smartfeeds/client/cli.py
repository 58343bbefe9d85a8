"""The output of `smartfeeds follow`: one line per change, and a proof when caught up and at the end."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict

from smartfeeds.client.change import Change
from smartfeeds.client.follow import Follower, Proof
from smartfeeds.core.text import one_line

Write = Callable[[str], None]
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def change_line(change: Change, *, as_json: bool = False) -> str:
    """Return a change as a line of text or of JSON."""
    if as_json:
        fields = {
            "kind": change.kind.value,
            "id": change.item_id,
            "title": change.title,
            "link": change.link,
            "author": change.author,
            "publisher": change.publisher,
            "node": change.node,
            "position": change.position,
            "total": change.total,
            "payload": change.payload.decode(),
        }
        return json.dumps(fields, ensure_ascii=False)
    about = [change.title or "-", *(f"({text})" for text in (change.author or change.publisher,) if text)]
    return one_line(f"{change.kind.value:<7}  {change.item_id}  {' '.join(about)}  {change.link}")


def proof_line(proof: Proof, *, as_json: bool = False) -> str:
    """Return a proof as a line of text or of JSON."""
    if not as_json:
        return one_line(f"proof    {proof}")
    return json.dumps({"kind": "proof", **asdict(proof)}, ensure_ascii=False)


async def run_follow(
    make: Callable[[Callable[[Proof], None]], Follower],
    write: Write,
    *,
    as_json: bool = False,
    limit: int | None = None,
    until_caught_up: bool = False,
) -> Proof:
    """Follow until a signal arrives, `limit` changes were written, or (`until_caught_up`) every item was written.

    `make` receives the function to call when caught up (`on_caught_up` of `follow`) and returns the follower. A proof
    is written when the follower has caught up for the first time, and at the end. Returns the last proof. Raises
    FollowError, LinkError, StoreError.
    """
    has_proof = False
    stop = asyncio.Event()

    def on_caught_up(proof: Proof) -> None:
        nonlocal has_proof
        if not has_proof:
            has_proof = True
            write(proof_line(proof, as_json=as_json))
        if until_caught_up:
            stop.set()

    count = 0
    with _interrupted_by_signals(stop.set):
        async with make(on_caught_up) as feed:
            try:
                while limit is None or count < limit:
                    change = await _next_unless(stop, feed)
                    if change is None:
                        break
                    write(change_line(change, as_json=as_json))
                    count += 1
                    feed.acknowledge()
            finally:
                proof = feed.proof()
                write(proof_line(proof, as_json=as_json))
            return proof


async def _next_unless(stop: asyncio.Event, feed: Follower) -> Change | None:
    """Return the next change, or None if `stop` is set first."""
    stop_wait = asyncio.ensure_future(stop.wait())
    next_change = asyncio.ensure_future(anext(feed))
    try:
        await asyncio.wait({stop_wait, next_change}, return_when=asyncio.FIRST_COMPLETED)
        return await next_change if next_change.done() else None
    finally:
        stop_wait.cancel()
        next_change.cancel()


@contextlib.contextmanager
def _interrupted_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
