"""Every example of the two documents, as printed: it is read, and our own operations come to the same."""

from itertools import pairwise

import pytest
from lxml import etree

from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.sync.feedsync import FEEDSYNC
from smartfeeds.sync.lexis import SSE_NS
from smartfeeds.sync.merging import Outcome, merge
from smartfeeds.sync.record import Edit
from smartfeeds.sync.sharing import RelatedFeed, RelatedKind
from smartfeeds.sync.sharing_markup import read_sharing
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.writing import write_item
from support.sync import at, parse_item, stamp

FORMS = ("atom", "rss")
CHAIN = ("4 12:43 GPM7383", "3 11:43 JEO2000", "2 10:43 REO1750", "1 09:43 REO1750")
RIVAL = ("4 12:03 JEO2000", *CHAIN[1:])
SYNC_ID = "item_1_myapp_2005-05-21T11:43:33Z"


def printed(form, content, *history, title="Buy groceries", inside=b""):
    """An item as FeedSync prints it."""
    records = ""
    for one in history:
        sequence, time, by = one.split()
        records += f'<sx:history sequence="{sequence}" when="2005-05-21T{time}:33Z" by="{by}"/>\n  '
    sync = f'<sx:sync id="{SYNC_ID}" updates="{history[0].split()[0]}">\n  {records}{inside.decode()}</sx:sync>\n'
    if form == "rss":
        return (
            f'<item xmlns:sx="{FEEDSYNC_NS}">\n<title>{title}</title>\n<description>{content}</description>\n'
            f"{sync}</item>"
        ).encode()
    return (
        f'<entry xmlns="http://www.w3.org/2005/Atom" xmlns:sx="{FEEDSYNC_NS}">\n<title>{title}</title>\n'
        f"<content>{content}</content>\n<updated>2005-05-21T{history[0].split()[1]}:33Z</updated>\n"
        f"<id>urn:uuid:60a76c80-d399-11d9-b93C-0003939e0aa0</id>\n<author>\n   <name>Ray Ozzie</name>\n</author>\n"
        f"{sync}</entry>"
    ).encode()


def read(raw):
    return parse_item(raw).version


def rival(form):
    return printed(form, "Get milk, eggs, butter and rolls", *RIVAL)


def conflicted(form):
    inside = b"<sx:conflicts>" + rival(form) + b"</sx:conflicts>"
    return printed(
        form, "Get milk, eggs, butter and bread", *CHAIN, title="Buy groceries - DONE", inside=inside,
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_feedsync_creation_and_updates(form):
    """[FS-041] [FS-043] [FS-046] [FS-047] [FS-048] [A-40] 2.4 and 3.2, examples #1 and #2: 09:43, 10:43, 11:43."""
    steps = [
        read(printed(form, "Get milk and eggs", *CHAIN[3:])),
        read(printed(form, "Get milk, eggs and butter", *CHAIN[2:])),
        read(printed(form, "Get milk, eggs, butter and bread", *CHAIN[1:])),
    ]

    assert FEEDSYNC.create(SYNC_ID, steps[0].payload, Edit(at("09:43"), "REO1750")) == steps[0]
    assert FEEDSYNC.update(steps[0], Edit(at("10:43"), "REO1750"), steps[1].payload) == steps[1]
    assert FEEDSYNC.update(steps[1], Edit(at("11:43"), "JEO2000"), steps[2].payload) == steps[2]
    assert [merge(FEEDSYNC, *pair).outcome for pair in pairwise(steps)] == [Outcome.UPDATED] * 2


@pytest.mark.parametrize("form", FORMS)
def test_feedsync_conflict(form):
    """[FS-039] [FS-062] [FS-067] [A-40] 3.3, with the time of the RSS example: GPM7383 wins."""
    expected = read(conflicted(form))
    winner, loser = expected._replace(conflicts=()), read(rival(form))

    assert merge(FEEDSYNC, winner, loser).version == merge(FEEDSYNC, loser, winner).version == expected
    assert read(write_item(expected, FEEDSYNC)) == expected


@pytest.mark.parametrize("form", FORMS)
def test_feedsync_conflict_with_the_times_of_the_atom_example(form):
    """[A-40] it prints 12:43:33 for both, by which the other one wins."""
    raw = rival(form).replace(b"T12:03", b"T12:43")

    assert merge(FEEDSYNC, read(conflicted(form))._replace(conflicts=()), read(raw)).version.top.by == "JEO2000"


@pytest.mark.parametrize("form", FORMS)
def test_feedsync_resolution(form):
    """[FS-070] [FS-071] [FS-072] [FS-073] [A-42] 3.4: the loser's record below the new one."""
    history = ("5 12:53 GPM7383", RIVAL[0], *CHAIN)
    expected = read(printed(form, "Get milk, eggs, butter and bread", *history, title="Buy groceries - DONE"))
    item = read(conflicted(form))

    assert FEEDSYNC.resolve(item, Edit(at("12:53"), "GPM7383"), item.conflicts, expected.payload) == expected


SSE_ITEM = (
    '<item xmlns:sx="%s">\n<description>This is a test item</description>\n'
    '<sx:sync id="0a7903db47fb0ae8" version="%d"%s>\n%s\n</sx:sync>\n</item>'
)
DAYS = {
    21: "Sat, 21 May 2005", 22: "Sun, 22 May 2005", 23: "Mon, 23 May 2005", 24: "Tue, 24 May 2005",
    25: "Wed, 25 May 2005", 26: "Thu, 26 May 2005", 27: "Fri, 27 May 2005",
}  # fmt: skip


def sse(version, *days, mark="", behind=""):
    """An item as SSE prints it, changed on these days."""
    first, *older = [f'when="{DAYS[day]} 09:43:33 GMT" by="REO1750"' for day in days]
    updates = "\n".join(f"<sx:update {one} />" for one in older)
    return read((SSE_ITEM % (SSE_NS, version, mark, f"<sx:history {first}>{updates}</sx:history>{behind}")).encode())


def on(day):
    return Edit(at(f"2005-05-{day}T09:43:33Z"), "REO1750")


def test_sse_creation_and_updates():
    """[SSE-031] [SSE-033] 4.1 and 4.2, printed whole up to the fourth version."""
    created, fourth = sse(1, 21), sse(4, 24, 23, 22, 21)
    item = SSE.create("0a7903db47fb0ae8", created.payload, on(21))
    assert item == created
    for day in (22, 23, 24):
        item = SSE.update(item, on(day))
    assert item == fourth


def test_sse_history_that_others_have_cut():
    """[SSE-032] [SSE-034] [SSE-041] 4.2 prints the sixth version with four records: it is taken over as it came, and
    the next change keeps what is left."""
    fourth, sixth, seventh = sse(4, 24, 23, 22, 21), sse(6, 26, 25, 24, 23), sse(7, 27, 26, 25, 24, 23)

    for one, other in [(fourth, sixth), (sixth, fourth)]:
        assert merge(SSE, one, other).version == sixth
    assert merge(SSE, fourth, sixth).outcome is Outcome.UPDATED
    assert merge(SSE, sse(2, 22, 21), sixth).version == sixth, "a record that was cut off shows no conflict"
    assert write_item(sixth, SSE).count(b"<sx:update ") == 3
    assert SSE.update(sixth, on(27)) == seventh


def test_sse_conflict():
    """[SSE-042] [SSE-046] [SSE-048] 5.2: the mark and the list; a comment is no content."""
    behind = (
        '<sx:conflicts>\n<sx:conflict when="Tue, 24 May 2005 08:00:11 GMT" by="GPM7383" version="4">\n'
        "<!--conflict data here -->\n</sx:conflict>\n</sx:conflicts>"
    )

    item = sse(4, 24, 23, mark=' conflict="true"', behind=behind)

    assert item.conflict.on
    (found,) = item.conflicts
    assert (found.counter, found.top, found.payload) == (4, stamp("4 2005-05-24T08:00:11Z GPM7383"), b"")
    assert read(write_item(item, SSE)) == item


def test_sse_sharing():
    """[SSE-006] [SSE-009] [SSE-011] [SSE-012] 2.2: since, until, the complete feed and two aggregated ones."""
    node = etree.fromstring(
        f'<sx:sharing xmlns:sx="{SSE_NS}" since="Tue, 1 Nov 2004 09:43:33 GMT" until="Fri, 1 Mar 2005 09:43:33 GMT"'
        ' version="0.91">\n<sx:related link="http://x.com/all.xml" type="complete" />\n'
        '<sx:related link="http://y.net/B.xml" type="aggregated" title="Family Contacts (Dad\'s Copy)" />\n'
        '<sx:related link="http://y.net/C.xml" type="aggregated" title="Family Contacts (Suzy\'s Copy)" />\n'
        "</sx:sharing>"
    )

    found, notes = read_sharing(node)

    assert (found.since, found.until) == ("2004-11-01T09:43:33.000000Z", "2005-03-01T09:43:33.000000Z")
    assert found.related == (
        RelatedFeed("http://x.com/all.xml", RelatedKind.COMPLETE),
        RelatedFeed("http://y.net/B.xml", RelatedKind.AGGREGATED, "Family Contacts (Dad's Copy)"),
        RelatedFeed("http://y.net/C.xml", RelatedKind.AGGREGATED, "Family Contacts (Suzy's Copy)"),
    )
    assert notes == []
