"""Splits a chat message into a command and its arguments, and writes a command as users type it."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlencode

from smartfeeds.core.view import PARAMETERS
from smartfeeds.texts import Texts

MAX_ARGUMENTS = 64  # arguments of one command; a message has room for many thousands
READ_CHARACTERS = 4_096  # of the text that is split: reading a whole long message would stall the event loop
# A part in quotation marks may contain blanks. Phones replace straight marks by typographic ones.
_QUOTES = {'"': '"', "\u201c": "\u201d", "\u201e": "\u201c", "\u00ab": "\u00bb"}
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
    token, end = next(_tokens(text[:READ_CHARACTERS]), ("", len(text)))
    return token, text[end:].strip()


def arguments(text: str) -> list[str]:
    """Returns the arguments, at most `MAX_ARGUMENTS`."""
    return [token for token, _ in islice(_tokens(text[:READ_CHARACTERS]), MAX_ARGUMENTS)]


def quote(word: str) -> str:
    """Returns an argument as users type it, in the first marks that it does not contain if it needs any."""
    if word and not any(character.isspace() or character in _QUOTES for character in word):
        return word
    pairs = ((begin, end) for begin, end in _QUOTES.items() if begin not in word and end not in word)
    begin, end = next(pairs, ("", ""))
    return f"{begin}{word}{end}"


def command_text(texts: Texts, usage: str, *words: str) -> str:
    """Returns a command as users type it in their language. `usage` is that of the command."""
    verb = texts.say(usage).split()[0]
    return " ".join([verb, *map(quote, words)])


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yields each argument and the place behind it, in time that grows with the length of the text only."""
    unclosed: set[str] = set()  # marks without an end in the rest of the text, which are ordinary characters
    token: list[str] = []
    inside, place = False, 0
    while place < len(text):
        character = text[place]
        end = -1
        if character in _QUOTES and character not in unclosed:
            end = text.find(_QUOTES[character], place + 1)
        if end >= 0:
            token.append(text[place + 1 : end])
            inside, place = True, end
        elif not character.isspace():
            if character in _QUOTES:
                unclosed.add(character)
            token.append(character)
            inside = True
        elif inside:
            yield "".join(token), place
            token, inside = [], False
        place += 1
    if inside:
        yield "".join(token), place


def view_name(feed: str, filters: Sequence[str]) -> str | None:
    """Returns the node name of a feed with filters such as `author=bob`; None if one of them is no filter."""
    pairs = [text.partition("=")[::2] for text in filters]
    if any(name.casefold() not in PARAMETERS or not value for name, value in pairs):
        return None
    if not pairs:
        return feed
    query = urlencode([(name.casefold(), value) for name, value in pairs])
    return f"{feed}{'&' if '?' in feed else '?'}{query}"
