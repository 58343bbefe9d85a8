"""Which enclosures are loaded, when and in which order, and how long they are kept."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from smartfeeds.errors import ConfigError
from smartfeeds.features.polling.source import SourceSettings
from smartfeeds.features.polling.sources import remove_source
from smartfeeds.features.prefetch.enclosures import add_newest
from smartfeeds.features.prefetch.prefetcher import GRACE_S, SPREAD_S
from smartfeeds.features.prefetch.queue import choose_next
from smartfeeds.features.prefetch.windows import Span
from smartfeeds.net.clients import Fetcher
from support.prefetching import NODE, Prefetching, broken, podcast, running_prefetching, sent, write_received
from support.waiting import until
from support.world import SERVICE

DATA = b"\xff\xfb" * 500
TAG = '"1"'


@pytest.fixture
async def queue(world, site, tmp_path: Path) -> AsyncIterator[Prefetching]:
    async with running_prefetching(world, site, tmp_path / "enclosures") as made:
        site.pages |= {f"/{name}.mp3": sent(DATA, ETag=TAG) for name in "abcdef"}
        yield made


async def test_loads_begin_only_in_the_window(queue):
    """[PRE-001] [PRE-006] [RSS-033] A start after the window waits for the next one."""
    await queue.add("a")
    for text in ("09:00", "23:59"):
        await queue.look(text)
    await queue.look("01:59", 1)
    assert queue.loads == []
    await queue.look("02:00", 1)
    assert queue.loads == ["/a.mp3"]


@pytest.mark.parametrize(("text", "loads"), [("03:59", 1), ("04:00", 0)])
async def test_end_of_the_window(queue, text, loads):
    """[PRE-001]"""
    await queue.add("a")
    await queue.look(text, 1)
    assert len(queue.loads) == loads


async def test_loads_begin_at_a_random_time_of_the_first_minutes(queue):
    """[PRE-004]"""
    queue.chance = 0.5
    await queue.add("a")
    await queue.look("02:00", 1)
    await queue.look("02:04", 1)
    assert queue.loads == [] and SPREAD_S == 600
    await queue.look("02:05", 1)
    assert queue.loads == ["/a.mp3"]


async def test_window_that_follows_another_one_begins_at_once(queue):
    """[PRE-004] `always` is a window for each day."""
    queue.change_settings(windows=("always",))
    queue.chance = 0.5
    await queue.look("23:00")
    await queue.add("a")
    await queue.look("00:00", 1)
    assert queue.loads == ["/a.mp3"]


async def test_hosts_take_turns_one_load_each_and_two_in_all(queue, site):
    """[PRE-004]"""
    gates: dict[str, asyncio.Event] = {}
    started: list[str] = []

    async def page(request: web.Request) -> web.StreamResponse:
        name = f"{request.host.partition(':')[0]}{request.path}"
        started.append(name)
        await gates.setdefault(name, asyncio.Event()).wait()
        return web.Response(body=DATA, headers={"Content-Type": "audio/mpeg"})

    async def until_started(count: int) -> None:
        await until(lambda: len(started) >= count, f"request {count}")

    site.pages |= dict.fromkeys(("/a.mp3", "/b.mp3", "/c.mp3"), page)
    names = [("1", "one.test", "a"), ("2", "one.test", "b"), ("3", "two.test", "a"), ("4", "three.test", "a")]
    await queue.add(*((title, site.url(f"/{name}.mp3", host)) for title, host, name in names))
    queue.at("02:00", 1)
    await queue.prefetcher.look()
    await until_started(2)
    await queue.prefetcher.look()
    assert sorted(started) == ["one.test/a.mp3", "two.test/a.mp3"]  # both requests are on their way at the same time

    gates["one.test/a.mp3"].set()
    await until(lambda: len(queue.prefetcher._running) < 2, "the end of the first load")
    await queue.prefetcher.look()
    await until_started(3)
    # Another host has its turn before the second file of the first one, although that is newer.
    assert started[2] == "three.test/a.mp3"
    for gate in gates.values():
        gate.set()
    gates["one.test/b.mp3"] = asyncio.Event()
    gates["one.test/b.mp3"].set()
    await queue.prefetcher.settle()
    await queue.look()
    assert started[3:] == ["one.test/b.mp3"]


@pytest.mark.parametrize(("minutes", "state"), [(10, "arrived"), (30, "waiting")])
async def test_load_that_runs_at_the_end_of_its_window_goes_on_for_a_while(queue, site, minutes, state):
    """[PRE-005] [RSS-033] After that it is cut, and the next night takes it up."""
    assert GRACE_S == 1_800

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "audio/mpeg", "Content-Length": str(len(DATA)), "ETag": TAG}
        )
        await response.prepare(request)
        await write_received(response, DATA[:400])
        queue.at("04:00", 1)
        queue.world.clock.move(minutes * 60)
        await response.write(DATA[400:])
        return response

    site.pages["/a.mp3"] = page
    await queue.add("a")
    await queue.look("03:59", 1)
    row = await queue.row()
    assert (row.state, row.failures) == (state, 0)
    if state == "waiting":
        assert row.reason == "the window has ended" and row.partial_bytes >= 400
        site.pages["/a.mp3"] = sent(DATA, ETag=TAG)
        site.asked.clear()
        await queue.look("02:00", 2)
        assert (await queue.row()).state == "arrived"


async def test_newest_item_comes_first_and_partial_files_before(queue, site):
    """[PRE-007]"""
    site.pages["/c.mp3"] = broken(DATA[:400], len(DATA), ETag=TAG)
    source = await queue.add("c")
    await queue.look("02:00", 1)
    site.pages["/c.mp3"] = sent(DATA, ETag=TAG)
    site.pages["/feed"] = podcast("a", "b", "c")
    await queue.poll(source)
    site.asked.clear()
    await queue.look("02:00", 2)
    assert queue.loads == ["/c.mp3", "/a.mp3", "/b.mp3"]


async def test_newest_are_there_when_a_limit_is_reached(queue):
    """[PRE-007] [PRE-014] 1 GB a source and night."""
    queue.change_settings(source_bytes_per_night=2_500)
    await queue.add("a", "b", "c", length=len(DATA))
    await queue.look("02:00", 1)
    assert await queue.states() == {"a.mp3": "arrived", "b.mp3": "arrived", "c.mp3": "waiting"}
    assert (await queue.row("c.mp3")).reason == "the limit of its source a night is reached"
    await queue.look("03:00", 1)
    assert len(queue.loads) == 2
    await queue.look("02:00", 2)
    assert (await queue.row("c.mp3")).state == "arrived"


async def test_limit_of_a_night_cuts_a_file_of_unknown_length(queue, site):
    """[PRE-014] Its rest comes the next night."""

    async def page(request: web.Request) -> web.StreamResponse:
        if "Range" in request.headers:
            return await sent(DATA, ETag=TAG)(request)
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg", "ETag": TAG})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await write_received(response, DATA[:600])
        await response.write(DATA[600:])
        return response

    queue.change_settings(source_bytes_per_night=700)
    site.pages["/a.mp3"] = page
    await queue.add("a")
    await queue.look("02:00", 1)
    row = await queue.row()
    assert (row.state, row.partial_bytes, row.failures) == ("waiting", 600, 0)
    await queue.look("02:00", 2)
    assert list(queue.complete().values()) == [DATA]


async def test_limit_for_all_files_keeps_the_newest(queue, site):
    """[PRE-014] [PRE-030] Files of older items go for newer ones, and not the other way round."""
    queue.change_settings(total_bytes=2_500)
    source = await queue.add("b", "c", length=len(DATA))
    await queue.look("02:00", 1)
    await queue.add("d", "e", node="other", path="/feed2", length=len(DATA))
    await queue.look("02:00", 2)
    # d is as new as b, and takes the place of c; e is as old as c was.
    states = await queue.states()
    assert states.pop("e.mp3") == "waiting"
    assert states == {"b.mp3": "arrived", "d.mp3": "arrived"}
    assert len(queue.complete()) == 2
    assert source.node == NODE


async def test_number_of_files_of_a_source_is_limited(queue, site):
    """[PRE-014] [PRE-030] The newest stay."""
    queue.change_settings(files_per_source=2)
    source = await queue.add("b", "c", "d")
    await queue.look("02:00", 1)
    assert await queue.states() == {"b.mp3": "arrived", "c.mp3": "arrived"}
    queue.world.clock.move(86_400)
    site.pages["/feed"] = podcast("b", "c", "d").replace(
        b"<entry>",
        b"<entry><id>urn:x:a</id><title>a</title><updated>2011-05-20T00:00:00Z</updated>"
        b'<link rel="enclosure" href="/a.mp3" type="audio/mpeg"/></entry><entry>',
        1,
    )
    await queue.poll(source)
    await queue.look("02:00", 3)
    assert await queue.states() == {"b.mp3": "arrived", "a.mp3": "arrived"}
    assert len(queue.complete()) == 2


async def test_files_are_removed_when_they_are_old(queue):
    """[PRE-030] 30 days."""
    await queue.add("a")
    await queue.look("02:00", 1)
    await queue.look("01:00", 31)
    assert len(queue.complete()) == 1
    await queue.look("03:00", 31)
    assert queue.complete() == {} and await queue.rows() == []


async def test_file_goes_with_the_last_item_that_names_it(queue, world):
    """[PRE-016] [PRE-030] Two items name the same file, which is loaded once."""
    await queue.add(("one", "/a.mp3"), ("two", "/a.mp3"))
    await queue.look("02:00", 1)
    assert queue.loads == ["/a.mp3"] and len(await queue.rows()) == 1
    ids = await queue.item_ids()
    await world.retract(ids["one"], node=NODE, actor=SERVICE)
    await queue.look("03:30", 1)
    assert len(queue.complete()) == 1
    await world.retract(ids["two"], node=NODE, actor=SERVICE)
    await queue.look("02:00", 2)
    assert queue.complete() == {} and await queue.rows() == []


async def test_item_that_goes_during_a_load_takes_the_file_along(queue, site, world):
    """[PRE-030] The load ends as usual, and so does the window."""
    item_id = ""

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/mpeg", "Content-Length": str(len(DATA))})
        await response.prepare(request)
        await write_received(response, DATA[:400])
        await world.retract(item_id, node=NODE, actor=SERVICE)
        await queue.prefetcher.tidy()
        await response.write(DATA[400:])
        return response

    site.pages["/a.mp3"] = page
    await queue.add("a")
    item_id = (await queue.item_ids())["a"]
    with capture_logs() as logs:
        await queue.look("02:00", 1)
    assert not [one for one in logs if one["event"] == "prefetch_stopped"]
    await queue.prefetcher.tidy()
    assert queue.complete() == queue.partial() == {} and await queue.rows() == []


async def test_same_file_of_two_nodes_is_loaded_once(queue):
    """[PRE-016]"""
    await queue.add(("one", "/a.mp3"))
    await queue.add(("two", "/a.mp3"), node="other", path="/feed2")
    await queue.look("02:00", 1)
    assert queue.loads == ["/a.mp3"]
    assert {entry.node for entry in await queue.log()} == {NODE, "other"}


async def test_files_go_with_their_source(queue, world):
    """[PRE-030]"""
    source = await queue.add("a")
    await queue.look("02:00", 1)
    await world.service.write(lambda tx, context: remove_source(tx, context, source))
    await queue.look("02:00", 2)
    assert queue.complete() == {} and await queue.rows() == []


async def test_only_items_of_sources_with_prefetch_are_loaded(queue, world):
    """[PRE-036] PD-1: off by default; what users publish is never loaded."""
    assert SourceSettings().prefetch is False
    await queue.add("a", prefetch=False)
    source = await queue.add("b", node="other", path="/feed2")
    entry = (
        "<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title>"
        f"<link rel='enclosure' href='{queue.site.url('/c.mp3')}' type='audio/mpeg'/></entry>"
    )
    await world.publish("x", entry, node="other", actor=SERVICE)
    await queue.look("02:00", 1)
    assert queue.loads == ["/b.mp3"]
    assert source.node == "other"


async def test_old_items_are_not_loaded_unless_asked(queue, site, world):
    """[PRE-036] PD-7: of the first document the newest; all later ones; an archive on request."""
    source = await queue.add("b", "c", "d", prefetch_first=1)
    await queue.look("02:00", 1)
    assert queue.loads == ["/b.mp3"]
    site.pages["/feed"] = podcast("a", "b", "c", "d")
    await queue.poll(source)
    site.pages["/feed"] = podcast("a", "b", "c", "d").replace(b"<title>d<", b"<title>D<")
    await queue.poll(source)
    await queue.look("03:00", 1)
    assert queue.loads == ["/b.mp3", "/a.mp3"]
    assert await world.service.write(lambda tx, context: add_newest(tx, context, source, 3)) == 3
    await queue.look("03:10", 1)
    assert queue.loads == ["/b.mp3", "/a.mp3", "/c.mp3"]


async def test_rules_come_before_any_request(queue, site, monkeypatch):
    """[PRE-010] [PRE-012] [RSS-034] Neither a connection nor a look-up of a name."""
    queue.change_settings(rules=("yes type=audio/* max=500",))
    looked_up: list[str] = []

    async def stream(_self: Fetcher, url: str, *_arguments: object) -> None:
        looked_up.append(url)
        raise AssertionError

    monkeypatch.setattr(Fetcher, "stream", stream)
    for number, url in enumerate(("http://x.test/a.mp3", "ftp://x.test/a.mp3", "magnet:?xt=1", "http://x.test/b.pdf")):
        await queue.add(("x", url), node=f"n{number}", path=f"/feed{number}", length=1_000)
    await queue.look("02:00", 1)
    assert looked_up == [] and await queue.rows() == []


async def test_rules_that_changed_since_apply_too(queue):
    """[PRE-010] The reason is in the list."""
    await queue.add("a")
    queue.change_settings(rules=("no",))
    await queue.look("02:00", 1)
    assert queue.loads == [] and (await queue.row()).reason == "a rule refuses it"


async def test_clock_that_steps_back_stops_nothing(queue, world):
    """[PRE-010] A refused enclosure is considered once in a window."""
    await queue.add("a")
    queue.change_settings(rules=())
    queue.at("02:00", 1)
    span = (world.clock(), world.clock() + 7_200_000_000)
    world.clock.move(-3_600)
    assert await world.service.write(lambda tx, context: choose_next(tx, context, Span(*span), (), ())) is None
    assert (await queue.row()).tried_us == span[0]


async def test_all_enclosures_of_an_item_are_loaded(queue, site):
    """[A-127] Each is judged alone (PD-2)."""
    two = b'<link rel="enclosure" href="/b.mp3" type="audio/mpeg"/><link rel="enclosure" href="/c.pdf"/></entry>'
    site.pages["/feed"] = podcast("a").replace(b"</entry>", two)
    source = await queue.add("a", prefetch=True)
    site.pages["/feed"] = podcast("d", "a").replace(b"</entry>", two, 1)
    await queue.poll(source)
    await queue.look("02:00", 1)
    assert sorted(queue.loads) == ["/a.mp3", "/b.mp3", "/d.mp3"]


async def test_operator_gets_a_file_now(queue, site, world):
    """[PRE-008] Outside the window, with the same rules."""
    await queue.add("a", "b", prefetch_first=0)
    await queue.ask("b")
    await queue.look("12:30")
    assert queue.loads == ["/b.mp3"] and await queue.states() == {"b.mp3": "arrived"}
    await queue.look("12:40")
    assert queue.loads == ["/b.mp3"]
    with pytest.raises(ConfigError, match="the node podcast has no item nothing"):
        await world.service.write(lambda tx, context: _ask(tx, context, "nothing"))
    queue.change_settings(rules=())
    with pytest.raises(ConfigError, match="is not loaded: no rule allows it"):
        await queue.ask("a")


def _ask(tx, context, item_id):
    from smartfeeds.features.prefetch.enclosures import ask_for

    return ask_for(tx, context, NODE, item_id)


async def test_asked_load_that_failed_waits_for_the_window(queue, site):
    """[PRE-008]"""
    site.pages["/a.mp3"] = web.Response(status=500)
    await queue.add("a")
    await queue.ask("a")
    await queue.look("12:30")
    await queue.look("12:40")
    assert queue.loads == ["/a.mp3"]
    assert (await queue.row()).asked_us is None


async def test_given_up_file_is_tried_again_when_asked(queue, site):
    """[PRE-008] [PRE-025]"""
    await queue.add(("x", "/gone.mp3"))
    await queue.look("02:00", 1)
    assert (await queue.row()).state == "given-up"
    site.pages["/gone.mp3"] = sent(DATA)
    await queue.ask("x")
    await queue.look("12:00", 1)
    assert (await queue.row()).state == "arrived"


async def test_rate_of_all_loads(queue):
    """[PRE-009] 1,000 bytes at 100 bytes a second take 10 seconds of the clock."""
    queue.change_settings(bytes_per_s=100)
    await queue.add("a", "b")
    await queue.look("02:00", 1)
    assert sum(queue.slept) == pytest.approx(20.0)
    assert [entry.seconds for entry in await queue.log()] == [10.0, 10.0]


async def test_log_has_arrivals_and_failures(queue, site, world):
    """[PRE-031] [RSS-036] When, feed, item, address, size, seconds; for a failure the reason."""
    await queue.add("a", ("x", "/gone.mp3"))
    with capture_logs() as logs:
        await queue.look("02:00", 1)
    ids = await queue.item_ids()
    now_us = world.clock()
    assert {entry[1:] for entry in await queue.log()} == {
        (now_us, NODE, ids["a"], site.url("/a.mp3"), len(DATA), 0.0, ""),
        (now_us, NODE, ids["x"], site.url("/gone.mp3"), 0, 0.0, "answered 404"),
    }
    assert {one["event"] for one in logs if one["event"].startswith("enclosure")} == {
        "enclosure_loaded",
        "enclosure_not_loaded",
    }


async def test_log_is_kept_as_long_as_files(queue):
    """[PRE-031]"""
    await queue.add("a")
    await queue.look("02:00", 1)
    queue.at("12:00", 39)
    await queue.add("b", node="other", path="/feed2")
    await queue.look("02:00", 40)
    assert [entry.node for entry in await queue.log()] == ["other"]


async def test_restart_continues(queue, site):
    """[PRE-027] Queue and partial files are in the store and on the disk; files without a row are removed."""
    site.pages["/a.mp3"] = broken(DATA[:400], len(DATA), ETag=TAG)
    await queue.add("a")
    await queue.look("02:00", 1)
    stray = queue.folder.part_path("0" * 64)
    stray.write_bytes(b"x")
    lost = queue.folder.complete.path_of("1" * 64)
    lost.parent.mkdir(parents=True)
    lost.write_bytes(b"x")

    queue.prefetcher = queue.new_prefetcher()
    site.pages["/a.mp3"] = sent(DATA, ETag=TAG)
    site.asked.clear()
    await queue.look("02:00", 2)
    assert not stray.exists() and not lost.exists()
    assert site.asked[0].headers["Range"] == "bytes=400-"
    assert list(queue.complete().values()) == [DATA]


async def test_crash_after_the_rename_shows_nothing(queue, monkeypatch):
    """[PRE-018] [RSS-035] The row says that a file is there. It is loaded again."""

    def crash(*_arguments: object, **_options: object) -> None:
        raise asyncio.CancelledError

    await queue.add("a")
    with monkeypatch.context() as patch:
        patch.setattr("smartfeeds.features.prefetch.prefetcher.end_load", crash)
        queue.at("02:00", 1)
        await queue.prefetcher.look()
        with pytest.raises(asyncio.CancelledError):
            await queue.prefetcher.settle()
    assert (await queue.row()).state == "waiting" and len(queue.complete()) == 1

    queue.prefetcher = queue.new_prefetcher()
    await queue.look("01:00", 2)
    assert queue.complete() == {}
    await queue.look("02:00", 2)
    assert (await queue.row()).state == "arrived"


async def test_counts_end_with_the_run(queue):
    """[OPS-085] Another process counts from then on, and a dashboard adds the numbers of all processes."""
    await queue.add("a")
    await queue.look("02:00", 1)
    assert sum(reading.count for reading in queue.prefetcher.readings()) == 1

    running = asyncio.create_task(queue.prefetcher.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert queue.prefetcher.readings() == ()


async def test_service_without_a_folder_loads_nothing(queue, world):
    """[PRE-036]"""
    world.service.policy = replace(world.service.policy, of_features=())
    source = await queue.add("a")
    assert await queue.rows() == []
    with pytest.raises(ConfigError, match=r"prefetch\.folder is not set"):
        await world.service.write(lambda tx, context: add_newest(tx, context, source, 1))
