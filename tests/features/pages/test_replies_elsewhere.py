"""The page of an entry of another blog: readers who may not reply here get its own address."""

from dataclasses import replace

import pytest

from features.pages.test_replies import HTML, post, publish, tree
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.polling.sources import add_source
from support.browsing import sign_in
from support.component import ALICE, CAROL
from support.web import Web

pytestmark = [pytest.mark.shared, pytest.mark.needs("authoring", "accounts")]


@pytest.mark.parametrize(
    ("model", "link", "shown"),
    [
        ("publishers", "https://harbour.example/deep", "Answer at its own address"),
        ("publishers", "javascript:alert(1)", ""),
        ("publishers", "", ""),
        ("subscribers", "https://harbour.example/deep", "Subscribers of this feed may reply."),
    ],
)
async def test_entry_of_another_blog_is_answered_there(notes: Web, model: str, link: str, shown: str) -> None:
    """Nobody here can let a reader answer it, and readers who may answer have the form as everywhere."""
    await notes.component.configure(ALICE, "notes", publish_model=model)
    source = replace(new_source("notes", "https://harbour.example/feed", 0), due_us=None)
    await publish(notes, "notes", "q", post("How deep?", inner=f"<link href='{link}'/>" if link else ""))
    carol = await sign_in(notes, CAROL)
    before = await carol.get("/entries/notes/q", HTML)
    await notes.component.app.service.write(lambda tx, context: add_source(tx, context, source))
    after = await carol.get("/entries/notes/q", HTML)
    page = tree(after)
    thread_text = page.xpath("string(//section[@class='thread']/p)").strip()
    assert thread_text == shown
    is_link = shown.startswith("Answer at")
    assert page.xpath("//section[@class='thread']/p/a/@href") == ([link] if is_link else [])
    assert (before.header("ETag") != after.header("ETag")) is is_link
    assert "Answer at its own address" not in (await notes.get("/entries/notes/q", HTML)).text
    alice = tree(await (await sign_in(notes, ALICE)).get("/entries/notes/q", HTML))
    assert alice.xpath("//section[@class='thread']//form")
    assert "Answer at its own address" not in alice.text_content()
