"""Documents with sync data: read item by item, merged, written."""

import re

import pytest
from lxml import etree

from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import growth
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.sync import document_reader
from smartfeeds.sync.document_reader import FeedFormat, FeedReader, PieceKind, form_of
from smartfeeds.sync.joining import Joiner, read_feed, write_feed
from smartfeeds.sync.lexis import SSE_NS
from smartfeeds.sync.merging import Outcome
from smartfeeds.sync.record import Edit
from smartfeeds.sync.sse import SSE
from support.sync import CORPUS, MemorySpool, at, parse_item

ATOM = "http://www.w3.org/2005/Atom"


def corpus(name):
    return (CORPUS / name).read_bytes()


def pieces(data, size=7, **options):
    reader = FeedReader(**options)
    found = []
    for start in range(0, len(data), size):
        found += reader.feed(data[start : start + size])
    return [*found, *reader.close()], reader


def joined(local, incoming, edit=None, lenient=False):
    """The merged document and the report."""
    joiner = Joiner(MemorySpool(), form_of(local), edit, lenient=lenient)
    mine = read_feed([local], lambda piece, _form: joiner.add_local(piece), lenient=lenient)
    joiner.end_local()
    theirs = read_feed([incoming], joiner.add_incoming, lenient=lenient)
    return b"".join(write_feed(mine, joiner.results(), theirs)), joiner.report


def versions(document):
    found, _ = pieces(document, 4096)
    return {one.sync_item.version.sync_id: parse_item(one.raw).version for one in found if one.kind is PieceKind.SYNCED}


def atom(*entries, head="", root=""):
    return (
        f'<feed xmlns="{ATOM}" xmlns:sx="{FEEDSYNC_NS}" {root}><title>T</title>{head}{"".join(entries)}</feed>'
    ).encode()


def entry(sync_id="i1", updates=1, by="A", title="t", more="", history=""):
    return (
        f'<entry><title>{title}</title>{more}<sx:sync id="{sync_id}" updates="{updates}">'
        f'<sx:history sequence="{updates}" when="2005-05-21T1{updates}:00:00Z" by="{by}"/>{history}</sx:sync></entry>'
    )


def rss(*items, root="", head=""):
    return (
        f'<rss version="2.0" xmlns:sx="{FEEDSYNC_NS}" {root}><channel><title>T</title>{head}'
        f"{''.join(items)}</channel></rss>"
    ).encode()


def test_examples_of_the_document_in_both_formats_say_the_same():
    """[FS-001] [FS-002] [FS-013] the same item state, and the same sharing."""
    read = [pieces(corpus(f"fv__ext__feedsync__spec-example-{name}.xml")) for name in ("atom", "rss")]
    states = [[parse_item(one.raw).version for one in found] for found, _ in read]

    assert [(one.sync_id, one.counter, one.history) for one in states[0]] == [
        (one.sync_id, one.counter, one.history) for one in states[1]
    ]
    assert read[0][1].sharing == read[1][1].sharing
    assert [one.form for _, one in read] == [FeedFormat.ATOM, FeedFormat.RSS]


def test_conflict_example_of_the_document():
    """[FS-039] [A-40] one conflict, which the printed times would make the winner."""
    (item,) = versions(corpus("fv__ext__feedsync__spec-example-atom-2.xml")).values()

    assert (item.top.by, [one.top.by for one in item.conflicts]) == ("GPM7383", ["JEO2000"])


def test_pair_merges_the_same_in_both_directions():
    """[FS-059] [FS-068] [FS-039] winner "Groceries - done", conflict "Groceries"."""
    a, b = corpus("sm_fs_pair1_a.xml"), corpus("sm_fs_pair1_b.xml")

    here, report = joined(a, b)
    there, _ = joined(b, a)

    assert versions(here) == versions(there)
    (item,) = versions(here).values()
    assert b"Groceries - done" in item.payload
    assert [one.top.by for one in item.conflicts] == ["JEO2000"]
    assert report.outcomes == {Outcome.CONFLICT: 1}
    again, report = joined(here, there)
    assert report.outcomes == {Outcome.UNCHANGED: 1}
    assert again == here


def test_sharing_is_never_published_again():
    """[FS-014] [A-156] neither ours nor theirs: who publishes says its own."""
    a, b = corpus("sm_fs_pair1_a.xml"), corpus("fv__ext__feedsync__spec-example-atom.xml")

    assert b"sharing" in a and b"sharing" in b
    assert b"sharing" not in joined(a, b)[0]
    assert b"sharing" not in joined(b, a)[0]


def test_feed_with_sharing_alone_is_valid():
    """[FS-013] nothing is merged."""
    document, report = joined(corpus("fv__ext__feedsync__related-multiple.xml"), atom())

    assert versions(document) == {}
    assert report.outcomes == {}


def test_items_with_and_without_sync_data():
    """[FS-022] [FS-023] [FS-024] the plain one stays in its own feed and is not taken from another."""
    mixed = corpus("sm_fs_mixed_items.xml")

    document, _ = joined(mixed, atom())
    taken, report = joined(atom(), mixed)

    assert b"urn:x-test:plain" in document
    assert b"urn:x-test:plain" not in taken
    assert report.plain == 1
    assert set(versions(taken)) == {"i1"}


def test_bad_items_are_refused_one_by_one():
    """[A-52] [FS-009] [FS-010] [FS-028] [FS-029] [FS-030] [FS-037] our own feed loses nothing."""
    bad = corpus("sm_fs_invalid_values.xml")

    document, report = joined(atom(), bad)
    kept, _ = joined(bad, atom())

    assert set(versions(document)) == {"ok"}
    assert [one.index for one in report.reasons] == list(range(1, 8))
    assert len({one.reason for one in report.reasons}) == 7
    assert kept.count(b"<entry") == bad.count(b"<entry")


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("history_sequence_negative", True), ("history_when_blank", True), ("history_when_missing", False),
        ("since_after_until", False), ("sync-deleted-maybe", True), ("sync-deleted-true", False),
        ("sync-id-missing", True), ("sync-id-nonnss", True), ("sync-noconflicts-false", False),
        ("sync-updates-overflow", True),
    ],
)  # fmt: skip
def test_cases_of_the_feed_validator(name, refused):
    """[FS-025] [FS-028] [FS-029] [FS-030] [FS-031] [FS-034] [FS-037] the same items are refused as there."""
    _, report = joined(atom(), corpus(f"fv__ext__feedsync__{name}.xml"))

    assert bool(report.refused) is refused
    assert bool(report.outcomes) is not refused


def test_all_refused_items_are_counted_and_some_are_told():
    """[A-52] of 2,000 reasons nobody reads the last."""
    items = ["<entry><title>t</title><sx:sync/></entry>"] * 2_000

    _, report = joined(atom(), atom(*items))

    assert (report.refused, len(report.reasons)) == (2_000, 1_000)


def test_unknown_markup_comes_out_as_it_went_in():
    """[FS-012] also after a merge that changed the item."""
    document = corpus("sm_fs_unknown_markup.xml")
    changed, report = joined(document, atom(entry("i1", 1, "B")))

    assert b'zz:hint="h"' in joined(document, atom())[0]
    assert report.outcomes == {Outcome.CONFLICT: 1}
    conflicting = next(iter(versions(changed).values())).conflicts[0]
    assert dict(conflicting.extra.attributes)["{urn:x-test:ns}hint"] == "h"
    assert b"keep me" in conflicting.extra.children[0]


def test_identity_is_the_sync_id_alone():
    """[FS-026] [FS-027] other atom:ids, one item; and one atom:id with two sync ids is two."""
    one, report = joined(atom(entry(more="<id>urn:a</id>")), atom(entry("i1", 2, "A", more="<id>urn:b</id>")))
    two, _ = joined(atom(entry(more="<id>urn:a</id>")), atom(entry("i2", more="<id>urn:a</id>")))

    assert report.outcomes == {Outcome.UPDATED: 1}
    assert b"urn:b" in one and b"urn:a" not in one
    assert set(versions(two)) == {"i1", "i2"}


def test_duplicates_merge_with_each_other():
    """[FS-025] [A-53] in either feed."""
    double = atom(entry("i1", 1, "A"), entry("i1", 1, "B"), entry("i2"))

    for document in (joined(double, atom())[0], joined(atom(), double)[0]):
        found = versions(document)
        assert document.count(b'id="i1"') == 2  # the winner, and the other as its conflict
        assert [one.top.by for one in found["i1"].conflicts] == ["A"]


def test_conflict_lists_of_sse_over_both_namespaces():
    """[SSE-001] [SSE-002] [A-70] the golden pair of the corpus; ours is written in our namespace."""
    a, b = corpus("sm_sse_rss_http_ns.xml"), corpus("sm_sse_rss_https_ns.xml")

    here, report = joined(a, b)
    there, _ = joined(b, a)

    assert versions(here) == versions(there)
    (item,) = versions(here).values()
    assert item.conflict.on and item.counter == 4
    assert [(one.top.by, one.counter) for one in item.conflicts] == [("GPM7383", 3)]
    assert b"https://www.microsoft" not in here and b"http://www.microsoft" not in there
    taken, _ = joined(a, b.replace(b"0a7903db47fb0ae8", b"other"))
    assert b"https://www.microsoft" not in taken
    assert report.outcomes == {Outcome.CONFLICT: 1}


def test_dialects_do_not_mix_on_one_item():
    """[A-83] histories have nothing in common; the item that is there stays."""
    sse = corpus("sm_sse_rss_https_ns.xml")
    feedsync = rss(
        '<item><sx:sync id="0a7903db47fb0ae8" updates="9"><sx:history sequence="9" by="Z"/></sx:sync></item>'
    )

    document, report = joined(sse, feedsync)

    assert "cannot be merged" in report.reasons[0].reason
    assert next(iter(versions(document).values())).counter == 4


def test_rss_into_atom_and_back():
    """[FS-002] an item keeps its history and its conflicts in the other format."""
    a = corpus("fv__ext__feedsync__spec-example-atom-2.xml")
    into_rss, _ = joined(rss(), a)
    back, _ = joined(atom(), into_rss)

    (first,), (last,) = versions(a).values(), versions(back).values()
    assert (first.sync_id, first.counter, first.history) == (last.sync_id, last.counter, last.history)
    assert [one.history for one in first.conflicts] == [one.history for one in last.conflicts]
    assert b"Get milk, eggs, butter and rolls" in last.conflicts[0].payload
    assert b"1970" not in into_rss


def test_new_items_stand_behind_ours_in_their_order():
    """[FS-044] [FS-060] appended to the feed."""
    document, report = joined(atom(entry("b"), entry("a")), atom(entry("z"), entry("a"), entry("c")))

    assert re.findall(rb'id="(\w)"', document) == [b"b", b"a", b"z", b"c"]
    assert report.outcomes == {Outcome.ADDED: 2, Outcome.UNCHANGED: 1}


def test_item_takes_along_what_it_has_of_its_feed():
    """[FS-012] base, language and authors of the feed it comes from."""
    incoming = atom(
        entry(more='<link href="x"/>'),
        head="<author><name>Bob</name></author>",
        root='xml:base="http://b.example/" xml:lang="de"',
    )

    document, _ = joined(atom(head="<author><name>Alice</name></author>"), incoming)

    node = etree.fromstring(document).find(f"{{{ATOM}}}entry")
    assert node.findtext(f"{{{ATOM}}}author/{{{ATOM}}}name") == "Bob"
    assert node.find(f"{{{ATOM}}}link").get("href") == "http://b.example/x"
    assert node.get("{http://www.w3.org/XML/1998/namespace}lang") == "de"


BASED = 'xml:base="http://b.example/feeds/" xml:lang="de"'
BOB = "<author><name>Bob</name></author>"


def with_conflicts(item, *conflicts):
    """The item with these in its conflicts."""
    return item.replace("</sx:sync>", f"<sx:conflicts>{''.join(conflicts)}</sx:conflicts></sx:sync>")


@pytest.mark.parametrize(
    "more",
    [
        "",
        '<link href="x"/>',
        '<link xml:base="in/" href="x"/><content src="y"/>',
        "<author><name>Own</name></author>",
        f"<source>{BOB}</source>",
    ],
)
@pytest.mark.parametrize("own", ["", 'xml:base="c/"', 'xml:lang="fr"'])
def test_loser_takes_along_the_same_of_its_feed_as_a_winner(own, more):
    """[FS-012] [FS-039] [A-54] nothing of the item around it: one version has the same bytes in both places."""
    version = entry(by="B", more=more).replace("<entry>", f"<entry {own}>")
    winner = entry("i1", 3, "A", more='<link href="w"/>').replace("<entry>", '<entry xml:base="w/" xml:lang="sv">')
    middle = with_conflicts(entry("i1", 2, "C"), version)

    losers = [
        versions(atom(with_conflicts(winner, inside), head=BOB, root=BASED))["i1"].conflicts[-1]
        for inside in (version, middle)
    ]

    alone = versions(atom(version, head=BOB, root=BASED))["i1"]
    assert losers == [alone, alone]
    assert b"Bob" in alone.payload or b"Own" in alone.payload


def test_loser_of_rss_takes_along_the_same_of_its_feed_as_a_winner():
    """[FS-012] [FS-039] language and base."""
    version, winner = (entry("i1", *one).replace("entry>", "item>") for one in ((1, "B"), (2, "A")))
    alone = versions(rss(version, root=BASED))["i1"]

    assert versions(rss(with_conflicts(winner, version), root=BASED))["i1"].conflicts == (alone,)
    assert b'xml:lang="de"' in alone.payload and b'xml:base="http://b.example/feeds/"' in alone.payload


def test_loser_in_a_list_of_sse_takes_along_the_same_of_its_feed_as_a_winner():
    """[FS-012] [SSE-048] language and base."""
    sync = f'<x:sync xmlns:x="{SSE_NS}" id="i1" version="%d"><x:history by="%s"/>%s</x:sync>'
    version = "<item><title>t</title>%s</item>"
    conflict = '<x:conflicts><x:conflict version="1" by="B">%s</x:conflict></x:conflicts>' % (version % "")
    alone = versions(rss(version % (sync % (1, "B", "")), root=BASED))["i1"]
    (loser,) = versions(rss(version % (sync % (2, "A", conflict)), root=BASED))["i1"].conflicts

    assert loser.payload == alone.payload
    assert b'xml:lang="de"' in alone.payload


def test_document_that_has_a_version_as_its_winner_is_no_news_where_it_lost():
    """[FS-039] [A-59] its authors and language are in both."""
    version, winner = entry(by="B"), entry("i1", 2, "A")
    here = atom(with_conflicts(winner, version), head=BOB, root=BASED)

    _, report = joined(here, atom(version, head=BOB, root=BASED))

    assert report.outcomes == {Outcome.UNCHANGED: 1}


def test_size_that_conflicts_inherit_is_bounded(monkeypatch):
    """[A-55] a long author is not copied into each conflict; the item is refused and stays as it is."""
    monkeypatch.setattr(document_reader, "MAX_PAYLOAD_BYTES", 20_000)
    loser = entry(by="B")
    data = atom(with_conflicts(entry("i1", 2, "A"), *[loser] * 3), head=f"<author><name>{'n' * 9_000}</name></author>")

    (piece,), _ = pieces(data, 4096)

    assert piece.kind is PieceKind.REFUSED and "the feed's authors" in piece.reason
    assert b"nnn" not in piece.raw


def test_items_without_a_namespace_stay_so_in_a_feed_that_has_one():
    """[FS-002] RSS in a namespace takes items of RSS without one, and the other way round."""
    named = rss(
        '<item><sx:sync id="n" updates="1"><sx:history sequence="1" by="A"/></sx:sync></item>',
        root='xmlns="http://backend.userland.com/rss2"',
    )
    plain = rss('<item><sx:sync id="p" updates="1"><sx:history sequence="1" by="A"/></sx:sync></item>')

    for one, two in ((named, plain), (plain, named)):
        document, _ = joined(one, two)
        assert {node.tag.rpartition("}")[0] for node in etree.fromstring(document).iter("{*}item")} == {
            "", "{http://backend.userland.com/rss2",
        }  # fmt: skip
        assert set(versions(document)) == {"n", "p"}


def test_plain_items_get_sync_data_on_demand():
    """[FS-041] [FS-044] [FS-023] by the endpoint that owns the feed; the id is the item's own, encoded [A-51]."""
    local = atom(
        "<entry><id>http://a.example/?q=1&amp;r</id><title>x</title></entry>", "<entry><title>none</title></entry>",
        entry("taken"), "<entry><id>taken</id></entry>",
    )  # fmt: skip

    document, report = joined(local, atom(), Edit(at("09:43"), "me"))

    found = versions(document)
    assert report.created == 2
    assert "http:%2F%2Fa.example%2F%3Fq=1%26r" in found
    assert all(one.counter == 1 and one.top.by == "me" for name, one in found.items() if name != "taken")
    assert "another item has its id" in report.notes[0]


def test_plain_items_of_an_sse_feed_get_sse():
    """[SSE-031] the dialect is that of the feed."""
    local = corpus("sm_sse_rss_https_ns.xml").replace(b"</channel>", b"<item><guid>g</guid></item></channel>")

    document, _ = joined(local, rss(), Edit(at("09:43"), "me"))

    found, _ = pieces(document)
    assert [one.sync_item.dialect for one in found] == [SSE, SSE]


def test_too_many_conflicts_refuse_the_newcomer():
    """[A-55] the item stays as it was."""
    rivals = "".join(f"<sx:conflicts>{entry('i1', 1, f'R{n:03d}')}</sx:conflicts>" for n in range(100))
    local = atom(entry("i1", 2, "W", history=rivals))

    document, report = joined(local, atom(entry("i1", 1, "new")))

    assert "101 conflicts; the limit is 100" in report.reasons[0].reason
    assert versions(document) == versions(local)


def test_document_in_pieces_is_the_same_document():
    """[A-52] wherever the bytes are cut."""
    data = corpus("sm_fs_invalid_values.xml")
    whole, _ = pieces(data, len(data))

    for size in (1, 2, 13, 4096):
        assert pieces(data, size)[0] == whole


@pytest.mark.parametrize("name", ["sm_fs_pair1_a.xml", "sm_sse_rss_https_ns.xml"])
def test_document_that_is_cut_is_refused_as_a_whole(name):
    """[A-52] nothing of half a document is taken."""
    data = corpus(name)

    for end in range(60, len(data) - 2, 37):
        with pytest.raises(FeedError) as error:
            pieces(data[:end])
        assert error.value.condition is Condition.INVALID_PAYLOAD


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9))
    + b']><feed xmlns="http://www.w3.org/2005/Atom"><title>&j;</title><entry/></feed>'
)


@pytest.mark.parametrize(
    "data",
    [
        BOMB,
        b'<!DOCTYPE feed SYSTEM "http://x.example/x.dtd"><feed xmlns="http://www.w3.org/2005/Atom"/>',
        b'<!DOCTYPE f [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed xmlns="http://www.w3.org/2005/Atom"><entry>&x;</entry></feed>',
        b"<feed xmlns='http://www.w3.org/2005/Atom'>" + b"<a>" * 300,
        b"",
        b"{}",
        b"<html/>",
        b"<item/>",
        b'<entry xmlns="http://www.w3.org/2005/Atom"/>',
        b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>",
    ],
    ids=["bomb", "external DTD", "external entity", "deep", "empty", "JSON", "HTML", "item", "entry", "RDF"],
)
def test_hostile_and_foreign_documents_are_refused(data):
    """[A-52] [A-74] with a reason, at once, and nothing is opened."""
    with pytest.raises(FeedError) as error:
        (form_of(data), pieces(data, 64))

    assert error.value.text


def test_unquoted_attribute_is_no_xml():
    """[A-74] as in the document's own sample."""
    with pytest.raises(FeedError):
        pieces(b"<rss version=2.0></rss>")


def test_item_without_end_is_refused_before_it_fills_the_memory(monkeypatch):
    """[A-55] bounded by one item."""
    monkeypatch.setattr(document_reader, "MAX_ITEM_BYTES", 10_000)
    reader = FeedReader()
    endless = (b"x" * 999 for _ in range(100))
    list(reader.feed(b'<feed xmlns="http://www.w3.org/2005/Atom"><entry>'))

    with pytest.raises(FeedError, match="has no end tag") as error:
        [list(reader.feed(chunk)) for chunk in endless]

    assert error.value.condition is Condition.PAYLOAD_TOO_BIG


def test_large_item_is_refused_alone(monkeypatch):
    """[A-55] [FS-007] and the others are merged."""
    monkeypatch.setattr(growth, "MAX_PAYLOAD_BYTES", 1_000)

    found, _ = pieces(atom(entry("a"), entry("b", title="x" * 2_000), entry("c")))

    assert [one.kind for one in found] == [PieceKind.SYNCED, PieceKind.REFUSED, PieceKind.SYNCED]


def test_too_many_items_are_refused(monkeypatch):
    """[A-55]"""
    monkeypatch.setattr(document_reader, "MAX_ITEMS", 2)

    with pytest.raises(FeedError, match="more than 2 items"):
        pieces(atom(entry("a"), entry("b"), entry("c")))


def test_items_leave_memory_after_reading():
    """[A-55] of a feed of 2,000 items the tree holds one at the end."""
    reader = FeedReader()
    data = atom(*(entry(f"i{n}") for n in range(2_000)))

    assert len(list(reader.feed(data))) == 2_000
    list(reader.close())
    assert len(re.findall(rb"<entry", reader.head())) == 0


def test_head_keeps_the_attributes_of_its_elements():
    _, reader = pieces(atom(entry(), root="xml:lang='de' xml:base='http://a.example/'"))

    assert re.search(rb"<feed [^>]*xml:lang=.de.", reader.head()) and b"http://a.example/" in reader.head()


def test_authors_behind_the_entries_are_told():
    """[FS-012] a feed may have them there; its entries went out already."""
    _, reader = pieces(atom(entry(), "<author><name>A</name></author>"))

    assert "after its entries" in reader.notes[0]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00+01:00", "2026-01-01T23:00:00Z"),
        ("2026-01-02T00:00:00+01:00", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00+01:00"),
        ("some day", "2026-01-01T00:00:00.25Z", "2026-01-01T00:00:00.25Z"),
        ("2026-01-01T00:00:00Z", "some day", "2026-01-01T00:00:00Z"),
    ],
)
def test_merged_feed_has_the_later_date(ours, theirs, expected):
    """[FS-068] RFC 4287 4.2.15: atom:updated is that of the last change, whichever side made it."""
    a, b = (atom(head=f"<updated>{text}</updated>") for text in (ours, theirs))

    assert f"<updated>{expected}</updated>".encode() in joined(a, b)[0]
    assert b"updated" not in joined(atom(), b)[0]
    assert f"<updated>{ours}</updated>".encode() in joined(a, atom())[0]


def test_dates_of_feeds_are_compared_across_formats():
    """[FS-002] lastBuildDate of RSS is what atom:updated is in Atom."""
    a = atom(head="<updated>2026-01-02T00:00:00Z</updated>")
    b = rss(head="<lastBuildDate>Thu, 01 Jan 2026 00:00:00 GMT</lastBuildDate>")

    assert b"<lastBuildDate>Fri, 02 Jan 2026 00:00:00 GMT</lastBuildDate>" in joined(b, a)[0]
    assert b"<updated>2026-01-02T00:00:00Z</updated>" in joined(a, b)[0]


def test_version_that_has_seen_the_other_passes_as_it_came():
    """[FS-059] [FS-012] not a byte of it is written anew, whichever side it is on."""
    older = entry("i1", 1, "A")
    newer = entry("i1", 2, "B", more="<!-- -->  <rights\n xml:lang='en' >r</rights>", history=_stamp_of("A"))
    written = pieces(atom(newer))[0][0].raw

    taken, report = joined(atom(older), atom(newer))
    kept, again = joined(atom(newer), atom(older))

    assert [one.raw for one in pieces(taken)[0]] == [one.raw for one in pieces(kept)[0]] == [written]
    assert (report.outcomes, again.outcomes) == ({Outcome.UPDATED: 1}, {Outcome.UNCHANGED: 1})


def _stamp_of(by):
    return f'<sx:history sequence="1" when="2005-05-21T11:00:00Z" by="{by}"/>'


def test_item_of_our_own_that_cannot_be_merged_stays():
    """[A-52] [A-83] [A-53] one of the other dialect, and one conflict too many: told, and written as they are."""
    sse = f'<entry><x:sync xmlns:x="{SSE_NS}" id="i1" version="1"><x:history by="B"/></x:sync></entry>'
    rivals = "".join(f"<sx:conflicts>{entry('i2', 1, f'R{n:03d}')}</sx:conflicts>" for n in range(100))
    double = atom(entry("i1"), sse, entry("i2", 2, "W", history=rivals), entry("i2", 1, "new"))

    document, report = joined(double, atom())

    assert [(one.document, one.index) for one in report.reasons] == [("local", 1), ("local", 3)]
    assert document.count(b"<entry") == double.count(b"<entry")


def test_items_that_were_compared_are_counted_once():
    """[FS-062] however often the other feed has them, their conflicts are those that they end with."""
    twice = atom(entry("i1", 1, "B"), entry("i1", 1, "C"), entry("new"), entry("new"))

    _, report = joined(atom(entry("i1", 1, "A")), twice)

    assert report.conflicts == 2
    assert report.outcomes == {Outcome.CONFLICT: 2, Outcome.ADDED: 1, Outcome.UNCHANGED: 1}


def test_lenient_dates():
    """[A-85] the switch reaches the items."""
    item = (
        '<item><x:sync xmlns:x="https://www.microsoft.com/schemas/rss/sse" id="s" version="1">'
        '<x:history when="21 May 2005 09:43:33 UT"/></x:sync></item>'
    )

    assert joined(rss(), rss(item))[1].refused
    assert not joined(rss(), rss(item), lenient=True)[1].refused


def test_one_way_use_is_a_merge_that_is_never_sent_back():
    """[FS-003] B follows A: A stays as it was, B has A's items."""
    a = corpus("sm_fs_pair1_a.xml")

    document, report = joined(atom(), a)

    assert versions(document) == versions(a)
    assert report.outcomes == {Outcome.ADDED: 1}


def test_tombstones_pass_through_merges():
    """[A-150] [A-151] nothing is dropped: the deleted item is there, marked."""
    document, _ = joined(atom(), corpus("fv__ext__feedsync__sync-deleted-true.xml"))

    (item,) = versions(document).values()
    assert item.deleted.on


@pytest.mark.parametrize("there", ["same on both sides", "local alone", "incoming alone"])
def test_conflicts_in_conflicts_are_flattened_whatever_the_other_side_has(there):
    """[FS-063] [A-54] Also where nothing has to be compared; items without them pass as the bytes that they came in."""
    inner = f"<sx:conflicts>{entry(by='C', title='c')}</sx:conflicts>"
    middle = f"<sx:conflicts>{entry(by='B', title='b', history=inner)}</sx:conflicts>"
    document, empty = atom(entry(updates=2, title="a", history=middle)), atom()
    sides = {"same on both sides": (document, document), "local alone": (document, empty)}

    merged, report = joined(*sides.get(there, (empty, document)))

    assert merged.count(b"<sx:conflicts>") == 1
    (version,) = versions(merged).values()
    assert sorted(one.top.by for one in version.conflicts) == ["B", "C"]
    assert report.refused == 0
