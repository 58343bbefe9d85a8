"""The title of a text that has none.

A first line that becomes the title leaves the text, so that nobody reads it twice. Otherwise the title is the first
sentence or the first words with an ellipsis, and the text keeps all of it. Lines of lists, code and quotations never
leave their text. Which first line becomes the title depends on the form:

- Plain text has no headings, and the manual says that its first line is the title: a line of up to LINE_CHARACTERS,
  whatever it says.
- HTML and Markdown have headings. Without one a first paragraph becomes the title only if it does not read like a
  sentence or a salutation (`stands_alone`): it was written as a part of the text.
"""

import html
import re
from typing import NamedTuple

from smartfeeds.formats.html_tags import tags_of
from smartfeeds.formats.plain import html_text, squeeze

LINE_CHARACTERS = 140  # of a first line that becomes the title
WORDS_CHARACTERS = 60  # of a title made of the first words of a text
SENTENCE_CHARACTERS = 80  # of a title made of the first sentence
_SENTENCE_LEAST = 20  # a shorter one is likely an abbreviation
_READ_CHARACTERS = 2_000  # of a text without its title: nothing below them can be in it
_SENTENCE = re.compile(rf".{{{_SENTENCE_LEAST - 1},{SENTENCE_CHARACTERS - 1}}}?(?:[.!?…]+[\"'”’»)]?(?=\s)|[。！？])")
_SENTENCE_END = re.compile(r"[.!?…:;,。！？][\"'”’»)]?$")
# The start of a line of a list, a quotation or code.
_MARKED = re.compile(r"\s*(?:[-*+•–>]\s|>|\d{1,9}[.)]\s|```|~~~|#!|\||\t| {4})")
_MARKS = re.compile(r"^[ \t]*(?:(?:[-*+•–>#]+|\d{1,9}[.)])[ \t]+|(?:```|~~~).*$|>+)", re.MULTILINE)
_ELLIPSIS = re.compile(r"\s*(?:\[(?:…|\.{3})\]|\((?:…|\.{3})\)|…|\.{3})$")
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")
_HEADING = re.compile(r"\s*<(h[1-6])(?:\s[^<>]*)?>((?:(?!</?h[1-6]\b).)*)</\1\s*>\s*", re.IGNORECASE | re.DOTALL)
_PARAGRAPH = re.compile(r"\s*<p>([^<]*)</p>\s*", re.IGNORECASE)
_IMAGE = re.compile(r"<img[\s/>]", re.IGNORECASE)
_CODE, _CODE_END = "<pre", "</pre>"


class Titled(NamedTuple):
    """A title and the text below it. The text is "" if the title has all of it."""

    title: str
    text: str


def split_text(text: str) -> Titled:
    """The title of a plain text, and the text below it. Its writer decides by the end of the first line."""
    line, _, rest = text.strip().partition("\n")
    title, start = squeeze(line), _end_of_blank_lines(rest)
    if not rest:
        return Titled(title, "") if len(title) <= LINE_CHARACTERS else Titled(title_of_text(text), text)
    # An indented line right below continues the first one, as in code and in lists.
    continues = start == 0 and rest.startswith((" ", "\t"))
    if continues or len(title) > LINE_CHARACTERS or _MARKED.match(text[_end_of_blank_lines(text) :]) is not None:
        return Titled(title_of_text(text), text)
    return Titled(title, rest[start:])


def _end_of_blank_lines(text: str) -> int:
    """The place of the first line that is not blank, with its indentation."""
    match = _BLANK_LINES.match(text)
    return 0 if match is None else match.end()


def split_html(source: str) -> Titled:
    """The title of HTML, and the HTML below it. The title is "" if the HTML shows neither text nor pictures."""
    heading = _HEADING.match(source)
    if heading is not None and (title := html_text(heading[2])) and len(title) <= LINE_CHARACTERS:
        return Titled(title, source[heading.end() :].strip())
    paragraph = _PARAGRAPH.match(source)
    if paragraph is not None:
        rest = source[paragraph.end() :].strip()
        line = html.unescape(paragraph[1])
        if stands_alone(line, more=bool(rest)):
            return Titled(squeeze(line), rest)
    return Titled(title_of_html(source), source)


def stands_alone(line: str, *, more: bool) -> bool:
    """Whether a paragraph without markup becomes the title and leaves the text. `more`: something is below it.

    What reads like a sentence stays: it belongs to the text below it.
    """
    title = squeeze(line)
    if not title or "\n" in line.strip() or len(title) > LINE_CHARACTERS:
        return False
    return not more or (len(title) <= SENTENCE_CHARACTERS and _SENTENCE_END.search(title) is None)


def title_of_text(text: str) -> str:
    """The beginning of a plain text as its title."""
    return shortened(_MARKS.sub("", text[:_READ_CHARACTERS])) or squeeze(text)[:WORDS_CHARACTERS]


def title_of_html(source: str) -> str:
    """The beginning of HTML as its title; of HTML without text the description of its first picture."""
    text = html_text(_behind_code(source)) or html_text(source)
    return shortened(text[:_READ_CHARACTERS]) if text else _picture_name(source)


def _behind_code(source: str) -> str:
    """HTML without the code with which it begins: code is no title."""
    if source[: len(_CODE)].lower() != _CODE:
        return source
    end = source.lower().find(_CODE_END)
    return source[end + len(_CODE_END) :] if end > 0 else source


def shortened(text: str) -> str:
    """The first sentence of a text, or its first words with an ellipsis: not the whole text, unless it is one word."""
    line = squeeze(text)
    sentence = _SENTENCE.match(line)
    if sentence is not None and sentence.end() < len(line):
        return sentence[0]
    limit = min(WORDS_CHARACTERS, len(line)) - 1
    words = line[:limit] if line[limit : limit + 1].isspace() else line[:limit].rpartition(" ")[0]
    if not words:
        return line if len(line) <= WORDS_CHARACTERS else f"{line[:limit]}…"
    return f"{words.rstrip(' ,;:–-')}…"


def is_repeated(title: str, text: str) -> bool:
    """Whether a text on one line begins with its title, which then was made of it: the whole text, a whole sentence, or
    its first words and an ellipsis, in one of the forms in which programs write it.

    A title such as "Berlin" is none of these, also if the text begins with this word.
    """
    start = _ELLIPSIS.sub("", title)
    if not start or not text.startswith(start):
        return False
    return start != title or len(start) == len(text) or _SENTENCE_END.search(start) is not None


def without_heading(source: str, title: str) -> str:
    """HTML without the heading with which it begins, if that says the same as its title."""
    heading = _HEADING.match(source)
    return source[heading.end() :] if heading is not None and html_text(heading[2]) == title else source


def unmarked(text: str) -> str:
    """A plain text on one line, without the marks of lists, quotations and code, as `title_of_text` reads it."""
    return squeeze(_MARKS.sub("", text))


def _picture_name(source: str) -> str:
    """The description of the first picture of HTML, else the name of its file, "" without a picture."""
    for tag in tags_of(source):
        if tag.closed and tag.is_start and _IMAGE.match(source, tag.start):
            values = {
                attribute["name"].lower(): html.unescape(
                    next((value for value in attribute.group("double", "single", "value") if value is not None), "")
                )
                for attribute in tag.attributes
            }
            if name := squeeze(values.get("alt", "")):
                return name[:LINE_CHARACTERS]
            return file_name(values.get("src", ""))
    return ""


def file_name(address: str) -> str:
    """The last part of the path of an address, without its query."""
    return squeeze(address.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2])[:LINE_CHARACTERS]
