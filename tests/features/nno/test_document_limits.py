"""Hostile documents cost one process, an error of their source, and nobody else anything (xep-map 246)."""

from dataclasses import replace

import pytest

from smartfeeds.errors import FeedError
from smartfeeds.features.nno import ess_files as nno
from smartfeeds.features.nno.ess_files import EssSource, Puller
from smartfeeds.features.polling.finding import check_source
from smartfeeds.features.polling.source import SourceState, new_source
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.worker_process import WorkerLimits
from smartfeeds.workers import DocumentWorkers
from support.documents import at_once
from support.polling import PATH, atom, running_polling, tagged

LIMITS = WorkerLimits(cpu_s=1, memory_bytes=4 * 1024 * 1024)
HEAD = "<id>i</id><title>t</title><updated>2026-01-01T00:00:00Z</updated>"
FEED = f"<feed xmlns='http://www.w3.org/2005/Atom'>{HEAD}{{}}</feed>"
ENTRY = "<entry><id>urn:{}</id><title>t</title><updated>2026-01-01T00:00:00Z</updated>{}</entry>"
JSON = '{{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{}]}}'


def one(inside: str) -> str:
    return FEED.format(ENTRY.format(1, f"<x>{inside}</x>"))


# Each needs more than the memory of LIMITS. Larger ones take longer, up to the same end.
HOSTILE = {
    "elements": one("<a b='c' d='e'/>" * 32_500),
    "names": one("".join(f"<n{number}/>" for number in range(32_500))),
    "attributes": one("".join("<a " + " ".join(f"n{n}=''" for n in range(at, at + 200)) + "/>" for at in range(335))),
    "categories": FEED.format(ENTRY.format(1, "".join(f"<category term='{n}'/>" for n in range(32_500)))),
    "values of JSON": JSON.format(",".join(f'{{"id":"{number}","content_text":"x"}}' for number in range(16_250))),
}


@pytest.fixture
async def workers():
    workers = DocumentWorkers(LIMITS, at_once=1)
    yield workers
    workers.close()


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_document_slows_its_source_and_no_other(world, site, workers, body):
    """The reason names the limit, and another source is polled by a new process."""
    async with running_polling(world, site) as polling:
        polling.poller._tools = replace(polling.poller._tools, aside=workers)
        site.pages["/evil"], site.pages[PATH] = tagged(body.encode()), tagged(atom("good"))
        evil = await polling.add("/evil", "evil")
        good = await polling.add()
        evil, good = await polling.poll(evil), await polling.poll(good)
        assert evil.state is SourceState.SLOWED
        assert evil.reason.startswith("reading the document took more than")
        assert (good.reason, await polling.titles()) == ("", ["good"])
        site.pages["/evil"] = tagged(atom("repaired"), '"2"')
        evil = await polling.poll(evil, 86_400.0)
        assert (evil.state, evil.reason) == (SourceState.POLLED, "")


class Recorder:
    """Notes the functions that would be called in another process."""

    def __init__(self):
        self.calls = []

    async def __call__(self, work, /, *arguments, party=""):
        self.calls.append((work.__name__, bool(party)))
        return await at_once(work, *arguments)


async def test_nothing_of_a_search_or_an_aggregator_is_read_on_the_event_loop(site, monkeypatch):
    """A page with 500,000 attributes and a file with a million digits held it up for 0.2 s."""
    aside = Recorder()
    site.pages["/page"] = tagged(b"<html><head><link rel='alternate' type='application/ess' href='/x.ess'>")
    site.pages["/x.ess"] = tagged(b"1" * 1_000_000)
    site.pages[PATH] = tagged(atom("a"))
    async with Fetcher(FetchLimits(allowed=EVERYWHERE)) as fetcher:
        await check_source(fetcher, new_source("n", site.url("/page"), 0), 0, aside)
        with pytest.raises(FeedError):
            await EssSource(site.url("/page"), aside=aside).refresh(fetcher, 50)
        entry = nno.NnoEntry(site.url(PATH), 0, 0)
        await Puller(fetcher, aside=aside).pull([entry])
    assert aside.calls == [
        *(("read_source", True), ("links_of", True)),
        *(("_linked", True), ("_read_files", True)),
        ("_full_entries", True),
    ]
