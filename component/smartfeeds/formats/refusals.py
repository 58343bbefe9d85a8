"""Errors for documents that are no feeds. Each says what the document is, not what it might be."""

import re
from collections.abc import Iterable
from typing import Final

from lxml import etree

from smartfeeds.errors import Condition, FeedError, FormatError
from smartfeeds.formats.plain import html_text, squeeze
from smartfeeds.formats.xml import Element, fault

FEED_ROOTS: Final = "feeds have rss, RDF, feed or opml"
_HEAD_BYTES: Final = 4096
_SHOWN: Final = 40
_MAX_MEMBERS: Final = 5
_ATOM_NS: Final = "http://www.w3.org/2005/Atom"
# The first bytes of files that are served in the place of feeds.
_FILES: Final = (
    (b"%PDF", "a PDF file"),
    (b"\x1f\x8b", "a compressed file (gzip)"),
    (b"PK\x03\x04", "a compressed file (zip)"),
    (b"BZh", "a compressed file (bzip2)"),
    (b"\x28\xb5\x2f\xfd", "a compressed file (zstd)"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"RIFF", "a picture or a sound (RIFF)"),
    (b"ID3", "a sound (MP3)"),
    (b"OggS", "a sound or a video (Ogg)"),
    (b"SQLite format 3", "a database (SQLite)"),
    (b"\x7fELF", "a program (ELF)"),
)
# Local names of roots that are served in the place of feeds.
_ROOTS: Final = {
    "urlset": "a sitemap",
    "sitemapindex": "a list of sitemaps",
    "error": "an error message",
    "envelope": "a SOAP message",
    "methodresponse": "an XML-RPC message",
    "svg": "a picture (SVG)",
    "opensearchdescription": "the description of a search",
    "plist": "a property list",
    "manifest": "a manifest",
    "service": "an AtomPub service document",
    "categories": "an AtomPub category document",
    "playlist": "a list of media",
    "smil": "a list of media",
    "xrd": "a resource descriptor",
}
_NO_NAMESPACE: Final = frozenset({"rss", "opml"})
_HTML_TAGS: Final = frozenset(
    {"html", "head", "body", "title", "meta", "div", "p", "h1", "center", "script", "br", "b", "a"}
)
_TAG: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!doctype\s+(html\b)?[^>]*|<([a-z_][^\s<>/]{0,60})", re.DOTALL | re.IGNORECASE
)
_TITLE: Final = re.compile(rb"<title[^<>]{0,200}>([^<]{1,400})", re.IGNORECASE)


def first_tag(data: bytes) -> str:
    """The name of the first element in the text of a document, "html" where it is declared to be that, or ""."""
    for match in _TAG.finditer(data[:_HEAD_BYTES]):
        if match[1] is not None:
            return "html"
        if match[2] is not None:
            return match[2].decode("utf-8", "replace")
    return ""


def looks_like_page(data: bytes) -> bool:
    """Whether a text is a web page: it begins with an element of HTML, or says so."""
    return first_tag(data).lower() in _HTML_TAGS


def page_title(data: bytes) -> str:
    """The title of a web page, "" if it has none."""
    title = _TITLE.search(data[: 16 * _HEAD_BYTES])
    return "" if title is None else html_text(title[1].decode("utf-8", "replace"))


def page_refusal(title: str) -> FormatError:
    """The error for a web page without entries. Titles such as "Sign in" explain much."""
    said = f"; its title is {title[:_SHOWN]!r}" if title else ""
    return FormatError(f"the document is a web page, not a feed{said}")


def root_refusal(root: Element) -> FormatError:
    """The error for well-formed XML whose root no feed has."""
    namespace, _, name = root.tag.removeprefix("{").rpartition("}")
    if name.lower() == "html":
        return page_refusal(squeeze(next((node.text or "" for node in root.iter("{*}title")), "")))
    root_name = f"{{{namespace[: 2 * _SHOWN]}}}{name[:_SHOWN]}" if namespace else name[:_SHOWN]
    kind = _ROOTS.get(name.lower(), "")
    what = f" ({kind}{_message_in(root) if name.lower() == 'error' else ''})" if kind else ""
    if name.lower() == "feed":
        where = "" if namespace else " without a namespace"
        return FormatError(f"the root element is {root_name}{where}; Atom has {_ATOM_NS}")
    if name.lower() in _NO_NAMESPACE:
        what = f", in a namespace that no {name.upper()} has"
    return FormatError(f"the root element is {root_name}{what}; {FEED_ROOTS}")


def _message_in(root: Element) -> str:
    """Returns the message of an error document, such as those of S3."""
    texts = (html_text(str(node.text or "")) for node in root.iter() if str(node.tag).lower() in ("code", "message"))
    text = next(filter(None, texts), "")
    return f": {text[:_SHOWN]}" if text else ""


def text_refusal(data: bytes, error: etree.XMLSyntaxError) -> FeedError:
    """The error for what a strict parser refused and what is no feed. FormatError if it is no XML at all."""
    if looks_like_page(data):
        return page_refusal(page_title(data))
    head = data[:_HEAD_BYTES].lstrip()
    tag = first_tag(data)
    if tag and head.startswith(b"<"):
        return FeedError(Condition.INVALID_PAYLOAD, f"the document {fault(error)}; its first element is {tag[:_SHOWN]}")
    return FormatError(f"the document is neither XML nor JSON: it begins with {_beginning(head)}")


def check_kind(data: bytes) -> None:
    """Raises FormatError for a file whose first bytes show that it is no text."""
    kind = next((kind for beginning, kind in _FILES if data.startswith(beginning)), "")
    if kind:
        raise FormatError(f"the document is {kind}, not a feed")


def _beginning(head: bytes) -> str:
    """The first characters of a text, or the first bytes of anything else."""
    text = " ".join(head[:_SHOWN].decode("utf-8", "replace").split())
    return repr(text) if text.isprintable() and "\ufffd" not in text[:-1] else f"the bytes {head[:8].hex(' ')}"


def json_refusal(value: object) -> FormatError:
    """The error for JSON that is no feed."""
    if not isinstance(value, dict):
        what = f", an array of {len(value)} values" if isinstance(value, list) else ", a single value"
    elif "version" in value and "items" in value:
        what = f" of the version {value['version']!r:.{_SHOWN}}"
    else:
        what = f" with {_members(value)}"
    return FormatError(
        f"the document is JSON{what}: neither a JSON Feed nor ActivityStreams 1.0 activities; "
        "a JSON Feed has version (https://jsonfeed.org/version/1.1) and items"
    )


def _members(names: Iterable[str]) -> str:
    members = [name[:_SHOWN] for name in names]
    if not members:
        return "no members"
    more = f" and {len(members) - _MAX_MEMBERS} more" if len(members) > _MAX_MEMBERS else ""
    return f"the member{'s' if len(members) > 1 else ''} {', '.join(members[:_MAX_MEMBERS])}{more}"
