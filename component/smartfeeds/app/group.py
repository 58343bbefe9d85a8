"""The group of processes on one database, as the parts of this process use it: who delivers, connects and answers.

`Group` is that of a process that is alone. A feature may bring another one (docs/scaling.md).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass

from smartfeeds import system
from smartfeeds.app.config import Settings
from smartfeeds.delivery.changes import ChangeNotifier
from smartfeeds.delivery.letters import Letters
from smartfeeds.delivery.ownership import Ownership, SoleOwnership
from smartfeeds.errors import ConfigError
from smartfeeds.features import FEATURES
from smartfeeds.service.feeds import FeedService
from smartfeeds.xmpp.relay import Relay
from smartfeeds.xmpp.router import StanzaRouter
from smartfeeds.xmpp.stanza_side import StanzaSide
from smartfeeds.xmpp.stream import ComponentStream

Spawn = Callable[[Coroutine[None, None, None], str], "asyncio.Task[None]"]


@dataclass(frozen=True, slots=True)
class GroupLink:
    """The link of this process: `online` is set while the server accepts it, and `stanzas` is what the running parts do
    with stanzas."""

    stream: ComponentStream
    online: asyncio.Event
    router: StanzaRouter
    stanzas: StanzaSide


class Group:
    """A process that is alone. `instance` is its id.

    `may_connect` returns when this process may open its link; None if it always may. `attach` is called once, before
    the start.
    """

    may_connect: Callable[[], Coroutine[None, None, None]] | None = None

    def __init__(self, service: FeedService) -> None:
        self.instance = system.new_instance()
        self.ownership: Ownership = SoleOwnership(service)
        self.letters = Letters()
        self.relay = Relay(self.instance)
        self.link: GroupLink | None = None

    def attach(self, link: GroupLink) -> None:
        """Connects the group to the link of this process."""
        self.link = link

    def start(self) -> None:
        """Starts what runs beside the ownership of shards, whose start comes before."""

    async def stop(self) -> None:
        """Leaves the group. The link is closed before."""

    def leave(self) -> None:
        """Passes new stanzas to another process from now on, if one has a link."""

    def has_lease(self) -> bool:
        """Returns whether this process may use its new link. Closes it if not."""
        return True

    def burst(self) -> int:
        """Returns how many pings to the own address find a sound link: the server may send them to other processes."""
        return 1

    def send(self, stanza: bytes) -> None:
        """Sends a stanza by the link of this process, or else by that of another one."""
        if self.link is not None:
            self.link.stream.outbox.reply(stanza)

    def readings(self) -> Iterable[object]:
        """Returns the metrics of this process and of what it shares."""
        return ()

    def report(self) -> Mapping[str, Mapping[str, float]]:
        """Returns what the status file has about the link and the database."""
        return {}


def make_group(settings: Settings, service: FeedService, changes: ChangeNotifier, spawn: Spawn) -> Group:
    """Returns the group of the feature that has one. `spawn` starts a task that has a name. Raises ConfigError."""
    makers = [feature.group for feature in FEATURES if feature.group is not None]
    if makers:
        (make,) = makers  # at most one feature has a group
        return make(settings, service, changes, spawn)
    if settings.store.is_shared:
        # Nothing would keep a second process from the database, and each item would be sent twice.
        raise ConfigError(
            f"store.url: the database {settings.store.address.name} may be served by several processes, and no feature "
            "divides the work between them; set a database of SQLite, or install the feature cluster"
        )
    return Group(service)
