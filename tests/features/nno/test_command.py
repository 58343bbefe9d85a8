"""`smartfeeds nno`: what it reads, prints, keeps, and how it ends."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner

from smartfeeds.cli import main
from smartfeeds.console import Exit
from smartfeeds.features.documents.ess import NnoEntry, dumb_checksum, read_nno, write_ess, write_nno

BUILD_S = 1_304_942_400
US = 1_000_000


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command in an empty folder, in a thread of its own, so that a site of the test can answer it."""
    monkeypatch.chdir(tmp_path)

    async def invoke(*arguments, code=0):
        result = await asyncio.to_thread(CliRunner().invoke, main, ["nno", *map(str, arguments)])
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


def file_of(name, *minutes):
    return write_ess(
        f"http://{name}/", [(f"title {minute}", (BUILD_S - 60 * minute) * US) for minute in minutes], BUILD_S * US
    ).data


def shown(text):
    return [(entry.feed_url, (BUILD_S - entry.time_s) // 60) for entry in read_nno(text.encode()).entries]


def put(name, data):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(data)


def text_in(name):
    return Path(name).read_text()


async def test_files_and_folders_become_one_outline(run):
    """[ESS-011] [ESS-012] [ESS-017] [ESS-023] The three youngest of everything; folders in folders, no hidden files."""
    put("a.ess", file_of("a", 1, 9))
    put("many/b.ess", file_of("b", 5, 3))
    put("many/deep/c.ess", file_of("c", 2))
    put("many/.hidden", file_of("hidden", 0))
    put("many/x.nno", write_nno([NnoEntry("http://d/", BUILD_S - 240, 7)], BUILD_S * US).data)

    assert shown((await run("a.ess", "many", "-n", 3)).stdout) == [("http://a/", 1), ("http://c/", 2), ("http://b/", 3)]
    assert len(shown((await run("a.ess", "many")).stdout)) == 6


async def test_what_cannot_be_read_is_told_and_passed_over(run):
    """[A-113] Files that are none, folders without rights, what is not there; one good file is enough."""
    put("good.ess", file_of("a", 1))
    put("bad.ess", b"1503411300, http://e/, 1")
    put("big.ess", b" " * 1_000_001)
    result = await run("good.ess", "bad.ess", "big.ess", "gone.ess")

    assert shown(result.stdout) == [("http://a/", 1)]
    assert "skipped bad.ess: a number is left over" in result.stderr
    assert "skipped big.ess: the file is larger than 1000000 bytes" in result.stderr
    assert "skipped gone.ess: does not exist" in result.stderr


async def test_nothing_usable_is_a_failure(run):
    """And the outline is empty."""
    for n in range(30):
        put(f"folder/{n}.ess", b"nonsense")
    result = await run("folder", code=Exit.FAILED)

    assert shown(result.stdout) == []
    assert result.stderr.count("skipped") == 21 and "10 more" in result.stderr


async def test_pipe_in_a_folder_does_not_hold_it_up(run):
    """Only files are read."""
    put("folder/a.ess", file_of("a", 1))
    os.mkfifo("folder/pipe")

    assert shown((await run("folder")).stdout) == [("http://a/", 1)]


async def test_json_has_everything(run):
    put("a.ess", file_of("a", 1))
    put("bad.ess", b"")
    found = json.loads((await run("a.ess", "bad.ess", "--json")).stdout)

    assert found["build_time"] % 60 == 0
    assert found["entries"] == [
        {"feed": "http://a/", "time": "2011-05-09T11:59:00Z", "checksum": dumb_checksum("title 1")}
    ]
    assert found["skipped"] == [{"source": "bad.ess", "reason": "the file is empty"}]


async def test_output_is_a_file_that_is_there_when_it_is_whole(run):
    put("a.ess", file_of("a", 1))
    result = await run("a.ess", "--output", "out.nno")

    assert result.stdout == ""
    assert shown(text_in("out.nno")) == [("http://a/", 1)]
    assert "cannot write" in (await run("a.ess", "--output", "none/out.nno", code=Exit.CONFIG)).stderr
    assert "not a regular file" in (await run("a.ess", "--output", "/dev/null", code=Exit.CONFIG)).stderr


async def test_outline_that_would_be_too_large_for_readers_is_cut_and_told(run):
    """[A-113] The newest entries are in it; JSON has all."""
    for n in range(10):
        put(
            f"many/{n}.ess",
            write_ess(f"http://{n}/{'x' * 200}", [("t", (BUILD_S - 60 * m) * US) for m in range(500)], 0).data,
        )
    result = await run("many", "-n", 5_000)

    assert len(result.stdout) <= 1_000_001
    count = len(shown(result.stdout))
    assert f"the newest {count} of 5000" in result.stderr and 4_000 < count < 5_000
    assert len(json.loads((await run("many", "-n", 5_000, "--json")).stdout)["entries"]) == 5_000


async def test_addresses_are_asked_when_private_ones_are_allowed(run, site):
    """[ESS-024] An ESS file, a page that links to one, and one that is not there."""
    urls = [site.blog("a", ("urn:1", "one", 1)), site.url("/page"), site.url("/none.ess")]
    site.blog("b", ("urn:2", "two", 2))
    site.pages["/page"] = b"<link rel=alternate type=application/ess href=/b.ess>"
    result = await run(*urls, "--allow-private")

    assert shown(result.stdout) == [(site.url("/a.xml"), 1), (site.url("/b.xml"), 2)]
    assert f"skipped {urls[2]}: answered 404" in result.stderr
    refused = await run(*urls, code=Exit.FAILED)
    assert refused.stderr.count("not public") == 3


async def test_full_prints_the_entries_and_recycles_what_it_kept(run, site):
    """[ESS-018] [ESS-019] [ESS-021] Two downloads, then none, then one; the entry with a new time is marked."""
    urls = [site.blog("a", ("urn:1", "one &amp; only", 1)), site.blog("b", ("urn:2", "two", 2))]
    options = ("--allow-private", "--full", "--cache", "cache.json")

    first = await run(*urls, *options)
    assert first.stdout.splitlines() == [
        "2011-05-09T11:59:00Z  one & only  urn:1",
        "2011-05-09T11:58:00Z  two  urn:2",
    ]
    assert "2 feeds downloaded" in first.stderr

    second = await run(*urls, *options)
    assert second.stdout == first.stdout and "0 feeds downloaded" in second.stderr

    site.blog("b", ("urn:2", "two", 0))
    third = await run(*urls, *options)
    assert third.stdout.splitlines()[0] == "2011-05-09T12:00:00Z  two (updated)  urn:2"
    assert "1 feeds downloaded" in third.stderr
    assert site.asked_for(".xml") == ["/a.xml", "/b.xml", "/b.xml"]


async def test_full_tells_what_it_did_not_find(run, site):
    """[ESS-020] The feed is away, or lacks the entry."""
    site.blog("a", ("urn:1", "one", 500))
    put(
        "x.nno",
        write_nno(
            [NnoEntry(site.url("/a.xml"), BUILD_S, 3), NnoEntry(site.url("/b.xml"), BUILD_S - 60, 3)], BUILD_S * US
        ).data,
    )
    result = await run("x.nno", "--full", "--allow-private")

    assert result.stdout.splitlines() == [
        f"2011-05-09T12:00:00Z  (not found)  {site.url('/a.xml')}",
        f"2011-05-09T11:59:00Z  (not found)  {site.url('/b.xml')}",
    ]
    assert f"skipped {site.url('/b.xml')}: answered 404" in result.stderr


async def test_full_as_json_has_the_entry_itself(run, site):
    """[ESS-018] Title, link, id, the Atom entry."""
    site.pages["/a.xml"] = (
        b"<rss version='2.0'><channel><title>A</title><item><title>one</title><link>http://e/1</link>"
        b"<pubDate>Mon, 09 May 2011 11:59:30 GMT</pubDate></item></channel></rss>"
    )
    put("a.ess", write_ess(site.url("/a.xml"), [("one", (BUILD_S - 30) * US)], BUILD_S * US).data)
    (row,) = json.loads((await run("a.ess", "--full", "--json", "--allow-private")).stdout)["entries"]

    assert (row["id"], row["title"], row["link"], row["feed_title"], row["is_updated"]) == (
        "http://e/1",
        "one",
        "http://e/1",
        "A",
        False,
    )
    assert row["entry"].startswith("<entry ")


async def test_full_reads_a_feed_in_the_charset_of_the_answer(run, site):
    """RFC 7303 3. The checksum of the title is right only then."""
    title = "\u043c\u0438\u0440"
    feed = f"<rss version='2.0'><channel><item><title>{title}</title><guid>1</guid></item></channel></rss>"
    headers = {"Content-Type": "text/xml; charset=windows-1251"}
    site.pages["/a.xml"] = web.Response(body=feed.encode("cp1251"), headers=headers)
    put("a.ess", write_ess(site.url("/a.xml"), [(title, BUILD_S * US)], BUILD_S * US).data)
    (row,) = json.loads((await run("a.ess", "--full", "--json", "--allow-private")).stdout)["entries"]

    assert (row["id"], row["title"]) == ("1", title)


async def test_full_passes_over_a_feed_with_an_impossible_date(run, site):
    """A date whose offset leads out of the calendar is none: the other feeds are shown all the same."""
    urls = [site.blog("a", ("urn:1", "one", 1)), site.blog("b", ("urn:2", "two", 2))]
    entry = "<entry><id>urn:0</id><published>0001-01-01T00:00:00+01:00</published></entry></feed>"
    site.pages["/b.xml"] = site.pages["/b.xml"].replace(b"</feed>", entry.encode())

    result = await run(*urls, "--full", "--allow-private")

    assert [line.split("  ")[1] for line in result.stdout.splitlines()] == ["one", "two"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"version": 2, "results": []}',
        '{"version": 1, "results": [{}]}',
        '{"version": 1, "results": 5}',
        "[" * 100_000,
    ],
    ids=["empty", "list", "nothing", "version", "row", "number", "deep"],
)
async def test_cache_that_is_something_else_is_left_alone(run, content):
    put("a.ess", file_of("a"))
    put("cache.json", content.encode())
    result = await run("a.ess", "--full", "--cache", "cache.json", code=Exit.CONFIG)

    assert "cache.json is not a cache file" in result.stderr
    assert text_in("cache.json") == content


async def test_cache_without_full_is_a_usage_error(run):
    assert "requires --full" in (await run("x", "--cache", "c", code=Exit.USAGE)).stderr
