"""A node that fills itself."""

import asyncio

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from smartfeeds.core.access import Affiliation
from smartfeeds.core.model import NodeKind
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.features.documents.ess import read_either, read_nno
from smartfeeds.features.nno.entries import Aggregator
from smartfeeds.features.nno.planet import LONGEST_PAUSE_S, Planet
from smartfeeds.features.nno.settings import NnoSettings
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.formats.atom import read_meta
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.service.importing import ImportCounts
from smartfeeds.service.requests import PullFeed
from support.documents import at_once
from support.faketime import FakeTime
from support.world import OWNER, SERVICE, jid

NODE = "planet"
EVERY_S = 900.0


@pytest.fixture
def time():
    return FakeTime()


def planet_of(world, fetcher, time, urls, *, entries=3, owner=OWNER, every_s=EVERY_S, spread=1.0):
    # Without checks, because some rounds have no address.
    settings = NnoSettings.model_construct(node=NODE, urls=tuple(urls), entries=entries, every_s=every_s, owner=owner)
    began_s = time.clock()
    now_us = world.clock()
    tools = SourceTools(
        lambda: now_us + int((time.clock() - began_s) * US_PER_S), time.sleep, lambda: spread, aside=at_once
    )
    return Planet(settings, world.service, fetcher, tools)


async def titles(world):
    page = await world.pull(NODE, actor=OWNER, max=500)
    return [read_meta(item.payload).body for item in page.items]


async def test_round_makes_the_node_and_publishes_the_newest_entries(site, world, fetcher, time):
    """[ESS-011] [ESS-012] [ESS-017] [ESS-018] The three newest of four feeds, oldest first."""
    urls = [
        site.blog("a", ("urn:a1", "A1", 1), ("urn:a2", "A2", 3), ("urn:a3", "A3", 900)),
        site.blog("b", ("urn:b1", "B1", 2)),
        site.blog("c", ("urn:c1", "C1", 60)),
        site.blog("d"),
    ]
    done = await planet_of(world, fetcher, time, urls).round()

    assert (done.published, done.downloads, done.failed) == (ImportCounts(added=3), 2, {})
    assert await titles(world) == ["A2", "B1", "A1"]
    assert site.asked_for(".xml") == ["/a.xml", "/b.xml"]
    node = await world.node(NODE)
    assert node.kind is NodeKind.FEED
    assert await world.store.read(lambda tx: tx.affiliation(node.node_no, OWNER)) is Affiliation.OWNER


async def test_round_with_nothing_new_touches_nothing(site, world, fetcher, time):
    """[ESS-019] No feed is downloaded, no item gets a new key; and a new start changes nothing either."""
    urls = [site.blog("a", ("urn:a1", "A1", 1), ("urn:a2", "A2", 3))]
    planet = planet_of(world, fetcher, time, urls)
    await planet.round()
    before = (await world.pull(NODE, actor=OWNER)).items
    site.asked_for(".xml")

    again = await planet.round()
    assert (again.published, again.downloads) == (ImportCounts(), 0)
    assert site.asked_for(".xml") == []

    restarted = await planet_of(world, fetcher, time, urls).round()
    assert (restarted.published, restarted.downloads) == (ImportCounts(), 0)
    assert site.asked_for(".xml") == []
    assert (await world.pull(NODE, actor=OWNER)).items == before


async def test_round_publishes_its_result_as_nno(site, world, fetcher, time):
    """[ESS-017] [ESS-023] The golden result: the outline of the round with the addresses of the feeds, whether or not
    their entries could be downloaded. A round with the same entries changes nothing, and a new start has it still.
    """

    async def outline():
        request = PullFeed(jid(OWNER), SERVICE, NODE, stock=True, page=ResultSetRequest("0"), outline=True)
        return await world.service.handle(request)

    urls = [
        site.blog("a", ("urn:a1", "A1", 1), ("urn:a2", "A2", 3), ("urn:a3", "A3", 900)),
        site.blog("b", ("urn:b1", "B1", 2)),
        site.blog("c", ("urn:c1", "C1", 60)),
    ]
    del site.pages["/b.xml"]
    planet = planet_of(world, fetcher, time, urls)
    await planet.round()
    first = await outline()
    files = [read_either(site.pages[f"/{name}.ess"])[0] for name in "abc"]
    golden = Aggregator(3)
    for file in files:
        golden.add(file)
    assert list(read_nno(first.outline).entries) == golden.result()
    assert [entry.feed_url for entry in golden.result()] == [site.url(f"/{name}.xml") for name in "aba"]

    await planet.round()
    assert await outline() == first
    await planet_of(world, fetcher, time, urls).round()
    assert (await outline()).outline == first.outline

    site.blog("c", ("urn:c1", "C1", 60), ("urn:c2", "C2", 0))
    await planet.round()
    later = await outline()
    assert read_nno(later.outline).entries[0].feed_url == site.url("/c.xml")
    assert later.version != first.version


async def forget_documents(world):
    """As a database of an older version, which has none."""

    def work(tx, _context):
        for reader in (f"ess of {NODE}", f"feeds of {NODE}"):
            for url in tx.documents(reader):
                tx.remove_document(reader, url)

    await world.service.write(work)


def tagged(site, *paths):
    """Lets pages have ETags, and answer 304."""

    def page(body, tag):
        async def answer(request):
            if request.headers.get("If-None-Match") == tag:
                return web.Response(status=304)
            return web.Response(body=body, headers={"ETag": tag})

        return answer

    for number, path in enumerate(paths):
        site.pages[path] = page(site.pages[path], f'"{number}"')


def conditional(site):
    """The paths that were asked for, and whether with validators; from now on."""
    asked, site.asked = site.asked, []
    return sorted((request.path, "If-None-Match" in request.headers) for request in asked)


async def test_new_start_asks_for_what_has_changed_only(site, world, fetcher, time):
    """[ESS-013] [ESS-019] The ESS file, its page, and a feed that lacks an entry: validators outlive the process."""
    entries = [("urn:a1", "A1", 5), ("urn:a2", "A2", 6)]
    site.blog("a", *entries, ("urn:a3", "A3", 7))
    outline = site.pages["/a.ess"]
    site.blog("a", *entries)
    site.pages["/a.ess"] = outline
    site.pages["/"] = b'<html><head><link rel="alternate" type="application/ess" href="/a.ess"/></head></html>'
    tagged(site, "/a.ess", "/a.xml")
    urls = [site.url()]
    assert (await planet_of(world, fetcher, time, urls).round()).published == ImportCounts(added=2)
    assert conditional(site) == [("/", False), ("/a.ess", False), ("/a.xml", False)]

    for _ in range(2):
        again = await planet_of(world, fetcher, time, urls).round()
        assert (again.published, again.failed) == (ImportCounts(), {})
        assert conditional(site) == [("/", False), ("/a.ess", True), ("/a.xml", True)]

    site.blog("a", ("urn:a4", "A4", 1), *entries)
    assert (await planet_of(world, fetcher, time, urls).round()).published == ImportCounts(added=1)
    assert await titles(world) == ["A2", "A1", "A4"]


async def test_new_start_asks_again_for_what_was_never_stored(site, world, fetcher, time):
    """A crash between fetching and storing must not hide the entries behind a 304."""
    urls = [site.blog("a", ("urn:a1", "A1", 1))]
    tagged(site, "/a.ess", "/a.xml")
    write = world.service.write

    async def failing(_work, **_options):
        raise StoreError("the disk is full")

    world.service.write = failing
    with pytest.raises(StoreError):
        await planet_of(world, fetcher, time, urls).round()
    world.service.write = write
    conditional(site)

    assert (await planet_of(world, fetcher, time, urls).round()).published == ImportCounts(added=1)
    assert conditional(site) == [("/a.ess", False), ("/a.xml", False)]
    assert await titles(world) == ["A1"]


async def test_new_start_fills_a_node_that_is_gone(site, world, fetcher, time):
    urls = [site.blog("a", ("urn:a1", "A1", 1))]
    tagged(site, "/a.ess", "/a.xml")
    await planet_of(world, fetcher, time, urls).round()
    await world.delete(node=NODE)

    assert (await planet_of(world, fetcher, time, urls).round()).published == ImportCounts(added=1)
    assert await titles(world) == ["A1"]


async def test_documents_are_remembered_only_while_they_are_needed(site, world, fetcher, time):
    urls = [site.blog("a", ("urn:a1", "A1", 1)), site.blog("b", ("urn:b1", "B1", 2))]
    await planet_of(world, fetcher, time, urls).round()
    await planet_of(world, fetcher, time, urls[1:]).round()

    def documents(tx, _context):
        return [*tx.documents(f"ess of {NODE}"), *tx.documents(f"feeds of {NODE}")]

    assert await world.service.read(documents) == [site.url("/b.ess"), site.url("/b.xml")]


async def test_round_publishes_what_is_younger_and_downloads_that_feed_alone(site, world, fetcher, time):
    """[ESS-013] [ESS-014] [ESS-019] One new entry, one download."""
    urls = [site.blog("a", ("urn:a1", "A1", 5)), site.blog("b", ("urn:b1", "B1", 6))]
    planet = planet_of(world, fetcher, time, urls)
    await planet.round()
    site.asked_for(".xml")
    site.blog("b", ("urn:b2", "B2", 1), ("urn:b1", "B1", 6))

    assert (await planet.round()).published == ImportCounts(added=1)
    assert await titles(world) == ["B1", "A1", "B2"]
    assert site.asked_for(".xml") == ["/b.xml"]


async def test_entry_with_a_new_time_is_published_again(site, world, fetcher, time):
    """[ESS-021] It moves to the new end of the feed; there is one of it."""
    urls = [site.blog("a", ("urn:a1", "A1", 5)), site.blog("b", ("urn:b1", "B1", 4))]
    planet = planet_of(world, fetcher, time, urls)
    await planet.round()
    site.blog("a", ("urn:a1", "A1", 1))

    assert (await planet.round()).published == ImportCounts(changed=1)
    assert await titles(world) == ["B1", "A1"]


async def test_entries_of_two_feeds_with_one_id_do_not_replace_each_other(site, world, fetcher, time):
    """And each says which feed it is from."""
    urls = [site.blog("a", ("urn:same", "A1", 1)), site.blog("evil", ("urn:same", "Evil", 0))]
    await planet_of(world, fetcher, time, urls).round()

    assert await titles(world) == ["A1", "Evil"]
    first = (await world.pull(NODE, actor=OWNER)).items[0]
    assert b"<id>urn:same</id>" in first.payload
    source = f'<source><id>urn:x:a</id><title>a</title><link href="{site.url("/a.xml")}" rel="self"></link></source>'
    assert source.encode() in first.payload


async def test_entries_of_the_far_future_keep_nobody_out(site, world, fetcher, time):
    """[ESS-005] Up to a day ahead is taken; a feed whose clock is wrong by more would be the newest for ever."""
    urls = [
        site.blog("a", ("urn:a1", "A1", -1_440), ("urn:a2", "A2", 5)),
        site.blog("b", *((f"urn:b{n}", f"B{n}", -1_441 - n) for n in range(9)), ("urn:b", "B", 3)),
    ]
    assert (await planet_of(world, fetcher, time, urls).round()).published == ImportCounts(added=3)
    assert await titles(world) == ["A2", "B", "A1"]


async def test_entry_that_the_owner_retracted_stays_so(site, world, fetcher, time):
    """Also after a new start, when nothing is known of earlier rounds."""
    urls = [site.blog("a", ("urn:a1", "A1", 1), ("urn:a2", "A2", 2))]
    await planet_of(world, fetcher, time, urls).round()
    spam = (await world.pull(NODE, actor=OWNER)).items[0]
    await world.retract(spam.id, node=NODE)

    assert (await planet_of(world, fetcher, time, urls).round()).published == ImportCounts()
    await forget_documents(world)
    assert (await planet_of(world, fetcher, time, urls).round()).published == ImportCounts(unchanged=1)
    assert await titles(world) == ["A1"]


async def test_sources_that_fail_are_left_alone_for_longer_and_longer_and_the_others_go_on(site, world, fetcher, time):
    """The last file of a source counts while it is away."""
    urls = [site.blog("a", ("urn:a1", "A1", 1)), site.blog("b", ("urn:b1", "B1", 2)), site.url("/none.ess")]
    planet = planet_of(world, fetcher, time, urls)
    site.pages["/none.ess"] = b"nonsense"
    first = await planet.round()
    assert set(first.failed) == {site.url("/none.ess")}
    assert await titles(world) == ["B1", "A1"]

    del site.pages["/a.ess"]
    asked = []
    for _round in range(8):
        site.asked_for(".ess")
        await time.advance(EVERY_S)
        await planet.round()
        asked.append(site.asked_for(".ess"))
    assert [("/none.ess" in paths, "/a.ess" in paths, "/b.ess" in paths) for paths in asked] == [
        (True, True, True),
        (False, True, True),
        (True, False, True),
        (False, True, True),
        (False, False, True),
        (False, False, True),
        (True, False, True),
        (False, True, True),
    ]
    assert await titles(world) == ["B1", "A1"]


@pytest.mark.parametrize("path", ["/a.ess", "/a.xml"])
async def test_address_that_asks_for_a_pause_gets_it(site, world, fetcher, time, path):
    """Retry-After (RFC 9110 10.2.3) takes the place of the back-off."""
    urls = [site.blog("a", ("urn:a1", "A1", 1))]
    page = site.pages[path]

    async def overloaded(_request):
        return web.Response(status=503, headers={"Retry-After": str(int(4 * EVERY_S))})

    site.pages[path] = overloaded
    planet = planet_of(world, fetcher, time, urls)
    await planet.round()
    site.pages[path] = page
    requests = []
    for _round in range(4):
        site.asked_for(path)
        await time.advance(EVERY_S)
        fetcher.client._limiter._hosts.clear()  # its clock is not that of this test
        await planet.round()
        requests.append(site.asked_for(path))

    assert requests == [[], [], [], [path]]
    assert await titles(world) == ["A1"]


async def test_feed_that_fails_is_asked_again_after_a_pause(site, world, fetcher, time):
    """[ESS-018] Its entries come when it answers."""
    urls = [site.blog("a", ("urn:a1", "A1", 1)), site.blog("b", ("urn:b1", "B1", 2))]
    feed = site.pages.pop("/a.xml")
    planet = planet_of(world, fetcher, time, urls)
    for expected in (["/a.xml", "/b.xml"], [], ["/a.xml"], []):
        done = await planet.round()
        assert site.asked_for(".xml") == expected
        assert set(done.failed) == ({site.url("/a.xml")} if expected else set())
        await time.advance(EVERY_S / 2)
    assert await titles(world) == ["B1"]

    site.pages["/a.xml"] = feed
    await time.advance(2 * EVERY_S)
    assert (await planet.round()).published == ImportCounts(added=1)
    assert await titles(world) == ["B1", "A1"]


async def test_run_goes_round_and_round_and_waits_longer_after_failures(site, world, fetcher, time):
    """What could not be stored is published in a later round."""
    urls = [site.blog("a", ("urn:a1", "A1", 1))]
    planet = planet_of(world, fetcher, time, urls)
    errors = [StoreError("the disk is full"), ValueError("unforeseen"), FeedError(Condition.NOT_ALLOWED, "generic")]
    read = world.service.read

    async def failing(work, **options):
        if errors:
            raise errors.pop(0)
        return await read(work, **options)

    world.service.read = failing
    with capture_logs() as logs:
        running = asyncio.ensure_future(planet.run())
        for pause_s in (1_800.0, 3_600.0, 7_200.0, EVERY_S, EVERY_S):
            assert await time.until_sleeping(pause_s) == pause_s
            await time.advance(pause_s)
        await time.until_sleeping(EVERY_S)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert [log["event"] for log in logs] == ["nno_round_failed"] * 3 + ["nno_round_done"] * 3
    assert [log["added"] for log in logs[3:]] == [1, 0, 0]
    assert await titles(world) == ["A1"]


async def test_what_waits_to_be_stored_never_outgrows_the_outline(site, world, fetcher, time):
    """[ESS-017] While the store fails only the entries of the newest outline wait; they come when it works again."""
    site.blog("a")
    planet = planet_of(world, fetcher, time, [site.url("/a.ess")], entries=2)
    await planet.round()
    read = world.service.read

    async def failing(_work, **_options):
        raise StoreError("the disk is full")

    world.service.read = failing
    for minute in range(6):
        site.blog("a", *((f"urn:{n}", f"E{n}", 30 - n) for n in range(minute, -1, -1)))
        with pytest.raises(StoreError):
            await planet.round()
        assert len(planet._pending) == min(minute + 1, 2)

    world.service.read = read
    assert (await planet.round()).published == ImportCounts(added=2)
    assert await titles(world) == ["E4", "E5"]


async def test_node_that_is_no_feed_is_an_error(site, world, fetcher, time):
    """Documents go into feeds."""
    await world.create(NODE, kind="generic")
    planet = planet_of(world, fetcher, time, [site.blog("a", ("urn:a1", "A1", 1))])

    with pytest.raises(FeedError, match="generic"):
        await planet.round()


async def test_entry_that_the_node_does_not_accept_is_logged(site, world, fetcher, time):
    """An operator who misses an entry must find the reason."""
    await world.create(NODE, max_payload_size="1024")
    urls = [site.blog("a", ("urn:long", "x" * 2_000, 1), ("urn:short", "A2", 2))]
    with capture_logs() as logs:
        done = await planet_of(world, fetcher, time, urls).round()

    assert done.published.added == 1
    assert await titles(world) == ["A2"]
    [log] = logs
    assert (log["event"], log["node"], log["feed"]) == ("nno_entry_skipped", NODE, site.url("/a.xml"))
    assert log["entry"] == "urn:long" and "over the limit" in log["reason"]


async def test_private_addresses_are_not_asked_unless_allowed(site, world, time):
    """Neither the ESS file nor the feed that it names."""
    urls = [site.blog("a", ("urn:a1", "A1", 1))]
    async with Fetcher(FetchLimits()) as fetcher:
        done = await planet_of(world, fetcher, time, urls).round()

    assert site.asked == []
    assert "not public" in done.failed[urls[0]].reason
    assert (await world.node(NODE)).total == 0


@pytest.mark.parametrize(
    ("every_s", "spread", "pauses_s"),
    [
        (900, 1.0, [1_800, 3_600, 7_200, 14_400, 28_800, 57_600, LONGEST_PAUSE_S, LONGEST_PAUSE_S]),
        (900, 0.0, [900, 1_800, 3_600, 7_200, 14_400, 28_800, LONGEST_PAUSE_S / 2]),
        (3 * LONGEST_PAUSE_S, 0.0, [3 * LONGEST_PAUSE_S] * 3),
    ],
)
async def test_rounds_that_fail_are_repeated_after_a_round_to_a_day(world, fetcher, time, every_s, spread, pauses_s):
    """The pause grows up to a day, and is never shorter than the time between two rounds."""

    async def failing(_work, **_options):
        raise StoreError("the disk is full")

    world.service.read = failing
    planet = planet_of(world, fetcher, time, [], every_s=every_s, spread=spread)
    running = asyncio.ensure_future(planet.run())
    for pause_s in pauses_s:
        assert await time.until_sleeping(pause_s) == pause_s
        await time.advance(pause_s)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
