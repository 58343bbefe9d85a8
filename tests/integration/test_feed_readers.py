"""The documents of a feed as feed readers have them: feedparser, rss-parser (which ignores namespaces) and newsboat."""

import asyncio
import json
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import feedparser
import pytest

from support.component import ALICE
from support.web import Web

DEADLINE_S = 50.0
ATOM_NS = "http://www.w3.org/2005/Atom"
SCRIPT = Path(__file__).parent / "js" / "parse.js"
OWN = "tag:example.org,2026:own"
ENTRIES = {
    "plain": "<title>Plain</title><content>one&#10;two</content>",
    "own": f"<id>{OWN}</id><title type='html'>Own</title><author><name>Ann</name>"
    "<uri>http://a.example/</uri></author>"
    "<link href='http://x.example/own'><m:size xmlns:m='urn:x-test:m'>1</m:size></link>"
    "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>Rich</p></div></content>",
    "bare": "<title>Bare</title>",
}


class Read(NamedTuple):
    """An entry as a reader has it."""

    id: str
    title: str
    link: str


async def output_of(*command: str, data: bytes = b"") -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(data), DEADLINE_S)
    assert process.returncode == 0, (out + err).decode()
    return out


async def with_feedparser(web: Web, path: str, _folder: Path) -> list[Read]:
    got = await web.get(path)
    feed = feedparser.parse(got.body, response_headers={"content-type": got.header("Content-Type")})
    assert not feed.bozo, feed.get("bozo_exception")
    return [Read(entry.id, entry.title, entry.get("link", "")) for entry in feed.entries]


async def with_rss_parser(web: Web, path: str, _folder: Path) -> list[Read]:
    node = shutil.which("node")
    assert node, "node is missing: apt-get install nodejs npm"
    feed = json.loads(await output_of(node, str(SCRIPT), data=(await web.get(path)).body))
    return [Read(item["id"], item["title"], item["link"]) for item in feed["items"]]


async def with_newsboat(web: Web, path: str, folder: Path) -> list[Read]:
    program = shutil.which("newsboat")
    assert program, "newsboat is missing: apt-get install newsboat"
    urls, config, cache = folder / "urls", folder / "config", folder / "cache.db"
    urls.write_text(f"{web.origin}{path}\n")
    config.write_text("")
    await output_of(
        "env", f"HOME={folder}", f"PATH={os.environ['PATH']}", program,
        "-u", str(urls), "-c", str(cache), "-C", str(config), "-x", "reload",
    )  # fmt: skip
    with closing(sqlite3.connect(cache)) as database:
        rows = database.execute("SELECT guid, title, url FROM rss_item ORDER BY pubDate DESC, id").fetchall()
    return [Read(*row) for row in rows]


READERS = (with_feedparser, with_rss_parser, with_newsboat)


@pytest.mark.parametrize("form", ["atom", "rss"])
@pytest.mark.parametrize("reader", READERS)
async def test_every_reader_has_every_entry_of_a_document(
    web: Web, tmp_path: Path, reader: Callable[[Web, str, Path], Awaitable[list[Read]]], form: str
) -> None:
    """[SF-058] [SF-070] [SF-071] [A-153] The newest first, each under its atom:id in both documents, its own title
    and its own page."""
    await web.component.create(ALICE, "notes", title="Notes")
    for item_id, inside in ENTRIES.items():
        payload = f"<entry xmlns='{ATOM_NS}'>{inside}</entry>"
        await web.component.publish(ALICE, "notes", item_id, payload=payload)
        web.component.clock.advance(60)
    feed = (await web.get("/feeds/notes.jsonfeed")).json
    ids = {item["_smartfeeds"]["id"]: item["id"] for item in feed["items"]}

    entries = await reader(web, f"/feeds/notes.{form}", tmp_path)

    assert [entry.title for entry in entries] == ["Bare", "Own", "Plain"]
    assert entries[1][::2] == (OWN, "http://x.example/own")
    assert ids["own"] == OWN
    pages = {entry.title: entry.link for entry in entries}
    if form == "atom":
        assert pages["Bare"] == f"{web.origin}/entries/notes/bare"


async def test_ids_of_the_documents_are_the_same(web: Web) -> None:
    """[SF-071] The RSS guid of an entry is its atom:id, whether the entry came with one or not."""
    await web.component.create(ALICE, "notes")
    for item_id, inside in ENTRIES.items():
        await web.component.publish(ALICE, "notes", item_id, payload=f"<entry xmlns='{ATOM_NS}'>{inside}</entry>")
    ids = []
    for form in ("atom", "rss"):
        feed = feedparser.parse((await web.get(f"/feeds/notes.{form}")).body)
        ids.append([entry.id for entry in feed.entries])
    assert ids[0] == ids[1]
