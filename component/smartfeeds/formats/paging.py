"""Complete feeds, paged feeds and archives (RFC 5005; JSON Feed 1.1, next_url; SRC-059, SRC-064).

RSS carries the same elements as Atom.
"""

from dataclasses import dataclass
from typing import Final

from smartfeeds.formats import atom
from smartfeeds.formats.links import base_of, resolve
from smartfeeds.formats.xml import Element

HISTORY_NS: Final = "http://purl.org/syndication/history/1.0"
_COMPLETE: Final = f"{{{HISTORY_NS}}}complete"
_ARCHIVE: Final = f"{{{HISTORY_NS}}}archive"
_PREV_ARCHIVE: Final = "prev-archive"
_NEXT: Final = "next"


@dataclass(frozen=True, slots=True)
class Paging:
    """The links of a document to older entries. `older` is the address of the next older document, "" if there is none.

    `older_is_archive`: that document never changes. `complete`: the document has all entries of the feed.
    """

    older: str = ""
    older_is_archive: bool = False
    complete: bool = False


NO_PAGING: Final = Paging()


def paging_of(feed: Element, base: str) -> Paging:
    """The paging of an atom:feed or an RSS channel. Archives come before pages, because they do not shift.

    A page of the archive is never complete (RFC 5005 section 2).
    """
    links = {link.get("rel", "").strip(): link for link in reversed(list(feed.iterchildren(atom.LINK)))}
    older = links.get(_PREV_ARCHIVE, links.get(_NEXT))
    reference = "" if older is None else older.get("href", "").strip()
    return Paging(
        older="" if older is None or not reference else resolve(base_of(older, base), reference),
        older_is_archive=bool(reference) and _PREV_ARCHIVE in links,
        complete=feed.find(_COMPLETE) is not None and feed.find(_ARCHIVE) is None,
    )
