"""OPML documents with sync data."""

import pytest

from smartfeeds.errors import FeedError
from smartfeeds.sync.joining import JoinReport
from smartfeeds.sync.merging import Outcome
from smartfeeds.sync.sync_outline import merge_outlines, read_sync_outline, write_sync_outline
from smartfeeds.sync.trees import walk
from support.sync import CORPUS

NS = "https://www.microsoft.com/schemas/rss/sse"


def node(sync_id, *children, version=1, by="E1", text=""):
    older = "".join(f'<sx:update by="E1" when="Sat, 21 May 2005 0{n}:00:00 GMT"/>' for n in range(version - 1, 0, -1))
    return (
        f'<outline text="{text or sync_id}"><sx:sync id="{sync_id}" version="{version}">'
        f'<sx:history when="Sat, 21 May 2005 0{version}:00:00 GMT" by="{by}">{older}</sx:history></sx:sync>'
        f"{''.join(children)}</outline>"
    )


def plain(text, *children):
    return f'<outline text="{text}">{"".join(children)}</outline>'


def opml(*nodes, head=""):
    return (
        f'<opml version="1.0" xmlns:sx="{NS}"><head><title>T</title>{head}</head><body>{"".join(nodes)}</body></opml>'
    ).encode()


def merged(local, incoming):
    report = JoinReport()
    result = merge_outlines(read_sync_outline(local), read_sync_outline(incoming), report)
    return b"".join(write_sync_outline(result)), report


def shape(data):
    """The outline as indented texts."""
    read = read_sync_outline(data)
    texts = {key: raw.split(b'"')[1].decode() for key, raw in read.plain.items()}
    return [f"{'-' * level}{texts.get(key, key)}" for level, key in walk(read.full)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AT&T", "AT&amp;T"),
        ("Caf&eacute;", "Café"),
        ("a&nbsp;b", "a\u00a0b"),
        ("a\u0008b", "ab"),
        ("&#8;x", "x"),
        ("a?b=1&c=2", "a?b=1&amp;c=2"),
    ],
)
def test_list_without_sync_data_is_read_with_its_faults(text, expected):
    """No version is in it that a repair could change. With sync data the same fault is an error."""
    read = read_sync_outline(opml(plain(text)))
    assert [raw.split(b'"')[1].decode() for raw in read.plain.values()] == [expected]
    assert read.notes
    for lines in ([plain(text), node("a")], [node("a", text=text)], [node("a", plain(text))]):
        with pytest.raises(FeedError):
            read_sync_outline(opml(*lines))


def test_list_that_is_cut_is_no_list():
    with pytest.raises(FeedError, match="not well-formed"):
        read_sync_outline(opml(plain("a"), plain("b"))[:-30])


def test_order_and_tree_are_kept():
    """[SSE-002] [SSE-016] [SSE-027] the corpus outline, merged with itself and written again."""
    data = (CORPUS / "sm_sse_opml_ordered.opml").read_bytes()

    written, report = merged(data, data)

    assert shape(written) == shape(data) == ["a", "-b", "c", "no sync"]
    assert report.outcomes == {Outcome.UNCHANGED: 3}
    assert merged(written, data)[0] == written


def test_additions_in_one_place_stand_by_id():
    """[SSE-029] [A-79] the same from either side."""
    a, b = opml(node("x"), node("a"), node("y")), opml(node("x"), node("b"), node("y"))

    assert shape(merged(a, b)[0]) == shape(merged(b, a)[0]) == ["x", "a", "b", "y"]


def test_move_and_edit_meet():
    """[SSE-028] [SSE-030] the parent moved there, the child was edited here."""
    here = opml(node("p", node("child", version=2, text="edited")), node("q"))
    there = opml(node("q", node("p", node("child"), version=2)))

    written, _ = merged(here, there)

    assert shape(written) == ["q", "-p", "--child"]
    assert b'text="edited"' in written
    assert shape(merged(there, here)[0]) == shape(written)


def test_cycle_is_cut_and_marked():
    """[SSE-043] [A-80] version and history stay; outlines below come along."""
    here = opml(node("b", node("a", node("x"), version=2)), node("z"))
    there = opml(node("a", node("b", version=2), node("x")), node("z"))

    written, report = merged(here, there)

    assert shape(written) == ["z", "a", "-b", "-x"]
    found = {sync_id: item.version for sync_id, item in read_sync_outline(written).items.items()}
    assert found["a"].conflict.on and found["a"].counter == 2
    assert not found["b"].conflict.on
    assert "among its own descendants" in report.notes[-1]
    assert shape(merged(there, here)[0]) == shape(written)


def test_plain_outlines_hang_where_they_were():
    """[A-80] [SSE-016] ours stay with what was in them; theirs are not taken, what is below them is."""
    here = opml(plain("head"), node("a", plain("note", node("c"))), plain("group", node("d")), node("e"))
    there = opml(node("a", node("c", version=2)), node("d"), plain("theirs", node("new")), node("e"))

    written, report = merged(here, there)

    assert shape(written) == ["head", "a", "-note", "--c", "group", "-d", "new", "e"]
    assert report.plain == 1


def test_plain_outline_is_left_by_what_moves():
    """[SSE-028] the group stays, empty."""
    here = opml(node("a"), plain("group", node("d")))
    there = opml(node("a", node("d", version=2)))

    assert shape(merged(here, there)[0]) == ["a", "-d", "group"]


def test_bad_outline_is_refused_alone():
    """[A-52] [SSE-018] told with its place; the others are merged, and ours stays where it is."""
    bad = opml(node("a"), node("b", node("c")).replace('version="1"', 'version="0"', 1), node("a"))

    _, report = merged(opml(), bad)
    written, _ = merged(bad, opml())

    assert [(one.index, one.document) for one in report.reasons] == [(1, "incoming"), (3, "incoming")]
    assert "another outline has the same id" in report.reasons[1].reason
    assert shape(merged(opml(), bad)[0]) == ["a", "c"]
    assert len(shape(written)) == 4


def test_tombstone_keeps_its_place():
    """[SSE-019] [A-151] marked, with what is below it."""
    gone = node("a", node("b"), version=2).replace('version="2"', 'version="2" deleted="true"')

    written, _ = merged(opml(node("a", node("b"))), opml(gone))

    assert shape(written) == ["a", "-b"]
    assert read_sync_outline(written).items["a"].version.deleted.on


def test_conflict_keeps_the_line_of_the_loser():
    """[SSE-045] [SSE-048] with its text."""
    written, _ = merged(opml(node("a", by="E1", text="mine")), opml(node("a", by="E2", text="theirs")))

    item = read_sync_outline(written).items["a"].version
    assert item.conflict.on
    assert b'text="mine"' in item.conflicts[0].payload


def test_other_dialect_is_refused():
    """[A-83]"""
    feedsync = (
        node("a")
        .replace("sx:", "f:")
        .replace('version="1"', 'updates="1"')
        .replace("<f:sync", '<f:sync xmlns:f="http://feedsync.org/2007/feedsync"')
        .replace("<f:history", '<f:history sequence="1"')
        .replace("Sat, 21 May 2005 01:00:00 GMT", "2005-05-21T01:00:00Z")
    )

    _, report = merged(opml(node("a")), opml(feedsync))

    assert "cannot be merged" in report.reasons[0].reason


def test_sharing_is_never_published_again():
    """[FS-014] [A-156] [SSE-005]"""
    data = opml(node("a"), head='<sx:sharing version="0.91" window="3"/>')

    assert read_sync_outline(data).sharing.window_days == 3
    assert b"sharing" not in merged(data, data)[0]


def test_merged_outline_has_the_limits_of_an_outline():
    """[A-55] chains that only both sides together make too long are refused."""
    here = opml(*(node(f"n{n:03d}", node(f"n{n + 1:03d}", version=2)) for n in range(0, 200, 2)))
    there = opml(node("n000"), *(node(f"n{n:03d}", node(f"n{n + 1:03d}", version=2)) for n in range(1, 200, 2)))

    with pytest.raises(FeedError, match="nested deeper than 128"):
        merged(here, there)
