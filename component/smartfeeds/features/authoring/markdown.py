"""Markdown to HTML: CommonMark 0.31 with tables and strikethrough. The HTML is not sanitised."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.titles import LINE_CHARACTERS, stands_alone

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# The worst text of this length that the tests know takes about a second, in a thread of its own.
MAX_CHARACTERS = 65_536
# Each use of a reference repeats its address and title, so without a limit the HTML grows with the square of the text.
MAX_LINK_CHARACTERS = 16 * MAX_CHARACTERS
_BLOCK_TOKENS = 3  # opening, text, closing


class RenderedMarkdown(NamedTuple):
    """The title, "" if the text has no part that can stand for it, the HTML below it, and the Markdown of that HTML."""

    title: str
    html: str
    source: str


def render_markdown(text: str, *, take_title: bool) -> RenderedMarkdown:
    """Markdown as HTML. With `take_title`, a heading or a line at the very beginning is in `title` only.

    Raises FeedError(PAYLOAD_TOO_BIG) if the addresses and titles of all links have more than MAX_LINK_CHARACTERS.
    """
    parser = _parser()
    tokens = parser.parse(text)
    link_characters = sum(map(_link_characters, tokens))
    if link_characters > MAX_LINK_CHARACTERS:
        reason = (
            f"the links have {link_characters} characters; the limit is {MAX_LINK_CHARACTERS}; use shorter addresses"
        )
        raise FeedError(Condition.PAYLOAD_TOO_BIG, reason)
    title = _first_title(tokens) if take_title else ""
    source = text
    if title:
        source = _without_lines(text, tokens[0])
        tokens = tokens[_BLOCK_TOKENS:]
    elif take_title:
        heading = _first_heading(tokens)
        title = heading if len(heading) <= LINE_CHARACTERS else ""
    return RenderedMarkdown(title, parser.renderer.render(tokens, parser.options, {}), source)


def _first_title(tokens: "Sequence[Token]") -> str:
    """The text of the first block if it can become the title: a heading, or a line without markup
    (`formats.titles.stands_alone`)."""
    if not tokens or tokens[0].type not in ("heading_open", "paragraph_open"):
        return ""
    parts = tokens[1].children or ()
    title = _plain(parts)
    if tokens[0].type == "heading_open":
        return title if len(title) <= LINE_CHARACTERS else ""
    is_text = len(parts) == 1 and parts[0].type == "text"
    more = len(tokens) > _BLOCK_TOKENS
    # A heading further down is a better title than the line above it.
    alone = is_text and stands_alone(title, more=more) and not (more and _first_heading(tokens))
    return title if alone else ""


def _first_heading(tokens: "Sequence[Token]") -> str:
    start = next((number for number, token in enumerate(tokens) if token.type == "heading_open"), None)
    return "" if start is None else _plain(tokens[start + 1].children or ())


def _without_lines(text: str, token: "Token") -> str:
    """The Markdown without the lines of a block. What is above it defines the addresses of links."""
    lines = text.split("\n")
    first, end = token.map or (0, 0)
    return "\n".join((*lines[:first], *lines[end:])).strip("\n")


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # with the first text

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _link_characters(token: "Token") -> int:
    """The characters in the attributes of a block and of its text. An image has its label as children, with links."""
    own = sum(len(str(value)) for value in token.attrs.values())
    return own + sum(map(_link_characters, token.children or ()))


def _plain(tokens: "Sequence[Token]") -> str:
    parts = (
        " " if token.type.endswith("break") else "" if token.type == "html_inline" else token.content
        for token in tokens
    )
    return " ".join("".join(parts).split())
