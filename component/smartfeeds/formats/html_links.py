"""Relative references in HTML as absolute addresses (RFC 3986 5; HTML, "Document base URLs").

RSS, JSON Feed and a web page have no place for the base address of one text, so every reader of an entry gets its HTML
with the references resolved. Nothing else of the HTML changes, however broken it is.
"""

import html
import re

from smartfeeds.formats.links import resolve

# A quoted value may hold "<" and ">". Possessive repeats keep no way back, so the time is linear.
_TAG = re.compile(r"""<[A-Za-z](?:[^<>"']|"[^"]*+"|'[^']*+')*+>""")
_VALUE = re.compile(
    r"""(\s(?:href|src|srcset|cite|action|poster|data|longdesc|background)\s*=\s*)"""
    r"""(?:"([^"]*)"|'([^']*)'|([^\s"'<>=`]+))""",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\s*(?![A-Za-z][A-Za-z0-9+.\-]*:|#)\S")
_CANDIDATE = re.compile(r"(\s*,?\s*)([^\s,]\S*)(\s+[^,]*)?")
# What addresses may add to a text; references beyond it stay relative.
_MAX_FACTOR = 16
_FREE_CHARACTERS = 65_536


def absolute_html(text: str, base: str) -> str:
    """The HTML with its relative references resolved by `base`; as it is where no base is known. A reference to a place
    in the text itself (`#note`) stays."""
    if not base or "=" not in text:
        return text
    return _TAG.sub(_Resolver(base, _FREE_CHARACTERS + _MAX_FACTOR * len(text)).tag, text)


def has_relative(text: str) -> bool:
    """Whether HTML has references that nobody can follow without knowing its base address."""
    return any(
        _RELATIVE.match(html.unescape(_value_of(match)))
        for tag in _TAG.finditer(text)
        for match in _VALUE.finditer(tag[0])
    )


def _value_of(match: re.Match[str]) -> str:
    return next((group for group in match.groups()[1:] if group is not None), "")


class _Resolver:
    """Resolves the references of one text until they have become too long."""

    def __init__(self, base: str, left_characters: int) -> None:
        self._base = base
        self._left_characters = left_characters

    def tag(self, match: re.Match[str]) -> str:
        return _VALUE.sub(self._attribute, match[0]) if "=" in match[0] else match[0]

    def _attribute(self, match: re.Match[str]) -> str:
        value = html.unescape(_value_of(match))
        if match[1].split("=")[0].strip().lower() == "srcset":
            address = _CANDIDATE.sub(lambda one: f"{one[1]}{self._address(one[2])}{one[3] or ''}", value)
        else:
            address = self._address(value)
        return match[0] if address == value else f'{match[1]}"{html.escape(address)}"'

    def _address(self, reference: str) -> str:
        if _RELATIVE.match(reference) is None:
            return reference
        address = resolve(self._base, reference)
        self._left_characters -= len(address)
        return address if self._left_characters >= 0 else reference
