"""The lists of all feeds over HTTP for readers with a token."""

from typing import Any

import pytest

from smartfeeds.core.token import TokenScope
from smartfeeds.features.documents.ess import read_nno
from smartfeeds.formats.opml import read_outline
from smartfeeds.http import feed_list
from support.bearer import bearer
from support.component import ALICE, BOB
from support.outlines import listed_feeds
from support.web import Got, Web


def names(got: Got) -> list[str]:
    return [item["id"] for item in got.json["items"]]


async def make(web: Web, feeds: str) -> None:
    for name in feeds.split():
        await web.component.create(ALICE, name)


@pytest.mark.parametrize("feed", ["", "a", "*"])
async def test_pages_of_other_hosts_may_read_lists(web: Web, feed: str) -> None:
    """[SF-110] What everybody may know, and what is for the token that they sent; a preflight allows no more."""
    await make(web, "a")
    headers = {"Authorization": await bearer(web, ALICE, TokenScope.READ, feed)} if feed else {}
    for path in ("/feeds/", "/feeds.opml", "/feeds.nno"):
        got = await web.get(path, Origin="https://x.example", **headers)
        assert got.header("Access-Control-Allow-Origin") == "*"
        assert feed_list.LEFT_OUT in got.header("Access-Control-Expose-Headers")
        before = await web.ask("OPTIONS", path, Origin="https://x.example")
        assert before.header("Access-Control-Allow-Methods") == "GET, HEAD"


async def test_a_list_holds_what_its_reader_may_know_of(start_web: Any) -> None:
    """[SF-111] [ESS-023] Hidden feeds are in nobody's list but that of those who may read them; a token of one feed
    lists as nobody in particular. Totals do not tell of them either."""
    web = await start_web()
    await make(web, "open")
    await web.component.create(ALICE, "closed", access_model="whitelist")
    await web.component.publish(ALICE, "closed", "x")
    await web.component.publish(ALICE, "open", "x")
    tokens = {
        "anonymous": ("", ["open"]),
        "bob": (await bearer(web, BOB, TokenScope.READ), ["open"]),
        "alice for one feed": (await bearer(web, ALICE, TokenScope.ADMIN, "closed"), ["open"]),
        "alice": (await bearer(web, ALICE, TokenScope.READ), ["closed", "open"]),
    }
    for who, (token, expected) in tokens.items():
        headers = {"Authorization": token} if token else {}
        got = await web.get("/feeds/", **headers)
        assert (names(got), got.json["totalItems"]) == (expected, len(expected)), who
        assert ("private" in got.header("Cache-Control")) == (who != "anonymous")
        outline = read_outline((await web.get("/feeds.opml", **headers)).body)
        assert [feed.title for feed in listed_feeds(outline)] == expected, who
        urls = [entry.feed_url for entry in read_nno((await web.get("/feeds.nno", **headers)).body).entries]
        assert sorted(urls) == [f"{web.origin}/feeds/{name}.rss" for name in expected], who
