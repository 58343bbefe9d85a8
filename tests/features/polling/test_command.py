"""`smartfeeds source`: what it stores, lists and explains."""

import asyncio
import json
import shlex
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from threading import Event, Thread

import pytest
from aiohttp import web

from smartfeeds.console import Exit
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.polls import AnswerKind, PollAnswer
from smartfeeds.features.polling.source import Source
from smartfeeds.features.polling.source_import import store_poll
from smartfeeds.features.polling.subscription_lists import follow_list
from support.polling import atom
from support.shell import Run, write
from support.waiting import HANG_S, in_vain
from support.website import Site, running_site

URL = "https://blog.example/feed.xml"


def rows(ready: Run, *options: str) -> list[dict[str, object]]:
    found = json.loads(ready("source", "list", "--json", *options).stdout)
    assert isinstance(found, list)
    return found


def stored(ready: Run) -> list[Source]:
    found: list[Source] = []
    write(lambda tx, _context: found.extend(source_rows.sources(tx, 0, 99)))
    return found


def test_person_who_is_told_follows_the_node_by_chat(ready: Run) -> None:
    """The node is made at once, because only a node that exists can be followed."""
    ready("source", "add", URL, "--node", "blog", "--tell", "zoe@example.net")

    followed = json.loads(ready("sub", "list", "--json").stdout)
    assert [(one["node"], one["jid"]) for one in followed] == [("blog", "zoe@example.net")]
    assert [one["node"] for one in json.loads(ready("node", "list", "--json").stdout)] == ["blog"]


def test_add_lists_and_removes_a_source(ready: Run) -> None:
    """[SRC-083] [SRC-047] No service has run yet, and no request is made."""
    ready("source", "add", URL, "--node", "news", "--every", "900", "--told", "3", "--publisher", "a@b.example")
    (row,) = rows(ready)
    assert (row["number"], row["node"], row["address"], row["state"]) == (1, "news", URL, "new")
    assert row["next"] and row["last_good"] == "" and row["from"] == "source add"
    (source,) = stored(ready)
    settings = source.settings
    assert (settings.every_s, settings.first_told, settings.publisher) == (900, 3, "a@b.example")

    ready("source", "remove", URL)
    assert rows(ready) == []
    assert "There are no sources." in ready("source", "list").stderr


@pytest.mark.parametrize(
    ("url", "node"),
    [
        (URL, "blog.example/feed"),
        ("https://www.blog.example/", "blog.example"),
        ("https://blog.example/a b/../c.d.rss?x=1".replace(" ", "%20"), "blog.example/a-20b/../c.d"),
    ],
)
def test_node_is_named_by_the_address(ready: Run, url: str, node: str) -> None:
    ready("source", "add", url)
    assert [row["node"] for row in rows(ready)] == [node]


def test_password_is_never_shown(ready: Run, tmp_path: Path) -> None:
    """[SRC-015] Not in lists, and not in an exported list."""
    shown = ready("source", "add", "https://me:secret@blog.example/f", "--node", "n").output
    shown += ready("source", "list").output + ready("source", "list", "--json").output
    shown += ready("source", "export").output
    assert "secret" not in shown and "me:" not in shown
    assert stored(ready)[0].settings.password == "secret"


def test_wrong_sources_are_refused(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """[SRC-082] [SRC-083] The messages name the remedy."""
    ready("source", "add", URL, "--node", "n")
    assert "already" in ready("source", "add", URL, "--node", "n", code=Exit.CONFIG).stderr
    assert "http" in ready("source", "add", "ftp://blog.example", code=Exit.CONFIG).stderr
    assert "source list" in ready("source", "remove", "7", code=Exit.CONFIG).stderr
    ready("source", "add", URL, "--node", "m")
    assert "--node" in ready("source", "poll", URL, code=Exit.CONFIG).stderr
    ready("source", "poll", URL, "--node", "m")
    base_url = "https://feeds.a.example/f"
    monkeypatch.setenv("SMARTFEEDS_HTTP__BASE_URL", base_url)
    assert "feed of this service" in ready("source", "add", f"{base_url}/x/?since=1", code=Exit.CONFIG).stderr


def test_source_is_paused_resumed_and_polled(ready: Run) -> None:
    """[SRC-030] [SRC-083] By number or by address."""
    ready("source", "add", URL, "--node", "n")
    ready("source", "pause", "1")
    (row,) = rows(ready)
    assert (row["state"], row["reason"], row["next"]) == ("paused", "paused by the operator", "")
    assert "paused" in ready("source", "poll", "1", code=Exit.CONFIG).stderr
    ready("source", "resume", URL)
    (row,) = rows(ready)
    assert (row["state"], row["reason"]) == ("new", "") and row["next"]

    answer = PollAnswer(AnswerKind.FAILED, "answered 500")
    write(lambda tx, context: store_poll(tx, context, 1, answer, 0.5))
    (row,) = rows(ready, "--failing")
    assert (row["state"], row["reason"]) == ("slowed", "answered 500")
    assert "less than 60 seconds ago" in ready("source", "poll", "1", code=Exit.CONFIG).stderr


def test_settings_change(ready: Run) -> None:
    """[SRC-083] [SRC-085]"""
    ready("source", "add", URL, "--node", "n", "--every", "900")
    ready("source", "set", "1", "--user-agent", "me", "--ignore-skips", "--allow-private")
    settings = stored(ready)[0].settings
    assert (settings.every_s, settings.user_agent, settings.ignore_skips, settings.allow_private) == (
        900, "me", True, True,
    )  # fmt: skip
    ready("source", "set", "1", "--adaptive", "--public-only")
    settings = stored(ready)[0].settings
    assert (settings.every_s, settings.user_agent, settings.allow_private) == (None, "me", False)
    ready("source", "set", "1", code=Exit.USAGE)


def test_fields_without_meaning_and_the_way_back_are_settings(ready: Run) -> None:
    """[SRC-060] [SRC-072] [SRC-085] An empty name ignores nothing any more."""
    ready("source", "add", URL, "--node", "n", "--ignore", "category", "--ignore", "?utm_source", "--history", "5")
    settings = stored(ready)[0].settings
    assert (settings.ignore, settings.history) == (("category", "?utm_source"), 5)
    ready("source", "set", "1", "--history", "0")
    assert stored(ready)[0].settings.ignore == ("category", "?utm_source")
    ready("source", "set", "1", "--ignore", "")
    settings = stored(ready)[0].settings
    assert (settings.ignore, settings.history) == ((), 0)
    ready("source", "set", "1", "--history", "101", code=Exit.USAGE)


def test_subscription_lists_go_round(ready: Run, tmp_path: Path) -> None:
    """[SRC-083] Folders are read; what is there already is left out; the nodes come back with the list."""
    opml = tmp_path / "subs.opml"
    opml.write_text(
        '<opml version="1.0"><body><outline text="folder">'
        '<outline text="a" type="rss" xmlUrl="https://a.example/feed"/><outline text="x" xmlurl="https://b.example/"/>'
        '</outline><outline text="a again" xmlUrl="https://a.example/feed"/><outline xmlUrl="gopher://c.example/"/>'
        "</body></opml>"
    )
    result = ready("source", "import", str(opml))
    assert "Added 2 sources; 1 of 3 were left out." in result.stdout and "gopher" in result.stderr
    nodes = [(row["node"], row["address"]) for row in rows(ready)]
    assert nodes == [("a.example/feed", "https://a.example/feed"), ("b.example", "https://b.example/")]

    ready("source", "import", str(opml), "--node", "all")
    ready("source", "export", "--output", "mine.opml")
    before = [(row["node"], row["address"]) for row in rows(ready)]
    for row in rows(ready):
        ready("source", "remove", str(row["number"]))
    ready("source", "import", "mine.opml")
    assert [(row["node"], row["address"]) for row in rows(ready)] == before
    assert "left out" in ready("source", "import", "mine.opml", code=Exit.FAILED).stdout
    opml.write_text("<opml version='2.0'><body><outline text='no feed'/></body></opml>")
    assert "xmlUrl" in ready("source", "import", str(opml), code=Exit.CONFIG).stderr


@pytest.mark.parametrize(("options", "remaining"), [((), 1), (("--with-sources",), 0)])
def test_list_is_followed_and_ended(ready: Run, options: tuple[str, ...], remaining: int) -> None:
    """[SRC-083] `source list` shows which list a source comes from; the list itself is no feed to export."""
    url = "https://blog.example/reading.opml"
    ready("source", "follow", url, "--node", "planet", "--every", "900")
    write(lambda tx, context: follow_list(tx, context, source_rows.sources(tx, 0, 1)[0], ["https://a.example/feed"]))
    assert [(row["from"], row["node"], row["address"]) for row in rows(ready)] == [
        ("source follow", "planet", url), ("list 1", "planet", "https://a.example/feed"),
    ]  # fmt: skip
    exported = ready("source", "export").stdout
    assert "a.example" in exported and "reading.opml" not in exported
    assert "already" in ready("source", "follow", url, "--node", "planet", code=Exit.CONFIG).stderr

    ready("source", "remove", url, *options)
    assert [row["from"] for row in rows(ready)] == ["removed list"] * remaining


def test_list_without_a_node_gives_each_feed_one(ready: Run) -> None:
    """[SRC-083]"""
    ready("source", "follow", "https://blog.example/reading.opml")
    write(lambda tx, context: follow_list(tx, context, source_rows.sources(tx, 0, 1)[0], ["https://a.example/feed"]))
    assert [row["node"] for row in rows(ready)] == ["", "a.example/feed"]
    assert "the nodes remain" in ready("source", "remove", "1").stdout


@pytest.fixture
def pages() -> Iterator[Site]:
    """A web server in a thread of its own, because a command runs its own event loop."""
    sites: list[Site] = []
    started, done = Event(), Event()

    async def serve() -> None:
        async with running_site() as site:
            sites.append(site)
            started.set()
            await asyncio.to_thread(done.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(HANG_S), in_vain("the web server")
    yield sites[0]
    done.set()
    thread.join(HANG_S)


def test_check_explains_a_feed(ready: Run, pages: Site) -> None:
    """[SRC-047] Redirects, format, items, hints and the next poll; nothing is stored."""
    pages.pages["/"] = web.Response(status=301, headers={"Location": "/feed"})
    pages.pages["/feed"] = web.Response(
        body=atom("b", "a"), headers={"Cache-Control": "max-age=7200", "Content-Type": "text/plain"}
    )
    result = json.loads(ready("source", "check", pages.url(), "--allow-private", "--json").stdout)

    assert [request["status"] for request in result["requests"]] == [301, 200]
    assert (result["problem"], result["format"], result["title"]) == ("", "Atom 1.0", "A blog")
    assert (result["items"], result["newest_item"], result["content_type"]) == (2, "2011-05-09T12:00:00Z", "text/plain")
    assert (result["hint_s"], result["conditional_requests"]) == (7200, False)
    assert "next poll s:" in ready("source", "check", pages.url(), "--allow-private").stdout
    assert not Path("smartfeeds.db").exists()


@pytest.mark.parametrize(
    ("status", "reason"),
    [(206, "answered 206, which was not asked for"), (226, "answered 226, which was not asked for")],
)
def test_check_refuses_what_a_poll_refuses(ready: Run, pages: Site, status: int, reason: str) -> None:
    """[SRC-043] [SRC-047] A part of a document is none."""
    pages.pages["/feed"] = web.Response(status=status, body=atom("a"))
    result = ready("source", "check", pages.url("/feed"), "--allow-private", "--json", code=Exit.FAILED)
    assert json.loads(result.stdout)["problem"] == reason


SYNCED = (
    "<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:x:f</id><title>Plans</title><updated>2026-01-03T10:00:00Z</updated>"
    "<entry><id>urn:x:1</id><title>one</title><updated>2026-01-03T10:00:00Z</updated>{}</entry></feed>"
)
FEEDSYNC_DATA = (
    "<x:sync xmlns:x='http://feedsync.org/2007/feedsync' id='one' updates='1'>"
    "<x:history sequence='1' when='2026-01-02T10:00:00Z' by='first'/></x:sync>"
)
SSE_DATA = (
    "<x:sync xmlns:x='http://www.microsoft.com/schemas/rss/sse' id='one' version='1'>"
    "<x:history when='Fri, 02 Jan 2026 10:00:00 GMT' by='first'/></x:sync>"
)


@pytest.mark.needs("mirrors")
@pytest.mark.parametrize("data", [FEEDSYNC_DATA, SSE_DATA], ids=["feedsync", "sse"])
def test_feed_with_sync_data_is_offered_as_a_mirror(ready: Run, pages: Site, data: str) -> None:
    """[FS-022] [FS-023] `source check` and `source add` print a command that works as it stands. Only items have sync
    data: sx:sharing alone is none."""
    pages.pages["/feed"] = SYNCED.format(data).encode()
    url = pages.url("/feed?a=1&b=2")
    pages.pages["/feed?a=1&b=2"] = pages.pages["/feed"]

    checked = ready("source", "check", url, "--allow-private").stdout.splitlines()[-1]
    row = json.loads(ready("source", "check", url, "--allow-private", "--json").stdout)
    added = ready("source", "add", url, "--node", "a b", "--allow-private").stderr

    assert (row["items_with_sync_data"], row["mirror"]) == (1, checked)
    assert "smartfeeds source remove 1" in added
    command = added.splitlines()[-1]
    for line in (checked, command):
        program, *arguments = shlex.split(line)
        assert program == "smartfeeds" and arguments[:3] == ["mirror", "add", url]
        ready(*arguments)
    assert shlex.split(command)[4] == "a b"


def test_other_feeds_are_not_offered_as_mirrors(ready: Run, pages: Site) -> None:
    """[FS-022] [FS-024] Sync data that is invalid, and a deletion mark without a history, are none to merge."""
    for number, data in enumerate(("", "<x:sync xmlns:x='http://feedsync.org/2007/feedsync' deleted='true'/>")):
        pages.pages["/feed"] = SYNCED.format(data).encode()
        result = ready("source", "check", pages.url("/feed"), "--allow-private", "--json")
        assert json.loads(result.stdout)["mirror"] == ""
        added = ready("source", "add", pages.url("/feed"), "--node", f"n{number}", "--allow-private")
        assert "mirror" not in added.stderr


def test_check_offers_the_feeds_of_a_page(ready: Run, pages: Site) -> None:
    """[SRC-048] The operator's choice becomes the source, not the page."""
    links = "".join(
        f'<link rel="alternate" type="application/{kind}" href="/{kind}?a=1&amp;b=2">'
        for kind in ("rss+xml", "atom+xml", "ess")
    )
    pages.pages["/"] = web.Response(body=f"<html><head>{links}</head></html>".encode(), content_type="text/html")
    result = ready("source", "check", pages.url(), "--allow-private", code=Exit.FAILED)

    for kind in ("rss+xml", "atom+xml", "ess"):
        assert pages.url(f"/{kind}") in result.stdout
    command = result.stdout.splitlines()[-1].partition(": ")[2]
    assert shlex.split(command) == ["smartfeeds", "source", "add", pages.url("/rss+xml?a=1&b=2")]

    pages.pages["/atom+xml"] = atom("a")
    ready("source", "add", pages.url("/atom+xml"), "--node", "news", "--allow-private")
    (source,) = stored(ready)
    assert (source.url, source.node) == (pages.url("/atom+xml"), "news")


def test_check_reads_the_networks_of_the_configuration(
    ready: Run, pages: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of a refusal names the setting, so the setting must have an effect."""
    pages.pages["/feed"] = atom("b", "a")
    url = pages.url("/feed")
    ready("source", "check", url, code=Exit.FAILED)
    with Path("smartfeeds.toml").open("a") as file:
        file.write('[sources]\nallowed_networks = ["127.0.0.0/8"]\n')
    assert "title: A blog" in ready("source", "check", url).stdout
    ready("import", url, "--node", "copy")
    Path("smartfeeds.toml").rename("other.toml")
    assert "title: A blog" in ready("source", "check", url, "--config", "other.toml").stdout
    assert "not public" in ready("source", "check", url, code=Exit.FAILED).stdout
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__JID", "feeds.a.example")
    monkeypatch.setenv("SMARTFEEDS_COMPONENT__SECRET", "x")
    monkeypatch.setenv("SMARTFEEDS_SOURCES__ALLOWED_NETWORKS", '["127.0.0.0/8"]')
    assert "title: A blog" in ready("source", "check", url).stdout


def test_add_finds_the_feed_of_a_page_and_says_what_it_has(ready: Run, pages: Site) -> None:
    """[SRC-048] [SRC-083] The first feed becomes the source; the others are named."""
    links = "".join(
        f'<link rel="alternate" type="application/atom+xml" href="/{name}" title="{name}">'
        for name in ("feed", "other")
    )
    pages.pages["/"] = f"<html><head>{links}</head></html>".encode()
    pages.pages |= {"/feed": atom("b", "a"), "/other": atom("c", feed="Another")}
    result = ready("source", "add", pages.url(), "--allow-private")
    assert result.stdout.split() == ["1", "127.0.0.1/feed", pages.url("/feed")]
    assert "Found A blog (Atom 1.0): 2 entries, the newest of 2011-05-09T12:00:00Z: b" in result.stderr
    assert f"{pages.url('/other')}  Another" in result.stderr
    assert [source.url for source in stored(ready)] == [pages.url("/feed")]


def test_add_of_a_refused_address_names_the_command_that_adds_it(ready: Run, pages: Site) -> None:
    """[SRC-016] [SRC-083] Nothing is added before."""
    pages.pages["/feed"] = atom("b", "a")
    refused = ready("source", "add", pages.url("/feed"), "--node", "a b", code=Exit.CONFIG).stderr
    assert "its address is not public; nothing was added" in refused and stored(ready) == []
    program, *arguments = shlex.split(refused.strip().splitlines()[-1].partition("use --allow-private: ")[2])
    assert program == "smartfeeds" and arguments[-1] == "--allow-private"
    ready(*arguments)
    assert [(source.node, source.settings.allow_private) for source in stored(ready)] == [("a b", True)]


@pytest.mark.parametrize(("path", "reason"), [("/missing", "answered 404"), ("/text", "is a web page")])
def test_add_of_an_address_without_a_feed_adds_nothing(ready: Run, pages: Site, path: str, reason: str) -> None:
    """[SRC-044] [SRC-083] `--unread` adds it all the same, without a request."""
    pages.pages["/text"] = b"<html><body>no feed</body></html>"
    refused = ready("source", "add", pages.url(path), "--allow-private", code=Exit.CONFIG).stderr
    assert reason in refused and "--unread" in refused and stored(ready) == []
    pages.asked.clear()
    ready("source", "add", pages.url(path), "--allow-private", "--unread")
    assert [source.url for source in stored(ready)] == [pages.url(path)] and pages.asked == []


def test_add_while_the_server_is_away_says_that_it_is_tried_again(ready: Run, pages: Site) -> None:
    """[SRC-040] A fault of the server is no fault of the address."""
    pages.pages["/feed"] = web.Response(status=503)
    result = ready("source", "add", pages.url("/feed"), "--allow-private")
    assert "could not be read now: it answered 503" in result.stderr and len(stored(ready)) == 1


def test_add_sends_the_password_to_its_host_only(ready: Run, pages: Site) -> None:
    """[SRC-015] A page that needs a password may link to a feed of another host."""
    elsewhere = pages.url("/feed", "localhost")
    pages.pages["/"] = f'<link rel="alternate" type="application/atom+xml" href="{elsewhere}">'.encode()
    pages.pages["/feed"] = atom("a")
    ready("source", "add", pages.url().replace("//", "//me:secret@"), "--allow-private")
    assert ["Authorization" in request.headers for request in pages.asked] == [True, False]
    (source,) = stored(ready)
    assert (source.url, source.settings.user, source.settings.password) == (elsewhere, "", "")


def test_check_says_why_an_address_cannot_be_a_source(ready: Run, pages: Site) -> None:
    """[SRC-016] [SRC-044]"""
    pages.pages["/"] = b"<list>\n<entry>\n</list>"
    assert "line 3" in ready("source", "check", pages.url(), "--allow-private", code=Exit.FAILED).stdout
    refused = ready("source", "check", pages.url(), code=Exit.FAILED).stdout
    assert "not public" in refused
    assert "404" in ready("source", "check", pages.url("/none"), "--allow-private", code=Exit.FAILED).stdout


def test_addresses_that_differ_in_their_query_fill_two_nodes(ready: Run) -> None:
    """[SRC-037] [SRC-083] The first keeps the plain name, and the list in OPML gives both their nodes again."""
    urls = [f"https://videos.example/feed.xml?channel_id={channel}" for channel in ("AAA", "BBB")]
    for url in urls:
        ready("source", "add", url)
    nodes = [row["node"] for row in rows(ready)]
    assert nodes[0] == "videos.example/feed" and str(nodes[1]).startswith("videos.example/feed-")
    result = ready("source", "add", f"feed:{urls[1]}", code=Exit.CONFIG)
    assert f"the node {nodes[1]} has a source {urls[1]} already" in result.stderr


@pytest.mark.parametrize("text", ["feed:{}", " <{}> ", "{}#top", "feed://{}", "\u200b{}"])
def test_address_is_taken_as_programs_copy_it(ready: Run, tmp_path: Path, text: str) -> None:
    """[SRC-014] [SRC-048] Typed, and read from a list of another reader."""
    ready("source", "add", text.format(URL), "--node", "typed")
    (tmp_path / "list.opml").write_text(
        f'<opml version="2.0"><head/><body><outline text="x" xmlUrl="{escape(text.format(URL))}"/></body></opml>'
    )
    ready("source", "import", "list.opml", "--node", "listed")
    ready("source", "follow", text.format("https://blog.example/list.opml"))
    assert [(row.node, row.url) for row in stored(ready)] == [
        ("typed", URL),
        ("listed", URL),
        ("", "https://blog.example/list.opml"),
    ]
    ready("source", "pause", text.format(URL), "--node", "typed")


def test_show_tells_all_that_is_known_of_a_source_but_its_password(ready: Run) -> None:
    """[SRC-015] [SRC-047]"""
    ready("source", "add", "https://ann:s3cret@blog.example/feed.xml", "blog", "--every", "900")

    text = ready("source", "show", "1").stdout
    row = json.loads(ready("source", "show", URL, "--json").stdout)

    (listed,) = rows(ready)
    assert {name: row[name] for name in listed} == listed
    assert row["settings"]["every_s"] == 900
    assert "state       new" in text and "  every_s = 900" in text
    assert "s3cret" not in text + str(row) and "ann" not in text + str(row)
    assert "there is no source 7" in ready("source", "show", "7", code=Exit.CONFIG).stderr


def test_show_writes_settings_as_in_the_configuration(ready: Run) -> None:
    """[SRC-085] Readers of TOML read them; Python's True and False are not in it."""
    options = ("--only", 'author=a"b', "--ignore", "img", "--ignore", "?utm_source", "--no-push", "--every", "900")
    ready("source", "add", URL, "blog", *options)

    lines = ready("source", "show", "1").stdout.splitlines()
    shown = tomllib.loads("\n".join(line for line in lines if line.startswith("  ")))

    settings = json.loads(ready("source", "show", "1", "--json").stdout)["settings"]
    assert shown == {name: settings[name] for name in ("every_s", "only", "ignore", "push")}
    assert (shown["push"], shown["every_s"], shown["ignore"]) == (False, 900, ["img", "?utm_source"])


def test_show_leaves_out_what_says_nothing_about_the_source(ready: Run) -> None:
    """Defaults, counters at zero, and the fields of lists, which `from` says in words. JSON has all of them."""
    url = "https://blog.example/reading.opml"
    ready("source", "follow", url, "--node", "planet")
    write(lambda tx, context: follow_list(tx, context, source_rows.sources(tx, 0, 1)[0], ["https://a.example/feed"]))

    texts = {number: ready("source", "show", number).stdout for number in ("1", "2")}
    assert "from        source follow\n" in texts["1"] and "from        list 1\n" in texts["2"]
    for number, text in texts.items():
        assert not any(line.startswith(("  ", "missed")) for line in text.splitlines()), text
        settings = json.loads(ready("source", "show", number, "--json").stdout)["settings"]
        assert (settings["is_list"], settings["list_no"]) == ((True, 0) if number == "1" else (False, 1))
