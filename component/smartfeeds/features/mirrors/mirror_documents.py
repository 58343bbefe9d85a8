"""The documents that a mirror over HTTP reads, and how far it has read."""

from dataclasses import dataclass
from typing import Final

from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.features.polling.push_links import PushLinks
from smartfeeds.json_form import JsonForm
from smartfeeds.sync.document_reader import DocumentPiece, PieceKind
from smartfeeds.sync.sharing import Sharing


@dataclass(frozen=True, slots=True)
class WebPosition:
    """The position in a feed that was read: the cursor of a Smart Feed, or the bound of a partial feed (`until`).
    `view` says that the service sends sync data only if a parameter asks for them. `after` is for held pulls that
    announce changes of a document: the last cursor in it, "" if the Smart Feed has no item yet, None if it is no Smart
    Feed."""

    cursor: str = ""
    until: str | None = None
    view: bool = False
    after: str | None = None

    def __str__(self) -> str:
        return _POSITION.write(self)


_POSITION: Final = JsonForm(WebPosition)


def parse_position(text: str) -> WebPosition:
    """The position that `str` wrote; the beginning for an empty text."""
    return _POSITION.read(text or "{}")


@dataclass(frozen=True, slots=True)
class WebDocument:
    """A document that was read whole. `next_url` and `cursor` are those of a page of a Smart Feed. `is_smart`: it is
    from a Smart Feed. `links` name its hubs."""

    url: str
    pieces: tuple[DocumentPiece, ...]
    sharing: Sharing
    next_url: str = ""
    cursor: str = ""
    notes: tuple[str, ...] = ()
    validators: Validators = NO_VALIDATORS
    is_smart: bool = False
    links: PushLinks | None = None

    @property
    def synced(self) -> bool:
        """Whether any item of it takes part."""
        return any(piece.kind is PieceKind.SYNCED for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class HeldPage:
    """The answer to a held pull from a place, and the seconds that it took."""

    place: WebPosition
    page: WebDocument
    took_s: float
