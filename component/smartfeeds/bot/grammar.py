"""Splits a chat message into a command and its arguments."""

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from smartfeeds.core.view import PARAMETERS

MAX_ARGUMENTS = 64  # arguments of one command; a message has room for many thousands
# A part in quotation marks may contain blanks. Phones replace straight marks by typographic ones.
_QUOTES = {'"': '"', "\u201c": "\u201d", "\u201e": "\u201c", "\u00ab": "\u00bb"}
_TOKEN = re.compile(
    "(?:" + "|".join(f"{mark}[^{end}]*{end}" for mark, end in _QUOTES.items()) + r"|\S)+",
)
_QUOTED = re.compile("|".join(f"{mark}([^{end}]*){end}" for mark, end in _QUOTES.items()))
_WORD = re.compile(r"/?(\S+)")


class CommandLine(NamedTuple):
    """A message as a command: its first word, folded and without a slash, and the text behind it."""

    word: str
    rest: str


def split_command(text: str) -> CommandLine:
    """Returns the command of a message. The text behind it keeps its line breaks."""
    text = text.strip()
    match = _WORD.match(text)
    if match is None:
        return CommandLine("", "")
    return CommandLine(match[1].casefold(), text[match.end() :].strip())


def take(text: str) -> tuple[str, str]:
    """Returns the first argument, without quotation marks, and the text behind it."""
    text = text.strip()
    match = _TOKEN.match(text)
    return ("", "") if match is None else (_unquoted(match[0]), text[match.end() :].strip())


def arguments(text: str) -> list[str]:
    """Returns the arguments, at most `MAX_ARGUMENTS`."""
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        if len(tokens) == MAX_ARGUMENTS:
            break
        tokens.append(_unquoted(match[0]))
    return tokens


def _unquoted(token: str) -> str:
    return _QUOTED.sub(lambda match: next(part for part in match.groups() if part is not None), token)


def view_name(feed: str, filters: Sequence[str]) -> str | None:
    """Returns the node name of a feed with filters such as `author=bob`; None if one of them is no filter."""
    pairs = [text.partition("=")[::2] for text in filters]
    if any(name.casefold() not in PARAMETERS or not value for name, value in pairs):
        return None
    if not pairs:
        return feed
    query = urlencode([(name.casefold(), value) for name, value in pairs])
    return f"{feed}{'&' if '?' in feed else '?'}{query}"
