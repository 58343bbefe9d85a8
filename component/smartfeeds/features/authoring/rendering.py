"""Markdown of requests: rendered in threads, one text of each user at a time.

A text of allowed size can take a second. Without turns, one user could occupy every thread and the processor.
"""

import asyncio
from weakref import WeakValueDictionary

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.markdown import MAX_CHARACTERS, RenderedMarkdown, render_markdown
from smartfeeds.features.pages.sanitise import harmless_html


class MarkdownTurns:
    """Renders Markdown as sanitised HTML. Texts of one user wait for each other."""

    def __init__(self) -> None:
        # A lock lives as long as a request that has it or waits for it.
        self._locks: WeakValueDictionary[Jid, asyncio.Lock] = WeakValueDictionary()

    async def render(self, user: Jid, text: str, *, take_heading: bool) -> RenderedMarkdown:
        """The heading and the HTML of a text (`render_markdown`). Raises FeedError(PAYLOAD_TOO_BIG)."""
        if len(text) > MAX_CHARACTERS:
            reason = f"{len(text)} characters of Markdown; the limit is {MAX_CHARACTERS}"
            raise FeedError(Condition.PAYLOAD_TOO_BIG, reason)
        async with self._locks.setdefault(user.bare, asyncio.Lock()):
            return await asyncio.to_thread(_rendered, text, take_heading=take_heading)


def _rendered(text: str, *, take_heading: bool) -> RenderedMarkdown:
    markdown = render_markdown(text, take_heading=take_heading)
    return RenderedMarkdown(markdown.heading, harmless_html(markdown.html))
