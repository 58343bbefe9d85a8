"""Plain text out of HTML and XHTML, for searches and message bodies; never for display as markup."""

import html
import re
from functools import lru_cache

from lxml import etree

from smartfeeds.formats.html_tags import tags_of
from smartfeeds.formats.xml import Element
from smartfeeds.xml_names import parse_xml


def _parser() -> etree.HTMLParser:
    return etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=False)


# Shared by threads, so its error log says nothing; with fewer tags than this it cannot give up for their depth.
_PARSER = _parser()
_PARSER_DEPTH = 250
_SILENT = frozenset({"script", "style", "template", "noscript", "head"})
# These do not end a word: "un<b>believ</b>able" is one.
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q"}
    | {"s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"}
)
# All of these have fewer, with their namespace. Longer tags are not cached: nobody can fill the memory with them.
_KNOWN_CHARACTERS = 100
_OTHER = False, " "  # the effect of all other elements, and of comments and processing instructions
# Whether a text whose format is not said is HTML.
LOOKS_LIKE_HTML = re.compile(r"</?[A-Za-z][^<>]*>|&(?:#[0-9]+|#x[0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);")
_MARKUP = re.compile(r"[<&]")
_TAG = re.compile(r"<[^<>]*>")
# HTML as most editors write it: paragraphs, line breaks, inline elements with nothing but text, the usual references.
# A group for each, so that `split` returns the texts. `sub` with a template is a function of Python for each of them.
_INLINE_TEXT = re.compile(
    "|".join(f"<{tag}>([^<]*)</{tag}>" for tag in ("b", "code", "em", "i", "strong")) + '|<a href="[^"<>]*">([^<]*)</a>'
)
_PARAGRAPH = re.compile(r"</?p>")
_BREAK = re.compile(r"<br ?/?>")
_OTHER_REFERENCE = re.compile("&(?!(?:amp|lt|gt|quot);)")
# libxml2 compares each attribute of a tag in HTML with all others.
_MAX_TAG_CHARACTERS = 4_096


def squeeze(text: str) -> str:
    """The text on one line, runs of white space as one blank."""
    return " ".join(text.split())


def html_text(source: str) -> str:
    """The text of an HTML fragment, whatever state it is in."""
    if _MARKUP.search(source) is None:
        return squeeze(source)
    simple = _simple_text(source)
    if simple is not None:
        return simple
    if len(source) > _MAX_TAG_CHARACTERS:
        source = without_long_tags(source)
    parser = _parser() if source.count("<") >= _PARSER_DEPTH else _PARSER
    try:
        # Without an end tag, which would be a text in a <title> or <textarea> that has no end.
        root = parse_xml(f"<div>{source}", parser)
    except (etree.LxmlError, ValueError):
        root = None
    if root is None or (parser is not _PARSER and "xcessive depth" in str(parser.error_log)):
        return squeeze(html.unescape(_TAG.sub(" ", source)))
    return markup_text(root)


def _simple_text(source: str) -> str | None:
    """The text of HTML without a tree, in a tenth of the time; None if a parser may have to repair or decode it.

    Outside paragraphs and inside of them text means the same here, so only their order is compared.
    """
    if "<" in source:
        tags = _PARAGRAPH.findall(source)
        if tags != ["<p>", "</p>"] * (len(tags) // 2):
            return None
        if source.count("<") > len(tags):
            source = _BREAK.sub(" ", "".join(filter(None, _INLINE_TEXT.split(source))))
        source = source.replace("<p>", " ").replace("</p>", " ")
        if "<" in source:
            return None
    if "&" in source:
        if _OTHER_REFERENCE.search(source) is not None:
            return None
        source = source.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
    return " ".join(source.split())  # `squeeze` without a call


def without_long_tags(source: str) -> str:
    """The HTML with a blank in place of each tag that is too long to be parsed. A tag has no text, whatever is in it;
    one without an end is more likely text, and stays as text."""
    parts = []
    end = 0
    for tag in tags_of(source):
        if tag.end - tag.start > _MAX_TAG_CHARACTERS:
            parts.append(source[end : tag.start])
            parts.append(" " if tag.closed else source[tag.start :].replace("<", "&lt;"))
            end = tag.end
    return "".join([*parts, source[end:]])


@lru_cache(256)
def _effect_of(tag: str) -> tuple[bool, str]:
    """Returns whether the text of an element is not shown, and what is between its text and the text around it."""
    name = tag.rpartition("}")[2].lower()
    return name in _SILENT, "" if name in _INLINE else " "


def markup_text(root: Element) -> str:
    """The text of a tree in which elements other than inline ones separate words."""
    parts: list[str] = []
    silent = 0
    for event, node in etree.iterwalk(root, events=("start", "end")):
        tag = node.tag
        is_silent, space = _effect_of(tag) if isinstance(tag, str) and len(tag) <= _KNOWN_CHARACTERS else _OTHER
        if event == "start":
            silent += is_silent
            if not silent:
                parts += (space, node.text or "")
        else:
            silent -= is_silent
            if not silent and node is not root:
                parts += (space, node.tail or "")
    return " ".join("".join(parts).split())
