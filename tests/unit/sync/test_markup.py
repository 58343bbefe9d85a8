"""sx:sync in items: what is read, what is refused, what is written."""

import gc
import tracemalloc

import pytest
from lxml import etree

from smartfeeds.core.text import is_nss, to_nss
from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import FEEDSYNC_NS, SSE_NAMESPACES
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.lexis import FEEDSYNC_LEXIS, LENIENT_SSE_LEXIS, SSE_LEXIS, SSE_NS
from smartfeeds.sync.markup import read_item
from smartfeeds.sync.record import MAX_CONFLICTS, MAX_HISTORY, Edit, Flag
from smartfeeds.sync.sharing import NO_SHARING, FeedWindow, RelatedFeed, RelatedKind, Sharing
from smartfeeds.sync.sharing_markup import read_sharing, write_sharing
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.writing import write_first, write_item, write_sync
from support.sync import GOLDEN, at, parse_item, version

HISTORY = '<sx:history sequence="1" when="2005-05-21T09:43:33Z" by="A"/>'
ATOM = 'xmlns="http://www.w3.org/2005/Atom"'


def entry(sync='id="i1" updates="1"', inside=HISTORY, namespace=FEEDSYNC_NS, beside=""):
    return (
        f'<entry {ATOM} xmlns:sx="{namespace}"><title>t</title><sx:sync {sync}>{inside}</sx:sync>{beside}</entry>'
    ).encode()


def sse(
    sync='id="s1" version="2"', inside='<sx:history when="Sat, 21 May 2005 09:43:33 GMT" by="A"/>', namespace=SSE_NS
):
    return f'<item xmlns:sx="{namespace}"><title>t</title><sx:sync {sync}>{inside}</sx:sync></item>'.encode()


def read(raw, **options):
    return parse_item(raw, **options)


def refused(raw):
    with pytest.raises(FeedError) as error:
        read(raw)
    return error.value.text


def test_entry_is_read():
    """[FS-022] [FS-001] whatever the prefix."""
    found = read(entry())

    assert found.version == version(1, "1 09:43 A", data=f"<entry {ATOM}><title>t</title></entry>")
    assert (found.dialect, found.namespace) == (FEEDSYNC, FEEDSYNC_NS)
    assert read(entry().replace(b"sx:", b"f:").replace(b":sx", b":f")) == found


def test_item_without_sync_data_takes_no_part():
    """[FS-022] [FS-024] [SSE-016] and is no error."""
    assert read(f"<entry {ATOM}/>".encode()) is None


@pytest.mark.parametrize("value", ["0", "-1", "2147483648", "+1", "1.0", "", "01", " 1", "1e3", "9" * 4000, "\u0661"])
@pytest.mark.parametrize("name", ["updates", "sequence"])
def test_number_that_is_none_refuses_the_item(name, value):
    """[FS-029] [FS-034] [A-56] negative, huge, signed, padded: all the same."""
    raw = entry().replace(f'{name}="1"'.encode(), f'{name}="{value}"'.encode())

    assert f"{name} is" in refused(raw)


@pytest.mark.parametrize("value", ["TRUE", "1", "", "yes", "maybe"])
@pytest.mark.parametrize("name", ["deleted", "noconflicts"])
def test_boolean_that_is_none_refuses_the_item(name, value):
    """[FS-030] [FS-031] [A-56]"""
    assert name in refused(entry(f'id="i1" updates="1" {name}="{value}"'))


def test_booleans_are_carried_as_they_came():
    """[FS-030] [FS-032] true, false and absent are three."""
    for text, flag in (('deleted="true"', Flag.TRUE), ('deleted="false"', Flag.FALSE), ("", Flag.ABSENT)):
        found = read(entry(f'id="i1" updates="1" {text}'))
        assert found.version.deleted is flag
        assert text.encode() in write_item(found.version, FEEDSYNC)


@pytest.mark.parametrize(
    "when",
    ["2005-05-21T09:43:33.5Z", "2005-05-21T11:43:33+02:00", "2005-05-21", "2005-05-21T09:43:33", "", "yesterday"],
)
def test_time_that_is_none_refuses_the_item(when):
    """[FS-009] [FS-010] [FS-006] whole seconds, UTC, Z."""
    assert "when is" in refused(entry(inside=f'<sx:history sequence="1" when="{when}" by="A"/>'))


def test_small_letters_and_leap_seconds_are_read_as_instants():
    """[A-57] and written in capitals."""
    found = read(entry(inside='<sx:history sequence="1" when="2005-05-21t09:43:33z" by="A"/>')).version
    leap = read(entry(inside='<sx:history sequence="1" when="2005-12-31T23:59:60Z" by="A"/>')).version

    assert found == read(entry()).version
    assert b'when="2005-05-21T09:43:33Z"' in write_item(found, FEEDSYNC)
    assert leap.top.when_us == at("2006-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("", "no sx:history"),
        ('<sx:history sequence="1"/>', "neither when nor by"),
        ('<sx:history when="2005-05-21T09:43:33Z" by="A"/>', "sequence is missing"),
        ('<sx:history sequence="1" by=""/>', "endpoint"),
        ('<sx:history sequence="1" by="John Smith"/>', "Namespace Specific String"),
        ('<sx:history sequence="1" by="%zz"/>', "Namespace Specific String"),
    ],
)
def test_history_that_is_none_refuses_the_item(inside, reason):
    """[FS-033] [FS-034] [FS-037] [FS-004] [FS-006]"""
    assert reason in refused(entry(inside=inside))


def test_topmost_record_is_taken_as_written():
    """[FS-033] an unordered history is not sorted."""
    inside = '<sx:history sequence="1" by="A"/><sx:history sequence="7" by="A"/>'

    assert [one.sequence for one in read(entry(inside=inside)).version.history] == [1, 7]


@pytest.mark.parametrize(
    "text", ["a b", "~", "[", "]", "{", "}", "&lt;", "&gt;", "&quot;", "&amp;", "\\", "^", "`", "|", "\u00fc", ""]
)
def test_id_that_is_no_nss_refuses_the_item(text):
    """[FS-028] [FS-006] [A-51] [SSE-017] [SSE-004]"""
    assert "Namespace Specific String" in refused(entry(f'id="{text}" updates="1"'))


def test_foreign_ids_are_read_as_the_grammar_has_them_and_written_unchanged():
    """[A-51] [FS-004] [FS-027] What the grammar lets through is never encoded again."""
    inside = '<sx:history sequence="1" by="alice@example.net/Phone?1%20x"/>'
    found = read(entry('id="tag:example.org,2011:/x?y#z" updates="1"', inside)).version

    assert (found.sync_id, found.top.by) == ("tag:example.org,2011:/x?y#z", "alice@example.net/Phone?1%20x")
    written = write_item(found, FEEDSYNC)
    assert b'id="tag:example.org,2011:/x?y#z"' in written and b'by="alice@example.net/Phone?1%20x"' in written


def test_our_ids_are_encoded_so_that_different_texts_stay_different():
    """[A-51] [FS-005] An address cannot be spelt so that it becomes another one's endpoint."""
    nss = GOLDEN["feedsync"]["nss"]

    assert (to_nss(nss["jid"]), to_nss("j\u00fcrgen@example.net")) == (nss["by"], nss["non_ascii"])
    texts = ["a/b", "a%2Fb", "a%252Fb", "~[x] \U0001f600", "%7E[x] \U0001f600"]
    encoded = [to_nss(text) for text in texts]
    assert len(set(encoded)) == len(texts) and all(map(is_nss, encoded))


def test_missing_and_endless_ids_refuse_the_item():
    """[FS-025] [FS-007] the bound is 1023 bytes."""
    assert "id of sx:sync is missing" in refused(entry('updates="1"'))
    assert "longer than 1023" in refused(entry(f'id="{"x" * 100_000}" updates="1"'))
    assert "longer than 1023" in refused(entry(inside=f'<sx:history sequence="1" by="{"x" * 1024}"/>'))


def test_history_of_100000_records_is_refused():
    """[A-55] [FS-007] before anything is made of it."""
    inside = "".join(f'<sx:history sequence="{n}" by="A"/>' for n in range(1, 100_001))

    assert f"more than {MAX_HISTORY} history records" in refused(entry(inside=inside))
    updates = '<sx:update by="A"/>' * 100_000
    assert f"more than {MAX_HISTORY - 1} sx:update" in refused(sse(inside=f'<sx:history by="A">{updates}</sx:history>'))


def conflict(inside="", by="B", sync_id="i1"):
    return (
        f'<entry><title>c</title><sx:sync id="{sync_id}" updates="1"><sx:history sequence="1" by="{by}"/>'
        f"{inside}</sx:sync></entry>"
    )


def conflicts(*inside):
    return f"{HISTORY}<sx:conflicts>{''.join(inside)}</sx:conflicts>"


def test_conflicts_are_whole_items():
    """[FS-039] [FS-062] and come back from what is written."""
    found = read(entry(inside=conflicts(conflict())))

    assert [one.top.by for one in found.version.conflicts] == ["B"]
    assert found.version.conflicts[0].payload == f"<entry {ATOM}><title>c</title></entry>".encode()
    assert read(write_item(found.version, FEEDSYNC)) == found


def test_empty_conflicts_are_none():
    """[FS-040] [FS-073] and not written."""
    found = read(entry(inside=conflicts())).version

    assert found.conflicts == ()
    assert b"conflicts" not in write_item(found, FEEDSYNC)


def test_conflicts_in_conflicts_are_flattened_once():
    """[FS-063] [A-54] deeper ones refuse the item."""
    inner = conflict(by="C")
    nested = conflict(f"<sx:conflicts>{inner}</sx:conflicts>")
    deeper = conflict(f"<sx:conflicts>{nested}</sx:conflicts>", by="D")

    flat = read(entry(inside=conflicts(nested))).version.conflicts

    assert {one.top.by for one in flat} == {"B", "C"}
    assert all(one.conflicts == () for one in flat)
    assert "nested deeper" in refused(entry(inside=conflicts(deeper)))
    assert read(entry(inside=conflicts(nested))).nested
    assert not read(entry(inside=conflicts(inner))).nested


@pytest.mark.parametrize(
    ("inside", "note"),
    [
        ('<sx:history by="A"/><sx:history by="B"/>', "s1: sx:sync has more than one sx:history; the first applies"),
        ('<sx:history by="A"/><sx:conflicts/>', "s1: sx:conflicts is empty; it was ignored"),
    ],
)
def test_sse_that_breaks_a_rule_without_harm_is_reported(inside, note):
    """[SSE-021] [SSE-046] The item takes part; people are told what was wrong."""
    found = read(sse(inside=inside))

    assert found.notes == (note,)
    assert (found.version.top.by, found.version.conflicts) == ("A", ())


def test_too_many_conflicts_refuse_the_item():
    """[A-55] [A-54]"""
    many = [conflict(by=f"B{n}") for n in range(MAX_CONFLICTS + 1)]

    assert f"more than {MAX_CONFLICTS} conflicts" in refused(entry(inside=conflicts(*many)))
    assert len(read(entry(inside=conflicts(*many[1:]))).version.conflicts) == MAX_CONFLICTS


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("<entry><title>c</title></entry>", "no FeedSync data"),
        (conflict(sync_id="other"), "differs from the item's id"),
        (conflict(by="a b"), "Namespace Specific String"),
    ],
)
def test_faulty_conflict_refuses_the_item(inside, reason):
    """[FS-039] [A-52] half an item would be something else than the other side has."""
    assert reason in refused(entry(inside=conflicts(inside)))


def test_elements_other_than_items_in_conflicts_are_ignored_with_a_note():
    """[FS-039]"""
    found = read(entry(inside=conflicts("<x xmlns='urn:x'/>", conflict())))

    assert len(found.version.conflicts) == 1
    assert "no item" in found.notes[0]


def test_unknown_markup_is_kept_where_it_is():
    """[FS-012] attributes and elements of sx:sync and of records, of any namespace."""
    inside = (
        '<sx:history sequence="1" by="A" zz:tool="t" plain="p"><zz:in>x</zz:in></sx:history><zz:ext>keep me</zz:ext>'
        "<sx:future/>"
    )
    raw = entry('id="i1" updates="1" zz:hint="h" xml:lang="de"', inside).replace(b"<entry", b'<entry xmlns:zz="urn:zz"')

    written = write_item(read(raw).version, FEEDSYNC)
    root = etree.fromstring(written)

    sync = root.find(f"{{{FEEDSYNC_NS}}}sync")
    assert (sync.get("{urn:zz}hint"), sync.findtext("{urn:zz}ext")) == ("h", "keep me")
    assert sync.get("{http://www.w3.org/XML/1998/namespace}lang") == "de"
    history = sync.find(f"{{{FEEDSYNC_NS}}}history")
    assert (history.get("{urn:zz}tool"), history.get("plain"), history.findtext("{urn:zz}in")) == ("t", "p", "x")
    assert sync.find(f"{{{FEEDSYNC_NS}}}future") is not None
    assert read(written).version == read(raw).version
    changed = FEEDSYNC.update(read(raw).version, Edit(0, "B"))
    assert b"keep me" in write_item(changed, FEEDSYNC)


def test_comments_in_sync_data_are_no_markup():
    """[FS-012] A tree that comes from another parser may have comments; a version has none of them."""
    commented = entry(inside=f"<!-- a -->{HISTORY.replace('/>', '><!-- b --></sx:history>')}")

    sync_item = read_item(etree.fromstring(commented))

    assert sync_item is not None
    assert sync_item.version == read(entry()).version


def test_identity_is_the_sync_id_and_stays():
    """[FS-026] [FS-027] [A-73] [A-154] whatever atom:id says, byte for byte."""
    raw = entry('id="%e4/x" updates="1"', beside="<id>urn:other</id>")

    found = read(raw).version

    assert found.sync_id == "%e4/x"
    assert b'id="%e4/x"' in write_item(FEEDSYNC.update(found, Edit(0, "A")), FEEDSYNC)


def test_white_space_between_children_says_nothing():
    """[A-43] printers differ in it, and it would make twins."""
    pretty = entry().replace(b"><", b">\n  <")

    assert read(pretty).version == read(entry()).version


def test_feedsync_counts_where_both_vocabularies_are():
    """[A-87] the other one stays as markup of others, and it is told."""
    other = f'<o:sync xmlns:o="{SSE_NS}" id="s" version="1"><o:history by="A"/></o:sync>'

    found = read(entry(beside=other))

    assert found.dialect is FEEDSYNC
    assert b"<o:sync" in found.version.payload
    assert "two dialects" in found.notes[0]


@pytest.mark.parametrize("namespace", sorted(SSE_NAMESPACES))
def test_sse_is_read_in_its_namespaces(namespace):
    """[SSE-001] [A-70] and written in the one it came in."""
    found = read(sse(namespace=namespace))

    assert (found.dialect, found.namespace, found.version.counter) == (SSE, namespace, 2)
    assert read(write_item(found.version, SSE, namespace)) == found
    assert f'"{SSE_NS}"'.encode() in write_item(found.version, SSE)


def test_shape_tells_the_dialect_in_the_older_namespaces():
    """[A-83] updates is FeedSync's."""
    raw = entry(namespace="http://www.microsoft.com/schemas/sse")

    assert read(raw).dialect is FEEDSYNC


@pytest.mark.parametrize(
    ("sync", "inside", "reason"),
    [
        ('id="s1" version="0"', '<sx:history by="A"/>', "version is"),
        ('id="s1"', '<sx:history by="A"/>', "version is missing"),
        ('id="s1" version="1" deleted="TRUE"', '<sx:history by="A"/>', "deleted is"),
        ('id="s1" version="1" conflict="yes"', '<sx:history by="A"/>', "conflict is"),
        ('id="s1" version="1"', "", "no sx:history"),
        ('id="s1" version="1"', "<sx:history/>", "neither when nor by"),
        ('id="s1" version="1"', '<sx:history when="" by=""/>', "neither when nor by"),
        ('id="s1" version="1"', '<sx:history by="A"><sx:update/></sx:history>', "neither when nor by"),
        ('version="1"', '<sx:history by="A"/>', "id of sx:sync is missing"),
        ('id="s1" version="1"', '<sx:history by="a b"/>', "Namespace Specific String"),
    ],
)
def test_faulty_sse_refuses_the_item(sync, inside, reason):
    """[SSE-017 to SSE-022] [SSE-024] [SSE-004]"""
    assert reason in refused(sse(sync, inside))


def test_empty_booleans_are_valid_in_sse():
    """[SSE-019] [SSE-020] [A-84] and carried as they came [SSE-032]."""
    found = read(sse('id="s1" version="1" deleted="" conflict=""')).version

    assert (found.deleted, found.conflict) == (Flag.EMPTY, Flag.EMPTY)
    assert not found.deleted.on
    assert b'deleted="" conflict=""' in write_item(found, SSE)


@pytest.mark.parametrize("row", GOLDEN["sse"]["dates"], ids=lambda row: row["text"])
def test_dates_of_sse(row):
    """[SSE-003] [A-74] GMT and four digits of the year; the weekday is never checked."""
    expected = None if row["value"] is None else at(row["value"])

    assert SSE_LEXIS.read_time(row["text"]) == expected


def test_endpoints_are_compared_as_the_parser_normalised_them():
    """[A-75] references are resolved before anything is compared."""
    one, two = (read(sse(inside=f'<sx:history by="{by}"/>')).version for by in ("A&#66;", "AB"))

    assert one == two


def test_lenient_reading_converts_other_zones():
    """[A-85] strict readers refuse the item; two digits of the year stay refused."""
    raw = sse(inside='<sx:history when="Sat, 21 May 2005 11:43:33 +0200" by="A"/>')

    assert "when is" in refused(raw)
    found = read(raw, lenient=True).version
    assert found.top.when_us == at("09:43")
    for zone in ("UT", "Z", "+0000"):
        assert LENIENT_SSE_LEXIS.read_time(f"21 May 2005 09:43:33 {zone}") == at("09:43")
    assert LENIENT_SSE_LEXIS.read_time("Sat, 21 May 05 09:43:33 GMT") is None


def test_markup_of_other_services_is_written_unchanged():
    """[SSE-032] dates in their own spelling; ours in one [SSE-003]."""
    inside = (
        '<sx:history when="21 May 2005 09:43 GMT" by="A"><sx:update when="Tue, 1 Nov 2004 09:43:33 GMT" by="B"/>'
        "</sx:history>"
    )

    written = write_item(read(sse(inside=inside)).version, SSE)

    assert b'when="21 May 2005 09:43 GMT"' in written
    assert b'when="Tue, 1 Nov 2004 09:43:33 GMT"' in written
    created = SSE.create("s1", b"<item></item>", Edit(at("09:43"), "A"))
    assert b'when="Sat, 21 May 2005 09:43:33 GMT"' in write_item(created, SSE)


def test_conflict_list_round_trip():
    """[SSE-045] [SSE-046] [SSE-048] content of any kind comes along."""
    inside = (
        '<sx:history by="A"/><sx:conflicts><sx:conflict version="1" by="B" when="Sat, 21 May 2005 09:43:33 GMT">'
        "text <item><title>old</title></item></sx:conflict></sx:conflicts>"
    )

    found = read(sse(inside=inside))

    assert [one.payload for one in found.version.conflicts] == [b'text <item xmlns=""><title>old</title></item>']
    assert read(write_item(found.version, SSE)) == found
    assert b"conflicts" not in write_item(read(sse()).version, SSE)


@pytest.mark.parametrize("faulty", ['by="B"', 'version="x" by="B"', 'version="1"', 'version="1" when="x" by="B"'])
def test_faulty_conflict_of_a_list_is_left_out_alone(faulty):
    """[SSE-047] the item is merged all the same."""
    inside = (
        f'<sx:history by="A"/><sx:conflicts><sx:conflict {faulty}/><sx:conflict version="1" by="C"/></sx:conflicts>'
    )

    found = read(sse(inside=inside))

    assert [one.top.by for one in found.version.conflicts] == ["C"]
    assert "ignored" in found.notes[0]


def test_leftover_of_the_document_is_foreign():
    """[A-81] sx:endpoint is not defined anywhere."""
    found = read(sse(inside='<sx:history by="A"/><sx:endpoint by="Q"/>')).version

    assert b"endpoint" in found.extra.children[0]


def sharing(attributes, related="", namespace=FEEDSYNC_NS):
    return read_sharing(
        etree.fromstring(f'<sx:sharing xmlns:sx="{namespace}" {attributes}>{related}</sx:sharing>'.encode())
    )


def test_sharing_of_the_document():
    """[FS-013] [FS-019] [FS-020] bounds as they are, related feeds with their kinds."""
    found, notes = sharing(
        'since="2005-02-13T18:30:02Z" until="2005-05-23T18:30:02Z" expires="2005-05-24T00:00:00Z"',
        '<sx:related link="http://example.com/all.xml" type="complete"/>'
        '<sx:related link="http://example.com/B.xml" type="aggregated" title="To Do List (Jacks Copy)"/>',
    )

    assert notes == []
    assert (found.since, found.until) == ("2005-02-13T18:30:02Z", "2005-05-23T18:30:02Z")
    assert found.expires_us == at("2005-05-24T00:00:00Z")
    assert found.related == (
        RelatedFeed("http://example.com/all.xml", RelatedKind.COMPLETE),
        RelatedFeed("http://example.com/B.xml", RelatedKind.AGGREGATED, "To Do List (Jacks Copy)"),
    )
    assert read_sharing(None) == (NO_SHARING, [])


@pytest.mark.parametrize("attributes", ['since="1"', 'until="1"', 'since="" until="1"', 'since="1" until=""'])
def test_bound_without_the_other_is_ignored_and_told(attributes):
    """[FS-015] [FS-016] [FS-006]"""
    found, notes = sharing(attributes)

    assert (found.since, found.until) == (None, None)
    assert notes


@pytest.mark.parametrize(
    "related",
    [
        'link="all.xml" type="complete"', 'link="http://a.example/#x" type="complete"', 'type="complete"',
        'link="http://a.example/" type="Complete"', 'link="http://a.example/"', 'link="http://a.example/" type="other"',
    ],
)  # fmt: skip
def test_related_that_is_none_is_ignored_and_told(related):
    """[FS-018] [FS-020] [SSE-011] [SSE-012]"""
    for namespace, attributes in ((FEEDSYNC_NS, ""), (SSE_NS, 'version="0.91"')):
        found, notes = sharing(attributes, f"<sx:related {related}/>", namespace)
        assert found.related == ()
        assert len(notes) == 1


def test_title_is_plain_text():
    """[FS-011] [FS-019] shown as the text it is."""
    found, _ = sharing("", '<sx:related link="http://a.example/" type="complete" title="&lt;b&gt;x&lt;/b&gt;&#10;y"/>')

    assert found.related[0].title == "<b>x</b> y"


def test_faulty_expiry_is_ignored_and_told():
    """[FS-017] items are merged all the same."""
    found, notes = sharing('expires="soon"')

    assert found.expires_us is None
    assert "ignored" in notes[0]


def test_sharing_of_sse():
    """[SSE-005] [SSE-006] [SSE-007] [SSE-009] [SSE-010] [SSE-013] empty since is the beginning of time."""
    found, notes = sharing(
        'since="" until="Tue, 24 May 2005 09:43:33 GMT" version="0.91" window="14"',
        '<sx:related link="http://a.example/" type="complete" since="Tue, 24 May 2005 09:43:33 GMT"/>',
        SSE_NS,
    )

    assert notes == []
    assert (found.since, found.until, found.window_days) == (None, "2005-05-24T09:43:33.000000Z", 14)
    assert found.complete_link == ""


@pytest.mark.parametrize(("version_", "read_"), [("", "0.91"), ('version="0.92"', "0.92")])
def test_version_that_is_missing_or_other_is_told(version_, read_):
    """[SSE-009] [A-83] and read."""
    found, notes = sharing(f'{version_} window="x"', "", SSE_NS)

    assert found.version == read_
    assert len(notes) == 2


def test_sharing_is_written():
    """[FS-081] [FS-077] for feeds of our own."""
    own = FeedWindow(0, 1_000_000).sharing("http://a.example/all.xml")

    assert read_sharing(etree.fromstring(write_sharing(own))) == (own, [])
    assert read_sharing(etree.fromstring(write_sharing(Sharing(expires_us=5_000_000))))[0].expires_us == 5_000_000


def test_checking_alone_leaves_the_item_as_it_is():
    """[A-52] what only asks does not change."""
    node = etree.fromstring(entry())

    assert read_item(node, payload=False).version.payload == b""
    assert etree.tostring(node) == etree.tostring(etree.fromstring(entry()))


@pytest.mark.parametrize("when_us", [0, 1304942400_999_999, 253402300799_000_000])
def test_first_sync_data_is_what_the_general_writer_writes(when_us: int) -> None:
    """[FS-041] [FS-044] The short way for every new item says the same as the long one."""
    version = FEEDSYNC.create("a'b%20", b"", Edit(when_us, "feeds.example%2Fo'brien@example.net"))
    assert write_first("a'b%20", when_us, version.top.by) == write_sync(version, FEEDSYNC)


def test_long_texts_are_not_kept_in_memory():
    """A stranger's document may have any number of long texts in place of dates and in attributes of others."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20):
            long = f"{number}{'x' * 100_000}"
            for syntax in (FEEDSYNC_LEXIS, SSE_LEXIS, LENIENT_SSE_LEXIS):
                assert syntax.read_time(long) is None
            assert "when is" in refused(entry(inside=f'<sx:history sequence="1" when="{long}"/>'))
            assert read(entry(inside=f'<sx:history sequence="1" by="A" other="{long}"/>')) is not None
        gc.collect()  # what the errors refer to
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 500_000
