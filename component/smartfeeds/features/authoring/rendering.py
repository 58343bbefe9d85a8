"""Markdown of requests: rendered in threads, one text of each user at a time.

A text of allowed size can take a second. Without turns, one user could occupy every thread and the processor.
"""

import asyncio
from weakref import WeakValueDictionary

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.markdown import MAX_CHARACTERS, RenderedMarkdown, render_markdown
from smartfeeds.features.pages.sanitise import harmless_html
from smartfeeds.formats.titles import title_of_html


class MarkdownTurns:
    """Renders Markdown as sanitised HTML. Texts of one user wait for each other."""

    def __init__(self) -> None:
        # A lock lives as long as a request that has it or waits for it.
        self._locks: WeakValueDictionary[Jid, asyncio.Lock] = WeakValueDictionary()

    async def render(self, user: Jid, text: str, *, take_title: bool) -> RenderedMarkdown:
        """The title and the HTML of a text (`render_markdown`). Raises FeedError(PAYLOAD_TOO_BIG)."""
        if len(text) > MAX_CHARACTERS:
            reason = f"{len(text)} characters of Markdown; the limit is {MAX_CHARACTERS}"
            raise FeedError(Condition.PAYLOAD_TOO_BIG, reason)
        async with self._locks.setdefault(user.bare, asyncio.Lock()):
            return await asyncio.to_thread(rendered_markdown, text, take_title=take_title)


def rendered_markdown(text: str, *, take_title: bool) -> RenderedMarkdown:
    """Markdown as sanitised HTML. Takes up to a second. Raises FeedError(PAYLOAD_TOO_BIG)."""
    markdown = render_markdown(text.replace("\r\n", "\n"), take_title=take_title)
    html = harmless_html(markdown.html)
    # Not left to `post.complete`: that may take the title out of the HTML, and the Markdown would still have it.
    title = markdown.title or (title_of_html(html) if take_title else "")
    return markdown._replace(title=title, html=html)
