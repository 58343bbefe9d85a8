"""A page of another site with a feed in a frame: it is sized and live, and only sites that the owner lists show it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FrameLocator, expect

from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.browser import Tab, open_tab
from support.browsing import SESSION_COOKIE, sign_in
from support.component import ALICE
from support.prose import author, note
from support.web import Web

pytestmark = pytest.mark.needs("embedding")

# The page listens to all messages, as any script on it may.
PAGE = """<!doctype html><html lang="en"><title>A blog</title><h1>A blog</h1>
<script>window.messages = [];
addEventListener("message", (event) => messages.push([event.origin, event.data]));</script>
{script}<noscript><a href="{service}/feeds/comments/">Comments</a></noscript><p id="end">The end</p>"""

# Opens a page of another site that has the script with these attributes.
Embed = Callable[..., Awaitable[Tab]]


class Site:
    """A web server with one page. Its port makes its origin another one."""

    def __init__(self) -> None:
        self.page = ""
        self.policy = ""
        self.server: asyncio.Server | None = None

    @property
    def origin(self) -> str:
        """Its origin."""
        assert self.server is not None
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers a request with the page."""
        with contextlib.suppress(asyncio.IncompleteReadError):  # a connection that the browser opens in advance
            await reader.readuntil(b"\r\n\r\n")
        policy = f"Content-Security-Policy: {self.policy}\r\n" if self.policy else ""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{policy}Connection: close\r\n\r\n"
        writer.write((head + self.page).encode())
        writer.close()


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[Site]:
    """A web site that is not this service."""
    site = Site()
    site.server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    yield site
    site.server.close()


@pytest.fixture
def embed(web: Web, site: Site, browser: Browser) -> Embed:
    """Opens a page of the site with the script."""

    async def opened(attributes: str = 'data-feed="comments"', **options: object) -> Tab:
        site.page = PAGE.format(
            script=f'<script src="{web.origin}/embed.js" {attributes}></script>', service=web.origin
        )
        tab = await open_tab(browser, site.origin, **options)
        await tab.go("/")
        return tab

    return opened


async def comments(web: Web, *origins: str) -> None:
    """The feed `comments`, which pages of these origins may show."""
    await web.component.create(ALICE, "comments", title="Comments")
    headers = {"Authorization": await bearer(web, ALICE, TokenScope.ADMIN), "Content_Type": "application/json"}
    listed = ", ".join(f'"{origin}"' for origin in origins)
    answer = await web.ask("PATCH", "/feeds/comments/", f'{{"frame_origins": [{listed}]}}'.encode(), **headers)
    assert answer.status == 200


def framed(tab: Tab) -> FrameLocator:
    """The content of the frame."""
    return tab.page.frame_locator("iframe")


async def heights(tab: Tab) -> tuple[int, int]:
    """The height of the frame, and of its content."""
    outer = await tab.page.locator("iframe").evaluate("frame => frame.getBoundingClientRect().height")
    inner = await framed(tab).locator("html").evaluate("root => Math.ceil(root.getBoundingClientRect().height)")
    return outer, inner


async def fits(tab: Tab) -> bool:
    """Whether the frame is as high as its content."""
    outer, inner = await heights(tab)
    return outer == inner


async def test_feed_on_another_site_is_sized_and_live(web: Web, site: Site, embed: Embed) -> None:
    """[SF-004] One line on the other page, and no click."""
    await comments(web, site.origin)
    await web.component.publish(ALICE, "comments", "a", note("The first comment", author("Ann")))
    tab = await embed()
    frame = framed(tab)
    await expect(frame.locator("article")).to_have_count(1)
    await expect(frame.locator("#state")).to_have_text("live")
    await tab.page.wait_for_function("messages.length > 0")
    assert await fits(tab)
    await expect(tab.page.locator("iframe")).to_be_visible()
    await expect(tab.page.get_by_role("link")).to_have_count(0)
    before, _ = await heights(tab)

    for number in range(4):
        await web.component.publish(ALICE, "comments", f"b{number}", note(f"Comment {number} " + "with words " * 40))
    await expect(frame.locator("article")).to_have_count(5)
    await expect(frame.locator("article").first).to_contain_text("Comment 3")
    await tab.page.wait_for_function(f"document.querySelector('iframe').getBoundingClientRect().height > {before + 99}")
    assert await fits(tab)
    await web.component.retract(ALICE, "comments", "a")
    await expect(frame.get_by_text("The first comment")).to_have_count(0)
    messages = await tab.page.evaluate("messages")
    assert {origin for origin, _ in messages} == {web.origin}
    assert {tuple(data) for _, data in messages} == {("smartfeeds", "height")}
    assert (tab.dialogs, tab.complaints, tab.errors) == ([], [], [])


@pytest.mark.parametrize("chance", [0.0, 0.5])
async def test_frames_ask_a_service_that_refuses_ever_more_rarely_and_not_all_at_once(
    web: Web, browser: Browser, chance: float
) -> None:
    """Each page that shows the frame has a time of its own, between half of the pause and all of it."""
    await comments(web)
    tab = await open_tab(browser, web.origin)
    # Pauses are written down, and over at once.
    await tab.page.add_init_script(
        f"""Math.random = () => {chance};
        const begin = window.setTimeout;
        window.pauses = [];
        window.setTimeout = (work, pause) => begin(work, pause < 1000 ? pause : pauses.push(pause) * 0);"""
    )
    await tab.page.route("**/feeds/comments/?*", lambda route: route.fulfill(status=503))

    await tab.go("/embed/comments/")
    await expect(tab.page.locator("#state")).to_have_text("no longer live")
    seconds = [min(10 * 2**number, 320) * (0.5 + chance / 2) for number in range(30)]
    assert await tab.page.evaluate("pauses.map((pause) => pause / 1000)") == seconds


async def test_entries_are_as_wide_as_the_frame(web: Web, site: Site, embed: Embed) -> None:
    """The page around the frame decides about its width."""
    await comments(web, site.origin)
    await web.component.publish(ALICE, "comments", "a", note("The first comment", author("Ann")))
    for width in (360, 1280):
        tab = await embed(viewport={"width": width, "height": 600})
        box = await framed(tab).locator("article").bounding_box()
        assert box is not None and width - 60 < box["width"] < width


async def test_attributes_choose_view_theme_and_language(web: Web, site: Site, embed: Embed) -> None:
    await comments(web, site.origin)
    reply = '<in-reply-to xmlns="http://purl.org/syndication/thread/1.0" ref="tag:blog.example,2026:1"/>'
    await web.component.publish(ALICE, "comments", "a", note("An answer", reply))
    await web.component.publish(ALICE, "comments", "b", note("Something else"))
    tab = await embed(
        'data-feed="comments" data-in-reply-to="tag:blog.example,2026:1" data-theme="dark" data-language="de" '
        'data-title="Kommentare" data-max="5"'
    )

    await expect(framed(tab).locator("article")).to_have_count(1)
    await expect(framed(tab).locator("article")).to_contain_text("An answer")
    root = framed(tab).locator("html")
    assert (await root.get_attribute("lang"), await root.get_attribute("data-theme")) == ("de", "dark")
    assert await tab.page.locator("iframe").get_attribute("title") == "Kommentare"


@pytest.mark.parametrize("sites", [[], ["https://blog.example", "http://127.0.0.1:1"]], ids=["nobody", "others"])
async def test_site_that_is_not_listed_gets_a_link(web: Web, embed: Embed, sites: list[str]) -> None:
    """The browser refuses the frame, and nothing of the feed is on the page."""
    await comments(web, *sites)
    await web.component.publish(ALICE, "comments", "a", note("The first comment"))
    tab = await embed()

    link = tab.page.get_by_role("link", name=f"comments ({web.origin.partition('//')[2]})", exact=True)
    await expect(link).to_have_attribute("href", f"{web.origin}/feeds/comments/")
    # Nobody waits for the link: it is there while the script still waits for the frame.
    assert await tab.page.locator("iframe").count() == 1 and not await tab.page.locator("iframe").is_visible()
    await expect(tab.page.locator("iframe")).to_have_count(0, timeout=15_000)
    await expect(link).to_be_visible()
    assert any("frame_origins" in complaint for complaint in tab.complaints)
    assert any("frame-ancestors" in complaint for complaint in tab.complaints)
    assert await tab.page.evaluate("messages") == []


async def test_page_with_a_strict_policy_shows_the_frame(web: Web, site: Site, embed: Embed) -> None:
    """The script needs no permission for styles."""
    await comments(web, site.origin)
    await web.component.publish(ALICE, "comments", "a", note("The first comment"))
    site.policy = f"default-src 'none'; script-src {web.origin} 'sha256-none'; frame-src {web.origin}"
    tab = await embed()

    await expect(framed(tab).locator("article")).to_have_count(1)
    await expect(tab.page.locator("iframe")).not_to_have_css("height", "192px")


async def test_messages_of_others_change_nothing(web: Web, site: Site, embed: Embed) -> None:
    """The page itself, and a frame of any other origin, may send the same message."""
    await comments(web, site.origin)
    await web.component.publish(ALICE, "comments", "a", note("The first comment"))
    tab = await embed()
    await tab.page.wait_for_function("messages.length > 0")
    assert await fits(tab)

    await tab.page.evaluate("""async () => {
      const heard = new Promise((resolve) => addEventListener("message", (event) => event.data.last && resolve()));
      postMessage({ smartfeeds: "height", height: 9999 }, "*");
      const other = document.createElement("iframe");
      other.srcdoc = "<script>parent.postMessage({ smartfeeds: 'height', height: 8888 }, '*');"
        + "parent.postMessage({ last: true }, '*')</" + "script>";
      document.body.append(other);
      await heard;
      other.remove();
    }""")
    assert await fits(tab)


async def test_page_without_scripts_has_a_link(web: Web, site: Site, embed: Embed) -> None:
    await comments(web, site.origin)
    tab = await embed(java_script_enabled=False)

    await expect(tab.page.get_by_role("link", name="Comments")).to_be_visible()
    await expect(tab.page.locator("iframe")).to_have_count(0)


async def test_guest_replies_in_the_frame_and_the_owner_publishes_it(
    web: Web, site: Site, embed: Embed, browser: Browser
) -> None:
    """The form works in a frame of another origin, without a cookie. The reply comes into the open frame by itself."""
    await comments(web, site.origin)
    await web.component.configure(ALICE, "comments", guest_replies="approval")
    tab = await embed('data-feed="comments" data-in-reply-to="https://blog.example/a-walk"')
    frame = framed(tab)
    await frame.get_by_text("Write a reply").click()
    await tab.page.wait_for_function("messages.length > 1")
    assert await fits(tab)
    await frame.get_by_label("Name").fill("Mara <b>")
    await frame.get_by_label("Your reply").fill("It is as quiet as you say.\nSee you there.")
    assert not await frame.get_by_label("Leave this field empty").is_visible()
    web.component.clock.advance(60)
    await frame.get_by_role("button", name="Send").click()
    await expect(frame.get_by_role("status").filter(has_text="Thank you.")).to_be_visible()
    await expect(frame.locator("article")).to_have_count(0)
    assert await tab.page.context.cookies() == []

    owner = await open_tab(browser, web.origin)
    session = await sign_in(web, ALICE)
    await owner.page.context.add_cookies([{"name": SESSION_COOKIE, "value": session.text, "url": web.origin}])
    await owner.go("/guests/comments/")
    await expect(owner.page.locator("article")).to_contain_text("Mara <b>")
    lines = owner.page.locator("article .body")
    assert "quiet as you say.\nSee" in await lines.inner_text(), "the owner sees the lines of the guest"
    await owner.page.get_by_role("button", name="Publish").click()
    await expect(owner.page.locator("article")).to_have_count(0)
    owner.check()
    await expect(frame.locator("article")).to_contain_text("It is as quiet as you say.")
    await expect(frame.locator(".author")).to_have_text("Mara <b> (guest)")
    assert (tab.dialogs, tab.complaints, tab.errors) == ([], [], [])
