"""The formats that the kernel brings, each with one line. `features/documents/formats.py` has others."""

from collections.abc import Iterator

from smartfeeds.formats import atom, representation
from smartfeeds.formats.activity import ACTIVITIES
from smartfeeds.formats.atom_feed import write_feed
from smartfeeds.formats.atom_reader import from_atom03, read_atom
from smartfeeds.formats.document_format import DocumentFormat, Drafts, FeedExport, Reader
from smartfeeds.formats.namespaces import ATOM03_NS
from smartfeeds.formats.opml_items import OPML
from smartfeeds.formats.rss_writer import RSS
from smartfeeds.formats.xml import Element

_ROOTS = frozenset({atom.FEED, atom.ENTRY})
_ATOM03_ROOTS = frozenset({f"{{{ATOM03_NS}}}feed", f"{{{ATOM03_NS}}}entry"})


def _is_atom(root: Element) -> bool:
    return root.tag in _ROOTS or root.tag in _ATOM03_ROOTS


def _read(root: Element, base: str) -> Drafts:
    if root.tag in _ROOTS:
        return read_atom(root, base)
    head, entries = read_atom(from_atom03(root), base)
    head.format = head.format.replace("1.0", "0.3")
    return head, entries


def _pieces(job: FeedExport) -> Iterator[bytes]:
    return write_feed(job.head, job.items, keys=job.keys)


ATOM = DocumentFormat(
    "atom",
    "Atom 1.0",
    _pieces,
    frozenset({"language", "icon", "hub", "authors", "copyright", "generator", "categories", "logo", "extensions"}),
    xml=Reader(_is_atom, _read),
    representation=representation.ATOM,
)

KERNEL_FORMATS: tuple[DocumentFormat, ...] = (ATOM, RSS, OPML, ACTIVITIES)
