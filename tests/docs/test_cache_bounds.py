"""Each cache of a process has a bound in bytes, and docs/operator.md has the same bounds.

The tests read the source, so a new cache without a row fails.
"""

import re
from pathlib import Path

from smartfeeds.features.documents import http as documents
from smartfeeds.features.embedding import frames
from smartfeeds.features.pages import feed_page, image_requests, river_page, writer
from smartfeeds.http import encode, feed_list, feeds
from smartfeeds.push import audience
from smartfeeds.service import scans
from smartfeeds.store import sqlite

PACKAGE = Path(__file__).parents[2] / "component" / "smartfeeds"
PAGE = (Path(__file__).parents[2] / "docs" / "operator.md").read_text("utf-8")
MIB = 1024 * 1024
HTTP_CACHES = {
    "items as JSON and Atom": encode.CACHE_BYTES,
    "heads of Atom documents": encode.FEEDS_BYTES,
    "pages of feeds for programs, and documents for feed readers": feeds.CACHE_BYTES,
    "web pages of items": writer.CACHE_BYTES,
    "items in web pages of feeds": feed_page.CACHE_BYTES,
    "items in the river": river_page.CACHE_BYTES,
    "items in frames on other sites": frames.CACHE_BYTES,
    "lists of all feeds": feed_list.CACHE_BYTES + documents.CACHE_BYTES,
    "images of other hosts": image_requests.CACHE_BYTES,
}
SCANS = {"scans of feeds for filtered views": scans.SCANS_BYTES}
SQLITE_CACHES = {
    "SQLite, the connection that writes": sqlite.WRITER_CACHE_KIB * 1024,
    "SQLite, each of the three connections that read": sqlite.READER_CACHE_KIB * 1024,
}
# This one has a bound in pages, whose size depends on the addresses of the subscribers.
RECIPIENTS = {"recipients of events over XMPP, about": 24 * MIB}
MOST_BYTES = 102 * MIB


def test_bounds_of_all_caches_are_documented() -> None:
    """[CAM-012]"""
    section = PAGE.partition("\n## Memory\n")[2].partition("\n## ")[0]
    rows = {name: int(mib) * MIB for name, mib in re.findall(r"(?m)^\| ([^|]+) \| (\d+) MiB \|", section)}
    assert rows == {**HTTP_CACHES, **SCANS, **RECIPIENTS, **SQLITE_CACHES}
    assert f"{MOST_BYTES // MIB} MiB" in section


def test_all_caches_together_have_a_small_bound() -> None:
    """[CAM-012] With 66 MiB of program the process stays near 100 MiB, and near 135 MiB if people browse it, too. The
    recipients come on top of that where feeds have very many subscribers."""
    readers = sqlite.READERS + 1
    total = (
        sum(HTTP_CACHES.values())
        + scans.SCANS_BYTES
        + sum(RECIPIENTS.values())
        + (sqlite.WRITER_CACHE_KIB + readers * sqlite.READER_CACHE_KIB) * 1024
    )
    assert MIB > sum(RECIPIENTS.values()) - audience.CACHED_PAGES * audience.PAGE_BYTES >= 0
    assert readers == 3
    assert total == MOST_BYTES


def test_every_cache_by_bytes_has_a_row() -> None:
    """[CAM-012]"""
    makers = {path.stem for path in PACKAGE.rglob("*.py") if re.search(r"= ByteCache\(", path.read_text("utf-8"))}
    names = {"encode", "feed_page", "feeds", "frames", "http", "image_requests", "feed_list", "river_page", "writer"}
    assert makers == names
