"""Outlines with sync data that have very many of them."""

from smartfeeds.sync.joining import JoinReport
from smartfeeds.sync.merging import Outcome
from smartfeeds.sync.sync_outline import merge_outlines, read_sync_outline, write_sync_outline
from support.effort import runs

NS = "https://www.microsoft.com/schemas/rss/sse"
COUNT = runs(20_000)


def outline(number: int, version: int) -> str:
    updates = "".join(f"<sx:update when='Sat, 21 May 2005 0{n}:00:00 GMT' by='E1'/>" for n in range(version - 1, 0, -1))
    history = f"<sx:history when='Sat, 21 May 2005 0{version}:00:00 GMT' by='E1'>{updates}</sx:history>"
    return f"<outline text='n{number}'><sx:sync id='n{number}' version='{version}'>{history}</sx:sync></outline>"


def document(*outlines: str) -> bytes:
    head = f"<opml version='1.0' xmlns:sx='{NS}'><head><title>T</title></head>"
    return f"{head}<body>{''.join(outlines)}</body></opml>".encode()


def test_many_outlines_merge_in_good_time() -> None:
    """[SSE-027] On each side, every second one changed there, and a few without sync data here."""
    plain = (f"<outline text='p{number}'/>" for number in range(COUNT // 20))
    here = document(*(outline(number, 1) for number in range(COUNT)), *plain)
    there = document(*(outline(number, 1 + number % 2) for number in range(COUNT)))
    report = JoinReport()
    merged = merge_outlines(read_sync_outline(here), read_sync_outline(there), report)

    assert b"".join(write_sync_outline(merged)).count(b"<outline") == COUNT + COUNT // 20
    assert report.outcomes == {Outcome.UNCHANGED: COUNT // 2, Outcome.UPDATED: COUNT // 2}
