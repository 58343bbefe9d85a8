"""`import --sync` and `export --sync`: documents with histories and conflicts, and documents that mean harm."""

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from lxml import etree

from smartfeeds.console import Exit
from smartfeeds.core.jid import Jid
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.formats.xml import parse_payload
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.requests import Publish
from smartfeeds.sync.document_reader import FeedReader
from smartfeeds.sync.sharing import BEGINNING
from support.service import stored_service
from support.shell import shell_in

Run = Callable[..., Result]
CORPUS = Path(__file__).parents[2] / "corpus" / "data"
HEAD = (
    f'<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sx="{FEEDSYNC_NS}"><id>urn:x:f</id>'
    "<title>Plans</title><subtitle>All of them</subtitle><updated>2026-01-03T10:00:00Z</updated>"
)
FIRST = '<sx:history sequence="1" when="2026-01-02T10:00:00Z" by="first"/>'


def entry(sync_id: str = "i1", *, updates: str = "1", more: str = "", title: str = "", history: str = FIRST) -> str:
    return (
        f"<entry><id>urn:x:{sync_id[:9]}</id><title>{title or sync_id[:9]}</title>"
        f"<updated>2026-01-03T10:00:00Z</updated>"
        f'<sx:sync id="{sync_id}" updates="{updates}">{history}{more}</sx:sync></entry>'
    )


def document(*entries: str, head: str = "") -> str:
    return f"{HEAD}{head}{''.join(entries)}</feed>"


class Places:
    """Folders with a configuration each: services that know nothing of each other."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch

    def __call__(self, *arguments: str, at: str = "a", code: int = 0, stdin: str | bytes | None = None) -> Result:
        """Runs a command at a place."""
        place = self.folder / at
        if not place.exists():
            place.mkdir()
            self(*("init", f"feeds.{at}.example"), at=at)
        return shell_in(place, self.monkeypatch)(*arguments, code=code, stdin=stdin)

    def take(self, text: str | bytes, *options: str, at: str = "a", code: int = 0) -> dict[str, Any]:
        """Imports a document into plans; the report."""
        result = self("import", "-", "--node", "plans", "--sync", "--json", *options, at=at, code=code, stdin=text)
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def give(self, *options: str, at: str = "a") -> str:
        """The export of plans."""
        return self("export", "--node", "plans", "--to", "atom", "--sync", *options, at=at).stdout


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


def counts(report: dict[str, Any]) -> tuple[int, ...]:
    """Added, updated, in conflict, unchanged, refused."""
    return tuple(report[name] for name in ("added", "updated", "conflict", "unchanged", "refused"))


def entries(text: str) -> list[str]:
    return re.findall(r"<entry.*?</entry>(?=\n)", text, re.DOTALL)


def title_of(text: str) -> str:
    return etree.fromstring(text.encode()).findtext("{http://www.w3.org/2005/Atom}title") or ""


# There and back.


def test_export_imported_elsewhere_is_the_same_and_twice_changes_nothing(run: Places) -> None:
    """[FS-022] [FS-057] [FS-003] [A-59] Conflicts, tombstones, SSE, foreign markup: the same entries, byte by byte."""
    names = ["sm_fs_pair1_a.xml", "sm_fs_pair1_b.xml", "sm_fs_unknown_markup.xml", "sm_sse_rss_http_ns.xml",
             "sm_sse_rss_https_ns.xml", "fv__ext__feedsync__sync-deleted-true.xml"]  # fmt: skip
    for name in names:
        run.take((CORPUS / name).read_bytes())
    given = run.give()

    first = run.take(given, at="b")
    copy = run.give(at="b")
    assert counts(first) == (3, 0, 0, 0, 0)
    assert sorted(entries(copy)) == sorted(entries(given))
    assert all(mark in copy for mark in ("sx:conflicts", 'deleted="true"', "schemas/rss/sse", "keep me"))
    again = run.take(given, at="b")
    assert counts(again) == (0, 0, 0, 3, 0)
    assert run.give(at="b") == copy
    assert counts(run.take(copy)) == (0, 0, 0, 3, 0)
    assert run.give() == given


TALKATIVE = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de" xmlns:sx="http://feedsync.org/2007/feedsync"><id>urn:x:f</id><title>T</title>
<link rel="alternate" href="/p"/><icon>http://e.example/i.png</icon><author><name>Ann</name></author>
<category term="C"/>"""


def test_import_keeps_what_the_feed_says_of_itself(run: Places) -> None:
    """Its page by the base address, and all but its authors: entries would inherit them and change by that."""
    run.take(TALKATIVE + entry() + "</feed>", "--base", "http://e.example/feeds/")

    given = run("export", "--node", "plans", "--to", "atom", "--sync")
    root = etree.fromstring(given.stdout.encode())
    atom = "{http://www.w3.org/2005/Atom}"
    assert [link.get("href") for link in root.iterfind(f"{atom}link[@rel='alternate']")] == ["http://e.example/p"]
    assert root.findtext(f"{atom}icon") == "http://e.example/i.png"
    assert [one.get("term") for one in root.iterfind(f"{atom}category")] == ["C"]
    assert root.find(f"{atom}author") is None
    assert "not in Atom 1.0: of the feed itself: authors" in given.stderr
    again = run.take(TALKATIVE.replace(">T<", ">U<") + entry() + "</feed>", "--base", "http://e.example/feeds/")
    assert again["notes"] == ["the node has its own title: that of the document was left out"]


@pytest.mark.needs("conflicts")
def test_edits_made_apart_meet_in_files(run: Places) -> None:
    """[FS-062] [FS-068] Both services have both versions in the end, and the same one wins."""
    run.take(document(entry()))
    run.take(run.give(), at="b")
    for at in "ab":
        text = f'<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:x:i1</id><title>{at}</title></entry>'
        run("import", "-", "--node", "plans", at=at, stdin=document(entry()).replace(entry(), text))
        (sync_id,) = {one["item"] for one in json.loads(run("conflicts", "--json", at=at).stdout)} or {"i1"}
        assert sync_id == "i1"
    assert run.take(run.give(), at="b")["refused"] == 0
    assert run.take(run.give(at="b"))["refused"] == 0

    assert sorted(entries(run.give())) == sorted(entries(run.give(at="b")))


@pytest.mark.needs("documents")
def test_item_that_is_named_otherwise_than_its_sync_id_keeps_its_name(run: Places) -> None:
    """[A-154] The export tells it; other programs see an element that they do not know."""
    plain = "<entry><id>a b&amp;c</id><title>x</title><updated>2026-01-03T10:00:00Z</updated></entry>"
    run("import", "-", "--node", "plans", stdin=document(plain))
    given = run.give()
    run.take(given, at="b")

    assert '<fo:id xmlns:fo="http://fanout.org/protocol/atom">a b&amp;c</fo:id>' in given and 'id="a%20b%26c"' in given
    assert entries(run.give(at="b")) == entries(given)
    shown = json.loads(run("export", "--node", "plans", "--to", "jsonfeed", at="b").stdout)
    assert [one["id"] for one in shown["items"]] == ["a b&c"]


def test_export_is_a_feed_that_other_programs_read(run: Places) -> None:
    """[FS-002] [FS-014] [FS-081] [A-47] Atom with sync data. A subscriber that reads the complete feed first gets the
    bound for its next reading; nothing of what the feed came with is in it."""
    run.take((CORPUS / "fv__ext__feedsync__spec-example-atom.xml").read_bytes())
    given = run.give()
    reader = FeedReader()
    (piece,) = [*reader.feed(given.encode()), *reader.close()]

    assert piece.sync_item is not None and piece.sync_item.version.sync_id == "item_1_myapp_2005-05-21T11:43:33Z"
    assert (reader.sharing.since, reader.sharing.related) == (BEGINNING, ())
    assert (reader.sharing.until or "") > "2026" and "urn:x-smartfeeds:export" not in given
    assert reader.notes == []


async def publish_head() -> None:
    """What a feed says of itself, as clients publish it (XEP-0277)."""
    async with stored_service() as service:
        head = parse_payload(b'<feed xmlns="http://www.w3.org/2005/Atom"><title>Plans</title></feed>')
        owner = Jid("", "feeds.a.example")
        await service.handle(Publish(owner, "feeds.a.example", "plans", "0", draft_of(head)))


def test_export_tells_what_it_cannot_share(run: Places) -> None:
    """[SF-091] What a feed says of itself is no entry, and each service's own."""
    run.take(document(entry()))
    asyncio.run(publish_head())
    written = ("export", "--node", "plans", "--to", "atom", "--sync", "--output", "x.xml", "--json")
    report = json.loads(run(*written).stdout)

    assert [(one["item"], one["what"]) for one in report["losses"]] == [
        ("0", "the item, which is not an Atom entry and cannot be shared")
    ]
    assert counts(run.take(Path("x.xml").read_text())) == (0, 0, 0, 1, 0)
    run(*written, "--strict", code=Exit.FAILED)


def test_items_come_in_the_order_in_which_they_were_made(run: Places) -> None:
    """[A-153] A document may have its newest item on top: an older one still counts as created before."""
    texts = [entry(f"d{day}", history=FIRST.replace("01-02", f"01-0{day}")) for day in (5, 3, 4)]
    run.take(document(*texts))

    assert re.findall(r'sx:sync [^>]*id="(\w+)"', run.give()) == ["d3", "d4", "d5"]


def test_item_without_a_date_stays_behind_the_one_before_it(run: Places) -> None:
    """[FS-037] A history may name endpoints alone."""
    day = {number: FIRST.replace("01-02", f"01-0{number}") for number in (3, 5)}
    undated = '<sx:history sequence="1" by="a"/>'
    run.take(document(entry("d5", history=day[5]), entry("none", history=undated), entry("d3", history=day[3])))

    assert re.findall(r'sx:sync [^>]*id="(\w+)"', run.give()) == ["d3", "d5", "none"]


def test_import_without_sync_leaves_sync_data_out_and_says_so(run: Places) -> None:
    """[FS-022] [FS-041] What the item says of its history then is that of its import, and no other stands beside it."""
    for name in ("sm_fs_pair1_a.xml", "sm_sse_rss_http_ns.xml"):
        result = run("import", "-", "--node", "plans", stdin=(CORPUS / name).read_bytes())
        assert "the sync data of 1 item was ignored; --sync merges it" in result.stderr
    given = run.give()

    assert len(entries(given)) == given.count("<sx:sync") == given.count("<sx:history") == 2
    assert "GPM7383" not in given and "JEO2000" not in given
    again = run("import", "-", "--node", "plans", "--json", stdin=(CORPUS / "sm_fs_pair1_a.xml").read_bytes())
    assert json.loads(again.stdout)["unchanged"] == 1
    assert "sx:sync" not in run("export", "--node", "plans", "--to", "atom").stdout


# What comes in.

_PAIR = ("sm_fs_pair1_a.xml", "sm_fs_pair1_b.xml")
CASES: list[tuple[str, tuple[str, ...], tuple[int, ...]]] = [
    ("conflict", _PAIR, (0, 0, 1, 0, 0)),
    ("other order", _PAIR[::-1], (0, 0, 1, 0, 0)),
    ("invalid values", ("sm_fs_invalid_values.xml",), (1, 0, 0, 0, 7)),
    ("mixed", ("sm_fs_mixed_items.xml",), (1, 0, 0, 0, 0)),
    ("foreign markup", ("sm_fs_unknown_markup.xml",), (1, 0, 0, 0, 0)),
    ("sse", ("sm_sse_rss_http_ns.xml", "sm_sse_rss_https_ns.xml"), (0, 0, 1, 0, 0)),
    ("twins in two forms", ("fv__ext__feedsync__spec-example-atom.xml", "fv__ext__feedsync__spec-example-rss.xml"),
     (0, 1, 0, 0, 0)),
    ("twins the other way", ("fv__ext__feedsync__spec-example-rss.xml", "fv__ext__feedsync__spec-example-atom.xml"),
     (0, 0, 0, 1, 0)),
    ("tombstone", ("fv__ext__feedsync__sync-deleted-true.xml",), (1, 0, 0, 0, 0)),
    ("noconflicts", ("fv__ext__feedsync__sync-noconflicts-false.xml",), (1, 0, 0, 0, 0)),
    ("when missing", ("fv__ext__feedsync__history_when_missing.xml",), (1, 0, 0, 0, 0)),
    ("since after until", ("fv__ext__feedsync__since_after_until.xml",), (1, 0, 0, 0, 0)),
    ("conflict of the document", ("fv__ext__feedsync__spec-example-atom-2.xml",), (1, 0, 0, 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("names", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_documents_of_the_corpus(run: Places, names: tuple[str, ...], wanted: tuple[int, ...]) -> None:
    """[FS-002] [FS-024] [FS-025] [FS-028] [FS-029] [FS-030] [FS-037] [SSE-001] [SSE-002] [A-43] [A-52] [A-70]"""
    reports = [run.take((CORPUS / name).read_bytes()) for name in names]

    assert counts(reports[-1]) == wanted


REFUSED = {
    "fv__ext__feedsync__history_sequence_negative.xml": "sequence is '-3'",
    "fv__ext__feedsync__history_when_blank.xml": "when is ''",
    "fv__ext__feedsync__sync-deleted-maybe.xml": "deleted is 'maybe'",
    "fv__ext__feedsync__sync-id-missing.xml": "the id of sx:sync is missing",
    "fv__ext__feedsync__sync-id-nonnss.xml": "not a Namespace Specific String",
    "fv__ext__feedsync__sync-updates-overflow.xml": "updates is '2147483648'",
}


@pytest.mark.parametrize("name", REFUSED)
def test_document_of_which_nothing_can_be_used_fails_and_says_why(run: Places, name: str) -> None:
    """[FS-025] [FS-028] [FS-029] [FS-030] [FS-034] [A-52]"""
    report = run.take((CORPUS / name).read_bytes(), code=Exit.FAILED)

    assert counts(report) == (0, 0, 0, 0, 1)
    assert REFUSED[name] in report["reasons"][0]["reason"]


def test_every_service_makes_the_same_of_rss_and_sse(run: Places) -> None:
    """[FS-002] [SSE-032] [SSE-037] Whoever reads them, in whatever order: the same bytes; SSE stays SSE."""
    names = ["sm_sse_rss_http_ns.xml", "sm_sse_rss_https_ns.xml", "fv__ext__feedsync__spec-example-rss.xml"]
    for at, order in (("a", names), ("b", names[::-1])):
        for name in order:
            text = (CORPUS / name).read_text()
            run.take(text.replace("http://www.microsoft.com", "https://www.microsoft.com"), at=at)

    given = entries(run.give())
    assert sorted(given) == sorted(entries(run.give(at="b")))
    assert len(given) == 2 and 'version="4" conflict="true"' in run.give()
    assert [title_of(one) for one in sorted(given)] == ["Buy groceries", "T"]


def test_plain_items_and_marks_come_in_as_without_sync(run: Places) -> None:
    """[FS-022] [FS-024] [A-18] And the mark of a deletion deletes."""
    plain = "<entry><id>p</id><title>p</title><updated>2026-01-03T10:00:00Z</updated>{}</entry>"
    mark = '<sx:sync deleted="true" id="p"/>'
    first = run.take(document(entry(), plain.format("")))
    again = run.take(document(entry(), plain.format("")))
    gone = run.take(document(plain.format(mark)))

    assert first["without_sync"] == {"added": 1, "changed": 0, "deleted": 0, "unchanged": 0}
    assert again["without_sync"] == {"added": 0, "changed": 0, "deleted": 0, "unchanged": 1}
    assert gone["without_sync"] == {"added": 0, "changed": 0, "deleted": 1, "unchanged": 0}


def test_import_says_what_it_did_in_one_line(run: Places) -> None:
    stdin = document(entry(), "<entry><id>p</id><title>p</title></entry>", entry("i 2"))
    result = run("import", "-", "--node", "plans", "--sync", "--owner", "alice@example.org", stdin=stdin)

    assert result.stdout == (
        "standard input (Atom 1.0, merged) into plans: 1 added, 0 updated, 0 conflict, 0 unchanged; "
        "without sync data 1 added; 1 refused.\n"
    )
    assert result.stderr.startswith("refused item 3: the id of an item is not a Namespace Specific String")
    shown = json.loads(run("node", "show", "plans", "--json").stdout)
    assert shown["affiliations"] == {"alice@example.org": "owner"}
    assert (shown["options"]["title"], shown["options"]["description"]) == ("Plans", "All of them")


def test_long_list_of_refusals_is_summed_up(run: Places) -> None:
    stdin = document(*(entry(updates="0") for _ in range(30)), entry())
    result = run("import", "-", "--node", "plans", "--sync", stdin=stdin)

    assert result.stderr.count("refused item") == 20 and "and 10 more such lines" in result.stderr


def test_changes_that_were_made_here_and_lost_are_believed_on_request(run: Places) -> None:
    """[A-61] Somebody who writes histories in our name is refused, until the operator says that they are ours."""
    run("import", "-", "--node", "plans", stdin=document("<entry><id>p</id><title>p</title></entry>"))
    given = run.give()
    shutil.rmtree(run.folder / "a")

    lie = run.take(given, code=Exit.FAILED)
    assert "its history has change 1 by feeds.a.example%2F" in lie["reasons"][0]["reason"]
    assert counts(run.take(given, "--own-edits")) == (1, 0, 0, 0, 0)
    assert entries(run.give()) == entries(given)


def test_dates_of_other_zones_are_read_where_that_is_asked(run: Places) -> None:
    """[A-85] [SSE-003]"""
    text = (CORPUS / "sm_sse_rss_http_ns.xml").read_text().replace("10:00:00 GMT", "12:00:00 +0200")

    assert counts(run.take(text, code=Exit.FAILED)) == (0, 0, 0, 0, 1)
    assert counts(run.take(text, "--lenient")) == (1, 0, 0, 0, 0)


# Partial feeds.


def test_partial_export_has_what_changed_since_and_says_so(run: Places) -> None:
    """[FS-077] [FS-081] [A-45] [A-47] Bounds of fixed width, and where the complete feed is."""
    run.take(document(entry("old")))
    until = re.findall(r"(?m)^<updated>(.*)</updated>$", run.give())[0]
    run.take(document(entry("new")))
    given = run.give("--since", until, "--complete", "https://x.example/all.xml")
    all_of_it = run.give("--since", "0")
    nothing = run.give("--since", "2100-01-01T00:00:00Z")

    assert re.findall(r'sx:sync [^>]*id="(\w+)"', all_of_it) == ["old", "new"]
    assert re.findall(r'sx:sync [^>]*id="(\w+)"', nothing) == ["new"]
    bounds = re.findall(r'<sx:sharing xmlns:sx="[^"]*" since="([^"]*)" until="([^"]*)">', given)
    assert [len(bound) for bound in bounds[0]] == [27, 27] and bounds[0][0] <= bounds[0][1]
    assert '<sx:related link="https://x.example/all.xml" type="complete"/>' in given
    assert 'type="complete"' not in all_of_it


def test_exports_have_bounds_in_the_form_of_the_node(run: Places) -> None:
    """[FS-081] [SSE-003] [SSE-006] [SSE-009] [A-47] Both documents, from the empty node on; the bounds of a feed of SSE
    are dates, and no reader takes the complete document for a partial one."""
    for dialect, bound in (("feedsync", r"[0-9-]{10}T[0-9:.]{15}Z"), ("sse", r"\w{3}, \d\d \w{3} \d{4} [0-9:]{8} GMT")):
        run("node", "create", dialect, "--option", f"sync_dialect={dialect}")
        sharing = re.compile(rf'<sx:sharing [^>]*since="{bound}" until="{bound}"')
        export = ("export", "--node", dialect, "--to", "atom", "--sync")
        for options in ((), ("--since", "2026-01-02T10:00:00Z"), ("--since", "0")):
            given = run(*export, *options).stdout
            assert len(sharing.findall(given)) == 1
            assert ('version="0.91"' in given) is (dialect == "sse")
        assert "partial" not in run("import", "-", "--node", "copy", "--sync", stdin=run(*export).stdout).stderr


def test_partial_import_says_where_the_complete_feed_is_and_what_may_be_missing(run: Places) -> None:
    """[FS-078] [FS-079] [FS-021] Nothing is fetched by itself."""
    late = '<sx:sharing since="2100-01-01T00:00:00Z" until="2100-01-02T00:00:00Z">{}</sx:sharing>'
    link = '<sx:related link="https://x.example/all.xml" type="complete"/>'
    early = late.replace("2100", "2001")

    (new,) = run.take(document(entry(), head=early.format(link)))["notes"]
    (known,) = run.take(document(entry(), head=early.format(link)))["notes"]
    (behind,) = run.take(document(entry(), head=late.format("")))["notes"]
    assert all("import the complete feed too" in note for note in (new, behind))
    assert "missing" not in known and "https://x.example/all.xml" in known
    assert "since 2100-01-01T00:00:00Z; ask its publisher" in behind


def test_page_of_a_feed_says_that_there_is_another(run: Places) -> None:
    report = run.take(document(entry(), head='<link rel="next" href="https://x.example/?page=2"/>'))

    assert report["notes"] == [
        "the document is one page of a feed, and only this page was read; the next page is https://x.example/?page=2"
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--to", "rss", "--sync"), "RSS 2.0 cannot carry entries unchanged"),
        (("--to", "json", "--sync"), "ActivityStreams 1.0 cannot carry entries unchanged"),
        (("--to", "atom", "--since", "0"), "--since requires --sync"),
        (("--to", "atom", "--sync", "--since", "yesterday"), "is not a time"),
        (("--to", "atom", "--sync", "--complete", "http://x.example/"), "--complete requires --since"),
        (("--to", "atom", "--sync", "--since", "0", "--complete", "all.xml"), "absolute address"),
        (("--to", "atom", "--sync", "--since", "0", "--complete", "http://x.example/#a"), "without a fragment"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_export_that_makes_no_sense_is_refused_with_the_reason(
    run: Places, arguments: tuple[str, ...], reason: str
) -> None:
    """[FS-018] And before anything is written."""
    run("node", "create", "plans")
    stderr = run("export", "--node", "plans", *arguments, "--output", "x.xml", code=Exit.USAGE).stderr

    assert reason in " ".join(stderr.split())
    assert not Path("x.xml").exists()


# Documents that mean harm, or broke.


def hostile_items() -> dict[str, tuple[str, str]]:
    """An item of a document, and why it is refused."""
    conflict = entry(history=FIRST.replace("first", "x{}"), more="{}")

    def nested(levels: int) -> str:
        inside = "<sx:conflicts>{}</sx:conflicts>" if levels else ""
        return conflict.format(levels, inside.format(nested(levels - 1)) if levels else "")

    many = "".join(entry(history=FIRST.replace("first", f"x{number}")) for number in range(101))
    small = '<sx:history sequence="1" by="a"/>'
    return {
        "20,000 records": (entry(history=small * 20_000), "more than 1000 history records"),
        "long records": (entry(history=FIRST * (4_194_304 // len(FIRST) + 1)), "larger than 4194304 bytes"),
        "nested conflicts": (nested(4), "nested deeper than"),
        "101 conflicts": (entry(more=f"<sx:conflicts>{many}</sx:conflicts>"), "more than 100 conflicts"),
        "conflict of another item": (
            entry(more=f"<sx:conflicts>{entry('other')}</sx:conflicts>"), "differs from the item's id"),
        "id outside the syntax": (entry("i~1"), "not a Namespace Specific String"),
        "long id": (entry("x" * 1_024), "longer than 1023 bytes"),
        "endpoint outside the syntax": (entry(history=FIRST.replace("first", "a b")), "a Namespace Specific String"),
        **{
            f"counter {value}": (entry(updates=value), f"updates is '{value}'")
            for value in ("0", "-1", "2147483648", "+1", "1e3", "99999999999999999999")
        },
        **{
            f"sequence {value}": (
                entry(history=FIRST.replace('sequence="1"', f'sequence="{value}"')), f"sequence is '{value}'")
            for value in ("0", "-1", "2147483648")
        },
        "no history": (entry(history=""), "no sx:history"),
        "lie": (entry(history=FIRST.replace("first", "feeds.a.example%2Fzoe@example.org")), "did not make it"),
        "long content": (entry(title="x" * 70_000, sync_id="long"), "limit"),
        "deep content": (entry(title="<b>" * 140 + "</b>" * 140), "nested deeper than"),
    }  # fmt: skip


HOSTILE = hostile_items()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_item_is_refused_with_the_reason_and_harms_nobody(run: Places, name: str) -> None:
    """[A-52] [A-54] [A-55] [A-56] [A-61] [FS-007] [FS-028] [FS-029] [FS-034] Items before and behind it are taken."""
    item, reason = HOSTILE[name]
    run.take(document(entry("here")))
    report = run.take(document(entry("before"), item, entry("behind"), entry("here")))

    assert counts(report) == (2, 0, 0, 1, 1)
    (told,) = report["reasons"]
    assert told["item"] == 2 and reason in told["reason"] and len(told["reason"]) < 300
    assert re.findall(r'sx:sync [^>]*id="(\w+)"', run.give()) == ["here", "before", "behind"]


BROKEN = {
    "cut in an item": (lambda text: text[: text.index("behind") + 2], "ends in the middle"),
    "cut behind an item": (lambda text: text[: text.rindex("<entry>")], "ends in the middle"),
    "tag that does not match": (
        lambda text: text.replace("<entry><id>urn:x:behind", "<entry></x><id>"),
        "do not match",
    ),
    "undeclared entity": (lambda text: text.replace("<title>behind", "<title>&lol;"), "not well-formed"),
    "forbidden character": (lambda text: text.replace("<title>behind", "<title>\x00"), "character"),
    "goes on": (lambda text: text.replace("<entry><id>urn:x:behind", "</feed><entry><id>"), "goes on after its end"),
    "too deep": (lambda text: text.replace("<title>behind", "<title>" + "<b>" * 300), "nested too deeply"),
    "endless item": (lambda text: text.replace("<title>behind", "<title>" + "x" * 17_000_000), "larger than"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_document_that_breaks_off_gives_what_came_before(run: Places, name: str) -> None:
    """[A-52] What is whole is taken, what is behind the fault is not, and the command says so and fails."""
    spoil, reason = BROKEN[name]
    run.take(document(entry("here")))
    report = run.take(spoil(document(entry("before"), entry("here"), entry("behind"))), code=Exit.FAILED)

    assert (report["added"], report["unchanged"]) == (1, 1)
    assert reason in report["fault"]
    assert re.findall(r'sx:sync [^>]*id="(\w+)"', run.give()) == ["here", "before"]
    told = run("import", "-", "--node", "plans", "--sync", code=Exit.FAILED, stdin=spoil(
        document(entry("before"), entry("here"), entry("behind"))
    )).stderr  # fmt: skip
    assert "nothing after item 2 was read" in told


UNREADABLE = {
    "empty": ("", "no root element"),
    "page": ("<html><body/></html>", "the root of the document is html"),
    "cut at once": (HEAD[:40], "document"),
    "entity bomb": (
        '<!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;">]>'
        + document(entry(title="&c;")),
        "DTD",
    ),
    "outside entity": (
        '<!DOCTYPE feed [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + document(entry(title="&a;")),
        "DTD",
    ),
    "outline": (
        '<opml version="2.0"><head/></opml>',
        "the outline has no body",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_document_of_which_nothing_can_be_read_is_an_error_and_makes_no_node(run: Places, name: str) -> None:
    """[A-52]"""
    text, reason = UNREADABLE[name]
    run("node", "create", "news")
    code = Exit.USAGE if name == "page" else Exit.FAILED
    stderr = run("import", "-", "--node", "plans", "--sync", code=code, stdin=text).stderr

    assert reason in stderr and len(stderr.splitlines()) == 1
    assert [one["node"] for one in json.loads(run("node", "list", "--json").stdout)] == ["news"]


def test_options_of_sync_need_it(run: Places) -> None:
    for option in ("--own-edits", "--lenient"):
        assert "require --sync" in run("import", "-", "--node", "n", option, code=Exit.USAGE, stdin="").stderr


def test_generic_node_takes_no_part(run: Places) -> None:
    """[FS-024]"""
    run("node", "create", "plans", "--kind", "generic")

    stderr = run("import", "-", "--node", "plans", "--sync", code=Exit.REFUSED, stdin=document(entry())).stderr
    assert "this node is a generic one" in stderr
