"""Items as RSS 2.0: the channel, every element of an item, what stands in Atom's words, and what is lost."""

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.core.text import ForbiddenCharacterError
from smartfeeds.core.times import parse_datetime
from smartfeeds.formats import atom, xml
from smartfeeds.formats.additions import FANOUT_ID
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.dates import format_rfc822, parse_date
from smartfeeds.formats.feed_document import FormatLoss
from smartfeeds.formats.payload import means_the_same
from smartfeeds.formats.rss_channel import Channel, Cloud, cloud_element
from smartfeeds.formats.rss_writer import write_rss, write_rss_item
from support.entries import accept_entry
from support.xml_work import xml_work

NOON_US = parse_datetime("2011-05-09T12:00:00Z")
HEAD = FeedHead("urn:x-test:f", 'A "feed" & more', NOON_US, "http://feeds.example/f.rss")
CLOUD = Cloud("feeds.example", 80, "/RPC2", "feeds.rssPleaseNotify", "xml-rpc")
# As in the computed expected values of the project's specification.
CLOUD_ELEMENT = (
    '<cloud domain="feeds.example" port="80" path="/RPC2" registerProcedure="feeds.rssPleaseNotify" '
    'protocol="xml-rpc"/>'
)
ATOM = f"{{{atom.ATOM_NS}}}"
DC_CREATOR = "{http://purl.org/dc/elements/1.1/}creator"
ENCODED = "{http://purl.org/rss/1.0/modules/content/}encoded"


def item(inside="", item_id="a", root="", number=1, deleted=False):
    """An item whose entry has this inside."""
    text = f'<entry xmlns="{atom.ATOM_NS}"{root}>{inside}</entry>'
    payload = accept_entry(xml.parse_payload(text.encode()), item_id, NOON_US)
    return Item(number, item_id, NOON_US, NOON_US, payload, "", deleted)


def channel_of(*items, head=HEAD):
    return xml.parse_payload(write_rss(head, items).data).find("channel")


def written(inside="", item_id="a", root=""):
    """The RSS item that such an entry becomes."""
    return channel_of(item(inside, item_id, root)).find("item")


def read_back(inside="", item_id="a", root=""):
    """The Atom entry that the RSS item of such an entry is read into."""
    (read,) = read_document(write_rss(HEAD, [item(inside, item_id, root)]).data).items
    assert read.id == item_id
    return xml.parse_payload(read.payload)


def names(node):
    return [child.tag for child in node]


def test_document_is_rss_20_with_one_channel():
    """[RSS-001]"""
    root = xml.parse_payload(write_rss(HEAD, []).data)
    assert (root.tag, root.get("version"), names(root)) == ("rss", "2.0", ["channel"])
    assert read_document(write_rss(HEAD, []).data).format == "RSS 2.0"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (FeedHead("urn:x-test:f", "T", 0), ("T", "urn:x-test:f", "T")),
        (FeedHead("urn:x-test:f", "T", 0, "xmpp:f.example?;node=a", "S"), ("T", "xmpp:f.example?;node=a", "S")),
        (
            FeedHead("urn:x-test:f", "", 0, "xmpp:f.example", link="http://x.example/"),
            (None, "http://x.example/", None),
        ),
    ],
)
def test_channel_always_has_title_link_and_description(head, expected):
    """[RSS-003] [RSS-002] [A-121]"""
    channel = channel_of(head=head)
    assert names(channel)[:3] == ["title", "link", "description"]
    assert tuple(node.text for node in channel[:3]) == expected


def test_channel_says_when_by_what_and_where():
    """[RSS-031] [RSS-004] the language is there only where it is known."""
    channel = channel_of(head=FeedHead("urn:x-test:f", "T", NOON_US))
    assert channel.findtext("lastBuildDate") == "Mon, 09 May 2011 12:00:00 GMT"
    assert channel.findtext("generator") == "smartfeeds"
    assert channel.findtext("docs").startswith("https://")
    assert channel.find("language") is None
    head = FeedHead(
        "urn:x-test:f",
        "T",
        NOON_US,
        "http://f.example/f.rss",
        next_link="http://f.example/f.rss?since=1&max=2",
        language="de",
        channel=Channel(hub="http://f.example/hub", icon="http://f.example/i.png", authors=("Ann", "Bob")),
    )
    channel = channel_of(head=head)
    assert channel.findtext("language") == "de"
    assert [node.text for node in channel.iterfind(DC_CREATOR)] == ["Ann", "Bob"]
    assert [node.text for node in channel.find("image")] == ["http://f.example/i.png", "T", "http://f.example/f.rss"]
    assert [dict(node.attrib) for node in channel.iterfind(f"{ATOM}link")] == [
        {"rel": "self", "type": "application/rss+xml", "href": "http://f.example/f.rss"},
        {"rel": "next", "type": "application/rss+xml", "href": "http://f.example/f.rss?since=1&max=2"},
        {"rel": "hub", "href": "http://f.example/hub"},
    ]


def test_cloud_is_written_only_where_there_is_one():
    """[RSS-015] [RSS-016] as in the golden values"""
    assert cloud_element(CLOUD) == CLOUD_ELEMENT
    assert channel_of().find("cloud") is None
    with_cloud = FeedHead("urn:x-test:f", "T", 0, channel=Channel(cloud=CLOUD))
    data = write_rss(with_cloud, []).data
    assert CLOUD_ELEMENT.encode() in data
    assert read_document(data).channel.cloud == CLOUD


@pytest.mark.parametrize(
    ("old", "new", "cloud"),
    [
        ("", "", CLOUD),
        ('protocol="xml-rpc"', 'protocol="soap"', Cloud("feeds.example", 80, "/RPC2", CLOUD.procedure, "soap")),
        ('registerProcedure="feeds.rssPleaseNotify" protocol="xml-rpc"', 'registerProcedure="" protocol="http-post"',
         Cloud("feeds.example", 80, "/RPC2", "", "http-post")),
        ('registerProcedure="feeds.rssPleaseNotify"', "", None),
        ('domain="feeds.example"', "", None),
        ('path="/RPC2"', "", None),
        ('port="80"', "", None),
        ('port="80"', 'port="80.0"', None),
        ('port="80"', 'port="0"', None),
        ('port="80"', 'port="65536"', None),
        ('protocol="xml-rpc"', "", None),
        ('protocol="xml-rpc"', 'protocol="XML-RPC"', None),
    ],
)  # fmt: skip
def test_cloud_is_read_where_it_is_whole_and_right(old, new, cloud):
    """[RSS-016] [RSS-017] [A-137] else it is left out with a warning."""
    text = f"<rss version='2.0'><channel><title>T</title>{CLOUD_ELEMENT.replace(old, new)}</channel></rss>"
    document = read_document(text.encode())
    assert document.channel.cloud == cloud
    assert any("cloud" in warning for warning in document.warnings) == (cloud is None)


def test_channel_is_read_and_written_again_with_all_it_says():
    """[RSS-031] [RSS-015] [A-138] copyright, editors, dates, ttl, hours, days, categories, cloud, other namespaces."""
    text = f"""<rss version="2.0" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
        xmlns:atom="{atom.ATOM_NS}"><channel><title>T</title><link>http://x.example/</link><description>D</description>
        <language>en-us</language><copyright>C</copyright><managingEditor>m@x.example</managingEditor>
        <webMaster>w@x.example</webMaster><rating>R</rating><pubDate>Mon, 09 May 2011 12:00:00 GMT</pubDate>
        <lastBuildDate>Mon, 09 May 2011 13:00:00 GMT</lastBuildDate><ttl>60</ttl><generator>G</generator>
        <skipHours><hour>24</hour><hour>23</hour><hour>1</hour></skipHours><skipDays><day>Sunday</day></skipDays>
        <category domain="http://x.example/c">a/b</category><category>c</category>{CLOUD_ELEMENT}
        <image><url>http://x.example/i.png</url></image><sy:updatePeriod>hourly</sy:updatePeriod>
        <atom:link rel="self" href="http://x.example/old"/></channel></rss>"""
    before = read_document(text.encode()).channel
    assert before == Channel(
        language="en-us",
        copyright="C",
        managing_editor="m@x.example",
        web_master="w@x.example",
        generator="G",
        rating="R",
        published_us=NOON_US,
        changed_us=NOON_US + 3_600_000_000,
        ttl_min=60,
        skip_hours=(0, 1, 23),
        skip_days=("Sunday",),
        categories=(("a/b", "http://x.example/c"), ("c", "")),
        cloud=CLOUD,
        icon="http://x.example/i.png",
        extensions=(
            b'<sy:updatePeriod xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">hourly</sy:updatePeriod>',
        ),
    )
    data = write_rss(FeedHead("urn:x-test:f", "T", before.changed_us, channel=before), []).data
    after = read_document(data).channel
    assert (after.generator, after.published_us, after.changed_us) == ("G", NOON_US, before.changed_us)
    assert {name: getattr(after, name) for name in Channel.__slots__ if name != "generator"} == {
        name: getattr(before, name) for name in Channel.__slots__ if name != "generator"
    }


@pytest.mark.parametrize("inside", ["<ttl>-1</ttl>", "<ttl>soon</ttl>", "<skipHours><hour>25</hour></skipHours>",
                                    "<pubDate>soon</pubDate>"])  # fmt: skip
def test_what_a_channel_says_wrongly_is_left_out_with_a_warning(inside):
    """[RSS-031]"""
    document = read_document(f"<rss><channel><title>T</title>{inside}</channel></rss>".encode())
    assert document.channel == Channel()
    assert len(document.warnings) == 3  # no link, no description, and this


def test_newest_item_comes_first():
    """[A-153] the feed is ascending, RSS is not."""
    items = [item(item_id=str(n), number=n) for n in range(3)]
    assert [node.findtext("guid") for node in channel_of(*items).iterfind("item")] == ["2", "1", "0"]


def test_no_limit_of_items_or_of_length():
    """[RSS-018]"""
    title = "t" * 5_000
    channel = channel_of(*(item(f"<title>{title}</title>", str(n)) for n in range(20)))
    assert [node.findtext("title") for node in channel.iterfind("item")] == [title] * 20


def test_bare_entry_is_an_item_with_guid_title_and_date():
    """[RSS-005] everything else is optional."""
    node = written()
    assert names(node) == ["title", "guid", "pubDate"]
    assert (node.findtext("guid"), node.find("guid").get("isPermaLink")) == ("a", "false")


@pytest.mark.parametrize(
    ("item_id", "link", "permanent"),
    [
        ("http://x.example/1", "http://x.example/1", None),
        ("https://x.example/1", "https://x.example/1", None),
        ("http://x.example/1", "http://x.example/2", "false"),
        ("http://x.example/1", "", "false"),
        ("urn:x-test:1", "urn:x-test:1", "false"),
        ("one", "http://x.example/1", "false"),
    ],
)
def test_guid_is_a_permanent_link_only_where_it_is_the_address_of_the_page(item_id, link, permanent):
    """[RSS-031]"""
    node = written(f'<link href="{link}"/>' if link else "", item_id)
    assert (node.findtext("guid"), node.find("guid").get("isPermaLink")) == (item_id, permanent)
    assert node.findtext("link") == (link or None)


def test_the_guid_is_the_atom_id():
    """[SF-070] [SF-071] A reader of the Atom and the RSS document meets one entry; the item id stands beside the guid
    where that does not say it. A guid from which an atom:id was made is that guid again."""
    inside = "<id>tag:x.example,2011:1</id>"
    node = written(inside, "one")
    assert (node.findtext("guid"), node.findtext(FANOUT_ID)) == ("tag:x.example,2011:1", "one")
    assert read_back(inside, "one").findtext(atom.ID) == "tag:x.example,2011:1"
    assert written(inside, "tag:x.example,2011:1").find(FANOUT_ID) is None
    node = written(f"<id>{atom.derived_id('one')}</id>", "one")
    assert (node.findtext("guid"), node.find(FANOUT_ID)) == ("one", None)


@pytest.mark.parametrize(
    ("title", "shown", "plain"),
    [
        ("<title>A &amp; B</title>", "A & B", "A & B"),
        ("<title>1 &lt; 2</title>", "1 < 2", "1 < 2"),
        ("<title>the &lt;b> element</title>", "the &lt;b&gt; element", "the <b> element"),
        ("<title>&amp;amp; is an entity</title>", "&amp;amp; is an entity", "&amp; is an entity"),
        ('<title type="html">a &lt;b>bold&lt;/b> one</title>', "a <b>bold</b> one", "a bold one"),
        ('<title type="html">AT&amp;amp;T</title>', "AT&amp;T", "AT&T"),
        ('<title type="html">plain</title>', "plain", "plain"),
        (
            '<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <b>b</b></div></title>',
            "a <b>b</b>",
            "a b",
        ),
    ],
)
def test_title_means_the_same_to_readers_that_guess(title, shown, plain):
    assert written(title).findtext("title") == shown
    assert atom.text_of(read_back(title), atom.TITLE) == plain


def test_dates_are_rfc_822_in_gmt():
    """[RSS-031] published is pubDate; a later change is told exactly, beside it."""
    inside = "<published>2011-05-09T14:00:00+02:00</published><updated>2011-05-09T12:00:00.5Z</updated>"
    node = written(inside)
    assert node.findtext("pubDate") == "Mon, 09 May 2011 12:00:00 GMT"
    assert node.find(f"{ATOM}updated") is None
    inside = inside.replace("00.5Z", "07.25Z")
    assert written(inside).findtext(f"{ATOM}updated") == "2011-05-09T12:00:07.25Z"
    entry = read_back(inside)
    assert entry.findtext(atom.PUBLISHED) == "2011-05-09T12:00:00Z"
    assert entry.findtext(atom.UPDATED) == "2011-05-09T12:00:07.25Z"


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2016-02-29T05:06:07Z",
                                  "9999-12-31T23:59:59Z"])  # fmt: skip
def test_rfc822_date_is_read_as_the_same_time(text):
    """[RSS-031]"""
    assert parse_date(format_rfc822(parse_datetime(text))) == parse_datetime(text)


@pytest.mark.parametrize(
    ("person", "lines"),
    [
        ("<name>Ann</name>", [(DC_CREATOR, "Ann")]),
        ("<name>Ann</name><email>a@x.example</email>", [("author", "a@x.example (Ann)")]),
        ("<email>a@x.example</email>", [("author", "a@x.example")]),
        ("<name>A (B)</name>", [(DC_CREATOR, "A (B)")]),
        ("<name>A (B)</name><email>a@x.example</email>", [(DC_CREATOR, "A (B)"), (f"{ATOM}author", None)]),
        ("<name>Ann</name><uri>xmpp:ann@x.example</uri>", [(DC_CREATOR, "Ann"), (f"{ATOM}author", None)]),
        ("<name>Ann</name><email>no mail</email>", [(DC_CREATOR, "Ann"), (f"{ATOM}author", None)]),
    ],
)
def test_author_is_a_mail_address_or_a_creator(person, lines):
    """[RSS-031] what neither can say is said in Atom's words, and counts when it is read."""
    inside = f"<author>{person}</author>"
    shown = [(node.tag, node.text) for node in written(inside) if node.tag in (DC_CREATOR, "author", f"{ATOM}author")]
    assert shown == lines
    (author,) = read_back(inside).iterchildren(atom.AUTHOR)
    expected = {part.tag: part.text for part in xml.parse_payload(f"<a xmlns='{atom.ATOM_NS}'>{person}</a>".encode())}
    name = f"{ATOM}name"
    assert {part.tag: part.text for part in author} == {name: expected.get(f"{ATOM}email"), **expected}


def test_categories_keep_value_and_domain():
    """[RSS-013] [RSS-014] [A-139] the term as it is, the scheme as domain; a label in Atom's words. A term is written
    and read with every slash that it has, whatever filters make of it."""
    inside = '<category term="/standards/xsl//x/" scheme="http://x.example/d"/><category term="b" label="Bee"/>'
    node = written(inside)
    assert [(one.text, dict(one.attrib)) for one in node.iterfind("category")] == [
        ("/standards/xsl//x/", {"domain": "http://x.example/d"}),
        ("b", {}),
    ]
    assert [dict(one.attrib) for one in read_back(inside).iterchildren(atom.CATEGORY)] == [
        {"term": "/standards/xsl//x/", "scheme": "http://x.example/d"},
        {"term": "b", "label": "Bee"},
    ]


@pytest.mark.parametrize(
    ("link", "enclosure"),
    [
        ('href="http://x.example/a.mp3" type="audio/mpeg" length="5"', ("audio/mpeg", "5")),
        ('href="https://x.example/a.mp3" type="audio/mpeg"', ("audio/mpeg", "0")),
        ('href="http://x.example/a.mp3" length="5"', ("application/octet-stream", "5")),
        ('href="http://x.example/a.mp3" type="audio/mpeg" length="5" title="Song"', ("audio/mpeg", "5")),
        ('href="ftp://x.example/a.mp3" type="audio/mpeg" length="5"', None),
        ('href="file:///etc/hostname" type="text/plain"', None),
    ],
)
def test_enclosure_has_all_three_attributes_and_an_address_on_the_web(link, enclosure):
    """[RSS-010] [RSS-011] [RSS-012] [A-126] [A-128] others stay in Atom's words; nothing changes on the way."""
    inside = f'<link rel="enclosure" {link}/>'
    nodes = list(written(inside).iterfind("enclosure"))
    assert [(node.get("type"), node.get("length")) for node in nodes] == ([enclosure] if enclosure else [])
    expected = dict(xml.parse_payload(f'<link rel="enclosure" {link}/>'.encode()).attrib)
    assert [dict(node.attrib) for node in read_back(inside).iterchildren(atom.LINK)] == [expected]


def test_every_enclosure_is_written():
    """[A-127]"""
    inside = "".join(f'<link rel="enclosure" type="a/b" length="1" href="http://x.example/{n}"/>' for n in range(3))
    assert [node.get("url")[-1] for node in written(inside).iterfind("enclosure")] == ["0", "1", "2"]


def test_links_that_rss_has_no_element_for_are_links_of_atom():
    inside = (
        '<link href="http://x.example/1"/><link rel="related" href="/2" hreflang="de"/>'
        '<link rel="replies" type="application/atom+xml" href="xmpp:x.example?;node=c"/>'
        '<link href="http://x.example/3" type="text/plain" title="P"/>'
    )
    root = ' xml:base="http://base.example/x"'
    node = written(inside, root=root)
    assert node.findtext("link") == "http://x.example/1"
    assert [dict(one.attrib) for one in node.iterfind(f"{ATOM}link")] == [
        {"rel": "related", "href": "http://base.example/2", "hreflang": "de"},
        {"rel": "replies", "type": "application/atom+xml", "href": "xmpp:x.example?;node=c"},
        {"href": "http://x.example/3", "type": "text/plain", "title": "P"},
    ]
    assert len(list(read_back(inside, root=root).iterchildren(atom.LINK))) == 4


def test_page_whose_link_says_more_is_said_twice_and_read_once():
    inside = '<link rel="alternate" href="http://x.example/1" hreflang="de" type="text/html"/>'
    assert names(written(inside)) == ["title", "link", "guid", "pubDate", f"{ATOM}link"]
    assert [dict(one.attrib) for one in read_back(inside).iterchildren(atom.LINK)] == [
        {"rel": "alternate", "href": "http://x.example/1", "hreflang": "de", "type": "text/html"}
    ]


def test_comments_are_the_page_of_replies():
    """[RSS-031]"""
    inside = '<link rel="replies" type="text/html" href="http://x.example/c?u=1&amp;p=2"/>'
    assert written(inside).findtext("comments") == "http://x.example/c?u=1&p=2"
    assert written(inside).find(f"{ATOM}link") is None
    counted = inside.replace("<link", '<link xmlns:thr="http://purl.org/syndication/thread/1.0" thr:count="3"')
    assert written(counted).findtext("comments") == "http://x.example/c?u=1&p=2"
    for text in (inside, counted):
        (link,) = read_back(text).iterchildren(atom.LINK)
        assert dict(link.attrib) == dict(xml.parse_payload(text.encode()).attrib)


def test_source_credits_the_channel_that_an_item_came_from():
    """[RSS-007] [RSS-008] [RSS-009]"""
    source = "<id>http://o.example/f</id><title>Other</title><link rel='self' href='http://o.example/f'/>"
    node = written(f"<source>{source}</source>")
    assert (node.findtext("source"), node.find("source").get("url")) == ("Other", "http://o.example/f")
    assert node.find(f"{ATOM}source") is None
    back = read_back(f"<source>{source}</source>").find(atom.SOURCE)
    assert xml.canonical(back) == xml.canonical(
        xml.parse_payload(f'<source xmlns="{atom.ATOM_NS}">{source}</source>'.replace("'", '"').encode())
    )


@pytest.mark.parametrize(
    "inside",
    [
        "<id>tag:o.example,1:f</id><title>Other</title><link rel='self' href='http://o.example/f'/>",
        "<title>Other</title>",
        "<id>http://o.example/f</id><title>O</title><updated>2011-05-09T12:00:00Z</updated>"
        "<link href='http://o.example/'/><author><name>Ann</name></author>",
    ],
)
def test_source_that_says_more_or_has_no_address_stays_in_words_of_atom(inside):
    """[RSS-009] without a url there is no source of RSS; [RSS-008] what it says is kept."""
    node = written(f"<source>{inside}</source>")
    assert (node.find("source") is None) == ("<link" not in inside)
    back = read_back(f"<source>{inside}</source>")
    expected = xml.parse_payload(f"<source xmlns='{atom.ATOM_NS}'>{inside}</source>".encode())
    assert [xml.canonical(one) for one in back.iterchildren(atom.SOURCE)] == [xml.canonical(expected)]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<content type='html'>&lt;p>x &amp;amp; y&lt;/p></content>", {"description": "<p>x &amp; y</p>"}),
        ("<content>x &lt; y</content>", {"description": "x &lt; y"}),
        ("<summary>s</summary>", {"description": "s"}),
        ("<summary>s</summary><content type='html'>&lt;b>c</content>", {"description": "s", ENCODED: "<b>c"}),
        ("<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>a<br/>b</div></content>",
         {"description": "a<br>b"}),
        ("<content/><summary> </summary>", {}),
    ],
)  # fmt: skip
def test_description_is_html_encoded_once_and_content_stands_beside_a_summary(inside, expected):
    """[RSS-006] [A-125]"""
    node = written(inside)
    assert {child.tag: child.text for child in node if child.tag in ("description", ENCODED)} == expected


def test_addresses_inside_of_html_become_absolute():
    inside = "<content type='html'>&lt;a href='x'></content>"
    root = ' xml:base="http://base.example/y/"'
    assert written(inside, root=root).findtext("description") == '<a href="http://base.example/y/x">'
    assert read_back(inside, root=root).findtext(atom.CONTENT) == '<a href="http://base.example/y/x">'


@pytest.mark.parametrize(
    "inside",
    [
        '<content src="http://x.example/v.mp4" type="video/mp4"></content><summary type="html">s</summary>',
        '<content type="image/png">aGVsbG8=</content><summary type="html">s</summary>',
        '<content type="application/xml"><x xmlns="urn:x-test:x"><y></y></x></content><summary type="html">s</summary>',
    ],
)
def test_content_that_is_no_text_stays_in_words_of_atom_beside_its_summary(inside):
    node = written(inside)
    assert node.findtext("description") == "s"
    assert node.find(ENCODED) is None
    entry = read_back(inside)
    expected = xml.parse_payload(f"<entry xmlns='{atom.ATOM_NS}'>{inside}</entry>".encode())
    for tag in (atom.CONTENT, atom.SUMMARY):
        assert [xml.canonical(one) for one in entry.iterchildren(tag)] == [xml.canonical(expected.find(tag))]


def test_text_in_another_notation_is_shown_and_kept():
    entry = read_back('<content type="text/markdown"># One</content>')
    assert (entry.find(atom.CONTENT).get("type"), entry.findtext(atom.CONTENT)) == ("text/markdown", "# One")
    assert written('<content type="text/markdown"># One</content>').findtext("description") == "# One"


EXTENSIONS = [
    '<georss:point xmlns:georss="http://www.georss.org/georss">45 -71</georss:point>',
    '<x xmlns="urn:x-test:x" a="1"><y b="2">t</y></x>',
    '<sx:sync xmlns:sx="http://feedsync.org/2007/feedsync" id="a" updates="1">'
    '<sx:history sequence="1"></sx:history></sx:sync>',
    '<thr:in-reply-to xmlns:thr="http://purl.org/syndication/thread/1.0" href="http://x.example/0" ref="urn:x-test:0" '
    'type="text/html"></thr:in-reply-to>',
    '<activity:verb xmlns:activity="http://activitystrea.ms/spec/1.0/">'
    "http://activitystrea.ms/schema/1.0/share</activity:verb>",
    '<activity:object-type xmlns:activity="http://activitystrea.ms/spec/1.0/">'
    "http://x.example/own</activity:object-type>",
    '<rating xmlns="">5</rating>',
]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_element_of_another_namespace_is_written_as_it_came(extension):
    """[RSS-014] [xep-map 144] and comes back, byte for byte."""
    data = write_rss(HEAD, [item(extension)])
    assert extension.encode() in data.data
    assert data.losses == ()
    (read,) = read_document(data.data).items
    assert extension.encode() in read.payload


def test_contributors_and_rights_stay_in_words_of_atom():
    inside = '<contributor><name>Bob</name></contributor><rights type="html">&lt;b></rights>'
    entry = read_back(inside)
    assert entry.find(f"{ATOM}contributor").findtext(f"{ATOM}name") == "Bob"
    assert (entry.find(f"{ATOM}rights").get("type"), entry.findtext(f"{ATOM}rights")) == ("html", "<b>")


def test_what_is_cut_out_of_an_entry_keeps_its_base():
    """[xep-map 144] a relative address in it means the same beside RSS's own elements."""
    inside = "<contributor><name>Bob</name><uri>bob</uri></contributor><content src='v.mp4' type='video/mp4'/>"
    node = written(inside, root=' xml:base="http://base.example/y/"')
    assert node.find(f"{ATOM}contributor").get(xml.XML_BASE) == "http://base.example/y/"
    assert node.find(f"{ATOM}content").get("src") == "http://base.example/y/v.mp4"


def test_element_that_would_be_taken_for_one_of_rss_is_left_out_and_told():
    inside = (
        '<guid xmlns="">other</guid><title xmlns="http://purl.org/rss/1.0/">other</title>'
        '<content:encoded xmlns:content="http://purl.org/rss/1.0/modules/content/">other</content:encoded>'
        '<title xmlns="urn:x-test:x">kept</title><content type="html">c</content>'
    )
    done = write_rss(HEAD, [item(inside)])
    assert b"other" not in done.data
    assert b"kept" in done.data
    assert done.losses == (
        FormatLoss("a", "the element guid: in RSS it means something else"),
        FormatLoss("a", "the element title: in RSS it means something else"),
        FormatLoss("a", "the element content:encoded: the entry has a text of its own"),
    )


def test_deleted_item_is_left_out_and_told():
    """[A-18] RSS has no form for it."""
    gone = Item(1, "gone", 0, NOON_US, atom.tombstone("gone", NOON_US, b""), "", deleted=True)
    done = write_rss(HEAD, [gone, item(item_id="here", number=2)])
    assert done.losses == (FormatLoss("gone", "a deleted item: RSS has no form for it"),)
    assert [one.id for one in read_document(done.data).items] == ["here"]


def test_id_with_space_around_it_is_kept():
    """RSS readers strip a guid, so fo:id says the id."""
    assert read_back(f"<id>{atom.derived_id(' a ')}</id>", item_id=" a ") is not None
    assert write_rss(HEAD, [item(item_id=" a ")]).losses == ()


def test_language_of_an_item_is_its_own():
    assert written(root=' xml:lang="de"').get(xml.XML_LANG) == "de"
    assert read_back(root=' xml:lang="de"').get(xml.XML_LANG) == "de"


@pytest.mark.parametrize("payload", [b"", b'<geoloc xmlns="http://jabber.org/protocol/geoloc"></geoloc>'])
def test_payload_that_is_no_entry_is_an_item_with_an_extension(payload):
    """Nodes that are no feeds can be written as well."""
    data = write_rss(HEAD, [Item(1, "a", NOON_US, NOON_US + 5_000_000, payload, "")]).data
    assert payload in data
    (read,) = read_document(data).items
    assert (read.id, read.published_us, read.updated_us) == ("a", NOON_US, NOON_US + 5_000_000)


def test_feed_of_the_node_is_an_item_too():
    """Item "0" of a microblog is an atom:feed (XEP-0277)."""
    text = f'<feed xmlns="{atom.ATOM_NS}"><title>T</title><subtitle>S</subtitle></feed>'
    payload = accept_entry(xml.parse_payload(text.encode()), "0", NOON_US)
    node = channel_of(Item(1, "0", NOON_US, NOON_US, payload, "")).find("item")
    assert (node.findtext("title"), node.findtext("description")) == ("T", "S")


def test_text_that_xml_cannot_carry_is_refused():
    with pytest.raises(ForbiddenCharacterError):
        write_rss(FeedHead("urn:x-test:f", "\x00", 0), [])


MORE = '<x:more xmlns:x="urn:x-test:x" n="1">m</x:more>'


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        (f'<link href="http://x.example/1">{MORE}</link>', "link"),
        (f'<link rel="enclosure" type="a/b" length="1" href="http://x.example/1">{MORE}</link>', "link"),
        ('<link href="http://x.example/1" xmlns:x="urn:x-test:x" x:n="1"/>', "link"),
        (f"<author><name>Ann</name><email>a@x.example</email>{MORE}</author>", "author"),
        ('<author xmlns:x="urn:x-test:x" x:n="1"><name>Ann</name></author>', "author"),
        (f'<category term="a">{MORE}</category>', "category"),
        ('<category term="a" label="A" xmlns:x="urn:x-test:x" x:n="1"/>', "category"),
    ],
)
def test_elements_of_atom_keep_what_they_hold(inside, name):
    """RFC 4287 6.3, 6.4: markup of others may stand inside of Atom's elements. It stays, under the prefix of the
    document: a link that was cut at its start tag made the whole feed malformed."""
    done = write_rss(HEAD, [item(inside)])
    assert done.losses == ()
    channel = xml.parse_payload(done.data).find("channel")
    (kept,) = channel.find("item").iterfind(f"{ATOM}{name}")
    assert kept.prefix == "atom"
    (expected,) = xml.parse_payload(f"<entry xmlns='{atom.ATOM_NS}'>{inside}</entry>".encode())
    assert means_the_same(xml.canonical(kept), xml.canonical(expected))
    (read,) = read_back(inside).iterchildren(f"{ATOM}{name}")
    assert xml.canonical(read) == xml.canonical(expected)


def test_texts_keep_their_languages():
    """RFC 4287 2: each text may have a language of its own."""
    inside = (
        '<title xml:lang="en">T</title><summary xml:lang="es">S</summary><content type="html" xml:lang="fr">C</content>'
    )
    node = written(inside, root=' xml:lang="de"')
    languages = [node, node.find("title"), node.find("description"), node.find(ENCODED)]
    assert [one.get(xml.XML_LANG) for one in languages] == ["de", "en", "es", "fr"]
    entry = read_back(inside, root=' xml:lang="de"')
    assert [entry.get(xml.XML_LANG), *(entry.find(tag).get(xml.XML_LANG) for tag in TEXTS)] == ["de", "en", "es", "fr"]


TEXTS = (atom.TITLE, atom.SUMMARY, atom.CONTENT)


def test_xhtml_keeps_attributes_of_other_namespaces_and_its_div():
    div = (
        '<div xmlns="http://www.w3.org/1999/xhtml" class="c"><svg xmlns="http://www.w3.org/2000/svg"'
        ' xmlns:l="http://www.w3.org/1999/xlink"><use l:href="a.svg"/></svg></div>'
    )
    node = written(f'<content type="xhtml" xml:base="http://x.example/">{div}</content>')
    html = '<div class="c"><svg><use xlink:href="http://x.example/a.svg"></use></svg></div>'
    assert node.findtext("description") == html


@pytest.mark.parametrize(
    ("root", "inside"),
    [
        (' xmlns:x="urn:x-test:x" x:n="1"', ""),
        ("", '<title xmlns:x="urn:x-test:x" x:n="1">T</title>'),
        ("", "<logo>http://x.example/l.png</logo>"),
    ],
)
def test_what_rss_has_no_place_for_is_told(root, inside):
    loss = "attributes of other namespaces, and elements that an Atom entry does not have"
    assert write_rss(HEAD, [item(inside, root=root)]).losses == (FormatLoss("a", loss),)


def test_lines_of_plain_text_stay_apart():
    """[A-125] A description is HTML, in which a line end is a blank."""
    node = written("<content>one &lt;\ntwo\r\nthree</content>")
    assert node.findtext("description") == "one &lt;<br/>\ntwo<br/>\nthree"


def test_an_item_has_one_author_at_most():
    """[RSS-031] The RSS 2.0 specification has one author; others are named in words of others."""
    people = [("Ann", "a@x.example"), ("Bob", "b@x.example")]
    inside = "".join(f"<author><name>{name}</name><email>{mail}</email></author>" for name, mail in people)
    node = written(inside)
    assert [one.text for one in node.iterfind("author")] == ["a@x.example (Ann)"]
    read = read_back(inside).iterchildren(atom.AUTHOR)
    assert [tuple(part.text for part in one) for one in read] == people


@pytest.mark.parametrize(
    "inside",
    [
        "<title>T</title><content>c</content>",
        '<title xml:lang="de">T</title><summary>s</summary><content type="html">&lt;p&gt;c</content>',
        "<title>T</title><author><name>A</name></author><link rel='via' href='http://e.example/'/>",
        "<title>T</title><x:more xmlns:x='urn:x-test:more'>m</x:more>",
    ],
)
def test_item_alone_is_what_it_is_in_a_document(inside: str) -> None:
    """[FS-002] A merge that writes one item writes no channel around it."""
    one = item(inside)
    written = xml.parse_stored(write_rss(HEAD, [one]).data)
    assert write_rss_item(one) == xml.canonical(next(written.iter("item")))


def test_item_is_parsed_once(monkeypatch):
    """Also where Atom's words are copied from the entry beside those of RSS."""
    one = item("<title>T</title><content>c</content><link rel='via' href='http://e.example/' title='more'/>")
    one = one._replace(payload=bytes(one.payload))
    with xml_work(monkeypatch) as work:
        data = write_rss(HEAD, [one]).data
    assert work.parses == 1 and b'rel="via"' in data
