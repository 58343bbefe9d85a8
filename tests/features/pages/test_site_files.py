"""The files by which browsers and crawlers know the site: manifest, description of the search, rules for crawlers."""

import base64
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from lxml import etree, html

from smartfeeds.core.urls import ACCOUNT, ADMIN, FOLLOW, GUESTS, LOGIN, MANIFEST, OPENSEARCH, ROBOTS, SEARCH, WRITE
from support.component import ALICE
from support.prose import html_entry
from support.web import Web, WebStarter

pytestmark = pytest.mark.shared

HTML = "text/html"
OPEN = "{http://a9.com/-/spec/opensearch/1.1/}"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BASE = "https://feeds.example.org/news"


def size_of(png: bytes) -> tuple[int, int]:
    """The size in the header of an image (PNG 11.2.2)."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


async def test_every_page_names_the_manifest_and_the_search(web: Web) -> None:
    """A page may load the manifest: its policy allows that."""
    for path in ("/", "/feeds/", "/nowhere"):
        got = await web.get(path, HTML)
        page = html.document_fromstring(got.text)
        assert page.xpath("//link[@rel='manifest']/@href") == [MANIFEST]
        assert page.xpath("//link[@rel='search']/@href") == [OPENSEARCH]
        assert "manifest-src 'self'" in got.header("Content-Security-Policy")


async def test_manifest_has_icons_of_the_sizes_that_it_says(web: Web) -> None:
    got = await web.get(MANIFEST)
    assert (got.status, got.header("Content-Type")) == (200, "application/manifest+json")
    manifest = got.json
    assert (manifest["name"], manifest["start_url"], manifest["scope"]) == ("Smart Feeds", "/", "/")
    sizes = []
    for icon in manifest["icons"]:
        image = await web.get(icon["src"])
        assert (image.status, image.header("Content-Type")) == (200, icon["type"])
        sizes.append(icon["sizes"])
        if icon["type"] == "image/png":
            assert "{}x{}".format(*size_of(image.body)) == icon["sizes"]
    assert sizes == ["any", "192x192", "512x512"], "browsers install a site with icons of both sizes"
    again = await web.get(MANIFEST, If_None_Match=got.header("ETag"))
    assert (again.status, again.body) == (304, b"")


async def test_files_name_the_public_address_and_the_look_of_the_site(start_web: WebStarter, tmp_path: Path) -> None:
    """A site under a path, with a name that would be markup, and a logo."""
    logo = tmp_path / "logo.png"
    logo.write_bytes(PNG)
    name = 'Town & "Country" <news> of the whole river'
    web = await start_web(http={"base_url": BASE}, site={"name": name, "logo": str(logo)})
    manifest = (await web.get(f"/news{MANIFEST}")).json
    assert (manifest["name"], manifest["id"], manifest["scope"]) == (name, "/news/", "/news/")
    (icon,) = manifest["icons"]
    assert (icon["type"], icon["sizes"], icon["src"].startswith("/news/static/logo.")) == ("image/png", "any", True)

    root = etree.fromstring((await web.get(f"/news{OPENSEARCH}")).body)
    assert len(root.findtext(f"{OPEN}ShortName") or "") <= 16
    assert name in (root.findtext(f"{OPEN}Description") or "")
    assert root.find(f"{OPEN}Url").get("template") == f"{BASE}/search?q={{searchTerms}}"
    assert (root.findtext(f"{OPEN}Image") or "").startswith(f"{BASE}/static/logo.")

    rules = (await web.get(f"/news{ROBOTS}")).text.splitlines()
    assert f"Disallow: /news{ADMIN}" in rules


async def test_search_of_the_browser_finds_entries(web: Web) -> None:
    """The address of the description, with words in the place of its variable."""
    await web.component.create(ALICE, "notes", title="Notes")
    await web.component.publish(ALICE, "notes", "a", html_entry("Bread & butter", "<p>text</p>"))
    await web.component.index()
    got = await web.get(OPENSEARCH)
    assert got.header("Content-Type") == "application/opensearchdescription+xml; charset=utf-8"
    template = etree.fromstring(got.body).find(f"{OPEN}Url").get("template")
    address = urlsplit(template.replace("{searchTerms}", "Bread%20%26"))
    page = await web.get(f"{address.path}?{address.query}", HTML)
    assert "butter" in html.document_fromstring(page.text).xpath("string(//main//article/h3)")
    assert "durchsuchen" in (await web.get(OPENSEARCH, Accept_Language="de")).text


def may_read(rules: str, path: str) -> bool:
    """Whether a crawler may read a path: no rule is a beginning of it (RFC 9309 2.2.2)."""
    return not any(path.startswith(rule) for rule in re.findall(r"^Disallow: (\S+)$", rules, re.MULTILINE))


async def test_crawlers_read_feeds_and_no_page_for_people_alone(web: Web) -> None:
    got = await web.get(ROBOTS)
    assert (got.status, got.header("Content-Type")) == (200, "text/plain; charset=utf-8")
    assert got.text.startswith("User-agent: *\n")
    for path in (
        "/",
        "/feeds/",
        "/feeds/notes/",
        "/feeds/notes.rss",
        "/entries/notes/a",
        "/files/notes/1.png",
        "/docs",
    ):
        assert may_read(got.text, path), path
    closed = (
        ADMIN,
        f"{ADMIN}tokens/",
        LOGIN,
        f"{LOGIN}?next=/",
        ACCOUNT,
        SEARCH,
        f"{SEARCH}?q=x",
        f"{WRITE}notes/",
        FOLLOW,
        f"{FOLLOW}?url=x",
        f"{GUESTS}notes/",
    )
    for path in closed:
        assert not may_read(got.text, path), path
