"""The title of an entry on pages: a heading, or only a name if the text has it.

A title that is the beginning of the text is for lists. Nobody reads it twice, on any page.
"""

import json
from typing import NamedTuple
from urllib.parse import quote

import pytest
from lxml import html

from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.browsing import sign_in
from support.component import ALICE
from support.prose import html_entry, note
from support.web import Web

pytestmark = [pytest.mark.shared, pytest.mark.needs("accounts", "authoring", "following")]

MINE = "/follow/entries"
PAGES = ("/", "/feeds/news/", "/entries/news/a", "/search?q=mill", MINE)
REPLY = "<in-reply-to xmlns='http://purl.org/syndication/thread/1.0' ref='q'/>"
FIRST = "I walked to the mill this morning."
REST = "The water is high."


class Shown(NamedTuple):
    """An entry on a page: the heading that people see, the one for screen readers alone, and all text that they see."""

    heading: str
    name: str
    text: str


async def shown(web: Web, path: str) -> Shown:
    """How a page shows the entry `a` of the feed `news`; `MINE` is read by alice."""
    if path.startswith("/search"):
        await web.component.index()  # a search does not wait for it
    got = await ((await sign_in(web, ALICE)).get(path, "text/html") if path == MINE else web.get(path, "text/html"))
    assert got.status == 200, got.text
    page = html.fromstring(got.text)
    (article,) = [
        each
        for each in page.iter("article")
        if each.get("data-id") == "a" or each.xpath(".//a[@class='when' and @href='/entries/news/a']")
    ]
    (title,) = article.xpath("./*[self::h1 or self::h2 or self::h3]")
    unseen = [each for each in article.iter() if "unseen" in each.get("class", "").split()]
    name = " ".join(" ".join(each.text_content() for each in unseen).split())
    for each in unseen:
        each.text = ""
        for child in list(each):
            each.remove(child)
    return Shown(" ".join(title.text_content().split()), name, " ".join(article.text_content().split()))


async def publish(web: Web, payload: str) -> None:
    await web.component.create(ALICE, "news")
    authorization = await bearer(web, ALICE, TokenScope.ADMIN)
    sent = {"Authorization": authorization, "Content_Type": "application/json"}
    got = await web.ask("PUT", "/following/news", json.dumps({"tell": "nobody"}).encode(), **sent)
    assert got.status == 204, got.text
    web.component.clock.advance(1)
    await web.component.publish(ALICE, "news", "a", payload)


def text_entry(title: str, text: str, more: str = "") -> str:
    return note(text, f"<title>{title}</title>{more}")


LINK = "<link rel='alternate' href='https://x.example/'/>"
TITLE_ALONE = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{FIRST}</title>{{}}</entry>"
# The title, the entry, and a part of its text that the title has, too.
REPEATED = {
    "sentence": (FIRST, html_entry(FIRST, f"<p>{FIRST} {REST}</p><p>More.</p>"), FIRST),
    "plain text": (FIRST, text_entry(FIRST, f"{FIRST} {REST}\n\nMore."), FIRST),
    "all of the text": (FIRST, html_entry(FIRST, f"<p>{FIRST}</p>"), FIRST),
    "words": ("I walked to…", html_entry("I walked to…", "<p>I walked <b>to</b> the mill.</p>"), "I walked to"),
    "dots": ("I walked to...", html_entry("I walked to...", f"<p>{FIRST}</p>"), "I walked to"),
    "brackets": ("I walked to [...]", html_entry("I walked to [...]", f"<p>{FIRST}</p>"), "I walked to"),
    "list": ("To buy at the…", text_entry("To buy at the…", "- To buy\n- at the mill\n- today"), "To buy"),
    "summary": (FIRST, text_entry(FIRST, "", f"<summary>{FIRST} {REST}</summary>"), FIRST),
    "Chinese": ("今天 mill 很好。", text_entry("今天 mill 很好。", "今天 mill 很好。我们去河边。"), "今天"),
    "link": (FIRST, html_entry(FIRST, f"<p>{FIRST} {REST}</p>", LINK), FIRST),
}


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("title", "payload", "part"), REPEATED.values(), ids=REPEATED)
async def test_title_that_the_text_begins_with_is_no_heading(
    web: Web, path: str, title: str, payload: str, part: str
) -> None:
    """Screen readers have it, and the text has all of its words once."""
    await publish(web, payload)
    heading, name, text = await shown(web, path)
    assert (heading, name, text.count(part)) == ("", title, 1)


HEADINGS = {
    "HTML": ("At the mill", html_entry("At the mill", f"<p>{FIRST}</p>")),
    "plain text": ("The mill today", text_entry("The mill today", FIRST)),
    "heading in the text": ("At the mill", html_entry("At the mill", f"<h1>At <i>the</i> mill</h1><p>{FIRST}</p>")),
    "heading is the text": ("At the mill", html_entry("At the mill", "<h1>At the mill</h1>")),
    "subject": ("I walked", html_entry("I walked", f"<p>{FIRST}</p>")),
    "part of a word": ("At the mi", html_entry("At the mi", f"<p>At the mill: {FIRST}</p>")),
    "no text": (FIRST, TITLE_ALONE.format("")),
    "answer": ("Yes, at the mill", html_entry("Yes, at the mill", f"<p>{FIRST}</p>", REPLY)),
}


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("title", "payload"), HEADINGS.values(), ids=HEADINGS)
async def test_title_that_says_more_than_the_text_is_a_heading(web: Web, path: str, title: str, payload: str) -> None:
    """A heading of the text that says the same is left out: the title is a link."""
    await publish(web, payload)
    heading, name, text = await shown(web, path)
    assert (heading, name) == (title, "")
    assert text.count("At the mill") <= 1


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "payload",
    [
        TITLE_ALONE.format(REPLY),
        html_entry(FIRST, "<p><img src='https://pictures.example/a.png' alt='A wheel'></p>", REPLY),
    ],
    ids=["title alone", "with a picture"],
)
async def test_answer_that_is_its_title_reads_like_a_text(web: Web, path: str, payload: str) -> None:
    await publish(web, payload)
    heading, name, text = await shown(web, path)
    assert (heading, name, text.count(FIRST)) == ("", FIRST, 1)


@pytest.mark.parametrize(
    ("text", "part", "is_heading"),
    [
        ("Great news!", "Great news!", False),
        (f"{FIRST} {REST}", FIRST, False),
        (f"{FIRST} {REST}\n\nTake **boots**.", FIRST, False),
        ("- one\n- two", "one", False),
        ("> Who comes?\n\nI do, and it is a long way from here to there.", "Who comes?", False),
        ("# Yes\n\nI come.", "Yes", True),
    ],
)
async def test_answers_of_the_form_are_shown_once(web: Web, text: str, part: str, is_heading: bool) -> None:
    """Written in Markdown below an entry, they look like texts; only one with a heading has a heading."""
    await web.component.create(ALICE, "news")
    await web.component.publish(ALICE, "news", "q", html_entry("The question", "<p>Is it far?</p>"))
    session = await sign_in(web, ALICE)
    got = await session.post("/write/news/", f"reply=q&of=news&kind=markdown&action=publish&text={quote(text)}")
    assert got.status == 303, got.text
    page = html.fromstring((await web.get("/entries/news/q", "text/html")).text)
    (answer,) = page.xpath("//section[@id='replies']/article")
    (heading,) = answer.xpath("./h2")
    assert (heading.get("class") is None) is is_heading
    answer.remove(heading)
    assert answer.text_content().count(part) == (0 if is_heading else 1)


@pytest.mark.parametrize("path", ["/", "/feeds/news/", MINE])
async def test_original_page_is_linked_without_a_heading(web: Web, path: str) -> None:
    """A heading is a link to it."""
    await publish(web, html_entry(FIRST, f"<p>{FIRST} {REST}</p>", LINK))
    got = await ((await sign_in(web, ALICE)).get(path, "text/html") if path == MINE else web.get(path, "text/html"))
    links = [
        each.text_content() for each in html.fromstring(got.text).xpath("//article//a[@href='https://x.example/']")
    ]
    assert links == ["Original page"]


async def test_lists_show_the_title_of_the_newest_entry(web: Web) -> None:
    """They have no text beside it."""
    await publish(web, html_entry(FIRST, f"<p>{FIRST} {REST}</p>"))
    for path in ("/", "/feeds/"):
        page = html.fromstring((await web.get(path, "text/html")).text)
        assert [each.text_content().strip() for each in page.find_class("headline")] == [FIRST]
