"""Polls of sources: requests, answers and items, over real sockets."""

import asyncio
import gzip
import zlib
from dataclasses import replace
from ipaddress import ip_network

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from smartfeeds.core.model import Slice
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.validators import NO_VALIDATORS, Validators
from smartfeeds.core.view import BARE
from smartfeeds.errors import StoreError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling import sources as use_cases
from smartfeeds.features.polling.answers import good_answer
from smartfeeds.features.polling.metrics import PollerReading, SourceStateReading
from smartfeeds.features.polling.polls import DAY_S, HOUR_S
from smartfeeds.features.polling.reading import ACCEPT_SOURCE
from smartfeeds.features.polling.source import PushKind, SourceProgress, SourceState, new_source
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchResponse, Hop
from smartfeeds.telemetry import REGISTRY
from support.polling import NODE, PATH, atom, running_polling, tagged
from support.waiting import wait_for
from support.world import ALICE, OWNER, bare


@pytest.fixture
async def polling(world, site):
    async with running_polling(world, site) as running:
        yield running


def pause_s(source, clock):
    return (source.due_us - clock()) / US_PER_S


async def test_first_poll_is_one_get_and_fills_the_node(polling, site, world):
    """[SRC-001] [SRC-010] [SRC-011] [SRC-012] [SRC-013]"""
    site.pages[PATH] = tagged(atom("b", "a"), **{"Set-Cookie": "a=b", "Last-Modified": "yesterday"})
    source = await polling.add()
    await polling.look()
    await polling.poll(source, 60)

    assert [request.method for request in site.asked] == ["GET", "GET"]
    headers = site.asked[0].headers
    assert headers["User-Agent"].startswith("smartfeeds/")
    assert headers["User-Agent"].endswith("(+https://feeds.example.org)")
    assert (headers["Accept"], headers["Accept-Encoding"]) == (ACCEPT_SOURCE, "gzip, deflate")
    assert not {"Cookie", "Referer", "A-IM"} & (set(headers) | set(site.asked[1].headers))
    assert site.paths == [PATH, PATH]
    assert await polling.titles() == ["a", "b"]


async def test_validators_go_back_as_they_came(polling, site):
    """[SRC-002] [SRC-003] Whatever they look like; they are replaced together."""
    site.pages[PATH] = tagged(atom("a"), "no quotes", **{"Last-Modified": "some day"})
    source = await polling.poll(await polling.add())
    site.pages[PATH] = web.Response(body=atom("a"), headers={"Last-Modified": "other day"})
    source = await polling.poll(source, HOUR_S)
    source = await polling.poll(source, HOUR_S)

    sent = [(asked.headers.get("If-None-Match"), asked.headers.get("If-Modified-Since")) for asked in site.asked]
    assert sent == [(None, None), ("no quotes", "some day"), (None, "other day")]


async def test_new_address_begins_without_validators(polling, site):
    """[SRC-004] [SRC-033] After a temporary redirect to another place; the stored address stays."""
    site.pages["/one"], site.pages["/two"] = tagged(atom("a"), '"one"'), tagged(atom("a"), '"two"')
    site.pages[PATH] = web.Response(status=302, headers={"Location": "/one"})
    source = await polling.poll(await polling.add())
    site.pages[PATH] = web.Response(status=307, headers={"Location": "/two"})
    source = await polling.poll(source, HOUR_S)

    assert site.paths == [PATH, "/one", PATH, "/two"]
    assert [asked.headers.get("If-None-Match") for asked in site.asked] == [None] * 4
    assert source.url == site.url(PATH) and source.progress.moved is None
    assert source.progress.validators == Validators(site.url("/two"), '"two"')


async def test_validators_are_stored_with_the_items(polling, site, world):
    """[SRC-005] [SRC-076] A poll whose items cannot be stored leaves nothing behind; the next one has all."""
    site.pages[PATH] = tagged(atom("b", "a"))
    await world.create(NODE, kind="generic")
    source = await polling.poll(await polling.add())

    assert source.progress.validators == NO_VALIDATORS and source.good_us is None
    assert (source.state, source.progress.failures) == (SourceState.SLOWED, 1)
    assert "generic" in source.reason

    await world.delete(node=NODE)
    source = await polling.poll(await polling.add())
    assert site.asked[-1].headers.get("If-None-Match") is None
    assert source.progress.validators.etag == '"1"' and await polling.titles() == ["a", "b"]


async def test_crash_between_fetch_and_store_repeats_the_request(polling, site, world, monkeypatch):
    """[SRC-005] The next poll is unconditional."""
    site.pages[PATH] = tagged(atom("a"))
    source = await polling.add()

    def crash(*_arguments, **_options):
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr("smartfeeds.features.polling.poller.store_poll", crash)
        with pytest.raises(asyncio.CancelledError):
            await polling.poller.poll(source)
    await polling.poll(source)

    assert [asked.headers.get("If-None-Match") for asked in site.asked] == [None, None]
    assert await polling.titles() == ["a"]


async def test_304_renews_validators_and_hints(polling, site):
    """[SRC-007] [SRC-022]"""
    site.pages[PATH] = tagged(atom("a"))
    source = await polling.poll(await polling.add())
    site.pages[PATH] = web.Response(status=304, headers={"ETag": '"2"', "Cache-Control": "max-age=7200"})
    source = await polling.poll(source, HOUR_S)

    assert source.progress.validators.etag == '"2"' and source.progress.fresh_s == 7200
    assert source.state is SourceState.POLLED and await polling.titles() == ["a"]


async def test_server_that_always_says_304_is_asked_without_conditions_once_a_week(polling, site):
    """[SRC-008]"""

    async def page(request):
        return web.Response(status=304) if "If-None-Match" in request.headers else tagged(atom(f"{len(site.asked)}"))

    site.pages[PATH] = page
    source = await polling.poll(await polling.add())
    for _day in range(6):
        source = await polling.poll(source, DAY_S)
    assert await polling.titles() == ["1"]
    await polling.poll(source, DAY_S)
    assert sorted(await polling.titles()) == ["1", "8"]


@pytest.mark.parametrize(("status", "text"), [(304, "answered 304"), (226, "answered 226"), (206, "answered 206")])
async def test_answer_that_was_not_asked_for_is_an_error(polling, site, status, text):
    """[SRC-009] [SRC-020]"""
    site.pages[PATH] = web.Response(status=status, body=b"" if status == 304 else atom("a"))
    source = await polling.poll(await polling.add())

    assert source.state is SourceState.SLOWED and source.reason.startswith(text)
    assert source.good_us is None


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data)[2:-4]),
    ],
)
async def test_compressed_documents_are_read(polling, site, encoding, pack):
    """[SRC-012] deflate with a zlib header, and raw."""
    site.pages[PATH] = web.Response(body=pack(atom("a")), headers={"Content-Encoding": encoding})
    await polling.poll(await polling.add())

    assert await polling.titles() == ["a"]


async def test_address_is_requested_as_it_was_given(polling, site):
    """[SRC-014] No byte of path and query changes, and the fragment stays here."""
    path = "/feed%2fx?a=&b=c+d&e=%7e"
    await polling.poll(await polling.add(f"{path}#part"))

    assert [asked.raw_path for asked in site.asked] == [path]


async def test_password_goes_to_its_own_origin_alone(polling, site):
    """[SRC-015]"""
    site.pages[PATH] = web.Response(status=302, headers={"Location": "/inside"})
    site.pages["/inside"] = web.Response(status=302, headers={"Location": site.url("/outside", "other.example")})
    site.pages["/outside"] = atom("a")
    await polling.poll(await polling.add(user="me", password="secret"))

    assert [asked.headers.get("Authorization", "")[:5] for asked in site.asked] == ["Basic", "Basic", ""]


async def test_source_has_its_own_user_agent(polling, site):
    """[SRC-085]"""
    site.pages[PATH] = atom("a")
    await polling.poll(await polling.add(user_agent="something else"))

    assert site.asked[0].headers["User-Agent"] == "something else"


async def test_feeds_of_one_host_are_polled_one_after_the_other(polling, site):
    """[SRC-017] One at a time, a second apart."""
    at_once, most = 0, 0

    async def page(_request):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return web.Response(body=atom("a"))

    for number in range(10):
        site.pages[f"/{number}"] = page
        await polling.add(f"/{number}", node=f"n{number}")
    for _ in range(10):
        await polling.look()

    assert len(site.asked) == 10 and most == 1
    assert polling.slept == pytest.approx([float(number) for number in range(1, 10)])


async def test_two_sources_of_one_address_share_a_request(polling, site):
    """[SRC-019] [SRC-036] Each node gets the items; a new source reads what the other one has read before."""
    site.pages[PATH] = tagged(atom("a"))
    one, two = await polling.add(node="one"), await polling.add(node="two")
    await polling.look()

    assert site.paths == [PATH]
    assert (await polling.titles("one"), await polling.titles("two")) == (["a"], ["a"])
    await polling.poll(one, HOUR_S)
    assert site.asked[-1].headers["If-None-Match"] == '"1"'
    three = await polling.add(node="three")
    await polling.poll(three, HOUR_S)
    assert site.asked[-1].headers.get("If-None-Match") is None
    assert (await polling.source(two)).polled_us == (await polling.source(three)).polled_us
    assert await polling.titles("three") == ["a"]


async def test_sources_that_ask_differently_do_not_share(polling, site):
    """[SRC-015] [SRC-019] A document for one password is not shown to another."""
    site.pages[PATH] = atom("a")
    one = await polling.add(node="one", user="me", password="secret")
    await polling.add(node="two")
    await polling.poll(one)

    assert (await polling.titles("one")) == ["a"]
    assert await polling.world.store.read(lambda tx: tx.node("two")) is None


@pytest.mark.parametrize(
    ("headers", "minutes"),
    [
        ({"Cache-Control": "public, max-age=7200"}, 126),
        ({"Cache-Control": "max-age=7200", "Age": "3600"}, 63),
        ({"Expires": "Mon, 09 May 2011 16:00:00 GMT", "Date": "Mon, 09 May 2011 14:00:00 GMT"}, 126),
        ({"Expires": "0"}, 60),
        ({"Expires": "nonsense", "Date": "Mon, 09 May 2011 14:00:00 GMT"}, 60),
        ({"Cache-Control": "no-cache, max-age=7200"}, 60),
        ({"Cache-Control": "no-store"}, 60),
        ({"Cache-Control": "max-age=0"}, 60),
        ({"Cache-Control": "max-age=600"}, 10.5),
    ],
)
async def test_headers_give_the_time_of_the_next_poll(polling, site, headers, minutes):
    """[SRC-022] [SRC-024] [SRC-025]"""
    site.pages[PATH] = web.Response(body=atom(), headers=headers)
    source = await polling.poll(await polling.add())

    assert pause_s(source, polling.world.clock) == pytest.approx(minutes * 60)


WORDPRESS = """<sy:updatePeriod>
	hourly	</sy:updatePeriod>
	<sy:updateFrequency>
	{frequency}	</sy:updateFrequency>"""


@pytest.mark.parametrize(
    ("channel", "minutes"),
    [
        pytest.param(WORDPRESS.format(frequency=1), 63, id="WordPress' own text"),
        pytest.param(WORDPRESS.format(frequency=2), 31.5, id="twice an hour"),
        pytest.param("<sy:updateFrequency>12</sy:updateFrequency>", 126, id="daily is the default"),
        pytest.param("<ttl>120</ttl>", 126, id="ttl"),
        pytest.param("<ttl>0</ttl>", 60, id="no ttl"),
        pytest.param("<ttl>-1</ttl>", 60, id="negative ttl"),
        pytest.param("<ttl>often</ttl>", 60, id="ttl is text"),
        pytest.param("<sy:updatePeriod>sometimes</sy:updatePeriod>", 60, id="no period"),
    ],
)
async def test_document_gives_the_time_of_the_next_poll(polling, site, channel, minutes):
    """[SRC-023]"""
    site.pages[PATH] = (
        '<rss version="2.0" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel>'
        f"<title>t</title><link>https://a.example/</link><description/>{channel}</channel></rss>"
    ).encode()
    source = await polling.poll(await polling.add())

    assert pause_s(source, polling.world.clock) == pytest.approx(minutes * 60)


async def test_skipped_hours_of_a_feed_are_passed_over(polling, site):
    """[SRC-026] [RSS-032] The world's clock stands at 12:00 GMT."""
    hours = "".join(f"<hour>{hour}</hour>" for hour in range(13, 20))
    site.pages[PATH] = f'<rss version="2.0"><channel><skipHours>{hours}</skipHours></channel></rss>'.encode()
    source = await polling.poll(await polling.add())

    assert pause_s(source, polling.world.clock) == 8 * HOUR_S


async def test_restart_requests_nothing_that_is_not_due(polling, site, world):
    """[SRC-028] [SRC-006] Twice; what is overdue is spread over ten minutes."""
    site.pages[PATH] = tagged(atom())
    for number in range(20):
        site.pages[f"/{number}"] = tagged(atom())
        await polling.poll(await polling.add(f"/{number}", node=f"n{number}"))
    site.asked.clear()
    for _restart in range(2):
        async with running_polling(world, site) as again:
            await again.look()
    assert site.asked == []

    world.clock.move(2 * HOUR_S)
    async with running_polling(world, site) as late:
        await late.look()
        assert len(site.asked) <= 1
        due = sorted(source.due_us for source in await world.store.read(lambda tx: source_rows.sources(tx, 0, 99)))
        assert world.clock() <= due[0] and due[-1] <= world.clock() + 600 * US_PER_S
        assert len({due_us // (30 * US_PER_S) for due_us in due}) > 12
        await late.look(660)
        assert len(site.asked) == 20
        assert all("If-None-Match" in asked.headers for asked in site.asked)


async def test_clock_that_jumps_does_no_harm(polling, site, world):
    """[SRC-029] Forwards by a day: spread. Backwards by a day: the pauses begin now."""
    for number in range(10):
        site.pages[f"/{number}"] = atom()
        await polling.poll(await polling.add(f"/{number}", node=f"n{number}"))
    await polling.look()
    site.asked.clear()

    world.clock.move(DAY_S)
    await polling.look()
    assert len(site.asked) <= 1
    await polling.look(660)
    assert len(site.asked) == 10

    world.clock.move(-2 * DAY_S)
    await polling.look()
    due = [source.due_us for source in await world.store.read(lambda tx: source_rows.sources(tx, 0, 99))]
    assert all(world.clock() < due_us <= world.clock() + 2 * HOUR_S * US_PER_S for due_us in due)


async def test_poll_by_request_is_conditional_and_comes_once(polling, site, world):
    """[SRC-030]"""
    site.pages[PATH] = tagged(atom("a"))
    source = await polling.poll(await polling.add())
    await polling.look(61)
    await world.service.write(
        lambda tx, context: use_cases.poll_now(tx, context, source_rows.source(tx, source.source_no))
    )
    await polling.look()
    with pytest.raises(Exception, match="less than 60 seconds ago"):
        await world.service.write(
            lambda tx, context: use_cases.poll_now(tx, context, source_rows.source(tx, source.source_no))
        )

    assert [asked.headers.get("If-None-Match") for asked in site.asked] == [None, '"1"']


async def test_pushed_source_keeps_its_slow_polls(polling, site):
    """[SRC-031]"""
    site.pages[PATH] = atom("a")
    source = await polling.add()
    await polling.change(source, progress=SourceProgress(push=PushKind.HUB))
    source = await polling.poll(source)

    assert source.progress.push is PushKind.HUB and pause_s(source, polling.world.clock) == DAY_S


async def test_permanent_redirect_into_an_allowed_network_becomes_the_address(polling, site):
    """[SRC-034] [SRC-035] By its name and by its IP address. All networks are allowed here."""
    for target in (site.url("/new"), site.url("/new", "inside.example")):
        site.pages[PATH] = web.Response(status=301, headers={"Location": target})
        site.pages["/new"] = atom("a")
        source = await polling.poll(await polling.add(node=target))
        assert (source.url, source.progress.moved.url) == (site.url(PATH), target)
        assert (await polling.poll(source, DAY_S)).url == target


@pytest.mark.parametrize(
    ("host", "address", "allowed", "is_stored"),
    [
        ("10.0.0.5", "10.0.0.5", ["10.0.0.0/24"], True),
        ("10.0.0.5", "", ["10.0.0.0/24"], True),
        ("inside.example", "10.0.0.5", ["10.0.0.0/24"], True),
        ("[fd00::5]", "fd00::5", ["fd00::/8"], True),
        ("inside.example", "10.0.0.5", [], False),
        ("10.0.0.5", "10.0.0.5", [], False),
        ("10.0.1.5", "10.0.1.5", ["10.0.0.0/24"], False),
        ("inside.example", "10.0.1.5", ["10.0.0.0/24"], False),
        ("[fd00::5]", "fd00::5", ["10.0.0.0/8"], False),
        ("blog.example", "93.184.215.14", [], True),
        ("blog.example", "", [], True),
    ],
)
def test_redirect_into_a_private_network_is_stored_if_it_is_allowed(host, address, allowed, is_stored):
    """[SRC-035] `allowed` are the networks of the client that has sent the request."""
    source, target = new_source("news", "http://blog.example/feed", 0), f"http://{host}/new"
    hops = (Hop(source.url, 301, "93.184.215.14"), Hop(target, 200, address))
    answer = good_answer(source, FetchResponse(target, 200, hops=hops), None, tuple(map(ip_network, allowed)))
    assert answer.moved_to == (target if is_stored else "")


async def test_permanent_redirect_of_a_public_host(polling, site, world):
    """[SRC-034] [SRC-037]"""
    site.pages[PATH] = web.Response(status=301, headers={"Location": "/new"})
    site.pages["/new"] = web.Response(status=302, headers={"Location": "/today"})
    site.pages["/today"] = atom("b", "a")
    source = await polling.poll(await polling.add())
    assert (source.url, source.progress.moved.url) == (site.url(PATH), site.url("/new"))
    source = await polling.poll(source, DAY_S)
    assert (source.url, source.first_url, source.progress.former_urls) == (
        site.url("/new"), site.url(PATH), (site.url(PATH),),
    )  # fmt: skip
    await polling.poll(source, HOUR_S)
    assert site.paths[-2:] == ["/new", "/today"]
    assert await polling.titles() == ["a", "b"]


async def test_redirects_to_the_address_of_another_source_leave_both(polling, site):
    """[SRC-036] Both stay, and share a request from then on."""
    site.pages["/old"] = web.Response(status=308, headers={"Location": PATH})
    site.pages[PATH] = atom("a")
    old, new = await polling.add("/old", node="one"), await polling.add(node="two")
    with capture_logs() as logs:
        for later_s in (0, DAY_S):
            old = await polling.poll(old, later_s)
    assert [(log["node"], log["sharing"]) for log in logs if log["event"] == "source_moved"] == [("one", 1)]
    site.asked.clear()
    await polling.poll(new, HOUR_S)

    assert old.url == new.url and site.paths == [PATH]
    assert (await polling.titles("one"), await polling.titles("two")) == (["a"], ["a"])


async def test_portal_page_changes_nothing(polling, site):
    """[SRC-034] [SRC-043] Old items and validators stay; the link of the page is told, not taken."""
    site.pages[PATH] = tagged(atom("a"))
    source = await polling.poll(await polling.add())
    site.pages[PATH] = web.Response(status=301, headers={"Location": "/portal"})
    page = '<html><head><link rel="alternate" type="application/rss+xml" href="/ads.rss"></head></html>'
    site.pages["/portal"] = tagged(page.encode(), '"portal"')
    for _day in range(3):
        source = await polling.poll(source, DAY_S)

    assert (source.url, source.progress.moved) == (site.url(PATH), None)
    assert source.progress.validators.etag == '"1"' and await polling.titles() == ["a"]
    assert source.state is SourceState.SLOWED and source.progress.said
    assert site.url("/ads.rss") in source.reason and "/ads.rss" not in site.paths


@pytest.mark.parametrize(
    ("status", "hours", "reason"),
    [(404, 1, "answered 404"), (403, 1, "answered 403"), (451, 1, "answered 451"), (500, 0.5, "answered 500")],
)
async def test_failures_slow_the_polls(polling, site, status, hours, reason):
    """[SRC-039] [SRC-040] [SRC-047]"""
    site.pages[PATH] = web.Response(status=status)
    source = await polling.poll(await polling.add())

    assert (source.state, source.reason, pause_s(source, polling.world.clock)) == (
        SourceState.SLOWED, reason, hours * HOUR_S,
    )  # fmt: skip


async def test_host_that_cannot_be_reached_slows_the_polls(polling, site):
    """[SRC-040]"""
    source = await polling.change(await polling.add(), url="http://127.0.0.1:9/feed")
    source = await polling.poll(source)

    assert source.state is SourceState.SLOWED and "cannot be reached" in source.reason
    assert pause_s(source, polling.world.clock) == HOUR_S / 2


async def test_410_stops_at_the_second_time(polling, site):
    """[SRC-038]"""
    site.pages[PATH] = web.Response(status=410)
    source = await polling.poll(await polling.add())
    assert source.state is SourceState.SLOWED
    await polling.look(2 * DAY_S)
    source = await polling.source(source)

    assert (source.state, source.due_us, len(site.asked)) == (SourceState.STOPPED, None, 2)
    assert await polling.world.store.read(lambda tx: source_rows.next_due_us(tx)) is None


@pytest.mark.parametrize(
    ("status", "retry_after", "pause"),
    [
        pytest.param(429, "7200", 7200, id="seconds"),
        pytest.param(429, "Mon, 09 May 2011 13:00:00 GMT", 3600, id="date"),
        pytest.param(503, "7200", 7200, id="503"),
        pytest.param(429, "99999999", 7 * DAY_S, id="seven days at most"),
        pytest.param(429, "soon", HOUR_S, id="text"),
        pytest.param(429, "Mon, 09 May 2005 13:00:00 GMT", HOUR_S, id="past"),
        pytest.param(429, None, HOUR_S, id="missing"),
    ],
)
async def test_busy_server_makes_its_whole_host_wait(polling, site, status, retry_after, pause):
    """[SRC-041] [SRC-042] No failure is counted, and other hosts do not wait. The pause survives a restart."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    site.pages[PATH] = web.Response(status=status, headers=headers)
    site.pages["/other"] = atom("a")
    source = await polling.poll(await polling.add())
    assert (source.state, source.progress.failures) == (SourceState.WAITING, 0)
    paused_until_us = polling.world.clock() + pause * US_PER_S
    assert paused_until_us <= source.due_us <= paused_until_us + 1_800 * US_PER_S

    other = await polling.add("/other", node="same host")
    elsewhere = await polling.add("/other", node="elsewhere", host="elsewhere.example")
    async with running_polling(polling.world, site) as restarted:
        await restarted.look()
        await restarted.look()
    assert site.paths == [PATH, "/other"]
    waiting = await polling.source(other)
    assert waiting.state is SourceState.WAITING and waiting.due_us >= paused_until_us
    assert (await polling.source(elsewhere)).state is SourceState.POLLED


async def test_503_without_a_time_is_a_failure(polling, site):
    """[SRC-040] [SRC-041]"""
    site.pages[PATH] = web.Response(status=503)
    source = await polling.poll(await polling.add())

    assert (source.state, source.progress.failures) == (SourceState.SLOWED, 1)


@pytest.mark.parametrize(
    "body", [b"", b"   ", b"<feed xmlns='http://www.w3.org/2005/Atom'><entry>", b"hello", b"{}", b"\x00\x01\x02"]
)
async def test_document_that_cannot_be_read_takes_nothing_away(polling, site, body):
    """[SRC-044] [SRC-045] The third time, the operator is told."""
    site.pages[PATH] = tagged(atom("a"))
    source = await polling.poll(await polling.add())
    site.pages[PATH] = tagged(body, '"2"')
    said = []
    for _ in range(3):
        source = await polling.poll(source, HOUR_S)
        said.append(source.progress.said)

    assert said == [False, False, True] and source.reason
    assert source.progress.validators.etag == '"1"' and await polling.titles() == ["a"]
    site.pages[PATH] = tagged(atom("b", "a"))
    source = await polling.poll(source, HOUR_S)
    assert (source.state, source.reason, source.progress.failures) == (SourceState.POLLED, "", 0)


async def test_repairs_are_said_once_and_stay_while_the_document_does(polling, site):
    """[SRC-047] What was repaired is the reason of the source, and in the log."""
    site.pages[PATH] = tagged(atom("a").replace(b"<title>a<", b"<title>a\x08 & b<"))
    with capture_logs() as logs:
        source = await polling.poll(await polling.add())
        again = await polling.poll(source, HOUR_S)

    assert source.state is SourceState.POLLED and await polling.titles() == ["a & b"]
    assert source.reason.startswith("read with repairs: characters that XML does not allow") and '"&"' in source.reason
    assert site.asked[-1].headers["If-None-Match"] == '"1"' and again.reason == source.reason
    assert [log["reason"] for log in logs if log["event"] == "source_repaired"] == [source.reason]
    site.pages[PATH] = tagged(atom("a"), '"2"')
    assert (await polling.poll(again, HOUR_S)).reason == ""


async def test_cut_document_is_requested_again_and_ends_nothing(polling, site):
    """[SRC-066] A server may answer 304 to the validators of what it has cut; a complete feed that is cut is none."""
    complete = '<fh:complete xmlns:fh="http://purl.org/syndication/history/1.0"/>'
    whole = atom("c", "b", "a", inner=complete)
    site.pages[PATH] = tagged(whole)
    source = await polling.poll(await polling.add())
    site.pages[PATH] = tagged(whole[: whole.rindex(b"</entry>")], '"2"')
    for _ in range(3):
        source = await polling.poll(source, HOUR_S)

    assert sorted(await polling.titles()) == ["a", "b", "c"]
    assert "If-None-Match" not in site.asked[-1].headers and "ends in the middle" in source.reason


async def test_document_that_is_cut_takes_nothing(polling, site):
    """[SRC-045] Shorter than its Content-Length."""

    async def page(request):
        response = web.StreamResponse(headers={"Content-Length": "5000"})
        await response.prepare(request)
        await response.write(atom("a"))
        request.transport.close()
        return response

    site.pages[PATH] = page
    source = await polling.poll(await polling.add())

    assert source.state is SourceState.SLOWED and source.good_us is None
    assert await polling.world.store.read(lambda tx: tx.node(NODE)) is None


async def test_good_answer_ends_all_slowing(polling, site):
    """[SRC-046]"""
    source = await polling.add()
    for _ in range(5):
        source = await polling.poll(source, HOUR_S)
    assert source.progress.failures == 5
    site.pages[PATH] = atom("a")
    source = await polling.poll(source, HOUR_S)

    assert (source.state, pause_s(source, polling.world.clock)) == (SourceState.POLLED, 3 * HOUR_S)
    assert source.progress.failures == 0


async def test_items_change_and_stay(polling, site, world):
    """[SRC-071] [SRC-068] The same document twice changes nothing; a changed payload is a modification."""
    site.pages[PATH] = atom("b", "a")
    source = await polling.poll(await polling.add())
    before = (await world.pull(NODE, actor=OWNER)).items
    await polling.poll(source, HOUR_S)
    assert (await world.pull(NODE, actor=OWNER)).items == before

    site.pages[PATH] = atom("b", "a").replace(b"<title>a<", b"<title>a again<")
    await polling.poll(source, HOUR_S)
    assert await polling.titles() == ["b", "a again"]


async def test_retracted_item_stays_away(polling, site, world):
    """[SRC-074]"""
    site.pages[PATH] = atom("b", "a")
    source = await polling.poll(await polling.add())
    first = (await world.pull(NODE, actor=OWNER)).items[0]
    await world.retract(first.id, node=NODE, actor="feeds.example.org")
    site.pages[PATH] = atom("c", "b", "a")
    await polling.poll(source, HOUR_S)

    assert sorted(await polling.titles()) == ["b", "c"]


async def test_subscribers_are_told_of_the_newest_items_of_the_first_document(polling, site, world):
    """[SRC-057] Fifty items, ten notifications; the gap is visible, and later items are all told."""
    await world.create(NODE)
    await world.publish("mine", node=NODE)
    views = (f"{NODE}?order=modified", f"{NODE}?order=created")
    for view in views:
        await world.subscribe(ALICE, view)
    titles = [f"{number:02}" for number in range(50)]
    site.pages[PATH] = atom(*reversed(titles))
    source = await polling.poll(await polling.add())

    events = await world.events(ALICE)
    for view in views:
        told = [event for event in events if event.node == view]
        assert [event.text for event in told] == titles[-10:]
        assert told[0].total == 42, "the count has the silent items"
        silent = await world.pull(view, actor=OWNER, max=41)
        assert told[0].previous == bare(silent.last), "the gap is visible"

    entry = b"<entry><id>urn:x:new</id><title>new</title><updated>2011-05-09T12:00:00Z</updated></entry>"
    site.pages[PATH] = atom(*reversed(titles)).replace(b"<entry>", entry + b"<entry>", 1)
    await polling.poll(source, HOUR_S)
    assert [event.text for event in await world.events(ALICE, views[0])] == ["new"]


async def test_publisher_of_items_can_be_chosen(polling, site, world):
    """[SRC-077] The component, or the address of the settings."""
    site.pages[PATH] = atom("a")
    await polling.poll(await polling.add(node="one"))
    await polling.poll(await polling.add(node="two", publisher=ALICE))

    def publishers(tx):
        return [tx.slice(tx.node(name).node_no, Slice(BARE, 1))[0].publisher for name in ("one", "two")]

    assert await world.store.read(publishers) == ["feeds.example.org", ALICE]


async def test_node_may_have_several_sources(polling, site):
    """[SRC-078] With the same ids in both feeds, their items stay apart."""
    site.pages["/1"], site.pages["/2"] = atom("a"), atom("a", "b")
    for path in ("/1", "/2"):
        await polling.poll(await polling.add(path))

    assert sorted(await polling.titles()) == ["a", "a", "b"]


async def test_node_gets_the_title_of_the_feed_and_follows_its_changes(polling, site, world):
    """[SRC-079] A title that the owner has chosen stays."""
    site.pages[PATH] = atom("a", feed="First", inner="<subtitle>About</subtitle>")
    source = await polling.poll(await polling.add())
    options = (await world.node(NODE)).options
    assert (options.title, options.description, source.progress.title) == ("First", "About", "First")

    site.pages[PATH] = atom("a", feed="Second", inner="<subtitle>About</subtitle>")
    source = await polling.poll(source, HOUR_S)
    assert (await world.node(NODE)).options.title == "Second"
    await world.configure(node=NODE, actor="feeds.example.org", title="Mine")
    site.pages[PATH] = atom("a", feed="Third", inner="<subtitle>More</subtitle>")
    await polling.poll(source, HOUR_S)
    options = (await world.node(NODE)).options
    assert (options.title, options.description) == ("Mine", "More")


async def test_hub_and_cloud_of_the_feed_are_not_ours(polling, site, world):
    """[SRC-080]"""
    site.pages[PATH] = b"""<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel><title>t</title>
        <link>https://a.example/</link><ttl>90</ttl><copyright>them</copyright>
        <cloud domain="their.example" port="80" path="/r" registerProcedure="" protocol="http-post"/>
        <a:link rel="hub" href="https://their.example/hub"/><a:link rel="self" href="https://their.example/f"/>
        <skipHours><hour>3</hour></skipHours></channel></rss>"""
    await polling.poll(await polling.add())
    details = (await world.node(NODE)).options.details

    assert "them" in details
    assert not [word for word in ("their.example", "cloud", "hub", "ttl", "skip") if word in details]


async def test_feed_of_this_service_is_refused(world, site):
    """[SRC-082] By address; no request is made."""
    async with running_polling(world, site, own_url=site.url("").rstrip("/")) as polling:
        source = await polling.poll(await polling.add())

    assert site.asked == [] and "feed of this service" in source.reason


async def test_removed_and_paused_sources_are_left_alone(polling, site, world):
    """[SRC-083] Also if that happens while they are polled."""

    async def page(_request):
        await polling.change(source, state=SourceState.PAUSED, due_us=None)
        return web.Response(body=atom("a"))

    site.pages[PATH] = page
    source = await polling.add()
    await polling.look()
    paused = await polling.source(source)
    assert (paused.state, paused.good_us) == (SourceState.PAUSED, None)
    assert await world.store.read(lambda tx: tx.node(NODE)) is None
    await polling.look(DAY_S)
    assert len(site.asked) == 1


async def test_deleted_node_takes_its_sources_with_it(polling, site, world):
    """The next poll would create the node again."""
    site.pages[PATH] = atom("a")
    await polling.poll(await polling.add())
    await world.delete(node=NODE, actor="feeds.example.org")

    assert await world.store.read(lambda tx: source_rows.sources(tx, 0, 10)) == []


async def test_items_that_came_from_this_service_do_not_return(world, site):
    """[SRC-082] A service that polls us names our feed in atom:source; another source is no reason."""
    own = "https://feeds.example.org/f"

    def sourced(url):
        return f'<source><title>t</title><link rel="self" href="{url}"/></source></entry>'.encode()

    body = atom("c", "b", "a").split(b"</entry>")
    site.pages[PATH] = (
        body[0] + sourced(f"{own}/tea/") + body[1] + sourced("https://other.example/") + body[2] + b"</entry>" + body[3]
    )
    async with running_polling(world, site, own_url=own) as polling:
        await polling.poll(await polling.add())
        assert await polling.titles() == ["a", "b"]


async def test_hosts_that_share_an_ip_address_are_limited_together(polling, site):
    """[SRC-018] Four at a time, whatever their names are."""
    at_once, most, full = 0, 0, asyncio.Event()

    async def page(_request):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if at_once == 4:
            full.set()
        await full.wait()
        for _ in range(20):  # turns in which a fifth request would come
            await asyncio.sleep(0)
        at_once -= 1
        return web.Response(body=atom("a"))

    site.pages[PATH] = page
    for number in range(12):
        await polling.add(node=f"n{number}", host=f"blog{number}.example")
    await polling.look()

    assert (len(site.asked), most) == (12, 4)


async def test_two_polls_at_once_make_no_doubles(polling, site, world):
    """Each import is one transaction."""
    site.pages[PATH] = atom("b", "a")
    source = await polling.add()
    await asyncio.gather(*(polling.poller.poll(source) for _ in range(3)))

    assert await polling.titles() == ["a", "b"]
    assert (await world.node(NODE)).total == 2


async def test_enclosures_are_kept_as_they_are(polling, site, world):
    """[SRC-081]"""
    site.pages[PATH] = b"""<rss version="2.0"><channel><title>t</title><item><guid>1</guid><title>a</title>
        <enclosure url="https://media.example/a%20b.mp3?x=1" length="123" type="audio/mpeg"/></item></channel></rss>"""
    await polling.poll(await polling.add())
    (item,) = (await world.pull(NODE, actor=OWNER)).items

    assert b'href="https://media.example/a%20b.mp3?x=1" length="123" rel="enclosure" type="audio/mpeg"' in item.payload


async def test_metrics_count_polls_bytes_and_items(polling, site):
    """[SRC-086]"""

    def value(name, **labels):
        return REGISTRY.get_sample_value(f"smartfeeds_source_{name}_total", labels) or 0.0

    def counts():
        return (
            value("polls", result="read"), value("polls", result="unchanged"), value("polls", result="refused"),
            value("bytes"), value("items", effect="added"), value("items", effect="changed"),
        )  # fmt: skip

    before = counts()
    site.pages[PATH] = tagged(atom("b", "a"))
    source = await polling.poll(await polling.add())
    site.pages[PATH] = web.Response(status=304)
    source = await polling.poll(source, HOUR_S)
    site.pages["/busy"] = web.Response(status=429)
    await polling.add("/missing", node="m", host="missing.example")
    await polling.add("/busy", node="b", host="busy.example")
    polling.world.clock.move(30)
    await polling.look()
    await polling.look(60)

    assert [after - former for former, after in zip(before, counts(), strict=True)] == [
        1, 1, 1, len(atom("b", "a")), 2, 0,
    ]  # fmt: skip
    reading, *states = polling.poller.readings()
    assert reading == PollerReading(behind_s=0.0, paused_hosts=1)
    assert {one.state: one.sources for one in states} == {
        "polled": 1, "waiting": 1, "slowed": 1, "stopped": 0, "paused": 0,
    }  # fmt: skip


def count_of(poller):
    """The number of sources in the metrics."""
    return sum(reading.sources for reading in poller.readings() if isinstance(reading, SourceStateReading))


async def test_poller_runs_until_it_is_cancelled(polling, site, world):
    """[OPS-085] A failure of the store is logged, and the next look goes on. After the end another process counts."""
    site.pages[PATH] = atom("a")
    await polling.add()
    counted: list[int] = []
    fails = [StoreError("full")]
    read = world.service.read

    async def once_failing(work, **options):
        if fails:
            raise fails.pop()
        return await read(work, **options)

    world.service.read = once_failing
    done = asyncio.Event()

    async def sleep(_seconds):
        await asyncio.sleep(0)
        if site.asked and not polling.poller._running:
            counted.append(count_of(polling.poller))
            done.set()
            await asyncio.Event().wait()

    polling.poller._tools = replace(polling.poller._tools, sleep=sleep)
    with capture_logs() as logs:
        task = asyncio.create_task(polling.poller.run())
        await wait_for(done.wait(), "the second pause of the poller")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert [log["event"] for log in logs if log["log_level"] == "error"] == ["store_failed"]
    assert await polling.titles() == ["a"]
    assert counted[-1] == 1
    assert count_of(polling.poller) == 0


async def test_source_that_was_polled_since_the_look_is_not_polled_again(polling, site):
    """[SRC-017] [SRC-030] The row that a look has read may be old when its turn comes."""
    site.pages[PATH] = atom("a")
    source = await polling.add()
    await polling.poller.poll(source)
    await polling.poller.poll(source)

    assert site.paths == [PATH]


async def test_filter_leaves_items_out(polling, site):
    """[SRC-085] As the filters of a view select them."""
    categories = {"a": "Tea", "b": "coffee", "c": "tea"}
    body = atom(*categories).decode()
    for title, term in categories.items():
        body = body.replace(f"<title>{title}<", f"<category term='{term}'/><title>{title}<")
    site.pages[PATH] = body.encode()
    await polling.poll(await polling.add(only="category=tea"))

    assert await polling.titles() == ["c", "a"]


async def test_fault_in_reading_slows_the_source(polling, site, monkeypatch):
    """[SRC-044] Whatever a document makes of a reader, its server is not requested again and again."""
    site.pages[PATH] = atom("a")
    source = await polling.add()

    def fail(*_arguments):
        raise RecursionError("deep")

    monkeypatch.setattr("smartfeeds.features.polling.poller.read_source", fail)
    with capture_logs() as logs:
        await polling.look()
    source = await polling.source(source)

    assert (source.state, "fault of this program" in source.reason, len(site.asked)) == (SourceState.SLOWED, True, 1)
    assert [log["event"] for log in logs if log["log_level"] == "error"] == ["source_not_read"]


async def test_fault_in_a_request_slows_the_source_and_no_other_of_its_host(polling, site, monkeypatch):
    """[SRC-044] What its server makes of the client holds up no other source."""
    site.pages |= {PATH: atom("a"), "/other": atom("b")}
    source = await polling.add()
    other = await polling.add("/other", node="other")
    get = Fetcher.get

    async def fail(self, url, *arguments, **options):
        if url == source.url:
            raise IndexError("string index out of range")
        return await get(self, url, *arguments, **options)

    monkeypatch.setattr(Fetcher, "get", fail)
    with capture_logs() as logs:
        await polling.look()
        await polling.look()
    source, other = await polling.source(source), await polling.source(other)

    assert (source.state, "fault of this program" in source.reason) == (SourceState.SLOWED, True)
    assert source.due_us > polling.poller._tools.now_us() and source.progress.failures == 1
    assert other.good_us is not None and site.paths == ["/other"]
    assert [log["event"] for log in logs if log["log_level"] == "error"] == ["source_not_read"]


async def test_full_disk_does_not_repeat_requests(polling, site, world):
    """[SRC-005] The source stays due, and its host rests for five minutes."""
    site.pages[PATH] = atom("a")
    await polling.add()
    await polling.poller.look()
    await polling.poller.settle()
    rests = []

    async def sleep(seconds):
        rests.append(seconds)

    async def fail(_work, **_options):
        raise StoreError("the disk is full")

    polling.poller._tools = replace(polling.poller._tools, sleep=sleep)
    source = await polling.add("/other", node="other")
    site.pages["/other"] = atom("a")
    write, world.service.write = world.service.write, fail
    with capture_logs() as logs:
        await polling.poller.look()
        await polling.poller.settle()
    world.service.write = write

    assert rests == [300.0] and site.paths == [PATH, "/other"]
    assert [log["event"] for log in logs if log["log_level"] == "error"] == ["store_failed"]
    assert (await polling.source(source)).due_us == source.due_us
