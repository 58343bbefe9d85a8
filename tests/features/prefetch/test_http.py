"""Enclosures that were loaded in advance: served safely, and named beside the original address (RSS-035, RSS-036)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import pytest
from aiohttp import web as aioweb
from lxml import etree

from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.token import TokenScope
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.source import SourceSettings, new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import Enclosure, digest_of
from smartfeeds.features.prefetch.enclosures import ask_for
from smartfeeds.features.prefetch.prefetcher import Prefetcher
from smartfeeds.telemetry import metrics_text
from support.bearer import bearer
from support.browsing import sign_in
from support.component import ALICE, BOB
from support.prefetching import broken, podcast, sent
from support.web import Got, Web, WebStarter
from support.website import Site, running_site

BASE = "http://feeds.example.org"
NODE = "podcast"
DATA = bytes(range(256)) * 8
A = "{http://www.w3.org/2005/Atom}"
P = "{https://podcastindex.org/namespace/1.0}"
ORDINARY = "<script>alert(1)</script>"


@dataclass
class Podcast:
    """A component with the node podcast of Alice, which a source fills, and the web server of the source."""

    web: Web
    site: Site

    async def poll(self, *episodes: tuple[str, str] | str, **options: object) -> None:
        """Fills the node."""
        app, path = self.web.component.app, "/feed"
        self.site.pages[path] = podcast(*episodes, **options)  # type: ignore[arg-type]
        settings = SourceSettings(prefetch=True, prefetch_first=100, publisher="alice@example.org")
        source = new_source(NODE, self.site.url(path), self.web.component.clock(), settings)
        source = await app.service.write(lambda tx, context: add_source(tx, context, source))
        await app.parts.get(Poller).poll(source)

    async def load(self) -> list[Enclosure]:
        """Loads all enclosures now. Returns them."""
        app = self.web.component.app
        prefetcher = app.parts.get(Prefetcher)
        for item_id in await self.item_ids():
            await app.service.write(lambda tx, context: ask_for(tx, context, NODE, item_id))  # noqa: B023
        await prefetcher.look()
        while await prefetcher.settle():
            await prefetcher.look()
        return await self.rows()

    async def rows(self) -> list[Enclosure]:
        app = self.web.component.app
        return await app.service.read(lambda tx, _context: enclosure_rows.enclosures(tx, 0, NO_LIMIT))

    async def item_ids(self) -> list[str]:
        app = self.web.component.app
        uses = await app.service.read(
            lambda tx, _context: [
                use for row in enclosure_rows.enclosures(tx, 0, NO_LIMIT) for use in enclosure_rows.uses(tx, row[0])
            ]
        )
        return sorted({use.item_id for use in uses})

    def path(self, name: str = "/a.mp3", extension: str = ".mp3") -> str:
        """The path of the local file of an enclosure of the site."""
        return f"/enclosures/{NODE}/{digest_of(self.site.url(name))}{extension}"


@pytest.fixture
async def shows(start_web: WebStarter, tmp_path: Path) -> AsyncIterator[Podcast]:
    web = await start_web(
        http={"base_url": BASE},
        sources={"allowed_networks": ["127.0.0.0/8"]},
        prefetch={"folder": str(tmp_path / "enclosures"), "rules": ["yes"], "windows": ["always"]},
    )
    async with running_site() as site:
        await web.component.create(ALICE, NODE)
        yield Podcast(web, site)


async def loaded(shows: Podcast, data: bytes = DATA, media_type: str = "audio/mpeg") -> Enclosure:
    """The enclosure a.mp3 has arrived."""
    shows.site.pages["/a.mp3"] = aioweb.Response(body=data, headers={"Content-Type": media_type})
    await shows.poll("a", media_type=media_type)
    (row,) = await shows.load()
    assert row.state == "arrived", row
    return row


async def test_file_is_served_with_the_type_of_the_load(shows: Podcast) -> None:
    """[PRE-032] [PRE-033] [RSS-036]"""
    row = await loaded(shows)
    got = await shows.web.get(shows.path())
    assert (got.status, got.body) == (200, DATA)
    expected = {
        "Content-Type": "audio/mpeg",
        "X-Content-Type-Options": "nosniff",
        "Accept-Ranges": "bytes",
        "Content-Disposition": "inline; filename=\"a.mp3\"; filename*=UTF-8''a.mp3",
        "Last-Modified": formatdate(row.since_us // 1_000_000, usegmt=True),
    }
    assert {name: got.header(name) for name in expected} == expected
    assert "sandbox" in got.header("Content-Security-Policy")


@pytest.mark.parametrize(
    ("media_type", "kind", "disposition"),
    [
        ("audio/x-m4a", "audio/x-m4a", "inline"),
        ("video/mp4", "video/mp4", "inline"),
        ("image/png", "image/png", "inline"),
        ("image/svg+xml", "application/octet-stream", "attachment"),
        ("text/html", "application/octet-stream", "attachment"),
        ("text/javascript", "application/octet-stream", "attachment"),
        ("application/pdf", "application/octet-stream", "attachment"),
        ("audio/mp4<x>", "application/octet-stream", "attachment"),
    ],
)
async def test_only_sound_films_and_pictures_are_shown(
    shows: Podcast, media_type: str, kind: str, disposition: str
) -> None:
    """[PRE-032] Strangers' files on this origin: a page or a drawing is downloaded, never shown."""
    shows.site.pages["/a.mp3"] = aioweb.Response(body=ORDINARY.encode(), headers={"Content-Type": media_type})
    await shows.poll("a", media_type=media_type.replace("<", "&lt;"))
    (row,) = await shows.load()
    assert row.state == "arrived", row
    feed = etree.fromstring((await shows.web.get(f"/feeds/{NODE}.atom")).body)
    link = feed.findall(f"{A}entry/{A}link[@rel='enclosure']")[0]
    got = await shows.web.get(link.get("href", "").removeprefix(BASE))
    assert got.status == 200
    assert got.header("Content-Type") == kind
    assert got.header("Content-Disposition").partition(";")[0] == disposition
    assert got.header("X-Content-Type-Options") == "nosniff" and "sandbox" in got.header("Content-Security-Policy")


async def test_ranges_and_conditions(shows: Podcast) -> None:
    """[PRE-033] RFC 9110 13 and 14: players seek."""
    await loaded(shows)
    whole = await shows.web.ask("HEAD", shows.path())
    assert (whole.status, whole.body, whole.header("Content-Length")) == (200, b"", str(len(DATA)))
    tag, modified = whole.header("ETag"), whole.header("Last-Modified")
    part = await shows.web.get(shows.path(), Range="bytes=100-199")
    assert (part.status, part.body) == (206, DATA[100:200])
    assert part.header("Content-Range") == f"bytes 100-199/{len(DATA)}"
    for condition, status in ((tag, 206), (modified, 206), ('"x"', 200), (formatdate(0, usegmt=True), 200)):
        got = await shows.web.get(shows.path(), Range="bytes=-10", If_Range=condition)
        assert (got.status, got.body) == (status, DATA[-10:] if status == 206 else DATA), condition
    assert (await shows.web.get(shows.path(), Range="bytes=9999-")).status == 416
    assert (await shows.web.get(shows.path(), If_None_Match=tag)).status == 304


async def test_file_that_is_not_complete_is_not_there(shows: Podcast) -> None:
    """[PRE-035] [PRE-018] [RSS-035] No address, and 404."""
    shows.site.pages["/a.mp3"] = broken(DATA[:900], len(DATA), ETag='"1"')
    await shows.poll("a")
    assert (await shows.web.get(shows.path())).status == 404
    (row,) = await shows.load()
    assert (row.state, row.partial_bytes) == ("waiting", 900)
    assert (await shows.web.get(shows.path())).status == 404
    for suffix in ("atom", "jsonfeed"):
        assert b"/enclosures/" not in (await shows.web.get(f"/feeds/{NODE}.{suffix}")).body
    shows.site.pages["/a.mp3"] = sent(DATA, ETag='"1"')
    await shows.load()
    assert (await shows.web.get(shows.path())).body == DATA


@pytest.mark.parametrize("name", ["0" * 64 + ".mp3", "..%2f..%2fetc%2fpasswd", "x", "a.mp3"])
async def test_other_names_are_not_found(shows: Podcast, name: str) -> None:
    """[PRE-029] [PRE-035]"""
    row = await loaded(shows)
    assert (await shows.web.get(f"/enclosures/{NODE}/{name}")).status == 404
    assert (await shows.web.get(shows.path(extension=".html"))).status == 404
    assert (await shows.web.get(f"/enclosures/other/{row.digest}.mp3")).status == 404


async def test_file_of_a_closed_feed_is_for_its_readers(shows: Podcast) -> None:
    """[PRE-032]"""
    await loaded(shows)
    await shows.web.component.configure(ALICE, NODE, access_model="whitelist")
    assert (await shows.web.get(shows.path())).status == (await shows.web.get(f"/feeds/{NODE}/")).status == 404
    token = await bearer(shows.web, ALICE, TokenScope.READ, NODE)
    got = await shows.web.get(shows.path(), Authorization=token)
    assert (got.status, got.body) == (200, DATA)
    assert "private" in got.header("Cache-Control")
    stranger = await bearer(shows.web, BOB, TokenScope.READ, "*")
    assert (await shows.web.get(shows.path(), Authorization=stranger)).status == 403


async def test_file_goes_with_its_item_at_once(shows: Podcast) -> None:
    """[PRE-030] [PRE-035] The bytes go later."""
    await loaded(shows)
    (item_id,) = await shows.item_ids()
    await shows.web.component.retract(ALICE, NODE, item_id)
    assert (await shows.web.get(shows.path())).status == 404


async def documents(web: Web) -> dict[str, Got]:
    """Every form of the feed, and a pull of each kind."""
    paths = {name: f"/feeds/{NODE}.{name}" for name in ("atom", "jsonfeed", "rss", "rss092", "json", "opml")}
    paths |= {"pull": f"/feeds/{NODE}/?since=time:2000-01-01T00:00:00Z", "sync": f"/feeds/{NODE}.atom?sync=true"}
    paths["rss sync"] = f"/feeds/{NODE}.rss?sync=true"
    got = {name: await web.get(path, "application/atom+xml" if name == "pull" else "") for name, path in paths.items()}
    assert {one.status for one in got.values()} == {200}
    return got


@pytest.mark.needs("documents")
async def test_readers_get_the_local_address_and_the_original_as_the_alternative(shows: Podcast) -> None:
    """[PRE-034] [RSS-036] Pulls and documents that others merge stay as they were, and so does the item."""
    shows.site.pages["/a.mp3"] = sent(DATA)
    await shows.poll("a", length=7)
    before = await documents(shows.web)
    await shows.load()
    after = await documents(shows.web)

    local, remote = BASE + shows.path(), shows.site.url("/a.mp3")
    links = etree.fromstring(after["atom"].body).findall(f"{A}entry/{A}link[@rel='enclosure']")
    assert [(link.get("href"), link.get("type"), link.get("length"), link.get("title")) for link in links] == [
        (local, "audio/mpeg", str(len(DATA)), "a.mp3"),
        (remote, "audio/mpeg", "7", "a.mp3"),
    ]
    (item,) = after["jsonfeed"].json["items"]
    assert [(one["url"], one["mime_type"], one["title"]) for one in item["attachments"]] == [
        (local, "audio/mpeg", "a.mp3"),
        (remote, "audio/mpeg", "a.mp3"),
    ]
    for name in ("rss", "rss092"):
        channel = etree.fromstring(after[name].body)
        (enclosure,) = channel.findall("channel/item/enclosure")
        assert dict(enclosure.attrib) == {"url": local, "length": str(len(DATA)), "type": "audio/mpeg"}, name
    (alternate,) = etree.fromstring(after["rss"].body).findall(f"channel/item/{P}alternateEnclosure")
    assert dict(alternate.attrib) == {"type": "audio/mpeg", "length": "7"}
    assert [source.get("uri") for source in alternate] == [remote]
    assert remote not in after["rss092"].text
    for name in ("json", "pull", "sync", "rss sync", "opml"):
        assert local not in after[name].text, name
        assert before[name].body == after[name].body, name
    for name in ("atom", "jsonfeed", "rss", "rss092"):
        assert before[name].header("ETag") != after[name].header("ETag"), name


@pytest.mark.needs("documents")
async def test_file_that_was_removed_gives_its_original_back(shows: Podcast) -> None:
    """[PRE-034] [PRE-035] The documents are those of before, byte for byte."""
    shows.site.pages["/a.mp3"] = sent(DATA)
    await shows.poll("a", length=7)
    before = await documents(shows.web)
    await shows.load()
    shows.web.component.clock.now_us += 40 * 86_400 * 1_000_000
    prefetcher = shows.web.component.app.parts.get(Prefetcher)
    await prefetcher.tidy()
    after = await documents(shows.web)
    assert [name for name in before if before[name].body != after[name].body] == []


async def test_pages_link_to_the_file_and_play_it(shows: Podcast) -> None:
    """[PRE-034]"""
    await loaded(shows)
    (item_id,) = await shows.item_ids()
    feed = await shows.web.get(f"/feeds/{NODE}/", "text/html")
    assert f'href="{BASE}{shows.path()}"' in feed.text and shows.site.url("/a.mp3") in feed.text
    assert "copy at this service" in feed.text
    entry = await shows.web.get(f"/entries/{NODE}/{item_id}", "text/html")
    assert f'<audio controls preload="none" src="{BASE}{shows.path()}"' in entry.text
    assert "copy at this service" in entry.text


async def test_address_disappears_with_the_file(shows: Podcast) -> None:
    """[PRE-034] [PRE-035] The documents of a feed change without a change of its items."""
    await loaded(shows)
    before = await shows.web.get(f"/feeds/{NODE}.atom")
    assert shows.path() in before.text
    app = shows.web.component.app
    shows.web.component.clock.now_us += 40 * 86_400 * 1_000_000
    prefetcher = app.parts.get(Prefetcher)
    await prefetcher.tidy()
    after = await shows.web.get(f"/feeds/{NODE}.atom", If_None_Match=before.header("ETag"))
    assert after.status == 200 and shows.path() not in after.text


async def test_metrics_count_files(shows: Podcast) -> None:
    """[PRE-036] States and sizes."""
    await loaded(shows)
    shows.web.component.clock.now_us += 61_000_000
    prefetcher = shows.web.component.app.parts.get(Prefetcher)
    await prefetcher.look()
    text = metrics_text().decode()
    assert 'smartfeeds_enclosures{state="arrived"} 1.0' in text
    assert f'smartfeeds_enclosure_bytes{{state="arrived"}} {float(len(DATA))}' in text
    assert 'smartfeeds_prefetch_loads_total{result="arrived"}' in text


@pytest.mark.needs("administration")
async def test_administration_shows_progress(shows: Podcast) -> None:
    """[PRE-036] Owners see the files of their feeds, with a bar."""
    shows.site.pages["/a.mp3"] = broken(DATA[:512], len(DATA), ETag='"1"')
    await shows.poll("a")
    await shows.load()
    got = await (await sign_in(shows.web, ALICE)).get("/admin/enclosures/", "text/html")
    assert got.status == 200 and shows.site.url("/a.mp3") in got.text
    assert '<progress max="100" value="25"' in got.text and "ended early" in got.text
    other = await (await sign_in(shows.web, BOB)).get("/admin/enclosures/", "text/html")
    assert other.status == 200 and "No file is loaded in advance." in other.text
