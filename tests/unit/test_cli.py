"""The commands that need no server: what they print, what they leave behind, how they end."""

import asyncio
import io
import json
import os
import re
import shlex
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console

from smartfeeds.app.config import load
from smartfeeds.app.formats import read_document
from smartfeeds.cli import import_export, main, reading
from smartfeeds.cli.run import status_file
from smartfeeds.client.errors import LoginError, NodeMissingError
from smartfeeds.console import EXIT_TEXTS, Exit, exit_code
from smartfeeds.core.model import Item
from smartfeeds.errors import Condition, ConfigError, FeedError, LinkError, SmartfeedsError, StoreError
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.terminal import progress_bar
from support.shell import Run, commands

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:feed</id><title>News</title>
<updated>2011-05-09T12:00:00Z</updated>
<entry><id>urn:x:2</id><title>Two</title><published>2011-05-09T12:00:00Z</published>
<updated>2011-05-09T12:00:00Z</updated></entry>
<entry><id>urn:x:1</id><title>One</title><published>2011-05-08T12:00:00Z</published>
<updated>2011-05-08T12:00:00Z</updated></entry></feed>"""


@pytest.fixture
def ready(run: Run) -> Run:
    """The same with a configuration."""
    run("init", "feeds.example.org")
    return run


def test_init_writes_a_private_configuration_that_loads(run: Run) -> None:
    result = run("init", "feeds.example.org")

    settings = load(Path("smartfeeds.toml"))
    assert stat.S_IMODE(Path("smartfeeds.toml").stat().st_mode) == 0o600
    assert settings.component.jid == "feeds.example.org"
    assert settings.pubsub.creators == ("example.org",)
    assert len(settings.component.reveal_secret()) >= 32
    assert f'component_secret = "{settings.component.reveal_secret()}"' in result.output
    assert f'password: "{settings.component.reveal_secret()}"' in result.output
    assert "global_routes: false" in result.output
    assert "component_number" not in result.output


@pytest.mark.needs("accounts")
def test_init_makes_an_admin_and_prints_steps_that_work(run: Run) -> None:
    """A feed, a sign-in and a page, also with a configuration elsewhere."""
    printed = run("init", "feeds.example.org", "--admin", "Alice@example.org", "--output", "own file.toml").output
    steps = printed.partition("Meanwhile, in another terminal:")[2]
    lines = [line.partition(":  ")[2] for line in steps.splitlines() if "smartfeeds " in line]
    assert load(Path("own file.toml")).pubsub.admins == ("alice@example.org",)
    assert re.findall(r"smartfeeds (\w+)", printed.partition("Then: ")[2])[:2] == ["doctor", "run"]

    node, token = [run(*shlex.split(line)[1:]) for line in lines]
    assert node.output == "Created the node news, owned by alice@example.org.\n"
    assert token.stdout.startswith("sf_")
    assert re.findall(r"http://127\.0\.0\.1:8280(/\S*)", steps) == ["/login", "/feeds/news/"]
    assert "Replace" not in printed


def test_init_without_an_admin_says_what_to_replace(run: Run) -> None:
    printed = run("init", "feeds.example.org").output

    assert load(Path("smartfeeds.toml")).pubsub.admins == ()
    assert "smartfeeds node create news --owner you@example.org\n" in printed
    assert "Replace you@example.org by your address." in printed


@pytest.mark.parametrize("admin", ["example.org", "alice@example.org/phone", "a b@example.org"])
def test_init_with_an_admin_who_is_no_person_is_a_usage_error(run: Run, admin: str) -> None:
    assert "--admin" in run("init", "feeds.example.org", "--admin", admin, code=Exit.USAGE).stderr
    assert not Path("smartfeeds.toml").exists()


def test_old_python_gets_a_sentence_before_anything_is_imported() -> None:
    """A checkout can be run by any Python."""
    program = """
import runpy, sys
sys.version_info = (3, 10, 12)
try:
    runpy.run_module("smartfeeds", run_name="__main__")
finally:
    assert {name for name in sys.modules if name.startswith("smartfeeds")} == {"smartfeeds"}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "smartfeeds: this is Python 3.10, and smartfeeds needs Python 3.11 or newer; "
        "run it with a newer one, such as python3.11 -m smartfeeds\n"
    )


def test_init_twice_keeps_the_file_unless_forced(run: Run) -> None:
    run("init", "feeds.example.org")
    before = Path("smartfeeds.toml").read_text()

    refused = run("init", "feeds.example.org", code=Exit.CONFIG)
    assert "--force" in refused.stderr
    assert Path("smartfeeds.toml").read_text() == before

    run("init", "feeds.example.org", "--force", "--port", "5999")
    assert load(Path("smartfeeds.toml")).component.port == 5999
    assert Path("smartfeeds.toml").read_text() != before


@pytest.mark.parametrize("domain", ["alice@example.org", "a b", "feeds.example.org/x", ""])
def test_init_something_that_is_no_domain_is_a_usage_error(run: Run, domain: str) -> None:
    assert "is not a domain" in run("init", domain, code=Exit.USAGE).stderr


def test_init_where_nothing_can_be_written_leaves_nothing(run: Run, tmp_path: Path) -> None:
    result = run("init", "feeds.example.org", "--output", str(tmp_path / "none" / "x.toml"), code=Exit.CONFIG)

    assert "cannot write" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_import_then_list_and_show_tell_the_same(ready: Run) -> None:
    Path("news.xml").write_text(ATOM)

    first = ready("import", "news.xml", "--node", "news", "--owner", "alice@example.org")
    again = ready("import", "news.xml", "--node", "news", "--json")

    assert "2 added" in first.output
    assert json.loads(again.stdout)["unchanged"] == 2
    (row,) = json.loads(ready("node", "list", "--json").stdout)
    assert (row["node"], row["kind"], row["items"], row["creator"]) == ("news", "feed", 2, "alice@example.org")
    shown = json.loads(ready("node", "show", "news", "--json").stdout)
    assert shown["affiliations"] == {"alice@example.org": "owner"}
    assert shown["options"]["title"] == "News"
    assert "news" in ready("node", "list").stdout
    assert "title = News" in ready("node", "show", "news").stdout


def test_import_publishes_as_the_first_admin_or_says_that_nobody_was_named(
    ready: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers see who publishes: a person of the operator's, or the component, which is told."""
    Path("news.xml").write_text(ATOM)

    def owner(node: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(ready("node", "show", node, "--json").stdout)["affiliations"]
        return found

    nobody = ready("import", "news.xml", "--node", "a").stderr
    again = ready("import", "news.xml", "--node", "a").stderr
    named = ready("import", "news.xml", "--node", "b", "--owner", "alice@example.org").stderr
    monkeypatch.setenv("SMARTFEEDS_PUBSUB__ADMINS", '["zoe@example.org", "bob@example.org"]')
    admin = ready("import", "news.xml", "--node", "c").stderr

    assert "--owner" in nobody and "pubsub.admins" in nobody
    assert [again, named, admin] == ["", "", ""]
    assert owner("a") == {"feeds.example.org": "owner"}
    assert owner("b") == {"alice@example.org": "owner"}
    assert owner("c") == {"zoe@example.org": "owner"}


def test_import_keeps_dates_of_an_empty_feed_and_export_gives_them_back(ready: Run) -> None:
    """[SF-091] A document goes in and comes out with its ids, dates and order."""
    Path("news.xml").write_text(ATOM)
    ready("import", "news.xml", "--node", "news")

    ready("export", "--node", "news", "--to", "atom", "--output", "out.xml")
    ready("import", "out.xml", "--node", "copy")
    copied = ready("export", "--node", "copy", "--to", "atom").stdout

    text = Path("out.xml").read_text()
    assert text.index("urn:x:1") < text.index("urn:x:2")
    assert 'created="1304856000"' in text
    assert copied.count("<entry") == 2
    assert "2011-05-08T12:00:00Z" in copied


def test_export_holds_a_slice_at_a_time_and_writes_beside_the_event_loop(
    ready: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed of any size goes out in little memory, and no read is long."""
    entries = "".join(f"<entry><id>urn:x:{n}</id><title>{n}</title></entry>" for n in range(5))
    Path("news.xml").write_text(f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>')
    ready("import", "news.xml", "--node", "news")
    steps: list[str] = []
    read_slice = import_export._slice

    def read(*arguments: Any, **keywords: Any) -> list[Item]:
        found = read_slice(*arguments, **keywords)
        steps.append(f"read {len(found)}")
        return found

    def write(_form: str, job: FeedExport, _output: Path | None) -> None:
        assert threading.current_thread() is not threading.main_thread()
        steps.extend(f"took {item.id[-1]}" for item in job.items)

    monkeypatch.setattr(import_export, "CHUNK", 2)
    monkeypatch.setattr(import_export, "_slice", read)
    monkeypatch.setattr(import_export, "write_out", write)
    told = ready("export", "--node", "news", "--to", "atom", "--output", "out.xml").stderr

    wanted = "read 2, took 4, took 3, read 2, took 2, took 1, read 1, took 0, read 0"
    assert ", ".join(steps) == wanted and "of 5 items" in told


def test_export_of_a_filtered_view_has_what_was_imported_just_before(ready: Run) -> None:
    """The filter index is brought up to date first, as for every other reader."""
    entries = "".join(f'<entry><id>urn:x:{n}</id><category term="{"ab"[n % 2]}"/></entry>' for n in range(4))
    Path("news.xml").write_text(f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>')
    ready("import", "news.xml", "--node", "news")

    text = ready("export", "--node", "news?category=b", "--to", "atom").stdout

    assert [f"urn:x:{n}" in text for n in range(4)] == [False, True, False, True]


def test_export_that_cannot_go_on_leaves_no_file(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong while it is read ends the command with its own code."""
    Path("news.xml").write_text(ATOM)
    ready("import", "news.xml", "--node", "news")

    def fail(*_arguments: Any, **_keywords: Any) -> list[Item]:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(import_export, "_slice", fail)
    result = ready("export", "--node", "news", "--to", "atom", "--output", "out.xml", code=Exit.STORE)

    assert "the disk is gone" in result.stderr
    assert not [path for path in Path().iterdir() if "out.xml" in path.name]


def test_export_to_a_pipe_writes_to_it_and_leaves_it(ready: Run) -> None:
    """As to /dev/stdout or a device: the finished file would take its place, for root that of /dev/null too."""
    Path("news.xml").write_text(ATOM)
    ready("import", "news.xml", "--node", "news")
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        ready("export", "--node", "news", "--to", "atom", "--output", "pipe")
        assert os.read(reader, 65_536) == ready("export", "--node", "news", "--to", "atom").stdout_bytes
    finally:
        os.close(reader)

    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


def test_export_to_a_link_replaces_the_file_that_it_leads_to(ready: Run) -> None:
    ready("node", "create", "news")
    Path("link").symlink_to("file")
    Path("file").touch()

    ready("export", "--node", "news", "--to", "atom", "--output", "link")
    assert Path("link").is_symlink()
    assert Path("file").read_text().startswith("<?xml")


def test_init_over_what_is_no_file_leaves_it(run: Run) -> None:
    os.mkfifo("pipe")

    assert (
        "not a regular file" in run("init", "feeds.example.org", "--output", "pipe", "--force", code=Exit.CONFIG).stderr
    )
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


async def test_status_over_what_is_no_file_leaves_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ConfigError, match="not a regular file"):
        async with status_file(tmp_path / "pipe", asyncio.Event()):
            pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_import_of_rss_becomes_the_same_feed_as_atom(ready: Run) -> None:
    """[SF-006] [SF-071] Another format in, Atom out: the item id, and an Atom id derived where it is no URI."""
    Path("news.rss").write_text(
        """<rss version="2.0"><channel><title>News</title><link>http://x.example/</link><description/>
        <item><title>One</title><guid isPermaLink="false">one 1</guid>
        <pubDate>Sun, 08 May 2011 12:00:00 GMT</pubDate></item>
        <item><title>Two</title><guid>http://x.example/2</guid><pubDate>Mon, 09 May 2011 12:00:00 GMT</pubDate></item>
        </channel></rss>"""
    )

    assert "RSS 2.0" in ready("import", "news.rss", "--node", "news").output
    text = ready("export", "--node", "news", "--to", "atom").stdout

    ids = re.findall(r"<fo:id [^>]*>(.*?)</fo:id>", text)
    atom_ids = re.findall(r"<id>(.*?)</id>", text)[1:]
    assert ids == ["one 1", "http://x.example/2"]
    assert atom_ids[1] == "http://x.example/2"
    assert atom_ids[0] == "xmpp:feeds.example.org?;node=news;item=one%201"
    assert "2011-05-08T12:00:00Z" in text


def test_import_tells_what_it_skipped_and_why(ready: Run) -> None:
    big = ATOM.replace("<title>One</title>", f"<title>One</title><summary>{'x' * 70_000}</summary>")
    Path("news.xml").write_text(big)

    result = ready("import", "news.xml", "--node", "news")

    assert "1 added" in result.output
    assert "skipped urn:x:1" in result.stderr
    assert "limit" in result.stderr


def test_import_of_nothing_usable_fails_and_an_empty_feed_does_not(ready: Run) -> None:
    Path("news.xml").write_text('<rss version="2.0"></rss>')
    assert "there is no channel" in ready("import", "news.xml", "--node", "a", code=Exit.FAILED).stderr
    Path("news.xml").write_text('<rss version="2.0"><channel><title>t</title><item></item></channel></rss>')
    assert "skipped item 1" in ready("import", "news.xml", "--node", "a", code=Exit.FAILED).stderr
    Path("news.xml").write_text('<rss version="2.0"><channel><title>t</title></channel></rss>')
    assert "0 added" in ready("import", "news.xml", "--node", "a").output


@pytest.mark.parametrize(
    ("text", "message", "code"),
    [
        ("<html/>", "is a web page", Exit.USAGE),
        ("{}", "neither a JSON Feed", Exit.USAGE),
        ("", "is empty", Exit.FAILED),
    ],
)
def test_import_what_is_no_feed_says_so_and_makes_nothing(ready: Run, text: str, message: str, code: Exit) -> None:
    Path("news.xml").write_text(text)

    assert message in ready("import", "news.xml", "--node", "news", code=code).stderr
    assert not Path("smartfeeds.db").exists()


@pytest.mark.needs("documents")
def test_import_reads_standard_input_and_every_format_that_has_items(ready: Run) -> None:
    """[SF-008] A document of JSON and an outline as well; `-` as in convert."""
    first = ready("import", "-", "--node", "news", stdin=ATOM)
    assert "standard input (Atom 1.0) into news: 2 added" in first.output
    for form, kind in (("json", "ActivityStreams 1.0"), ("jsonfeed", "JSON Feed 1.1"), ("opml", "OPML 2.0")):
        text = ready("export", "--node", "news", "--to", form).stdout
        again = json.loads(ready("import", "-", "--node", form, "--json", stdin=text).stdout)
        assert (again["format"], again["added"], again["skipped"]) == (kind, 2, [])
    assert "standard input: the document is empty" in ready("import", "-", "--node", "x", code=Exit.FAILED).stderr


CHANNEL = """<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>
<title>T</title><link>http://e.example/</link><description>D</description><language>de</language>
<managingEditor>a@e.example</managingEditor><ttl>60</ttl><category domain="d">C</category>
<cloud domain="e.example" port="80" path="/c" registerProcedure="r" protocol="xml-rpc"/>
<image><url>http://e.example/i.png</url></image><itunes:author>I</itunes:author>
<item><guid>1</guid></item></channel></rss>"""


@pytest.mark.needs("documents")
def test_import_keeps_what_the_feed_says_of_itself(ready: Run) -> None:
    """Language, page, picture, editors, cloud, ttl and elements of others come back with an export."""
    Path("news.rss").write_text(CHANNEL)
    ready("import", "news.rss", "--node", "pod")

    document = read_document(ready("export", "--node", "pod", "--to", "rss").stdout_bytes)
    before, after = read_document(CHANNEL.encode()).channel, document.channel
    assert before is not None and after is not None
    assert (document.title, document.description, document.link) == ("T", "D", "http://e.example/")
    assert replace(after, changed_us=None, generator="") == before
    losses = ready("export", "--node", "pod", "--to", "jsonfeed", "--strict", code=Exit.FAILED).stderr
    assert "of the feed itself: cloud, categories, managingEditor, ttl, elements of other namespaces" in losses


def test_import_names_the_feed_data_that_did_not_fit(ready: Run) -> None:
    """And what an existing node keeps instead."""
    Path("news.rss").write_text(CHANNEL.replace("<ttl>", f"<copyright>{'x' * 20_000}</copyright><ttl>"))
    left_out = "of the feed itself these were left out: rights"
    assert f"note: {left_out}" in ready("import", "news.rss", "--node", "pod").stderr
    assert left_out in json.loads(ready("import", "news.rss", "--node", "pod", "--json").stdout)["warnings"]
    assert b"<ttl>60</ttl>" in ready("export", "--node", "pod", "--to", "rss").stdout_bytes

    Path("news.rss").write_text(CHANNEL.replace("<title>T<", "<title>Other<"))
    note = "note: the node has its own title: that of the document was left out"
    assert note in ready("import", "news.rss", "--node", "pod").stderr


def test_import_leaves_out_drafts_and_says_so(ready: Run) -> None:
    """RFC 5023 13.1.1"""
    control = '<control xmlns="http://www.w3.org/2007/app"><draft>yes</draft></control></entry>'
    Path("news.xml").write_text(ATOM.replace("</entry>", control, 1))

    result = ready("import", "news.xml", "--node", "news")

    assert "1 added" in result.output
    assert "is a draft (app:draft)" in result.stderr


@pytest.mark.parametrize(
    "command",
    [("import", "--node", "news"), pytest.param(("convert", "--to", "rss"), marks=pytest.mark.needs("documents"))],
    ids=lambda words: words[0],
)
def test_no_more_of_a_file_is_read_than_a_document_may_have(
    ready: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """One byte more than that, which tells that it is too large."""
    Path("large.xml").write_text("x" * 5_000)
    monkeypatch.setattr(reading, "MAX_DOCUMENT_BYTES", 100)

    def refuse(data: bytes, base: str) -> FeedDocument:
        raise FeedError(Condition.PAYLOAD_TOO_BIG, f"{len(data)} bytes came")

    monkeypatch.setattr(reading, "read_document", refuse)
    assert "large.xml: 101 bytes came" in ready(*command, "large.xml", code=Exit.FAILED).stderr


def test_node_create_and_again_is_refused(ready: Run) -> None:
    ready("node", "create", "talk", "--kind", "generic", "--option", "title=Talk", "--owner", "alice@example.org")

    assert "the node talk exists already" in ready("node", "create", "talk", code=Exit.REFUSED).stderr
    shown = json.loads(ready("node", "show", "talk", "--json").stdout)
    assert (shown["kind"], shown["options"]["title"]) == ("generic", "Talk")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("node", "create", "n", "--option", "colour=red"), Exit.USAGE),
        (("node", "create", "n", "--option", "access_model=roster"), Exit.REFUSED),
        (("node", "create", "n", "--owner", "@"), Exit.CONFIG),
        (("node", "show", "none"), Exit.STORE),
        (("export", "--node", "n", "--to", "docx"), Exit.USAGE),
        (("frobnicate",), Exit.USAGE),
        (("run", "--config", "none.toml"), Exit.CONFIG),
        (("follow", "http://example.org", "--jid", "a@b", "--password", "x"), Exit.USAGE),
        (("follow", "xmpp:f.example?;node=n", "--jid", "b", "--password", "x"), Exit.USAGE),
        (("follow", "xmpp:f.example?;node=n", "--jid", "a@b", "--password", "x", "--server", "b"), Exit.USAGE),
    ],
)
def test_mistake_ends_with_its_code_and_without_a_traceback(ready: Run, arguments: tuple[str, ...], code: Exit) -> None:
    result = ready(*arguments, code=code)

    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("name", ["[/foo]", "[bold]x", "[link=http://x.example]y[/link]"])
def test_list_of_nodes_shows_names_that_look_like_markup_as_they_are(ready: Run, name: str) -> None:
    """Whoever may create nodes names them."""
    ready("node", "create", name, "--owner", "a@example.org")

    header, row = ready("node", "list", "--wide").output.splitlines()
    assert row.split() == [*name.split(), "feed", "0", "0", "0", row.split()[-2], "a@example.org"]
    assert not header.endswith(" ") and not row.endswith(" ")


def test_list_and_show_keep_a_hostile_text_on_its_line(ready: Run) -> None:
    """Neither a name nor a title writes lines of its own or moves the cursor."""
    ready("node", "create", "a\nb\x9b2Jc", "--option", "title=t\nowner          eve@example.org")

    assert ready("node", "list").output.splitlines()[1].startswith("a b 2Jc  feed")
    shown = ready("node", "show", "a\nb\x9b2Jc").output.splitlines()
    assert shown[0] == "node           a b 2Jc"
    assert "  title = t owner          eve@example.org" in shown


def test_show_node_that_is_not_there_is_refused(ready: Run) -> None:
    ready("node", "create", "talk")

    for command in (
        ("node", "show", "none"),
        ("export", "--node", "none", "--to", "atom"),
        ("sub", "list", "--node", "none"),
    ):
        assert ready(*command, code=Exit.REFUSED).stderr.rstrip().endswith("smartfeeds: no such node: none")


def test_import_into_a_view_says_what_to_name(ready: Run) -> None:
    ready("node", "create", "imp")
    Path("news.xml").write_text('<rss version="2.0"><channel><title>t</title></channel></rss>')

    refused = ready("import", "news.xml", "--node", "imp?order=created", code=Exit.REFUSED).stderr

    assert "imp?order=created is a view of the node imp" in refused and "name imp" in refused


def test_command_without_configuration_says_how_to_make_one(run: Run) -> None:
    assert "smartfeeds init DOMAIN" in run("node", "list", code=Exit.CONFIG).stderr


def test_command_on_missing_database_makes_none(ready: Run) -> None:
    assert "does not exist" in ready("node", "list", code=Exit.STORE).stderr
    assert not Path("smartfeeds.db").exists()


def test_sub_list_without_subscriptions_is_an_empty_list(ready: Run) -> None:
    ready("node", "create", "talk")

    assert json.loads(ready("sub", "list", "--json").stdout) == []
    assert "no such subscriptions" in ready("sub", "list").stderr


def test_db_upgrade_of_current_database_has_nothing_to_do(ready: Run) -> None:
    ready("node", "create", "talk")

    assert "already." in ready("db", "upgrade").output


def test_database_newer_than_the_program_is_left_alone(ready: Run) -> None:
    ready("node", "create", "talk")
    with sqlite3.connect("smartfeeds.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.execute("UPDATE compatibility SET oldest = '9998'")
    database.close()

    for command in (("node", "list"), ("db", "upgrade")):
        assert "newer than this program" in ready(*command, code=Exit.NEWER).stderr


def test_file_that_is_no_database_is_left_alone(ready: Run) -> None:
    Path("smartfeeds.db").write_text("this is not a database, whatever its name says" * 100)

    assert "not a SQLite database" in ready("node", "list", code=Exit.STORE).stderr
    assert Path("smartfeeds.db").read_text().startswith("this is not")


def test_status_of_nothing_is_not_running(run: Run) -> None:
    assert "not running" in run("status", "status.json", code=Exit.FAILED).output
    assert json.loads(run("status", "status.json", "--json", code=Exit.FAILED).stdout) == {
        "running": False,
        "online": False,
        "version": "",
        "rates": {},
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), Exit.CONFIG),
        (StoreError("x"), Exit.STORE),
        (LinkError("x"), Exit.LINK),
        (FeedError(Condition.FORBIDDEN), Exit.REFUSED),
        (LoginError("x"), Exit.LINK),
        (NodeMissingError("x"), Exit.REFUSED),
        (SmartfeedsError("x"), Exit.FAILED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_error_has_its_exit_code(error: SmartfeedsError, code: Exit) -> None:
    assert exit_code(error) is code


def test_help_names_every_command_and_exit_code(run: Run) -> None:
    text = run("--help").output

    assert set(EXIT_TEXTS) == set(Exit)
    for name in main.list_commands(None):  # type: ignore[arg-type]
        assert f"\n  {name} " in text
    for code in Exit:
        assert re.search(rf"^ +{code:d} +{re.escape(EXIT_TEXTS[code][:20])}", text, re.M)


def groups(group: click.Group, *words: str) -> Iterator[tuple[tuple[str, ...], click.Group]]:
    yield words, group
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from groups(command, *words, name)


@pytest.mark.parametrize(("words", "group"), list(groups(main)))
def test_help_of_a_group_has_whole_sentences(run: Run, words: tuple[str, ...], group: click.Group) -> None:
    """The library cuts the sentence of a command so that it fits in one line."""
    text = " ".join(run(*words, "--help").output.split())
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None and command.help is not None
        sentence = " ".join(command.help.split()).split(". ")[0].removesuffix(".")
        assert f" {name} {sentence}." in text


def test_help_of_every_command_has_its_paragraphs_in_one_column(run: Run) -> None:
    """Features add paragraphs to the help of commands. The library dedents them all together."""
    for command in commands(main):
        text = run(*command.split()[1:], "--help").output.partition("\nOptions:")[0]
        _usage, *paragraphs = text.split("\n\n")
        assert paragraphs
        for line in "\n".join(paragraphs).splitlines():
            assert line == f"  {' '.join(line.split())}", command


def test_every_command_explains_itself(run: Run) -> None:
    for name in main.list_commands(None):  # type: ignore[arg-type]
        assert len(run(name, "--help").output.splitlines()) > 4


def test_progress_bar_shows_brackets_as_they_are() -> None:
    """A node may have any name, and rich would read a part of it as markup, or fail."""
    bar, text = progress_bar(), io.StringIO()
    bar.add_task("[/x] [red]y")

    Console(file=text, width=100).print(bar.get_renderable())

    assert "[/x] [red]y" in text.getvalue()
