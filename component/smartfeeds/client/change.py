"""What a follower hands over, and what it makes it from."""

from dataclasses import dataclass
from enum import Enum


class ChangeKind(Enum):
    """What happened to an item.

    `NEW` and `CHANGED` are told apart by what this run has seen and by how the total grew. Where several changes
    were pulled at once, neither may decide, and then the entry's own dates do; in `order=created` all are certain.
    `LEFT`: the item does not match the filters of the view any more. It is not deleted; a mirror of the view drops it.
    """

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Atom:
    """What a bot mostly wants of an Atom entry, as text; empty where the entry has none. Dates as written."""

    title: str = ""
    link: str = ""
    author: str = ""
    updated: str = ""
    published: str = ""


NO_ATOM = Atom()


@dataclass(frozen=True, slots=True)
class Entry:
    """One item as the wire showed it. `payload` is empty for a retraction, and where the service sent none.

    `left`: the item has left the view; such an entry has no other mark.
    """

    item_id: str
    payload: bytes = b""
    deleted: bool = False
    publisher: str = ""
    atom: Atom = NO_ATOM
    left: bool = False

    @property
    def complete(self) -> bool:
        """Whether this says everything there is to say about the item."""
        return self.deleted or bool(self.payload)


@dataclass(frozen=True, slots=True)
class Change:
    """One version of one item.

    `payload` is the entry as UTF-8 XML, or empty for a plain retraction. `position` is what to store, together with
    the work that this change causes, to go on behind it after a restart. `total` is the number of items that the
    service last named.
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
        """The Atom title, as plain text."""
        return self.atom.title

    @property
    def link(self) -> str:
        """The address of the entry's page (Atom link of relation alternate)."""
        return self.atom.link

    @property
    def author(self) -> str:
        """The name of the first Atom author."""
        return self.atom.author
