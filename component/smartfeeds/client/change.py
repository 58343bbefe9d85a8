"""The changes that a follower delivers, and the items that it receives."""

from dataclasses import dataclass
from enum import Enum


class ChangeKind(Enum):
    """The kind of a change.

    The wire does not say whether an item is `NEW` or `CHANGED`. The follower decides by the versions of this run and by
    the growth of the total. If it pulled several changes at once, both may be inconclusive, and the entry's own dates
    decide. In `order=created` every change is certain.
    `LEFT`: the item no longer matches the filters of the view. The feed still has the item; a mirror of the view
    removes it.
    """

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Atom:
    """Fields of an Atom entry as text, empty if the entry lacks them. Dates are as written (RFC 4287 section 3.3)."""

    title: str = ""
    link: str = ""
    author: str = ""
    updated: str = ""
    published: str = ""


NO_ATOM = Atom()


@dataclass(frozen=True, slots=True)
class ReceivedItem:
    """An item as received. `payload` is empty for a retraction, and if the service sent no payload.

    `left`: the item has left the view. Such an item is not `deleted`.
    """

    item_id: str
    payload: bytes = b""
    deleted: bool = False
    publisher: str = ""
    atom: Atom = NO_ATOM
    left: bool = False

    @property
    def complete(self) -> bool:
        """Whether the item has its payload or is a deletion. Notifications without payloads are not complete."""
        return self.deleted or bool(self.payload)


@dataclass(frozen=True, slots=True)
class Change:
    """One version of one item.

    `payload` is the entry as UTF-8 XML, or empty for a plain retraction. To continue after a restart, store `position`
    in the same transaction as the results of processing the change. `total` is the number of items that the service
    named last.
    """

    kind: ChangeKind
    item_id: str
    payload: bytes
    node: str
    position: str
    total: int | None = None
    publisher: str = ""
    atom: Atom = NO_ATOM

    @property
    def title(self) -> str:
        """The title of the Atom entry, as plain text."""
        return self.atom.title

    @property
    def link(self) -> str:
        """The address of the entry's web page (Atom link with relation alternate)."""
        return self.atom.link

    @property
    def author(self) -> str:
        """The name of the first author of the Atom entry."""
        return self.atom.author
