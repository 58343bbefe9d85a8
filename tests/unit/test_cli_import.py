"""`smartfeeds import` from an address."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner

from smartfeeds.cli import main
from smartfeeds.console import Exit

ENTRY = '<entry><id>urn:x:1</id><title>One</title><updated>2026-01-02T10:00:00Z</updated><link href="/page"/>{}</entry>'
SYNC = (
    '<sync xmlns="http://feedsync.org/2007/feedsync" id="i1" updates="1">'
    '<history sequence="1" when="2026-01-02T10:00:00Z" by="a"/></sync>'
)


def feed(sync=""):
    head = "<id>urn:x:f</id><title>News</title><updated>2026-01-02T10:00:00Z</updated>"
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{head}{ENTRY.format(sync)}</feed>'.encode()


@pytest.fixture
async def run(tmp_path, monkeypatch):
    """Runs a command in a folder with a configuration, in a thread of its own, so that a site can answer it."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("SMARTFEEDS_"):
            monkeypatch.delenv(name)

    async def invoke(*arguments, code=0):
        result = await asyncio.to_thread(CliRunner().invoke, main, list(map(str, arguments)))
        assert result.exit_code == code, (result.output, result.exception)
        return result

    await invoke("init", "feeds.example.org")
    return invoke


@pytest.mark.needs("sync_documents")
async def test_document_at_an_address_is_merged(run, site):
    """[FS-003] [A-59] Again and again: nothing changes where nothing changed there."""
    site.pages["/news.xml"] = feed(SYNC)
    command = ("import", site.url("/news.xml"), "--node", "news", "--sync", "--allow-private", "--json")

    first, again = [json.loads((await run(*command)).stdout) for _ in range(2)]
    assert [(one["added"], one["unchanged"]) for one in (first, again)] == [(1, 0), (0, 1)]
    assert site.paths == ["/news.xml", "/news.xml"]


async def test_document_at_an_address_is_imported_with_its_links(run, site):
    """[SF-006] Relative links are meant from where it is."""
    site.pages["/a/news.xml"] = feed()
    result = await run("import", site.url("/a/news.xml"), "--node", "news", "--allow-private")

    assert f"{site.url('/a/news.xml')} (Atom 1.0) into news: 1 added" in result.stdout
    assert f'href="{site.url("/page")}"' in (await run("export", "--node", "news", "--to", "atom")).stdout


@pytest.mark.parametrize(
    ("sync", "fault"),
    [
        pytest.param((), "the document is ", id="plain"),
        pytest.param(
            ("--sync",), "the root of the document is html", id="sync", marks=pytest.mark.needs("sync_documents")
        ),
    ],
)
async def test_address_that_gives_nothing_says_why_and_makes_no_node(run, site, sync, fault):
    """[xep-map 247] Private addresses only where the operator allows them; an error of the site; a page."""
    site.pages["/page"] = b"<html><body/></html>"
    place = ("--node", "news", *sync)
    refused = await run("import", site.url("/page"), *place, code=Exit.FAILED)
    missing = await run("import", site.url("/none"), *place, "--allow-private", code=Exit.FAILED)
    page = await run("import", site.url("/page"), *place, "--allow-private", code=Exit.USAGE)

    assert "not public" in refused.stderr and "answered 404" in missing.stderr
    assert page.stderr.startswith(f"smartfeeds: {site.url('/page')}: {fault}")
    assert len(site.asked) == 2
    await run("node", "create", "other")
    assert [one["node"] for one in json.loads((await run("node", "list", "--json")).stdout)] == ["other"]


@pytest.mark.parametrize("sync", [(), pytest.param(("--sync",), marks=pytest.mark.needs("sync_documents"))])
async def test_charset_of_the_answer_is_used(run, site, sync):
    """RFC 7303 3: the document itself does not say its encoding."""
    body = feed(SYNC if sync else "").replace(b"One", "Caf\u00e9".encode("latin-1"))
    site.pages["/news.xml"] = web.Response(body=body, headers={"Content-Type": "application/xml; charset=ISO-8859-1"})
    await run("import", site.url("/news.xml"), "--node", "news", "--allow-private", *sync)

    assert "<title>Caf\u00e9</title>" in (await run("export", "--node", "news", "--to", "atom")).stdout


@pytest.mark.needs("documents")
async def test_charset_of_the_answer_is_not_used_for_json(run, site):
    """RFC 8259 8.1"""
    body = {"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [{"id": "1", "title": "Caf\u00e9"}]}
    headers = {"Content-Type": "application/feed+json; charset=iso-8859-1"}
    site.pages["/news.json"] = web.Response(body=json.dumps(body, ensure_ascii=False).encode(), headers=headers)
    await run("import", site.url("/news.json"), "--node", "news", "--allow-private")

    assert "<title>Caf\u00e9</title>" in (await run("export", "--node", "news", "--to", "atom")).stdout


RELATIVE = '<content type="html">&lt;a href="page"&gt;x&lt;/a&gt;</content>'


@pytest.mark.parametrize("form", ["rss", "json", pytest.param("jsonfeed", marks=pytest.mark.needs("documents"))])
async def test_content_keeps_its_links_on_the_way_from_an_address(run, site, form):
    """RFC 3986 5.1.3: relative links are meant from the final address of the document."""
    site.pages["/old.xml"] = web.Response(status=301, headers={"Location": "/a/news.xml"})
    site.pages["/a/news.xml"] = feed(RELATIVE)
    await run("import", site.url("/old.xml"), "--node", "news", "--allow-private")

    written = (await run("export", "--node", "news", "--to", form)).stdout
    assert site.url("/a/page") in written


def put(name, data):
    Path(name).write_bytes(data)


@pytest.mark.needs("documents")
@pytest.mark.parametrize("name", ["news.xml", "news.rss", "news.json"])
async def test_content_keeps_its_links_with_base(run, name):
    """Also where the format of the document has no base address of its own."""
    rss = "<rss version='2.0'><channel><item><guid>1</guid><description>&lt;a href='page'></description></item>"
    item = {"id": "1", "content_html": "<a href='page'>x</a>"}
    documents = {
        "news.xml": feed(RELATIVE),
        "news.rss": f"{rss}</channel></rss>".encode(),
        "news.json": json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [item]}).encode(),
    }
    put(name, documents[name])
    for form in ("rss", "jsonfeed"):
        result = await run("convert", name, "--base", "http://e.example/a/b", "--to", form)
        assert "http://e.example/a/page" in result.stdout
        lost = "where relative addresses in its HTML lead"
        assert lost not in result.stderr
        assert lost in (await run("convert", name, "--to", form)).stderr
