"""Feeds of other servers by chat: `follow` and `unfollow` in the whole component, with a web server of the test."""

import re
from collections.abc import AsyncIterator

import pytest

from smartfeeds.features.polling import finding
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.polling.sources import add_source
from support.chat import write
from support.component import ALICE, BOB, Component, Starter, bare
from support.polling import atom
from support.website import Site, running_site

CAROL = "carol@elsewhere.example/phone"
PAGE = (
    b"<html><head><title>Blog</title><link rel='alternate' type='application/atom+xml' href='/feed'></head>"
    b"<body><article class='h-entry'><a class='p-name u-url' href='/1'>An entry</a></article></body></html>"
)
# The same feed before and after a new entry.
AFTER = atom("third", "second", "first", feed="The Blog")
BEFORE = re.sub(rb"<entry>.*?</entry>", b"", AFTER, count=1)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A blog on 127.0.0.1: a page, and the feed that it links to."""
    async with running_site() as site:
        site.pages |= {"/": PAGE, "/feed": BEFORE}
        yield site


@pytest.fixture
async def component(start: Starter, loopback_is_public: None) -> Component:
    return await start(limits={"sources_per_jid": 1}, http={"listen": ""})


async def sources(component: Component) -> list[tuple[str, str, str]]:
    """The node, the address and the owner of each source."""
    rows = await component.app.service.store.read(lambda tx: source_rows.sources(tx, 0, 100))
    return [(row.node, row.url, row.owner) for row in rows]


async def poll(component: Component) -> None:
    """Polls the only source, whether it is due or not."""
    (row,) = await component.app.service.store.read(lambda tx: source_rows.sources(tx, 0, 100))
    component.clock.advance(3_600)
    await component.app.parts.get(Poller).poll(row)


async def test_person_follows_a_blog_by_the_address_of_its_page(component: Component, site: Site) -> None:
    """[SRC-048] [SRC-083] The answer says what was found. New entries arrive, those that the feed had do not."""
    (answer,) = await write(component, ALICE, f"follow {site.url('/')}")
    assert answer.startswith(
        f"I found The Blog: {site.url('/feed')}\n"
        "You follow The Blog (127.0.0.1/feed) now. New items arrive here. To stop: unsubscribe 127.0.0.1/feed"
    )
    assert await sources(component) == [("127.0.0.1/feed", site.url("/feed"), bare(ALICE))]
    site.pages["/feed"] = AFTER
    await poll(component)
    (item,) = await component.next_event(bare(ALICE))
    assert "third\n" in "".join(item.itertext()) and "second" not in "".join(item.itertext())


async def test_name_of_the_feed_can_be_chosen(component: Component, site: Site) -> None:
    (answer,) = await write(component, ALICE, f"follow {site.url('/feed')} blog")
    assert "You follow The Blog (blog) now." in answer
    assert await sources(component) == [("blog", site.url("/feed"), bare(ALICE))]


async def test_feed_that_is_known_is_not_requested_again(component: Component, site: Site) -> None:
    """[SRC-084] Anybody may follow it, also people who may not add feeds."""
    await write(component, ALICE, f"follow {site.url('/feed')} blog")
    site.asked.clear()
    (answer,) = await write(component, CAROL, f"follow {site.url('/feed')}")
    assert answer.startswith("You follow The Blog (blog) now.")
    (answer,) = await write(component, BOB, f"follow {site.url('/')}")
    assert answer.startswith(f"I found The Blog: {site.url('/feed')}\nYou follow The Blog (blog) now.")
    assert len(await sources(component)) == 1
    # Bob named the page, which leads to the feed.
    assert site.paths == ["/", "/feed"]


async def test_stranger_makes_the_service_request_nothing(component: Component, site: Site) -> None:
    """[SRC-084]"""
    url = site.url("/")
    assert await write(component, CAROL, f"follow {url}") == [
        f"You may not add feeds of other servers here. Ask an admin of this service to add {url}"
    ]
    assert site.asked == [] and await sources(component) == []


async def test_quota_is_that_of_owners(component: Component, site: Site) -> None:
    """[SRC-084] `unfollow` makes room."""
    site.pages["/other"] = atom("one", feed="Other")
    await write(component, ALICE, f"follow {site.url('/feed')}")
    assert await write(component, ALICE, f"follow {site.url('/other')}") == [
        "You have as many feeds as this service allows. End one with: unfollow FEED"
    ]
    assert len(await sources(component)) == 1
    await write(component, ALICE, "unfollow 127.0.0.1/feed")
    (answer,) = await write(component, ALICE, f"follow {site.url('/other')}")
    assert "You follow Other" in answer


@pytest.mark.parametrize("name", ["127.0.0.1/feed", "page"])
async def test_unfollow_ends_the_fetching_if_nobody_else_subscribes(
    component: Component, site: Site, name: str
) -> None:
    """By the name of the feed, or by an address of its server."""
    await write(component, ALICE, f"follow {site.url('/')}")
    await write(component, BOB, "subscribe 127.0.0.1/feed")
    text = f"unfollow {site.url('/') if name == 'page' else name}"
    assert await write(component, ALICE, text) == ["You no longer follow 127.0.0.1/feed."]
    assert len(await sources(component)) == 1
    await write(component, BOB, "unfollow 127.0.0.1/feed")
    assert len(await sources(component)) == 1
    await write(component, ALICE, f"follow {site.url('/')}")
    assert await write(component, ALICE, text) == [
        "You no longer follow 127.0.0.1/feed. It is not fetched any more, because nobody subscribes to it."
    ]
    assert await sources(component) == []


async def test_unfollow_ends_the_feed_of_this_address_alone(component: Component, site: Site) -> None:
    """[SRC-084] Another channel of the same server is another feed. Each spelling of the address is the feed."""
    url = site.url("/feed?channel_id=AAA")
    await write(component, ALICE, f"follow {url}")
    for other in (
        site.url("/feed?channel_id=BBB"),
        site.url("/feed"),
        site.url("/f"),
        site.url("/FEED?channel_id=AAA"),
    ):
        (answer,) = await write(component, ALICE, f"unfollow {other}")
        assert "no longer" not in answer and len(await sources(component)) == 1
    place = url.partition("://")[2].replace("feed", "fee%64")
    (answer,) = await write(component, ALICE, f"unfollow <feed://{place}#top>")
    assert answer.startswith("You no longer follow 127.0.0.1/feed.") and await sources(component) == []


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/missing", "The server has nothing at this address. Look on the site"),
        ("/text", "There is a web page, and no feed."),
    ],
)
async def test_address_without_a_feed_is_explained(component: Component, site: Site, path: str, reason: str) -> None:
    site.pages["/text"] = b"<html><body>no feed</body></html>"
    url = site.url(path)
    (answer,) = await write(component, ALICE, f"follow {url}")
    assert answer.startswith(f"I found no feed at {url}: ") and reason in answer
    assert await sources(component) == []


@pytest.mark.parametrize("user", [ALICE, CAROL])
@pytest.mark.parametrize(
    ("address", "node"),
    [
        ("https://feeds.a.example/feeds/planet/", "planet"),
        ("https://feeds.a.example/feeds/planet.atom.", "planet"),
        ("feeds.a.example/entries/planet/one", "planet"),
        ("xmpp:feeds.example.org?;node=planet", "planet"),
        ("https://feeds.a.example/feeds/planet/?author=bob", "planet?author=bob"),
    ],
)
async def test_feed_of_the_service_is_followed_by_its_address(
    start: Starter, user: str, address: str, node: str
) -> None:
    """A view is followed as a view. `unfollow` takes the same address."""
    component = await start(http={"base_url": "https://feeds.a.example"})
    await component.create(BOB, "planet", title="The planet")
    (answer,) = await write(component, user, f"follow {address}")
    stop = f"'{node}'" if "?" in node else node
    assert answer.startswith("You follow The planet (planet) now."), answer
    assert stop.strip("'") in answer.partition("To stop: ")[2]
    assert await write(component, user, f"unfollow {address}") == [f"You no longer follow {node}."]
    assert await sources(component) == []


@pytest.mark.parametrize(
    ("setting", "words"), [("answer", "This feed is closed to you."), ("hide", "There is no such feed or item")]
)
async def test_closed_feed_of_the_service_is_as_everywhere(start: Starter, setting: str, words: str) -> None:
    component = await start(http={"base_url": "https://feeds.a.example"}, pubsub={"closed_nodes": setting})
    await component.create(BOB, "secret", title="Plans", access_model="whitelist")
    answers = [
        await write(component, ALICE, text)
        for text in ("subscribe secret", "follow https://feeds.a.example/feeds/secret/")
    ]
    assert answers[0] == answers[1] and answers[0][0].startswith(words)


async def test_address_of_the_service_without_a_feed_is_refused(start: Starter) -> None:
    component = await start(http={"base_url": "https://feeds.a.example"})
    (answer,) = await write(component, ALICE, "follow https://feeds.a.example/docs")
    assert answer == "https://feeds.a.example/docs is not the address of a public feed of another server."


async def test_private_network_is_refused(start: Starter, site: Site) -> None:
    component = await start()
    (answer,) = await write(component, ALICE, f"follow {site.url('/')}")
    assert answer.startswith("I found no feed") and "in a private network" in answer and site.asked == []


async def test_site_of_the_operator_leads_to_its_feed(start: Starter, site: Site) -> None:
    """[SRC-083] The feed says to which site it belongs, so the site is not requested."""
    component = await start(sources={"allowed_networks": ["127.0.0.0/8"]})
    await component.create(BOB, "news", title="The news")
    site.pages["/feed"] = atom("first", inner=f'<link href="{site.url("/")}"/>')
    source = new_source("news", site.url("/feed"), component.clock())
    await component.app.service.write(lambda tx, context: add_source(tx, context, source))
    await poll(component)
    site.asked.clear()
    answers = await write(component, ALICE, f"follow {site.url('/')}")
    assert "You follow The news" in answers[0] and site.asked == []


async def test_networks_of_the_operator_are_closed_to_users(start: Starter, site: Site) -> None:
    """[SRC-084] The poll of a user's source is refused too: a name may lead there later. Admins may follow."""
    component = await start(
        sources={"allowed_networks": ["127.0.0.0/8"]}, pubsub={"creators": [bare(ALICE)], "admins": [bare(BOB)]}
    )
    url = site.url("/feed")
    (answer,) = await write(component, ALICE, f"follow {url}")
    assert answer.startswith("I found no feed") and "in a private network" in answer
    # Options are for operators.
    assert "--" not in answer and "allowed_networks" not in answer
    await component.create(ALICE, "mine", access_model="whitelist")
    source = new_source("mine", url, component.clock(), owner=bare(ALICE))
    await component.app.service.write(lambda tx, context: add_source(tx, context, source))
    await poll(component)
    (row,) = await component.app.service.store.read(lambda tx: source_rows.sources(tx, 0, 100))
    assert "not public" in row.reason and site.asked == []
    (answer,) = await write(component, BOB, f"follow {url} theirs")
    assert "You follow The Blog (theirs) now." in answer
    assert ("theirs", url, "") in await sources(component)


async def test_host_without_https_is_found_over_http(component: Component, site: Site) -> None:
    """A person who writes no scheme means the server, whatever it speaks. With a scheme the reason is a sentence."""
    place = site.url("/feed").partition("://")[2]
    (answer,) = await write(component, ALICE, f"follow https://{place}")
    assert answer.endswith("If the address works in a browser, write it with http:// at its beginning.")
    (answer,) = await write(component, ALICE, f"follow {place}")
    assert answer.startswith(f"I found The Blog: http://{place}\n")


async def test_name_instead_of_an_address_leads_to_the_feed_here_if_there_is_one(component: Component) -> None:
    await component.create(ALICE, "news")
    assert (await write(component, BOB, "follow news"))[0].startswith("A feed of this service: subscribe news\n")
    (answer,) = await write(component, BOB, "follow blog")
    assert answer.startswith("blog is no web address, and no feed here has this name.\n")


@pytest.mark.parametrize("text", ["follow", "follow news", "follow ftp://a.example/", "follow https://a b c"])
async def test_text_that_is_no_address_gets_the_usage(component: Component, text: str) -> None:
    (answer,) = await write(component, ALICE, text)
    assert answer.endswith("Write: follow ADDRESS [NAME]")


async def test_address_with_a_password_is_refused(component: Component, site: Site) -> None:
    """Everybody could read the feed."""
    url = site.url("/feed").replace("//", "//me:secret@")
    (answer,) = await write(component, ALICE, f"follow {url}")
    assert answer.endswith("is not the address of a public feed of another server.") and site.asked == []


async def test_name_of_another_owner_is_not_taken(component: Component, site: Site) -> None:
    await component.create(BOB, "blog")
    assert await write(component, ALICE, f"follow {site.url('/feed')} blog") == [
        f"Another feed has the name blog. Choose a name: follow {site.url('/feed')} NAME"
    ]
    assert await sources(component) == []


async def test_searches_at_once_are_bounded(component: Component, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that do not answer must not use up the service."""
    monkeypatch.setattr(finding, "AT_ONCE", 0)
    assert await write(component, ALICE, f"follow {site.url('/')}") == ["The service is busy. Try again later."]


async def test_answer_is_in_german(component: Component, site: Site) -> None:
    (answer,) = await write(component, ALICE, f"folge {site.url('/')}", xml_lang="de")
    assert answer.startswith(f"Gefunden: The Blog ({site.url('/feed')})\n")


async def test_channels_of_one_site_are_followed_one_by_one(
    start: Starter, site: Site, loopback_is_public: None
) -> None:
    """[SRC-037] [SRC-084] They differ in the query alone. Another spelling of an address is the same feed."""
    component = await start(http={"listen": ""})
    site.pages["/feed.xml"] = AFTER
    urls = [site.url(f"/feed.xml?channel_id={name}") for name in ("AAA", "BBB")]
    for url in urls:
        (answer,) = await write(component, ALICE, f"follow {url}")
        assert answer.startswith(f"I found The Blog: {url}\nYou follow The Blog (127.0.0.1/feed")
    nodes = [node for node, _url, _owner in await sources(component)]
    assert nodes[0] == "127.0.0.1/feed" and nodes[1] != nodes[0]
    site.asked.clear()
    (answer,) = await write(component, BOB, f"follow feed:{urls[1]}#top")
    assert answer.startswith(f"You follow The Blog ({nodes[1]}) now.") and site.asked == []
    await write(component, BOB, f"unfollow {urls[1].replace('http://', 'FEED://')}")
    (answer,) = await write(component, BOB, "subscriptions")
    assert nodes[1] not in answer


@pytest.mark.parametrize("text", ["feed:{}", "<{}>", "{}.", "{},", "\u200b{}", "rss://{}", "view-source:{}"])
async def test_address_is_taken_as_people_copy_it(component: Component, site: Site, text: str) -> None:
    """[SRC-014] [SRC-048]"""
    url = site.url("/feed")
    (answer,) = await write(component, ALICE, f"follow {text.format(url)}")
    assert answer.startswith(f"I found The Blog: {url}\n")


async def test_same_name_of_two_people_is_two_nodes(start: Starter, site: Site, loopback_is_public: None) -> None:
    """[SRC-084] The node of somebody else stays closed, and the feed is followed all the same."""
    component = await start(http={"listen": ""})
    await component.create(BOB, "127.0.0.1/feed")
    (answer,) = await write(component, ALICE, f"follow {site.url('/feed')}")
    assert "You follow The Blog (127.0.0.1/feed-" in answer
