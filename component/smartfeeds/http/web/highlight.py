"""Marks the words of a search in the texts of a page (`<mark>`).

It works on text as `sanitise` writes it: every "<" begins a tag, and no attribute contains ">". So tags and attributes
stay as they are, and each text between two tags is unescaped, marked and escaped again.
"""

import re
import unicodedata
from collections.abc import Set as AbstractSet
from html import escape, unescape

from smartfeeds.core.text import words

_TAG = re.compile(r"(<[^>]*>)")
_WORD = re.compile(r"\w+")
SNIPPET_CHARACTERS = 240


def mark_text(text: str, search: AbstractSet[str]) -> str:
    """Returns plain text as HTML in which the words of a search are marked."""
    parts: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        if not words(match[0]).isdisjoint(search):
            parts += (escape(text[end : match.start()]), "<mark>", escape(match[0]), "</mark>")
            end = match.end()
    return "".join((*parts, escape(text[end:])))


def mark_html(html: str, search: AbstractSet[str]) -> str:
    """Returns sanitised HTML in which the words of a search are marked."""
    parts = _TAG.split(html)
    return "".join(part if number % 2 else mark_text(unescape(part), search) for number, part in enumerate(parts))


def snippet(text: str, search: AbstractSet[str]) -> str:
    """Returns the part of a plain text around the first word of a search as marked HTML, "" if it has none of them."""
    text = unicodedata.normalize("NFC", text)
    match = next((one for one in _WORD.finditer(text) if not words(one[0]).isdisjoint(search)), None)
    if match is None:
        return ""
    start = max(match.start() - SNIPPET_CHARACTERS // 2, 0)
    part = text[start : start + SNIPPET_CHARACTERS]
    before, after = "…" if start else "", "…" if start + len(part) < len(text) else ""
    return f"{before}{mark_text(part, search)}{after}"
