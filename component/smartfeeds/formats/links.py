"""Relative references: xml:base and the address a document came from."""

import re
from urllib.parse import urljoin

from smartfeeds.formats.xml import XML_BASE, Element

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>\"{}|\\^`]+")


def is_uri(text: str) -> bool:
    """Whether the text begins with a scheme and holds nothing that no IRI may hold."""
    return _URI.fullmatch(text) is not None


def resolve(base: str, reference: str) -> str:
    """The reference seen from `base`; the reference itself where one of them is no address."""
    reference = reference.strip()
    try:
        return urljoin(base, reference) if base else reference
    except ValueError:
        return reference


def base_of(element: Element, outer: str, *, own: bool = True) -> str:
    """The base address in force at an element, with or without its own xml:base; `outer` is the document's."""
    bases = [ancestor.get(XML_BASE, "") for ancestor in element.iterancestors()]
    bases.reverse()
    if own:
        bases.append(element.get(XML_BASE, ""))
    for step in bases:
        outer = resolve(outer, step) if step else outer
    return outer


def has_base(element: Element) -> bool:
    """Whether an ancestor sets xml:base."""
    return any(ancestor.get(XML_BASE) for ancestor in element.iterancestors())
