"""Items as RSS 0.92: the elements of that specification, nothing else, and a report of everything that is lost."""

from pathlib import Path

import pytest

from smartfeeds.app.formats import FORMATS, read_document
from smartfeeds.core.model import Item
from smartfeeds.core.times import parse_datetime
from smartfeeds.formats import atom, xml
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.feed_details import head_of
from smartfeeds.formats.rss_channel import Channel, Cloud
from support.entries import accept_entry
from support.validity import rss092_faults

NOON_US = parse_datetime("2011-05-09T12:00:00Z")
HEAD = FeedHead("urn:x-test:f", 'A "feed" & more', NOON_US, "http://feeds.example/f.rss092", link="http://x.example/")
CORPUS = Path(__file__).parents[2] / "corpus" / "data"
SONG = "<title>Song</title><content type='html'>A &lt;i&gt;song&lt;/i&gt;</content>"


def item(inside, item_id="a", number=1, deleted=False):
    text = f'<entry xmlns="{atom.ATOM_NS}">{inside}</entry>'
    payload = accept_entry(xml.parse_payload(text.encode()), item_id, NOON_US)
    return Item(number, item_id, NOON_US, NOON_US, payload, "", deleted)


def export(*items, head=HEAD):
    """The parsed document, and the texts of the losses by item id."""
    job = FeedExport(head, items, NOON_US)
    data = b"".join(FORMATS["rss092"].write(job))
    assert rss092_faults(data) == []
    return xml.parse_payload(data), [(loss.item_id, loss.what) for loss in job.losses]


def written(inside):
    root, _ = export(item(inside))
    return root.find("channel/item")


def test_document_is_rss_092():
    """[RSS-001] [RSS-002] [RSS-003] [A-121] One channel with the three elements that RSS 0.91 requires."""
    root, _ = export()
    channel = root.find("channel")
    assert (root.tag, dict(root.attrib), len(root)) == ("rss", {"version": "0.92"}, 1)
    texts = {child.tag: child.text for child in channel}
    assert texts == {
        "title": 'A "feed" & more',
        "link": "http://x.example/",
        "description": 'A "feed" & more',
        "lastBuildDate": "Mon, 09 May 2011 12:00:00 GMT",
        "docs": "http://backend.userland.com/rss092",
    }


def test_channel_has_language_editors_and_cloud():
    """[RSS-004] [RSS-015] [RSS-016]"""
    channel = Channel(
        language="en",
        managing_editor="dave@x.example (Dave)",
        web_master="web@x.example",
        cloud=Cloud("rpc.x.example", 80, "/RPC2", "feeds.rssPleaseNotify", "xml-rpc"),
        rating="PG",
        ttl_min=60,
    )
    root, losses = export(head=FeedHead("urn:x-test:f", "T", NOON_US, link="http://x.example/", channel=channel))
    assert [root.findtext(f"channel/{name}") for name in ("language", "managingEditor", "webMaster")] == [
        "en",
        "dave@x.example (Dave)",
        "web@x.example",
    ]
    assert dict(root.find("channel/cloud").attrib) == {
        "domain": "rpc.x.example",
        "port": "80",
        "path": "/RPC2",
        "registerProcedure": "feeds.rssPleaseNotify",
        "protocol": "xml-rpc",
    }
    assert ("", "of the feed itself: rating, ttl") in losses


def test_newest_item_is_first():
    """[A-153]"""
    root, _ = export(item("<title>old</title>", "a", 1), item("<title>new</title>", "b", 2))
    assert [node.text for node in root.iterfind("channel/item/title")] == ["new", "old"]


def test_item_has_description_source_enclosures_and_categories():
    """[RSS-005] [RSS-006] [RSS-007] [RSS-010] [RSS-011] [RSS-013] [A-125] [A-127]"""
    node = written(
        f"{SONG}<link href='http://x.example/1'/><source><title>Other</title><link href='http://y.example/f'/></source>"
        "<link rel='enclosure' href='http://x.example/1.mp3' length='9' type='audio/mpeg'/>"
        "<link rel='enclosure' href='http://x.example/2.mp3'/>"
        "<category term='standards/xsl' scheme='http://x.example/dir'/><category term='MSFT'/>"
    )
    assert [(child.tag, child.text, dict(child.attrib)) for child in node] == [
        ("title", "Song", {}),
        ("link", "http://x.example/1", {}),
        ("description", "A <i>song</i>", {}),
        ("source", "Other", {"url": "http://y.example/f"}),
        ("enclosure", None, {"url": "http://x.example/1.mp3", "length": "9", "type": "audio/mpeg"}),
        ("enclosure", None, {"url": "http://x.example/2.mp3", "length": "0", "type": "application/octet-stream"}),
        ("category", "standards/xsl", {"domain": "http://x.example/dir"}),
        ("category", "MSFT", {}),
    ]


@pytest.mark.parametrize(
    ("inside", "description"),
    [
        ("<summary>short</summary><content>long</content>", "long"),
        ("<summary>short</summary>", "short"),
        ("<content type='html'>&lt;b&gt;x&lt;/b&gt;</content>", "<b>x</b>"),
    ],
)
def test_description_is_the_content_else_the_summary(inside, description):
    assert written(f"<title>T</title>{inside}").findtext("description") == description


@pytest.mark.parametrize(
    ("inside", "loss"),
    [
        ("<author><name>Ann</name></author>", "the authors"),
        ("<author><name>Ann</name></author><author><name>Bob</name></author>", "the authors"),
        ("<category term='a' label='A'/>", "the labels of categories"),
        ("<link rel='enclosure' href='ftp://x.example/1.mp3'/>", "the enclosures that are not on the web"),
        ("<source><title>Other</title></source>", "the source, whose address is not known"),
        ("<summary>s</summary><content>c</content>", "the summary beside the content"),
        ("<x xmlns='urn:x-test:x'/>", "elements of other namespaces"),
        ("<link rel='related' href='http://x.example/'/>", "links other than to the page and to enclosures"),
    ],
)
def test_each_loss_is_reported_once(inside, loss):
    """[RSS-012] [A-126]"""
    inside = inside.replace("related", "via")
    _, losses = export(item(f"<title>T</title>{inside}"))
    assert losses == [("", "the ids and the dates of the items"), ("a", loss)]


def test_deleted_item_is_left_out_and_reported():
    """[SF-013]"""
    root, losses = export(item("", deleted=True))
    assert root.find("channel/item") is None
    assert ("a", "a deleted item: RSS 0.92 has no form for it") in losses


def test_document_of_the_seed_survives():
    """[RSS-001] [RSS-007] [RSS-010] [RSS-013] Everything that RSS 0.92 says is the same when it is written again."""
    data = (CORPUS / "sm_rss092_all_features.xml").read_bytes()
    document = read_document(data)
    items = [
        Item(number, one.id, NOON_US, NOON_US, one.payload, "", deleted=False)
        for number, one in enumerate(reversed(document.items))
    ]
    root, _ = export(*items, head=head_of(document, 0))
    before = [
        [(node.tag, node.text, dict(node.attrib)) for node in one] for one in xml.parse_payload(data).iter("item")
    ]
    after = [[(node.tag, node.text, dict(node.attrib)) for node in one] for one in root.iter("item")]
    assert [sorted(one, key=str) for one in after] == [sorted(one, key=str) for one in before]
    assert dict(root.find("channel/cloud").attrib) == dict(xml.parse_payload(data).find("channel/cloud").attrib)
