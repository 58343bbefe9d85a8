"""Relative references in HTML as absolute addresses (RFC 3986 5; HTML, "Document base URLs").

RSS, JSON Feed and a web page have no place for the base address of one text, so every reader of an entry gets its HTML
with the references resolved. Nothing else of the HTML changes, however broken it is.
"""

import html
import re
from collections.abc import Iterator

from smartfeeds.formats.html_tags import tags_of
from smartfeeds.formats.links import BoundedResolver

_ADDRESS_ATTRIBUTES = frozenset({"href", "src", "srcset", "cite", "action", "poster", "data", "longdesc", "background"})
# A first filter: HTML without relative references is not read tag by tag. It may match too much, but not too little.
_SUSPECT = re.compile(
    rf"""srcset\s*=|(?:{"|".join(sorted(_ADDRESS_ATTRIBUTES))})\s*=(?!\s*(?:["']\s*)?(?:[a-z][a-z0-9+.\-]*:|\#))""",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\s*(?![A-Za-z][A-Za-z0-9+.\-]*:|#)\S")
_CANDIDATE = re.compile(r"(\s*,?\s*)([^\s,]\S*)(\s+[^,]*)?")


def absolute_html(text: str, base: str) -> str:
    """The HTML with its relative references resolved by `base`; as it is where no base is known. A reference to a place
    in the text itself (`#note`) stays."""
    if not base or _SUSPECT.search(text) is None:
        return text
    resolver = _Resolver(base, BoundedResolver(len(text)))
    parts = []
    end = 0
    for attribute in _address_attributes(text):
        value = _value_of(attribute)
        address = resolver.value(attribute["name"], value)
        if address != value:
            parts.append(text[end : attribute.start("value")])
            parts.append(f'"{html.escape(address)}"')
            end = attribute.end("value")
    return "".join([*parts, text[end:]])


def has_relative(text: str) -> bool:
    """Whether HTML has references that nobody can follow without knowing its base address."""
    return _SUSPECT.search(text) is not None and any(
        _RELATIVE.match(_value_of(attribute)) for attribute in _address_attributes(text)
    )


def _address_attributes(text: str) -> Iterator[re.Match[str]]:
    """The attributes that hold addresses, of the start tags that have an end."""
    for tag in tags_of(text):
        if tag.closed and tag.is_start:
            for attribute in tag.attributes:
                if attribute["value"] and attribute["name"].lower() in _ADDRESS_ATTRIBUTES:
                    yield attribute


def _value_of(attribute: re.Match[str]) -> str:
    for group in ("double", "single", "value"):
        if (value := attribute[group]) is not None:
            return html.unescape(value)
    return ""


class _Resolver:
    """Resolves the references of one text."""

    def __init__(self, base: str, resolver: BoundedResolver) -> None:
        self._base = base
        self._resolver = resolver

    def value(self, name: str, value: str) -> str:
        """The value of an attribute with its references resolved."""
        if name.lower() == "srcset":
            return _CANDIDATE.sub(lambda one: f"{one[1]}{self._address(one[2])}{one[3] or ''}", value)
        return self._address(value)

    def _address(self, reference: str) -> str:
        return reference if _RELATIVE.match(reference) is None else self._resolver.resolve(self._base, reference)
