"""Parameters that others append to addresses: pages and documents are as without them, and remember nothing of them."""

from typing import Any

import pytest
import pytest_asyncio

from support.component import ALICE
from support.web import Web

pytestmark = pytest.mark.shared

JUNK = "utm_source=a&fbclid=IwAR0&_=1700000000&ref=%FF"
FEED_PATHS = (
    "/feeds/news/",
    "/feeds/news.rss",
    "/feeds/news.atom",
    "/feeds/news.opml",
    pytest.param("/feeds/news.jsonfeed", marks=pytest.mark.needs("documents")),
    pytest.param("/feeds/news.ess", marks=pytest.mark.needs("documents")),
)


def of_feature(feature: str, *paths: str) -> list[Any]:
    """Paths that are there with a feature."""
    return [pytest.param(path, marks=pytest.mark.needs(feature)) for path in paths]


@pytest_asyncio.fixture(loop_scope="module")
async def feed(web: Web) -> Web:
    await web.component.create(ALICE, "news")
    for item_id in "abc":
        await web.component.publish(ALICE, "news", item_id)
    return web


@pytest.mark.parametrize("path", [*FEED_PATHS, "/feeds/news/?order=created&max=2"])
@pytest.mark.parametrize("accept", ["application/json", pytest.param("text/html", marks=pytest.mark.needs("pages"))])
async def test_parameters_of_others_leave_no_trace(feed: Web, path: str, accept: str) -> None:
    """[SF-024] [A-24] Same body, links and entity tag, and the same entry in the cache."""
    clean = await feed.get(path, accept)
    site = feed.component.app.site
    assert site is not None
    hits, joint = site.feeds.cache_hits, "&" if "?" in path else "?"
    queries = (JUNK, f"&{JUNK}&", f"{JUNK}&{JUNK}", "&", "1700000000")
    for query in queries:
        got = await feed.get(f"{path}{joint}{query}", accept)
        assert (got.status, got.body) == (200, clean.body)
        assert (got.header("ETag"), got.header("Link")) == (clean.header("ETag"), clean.header("Link"))
    assert site.feeds.cache_hits == hits + len(queries)
    assert (await feed.get(f"{path}{joint}{JUNK}", accept, If_None_Match=clean.header("ETag"))).status == 304


@pytest.mark.parametrize(
    "path",
    [
        *("/feeds/", "/feeds.json", "/feeds.opml", "/entries/news/a", "/about/news/"),
        *("/openapi.json", "/feeds/?sort=changed&max=1", "/healthz"),
        *of_feature("pages", "/", "/river.json", "/river.atom", "/search", "/search?q=a", "/docs", "/?max=1"),
        *of_feature("documents", "/feeds.nno"),
        *of_feature("conflicts", "/conflicts/news/"),
        *of_feature("accounts", "/login", "/login?next=/feeds/news/"),
    ],
)
async def test_each_page_ignores_parameters_of_others(feed: Web, path: str) -> None:
    """[A-24]"""
    await feed.component.index()  # otherwise a search may find more the second time
    clean = await feed.get(path, "text/html, application/json;q=0.9, */*;q=0.1")
    assert clean.status == 200
    joint = "&" if "?" in path else "?"
    for query in (JUNK, "&", "1700000000", "source=rss"):
        got = await feed.get(f"{path}{joint}{query}", "text/html, application/json;q=0.9, */*;q=0.1")
        assert got.status == 200
        if "/login" not in path:
            assert got.body == clean.body
        assert b"fbclid" not in got.body and b"1700000000" not in got.body


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/feeds/news/?catgory=x", "category"),
        ("/feeds/news.rss?Max=1", "max"),
        pytest.param("/?afte=x", "after", marks=pytest.mark.needs("pages")),
        ("/feeds/?srot=changed", "sort"),
        pytest.param("/search?kinds=new", "kind", marks=pytest.mark.needs("pages")),
        pytest.param("/conflicts/news/?maxx=1", "max", marks=pytest.mark.needs("conflicts")),
        pytest.param("/login?nxt=/", "next", marks=pytest.mark.needs("accounts")),
    ],
)
async def test_misspelt_parameter_is_explained(feed: Web, path: str, meant: str) -> None:
    """[SF-024] [A-24]"""
    got = await feed.get(path)
    assert got.status == 400 and f"did you mean {meant}?" in got.json["detail"]
