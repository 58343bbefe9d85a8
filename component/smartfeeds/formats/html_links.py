"""Relative references in HTML as absolute addresses (RFC 3986 5; HTML, "Document base URLs").

RSS, JSON Feed and web pages have no place for the base address of a single text, so `read_entry` resolves the
references in HTML. Nothing else of the HTML changes, even if the HTML is broken.
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
)
_RELATIVE = re.compile(r"\s*(?![A-Za-z][A-Za-z0-9+.\-]*:|#)\S")
# An image of `srcset`: what separates it from the one before, its address, and its width or density ("a.png 2x").
_CANDIDATE = re.compile(r"(\s*,?\s*)([^\s,]\S*)(\s+[^,]*)?")


def absolute_html(text: str, base: str) -> str:
    """The HTML with its relative references resolved by `base`; unchanged if the base is empty.

    A reference to a place in the text itself (`#note`) stays.
    """
    if not base or not _may_have_relative(text):
        return text
    resolver = BoundedResolver(len(text))

    def absolute(reference: str) -> str:
        return reference if _RELATIVE.match(reference) is None else resolver.resolve(base, reference)

    parts = []
    end = 0
    for attribute in _address_attributes(text):
        value = _value_of(attribute)
        if attribute["name"].lower() == "srcset":
            address = _CANDIDATE.sub(lambda match: f"{match[1]}{absolute(match[2])}{match[3] or ''}", value)
        else:
            address = absolute(value)
        if address != value:
            parts.append(text[end : attribute.start("value")])
            parts.append(f'"{html.escape(address)}"')
            end = attribute.end("value")
    return "".join([*parts, text[end:]])


def has_relative(text: str) -> bool:
    """Whether HTML has references that lead nowhere without its base address."""
    return _may_have_relative(text) and any(
        _RELATIVE.match(_value_of(attribute)) for attribute in _address_attributes(text)
    )


def _may_have_relative(text: str) -> bool:
    # Without "=" there are no attributes, and without these names none with addresses. Both tests together take a tenth
    # of the time of the search, which is faster in lower case than with IGNORECASE.
    if "=" not in text:
        return False
    lower = text.lower()
    return any(name in lower for name in _ADDRESS_ATTRIBUTES) and _SUSPECT.search(lower) is not None


def _address_attributes(text: str) -> Iterator[re.Match[str]]:
    """The attributes with addresses, of the start tags that have an end."""
    for tag in tags_of(text):
        if tag.closed and tag.is_start:
            for attribute in tag.attributes:
                if attribute["value"] and attribute["name"].lower() in _ADDRESS_ATTRIBUTES:
                    yield attribute


def _value_of(attribute: re.Match[str]) -> str:
    return html.unescape(
        next((value for value in attribute.group("double", "single", "value") if value is not None), "")
    )
