"""Marks the words of a search in the texts of a page (`<mark>`), and cuts the part of a long text that has them.

`mark_html` works on HTML as `sanitise` writes it: every "<" begins a tag, and no attribute contains ">". So tags and
attributes stay as they are, and each text between two tags is unescaped, marked and escaped again.
"""

import re
import unicodedata
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from html import escape, unescape

from smartfeeds.core.text import cut, words

EXCERPT_CHARACTERS = 280
BEFORE_HIT = 60  # characters of an excerpt before the first word that a search found
_TAG = re.compile(r"(<[^>]*>)")
_WORD = re.compile(r"[^\W_]+")  # as `core.text.words` separates words


def mark_text(text: str, search: AbstractSet[str]) -> str:
    """Returns plain text as HTML in which the words of a search are marked."""
    return _marked(_composed(text), search)


def _marked(text: str, search: AbstractSet[str]) -> str:
    parts: list[str] = []
    end = 0
    for match in _hits(text, search):
        parts += (escape(text[end : match.start()]), "<mark>", escape(match[0]), "</mark>")
        end = match.end()
    return "".join((*parts, escape(text[end:])))


def mark_html(html: str, search: AbstractSet[str]) -> str:
    """Returns sanitised HTML in which the words of a search are marked."""
    parts = _TAG.split(html)
    return "".join(part if number % 2 else mark_text(unescape(part), search) for number, part in enumerate(parts))


def snippet(text: str, search: AbstractSet[str], start: int = 0) -> str:
    """Returns the excerpt of a plain text behind `start` as HTML, with the first word of a search and its marks, "" if
    the text has none of the words."""
    text = _composed(text)
    hit = next(_hits(text, search), None)
    if hit is None:
        return ""
    if hit.end() > EXCERPT_CHARACTERS:
        start = max(hit.start() - BEFORE_HIT, start)
        start = text.find(" ", start, hit.start()) + 1 or start
    return _marked(_excerpt(text, start), search)


def beginning(text: str, start: int = 0) -> str:
    """Returns the excerpt of a plain text behind `start` as HTML."""
    return escape(_excerpt(text, start))


def _excerpt(text: str, start: int) -> str:
    part = cut(text[start:], EXCERPT_CHARACTERS)
    return f"\N{HORIZONTAL ELLIPSIS}{part}" if start and part else part


def _hits(text: str, search: AbstractSet[str]) -> Iterator[re.Match[str]]:
    """Yields the words of a text that a search finds."""
    return (match for match in _WORD.finditer(text) if not words(match[0]).isdisjoint(search)) if search else iter(())


def _composed(text: str) -> str:
    """A text in which each letter and its accents are one character: an accent of its own would end the word."""
    return unicodedata.normalize("NFC", text)
