"""The values that a reader of another service's storage yields: nodes with their items, people and options.

A reader has one function `read_NAME(source, host)`. It yields the nodes of the component `host`, ordered by name, and
the problems that concern no single node. It yields values as the storage has them: `moving` checks names,
addresses, options and payloads. The items of a node are read once, before the next node is requested.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from smartfeeds.core.model import NO_OPTIONS
from smartfeeds.core.options import FormFields
from smartfeeds.core.text import counted
from smartfeeds.errors import ConfigError, DocumentError


class MovedItem(NamedTuple):
    """An item of another service.

    `publisher` is a bare or full JID, empty if it is unknown. `created_us` and `modified_us` are microseconds since the
    Unix epoch. A missing `modified_us` means `created_us`; a missing `created_us` means the time of the item before it.
    `payload` is one XML element in UTF-8, empty for an item without a payload.
    """

    id: str
    publisher: str
    created_us: int | None
    modified_us: int | None
    payload: bytes


class MovedSubscription(NamedTuple):
    """A subscription: a bare or full JID, the state as XEP-0060 names it, and options by their full field names."""

    jid: str
    state: str = "subscribed"
    options: FormFields = NO_OPTIONS


class MovedProblem(NamedTuple):
    """A part that is left out or changed, such as `item i1` or `option pubsub#max_items`, and the reason."""

    subject: str
    reason: str


class UnreadableItem(MovedProblem):
    """The problem of an item that the reader cannot read. A mirror must not take such an item for a deleted one."""

    __slots__ = ()


class UnreadableNode(MovedProblem):
    """The problem of a node that the reader leaves out, because it cannot read all of it: the node could get more
    readers here than it has there."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MovedNode:
    """A node of another service.

    `options` has full field names (`pubsub#title`). `affiliations` maps JIDs to the names of XEP-0060 4.1
    (`publish-only`). `items` yields the items in the order of the storage, and the problems of items: `UnreadableItem`
    if the source has the item. `problems` are the other parts of the node that the reader leaves out.
    """

    name: str
    options: FormFields = field(default_factory=dict)
    affiliations: Mapping[str, str] = field(default_factory=dict)
    subscriptions: Sequence[MovedSubscription] = ()
    items: Iterable[MovedItem | MovedProblem] = ()
    problems: Sequence[MovedProblem] = ()


# Receives what is left out while a node is written.
Report = Callable[[MovedProblem], None]
# A reader: the source is a path or the address of a database, the host the JID of the component. Raises DocumentError
# if the source cannot be read, ConfigError for a wrong argument.
MovedReader = Callable[[str, str], Iterator[MovedNode | MovedProblem]]


def check_host(source: str, host: str, hosts: Collection[str], advice: str) -> None:
    """Raises ConfigError if a source has no nodes of the component `host`, DocumentError if it has no nodes at all.

    `hosts` are the components in the source, `advice` is what to do if there is none.
    """
    if not hosts:
        raise DocumentError(f"{source} has no nodes of any component; {advice}")
    if host not in hosts:
        raise ConfigError(f"{source} has no nodes of {host}; name another component with --host: {', '.join(hosts)}")


def personal_nodes(count: int) -> Iterable[MovedProblem]:
    """The report of the nodes that belong to accounts of users (PEP)."""
    if count:
        stay = "stays" if count == 1 else "stay"
        yield MovedProblem("nodes of user accounts", f"{counted(count, 'node')} (PEP) {stay} on the server")
