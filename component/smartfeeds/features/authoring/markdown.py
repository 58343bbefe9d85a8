"""Markdown to HTML: CommonMark 0.31 with tables and strikethrough. The HTML is not sanitised."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from smartfeeds.errors import Condition, FeedError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# The worst text of this length that the tests know takes about a second, in a thread of its own.
MAX_CHARACTERS = 65_536
# Each use of a reference repeats its address and title, so without a limit the HTML grows with the square of the text.
MAX_LINK_CHARACTERS = 16 * MAX_CHARACTERS
_HEADING_TOKENS = 3  # opening, text, closing


class RenderedMarkdown(NamedTuple):
    """The text of the first heading, "" without one, and the HTML."""

    heading: str
    html: str


def render_markdown(text: str, *, take_heading: bool) -> RenderedMarkdown:
    """Markdown as HTML. With `take_heading`, a heading at the very beginning is in `heading` only.

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
    start = next((number for number, token in enumerate(tokens) if token.type == "heading_open"), None)
    heading = "" if start is None else _plain(tokens[start + 1].children or ())
    if take_heading and start == 0:
        tokens = tokens[_HEADING_TOKENS:]
    return RenderedMarkdown(heading, parser.renderer.render(tokens, parser.options, {}))


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
