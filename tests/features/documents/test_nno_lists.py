"""The newest entries of all feeds as NNO over HTTP."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.core.times import format_datetime
from smartfeeds.core.token import TokenScope
from smartfeeds.features.documents import http as nno_lists
from smartfeeds.features.documents.ess import dumb_checksum, read_nno
from smartfeeds.service.requests import PullFeed
from support.bearer import bearer
from support.component import ALICE
from support.web import Got, Web

pytestmark = pytest.mark.shared

ATOM_NS = "http://www.w3.org/2005/Atom"
GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "ess" / "golden.json").read_text("utf-8"))
NNO = next(file for file in GOLDEN["ess_nno"]["files"] if file["name"] == "nno-1.nno")
US = 1_000_000


def dated(title: str, time_s: int) -> str:
    time = format_datetime(time_s * US)
    return f"<entry xmlns='{ATOM_NS}'><title>{title}</title><published>{time}</published></entry>"


def names(got: Got) -> list[str]:
    return [item["id"] for item in got.json["items"]]


async def make(web: Web, feeds: str) -> None:
    for name in feeds.split():
        await web.component.create(ALICE, name)


async def test_a_feed_that_asks_for_approval_is_listed_but_not_in_the_nno(web: Web) -> None:
    """[SF-111] [ESS-023] Who may know of a feed but not read it learns nothing of its entries."""
    await web.component.create(ALICE, "asked", access_model="authorize")
    await web.component.publish(ALICE, "asked", "x")
    assert names(await web.get("/feeds/")) == ["asked"]
    assert read_nno((await web.get("/feeds.nno")).body).entries == ()


async def test_nno_is_golden_to_the_byte(web: Web) -> None:
    """[ESS-002] [ESS-003] [ESS-017] [ESS-025] The newest entries by the times of their feeds, newest first, under the
    address of the feed's RSS document; the comma in a name is written as %2C [A-107]."""
    web.component.clock.now_us = 1_400_000_000 * US
    feeds = [("first", NNO["input"][0]), ("second", NNO["input"][1]), ("a,b", NNO["input"][2])]
    expected = NNO["text"]
    for name, one in feeds:
        await web.component.create(ALICE, name)
        await web.component.publish(ALICE, name, "older", dated("older", one["time"] - 1_000_000))
        await web.component.publish(ALICE, name, "newest", dated(one["title"], one["time"]))
        expected = expected.replace(one["url"], f"{web.origin}/feeds/{name.replace(',', '%2C')}.rss")
    web.component.clock.now_us = NNO["now"] * US
    got = await web.get("/feeds.nno?max=3")
    assert got.body == expected.encode()
    assert (got.status, got.header("Content-Type")) == (200, NNO["content_type"])


async def test_nno_holds_the_youngest_of_all(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[ESS-018] As many as max says; a feed that nothing new came into is not even looked at."""
    monkeypatch.setattr(nno_lists, "READ_AT_ONCE", 2)
    monkeypatch.setattr(nno_lists, "NEWEST", 3)
    feeds = [f"f{number}" for number in range(8)]
    await web.component.many_nodes([*feeds, "empty"])
    for name in (*feeds[4:], *feeds[:4]):
        web.component.clock.advance(60)
        await web.component.publish(ALICE, name, f"of {name}")
    service, pulled = web.component.app.service, []
    handle = service.handle

    async def counted(request: Any) -> Any:
        pulled.extend([request.node] if isinstance(request, PullFeed) else [])
        return await handle(request)

    monkeypatch.setattr(service, "handle", counted)
    for wanted, expected in ((3, "3 2 1"), (100, "3 2 1 0 7 6 5 4"), (0, "")):
        entries = read_nno((await web.get(f"/feeds.nno?max={wanted}")).body).entries
        assert [entry.checksum for entry in entries] == [dumb_checksum(f"of f{n}") for n in expected.split()]
        assert len(pulled) == {3: 4, 100: 8, 0: 0}[wanted]
        pulled.clear()


async def test_nno_has_several_entries_of_one_feed(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[ESS-017] The newest entries of all feeds: the golden result as NNO, for every max."""
    monkeypatch.setattr(nno_lists, "FIRST_READ", 2)
    monkeypatch.setattr(nno_lists, "READ_AT_ONCE", 2)
    await web.component.many_nodes(["busy", "calm", "old", "closed"])
    await web.component.configure(ALICE, "closed", access_model="whitelist")
    history = ["old"] * 9 + ["busy"] * 7 + ["calm", "closed"] + ["busy"] * 5 + ["calm"]
    entries: list[tuple[str, str]] = []
    for number, name in enumerate(history):
        web.component.clock.advance(60)
        await web.component.publish(ALICE, name, f"{name} {number}")
        entries.insert(0, (name, f"{name} {number}"))
    await web.component.retract(ALICE, "busy", "busy 20")
    entries.remove(("busy", "busy 20"))
    public = [(name, title) for name, title in entries if name != "closed"]
    token = await bearer(web, ALICE, TokenScope.READ, "*")
    for most in (0, 1, 3, 6, 8, 14, 21, 1_000):
        for readable, headers in ((public, {}), (entries, {"Authorization": token})):
            web.component.clock.advance(20)  # the list is kept for a while
            got = read_nno((await web.get(f"/feeds.nno?max={most}", Host="other.example", **headers)).body)
            expected = [(f"http://other.example/feeds/{name}.rss", dumb_checksum(title)) for name, title in readable]
            assert [(entry.feed_url, entry.checksum) for entry in got.entries] == expected[:most], (most, headers)
            times = [entry.time_s for entry in got.entries]
            assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("most", ["-1", "x", "1.5"])
async def test_max_of_nno_is_a_number(web: Web, most: str) -> None:
    assert (await web.get(f"/feeds.nno?max={most}")).status == 400


async def test_nno_of_a_feed_names_the_feeds_of_its_entries(web: Web) -> None:
    """[ESS-017] [ESS-023] Its own address, or that of the feed in atom:source; access is that of the feed."""
    await web.component.create(ALICE, "mixed")
    await web.component.publish(ALICE, "mixed", "own")
    copied = dated("copied", 1_700_000_000).replace(
        "</entry>", '<source><link rel="self" href="https://a.example/feed.xml"/><title>A</title></source></entry>'
    )
    await web.component.publish(ALICE, "mixed", "copied", copied)
    got = await web.get("/feeds/mixed.nno", Host="other.example")
    assert got.header("Content-Type") == "application/nno"
    addresses = {one.feed_url for one in read_nno(got.body).entries}
    assert addresses == {"http://other.example/feeds/mixed.rss", "https://a.example/feed.xml"}
    assert len(read_nno((await web.get("/feeds/mixed.nno?max=1")).body).entries) == 1
    await web.component.configure(ALICE, "mixed", access_model="whitelist")
    assert (await web.get("/feeds/mixed.nno")).status == (await web.get("/feeds/mixed.atom")).status == 404


async def test_nno_is_made_once_and_cut(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """[ESS-017] [xep-map 249] Whatever max says, however it is packed and under whatever address it is asked for."""
    feeds = [f"f{number}" for number in range(5)]
    await web.component.many_nodes(feeds)
    for name in feeds:
        web.component.clock.advance(60)
        await web.component.publish(ALICE, name, f"of {name}")
    service, asked = web.component.app.service, []
    handle = service.handle

    async def counted(request: Any) -> Any:
        asked.append(request)
        return await handle(request)

    monkeypatch.setattr(service, "handle", counted)
    assert len(read_nno((await web.get("/feeds.nno")).body).entries) == 5
    once = len(asked)
    for wanted in range(5):
        entries = read_nno((await web.get(f"/feeds.nno?max={wanted}", Accept_Encoding="gzip")).body).entries
        assert [entry.checksum for entry in entries] == [dumb_checksum(f"of f{4 - n}") for n in range(wanted)]
    other = read_nno((await web.get("/feeds.nno?max=1", Host="other.example")).body).entries
    assert [entry.feed_url for entry in other] == ["http://other.example/feeds/f4.rss"]
    assert len(asked) == once


async def test_nno_leaves_deleted_entries_out(web: Web) -> None:
    """[SF-013] The youngest entry that is still there, however many behind it are not."""
    await make(web, "a b")
    for number in range(12):
        web.component.clock.advance(60)
        await web.component.publish(ALICE, "a", f"i{number}")
    for number in range(1, 12):
        await web.component.retract(ALICE, "a", f"i{number}")
    await web.component.publish(ALICE, "b", "gone")
    await web.component.retract(ALICE, "b", "gone")
    entries = read_nno((await web.get("/feeds.nno")).body).entries
    assert [(entry.feed_url, entry.checksum) for entry in entries] == [
        (f"{web.origin}/feeds/a.rss", dumb_checksum("i0"))
    ]


async def test_nno_holds_feeds_only(web: Web) -> None:
    """[ESS-002] Nodes of other kinds have no entries with titles and times."""
    await web.component.create(ALICE, "generic", kind="generic")
    await web.component.publish(ALICE, "generic", "x")
    assert read_nno((await web.get("/feeds.nno")).body).entries == ()


async def test_document_is_written_in_a_thread(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand feeds take 0.2 s, in which the event loop serves other requests."""
    await make(web, "a b")
    threads = []

    def write(*values: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return document(*values, **options)

    document = nno_lists.document_reply
    monkeypatch.setattr(nno_lists, "document_reply", write)
    assert (await web.get("/feeds.nno")).status == 200
    assert len(threads) == 1 and threads[0] is not threading.main_thread()
