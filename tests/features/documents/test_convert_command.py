"""`convert` and `export --to`: every format, what is told, how they end."""

import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from lxml import etree

from smartfeeds.app.formats import FORMATS, read_document
from smartfeeds.console import Exit
from smartfeeds.core.times import parse_datetime
from smartfeeds.errors import FeedError
from smartfeeds.features.documents import ess
from smartfeeds.features.documents.command import items_of
from smartfeeds.features.documents.ess import read_ess
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.feed_details import head_of
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.opml import ITEM_ID, NOTE, read_outline
from support.shell import Run, shell_in

CORPUS = Path(__file__).parents[2] / "corpus"
DOCUMENTS = sorted(path for folder in ("data", "data-own") for path in (CORPUS / folder).iterdir())
# A document with 4,000 items is of one form throughout: this many of them are every form that it has.
MOST_ITEMS = 200
NOW_US = 1_800_000_000_000_000
RSS = """<rss version="2.0" xmlns:g="http://www.georss.org/georss"><channel><title>News</title>
<link>http://x.example/</link><description>All of it</description><language>de</language><ttl>60</ttl>
<item><title>Two</title><guid isPermaLink="false">two</guid><pubDate>Mon, 09 May 2011 12:00:00 GMT</pubDate>
<author>ann@x.example (Ann)</author><enclosure url="http://x.example/2.mp3" length="5" type="audio/mpeg"/>
<description>&lt;b&gt;bold&lt;/b&gt; words</description><g:point>45 -71</g:point></item>
<item><title>One</title><guid isPermaLink="false">one</guid><pubDate>Sun, 08 May 2011 12:00:00 GMT</pubDate></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:feed</id><title>News</title>
<updated>2011-05-09T12:00:00Z</updated>
<entry><id>urn:x:2</id><title>Two</title><updated>2011-05-09T12:00:00Z</updated><x xmlns="urn:x-test:x">kept</x></entry>
<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:x:1" when="2011-05-09T13:00:00Z"/>
<entry><summary>s</summary></entry></feed>"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder with two documents."""
    invoke = shell_in(tmp_path, monkeypatch)
    Path("news.rss").write_text(RSS)
    Path("news.atom").write_text(ATOM)

    return invoke


def check_form(form: str, data: bytes) -> None:
    """That a document is what its format says; reading is strict."""
    if form in ("json", "jsonfeed"):
        assert isinstance(json.loads(data), dict)
    elif form == "ess":
        read_ess(data)
    else:
        root = etree.parse(io.BytesIO(data), etree.XMLParser(resolve_entities=False)).getroot()
        assert etree.QName(root).localname == {"atom": "feed", "rss": "rss", "rss092": "rss", "opml": "opml"}[form]


@pytest.mark.parametrize("form", FORMATS)
def test_convert_from_rss_to_every_format(run: Run, form: str) -> None:
    """[SF-006] one feed, whatever the format"""
    data = run("convert", "news.rss", "--to", form, "--base", "http://x.example/f.rss").stdout_bytes

    check_form(form, data)
    if form == "opml":
        document = read_outline(data)
        assert document.title == "News"
        assert [one.attributes[ITEM_ID] for one in document.outlines] == ["one", "two"]
    if form == "ess":
        assert read_ess(data).feed_url == "http://x.example/f.rss"
        assert [one.checksum for one in read_ess(data).entries] == [sum(b"Two") % 256, sum(b"One") % 256]
    elif form == "rss092":  # which has no ids
        assert [etree.fromstring(one.payload).findtext("{*}title") for one in read_document(data).items] == [
            "Two",
            "One",
        ]
    else:
        assert {one.id for one in read_document(data).items} == {"one", "two"}
        assert data.find(b"two") != -1


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_document_that_reads_converts_to_every_format(path: Path) -> None:
    """[RSS-001] [RSS-018] [A-121] [A-123] no document of the corpus makes a broken one, or loses an item unsaid."""
    document = document_in(path)
    if document is None:
        return
    items = items_of(document)[:MOST_ITEMS]
    head = replace(head_of(document, 0), self_link="http://base.example/feed")
    for form, format_ in FORMATS.items():
        job = FeedExport(head, items, NOW_US)
        data = b"".join(format_.write(job))
        check_form(form, data)
        if form == "rss092":
            root = etree.fromstring(data)
            assert len(root.findall("channel/item")) == sum(not one.deleted for one in items)
        elif form != "ess":
            left_out = {one.item_id for one in job.losses if "a deleted item" in one.what}
            assert {one.id for one in read_document(data).items} == {one.id for one in items} - left_out


@cache
def document_in(path: Path) -> FeedDocument | None:
    try:
        return read_document(path.read_bytes(), "http://base.example/feed")
    except FeedError:
        return None


def test_corpus_is_converted_and_not_passed_over() -> None:
    assert sum(document_in(path) is not None for path in DOCUMENTS) > 120


@pytest.mark.parametrize(("form", "name"), [("atom", "news.atom"), ("rss", "news.rss")])
def test_convert_to_its_own_format_keeps_unknown_elements(run: Run, form: str, name: str) -> None:
    """[RSS-014] [xep-map 144]"""
    before = read_document(Path(name).read_bytes())
    result = run("convert", name, "--to", form)
    after = read_document(result.stdout_bytes)

    assert "not in" not in result.stderr
    found = {one.id: one.payload for one in after.items}
    for one in before.items:
        for element in (b"45 -71", b"kept"):
            assert (element in found[one.id]) == (element in one.payload)


def test_convert_tells_what_is_lost_skipped_and_remedied_and_keeps_standard_output_clean(run: Run) -> None:
    """[A-18] nothing is lost without a word: a line an item."""
    result = run("convert", "news.atom", "--to", "rss")

    assert [one.id for one in read_document(result.stdout_bytes).items][:1] == ["urn:x:2"]
    lines = result.stderr.splitlines()
    assert lines[0] == "not in RSS 2.0: a deleted item: RSS has no form for it (urn:x:1)"
    assert "the item has no id" in lines[1]
    assert lines[1].startswith("note: ")
    assert len(lines) == 2

    run("convert", "news.atom", "--to", "rss", "--strict", code=Exit.FAILED)
    run("convert", "news.rss", "--to", "rss", "--strict")


def test_convert_tells_what_only_an_rss_channel_says(run: Run) -> None:
    assert "not in Atom 1.0: of the feed itself: ttl" in run("convert", "news.rss", "--to", "atom").stderr
    assert b"<ttl>60</ttl>" in run("convert", "news.rss", "--to", "rss").stdout_bytes


@pytest.mark.parametrize("form", ["atom", "rss", "jsonfeed"])
def test_convert_is_strict_about_what_no_format_has(run: Run, form: str) -> None:
    """The addresses of a feed's author: each writer has the name alone."""
    person = "<author><name>A</name>{}</author>"
    for address, code in (("", 0), ("<email>a@e.example</email>", Exit.FAILED)):
        head = f"<id>urn:x:f</id><title>T</title><updated>2020-01-01T00:00:00Z</updated>{person.format(address)}"
        Path("head.atom").write_text(f'<feed xmlns="http://www.w3.org/2005/Atom">{head}</feed>')
        result = run("convert", "head.atom", "--to", form, "--strict", code=code)
        assert ("of the feed itself: addresses of authors" in result.stderr) == bool(address)


def test_convert_to_opml_tells_what_no_outline_has(run: Run) -> None:
    """[SF-008] [A-153] the order of the feed is kept, the oldest first."""
    result = run("convert", "news.rss", "--to", "opml")

    one, two = read_outline(result.stdout_bytes).outlines
    assert (one.text, two.text, two.attributes[NOTE]) == ("One", "Two", "bold words")
    assert two.attributes["created"] == "Mon, 09 May 2011 12:00:00 GMT"
    assert any(b"45 -71" in extension for extension in two.extensions)
    assert "the authors; the enclosures (two)" in result.stderr
    assert "the markup of the text" in result.stderr


def test_convert_of_an_outline_that_was_written_here_gives_the_items_again(run: Run) -> None:
    """[SF-008] ids, dates, texts and elements of others, in the order of the feed."""
    Path("news.opml").write_bytes(run("convert", "news.rss", "--to", "opml").stdout_bytes)
    before = read_document(run("convert", "news.rss", "--to", "atom").stdout_bytes)
    after = read_document(run("convert", "news.opml", "--to", "atom").stdout_bytes)

    assert after.title == "News"
    assert [(one.id, one.published_us) for one in after.items] == [(one.id, one.published_us) for one in before.items]
    assert b"45 -71" in after.items[1].payload
    again = run("convert", "news.opml", "--to", "opml").stdout_bytes
    assert read_outline(again).outlines == read_outline(Path("news.opml").read_bytes()).outlines


def test_convert_many_losses_are_summed_up_and_listed_in_json(run: Run) -> None:
    items = "".join(f"<item><guid>{n}</guid><author>a@x.example</author></item>" for n in range(50))
    Path("many.rss").write_text(f"<rss version='2.0'><channel>{items}</channel></rss>")

    err = run("convert", "many.rss", "--to", "opml").stderr
    assert "not in OPML 2.0, of 30 more items: the authors" in err
    assert err.count("the authors (") == 20
    assert err.count("--json lists all of them") == 1
    told = json.loads(run("convert", "many.rss", "--to", "opml", "--output", "out", "--json").stdout)
    assert sum(one["what"] == "the authors" for one in told["losses"]) == 50


def test_convert_reads_standard_input(run: Run) -> None:
    result = run("convert", "-", "--to", "atom", stdin=RSS)
    assert [one.id for one in read_document(result.stdout_bytes).items] == ["one", "two"]
    assert "standard input: the document is empty" in run("convert", "-", "--to", "rss", code=Exit.FAILED).stderr


def test_convert_resolves_links_against_the_base(run: Run) -> None:
    Path("a.rss").write_text("<rss><channel><item><guid>1</guid><link>/1</link></item></channel></rss>")
    data = run("convert", "a.rss", "--to", "atom", "--base", "http://x.example/f").stdout
    assert 'href="http://x.example/1"' in data


@pytest.mark.parametrize(
    "base",
    [
        "file:///home/a/news.rss",
        "javascript:alert(1)",
        "news",
        "http://",
        "http://[x",
        f"http://x.example/{'a' * 2_048}",
    ],
)
@pytest.mark.parametrize("command", [("convert", "--to", "atom"), ("import", "--node", "news")], ids=lambda one: one[0])
def test_base_that_no_link_is_relative_to_is_refused(run: Run, command: tuple[str, ...], base: str) -> None:
    """It was ignored, and links stayed relative."""
    name, *options = command
    stderr = run(name, "news.rss", *options, "--base", base, code=Exit.USAGE).stderr
    assert "is not a web address of at most 2048 characters" in " ".join(stderr.split())


def test_convert_to_ess_without_an_address_of_the_feed_is_refused_and_leaves_no_file(run: Run) -> None:
    Path("a.atom").write_text('<feed xmlns="http://www.w3.org/2005/Atom"><link href="not an address"/></feed>')
    run("convert", "a.atom", "--to", "ess", "--output", "out", code=Exit.REFUSED)
    assert not Path("out").exists()


def test_convert_dates_undated_items_the_same_each_time(run: Run) -> None:
    """[A-122] An item without a date has that of its older neighbour; without any date in the document it is 1970."""
    feed = "<rss><channel>{}</channel></rss>"
    undated = "<item><guid>{}</guid></item>"
    dated = "<item><guid>b</guid><pubDate>Mon, 09 May 2011 12:00:00 GMT</pubDate></item>"
    for items, expected in (
        (undated.format("a"), {"a": "1970-01-01T00:00:00Z"}),
        (
            undated.format("c") + dated + undated.format("a"),
            {"c": "2011-05-09T12:00:00Z", "b": "2011-05-09T12:00:00Z", "a": "2011-05-09T11:59:59Z"},
        ),
    ):
        once, again = (run("convert", "-", "--to", "rss", stdin=feed.format(items)) for _ in range(2))
        assert once.stdout_bytes == again.stdout_bytes
        read = read_document(once.stdout_bytes).items
        assert {item.id: item.published_us for item in read} == {k: parse_datetime(v) for k, v in expected.items()}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("news.rss", "--to", "docx"), Exit.USAGE, "docx"),
        (("news.rss",), Exit.USAGE, "--to"),
        (("none.rss", "--to", "atom"), Exit.USAGE, "none.rss"),
        (("news.rss", "--to", "atom", "--json"), Exit.USAGE, "--output"),
        (("page.html", "--to", "atom"), Exit.USAGE, "page.html: the document is a web page, not a feed"),
        (("list.opml", "--to", "atom"), Exit.FAILED, "list.opml: the outline has no body"),
        (("feed.ess", "--to", "atom"), Exit.USAGE, "feed.ess: the document is an ESS or NNO file"),
        (("news.rss", "--to", "atom", "--output", "none/out"), Exit.CONFIG, "cannot write none/out"),
        (("news.rss", "--to", "atom", "--output", "news.rss/out"), Exit.CONFIG, "cannot write news.rss/out"),
    ],
)
def test_convert_mistake_says_what_it_is(run: Run, arguments: tuple[str, ...], code: Exit, message: str) -> None:
    Path("page.html").write_text("<html/>")
    Path("list.opml").write_text("<opml/>")
    Path("feed.ess").write_text("1503411300, http://example.com/rss.xml, 0,92")

    result = run("convert", *arguments, code=code)
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.fixture
def ready(run: Run) -> Run:
    """The same with a node of two items, one of them deleted."""
    run("init", "feeds.example.org")
    Path("before.atom").write_text('<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:x:1</id></entry>')
    run("node", "create", "news", "--option", "title=News")
    run("import", "before.atom", "--node", "news")
    run("import", "news.atom", "--node", "news")
    return run


@pytest.mark.parametrize("form", FORMATS)
def test_export_of_a_node_in_every_format(ready: Run, form: str) -> None:
    """[SF-006] Every format has the live items; the deleted one where the format can say so, else a report."""
    result = ready("export", "--node", "news", "--to", form)

    check_form(form, result.stdout_bytes)
    buried = form in ("atom", "json", "jsonfeed")
    if form == "ess":
        ess_file = read_ess(result.stdout_bytes)
        assert ess_file.feed_url == "xmpp:feeds.example.org?;node=news"
        assert sorted(one.checksum for one in ess_file.entries) == [0, sum(b"Two") % 256]
    elif form == "rss092":
        assert len(read_document(result.stdout_bytes).items) == 2
    else:
        (nameless,) = {one.id for one in read_document(ATOM.encode()).items} - {"urn:x:1", "urn:x:2"}
        expected = {"urn:x:2": False, nameless: False} | ({"urn:x:1": True} if buried else {})
        assert {one.id: one.deleted for one in read_document(result.stdout_bytes).items} == expected
    assert ("a deleted item" in result.stderr) is not buried


def test_export_to_rss_keeps_what_the_node_has(ready: Run) -> None:
    """[RSS-003] [A-153] the newest first, unknown elements as they are, the head from the node."""
    document = read_document(ready("export", "--node", "news", "--to", "rss").stdout_bytes)

    assert (document.title, document.link) == ("News", "xmpp:feeds.example.org?;node=news")
    (kept,) = (one for one in document.items if one.id == "urn:x:2")
    assert b"kept" in kept.payload


def test_export_reports_as_json_and_is_strict_when_asked(ready: Run) -> None:
    told = json.loads(ready("export", "--node", "news", "--to", "rss", "--output", "out.rss", "--json").stdout)

    assert (told["to"], told["items"], told["output"]) == ("RSS 2.0", 3, "out.rss")
    assert told["losses"] == [{"item": "urn:x:1", "what": "a deleted item: RSS has no form for it"}]
    ready("export", "--node", "news", "--to", "rss", "--strict", code=Exit.FAILED)
    ready("export", "--node", "news", "--to", "atom", "--strict")
    ready("export", "--node", "news", "--to", "rss", "--json", code=Exit.USAGE)


def test_export_of_a_generic_node_to_rss(ready: Run) -> None:
    """Payloads that are no entries are extensions of their items."""
    ready("node", "create", "talk", "--kind", "generic")
    assert read_document(ready("export", "--node", "talk", "--to", "rss").stdout_bytes).items == ()


def test_convert_to_ess_tells_how_many_items_had_no_room(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """[A-113] the file has a limit; the oldest are left out, and told."""
    monkeypatch.setattr(ess, "MAX_BYTES", 50)
    items = "".join(f"<item><guid>{n}</guid><pubDate>{n + 1} May 2011 12:00 GMT</pubDate></item>" for n in range(9))
    Path("many.rss").write_text(f"<rss version='2.0'><channel>{items}</channel></rss>")

    result = run("convert", "many.rss", "--to", "ess", "--base", "http://x.example/")
    kept = read_ess(result.stdout_bytes).entries
    assert 0 < len(kept) < 9
    assert "not in ESS: everything but the address of the feed" in result.stderr
    assert f"the {9 - len(kept)} oldest items" in result.stderr
