"""Turns of users at the rendering of Markdown."""

import asyncio
import threading

import pytest

from smartfeeds.core.jid import Jid
from smartfeeds.features.authoring import rendering as markdown
from smartfeeds.features.authoring.markdown import RenderedMarkdown
from smartfeeds.features.authoring.rendering import MarkdownTurns
from support.waiting import HANG_S, in_vain

ALICE, PHONE, BOB = Jid("alice", "example.org"), Jid("alice", "example.org", "phone"), Jid("bob", "example.org")


async def test_user_has_one_rendering_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second text of Alice begins after the first one has ended. Bob does not wait for her."""
    begun: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    end = {text: threading.Event() for text in ("first", "second", "other")}

    def render(text: str, *, take_title: bool) -> RenderedMarkdown:
        loop.call_soon_threadsafe(begun.put_nowait, text)
        assert end[text].wait(HANG_S), in_vain(f"the end of {text}")
        return RenderedMarkdown(str(take_title), text, text)

    monkeypatch.setattr(markdown, "render_markdown", render)
    turns = MarkdownTurns()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(turns.render(ALICE, "first", take_title=True))
        assert await begun.get() == "first"
        group.create_task(turns.render(PHONE, "second", take_title=True))
        group.create_task(turns.render(BOB, "other", take_title=True))
        assert await begun.get() == "other"
        assert begun.empty()
        end["first"].set()
        assert await begun.get() == "second"
        assert first.done()
        end["second"].set()
        end["other"].set()
    assert len(turns._locks) == 0
