"""The formats that the kernel brings, each with one line. `features/documents/formats.py` has others."""

from smartfeeds.formats.activity import ACTIVITIES
from smartfeeds.formats.atom_reader import ATOM
from smartfeeds.formats.document_format import DocumentFormat
from smartfeeds.formats.opml_items import OPML
from smartfeeds.formats.rss_writer import RSS

KERNEL_FORMATS: tuple[DocumentFormat, ...] = (ATOM, RSS, OPML, ACTIVITIES)
