"""The page to follow a blog: it works without a script, for people who are signed in."""

import re
from typing import Any
from urllib.parse import quote, unquote

import pytest
from lxml import html

from smartfeeds.core.token import TokenScope
from smartfeeds.features.polling import rows
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.source import SourceSettings, new_source
from smartfeeds.features.polling.sources import add_source
from support.browsing import SignedIn, sign_in
from support.component import ALICE, BOB, bare
from support.polling import atom, running_blog
from support.web import Got, Web, WebStarter
from support.website import Site

# The page offers to tell people by chat.
pytestmark = pytest.mark.needs("bot")

CAROL = "carol@elsewhere.example/phone"
EVIL = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'"


@pytest.fixture
async def site():
    async with running_blog() as site:
        yield site


@pytest.fixture
async def web(start_web: Any, loopback_is_public: None) -> Web:
    web: Web = await start_web()
    return web


@pytest.fixture
async def alice(web: Web) -> SignedIn:
    return await sign_in(web, ALICE)


async def look(reader: SignedIn, url: str, **headers: str) -> Got:
    return await reader.get(f"/follow?url={quote(url, safe='')}", "text/html", **headers)


def text_of(got: Got) -> str:
    return re.sub(r"\s+", " ", html.fromstring(got.text).text_content())


def fields(**values: str) -> str:
    return "&".join(f"{name}={quote(text, safe='')}" for name, text in values.items())


def parts(csrf: str, document: bytes, **values: str) -> tuple[bytes, str]:
    """A form with a file, as a browser sends it: the form token first."""
    lines = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode()
        for name, text in {"csrf": csrf, **values}.items()
    ]
    head = (
        b'--b\r\nContent-Disposition: form-data; name="list"; filename="my.opml"\r\nContent-Type: text/x-opml\r\n\r\n'
    )
    return b"".join((*lines, head, document, b"\r\n--b--\r\n")), "multipart/form-data; boundary=b"


async def upload(reader: SignedIn, document: bytes, csrf: str | None = None, **values: str) -> Got:
    body, kind = parts(reader.csrf if csrf is None else csrf, document, **values)
    sent = {"Cookie": reader.cookie, "Sec_Fetch_Site": "same-origin", "Content_Type": kind}
    return await reader.web.ask("POST", "/follow/list", body, "text/html", **sent)


async def poll(web: Web) -> None:
    (row,) = await web.component.app.service.store.read(lambda tx: rows.sources(tx, 0, 9))
    web.component.clock.advance(3_600)
    await web.component.app.parts.get(Poller).poll(row)


async def test_signed_out_reader_learns_how_to_come_back(web: Web, site: Site) -> None:
    got = await web.get(f"/follow?url={quote(site.url('/'), safe='')}", "text/html")
    (link,) = html.fromstring(got.text).xpath("//main//a[@class='primary']/@href")
    assert got.status == 401 and link == f"/login?next=/follow%3Furl%3D{quote(quote(site.url('/'), safe=''), safe='')}"
    assert (await web.get(link, "text/html")).status == 200 and site.asked == []
    assert "/follow" not in (await web.get("/", "text/html")).text


async def test_every_page_links_to_it_for_readers_who_are_signed_in(alice: SignedIn) -> None:
    # Once for wide windows, and once in the menu of narrow ones.
    labels = html.fromstring((await alice.get("/", "text/html")).text).xpath("//header//a[@href='/follow']/text()")
    assert set(labels) == {"Follow"}


async def test_blog_is_looked_at_and_followed(alice: SignedIn, site: Site) -> None:
    """[SRC-048] [SRC-083] The page shows what is there; the form as the page has it follows the feed."""
    got = await look(alice, site.url("/"))
    page = html.fromstring(got.text)
    text = text_of(got)
    assert got.status == 200 and got.header("Cache-Control") == "no-store"
    for word in ("Alice & her blog", "The Blog", "Atom 1.0", "2 entries", "second", "nothing at this address"):
        assert word in text, word
    form = page.xpath("//section[@aria-labelledby='found']/form")[0]
    choices = form.xpath(".//input[@name='url']")
    assert [choice.get("disabled") is None for choice in choices] == [True, False]
    sent = {name: value for name, value in form.form_values() if name != "csrf"}
    assert sent == {"from": site.url("/"), "url": site.url("/feed"), "name": "", "tell": "chat"}
    followed = await alice.post("/follow", fields(**sent))
    assert followed.status == 303, followed.text
    path = followed.header("Location")
    shown = await alice.get(path.partition("#")[0], "text/html")
    (row,) = html.fromstring(shown.text).xpath(f"//li[@id='{path.partition('#')[2]}']")
    # Where the browser lands.
    assert row.xpath("*[@role='status']/text()") == ["You follow The Blog now."]
    assert shown.text.count('role="status"') == 1 and "new entries come by chat" in row.text_content()
    again = text_of(await look(alice, site.url("/feed")))
    assert "you follow it" in again


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/missing", "The server has nothing at this address. Look on the site"),
        ("/text", "There is a web page, and no feed. Look on the site"),
        ("/comments-only", "The server has nothing at this address. Look on the site"),
    ],
)
async def test_address_without_a_feed_offers_no_choice(alice: SignedIn, site: Site, path: str, words: str) -> None:
    link = b"<link rel='alternate' type='application/rss+xml' href='/comments'>"
    site.pages |= {"/text": b"<html><body>no feed</body></html>", "/comments-only": b"<html>" + link + b"</html>"}
    got = await look(alice, site.url(path))
    (found,) = html.fromstring(got.text).xpath("//section[@aria-labelledby='found']")
    text = re.sub(r"\s+", " ", found.text_content())
    assert "There is no feed to follow" in text and words in text
    assert "1 feed" not in text and found.xpath(".//input | .//button") == []


@pytest.mark.parametrize("user", [ALICE, CAROL])
@pytest.mark.parametrize(
    "address",
    [
        "{site}/feeds/planet/",
        "{site}/feeds/planet.atom",
        "{site}/entries/planet/one",
        "{site}/feeds/planet/?author=bob",
        "xmpp:feeds.example.org?;node=planet",
    ],
)
async def test_feed_of_the_service_is_followed_by_its_address(web: Web, user: str, address: str) -> None:
    """By everybody: the service requests nothing and adds nothing. There is no place to choose for its entries."""
    await web.component.create(BOB, "planet", title="The planet")
    await web.component.publish(BOB, "planet", "one")
    reader, address = await sign_in(web, user), address.replace("{site}", web.origin)
    got = await look(reader, address)
    (found,) = html.fromstring(got.text).xpath("//section[@aria-labelledby='found']")
    text = re.sub(r"\s+", " ", found.text_content())
    for word in ("The planet", "of this service", "1 entry", "newest 1 Jan 2026", "one", "Read it here"):
        assert word in text, text
    assert ("You follow the whole feed." in text) == ("?author" in address)
    (form,) = found.xpath("form")
    sent = {name: value for name, value in form.form_values() if name != "csrf"}
    assert sent == {"from": address, "url": f"{web.origin}/feeds/planet/", "tell": "chat"}
    followed = await reader.post("/follow", fields(**sent))
    assert followed.header("Location").startswith("/follow?done=followed&feed=planet#"), followed.text
    assert (await reader.post("/follow", fields(**sent))).header("Location").startswith("/follow?done=already")
    assert "you follow it" in text_of(await look(reader, address))


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("answer", "only its members may read it: ask its owner"),
        ("hide", "no such node, or it is closed to you"),
    ],
)
async def test_closed_feed_of_the_service_is_as_everywhere(start_web: Any, setting: str, word: str) -> None:
    """`pubsub.closed_nodes` decides whether a reader learns whom to ask."""
    web = await start_web(pubsub={"closed_nodes": setting})
    await web.component.create(BOB, "secret", title="Plans", access_model="whitelist")
    await web.component.publish(BOB, "secret", "hidden")
    reader, url = await sign_in(web, ALICE), f"{web.origin}/feeds/secret/"
    status = (await reader.get("/feeds/secret/", "text/html")).status
    for got in (await look(reader, url), await reader.post("/follow", fields(url=url))):
        text = text_of(got)
        assert word in text and "Plans" not in text and "hidden" not in text, text
        assert got.status == status


async def test_feed_whose_owner_approves_is_asked_for(web: Web) -> None:
    await web.component.create(BOB, "club", title="The club", access_model="authorize")
    await web.component.publish(BOB, "club", "hidden")
    reader, url = await sign_in(web, ALICE), f"{web.origin}/feeds/club/"
    text = text_of(await look(reader, url))
    assert "its owner decides who may follow it" in text and "hidden" not in text and "1 entry" not in text
    path = (await reader.post("/follow", fields(url=url))).header("Location").partition("#")[0]
    text = text_of(await reader.get(path, "text/html"))
    assert "The owner of The club has to approve your request." in text and "waits for its owner" in text


@pytest.mark.parametrize("path", ["/", "/feeds/", "/feeds/nowhere/", "/entries/nowhere/1", "/docs"])
async def test_address_of_the_service_without_a_feed_says_so(alice: SignedIn, path: str) -> None:
    text = text_of(await look(alice, f"{alice.web.origin}{path}"))
    assert ("no such node" if "nowhere" in path else "the address is one of this service, and no feed") in text


async def control(reader: SignedIn, path: str = "/feeds/planet/") -> Any:
    """The control beside the name of a feed, None without one."""
    page = html.fromstring((await reader.get(path, "text/html")).text)
    return next(iter(page.xpath("//*[contains(concat(' ', @class, ' '), ' follow ')]")), None)


async def test_page_of_a_feed_has_a_button_to_follow_it(web: Web) -> None:
    """It leads back to the page, in its view. Another menu there ends the following."""
    await web.component.create(BOB, "planet", title="The planet")
    reader, other = await sign_in(web, CAROL), await sign_in(web, BOB)
    path = "/feeds/planet/?order=created"
    form = await control(reader, path)
    assert form.text_content().strip() == "Follow"
    for action, word in (("follow", "are in My feeds"), ("chat", "come by chat"), ("nobody", "are in My feeds")):
        form = form if form.tag == "form" else form.xpath(".//form")[0]
        sent = {name: value for name, value in form.form_values() if name != "csrf"}
        assert action in form.xpath(".//button/@value")
        got = await reader.post(form.get("action"), fields(**sent, action=action))
        assert (got.status, got.header("Location")) == (303, path), got.text
        menu = await control(reader, path)
        assert menu.xpath("summary/text()") == ["You follow it"] and word in menu.text_content()
        form = menu
    assert (await control(other)).tag == "form"
    form = form.xpath(".//form")[0]
    sent = {name: value for name, value in form.form_values() if name != "csrf"}
    await reader.post(form.get("action"), fields(**sent, action="unfollow"))
    assert (await control(reader)).tag == "form"
    # An address elsewhere is no way back.
    got = await reader.post("/follow/feeds/planet/", fields(action="follow", next="//evil.example/"))
    assert got.header("Location").startswith("/follow?done=followed")


async def test_button_is_for_readers_who_may_follow(web: Web) -> None:
    """Signed in, with all rights of their account, and in a feed that permits subscriptions."""
    await web.component.create(BOB, "planet")
    assert 'value="follow"' not in (await web.get("/feeds/planet/", "text/html")).text
    assert await control(await sign_in(web, ALICE, TokenScope.PUBLISH)) is None
    assert await control(await sign_in(web, ALICE, feed="planet")) is None
    assert await control(await sign_in(web, ALICE)) is not None
    await web.component.configure(BOB, "planet", subscribe="false")
    assert await control(await sign_in(web, ALICE)) is None


async def test_own_node_and_new_name_can_be_chosen(alice: SignedIn, site: Site) -> None:
    await alice.web.component.create(ALICE, "mine", title="My planet")
    url = site.url("/feed")
    assert await places(alice, url) == ["any", "node:mine"]
    assert (await alice.post("/follow", fields(url=url, place="node:mine", tell="nobody"))).status == 303
    assert await places(await sign_in(alice.web, BOB), url) == ["any", "new"]
    assert (await alice.post("/follow", fields(url=url, place="new", name="blog", tell="nobody"))).status == 303
    # A name is enough.
    assert (await alice.post("/follow", fields(url=url, place="any", name="blog2", tell="nobody"))).status == 303
    nodes = await alice.web.component.app.service.store.read(lambda tx: [row.node for row in rows.sources(tx, 0, 9)])
    assert nodes == ["mine", "blog", "blog2"]


async def places(reader: SignedIn, url: str) -> list[str]:
    """The nodes that the form offers for the entries of a feed, in its select list."""
    return html.fromstring((await look(reader, url)).text).xpath("//select[@name='place']//option/@value")


async def test_feeds_of_a_list_are_no_places_for_others(start_web: Any, site: Site, loopback_is_public: None) -> None:
    """Each has one feed. They would hide the feeds of the reader, even if there are hundreds of them."""
    web = await start_web(limits={"sources_per_jid": 300})
    reader = await sign_in(web, ALICE)
    lines = "".join(f'<outline text="{number}" xmlUrl="{site.url(f"/{number}")}"/>' for number in range(105))
    await upload(reader, f'<opml version="2.0"><body>{lines}</body></opml>'.encode())
    await reader.post("/follow", fields(url=site.url("/feed"), place="new", name="named", tell="nobody"))
    await web.component.create(ALICE, "mine", title="My planet")
    owned = await web.component.app.service.store.read(lambda tx: tx.affiliations_of(bare(ALICE)))
    assert len(owned) == 107
    assert await places(reader, site.url("/comments")) == []
    site.pages["/other"] = atom("one", feed="Other")
    assert await places(reader, site.url("/other")) == ["any", "node:named", "node:mine"]


@pytest.mark.parametrize(
    ("sent", "status", "word"),
    [
        ({"place": "new", "name": ""}, 400, "type a name"),
        ({"place": "new", "name": "bobs"}, 409, "choose another name"),
        ({"url": "nothing"}, 406, "no address"),
        ({"url": "http://me:secret@a.example/feed"}, 406, "an address with a password cannot be followed here"),
        ({"url": "{site}/missing"}, 406, "nothing at this address"),
    ],
)
async def test_refusal_is_explained_and_the_reader_chooses_again(
    alice: SignedIn, site: Site, sent: dict[str, str], status: int, word: str
) -> None:
    await alice.web.component.create(BOB, "bobs")
    form = {"url": site.url("/feed"), "from": site.url("/"), **sent}
    form["url"] = form["url"].replace("{site}", site.url(""))
    got = await alice.post("/follow", fields(**form))
    assert (got.status, word in text_of(got)) == (status, True), text_of(got)
    if sent.get("name"):
        assert 'value="bobs"' in got.text and "The Blog" in got.text


async def test_stranger_reads_whom_to_ask(web: Web, site: Site) -> None:
    """[SRC-084]"""
    got = await look(await sign_in(web, CAROL), site.url("/"))
    assert got.status == 403 and "Ask an admin of this service" in text_of(got) and site.asked == []


async def test_session_of_a_token_with_few_rights_follows_nothing(web: Web, site: Site) -> None:
    reader = await sign_in(web, ALICE, TokenScope.PUBLISH)
    assert (await look(reader, site.url("/"))).status == 403
    assert (await reader.post("/follow", fields(url=site.url("/feed")))).status == 403
    assert site.asked == []


@pytest.mark.parametrize(
    ("owner", "access", "is_found"), [("", "open", True), ("", "whitelist", False), (bare(BOB), "open", False)]
)
async def test_site_in_a_private_network_leads_to_its_feed(
    start_web: WebStarter, site: Site, owner: str, access: str, is_found: bool
) -> None:
    """[SRC-084] The feed, which the operator has the service read, says to which site it belongs. The site is not
    requested, sources of users claim no site, and a closed node is not named."""
    web = await start_web(sources={"allowed_networks": ["127.0.0.0/8"]})
    await web.component.create(BOB, "news", title="The news", access_model=access)
    site.pages["/feed"] = atom("first", inner=f'<link href="{site.url("")}"/>')
    settings = SourceSettings(allow_private=bool(owner))
    row = new_source("news", site.url("/feed"), web.component.clock(), settings, owner=owner)
    await web.component.app.service.write(lambda tx, context: add_source(tx, context, row))
    await poll(web)
    site.asked.clear()
    url = site.url("/")
    # One who may add feeds, and one who may not.
    for user in (ALICE, CAROL):
        reader = await sign_in(web, user)
        got = await look(reader, url)
        text = text_of(got)
        assert ("The news" in text and "here already" in text) == is_found, text
        assert got.status == (200 if is_found or user == ALICE else 403)
        assert "--allow-private" not in text and "allowed_networks" not in text
        followed = await reader.post("/follow", fields(url=url, tell="nobody"))
        assert (followed.status == 303, "--allow-private" in followed.text) == (is_found, False), followed.text
        assert not is_found or "you follow it" in text_of(await look(reader, url))
    other = await sign_in(web, ALICE)
    assert "here already" not in text_of(await look(other, site.url("/other")))
    assert site.asked == []


async def test_bookmark_leads_from_a_blog_to_what_can_be_followed(alice: SignedIn) -> None:
    """A browser decodes the bookmark and runs it on the page of the blog."""
    page = html.fromstring((await alice.get("/follow", "text/html")).text)
    (bookmark,) = page.xpath("//main//a[text()='Follow with Smart Feeds']/@href")
    address = f"{alice.web.origin}/follow"
    assert unquote(bookmark) == f'javascript:location.href="{address}"+"?url="+encodeURIComponent(location.href)'


@pytest.mark.parametrize("path", ["/follow", "/follow/feeds/blog/"])
async def test_form_of_another_page_changes_nothing(alice: SignedIn, site: Site, path: str) -> None:
    data = fields(url=site.url("/feed"), action="unfollow").encode()
    sent = {"Cookie": alice.cookie, "Content_Type": "application/x-www-form-urlencoded"}
    for more in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-origin"}):
        assert (await alice.web.ask("POST", path, data, "text/html", **sent, **more)).status in (401, 403)
    assert (await upload(alice, b"<opml/>", csrf="wrong")).status == 403
    assert site.asked == []


async def test_link_of_another_site_does_not_reach_the_networks_of_the_operator(start_web: Any, site: Site) -> None:
    """[SRC-084] An admin reaches `sources.allowed_networks` from our own pages only."""
    web = await start_web(sources={"allowed_networks": ["127.0.0.0/8"]}, pubsub={"admins": [bare(ALICE)]})
    admin = await sign_in(web, ALICE)
    sent = {"Cookie": admin.cookie, "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    got = await web.get(f"/follow?url={quote(site.url('/feed'), safe='')}", "text/html", **sent)
    assert "private network" in text_of(got) and site.asked == []
    assert "The Blog" in text_of(await look(admin, site.url("/feed")))


async def test_hostile_texts_stay_texts(alice: SignedIn, site: Site) -> None:
    """Those of the address, of a page, of a feed, and of a list."""
    site.pages["/"] = f"<html><head><title>{EVIL}</title></head></html>".encode()
    hostile = EVIL.replace("<", "&lt;").replace('"', "&quot;")
    site.pages["/feed"] = atom(hostile, feed=hostile)
    inner = f'<outline text="{hostile}" xmlUrl="x:{hostile}"/>'
    document = f'<opml version="2.0"><body><outline text="{hostile}">{inner}</outline></body></opml>'
    answers = [
        await look(alice, EVIL),
        await look(alice, site.url("/")),
        await look(alice, site.url("/feed")),
        await alice.post("/follow", fields(url=site.url("/feed"), place="new", name=EVIL)),
        await upload(alice, document.encode()),
        await alice.get("/follow", "text/html"),
    ]
    for got in answers:
        assert "<script>alert" not in got.text and "<img src=x" not in got.text


async def test_failing_feed_is_shown_in_words(alice: SignedIn, site: Site) -> None:
    """[SRC-047] What happened, what the service does next, and what the reader can do; not "0 entries"."""
    await alice.post("/follow", fields(url=site.url("/feed"), place="new", name="blog", tell="nobody"))
    feed = site.pages.pop("/feed")
    await poll(alice.web)
    got = await alice.get("/follow", "text/html")
    text = text_of(got)
    for word in (
        "1 of these feeds cannot be read",
        "nothing at this address",
        "The service tries again:",
        "Look on the site",
    ):
        assert word in text, word
    (form,) = html.fromstring(got.text).xpath("//form[contains(@action, '/follow/feeds/')]")
    assert form.get("action") == "/follow/feeds/blog/" and "Try again" in form.text_content()
    site.pages["/feed"] = feed
    alice.web.component.clock.advance(61)
    assert (
        (await alice.post("/follow/feeds/blog/", "action=retry")).header("Location").startswith("/follow?done=retried")
    )
    await poll(alice.web)
    assert "cannot be read" not in text_of(await alice.get("/follow", "text/html"))
    german = await alice.get("/follow", "text/html", Accept_Language="de")
    assert "Einem Blog folgen" in german.text


async def test_feed_that_was_never_read_has_no_number(alice: SignedIn, site: Site) -> None:
    document = f'<opml version="2.0"><body><outline text="A" xmlUrl="{site.url("/missing")}"/></body></opml>'
    await upload(alice, document.encode())
    assert "is read for the first time soon" in text_of(await alice.get("/follow", "text/html"))
    await poll(alice.web)
    text = text_of(await alice.get("/follow", "text/html"))
    assert "nothing was read yet" in text and "0 entries" not in text


async def test_page_of_a_feed_that_fails_says_so(alice: SignedIn, site: Site) -> None:
    """[SRC-047] Not "0 entries". The page of before is in the cache of the service, and is not shown any more."""
    document = f'<opml version="2.0"><body><outline text="A" xmlUrl="{site.url("/later")}"/></body></opml>'
    await upload(alice, document.encode())
    path = "/feeds/127.0.0.1/later/"
    for _ in range(2):
        assert "Nothing has been published here yet." in (await alice.web.get(path, "text/html")).text
    await poll(alice.web)
    for _ in range(2):
        failed = (await alice.web.get(path, "text/html")).text
        assert "cannot be read at the moment" in failed and "0 entries" not in failed
    site.pages["/later"] = atom("one", feed="Later")
    await poll(alice.web)
    read = (await alice.web.get(path, "text/html")).text
    assert "1 entry" in read and "cannot be read" not in read


async def test_telling_changes_and_following_ends(alice: SignedIn, site: Site) -> None:
    await alice.post("/follow", fields(url=site.url("/feed"), place="new", name="blog", tell="nobody"))
    words = {
        "chat": ("New entries of The Blog come by chat now.", "new entries come by chat"),
        "nobody": ("You get no messages about new entries of The Blog.", "no messages"),
    }
    for action, (message, state) in words.items():
        path = (await alice.post("/follow/feeds/blog/", f"action={action}")).header("Location")
        (row,) = html.fromstring((await alice.get(path.partition("#")[0], "text/html")).text).xpath(
            f"//li[@id='{path.partition('#')[2]}']"
        )
        assert row.xpath("*[@role='status']/text()") == [message] and state in row.xpath("p[@class='meta']/*/text()")
    path = (await alice.post("/follow/feeds/blog/", "action=unfollow")).header("Location").partition("#")[0]
    text = text_of(await alice.get(path, "text/html"))
    assert "You follow The Blog no longer." in text and "You follow no feed yet" in text
    again = await alice.post("/follow/feeds/blog/", "action=unfollow")
    assert again.status in (404, 409) and "do not follow" in text_of(again)
    assert (await alice.post("/follow/feeds/blog/", "action=dance")).status == 400


async def test_message_names_the_feed_wherever_the_reader_lands(alice: SignedIn) -> None:
    """Behind 50 others the feed is on the next page of the list: the message is then at the top."""
    for number in range(50):
        await alice.web.component.create(BOB, f"feed{number:02}")
        await alice.web.component.subscribe(bare(ALICE), f"feed{number:02}")
    await alice.web.component.create(BOB, "last", title="The last one")
    path = (await alice.post("/follow/feeds/last/", "action=follow")).header("Location")
    page = html.fromstring((await alice.get(path.partition("#")[0], "text/html")).text)
    assert page.xpath("//main/p[@role='status']/text()") == ["You follow The last one now."]
    # A link of somebody else puts no words into the mouth of the service, and names no feed that is closed.
    await alice.web.component.create(BOB, "secret", title="Secret plans", access_model="whitelist")
    for feed in ("secret", "send%20your%20password%20to%20eve"):
        text = text_of(await alice.get(f"/follow?done=unfollowed&feed={feed}", "text/html"))
        assert "You follow this feed no longer." in text and "Secret plans" not in text and "eve" not in text


async def test_late_poll_is_read_again_now(alice: SignedIn, site: Site) -> None:
    """Not "read again 2 hours ago"."""
    await alice.post("/follow", fields(url=site.url("/feed"), place="new", name="blog", tell="nobody"))
    alice.web.component.clock.advance(3 * 86_400)
    page = html.fromstring((await alice.get("/follow", "text/html")).text)
    (time,) = page.xpath("//li//span[starts-with(text(), 'read again')]/time/@datetime")
    assert time == "2026-01-04T00:00:00Z"


async def test_both_forms_warn_of_private_addresses(alice: SignedIn) -> None:
    """The list of feeds is public, and names the addresses of feeds that people add."""
    forms = html.fromstring((await alice.get("/follow", "text/html")).text).xpath("//main/form")
    warning = "Private addresses, such as that of a paid podcast, do not belong here."
    assert [warning in form.text_content() for form in forms] == [True, True]


async def test_list_is_uploaded_and_reported(alice: SignedIn, site: Site) -> None:
    """[SRC-083] With folders; what is followed already is not added again."""
    document = (
        '<opml version="2.0"><body><outline text="Morning">'
        f'<outline text="The Blog" xmlUrl="{site.url("/feed")}"/></outline>'
        '<outline text="Broken" xmlUrl="ftp://a.example"/></body></opml>'
    ).encode()
    first = text_of(await upload(alice, document, tell="nobody"))
    second = text_of(await upload(alice, document, tell="nobody"))
    assert "Followed now 1" in first and "Refused 1" in first and "no address" in first
    assert "Followed before 1" in second and "Followed now" not in second
    page = html.fromstring((await alice.get("/follow", "text/html")).text)
    assert [heading.text for heading in page.xpath("//section[@aria-labelledby='follows']/h3")] == ["Morning"]


@pytest.mark.parametrize(
    ("document", "status"), [(b"", 400), (b"no list", 400), (b"<rss/>", 400), (b"x" * 1_040_000, 413)]
)
async def test_upload_that_is_no_list_is_refused(alice: SignedIn, document: bytes, status: int) -> None:
    assert (await upload(alice, document)).status == status


async def test_form_with_two_files_is_refused(alice: SignedIn) -> None:
    """Two documents one after the other are none. Nothing of either is followed."""
    document = b'<opml version="2.0"><body><outline text="A" xmlUrl="https://a.example/feed"/></body></opml>'
    body, kind = parts(alice.csrf, document)
    start = body.index(b'--b\r\nContent-Disposition: form-data; name="list"')
    sent = {"Cookie": alice.cookie, "Sec_Fetch_Site": "same-origin", "Content_Type": kind}
    for second in (document, b""):
        both = body.removesuffix(b"--b--\r\n") + body[start:].replace(document, second)
        got = await alice.web.ask("POST", "/follow/list", both, "text/html", **sent)
        assert got.status == 400 and "two files" in got.text, got.text
    assert await alice.web.component.app.service.store.read(lambda tx: rows.sources(tx, 0, 9)) == []


@pytest.mark.parametrize(
    ("limit", "most", "told", "not_told"),
    [
        ("sources_per_jid", 0, "Unfollow one first", "domain"),
        ("nodes_per_domain", 1, "as many nodes as this service allows a domain", "Unfollow one first"),
    ],
)
async def test_quota_is_named_as_it_is(
    start_web: Any, site: Site, loopback_is_public: None, limit: str, most: int, told: str, not_told: str
) -> None:
    """[SRC-084] Unfollowing helps against one's own number of feeds alone."""
    web = await start_web(limits={limit: most})
    await web.component.create(BOB, "other")
    reader = await sign_in(web, ALICE)
    text = text_of(await reader.post("/follow", fields(url=site.url("/feed"))))
    assert told in text and not_told not in text, text


async def test_long_list_has_pages(alice: SignedIn) -> None:
    for number in range(51):
        await alice.web.component.create(BOB, f"feed{number:02}")
        await alice.web.component.subscribe(bare(ALICE), f"feed{number:02}")
    page = html.fromstring((await alice.get("/follow", "text/html")).text)
    (more,) = page.xpath("//a[@rel='next']/@href")
    assert len(page.xpath("//li[contains(@class, 'feed')]")) == 50
    rest = html.fromstring((await alice.get(more, "text/html")).text)
    assert len(rest.xpath("//li[contains(@class, 'feed')]")) == 1 and not rest.xpath("//a[@rel='next']")
