"""Resolves relative references in documents, by xml:base and by the address that the document came from."""

import re
from urllib.parse import urljoin, urlsplit

from smartfeeds.core.urls import harmless
from smartfeeds.core.web_address import uri_of
from smartfeeds.formats.xml import XML_BASE, Element

# No server is known to accept longer ones, and each relative reference grows by its base.
MAX_BASE_CHARACTERS = 2_048
# Without a bound, a base address of 2,000 characters made 12.5 MB of a text of 82 KB.
_MAX_FACTOR = 16
_FREE_CHARACTERS = 65_536
# Nothing in a feed is relative to any other base (file:, javascript:, data:).
_ABSOLUTE_BASE = re.compile(r"(?:https?|ftp)://[^/?#\s]", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>\"{}|\\^`]+")


def is_uri(text: str) -> bool:
    """Whether the text begins with a scheme and holds nothing that no IRI may hold."""
    return _URI.fullmatch(text) is not None


def is_absolute(address: str) -> bool:
    """Whether an address begins with a scheme."""
    return _SCHEME.match(address) is not None


def resolve(base: str, reference: str) -> str:
    """The reference seen from `base`; the reference itself where one of them is no address."""
    reference = reference.strip()
    try:
        return urljoin(base, reference) if base else reference
    except ValueError:
        return reference


def resolve_uri(base: str, reference: str) -> str:
    """The reference seen from `base` as documents and pages have it (`uri_of`). Payloads keep it as it came (SRC-055).

    An address that a browser may run stays as it is, so that it is recognised.
    """
    address = resolve(base, reference)
    return uri_of(address) if harmless(address) else address


def is_base(address: str) -> bool:
    """Whether relative references can be resolved by this address."""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return False
    return bool(host) and _ABSOLUTE_BASE.match(address) is not None and len(address) <= MAX_BASE_CHARACTERS


class BoundedResolver:
    """Resolves the references of one text. The addresses add at most 16 times its size and 65,536 characters; the
    references behind that stay as they are."""

    def __init__(self, text_characters: int) -> None:
        self._left_characters = _FREE_CHARACTERS + _MAX_FACTOR * text_characters

    def resolve(self, base: str, reference: str) -> str:
        """The reference seen from `base`, or the reference itself."""
        address = resolve(base, reference)
        if address != reference:
            self._left_characters -= len(address)
        return address if self._left_characters >= 0 else reference


def rebase(base: str, step: str | None) -> str:
    """The base address where `base` was in force outside and xml:base says `step`; a step that is unusable counts for
    nothing (RFC 3986 5.1)."""
    if not step:
        return base
    address = resolve(base, step)
    usable = _SCHEME.match(address) is None or _ABSOLUTE_BASE.match(address) is not None
    return address if usable and len(address) <= MAX_BASE_CHARACTERS else base


def base_of(element: Element, outer: str) -> str:
    """The base address in force at an element; `outer` is the document's."""
    steps = [element.get(XML_BASE), *(ancestor.get(XML_BASE) for ancestor in element.iterancestors())]
    for step in reversed(steps):
        outer = rebase(outer, step)
    return outer
