"""A site with something on every page, and the list of its pages: for tests of all pages, and for the pictures in the
documentation.

A page that needs a click or a form before it looks as it should has steps.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from playwright.async_api import Page, expect

from smartfeeds.core.consumers import PUSH, Consumer, Failure
from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.token import TokenScope
from smartfeeds.features.embedding.requests import SubmitReply
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from support.bearer import bearer
from support.component import ALICE, BOB, CAROL, DOMAIN, bare
from support.prose import PROSE, author, html_entry, note, tags
from support.versions import B1, C1, version
from support.web import Web

Steps = Callable[[Page, Web], Awaitable[None]]

# The settings of the component. Without an admin, nobody would see the administration.
SECTIONS: Final = {
    "pubsub": {"admins": [bare(ALICE)], "creators": ["example.org"]},
    "site": {"name": "Riverside"},
}
_WIDE = "".join(f"<td>{'wide' * 20}" for _ in range(20))
_LONG = (
    "<p>Flour, water and <em>three</em> hours: the dough that our baker makes on Sundays needs nothing else, if the "
    "kitchen is warm and nobody opens the window.</p><h2>What you need</h2><ul><li>500 g of flour</li><li>380 g of "
    "water</li><li>10 g of salt</li></ul><pre>bake --hot 230 --minutes 40 --steam 12 --then-lower-to 200 --until 'the "
    "crust sounds hollow when you knock at it from below'</pre><blockquote><p>Never trust a clock.</p></blockquote>"
    "<table><tr><th>Step<th>Hour<tr><td>Knead<td>1<tr><td>Rest<td>2<tr><td>Bake<td>3</table>"
)
_COMPOUND: Final = "Donaudampfschifffahrtsgesellschaftskapitänsversammlung"
_FEEDS = {
    "town": ("Town news", "What happens between the mill and the harbour."),
    "bakery": ("The bakery", "Bread, and how it is made."),
    "harbour": ("Ships and tides", "Who comes in, and when there is enough water."),
    "plans": ("Plans for the summer", "Edited at several places."),
}


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page of the site. `reader` signs in first; `steps` are done after the page is open. A page that `is_long` is
    looked at in few settings.
    """

    name: str
    path: str
    status: int = 200
    reader: str = ""
    steps: Steps | None = None
    is_long: bool = False


async def fill(web: Web) -> None:
    """Feeds, entries, conflicts, members, subscriptions, tokens, and a day of statistics."""
    component = web.component
    for name, (title, description) in _FEEDS.items():
        await component.create(BOB if name == "harbour" else ALICE, name, title=title, description=description)
    await component.create(ALICE, "quiet", title="Quiet corner", description="Nothing has happened here.")
    await component.create(ALICE, "extremes", title="Extremes", access_model="whitelist")
    await component.create(ALICE, "untitled", title="Notes without titles")
    await component.create(ALICE, "board", title="Board of the club", access_model="whitelist")
    for item_id, payload in PROSE.items():
        component.clock.advance(3_000)
        await component.publish(ALICE, "town", item_id, payload)
    await component.publish(ALICE, "town", "mistake")
    await component.retract(ALICE, "town", "mistake")
    await component.publish(ALICE, "town", "bread", PROSE["bread"].replace("Three", "Four"))
    headed = html_entry("", "<h1>Only a heading</h1><p>This entry has no title of its own.</p>", author("Carol"))
    await component.publish(ALICE, "untitled", "headed", headed)
    wide = html_entry("W" * 300, f"<table><tr>{_WIDE}</table><pre>{'x' * 900}</pre>", tags("t" * 90))
    await component.publish(ALICE, "extremes", "wide", wide)
    video = f"<link rel='enclosure' href='{web.origin}/static/oven.webm' type='video/webm' length='9800000'/>"
    await fill_bakery(web, _LONG, video)
    await component.publish(BOB, "harbour", "tide", note("High water at 14:20, 4.1 m.", author("Harbour office")))
    await _guests(web)
    await _replies(web)
    await _conflicts(web)
    await _people(web)
    await _crowd(web)
    await component.index()


async def _replies(web: Web) -> None:
    """Answers to an entry: one with a title that is the beginning of its text, and one to the other answer."""
    for item_id, title, answered in (("wide", "Is it…", "headed"), ("enough", "It is", "wide")):
        reference = f"<thr:in-reply-to xmlns:thr='http://purl.org/syndication/thread/1.0' ref='{answered}'/>"
        web.component.clock.advance(60)
        answer = html_entry(title, "<p>Is it <b>wide</b> enough?</p>", author("Ben") + reference)
        await web.component.publish(ALICE, "untitled", item_id, answer)


async def fill_bakery(web: Web, text: str, enclosures: str = "") -> None:
    """An entry with every part and this text between two others, in the feed `bakery`. It was edited."""
    component = web.component
    files = (
        f"<link rel='enclosure' href='{web.origin}/files/talk.ogg' type='audio/ogg' length='4200000'/>"
        f"{enclosures}"
        "<link rel='enclosure' href='https://files.example/recipe.pdf' type='application/pdf' length='120000'/>"
        "<link rel='replies' type='text/html' href='https://bakery.example/bread#comments' title='3 comments'/>"
    )
    await component.publish(ALICE, "bakery", "first", PROSE["bread"])
    more = author("Alice", "https://alice.example/") + author("Ben") + tags("baking", "flour") + files
    for title in ("Bread in three hours", "Bread in four hours"):
        component.clock.advance(4_000)
        await component.publish(ALICE, "bakery", "bread", html_entry(title, text, more))
    await component.publish(ALICE, "bakery", "note", note("A note without a title, which says that we are open."))


async def _guests(web: Web) -> None:
    """Replies of guests that wait for approval."""
    await web.component.configure(ALICE, "quiet", guest_replies="approval")
    for number, (name, text, target) in enumerate(
        (
            ("Mara", "I walk here every morning, and it is as quiet as you say.", ""),
            ("علي", "شكرا!", "https://blog.example/a-walk"),
            ("Ben", f"A long word: {'x' * 200}\n\nAnd a second paragraph with https://ben.example/.", "a-walk"),
        )
    ):
        request = SubmitReply(ANONYMOUS, DOMAIN, "quiet", f"{number:024}", name, text, target)
        await web.component.app.service.handle(request)


async def _conflicts(web: Web) -> None:
    """A shared feed with an entry that was edited at three places, and one that was deleted at one of them."""
    component = web.component
    authorization = await bearer(web, ALICE, TokenScope.PUBLISH, "plans")
    here = html_entry("Boat trip on Saturday", "<p>We meet at <strong>nine</strong> at the harbour.</p>")
    await component.publish(ALICE, "plans", "boat", here)
    await component.publish(ALICE, "plans", "cake", html_entry("Who brings cake?", "<p>I could bake one.</p>"))
    there = "&lt;p&gt;We meet at &lt;strong&gt;ten&lt;/strong&gt;, at the mill: the harbour is closed.&lt;/p&gt;"
    for item_id, payload in (
        ("boat", version(B1, title="Boat trip on Sunday", sync_id="boat", content=there)),
        ("boat", version(C1, title="Boat trip", sync_id="boat", content="We go by train.")),
        ("cake", version(B1, B1, sync_id="cake", deleted=True)),
    ):
        headers = {"Authorization": authorization, "Content_Type": "application/atom+xml"}
        answer = await web.ask("PUT", f"/entries/plans/{item_id}", payload.encode(), **headers)
        assert answer.status in (200, 201), answer.text


async def _people(web: Web) -> None:
    """Members and subscriptions of a feed, and a day of statistics."""
    component = web.component
    await component.affiliate(ALICE, "town", CAROL, "publisher")
    await component.subscribe(BOB, "town")
    for reader in (ALICE, CAROL):
        await component.subscribe(reader, "harbour")
    component.app.recent.take()
    for minute in range(24 * 60):
        component.clock.advance(60)
        if minute % 97 == 0 or minute % 211 < 4:
            await component.publish(BOB, "harbour", "tide", note(f"High water at 14:{minute % 60:02}, 4.1 m."))
            await component.settle()
        if minute % 61 < 2:
            await web.get("/feeds/harbour/?max=1")
        component.app.recent.take()


async def _crowd(web: Web) -> None:
    """Long words, titles and addresses without a blank, and lists of many rows, one of which failed."""
    component = web.component
    address = f"https://archive.example/{'path-without-a-blank/' * 12}?{'q' * 120}"
    about = f"Everything that the river commission writes down, in whole: {address}. {'It meets on Mondays. ' * 12}"
    await component.create(ALICE, "crowd", title=f"{_COMPOUND} und {_COMPOUND}", description=about)
    for number in range(12):
        link = f"<link rel='alternate' href='{address}{number}'/>"
        entry = html_entry(
            f"{number}: {_COMPOUND}ssitzung {_COMPOUND}", f"<p>{address} {_LONG}</p>", link + tags(_COMPOUND)
        )
        component.clock.advance(60)
        await component.publish(ALICE, "crowd", f"entry{number}", entry)
        await component.affiliate(ALICE, "crowd", f"{'member' * 4}{number}@{'department' * 3}.example.org", "member")
        await bearer(web, ALICE, TokenScope.READ, "crowd")
    await component.subscribe(CAROL, "crowd")
    await component.settle()

    def fail(tx: WriteTx, context: Context) -> None:
        node = tx.node("crowd")
        assert node is not None
        reason = f"the connection to {address} was refused 17 times"
        tx.set_wait(Consumer(node.node_no, PUSH), Failure(17, context.now_us, None, reason))

    await component.app.service.write(fail)


async def _ask_for_code(page: Page, _web: Web) -> None:
    await page.locator("main form button").first.click()
    await expect(page.locator(".code code")).to_be_visible()


async def _preview(page: Page, _web: Web) -> None:
    await page.locator("#title").fill("A fine day")
    await page.locator("#text").fill(
        "<p>It was <em>fine</em>, and there is a <a href='https://h.example/'>link</a>.</p>"
    )
    await page.locator("#kind").select_option("html")
    await page.locator("button[value=preview]").click()
    await expect(page.locator("article.preview")).to_be_visible()


async def _preview_untitled(page: Page, _web: Web) -> None:
    await page.locator("#text").fill("<h1>Only a heading</h1><p>And a text.</p>")
    await page.locator("#kind").select_option("html")
    await page.locator("button[value=preview]").click()
    await expect(page.locator("article.preview")).to_be_visible()


async def _lose_the_race(page: Page, web: Web) -> None:
    await page.locator("#text").fill("<p>I could bake two.</p>")
    await web.component.publish(ALICE, "bakery", "first", html_entry("Bread", f"<p>Somebody: {id(page)}</p>"))
    await page.locator("button[value=publish]").click()
    await expect(page.locator(".faster")).to_be_visible()


async def _fail_to_sign_in(page: Page, _web: Web) -> None:
    await page.locator("#token").fill("wrong")
    await page.locator("main form button").last.click()
    await expect(page.get_by_role("alert")).to_be_visible()


async def _open_all(page: Page, _web: Web) -> None:
    """Opens what is folded, without a script of the page."""
    folded = page.locator("main details:not([open]) > summary")
    while await folded.count():
        await folded.first.click()


async def _open_operation(page: Page, _web: Web) -> None:
    await page.locator("details:has(> #pull) > summary").click()
    await expect(page.locator("#pull")).to_be_visible()


async def _create_token(page: Page, _web: Web) -> None:
    await page.locator("section.entry button").click()
    await expect(page.locator("code.secret")).to_be_visible()


PAGES: Final = (
    SitePage("river", "/"),
    SitePage("river-page", "/?max=2"),
    SitePage("list", "/feeds/"),
    SitePage("list-by-change", "/feeds/?sort=changed"),
    SitePage("list-signed-in", "/feeds/", reader=ALICE),
    SitePage("search", "/search?q=bread"),
    SitePage("search-no-words", "/search"),
    SitePage("search-no-hits", "/search?q=zeppelin"),
    SitePage("feed", "/feeds/town/"),
    SitePage("feed-subscribe", "/feeds/town/", steps=_open_all),
    SitePage("feed-edited", "/feeds/town/?order=modified"),
    SitePage("feed-created", "/feeds/town/?order=created"),
    SitePage("feed-author", "/feeds/town/?author=Bob"),
    SitePage("feed-category", "/feeds/town/?category=town"),
    SitePage("feed-search", "/feeds/town/?q=bread"),
    SitePage("feed-search-no-hits", "/feeds/town/?q=zeppelin"),
    SitePage("feed-crowded", "/feeds/crowd/"),
    SitePage("feed-crowded-subscribe", "/feeds/crowd/", reader=ALICE, steps=_open_all),
    SitePage("entry-crowded", "/entries/crowd/entry3"),
    SitePage("feed-page", "/feeds/town/?max=2"),
    SitePage("feed-empty", "/feeds/quiet/"),
    SitePage("feed-empty-signed-in", "/feeds/quiet/", reader=ALICE),
    SitePage("feed-signed-in", "/feeds/town/", reader=ALICE),
    SitePage("feed-player", "/feeds/bakery/"),
    SitePage("feed-conflicts", "/feeds/plans/?sync=true"),
    SitePage("feed-untitled", "/feeds/untitled/"),
    SitePage("feed-closed", "/feeds/board/", reader=ALICE),
    SitePage("entry", "/entries/bakery/bread"),
    SitePage("entry-signed-in", "/entries/bakery/bread", reader=ALICE),
    SitePage("entry-note", "/entries/bakery/note"),
    SitePage("entry-untitled", "/entries/untitled/headed"),
    SitePage("entry-wide", "/entries/extremes/wide", reader=ALICE),
    SitePage("feed-wide", "/feeds/extremes/", reader=ALICE),
    SitePage("entry-right-to-left", "/entries/town/arabic"),
    SitePage("entry-replies", "/entries/untitled/headed", reader=ALICE),
    SitePage("feed-replies", "/feeds/untitled/", reader=ALICE),
    SitePage("entry-conflict", "/entries/plans/boat"),
    SitePage("entry-deleted", "/entries/town/mistake", 410),
    SitePage("frame", "/embed/town/"),
    SitePage("frame-wide", "/embed/bakery/"),
    SitePage("frame-form", "/embed/quiet/", steps=_open_all),
    SitePage("frame-sent", "/embed/quiet/?sent=1"),
    SitePage("guests", "/guests/quiet/", reader=ALICE),
    SitePage("outline", "/outline/plans/", reader=ALICE),
    SitePage("conflicts", "/conflicts/plans/", reader=ALICE),
    SitePage("conflict", "/conflicts/plans/boat", reader=ALICE),
    SitePage("conflicts-none", "/conflicts/town/"),
    SitePage("sign-in", "/login?next=/feeds/"),
    SitePage("sign-in-failed", "/login", steps=_fail_to_sign_in),
    SitePage("sign-in-wait", "/login", steps=_ask_for_code),
    SitePage("sign-in-expired", "/login/wait"),
    SitePage("account", "/account", reader=ALICE),
    SitePage("follow", "/follow", reader=ALICE),
    SitePage("follow-signed-out", "/follow", 401),
    SitePage("my-feeds", "/follow/entries", reader=ALICE),
    SitePage("editor", "/write/town/", reader=ALICE),
    SitePage("editor-reply", "/write/town/?reply=bridge", reader=ALICE),
    SitePage("editor-preview", "/write/town/", reader=ALICE, steps=_preview),
    SitePage("editor-preview-untitled", "/write/town/", reader=ALICE, steps=_preview_untitled),
    SitePage("editor-edit", "/write/bakery/bread", reader=ALICE),
    SitePage("editor-conflict", "/write/bakery/first", reader=ALICE, steps=_lose_the_race),
    SitePage("delete", "/delete/town/bread", reader=ALICE),
    SitePage("admin", "/admin/", reader=ALICE),
    SitePage("admin-numbers", "/admin/", reader=ALICE, steps=_open_all),
    SitePage("admin-owner", "/admin/", reader=BOB),
    SitePage("admin-feeds", "/admin/feeds/", reader=ALICE),
    SitePage("admin-options", "/admin/feeds/town/", reader=ALICE, steps=_open_all),
    SitePage("admin-members", "/admin/members/town/", reader=ALICE),
    SitePage("admin-members-crowded", "/admin/members/crowd/", reader=ALICE),
    SitePage("admin-subscriptions", "/admin/subscriptions/town/", reader=ALICE),
    SitePage("admin-tokens", "/admin/tokens/", reader=ALICE),
    SitePage("admin-token-new", "/admin/tokens/", reader=ALICE, steps=_create_token),
    SitePage("admin-consumers", "/admin/consumers/", reader=ALICE),
    SitePage("admin-mirrors", "/admin/mirrors/", reader=ALICE),
    SitePage("admin-enclosures", "/admin/enclosures/", reader=ALICE),
    SitePage("admin-sources", "/admin/sources/", reader=ALICE),
    SitePage("admin-errors", "/admin/log/", reader=ALICE),
    SitePage("api", "/docs", is_long=True),
    SitePage("api-open", "/docs", steps=_open_operation, is_long=True),
    SitePage("problem-400", "/feeds/town/?order=sideways", 400),
    SitePage("problem-401", "/admin/", 401),
    SitePage("problem-403", "/write/town/", 403, reader=BOB),
    SitePage("problem-404", "/feeds/nowhere/", 404),
)
