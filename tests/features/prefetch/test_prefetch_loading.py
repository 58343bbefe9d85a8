"""Loads of enclosures over real sockets (PRE-015 to PRE-029)."""

import asyncio
import os
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from smartfeeds.features.prefetch.downloads import FileVersion
from smartfeeds.features.prefetch.enclosure import digest_of
from smartfeeds.features.prefetch.enclosure_load import DOWNLOAD_LIMITS
from smartfeeds.features.prefetch.queue import begin_load
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from support.prefetching import Prefetching, broken, podcast, running_prefetching, sent, write_received

DATA = bytes(range(256)) * 40
HALF = len(DATA) // 2
TAG = '"1"'


@pytest.fixture
async def loading(world, site, tmp_path: Path) -> AsyncIterator[Prefetching]:
    async with running_prefetching(world, site, tmp_path / "enclosures") as made:
        yield made


async def interrupted(loading: Prefetching, site, **headers: str) -> None:
    """A load of the only enclosure that ended at half, on the first night."""
    site.pages["/a.mp3"] = broken(DATA[:HALF], len(DATA), **headers)
    await loading.add("a")
    await loading.look("02:00", 1)
    assert list(loading.partial().values()) == [DATA[:HALF]]
    site.asked.clear()


def requested(site) -> list[tuple[str | None, str | None]]:
    """Range and If-Range of each request for a file."""
    return [
        (one.headers.get("Range"), one.headers.get("If-Range"))
        for one in site.asked
        if not one.path.startswith("/feed")
    ]


async def test_file_is_complete_under_the_digest_of_its_address(loading, site):
    """[PRE-018] [PRE-029] [RSS-035]"""
    site.pages["/a.mp3"] = sent(DATA)
    await loading.add("a")
    await loading.look("02:00", 1)

    row = await loading.row()
    assert (row.state, row.media_type, row.length_bytes) == ("arrived", "audio/mpeg", len(DATA))
    assert loading.complete() == {digest_of(site.url("/a.mp3")): DATA} and loading.partial() == {}


@pytest.mark.parametrize("name", ["/../../x.mp3", "/%2e%2e%2f%2e%2e%2fx.mp3", f"/{'n' * 300}.mp3"])
async def test_nothing_of_the_remote_name_reaches_the_disk(loading, site, name):
    """[PRE-029] Two addresses that end alike have two files."""
    site.pages |= {"/x.mp3": sent(DATA), f"/{'n' * 300}.mp3": sent(DATA), "/other/x.mp3": sent(DATA[:9])}
    site.pages["/../../x.mp3"] = sent(DATA)
    await loading.add(("a", name), ("b", "/other/x.mp3"))
    await loading.look("02:00", 1)

    rows = await loading.rows()
    assert [row.state for row in rows] == ["arrived"] * 2
    assert set(loading.complete()) == {digest_of(row.url) for row in rows}
    files = {path.relative_to(loading.folder.path.parent) for path in loading.folder.path.parent.rglob("*.mp3")}
    assert files == set()


async def test_body_is_written_as_it_comes(world, site, tmp_path):
    """[PRE-017] 100 MB take less than 8 MB of memory."""
    piece = os.urandom(1_000_000)

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg", "Content-Length": str(100 * len(piece))})
        await response.prepare(request)
        for _number in range(100):
            await response.write(piece)
        return response

    async with running_prefetching(
        world, site, tmp_path / "e", file_bytes=10**9, source_bytes_per_night=10**9, total_bytes=10**9
    ) as loading:
        site.pages["/a.mp3"] = page
        await loading.add("a")
        tracemalloc.start()
        try:
            await loading.look("02:00", 1)
            _now, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (await loading.row()).length_bytes == 100 * len(piece)
        assert most < 8_000_000


async def test_no_content_coding_is_asked_for(loading, site):
    """[PRE-023] A body that is compressed nevertheless is refused."""
    site.pages["/a.mp3"] = sent(DATA)
    site.pages["/b.mp3"] = web.Response(body=DATA, headers={"Content-Type": "audio/mpeg", "Content-Encoding": "gzip"})
    await loading.add("a", "b")
    await loading.look("02:00", 1)

    assert {one.headers["Accept-Encoding"] for one in site.asked if one.path.endswith(".mp3")} == {"identity"}
    assert await loading.states() == {"a.mp3": "arrived", "b.mp3": "waiting"}


async def test_early_end_keeps_the_partial_file(loading, site):
    """[PRE-019] Nothing is shown (RSS-035)."""
    await interrupted(loading, site, ETag=TAG)

    row = await loading.row()
    assert (row.state, row.reason, row.partial_bytes, row.failures) == ("waiting", "ended early", HALF, 1)
    assert loading.complete() == {}


async def test_chunked_body_that_breaks_off_is_an_error(loading, site):
    """[PRE-019] Only its last chunk proves the end of such a body."""

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg", "ETag": TAG})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(DATA[:HALF])
        assert request.transport is not None
        request.transport.close()
        return response

    site.pages["/a.mp3"] = page
    await loading.add("a")
    await loading.look("02:00", 1)

    assert (await loading.row()).state == "waiting" and loading.complete() == {}


async def test_clean_end_of_a_chunked_body_is_a_proof(loading, site):
    """[PRE-019] Without a Content-Length."""

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(DATA)
        return response

    site.pages["/a.mp3"] = page
    await loading.add("a")
    await loading.look("02:00", 1)

    assert list(loading.complete().values()) == [DATA]


async def test_body_without_a_provable_end_is_refused(loading, site):
    """[PRE-019] HTTP/1.0 without Content-Length: the end looks like a lost connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n" + DATA)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await loading.add(("a", f"http://127.0.0.1:{port}/a.mp3"))
        await loading.look("02:00", 1)
        row = await loading.row()

    assert (row.state, row.reason) == ("given-up", "its server does not say where it ends")
    assert loading.complete() == loading.partial() == {}


@pytest.mark.parametrize(
    ("headers", "condition"),
    [
        ({"ETag": TAG}, TAG),
        ({"ETag": TAG, "Last-Modified": "Mon, 09 May 2011 10:00:00 GMT"}, TAG),
        ({"Last-Modified": "Mon, 09 May 2011 10:00:00 GMT"}, "Mon, 09 May 2011 10:00:00 GMT"),
    ],
)
async def test_interrupted_load_is_taken_up_with_a_range(loading, site, headers, condition):
    """[PRE-021] With the strong tag, else with a date that is old enough."""
    await interrupted(loading, site, **headers)
    site.pages["/a.mp3"] = sent(DATA, **headers)
    await loading.look("02:00", 2)

    assert requested(site) == [(f"bytes={HALF}-", condition)]
    assert list(loading.complete().values()) == [DATA]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"ETag": 'W/"1"'},
        {"Last-Modified": "Mon, 09 May 2011 10:00:00 GMT", "Date": "Mon, 09 May 2011 10:00:20 GMT"},
        {"Last-Modified": "Mon, 09 May 2011 10:00:00 GMT", "Date": "soon"},
    ],
)
async def test_without_a_strong_validator_the_load_begins_anew(loading, site, headers):
    """[PRE-021] RFC 9110 13.1.5 and 8.8.2.2."""
    await interrupted(loading, site, **headers)
    site.pages["/a.mp3"] = sent(DATA, **headers)
    await loading.look("02:00", 2)

    assert requested(site) == [(None, None)]
    assert list(loading.complete().values()) == [DATA]


@pytest.mark.parametrize(
    "answer",
    [
        {"Content-Range": f"bytes {HALF + 1}-{len(DATA) - 1}/{len(DATA)}"},
        {"Content-Range": f"bytes {HALF}-{len(DATA) - 2}/{len(DATA)}"},
        {"Content-Range": "pages 1-2/3"},
        {"Content-Range": f"bytes {HALF}-{len(DATA) - 1}/*"},
        {"Content-Range": f"bytes {HALF}-{len(DATA)}/{len(DATA) + 1}"},
        {"Content-Range": f"bytes {HALF}-{len(DATA) - 1}/{len(DATA)}", "ETag": '"2"'},
        {"Content-Type": "multipart/byteranges; boundary=x"},
    ],
)
async def test_part_that_does_not_fit_is_thrown_away(loading, site, answer):
    """[PRE-021] [PRE-022] Another place, length or tag: the whole file is requested at once."""
    await interrupted(loading, site, ETag=TAG)

    async def page(request: web.Request) -> web.Response:
        if "Range" not in request.headers:
            return web.Response(body=DATA, headers={"Content-Type": "audio/mpeg", "ETag": '"2"'})
        fields = {"Content-Type": "audio/mpeg", "ETag": TAG} | answer
        return web.Response(status=206, body=b"x" * HALF, headers=fields)

    site.pages["/a.mp3"] = page
    await loading.look("02:00", 2)

    assert requested(site) == [(f"bytes={HALF}-", TAG), (None, None)]
    assert list(loading.complete().values()) == [DATA] and loading.partial() == {}


async def test_server_without_ranges_sends_the_whole_file(loading, site):
    """[PRE-021] 200: the partial file is thrown away."""
    await interrupted(loading, site, ETag=TAG)
    site.pages["/a.mp3"] = web.Response(body=DATA, headers={"Content-Type": "audio/mpeg", "ETag": TAG})
    await loading.look("02:00", 2)

    assert len(site.asked) == 1
    assert list(loading.complete().values()) == [DATA]


async def test_changed_file_begins_anew(loading, site):
    """[PRE-022] If-Range with the former tag gives the new file."""
    await interrupted(loading, site, ETag=TAG)
    site.pages["/a.mp3"] = sent(DATA[::-1], ETag='"2"')
    await loading.look("02:00", 2)

    assert list(loading.complete().values()) == [DATA[::-1]]


async def test_changed_file_is_empty_on_the_disk_before_its_row_changes(loading, site, monkeypatch):
    """[PRE-022] After a power loss the new version of the row must not meet bytes of the former one."""
    await interrupted(loading, site, ETag=TAG)
    events: list[object] = []
    fsync = os.fsync

    def sync(handle: int) -> None:
        events.append(os.fstat(handle).st_size)
        fsync(handle)

    def begin(tx: WriteTx, context: Context, enclosure_no: int, version: FileVersion) -> None:
        events.append(version.etag)
        begin_load(tx, context, enclosure_no, version)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr("smartfeeds.features.prefetch.enclosure_load.begin_load", begin)
    site.pages["/a.mp3"] = sent(DATA[::-1], ETag='"2"')
    await loading.look("02:00", 2)

    assert events[:3] == [0, '"2"', len(DATA)]
    assert list(loading.complete().values()) == [DATA[::-1]]


async def test_range_that_cannot_be_satisfied_begins_anew(loading, site):
    """[PRE-021] 416: the file has become shorter."""
    await interrupted(loading, site, ETag=TAG)

    async def page(request: web.Request) -> web.Response:
        if "Range" in request.headers:
            return web.Response(status=416, headers={"Content-Range": "bytes */100"})
        return web.Response(body=DATA[:100], headers={"Content-Type": "audio/mpeg"})

    site.pages["/a.mp3"] = page
    await loading.look("02:00", 2)

    assert list(loading.complete().values()) == [DATA[:100]]


async def test_server_that_always_answers_416_is_a_failure(loading, site):
    """[PRE-021] There are two requests, and no more."""
    await interrupted(loading, site, ETag=TAG)
    site.pages["/a.mp3"] = web.Response(status=416)
    await loading.look("02:00", 2)

    assert len(site.asked) == 2
    row = await loading.row()
    assert (row.state, row.failures) == ("waiting", 2) and loading.partial() == {}


async def test_length_above_the_limit_is_not_loaded(loading, site):
    """[PRE-020] [PRE-014] [A-128] The item said less; nothing of the body is stored."""
    site.pages["/a.mp3"] = sent(b"x" * 1_000_001)
    await loading.add("a", length=10)
    await loading.look("02:00", 1)

    row = await loading.row()
    assert (row.state, row.partial_bytes) == ("given-up", 0)
    assert row.reason == "its server sends 1000001 bytes; the limit is 1000000"
    assert loading.partial() == {}


async def test_endless_body_is_cut_and_deleted(loading, site):
    """[PRE-020] It is not tried again."""

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65_536)

    site.pages["/a.mp3"] = page
    await loading.add("a")
    await loading.look("02:00", 1)

    row = await loading.row()
    assert (row.state, row.reason) == ("given-up", "is larger than 1000000 bytes")
    assert loading.complete() == loading.partial() == {}
    site.asked.clear()
    await loading.look("02:00", 2)
    assert loading.loads == []


@pytest.mark.parametrize(("size_bytes", "state"), [(1_100, "arrived"), (1_101, "given-up")])
async def test_chunked_body_may_have_a_tenth_more_than_the_item_says(loading, site, size_bytes, state):
    """[PRE-020] [RSS-034] Where the server names no length."""

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b"x" * size_bytes)
        return response

    site.pages["/a.mp3"] = page
    await loading.add("a", length=1_000)
    await loading.look("02:00", 1)

    assert (await loading.row()).state == state


async def test_wrong_length_of_an_item_is_no_obstacle(loading, site):
    """[PRE-020] PD-5: the Content-Length counts."""
    site.pages["/a.mp3"] = sent(DATA)
    await loading.add("a", length=7)
    await loading.look("02:00", 1)

    assert list(loading.complete().values()) == [DATA]


@pytest.mark.parametrize(
    ("kind", "body", "state"),
    [
        ("audio/mpeg", DATA, "arrived"),
        ("audio/ogg", DATA, "arrived"),
        ("application/octet-stream", DATA, "arrived"),
        ("", DATA, "arrived"),
        ("text/html", b"<p>Please sign in", "waiting"),
        ("video/mp4", DATA, "waiting"),
        ("audio/mpeg", b"<!DOCTYPE html><title>Sign in</title>", "waiting"),
        ("application/octet-stream", b"  <!-- x -->\n<HTML>", "waiting"),
    ],
)
async def test_type_of_the_answer_fits_the_rule(loading, site, kind, body, state):
    """[PRE-024] A page in place of a file is refused, whatever its type says."""

    async def page(_request: web.Request) -> web.Response:
        response = web.Response(body=body)
        response.headers["Content-Type"] = kind
        return response

    site.pages["/a.mp3"] = page
    await loading.add("a")
    await loading.look("02:00", 1)

    assert (await loading.row()).state == state and loading.partial() == {}


async def test_page_in_place_of_sound_is_refused_by_any_rule(loading, site):
    """[PRE-024] Portals answer with a page."""
    loading.change_settings(rules=("yes",))
    site.pages["/a.mp3"] = web.Response(body=b"<p>Sign in", headers={"Content-Type": "text/html"})
    await loading.add("a")
    await loading.look("02:00", 1)
    row = await loading.row()
    assert (row.state, row.reason) == ("waiting", "its server sends text/html")


async def test_three_windows_with_a_failure_are_enough(loading, site):
    """[PRE-025] One attempt in each of them."""
    site.pages["/a.mp3"] = web.Response(status=500)
    await loading.add("a")
    site.asked.clear()
    states = []
    for day in range(1, 6):
        await loading.look("02:00", day)
        await loading.look("03:00", day)
        states.append((len(loading.loads), (await loading.row()).state))

    assert states == [(1, "waiting"), (2, "waiting"), (3, "given-up"), (3, "given-up"), (3, "given-up")]
    assert (await loading.row()).reason == "answered 500"


@pytest.mark.parametrize("status", [404, 410])
async def test_file_that_is_gone_is_given_up(loading, site, status):
    """[PRE-025]"""
    site.pages["/a.mp3"] = web.Response(status=status)
    await loading.add("a")
    await loading.look("02:00", 1)

    row = await loading.row()
    assert (row.state, row.reason) == ("given-up", f"answered {status}")


@pytest.mark.parametrize("status", [429, 503])
async def test_server_that_asks_for_a_pause_gets_it(loading, site, status):
    """[PRE-025] As in SRC-041: no request to the host before its end, and no failure."""
    site.pages["/a.mp3"] = web.Response(status=status, headers={"Retry-After": "1800"})
    site.pages["/b.mp3"] = sent(DATA)
    await loading.add("a", "b")
    site.asked.clear()
    await loading.look("02:00", 1)
    await loading.look("02:29", 1)
    assert loading.loads == ["/a.mp3"]

    site.pages["/a.mp3"] = sent(DATA)
    await loading.look("02:31", 1)
    assert loading.loads == ["/a.mp3"] * 2 + ["/b.mp3"]
    assert [(row.state, row.failures) for row in await loading.rows()] == [("arrived", 0)] * 2


async def test_stalled_body_is_cut(world, site, tmp_path):
    """[PRE-026] The partial file stays."""
    assert DOWNLOAD_LIMITS.idle_s == 60.0
    stalled = asyncio.Event()

    async def page(request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": "audio/mpeg", "Content-Length": str(len(DATA)), "ETag": TAG}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(DATA[:HALF])
        await stalled.wait()
        return response

    limits = replace(DOWNLOAD_LIMITS, idle_s=1.0)  # also the time for the first half
    async with running_prefetching(world, site, tmp_path / "e", limits=limits) as loading:
        site.pages["/a.mp3"] = page
        await loading.add("a")
        await loading.look("02:00", 1)
        stalled.set()

        row = await loading.row()
        assert (row.state, row.reason, row.partial_bytes) == ("waiting", "does not answer", HALF)


async def test_redirects_are_followed_and_guarded(loading, world, site, tmp_path):
    """[PRE-015] Ten of them, each to an address that may be reached."""
    for number in range(10):
        site.pages[f"/{number}"] = web.Response(status=302, headers={"Location": f"/{number + 1}"})
    site.pages["/10"] = sent(DATA)
    site.pages["/more"] = web.Response(status=302, headers={"Location": "/0"})
    await loading.add(("a", "/0"), ("b", "/more"))
    await loading.look("02:00", 1)
    states = {row.url.rpartition("/")[2]: (row.state, row.reason) for row in await loading.rows()}
    assert states == {"0": ("arrived", ""), "more": ("waiting", "redirects more than 10 times")}


LOOPBACK = (ip_network("127.0.0.0/8"),)
# The networks of the three clients in a service that allows loopback.
GUARDED = ((), LOOPBACK, EVERYWHERE)


@pytest.mark.parametrize(
    ("options", "host", "is_loaded"),
    [
        pytest.param({}, "", True, id="source of an admin"),
        pytest.param({}, "other.example", False, id="another host"),
        pytest.param({}, ":9", False, id="another port"),
        pytest.param({"owner": "alice@example.org"}, "", False, id="source of a user"),
        pytest.param({"list_no": 7}, "", False, id="source from a list"),
        pytest.param({"allow_private": True}, "", True, id="source that may reach private networks"),
        pytest.param({"allow_private": True}, "other.example", False, id="another host, all networks allowed"),
    ],
)
async def test_private_networks_are_open_at_the_host_and_port_of_an_allowed_source(
    world, site, tmp_path, options, host, is_loaded
):
    """[PRE-015] The author of the feed chooses the address, and every name may lead into a private network."""
    networks = ((), (), EVERYWHERE) if options.get("allow_private") else GUARDED
    async with running_prefetching(world, site, tmp_path / "e", networks=networks) as loading:
        url = f"http://127.0.0.1{host}/a.mp3" if host.startswith(":") else site.url("/a.mp3", host or "127.0.0.1")
        site.pages["/a.mp3"] = sent(DATA)
        await loading.add(("a", url), **options)
        site.asked.clear()
        await loading.look("02:00", 1)

        row = await loading.row()
        expected = ("arrived", [row.url]) if is_loaded else ("waiting", [])
        assert (row.state, [str(request.url) for request in site.asked]) == expected
        assert is_loaded or "its address is not public" in row.reason


@pytest.mark.parametrize("options", [{}, {"allow_private": True}])
async def test_redirect_of_a_public_server_into_a_private_network_is_not_followed(world, site, tmp_path, options):
    """[PRE-015] Whatever the source may reach: its server, which the test calls public, chooses the target."""
    site.pages["/a.mp3"] = web.Response(status=302, headers={"Location": site.url("/b.mp3", "127.0.0.2")})
    networks = ((ip_network("127.0.0.1/32"),), LOOPBACK, EVERYWHERE)
    async with running_prefetching(world, site, tmp_path / "e", networks=networks) as loading:
        await loading.add("a", **options)
        await loading.look("02:00", 1)

        assert "its address is not public" in (await loading.row()).reason and loading.loads == ["/a.mp3"]


async def test_full_disk_stops_the_window(loading, site):
    """[PRE-028] [PRE-014] It says so once, and no complete file goes."""
    site.pages |= {"/a.mp3": sent(DATA), "/b.mp3": sent(DATA)}
    source = await loading.add("a")
    await loading.look("02:00", 1)
    site.pages["/feed"] = podcast("b", "a")
    await loading.poll(source)
    loading.free = 0.04
    site.asked.clear()
    with capture_logs() as logs:
        await loading.look("02:00", 2)
        await loading.look("02:10", 2)
    assert [one["reason"] for one in logs if one["event"] == "prefetch_stopped"] == [
        "the disk has too little free space"
    ]
    assert loading.loads == [] and list(loading.complete().values()) == [DATA]

    loading.free = 0.06
    await loading.look("03:00", 2)
    assert loading.loads == []
    await loading.look("02:00", 3)
    assert loading.loads == ["/b.mp3"]


async def test_disk_that_fills_up_cuts_a_load(world, site, tmp_path):
    """[PRE-028] The partial file stays and is taken up in the next window."""
    data = os.urandom(600_000)
    async with running_prefetching(world, site, tmp_path / "e") as loading:

        async def page(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(
                headers={"Content-Type": "audio/mpeg", "Content-Length": str(len(data)), "ETag": TAG}
            )
            await response.prepare(request)
            loading.free = 0.01
            await write_received(response, data[:300_000])
            await response.write(data[300_000:])
            return response

        site.pages["/a.mp3"] = page
        await loading.add("a")
        await loading.look("02:00", 1)
        row = await loading.row()
        assert (row.state, row.failures) == ("waiting", 0) and 0 < row.partial_bytes < len(data)

        loading.free = 1.0
        site.pages["/a.mp3"] = sent(data, ETag=TAG)
        site.asked.clear()
        await loading.look("02:00", 2)
        assert requested(site) == [(f"bytes={row.partial_bytes}-", TAG)]
        assert list(loading.complete().values()) == [data]


async def test_write_error_stops_the_window(loading, site, monkeypatch):
    """[PRE-028] A quota, for example."""

    def fail(_file: object, _data: bytes) -> None:
        raise OSError(122, "Disk quota exceeded")

    site.pages["/a.mp3"] = sent(DATA)
    await loading.add("a")
    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr("smartfeeds.features.prefetch.enclosure_files._write_all", fail)
        await loading.look("02:00", 1)
    row = await loading.row()

    assert (row.state, row.failures) == ("waiting", 0) and "Disk quota exceeded" in row.reason
    assert any("Disk quota exceeded" in one.get("reason", "") for one in logs if one["event"] == "prefetch_stopped")


async def test_progress_is_stored_while_a_file_comes(loading, site, world):
    """[PRE-036] Every two seconds, for lists."""
    stored: list[int] = []

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg", "Content-Length": str(len(DATA))})
        await response.prepare(request)
        for start in (0, 1_000, 2_000):
            world.clock.move(1.5)
            await write_received(response, DATA[start : start + 1_000])
            stored.append((await loading.row()).partial_bytes)
        await response.write(DATA[3_000:])
        return response

    site.pages["/a.mp3"] = page
    await loading.add("a")
    await loading.look("02:00", 1)
    assert stored[0] == 0 and (await loading.row()).state == "arrived"
    assert sorted({*stored, 2_000}) == [0, 2_000]
