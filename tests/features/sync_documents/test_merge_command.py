"""`smartfeeds merge`: documents, reports, how it ends."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from lxml import etree

from smartfeeds.app.formats import read_document
from smartfeeds.cli.reading import file_spool
from smartfeeds.console import Exit
from smartfeeds.formats.opml import read_outline
from support.shell import Run, shell_in

CORPUS = Path(__file__).parents[2] / "corpus" / "data"
EMPTY = b'<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title></feed>'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder with the documents of the corpus that have sync data."""
    invoke = shell_in(tmp_path, monkeypatch)
    for path in (*CORPUS.glob("sm_fs_*"), *CORPUS.glob("sm_sse_*"), *CORPUS.glob("fv__ext__feedsync__spec*")):
        shutil.copy(path, tmp_path / path.name.removeprefix("fv__ext__feedsync__"))
    Path("empty.xml").write_bytes(EMPTY)

    return partial(invoke, "merge")


def test_merge_writes_the_document_and_tells_what_it_did(run: Run) -> None:
    """[FS-059] [FS-062] standard output holds the document and nothing else."""
    result = run("sm_fs_pair1_a.xml", "sm_fs_pair1_b.xml")

    assert [item.id for item in read_document(result.stdout_bytes).items] == ["urn:x-test:e-i1"]
    assert b"sx:conflicts" in result.stdout_bytes
    assert "1 conflict" in result.stderr


def test_merge_is_the_same_in_both_directions(run: Run) -> None:
    """[FS-068]"""
    entries = [
        etree.fromstring(run(*pair).stdout_bytes).find("{http://www.w3.org/2005/Atom}entry")
        for pair in (("sm_fs_pair1_a.xml", "sm_fs_pair1_b.xml"), ("sm_fs_pair1_b.xml", "sm_fs_pair1_a.xml"))
    ]
    outputs = [etree.tostring(entry, method="c14n", exclusive=True, with_tail=False) for entry in entries]

    assert outputs[0] == outputs[1]


def test_merge_into_a_file_reports_as_json(run: Run) -> None:
    """[A-52] [FS-021] [FS-079] refused items with their places and reasons; hints of the publisher."""
    report = json.loads(run("empty.xml", "sm_fs_invalid_values.xml", "--output", "out.xml", "--json").stdout)

    assert (report["added"], report["updated"], report["conflict"], report["unchanged"]) == (1, 0, 0, 0)
    assert [one["item"] for one in report["refused"]] == list(range(2, 9))
    assert len(read_document(Path("out.xml").read_bytes()).items) == 1
    report = json.loads(run("empty.xml", "spec-example-atom.xml", "--output", "out.xml", "--json").stdout)
    assert any("http://example.com/all.xml" in note for note in report["notes"])
    assert any("http://example.com/B.xml" in note for note in report["notes"])


def test_merge_of_outlines(run: Run) -> None:
    """[SSE-002] [SSE-027] order and tree stay."""
    result = run("sm_sse_opml_ordered.opml", "sm_sse_opml_ordered.opml")

    assert [one.text for one in read_outline(result.stdout_bytes).outlines] == ["A", "C", "no sync"]
    assert "3 unchanged" in result.stderr


def test_merge_of_sse_feeds(run: Run) -> None:
    """[SSE-001] [SSE-042]"""
    assert b'conflict="true"' in run("sm_sse_rss_http_ns.xml", "sm_sse_rss_https_ns.xml").stdout_bytes


def test_merge_by_gives_sync_data_to_what_has_none(run: Run) -> None:
    """[FS-041] [A-51] [FS-005] [SSE-023] [FS-038] the endpoint is encoded, and the time is told too."""
    result = run("sm_fs_mixed_items.xml", "empty.xml", "--by", "alice@example.net/Phone 1")

    assert 'by="alice@example.net%2FPhone%201"' in result.stdout
    assert 'id="urn:x-test:plain" updates="1"' in result.stdout
    assert "1 received sync data" in result.stderr


def test_merge_reads_standard_input_once(run: Run) -> None:
    data = Path("sm_fs_pair1_b.xml").read_bytes()

    assert b"sx:conflicts" in run("sm_fs_pair1_a.xml", "-", stdin=data).stdout_bytes
    run("-", "-", code=Exit.USAGE, stdin=data)


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("sm_sse_opml_ordered.opml", "empty.xml"), Exit.CONFIG, "cannot merge an outline with a feed"),
        (("empty.xml", "cut.xml"), Exit.FAILED, "cut.xml: the document"),
        (("bomb.xml", "empty.xml"), Exit.FAILED, "bomb.xml: the document"),
        (("empty.xml", "page.html"), Exit.USAGE, "the root of the document is html"),
        (("empty.xml", "empty.xml", "--by", ""), Exit.CONFIG, "--by is empty"),
        (
            ("sm_sse_opml_ordered.opml", "sm_sse_opml_ordered.opml", "--by", "me"),
            Exit.CONFIG,
            "--by is not supported for OPML",
        ),
        (("sm_sse_opml_ordered.opml", "cut.opml"), Exit.FAILED, "cut.opml: the document"),
    ],
)
def test_merge_refuses_what_it_cannot_do_and_writes_nothing(
    run: Run, arguments: tuple[str, ...], code: Exit, reason: str
) -> None:
    """[A-52] documents that are cut, bombs, other formats: one line that says what is wrong."""
    Path("cut.xml").write_bytes(Path("sm_fs_pair1_a.xml").read_bytes()[:-30])
    Path("cut.opml").write_bytes(Path("sm_sse_opml_ordered.opml").read_bytes()[:-30])
    Path("page.html").write_text("<html><body/></html>")
    Path("bomb.xml").write_bytes(
        b'<!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        b'<feed xmlns="http://www.w3.org/2005/Atom"><title>&b;</title></feed>'
    )

    result = run(*arguments, "--output", "out.xml", code=code)

    assert reason in result.stderr
    assert not Path("out.xml").exists()


def test_merge_that_could_take_nothing_fails(run: Run) -> None:
    """[A-52]"""
    Path("bad.xml").write_bytes(
        b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><s:sync xmlns:s="http://feedsync.org/2007/feedsync"/></entry></feed>'
    )

    assert "refused item 1 of INCOMING" in run("empty.xml", "bad.xml", code=Exit.FAILED).stderr


def test_merge_report_needs_a_file(run: Run) -> None:
    run("empty.xml", "empty.xml", "--json", code=Exit.USAGE)


def test_merge_shows_the_first_of_many_faults(run: Run) -> None:
    """[A-52] a feed full of faults does not fill the terminal; the report has them."""
    entries = b'<entry><s:sync xmlns:s="http://feedsync.org/2007/feedsync" id="a b"/></entry>' * 30
    Path("bad.xml").write_bytes(b'<feed xmlns="http://www.w3.org/2005/Atom">' + entries + b"</feed>")

    assert "and 10 more" in run("empty.xml", "bad.xml", code=Exit.FAILED).stderr
    result = run("empty.xml", "bad.xml", "--output", "o.xml", "--json", code=Exit.FAILED)
    assert len(json.loads(result.stdout)["refused"]) == 30


def test_merge_lenient(run: Run) -> None:
    """[A-85] the switch of the command line."""
    Path("zone.xml").write_bytes(Path("sm_sse_rss_https_ns.xml").read_bytes().replace(b"33 GMT", b"33 UT"))

    run("empty.xml", "zone.xml", code=Exit.FAILED)
    assert "1 added" in run("empty.xml", "zone.xml", "--lenient").stderr


def test_merge_of_feeds_larger_than_what_waits_in_memory(run: Run) -> None:
    """[A-55] items go through the file on the disk, and merged ones are found at their new place there."""
    stamp = '<s:history sequence="{0}" when="2026-01-01T00:00:0{0}Z" by="{1}"/>'
    for name, by in (("a.xml", "A"), ("b.xml", "B")):
        entries = (
            f'<entry><id>urn:x:{n}</id><title>{by}{n}</title><summary>{str(n) * 1_000}</summary><s:sync id="i{n}" '
            f'updates="2">{stamp.format(2, by)}{stamp.format(1, "C")}</s:sync></entry>'
            for n in range(400)
        )
        Path(name).write_text(
            '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:s="http://feedsync.org/2007/feedsync">'
            f"{''.join(entries)}</feed>"
        )

    report = json.loads(run("a.xml", "b.xml", "--output", "out.xml", "--json").stdout)

    assert (report["conflict"], report["conflicts"]) == (400, 400)
    assert Path("out.xml").stat().st_size > 1_024 * 1_024
    found = [(item.id, item.payload) for item in read_document(Path("out.xml").read_bytes()).items]
    assert [name for name, _ in found] == [f"urn:x:{n}" for n in range(400)]
    assert all(f"<title>B{n}</title>".encode() in payload for n, (_, payload) in enumerate(found))


def test_spool_returns_each_item_in_any_order() -> None:
    """Items on disk, in memory, across blocks, and larger than a block; some are read before others are written."""
    sizes = [0, 1, 700, 40_000, 900, 70_000, 3, 15_000, 16_384, 16_385] * 4
    items = [bytes([number]) * size for number, size in enumerate(sizes)]
    with file_spool() as spool:
        offsets: list[int] = []
        for number, item in enumerate(items):
            offsets.append(spool.append(item))
            earlier = number // 2
            assert spool.read(offsets[earlier], sizes[earlier]) == items[earlier]
        forwards = list(range(len(items)))
        for order in (forwards, forwards[::-1], forwards[::3] + forwards[1::3]):
            assert [spool.read(offsets[number], sizes[number]) for number in order] == [items[n] for n in order]
