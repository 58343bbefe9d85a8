"""`FeedClient` for programs without asyncio: scripts, notebooks, programs with threads.

A thread of its own runs the event loop. Every method waits for its result, and Ctrl-C interrupts the wait.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from smartfeeds.client.change import Change
from smartfeeds.client.entry import EntryTexts
from smartfeeds.client.feed_client import FeedClient, connect
from smartfeeds.client.follow import Follower, FollowOptions, Proof
from smartfeeds.client.transport import ConnectOptions
from smartfeeds.errors import FollowError

T = TypeVar("T")


class BlockingFeedClient:
    """A session of an account, for `with`. `connect_blocking` makes one.

    The methods are those of `FeedClient` and raise the same errors; outside of the block they raise FollowError. Any
    thread may call them.
    """

    def __init__(self, make: Callable[[], FeedClient]) -> None:
        self._make = make
        self._thread = _LoopThread()

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._client = self._thread.run(_opened(self._make))
        except BaseException:  # Ctrl-C too: `__exit__` is not called, so nothing else would end the thread
            self._thread.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the followers, ends the session and the thread. A second call has no effect."""
        if self._thread.is_running:
            try:
                self._thread.run(self._client.aclose())
            finally:
                self._thread.stop()

    def create(self, address: str) -> None:
        """Creates a feed: see `FeedClient.create`."""
        self._run(lambda client: client.create(address))

    def publish(
        self,
        address: str,
        payload: str | bytes | None = None,
        *,
        item_id: str = "",
        **texts: Unpack[EntryTexts],
    ) -> str:
        """Publishes an item and returns its id: see `FeedClient.publish`."""
        return self._run(lambda client: client.publish(address, payload, item_id=item_id, **texts))

    def retract(self, address: str, item_id: str) -> None:
        """Deletes an item: see `FeedClient.retract`."""
        self._run(lambda client: client.retract(address, item_id))

    def subscribe(self, address: str) -> bool:
        """Subscribes the account: see `FeedClient.subscribe`."""
        return self._run(lambda client: client.subscribe(address))

    def unsubscribe(self, address: str) -> None:
        """Ends the subscription of the account: see `FeedClient.unsubscribe`."""
        self._run(lambda client: client.unsubscribe(address))

    def follow(self, address: str, **options: Unpack[FollowOptions]) -> "BlockingFollower":
        """Follows a feed: see `FeedClient.follow`. Callbacks in the options run in the thread of the client."""

        # In the loop's thread, because `FeedClient` is not safe for several threads.
        async def begin(client: FeedClient) -> Follower:
            return client.follow(address, **options)

        return BlockingFollower(self._thread, self._run(begin))

    def _run(self, request: Callable[[FeedClient], Coroutine[Any, Any, T]]) -> T:
        self._thread.check()
        return self._thread.run(request(self._client))


class BlockingFollower:
    """A `Follower` as a plain iterator. `BlockingFeedClient.follow` makes one."""

    def __init__(self, thread: "_LoopThread", follower: Follower) -> None:
        self._thread = thread
        self._follower = follower

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        self._thread.check()
        return self._thread.run(self._follower.__anext__())

    def until_caught_up(self) -> Iterator[Change]:
        """The changes up to now: see `Follower.until_caught_up`."""
        changes = self._follower.until_caught_up()
        self._thread.check()
        while (change := self._thread.run(_next_or_none(changes))) is not None:
            yield change
            self._thread.check()  # the caller may have closed the client meanwhile

    def proof(self) -> Proof:
        """The current evidence of being in step: see `Follower.proof`."""
        return self._follower.proof()

    def close(self) -> None:
        """Stops following. The client stays open."""
        self._thread.check()
        self._thread.run(self._follower.aclose())


class _LoopThread:
    """An event loop in a thread of its own, which does not keep the process alive."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="smartfeeds client", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self.is_running = False

    def start(self) -> None:
        """Starts the thread. Returns when its loop runs."""
        self._thread.start()
        self._ready.wait()
        self.is_running = True

    def check(self) -> None:
        """Raises FollowError if the loop does not run."""
        if not self.is_running:
            raise FollowError("the client is not open; use it inside of its with block")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop and returns its result. An interrupted wait cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:  # Ctrl-C interrupts the wait, and the coroutine would go on in the other thread
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends the loop and the thread. `asyncio.run` cancels what still runs."""
        self.is_running = False
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.run(self._run_until_stop())

    async def _run_until_stop(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._stop.wait()


def connect_blocking(jid: str, password: str, **options: Unpack[ConnectOptions]) -> BlockingFeedClient:
    """Returns a client for `with`, which connects when the block begins. The arguments and errors are those of
    `connect`."""
    return BlockingFeedClient(lambda: connect(jid, password, **options))


async def _opened(make: Callable[[], FeedClient]) -> FeedClient:
    # `make` runs in the loop too: slixmpp uses the event loop that runs when a client is created.
    return await make().__aenter__()


async def _next_or_none(changes: AsyncIterator[Change]) -> Change | None:
    return await anext(changes, None)
