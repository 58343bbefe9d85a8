"""Items of documents as Atom entries, whoever reads them."""

import pytest
from lxml import etree

from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.errors import FeedError
from smartfeeds.formats.additions import EXPORT_NS, FANOUT_NS
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.sync.arriving import in_atom, is_deletion_alone, read_arrived, read_plain
from smartfeeds.sync.document_reader import FeedReader
from smartfeeds.sync.joining import Joiner, read_feed, write_feed
from smartfeeds.sync.lexis import SSE_NS
from smartfeeds.sync.writing import write_item
from support.sync import CORPUS, MemorySpool

ATOM = "http://www.w3.org/2005/Atom"
SYNC = (
    f'<sx:sync xmlns:sx="{FEEDSYNC_NS}" id="i1" updates="1">'
    '<sx:history sequence="1" when="2005-05-21T11:00:00Z" by="A"/>{}</sx:sync>'
)
SSE = (
    f'<sx:sync xmlns:sx="{SSE_NS}" id="i1" version="1">'
    '<sx:history when="Sat, 21 May 2005 09:43:33 GMT" by="A"/>{}</sx:sync>'
)
CONFLICT = '<sx:conflicts><sx:conflict version="1" by="B">{}</sx:conflict></sx:conflicts>'


def rss(inside: str, sync: str = SYNC.format("")) -> bytes:
    return f"<item>{inside}{sync}</item>".encode()


def atom(inside: str, sync: str = SYNC.format("")) -> bytes:
    return f'<entry xmlns="{ATOM}"><id>urn:x:1</id>{inside}{sync}</entry>'.encode()


def entry_of(raw: bytes):
    """The entry that an item becomes."""
    return etree.fromstring(read_arrived(raw)[1].version.payload)


def text_at(raw: bytes, name: str) -> str:
    return entry_of(raw).findtext(f"{{{ATOM}}}{name}") or ""


def items(name: str) -> list[bytes]:
    reader = FeedReader()
    return [piece.raw for piece in (*reader.feed((CORPUS / name).read_bytes()), *reader.close())]


def test_entry_stays_as_it_is_but_for_what_a_smart_feed_says_of_it() -> None:
    """[FS-012] [A-154] The item id is taken out and told, ordering keys are nobody else's."""
    own = f'<id xmlns="{FANOUT_NS}"> a b </id><keys xmlns="{EXPORT_NS}" created="1" modified="2"></keys>'
    plain = read_arrived(atom("<title>t</title><x xmlns='urn:x'/>"))
    named = read_arrived(atom(f"{own}<title>t</title><x xmlns='urn:x'/>"))

    assert (plain[0], named[0]) == ("", "a b")
    assert plain[1].version == named[1].version
    assert b"<x xmlns" in plain[1].version.payload


def test_item_id_that_nobody_could_have_is_not_taken() -> None:
    """[A-154]"""
    own = f'<id xmlns="{FANOUT_NS}">{"x" * (MAX_ID_BYTES + 1)}</id>'

    assert read_arrived(atom(own))[0] == ""


@pytest.mark.parametrize(
    ("inside", "atom_id"),
    [
        ("<guid>http://x.example/1</guid>", "http://x.example/1"),
        ("<guid isPermaLink='false'>one 1</guid>", "urn:x-smartfeeds:one%201"),
        ("", "urn:x-smartfeeds:i1"),
        ("<guid/>", "urn:x-smartfeeds:i1"),
        ("<link>http://x.example/page</link>", "urn:x-smartfeeds:i1"),
    ],
    ids=["guid", "guid that is no address", "none", "empty", "link"],
)
def test_rss_item_keeps_its_own_id_else_the_sync_id_stands_for_it(inside: str, atom_id: str) -> None:
    """[FS-002] [FS-026] Two versions of an item without a guid have one atom:id, whatever their content is."""
    for text in ("one", "two"):
        assert text_at(rss(f"<title>{text}</title>{inside}"), "id") == atom_id
        assert text_at(rss(f"<title>{text}</title>{inside}"), "title") == text


def test_rss_in_a_namespace_is_the_same_item() -> None:
    """[FS-002]"""
    raw = rss("<title>t</title><link>http://x.example/page</link>")
    namespaced = raw.replace(b"<item>", b'<item xmlns="http://backend.userland.com/rss2">')

    assert read_arrived(raw)[1].version == read_arrived(namespaced)[1].version


def test_conflicts_of_an_rss_item_are_entries_too() -> None:
    """[FS-002] [FS-039]"""
    other = SYNC.format("").replace('by="A"', 'by="B"')
    conflicts = f"<sx:conflicts><item><title>theirs</title>{other}</item></sx:conflicts>"
    found = read_arrived(rss("<title>ours</title>", SYNC.format(conflicts)))[1]

    (conflict,) = found.version.conflicts
    assert b"<title>theirs</title>" in conflict.payload and conflict.payload.startswith(b"<entry")


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("<item><title>lost</title></item>", "<title>lost</title>"),
        (f'<entry xmlns="{ATOM}"><id>urn:x:1</id><title>lost</title></entry>', "<title>lost</title>"),
        ("", "<content></content>"),
        ("a &lt; b", "<content>a &lt; b</content>"),
        ("<x xmlns='urn:x'>1</x>", '<content type="application/xml"><x xmlns="urn:x">1</x></content>'),
        ("<y/>", '<content type="application/xml"><y xmlns=""></y></content>'),
        ("<title>1</title><z/>", '<title xmlns="">1</title><z xmlns=""></z></data></content>'),
        ("a<y/>b", '>a<y xmlns=""></y>b</data></content>'),
    ],
    ids=["item", "entry", "nothing", "text", "element", "no namespace", "several", "mixed"],
)
def test_any_content_of_an_sse_conflict_becomes_an_entry(content: str, kept: str) -> None:
    """[SSE-045] [SSE-048] Its children are up to who made the conflict; none is lost, and none keeps the item out."""
    found = read_arrived(rss("<title>ours</title>", SSE.format(CONFLICT.format(content))))[1]

    (conflict,) = found.version.conflicts
    assert conflict.payload.startswith(b"<entry") and kept in conflict.payload.decode()
    assert found.namespace == SSE_NS


def test_items_in_atom_stay_what_they_are() -> None:
    """[FS-002] Converting again changes nothing, so a document that went through here is read as the same versions."""
    names = [path.name for pattern in ("sm_fs_*", "sm_sse_*.xml", "*spec-example*") for path in CORPUS.glob(pattern)]
    read = 0
    for raw in (raw for name in names for raw in items(name)):
        try:
            found = read_arrived(raw)[1]
        except FeedError:
            continue
        again = read_arrived(write_item(found.version, found.dialect, found.namespace))[1]
        assert again == found == in_atom(found)
        read += 1
    assert read >= 8


def test_merge_of_documents_makes_the_same_entries() -> None:
    """[FS-002] An RSS feed merged into an Atom file, and imported from there, gives what importing it gives."""
    joiner = Joiner(MemorySpool(), FeedReader().form)
    mine = read_feed([f'<feed xmlns="{ATOM}"><title>T</title></feed>'.encode()], lambda _piece, _form: None)
    joiner.end_local()
    name = "fv__ext__feedsync__spec-example-rss.xml"
    theirs = read_feed([(CORPUS / name).read_bytes()], joiner.add_incoming)
    reader = FeedReader()
    merged = [
        piece.raw
        for chunk in write_feed(mine, joiner.results(), theirs)
        for piece in reader.feed(chunk)
    ]  # fmt: skip

    assert [read_arrived(raw)[1] for raw in merged] == [read_arrived(raw)[1] for raw in items(name)]


def test_plain_items_are_read_as_an_import_reads_them() -> None:
    """[FS-022] [FS-024]"""
    for raw in (rss("<title>t</title><guid>http://x.example/1</guid>", ""), atom("<title>t</title>", "")):
        item = read_plain(raw)
        assert item.id in ("http://x.example/1", "urn:x:1") and b"<title>t</title>" in item.payload
    assert b'"http://x.example/a"' in read_plain(atom("<link href='a'/>", ""), "http://x.example/").payload


def test_mark_of_a_deletion_is_no_sync_data() -> None:
    """[A-18] What an export without sync data leaves of a deleted item."""
    mark = f'<sx:sync xmlns:sx="{FEEDSYNC_NS}" id="i1"{{}}/>'

    assert is_deletion_alone(atom("", mark.format(' deleted="true"')))
    assert not is_deletion_alone(atom("", mark.format("")))
    assert not is_deletion_alone(atom("", SYNC.format("").replace('updates="1"', 'updates="1" deleted="true"')))
    assert not is_deletion_alone(atom("", ""))


@pytest.mark.parametrize("raw", [atom("", ""), rss("", "")], ids=["atom", "rss"])
def test_item_without_sync_data_is_none_to_merge(raw: bytes) -> None:
    """[FS-022]"""
    with pytest.raises(FeedError, match="no sync data"):
        read_arrived(raw)
