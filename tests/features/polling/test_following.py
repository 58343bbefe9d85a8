"""Following over HTTP: what is at an address, following it, the list, trying again, and lists of other readers."""

import asyncio
import json
import re
from collections.abc import Collection
from typing import Any

import pytest
from aiohttp import web as aiohttp_web

from smartfeeds.core.token import TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.polling import follower, following, rows
from smartfeeds.features.polling import sources as source_cases
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.polls import paused
from smartfeeds.features.polling.requests import MayNotAddError
from smartfeeds.features.polling.source import Source, SourceSettings, new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.store.base import ReadTx
from support.bearer import bearer
from support.browsing import sign_in
from support.component import ALICE, BOB, bare
from support.outlines import opml
from support.polling import atom, running_blog
from support.web import Got, Web
from support.website import Site

CAROL = "carol@elsewhere.example/phone"


@pytest.fixture
async def site():
    async with running_blog() as site:
        yield site


@pytest.fixture
async def web(start_web: Any, loopback_is_public: None) -> Web:
    web: Web = await start_web(limits={"sources_per_jid": 3})
    return web


class Person:
    """A user with a token."""

    def __init__(self, web: Web, authorization: str) -> None:
        self.web = web
        self.authorization = authorization

    async def ask(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Got:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {"Authorization": self.authorization} | ({} if data is None else {"Content_Type": kind})
        return await self.web.ask(method, path, data, "application/json", **headers)

    async def look(self, url: str) -> Got:
        return await self.ask("GET", f"/look?url={url}")

    async def follow(self, url: str, **fields: str) -> Got:
        return await self.ask("POST", "/following/", {"address": url, **fields})

    async def follows(self) -> list[dict[str, Any]]:
        got = await self.ask("GET", "/following/")
        assert got.status == 200, got.text
        items: list[dict[str, Any]] = got.json["items"]
        return items


async def person(web: Web, jid: str) -> Person:
    return Person(web, await bearer(web, jid, TokenScope.ADMIN))


async def sources(web: Web) -> list[Source]:
    return await web.component.app.service.store.read(lambda tx: rows.sources(tx, 0, 100))


async def poll(web: Web) -> None:
    """Polls the only source, whether it is due or not."""
    (row,) = await sources(web)
    web.component.clock.advance(3_600)
    await web.component.app.parts.get(Poller).poll(row)


def grown(count: int) -> bytes:
    """The first `count` entries of a feed that grows to five; no entry changes."""
    whole = atom("sixth", "fifth", "fourth", "third", "second", "first", feed="The Blog")
    return re.sub(rb"<entry>.*?</entry>", b"", whole, count=6 - count)


async def next_text(web: Web) -> str:
    """The text of the next item that Alice gets."""
    (item,) = await web.component.next_event(bare(ALICE))
    return "".join(item.itertext())


async def test_look_says_what_is_there_and_stores_nothing(web: Web, site: Site) -> None:
    """[SRC-048] [SRC-083] The site, its feeds, their entries and the newest one; why a feed cannot be read."""
    alice = await person(web, ALICE)
    got = await alice.look(site.url("/"))
    feed, comments = got.json["feeds"]
    assert (got.status, got.json["title"], got.json["mayAdd"]) == (200, "Alice & her blog", True)
    assert feed == {
        "address": site.url("/feed"),
        "follows": False,
        "title": "The Blog",
        "format": "Atom 1.0",
        "newest": {"at": "2011-05-09T12:00:00Z", "title": "second"},
        "entries": 2,
    }
    assert (comments["title"], comments["problem"]) == ("Comments", "answered 404")
    assert sorted(site.paths) == ["/", "/comments", "/feed"]
    assert await sources(web) == [] and await alice.follows() == []


async def test_feed_is_followed_once(web: Web, site: Site) -> None:
    """[SRC-083] [SRC-084] The node belongs to the person. Nobody is told unless the person wants it."""
    alice = await person(web, ALICE)
    got = await alice.follow(site.url("/"))
    assert got.status == 201, got.text
    assert got.json == {
        "node": "127.0.0.1/feed",
        "title": "The Blog",
        "url": f"{web.origin}/feeds/127.0.0.1/feed/",
        "address": site.url("/feed"),
        "isNew": True,
    }
    assert [(row.node, row.url, row.owner) for row in await sources(web)] == [
        ("127.0.0.1/feed", site.url("/feed"), bare(ALICE))
    ]
    site.asked.clear()
    assert (await alice.follow(site.url("/feed"))).json["isNew"] is False
    assert site.asked == [] and len(await sources(web)) == 1
    (row,) = await alice.follows()
    assert (row["tell"], row["state"], row["entries"], row["title"]) == ("nobody", "read", 2, "The Blog")
    assert row["newest"] == "2011-05-09T12:00:00Z" and row["sources"][0]["next"]
    looked = (await alice.look(site.url("/feed"))).json["feeds"][0]
    assert (looked["node"], looked["follows"]) == ("127.0.0.1/feed", True) and site.asked == []


@pytest.mark.needs("bot")
async def test_new_entries_come_by_chat_if_the_person_wants(web: Web, site: Site) -> None:
    """[SRC-083] Those that the feed had do not come. Whom to tell can be changed."""
    alice = await person(web, ALICE)
    site.pages["/feed"] = grown(2)
    await alice.follow(site.url("/feed"), node="blog", tell="chat")
    assert [row["tell"] for row in await alice.follows()] == ["chat"]
    site.pages["/feed"] = grown(3)
    await poll(web)
    text = await next_text(web)
    assert "third\n" in text and "second" not in text

    assert (await alice.ask("PUT", "/following/blog", {"tell": "nobody"})).status == 204
    assert [row["tell"] for row in await alice.follows()] == ["nobody"]
    site.pages["/feed"] = grown(4)
    await poll(web)
    assert (await alice.ask("PUT", "/following/blog", {"tell": "chat"})).status == 204
    site.pages["/feed"] = grown(5)
    await poll(web)
    text = await next_text(web)
    assert "fifth\n" in text and "fourth" not in text


async def test_existing_node_of_the_person_can_be_chosen(web: Web, site: Site) -> None:
    """[SRC-084] Also for a second feed, and once more for the same one; a node of somebody else cannot."""
    alice, bob = await person(web, ALICE), await person(web, BOB)
    await web.component.create(ALICE, "mine")
    site.pages["/other"] = atom("one", feed="Other")
    for _ in range(2):
        assert (await alice.follow(site.url("/feed"), node="mine")).json["node"] == "mine"
    assert (await alice.follow(site.url("/other"), node="mine")).status == 201
    assert [row.node for row in await sources(web)] == ["mine", "mine"]
    assert len(await alice.follows()) == 1
    refused = await bob.follow(site.url("/other"), node="mine")
    assert (refused.status, "choose another name" in refused.json["detail"]) == (409, True)
    assert len(await sources(web)) == 2 and await bob.follows() == []


async def test_stranger_makes_the_service_request_nothing(web: Web, site: Site) -> None:
    """[SRC-084] A feed that is here already may be followed by everybody."""
    carol = await person(web, CAROL)
    for got in (
        await carol.look(site.url("/")),
        await carol.follow(site.url("/")),
        await carol.follow(site.url("/"), node="mine"),
    ):
        assert (got.status, got.json["detail"]) == (403, str(MayNotAddError()))
    assert site.asked == []
    await (await person(web, ALICE)).follow(site.url("/feed"))
    site.asked.clear()
    assert (await carol.look(site.url("/feed"))).json["feeds"][0]["node"] == "127.0.0.1/feed"
    assert (await carol.follow(site.url("/feed"))).status == 201
    assert site.asked == [] and len(await sources(web)) == 1


async def test_closed_node_that_has_the_feed_is_not_named(web: Web, site: Site) -> None:
    """[SRC-084] Neither to somebody who looks, nor to somebody who follows; its members see it."""
    await web.component.create(BOB, "closed", access_model="whitelist")
    bob, alice = await person(web, BOB), await person(web, ALICE)
    assert (await bob.follow(site.url("/feed"), node="closed")).status == 201
    seen = (await alice.look(site.url("/feed"))).json["feeds"][0]
    assert "node" not in seen and seen["follows"] is False
    assert (await alice.follow(site.url("/feed"))).json["node"] == "127.0.0.1/feed"
    assert (await bob.look(site.url("/feed"))).json["feeds"][0]["node"] == "closed"
    await web.component.affiliate(BOB, "closed", ALICE, "member")
    assert (await alice.ask("PUT", "/following/closed", {"tell": "nobody"})).status == 204
    await web.component.affiliate(BOB, "closed", ALICE, "none")
    # The subscription ended with the membership.
    assert [row["node"] for row in await alice.follows()] == ["127.0.0.1/feed"]


@pytest.mark.parametrize("limit", ["subscriptions_per_jid", "subscriptions_per_domain"])
async def test_feed_that_a_quota_refuses_leaves_nothing(
    start_web: Any, site: Site, loopback_is_public: None, limit: str
) -> None:
    """[SRC-084] Neither a node nor a source that is polled and counts, also by a list; what was there before stays."""
    web = await start_web(limits={limit: 1})
    alice = await person(web, ALICE)
    await web.component.create(ALICE, "mine")
    assert (await alice.follow(site.url("/feed"))).status == 201
    site.pages["/other"] = atom("one", feed="Other")
    for chosen in ({}, {"node": "mine"}, {"node": "new"}):
        refused = await alice.follow(site.url("/other"), **chosen)
        assert (refused.status, "subscriptions" in refused.json["detail"]) == (429, True), refused.text
    document = opml(f'<outline xmlUrl="{site.url("/third")}"/>')
    assert len((await alice.ask("POST", "/following/", document, "text/x-opml")).json["refused"]) == 1
    assert [row.url for row in await sources(web)] == [site.url("/feed")]
    names = ["mine", "new", "127.0.0.1/feed", "127.0.0.1/other", "127.0.0.1/third"]
    nodes = await web.component.app.service.store.read(lambda tx: [tx.node(name) is not None for name in names])
    assert nodes == [True, False, True, False, False]


@pytest.mark.parametrize(
    ("address", "status", "word"),
    [
        ("news", 406, "no address"),
        ("ftp://a.example/", 406, "no address"),
        ("http://me:secret@127.0.0.1/feed", 406, "password"),
        ("{site}/missing", 406, "answered 404"),
        ("{site}/text", 406, "web page"),
    ],
)
async def test_address_without_a_feed_is_refused(web: Web, site: Site, address: str, status: int, word: str) -> None:
    site.pages["/text"] = b"<html><body>no feed</body></html>"
    got = await (await person(web, ALICE)).follow(address.replace("{site}", site.url("")))
    assert (got.status, word in got.json["detail"]) == (status, True), got.text
    assert await sources(web) == []


async def test_feed_of_the_service_is_looked_at_and_followed(start_web: Any) -> None:
    """By people who may not add feeds, too. A feed of the service fills no other one."""
    web = await start_web(http={"base_url": "https://feeds.a.example/f"})
    await web.component.create(BOB, "planet", title="The planet")
    await web.component.publish(BOB, "planet", "one")
    carol = await person(web, CAROL)
    got = await carol.look("https://feeds.a.example/f/feeds/planet.atom")
    url = "https://feeds.a.example/f/feeds/planet/"
    assert (got.status, got.json) == (
        200,
        {
            "url": url,
            "feeds": [
                {
                    "address": url,
                    "title": "The planet",
                    "entries": 1,
                    "newest": {"at": "2026-01-01T00:00:00Z", "title": "one"},
                    "node": "planet",
                    "follows": False,
                }
            ],
            "mayAdd": False,
            "chat": got.json["chat"],
        },
    )
    followed = (await carol.follow("xmpp:feeds.example.org?;node=planet")).json
    assert (followed["node"], followed["address"], followed["isNew"]) == ("planet", url, True)
    assert [row["node"] for row in await carol.follows()] == ["planet"]
    alice = await person(web, ALICE)
    assert "feed of this service" in (await alice.follow(url, node="mine")).json["detail"]
    assert await sources(web) == []


async def test_private_network_is_refused(start_web: Any, site: Site) -> None:
    """[SRC-016] [SRC-084]"""
    web = await start_web()
    alice = await person(web, ALICE)
    assert "not public" in (await alice.look(site.url("/"))).json["feeds"][0]["problem"]
    assert (await alice.follow(site.url("/feed"))).status == 406
    assert site.asked == []


async def test_failing_feed_says_so_and_is_tried_again(web: Web, site: Site) -> None:
    """[SRC-030] [SRC-047] Its entries stay, and it is not shown as a feed that works."""
    alice, bob, carol = await person(web, ALICE), await person(web, BOB), await person(web, CAROL)
    await alice.follow(site.url("/feed"))
    for other in (bob, carol):
        await other.follow(site.url("/feed"))
    feed = site.pages.pop("/feed")
    await poll(web)
    (row,) = await alice.follows()
    assert (row["state"], row["entries"], row["sources"][0]["reason"]) == ("failing", 2, "answered 404")
    node = "/following/127.0.0.1%2Ffeed"
    early = await alice.ask("POST", node)
    assert (early.status, "less than 60 seconds ago" in early.json["detail"]) == (406, True)
    web.component.clock.advance(61)
    assert (await carol.ask("POST", node)).status == 403
    site.pages["/feed"] = feed
    assert (await bob.ask("POST", node)).json == {"sources": 1}
    await web.component.app.parts.get(Poller).poll((await sources(web))[0])
    (row,) = await alice.follows()
    assert row["state"] == "read"
    assert (await bob.ask("POST", node)).status == 406
    assert (await bob.ask("POST", "/following/nowhere")).status == 404


async def test_paused_source_is_resumed_by_its_owner_only(web: Web, site: Site) -> None:
    alice, bob = await person(web, ALICE), await person(web, BOB)
    for one in (alice, bob):
        await one.follow(site.url("/feed"), **({"node": "blog"} if one is alice else {}))
    await web.component.app.service.write(
        lambda tx, context: rows.put(tx, paused(rows.sources(tx, 0, 1)[0], "somebody", context.now_us))
    )
    assert (await bob.ask("POST", "/following/blog")).status == 406
    assert (await alice.ask("POST", "/following/blog")).status == 200


async def test_secret_of_an_operator_is_not_shown_to_readers(web: Web, site: Site) -> None:
    """[SRC-015] Neither the address nor a reason that may name a private network; the owner sees both."""
    await web.component.create(BOB, "private")
    settings = SourceSettings(user="me", password="secret", allow_private=True)
    source = new_source("private", site.url("/missing"), web.component.clock(), settings)
    await web.component.app.service.write(lambda tx, context: add_source(tx, context, source))
    alice, bob = await person(web, ALICE), await person(web, BOB)
    for one in (alice, bob):
        assert (await one.ask("PUT", "/following/private", {"tell": "nobody"})).status == 204
    await poll(web)
    shown = [(await one.follows())[0]["sources"][0] for one in (alice, bob)]
    assert [(row["address"], row["reason"], row["state"]) for row in shown] == [
        ("", "cannot be read", "slowed"),
        (site.url("/missing"), "answered 404", "slowed"),
    ]


async def test_page_of_another_site_does_not_reach_the_networks_of_the_operator(start_web: Any, site: Site) -> None:
    """[SRC-084] The browser of an admin sends the cookie when it follows a link."""
    web = await start_web(sources={"allowed_networks": ["127.0.0.0/8"]}, pubsub={"admins": [bare(ALICE)]})
    admin = await sign_in(web, ALICE)
    sent = {"Cookie": admin.cookie, "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    for headers, word in (({**sent}, "not public"), ({"Cookie": admin.cookie}, "not public")):
        assert word in (await web.get(f"/look?url={site.url('/feed')}", **headers)).text
    assert site.asked == []
    assert "The Blog" in (await admin.get(f"/look?url={site.url('/feed')}")).text


@pytest.mark.needs("bot")
async def test_unfollow_ends_the_source_if_nobody_else_reads_it(web: Web, site: Site) -> None:
    """[SRC-084] Also the delivery by chat ends."""
    alice, bob = await person(web, ALICE), await person(web, BOB)
    await alice.follow(site.url("/feed"), tell="chat")
    await bob.follow(site.url("/feed"))
    node = "/following/127.0.0.1%2Ffeed"
    assert (await alice.ask("DELETE", node)).status == 204
    assert await alice.follows() == [] and len(await sources(web)) == 1
    assert (await alice.ask("DELETE", node)).status == 409
    await alice.follow(site.url("/feed"))
    assert (await bob.ask("DELETE", node)).status == 204
    assert len(await sources(web)) == 1
    assert (await alice.ask("DELETE", node)).status == 204
    assert await sources(web) == []


@pytest.mark.parametrize(
    ("condition", "status", "stays"),
    [(Condition.BUSY, 429, True), (Condition.NOT_SUBSCRIBED, 204, False), (Condition.ITEM_NOT_FOUND, 204, False)],
)
async def test_unfollow_that_fails_changes_nothing(
    web: Web, monkeypatch: pytest.MonkeyPatch, condition: Condition, status: int, stays: bool
) -> None:
    """But a subscription whose view no name leads to any more ends."""

    def fail(*_: object) -> None:
        raise FeedError(condition)

    await web.component.create(BOB, "blog")
    alice = await person(web, ALICE)
    assert (await alice.ask("PUT", "/following/blog", {"tell": "nobody"})).status == 204
    monkeypatch.setattr(following, "unsubscribe", fail)
    assert (await alice.ask("DELETE", "/following/blog")).status == status
    assert bool(await alice.follows()) is stays


async def test_unfollow_ends_what_was_closed(web: Web) -> None:
    await web.component.create(BOB, "blog")
    alice = await person(web, ALICE)
    assert (await alice.ask("PUT", "/following/blog", {"tell": "nobody"})).status == 204
    await web.component.configure(BOB, "blog", access_model="whitelist")
    assert (await alice.ask("DELETE", "/following/blog")).status == 204 and await alice.follows() == []


async def test_list_is_followed_with_its_folders_and_only_once(web: Web, site: Site) -> None:
    """[SRC-083] [SRC-084] What was added, what was followed before, and what was refused, with reasons. No feed is
    requested, and a repetition adds nothing."""
    alice = await person(web, ALICE)
    await alice.follow(site.url("/feed"))
    await web.component.create(BOB, "here")
    document = opml(
        f'<outline text="The Blog" xmlUrl="{site.url("/feed")}"/>',
        f'<outline text="News"><outline text="One" xmlUrl="{site.url("/1")}"/>'
        f'<outline text="Two" xmlUrl="{site.url("/2")}"/><outline text="Three" xmlUrl="{site.url("/3")}"/></outline>',
        '<outline text="None" xmlUrl="ftp://a.example/"/>',
        '<outline text="Secret" xmlUrl="http://me:secret@127.0.0.1/"/>',
    )
    site.asked.clear()
    got = await alice.ask("POST", "/following/", document, "text/x-opml")
    assert got.status == 200, got.text
    report = {name: [(feed["title"], feed.get("folder")) for feed in feeds] for name, feeds in got.json.items()}
    assert report == {
        "added": [("One", "News"), ("Two", "News")],
        "followed": [("The Blog", None)],
        "refused": [("Three", "News"), ("None", None), ("Secret", None)],
    }
    reasons = [feed["reason"] for feed in got.json["refused"]]
    assert "as many feeds" in reasons[0] and "no address" in reasons[1] and "with a password" in reasons[2]
    assert "secret" not in got.text
    again = (await alice.ask("POST", "/following/", document, "text/x-opml")).json
    assert again["added"] == [] and len(again["followed"]) == 3
    assert len(await sources(web)) == 3
    folders = {row["node"]: row["folder"] for row in await alice.follows()}
    assert folders == {"127.0.0.1/feed": "", "127.0.0.1/1": "News", "127.0.0.1/2": "News"}
    # A feed that was not read yet, or cannot be, has the name that it has in the list of the person.
    assert {row["title"] for row in await alice.follows()} >= {"One", "Two"}
    assert not {"/1", "/2"} & set(site.paths[: site.paths.index("/1")] if "/1" in site.paths else site.paths)


@pytest.mark.parametrize("user", [ALICE, BOB])
async def test_private_addresses_of_a_list_are_refused_at_once(start_web: Any, user: str) -> None:
    """[SRC-084] They would take places, and never be read. An admin reaches the networks of the operator."""
    web = await start_web(
        sources={"allowed_networks": ["10.0.0.0/8"]}, pubsub={"admins": [bare(BOB)], "creators": [bare(ALICE)]}
    )
    hosts = ("127.0.0.1", "127.1", "0x7f.0.0.1", "[::1]", "[::ffff:10.1.2.3]", "localhost:8080", "a.localhost")
    hosts += ("169.254.169.254", "192.168.0.1", "blog.example", "8.8.8.8", "10.1.2.3")
    lines = (f'<outline text="{host}" xmlUrl="http://{host}/feed"/>' for host in hosts)
    got = await (await person(web, user)).ask("POST", "/following/", opml(*lines), "text/x-opml")
    assert got.status == 200, got.text
    added = {feed["title"] for feed in got.json["added"]}
    refused = {feed["title"]: feed["reason"] for feed in got.json["refused"]}
    expected = {"blog.example", "8.8.8.8"} | ({"10.1.2.3", "[::ffff:10.1.2.3]"} if user == BOB else set())
    assert added == expected and set(refused) == set(hosts) - expected
    assert set(refused.values()) == {"the address is in a private network, and this service does not read it"}
    assert len(await sources(web)) == len(expected)


async def test_long_list_looks_its_feeds_up_together(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each feed in turn, which read the subscriptions of the person for each."""
    alice, together = await person(web, ALICE), list[int]()
    read = source_cases.sources_of_feeds

    def count(tx: ReadTx, urls: Collection[str]) -> dict[str, list[Source]]:
        together.append(len(urls))
        return read(tx, urls)

    monkeypatch.setattr(source_cases, "sources_of_feeds", count)
    document = opml(*(f'<outline xmlUrl="https://a.example/{number}"/>' for number in range(60)))
    got = (await alice.ask("POST", "/following/", document, "text/x-opml")).json
    assert (len(got["added"]), len(got["refused"])) == (3, 57)
    assert together == [60]


async def test_lists_with_the_same_feeds_may_be_uploaded_at_once(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SRC-084] Both are looked up before anybody has the feeds. The second person follows the nodes of the first."""
    both, look_up = asyncio.Barrier(2), follower.AddressFollower._known

    async def look_up_together(self: follower.AddressFollower, *about: Any, **options: Any) -> following.KnownFeeds:
        answer = await look_up(self, *about, **options)
        if len(answer.feeds) > 1:
            await both.wait()
        return answer

    document = opml(*(f'<outline xmlUrl="https://a.example/{number}"/>' for number in range(3)))
    people = [await person(web, jid) for jid in (ALICE, BOB)]
    monkeypatch.setattr(follower.AddressFollower, "_known", look_up_together)
    answers = await asyncio.gather(*(each.ask("POST", "/following/", document, "text/x-opml") for each in people))
    assert [(len(got.json["added"]), got.json["refused"]) for got in answers] == [(3, []), (3, [])]
    assert len(await sources(web)) == 3


@pytest.mark.needs("bot")
async def test_feeds_of_a_list_tell_of_nothing_that_they_have_already(web: Web, site: Site) -> None:
    """[SRC-057] Otherwise a list of 300 feeds would send 3,000 messages."""
    alice = await person(web, ALICE)
    site.pages["/feed"] = grown(2)
    document = opml(f'<outline text="The Blog" xmlUrl="{site.url("/feed")}"/>')
    assert (await alice.ask("POST", "/following/?tell=chat", document, "text/x-opml")).json["added"]
    await web.component.app.parts.get(Poller).poll((await sources(web))[0])
    site.pages["/feed"] = grown(3)
    await poll(web)
    text = await next_text(web)
    assert "third\n" in text and "second" not in text


async def test_list_that_is_no_list_is_refused(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = await person(web, ALICE)
    assert (await alice.ask("POST", "/following/", b"<rss/>", "application/xml")).status == 400
    monkeypatch.setattr(follower, "MAX_LISTED", 1)
    document = opml(*(f'<outline xmlUrl="https://a.example/{number}"/>' for number in range(2)))
    assert (await alice.ask("POST", "/following/", document, "text/x-opml")).status == 413
    assert (await alice.ask("POST", "/following/", b"x" * 1_040_000, "text/x-opml")).status == 413
    assert (await alice.ask("POST", "/following/", document, "image/png")).status == 415
    assert await sources(web) == []


async def test_list_of_this_service_leads_to_its_feeds(start_web: Any) -> None:
    """Such as the list of all feeds of the service."""
    web = await start_web(http={"base_url": "https://feeds.a.example/f"})
    await web.component.create(BOB, "here")
    await web.component.create(BOB, "hidden", access_model="whitelist")
    alice = await person(web, ALICE)
    names = ("here.atom", "hidden.atom", "nowhere.atom")
    document = opml(*(f'<outline xmlUrl="https://feeds.a.example/f/feeds/{name}"/>' for name in names))
    got = (await alice.ask("POST", "/following/", document, "text/x-opml")).json
    assert [feed["node"] for feed in got["added"]] == ["here"]
    # A closed feed says that it is closed (design section 1, "Closed nodes").
    assert ["closed" in feed["reason"] for feed in got["refused"]] == [True, True]
    assert not any("node" in feed for feed in got["refused"])


async def test_token_with_few_rights_follows_nothing(web: Web, site: Site) -> None:
    for scope, feed in ((TokenScope.PUBLISH, "*"), (TokenScope.ADMIN, "news")):
        reader = Person(web, await bearer(web, ALICE, scope, feed))
        for got in (
            await reader.look(site.url("/")),
            await reader.follow(site.url("/")),
            await reader.ask("GET", "/following/"),
        ):
            assert got.status == 403
    assert (await web.get(f"/look?url={site.url('/')}")).status == 401
    assert site.asked == []


async def test_many_feeds_of_a_page_are_not_all_requested(web: Web, site: Site) -> None:
    links = "".join(
        f"<link rel='alternate' type='application/atom+xml' href='/{number}' title='{number}'>" for number in range(9)
    )
    site.pages["/"] = f"<html><head>{links}</head></html>".encode()
    feeds = (await (await person(web, ALICE)).look(site.url("/"))).json["feeds"]
    assert len(feeds) == 9 and sorted(site.paths) == ["/", "/0", "/1", "/2", "/3"]
    assert [feed["title"] for feed in feeds[4:]] == ["4", "5", "6", "7", "8"]
    assert not any("entries" in feed or "problem" in feed for feed in feeds[4:])


async def test_server_that_is_overloaded_is_no_fault_of_the_address(web: Web, site: Site) -> None:
    site.pages["/feed"] = aiohttp_web.Response(status=503)
    feed = (await (await person(web, ALICE)).look(site.url("/feed"))).json["feeds"][0]
    assert feed["problem"] == "answered 503"
