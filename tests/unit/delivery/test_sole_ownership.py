"""Shards, and a process that owns all of them."""

from smartfeeds.core.consumers import PUSH, Consumer
from smartfeeds.delivery.deliverer import ConsumerKind, ConsumerPosition, Idle, Outcome
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.ownership import SoleOwnership
from smartfeeds.delivery.shards import ALL_SHARDS, shard_of_name, shard_of_node
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.errors import ConfigError
from support.sqlite_memory import SqliteMemoryStore
from support.world import running_world


class Work:
    """Notes what it is told, and may fail at its begin."""

    def __init__(self, calls: list[tuple[str, frozenset[int]]], error: Exception | None = None) -> None:
        self.calls = calls
        self.error = error

    async def begin(self, shards: frozenset[int]) -> None:
        if self.error is not None:
            raise self.error
        self.calls.append(("begin", shards))

    async def end(self, shards: frozenset[int]) -> None:
        self.calls.append(("end", shards))

    def drop(self, shards: frozenset[int]) -> None:
        self.calls.append(("drop", shards))


class Receiver:
    """Has nothing to do."""

    async def deliver(self, _consumer: Consumer, _position: ConsumerPosition) -> Outcome:
        return Idle()

    def host(self, _consumer: Consumer) -> str:
        return ""


def test_shard_of_a_name_is_the_same_in_every_process() -> None:
    assert (shard_of_name("sources"), shard_of_name("files")) == (50, 25)


async def test_consumers_of_a_feed_share_its_shard() -> None:
    """[TOP-040] An outgoing mirror belongs to the shard of its name, like its incoming direction."""
    async with running_world(SqliteMemoryStore()) as world:
        dispatcher = Dispatcher(world.service, DeliveryTiming(world.clock, lambda: 0.0))
        dispatcher.register(PUSH, ConsumerKind(Receiver()))
        dispatcher.register("mirror", ConsumerKind(Receiver(), by_name=True))
        assert dispatcher.shard_of(Consumer(130, PUSH)) == shard_of_node(130) == 2
        mirror = Consumer(130, "mirror:xmpp:feeds.b.example?;node=plans")
        assert dispatcher.shard_of(mirror) == shard_of_name(mirror.name) != 2


async def test_process_with_a_database_of_its_own_owns_everything_from_the_start_on() -> None:
    """A work that cannot begin, such as one with a wrong section of the configuration, does not keep the others."""
    async with running_world(SqliteMemoryStore()) as world:
        ownership, calls = SoleOwnership(world.service), list[tuple[str, frozenset[int]]]()
        ownership.register(Work(calls, ConfigError("wrong")))
        ownership.register(Work(calls))
        assert ownership.owns(63) and ownership.owns_name("files") and ownership.owned == ALL_SHARDS
        await ownership.start()
        assert calls == [("begin", ALL_SHARDS)]
        await ownership.release()
        assert calls[1:] == [("end", ALL_SHARDS)] * 2
