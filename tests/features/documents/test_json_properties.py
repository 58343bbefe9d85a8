"""Properties of the JSON formats: what is written is read, what is not written is told, and no input does harm."""

import contextlib
import json
from xml.sax.saxutils import escape, quoteattr

from hypothesis import example, given
from hypothesis import strategies as st

from smartfeeds.app.formats import read_document
from smartfeeds.core.model import Item
from smartfeeds.errors import FeedError
from smartfeeds.features.documents.json_feed import write_json_feed
from smartfeeds.formats import atom, xml
from smartfeeds.formats.activity import write_activities, write_activity
from smartfeeds.formats.atom_feed import FeedHead
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.json_text import dump_json, load_json, looks_like_json
from smartfeeds.formats.payload import accept_payload, complete_entry
from smartfeeds.formats.plain import markup_text, squeeze
from support.entries import accept_entry

HEAD = FeedHead("urn:x-test:f", "T", 0)
VERSION = "https://jsonfeed.org/version/1.1"
MIN_US, MAX_US = -62_135_596_800_000_000, 253_402_300_799_999_999
XML_CHARACTERS = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
TEXTS = st.text(XML_CHARACTERS | st.sampled_from("\t\n\r &<>\"'\\/\u2028\u2029\u007f"), max_size=12)
NAMES = TEXTS.map(lambda text: squeeze(text) or "x")
VALUES = TEXTS.map(lambda text: text.strip() or "x")
ADDRESSES = st.sampled_from(["http://e.example/1", "xmpp:a@b?x;y&z", "relative", "http://é.example/<>", "#"]) | VALUES
ITEM_IDS = st.sampled_from(["a", "http://e.example/1", "urn:x-test:1"]) | st.text(
    XML_CHARACTERS, min_size=1, max_size=8
)
TIMES_US = st.none() | st.integers(MIN_US, MAX_US) | st.integers(0, 2 * 10**15)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**31), 10**31)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.sampled_from(
    [
        "id",
        "url",
        "external_url",
        "title",
        "content_html",
        "content_text",
        "summary",
        "date_published",
        "date_modified",
        "authors",
        "author",
        "name",
        "tags",
        "language",
        "attachments",
        "size_in_bytes",
        "_smartfeeds",
        "deleted",
        "replies_to",
        "source",
        "published",
        "updated",
        "verb",
        "actor",
        "object",
        "displayName",
        "content",
        "contentType",
        "objectType",
        "inReplyTo",
        "scheme",
        "label",
        "length",
        "mimeType",
        "avatar",
        "image",
        "_x",
    ]
)
ODD_ITEMS = st.recursive(
    JSON | st.sampled_from(["2011-05-09T12:00:00Z", "0001-01-01T00:00:00+01:00", "mailto:", "http://e.example/"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=6),
    max_leaves=20,
)


def element(name, text="", **attributes):
    written = "".join(f" {key.replace('_', ':')}={quoteattr(value)}" for key, value in attributes.items() if value)
    return f"<{name}{written}>{escape(text, {chr(13): '&#13;'})}</{name}>"


@st.composite
def people(draw, tag, *, both=True):
    uri = draw(st.sampled_from(["", "http://e.example/me", "xmpp:a@b"]))
    email = draw(st.sampled_from(["", "a@b.example"])) if both or not uri else ""
    parts = [("name", draw(NAMES)), ("uri", uri), ("email", email)]
    return f"<{tag}>{''.join(element(name, text) for name, text in parts if text)}</{tag}>"


@st.composite
def inner_xhtml(draw, depth=2):
    text = escape(draw(TEXTS), {"\r": "&#13;"})
    for name in draw(st.lists(st.sampled_from(["p", "b", "br", "x:i"]), max_size=2)) if depth else ():
        inside = "" if name == "br" else draw(inner_xhtml(depth=depth - 1))
        text += f"<{name}>{inside}</{name}>" + escape(draw(TEXTS), {"\r": "&#13;"})
    return text


@st.composite
def contents(draw, tag):
    kind = draw(st.sampled_from(["", "text", "html", "xhtml"]))
    if kind == "xhtml":
        div = f'<div xmlns="http://www.w3.org/1999/xhtml" xmlns:x="urn:x-test:x">{draw(inner_xhtml())}</div>'
        return f'<{tag} type="xhtml">{div}</{tag}>'
    return element(tag, draw(TEXTS), type=kind)


@st.composite
def entries(draw):
    """An item of a feed, whatever its entry says."""
    parts = [element("id", draw(VALUES | st.sampled_from(["urn:x-test:1", "http://e.example/1"])))]
    parts += draw(st.lists(st.sampled_from([0]).flatmap(lambda _: contents("title")), max_size=1))
    parts += draw(st.lists(contents("summary"), max_size=1))
    parts += draw(st.lists(contents("content"), max_size=1))
    parts += draw(st.lists(people("author"), max_size=2))
    parts += draw(st.lists(people("contributor"), max_size=1))
    for term in draw(st.lists(VALUES, max_size=3)):
        scheme, label = draw(st.tuples(st.sampled_from(["", "u:s"]), st.sampled_from(["", "L"])))
        parts.append(element("category", term=term, scheme=scheme, label=label))
    for rel in draw(st.lists(st.sampled_from(["", "alternate", "enclosure", "related", "via"]), max_size=3)):
        kind, title = draw(st.tuples(st.sampled_from(["", "audio/mpeg"]), st.sampled_from(["", "F"])))
        length = draw(st.sampled_from(["", "12", "x"]))
        parts.append(element("link", rel=rel, href=draw(ADDRESSES), type=kind, title=title, length=length))
    if draw(st.booleans()):
        parts.append(element("thr:in-reply-to", ref=draw(VALUES), href=draw(st.just("") | ADDRESSES)))
    if draw(st.booleans()):
        parts.append(
            f"<source>{element('title', draw(NAMES))}{element('link', rel='self', href=draw(ADDRESSES))}</source>"
        )
    if draw(st.booleans()):
        parts.append(element("activity:object-type", draw(st.sampled_from(["photo", "note", "article"]))))
    for name, time_us in (("published", draw(TIMES_US)), ("updated", draw(TIMES_US))):
        if time_us is not None:
            parts.append(element(name, atom.format_datetime(time_us)))
    language = draw(st.sampled_from(["", "en", "de-AT"]))
    declared = (
        f'xmlns="{atom.ATOM_NS}" xmlns:thr="{atom.THREAD_NS}" xmlns:activity="http://activitystrea.ms/spec/1.0/"'
        + (f' xml:lang="{language}"' if language else "")
    )
    root = xml.parse_payload(f"<entry {declared}>{''.join(draw(st.permutations(parts)))}</entry>".encode())
    item_id = draw(ITEM_IDS)
    payload = accept_entry(root, item_id, draw(st.integers(0, 2 * 10**15)))
    return Item(1, item_id, draw(st.integers(0, 2 * 10**15)), draw(st.integers(0, 2 * 10**15)), payload, "a@b")


def read_again(data, item):
    (one,) = read_document(data).items
    return read_entry(item._replace(id=one.id, payload=one.payload, deleted=one.deleted))


def said(entry):
    """What both formats carry of an entry."""
    summary = entry.summary.plain if entry.summary is not None else ""
    content = entry.content if entry.content is not None and entry.content.value else None
    return {
        "ids": (entry.item_id, entry.atom_id),
        "title": entry.title.plain,
        "summary": summary,
        "content": content and (content.is_markup, content.value),
        "author": entry.authors[:1] and entry.authors[0].label,
        "terms": list(dict.fromkeys(category.term for category in entry.categories)),
        "page": entry.alternate,
        "enclosures": [(link.href, link.length) for link in entry.enclosures],
        "times": (entry.issued_us, entry.changed_us),
        "replies": entry.replies_to,
        "source": entry.source,
        "language": entry.language,
    }


@given(entries())
def test_an_entry_survives_json_feed(item):
    """[SF-009] what is written is read again the same; without losses nothing is missing."""
    entry = read_entry(item)
    written = write_json_feed(HEAD, [entry])
    again = read_again(written.data, item)
    assert said(again) == said(entry)
    assert json.loads(write_json_feed(HEAD, [again]).data) == json.loads(written.data)
    if not written.losses:
        assert again.authors == entry.authors
        assert (again.contributors, again.rights, again.object_type) == (
            entry.contributors,
            entry.rights,
            entry.object_type,
        )
        assert [(link.rel, link.href) for link in sorted(again.links, key=str)] == [
            (link.rel, link.href) for link in sorted(entry.links, key=str)
        ]


@given(entries())
def test_an_entry_survives_activitystreams(item):
    """[A-35] [SF-065] the same for activities"""
    entry = read_entry(item)
    written = write_activities(HEAD, [entry])
    again = read_again(written.data, item)
    assert said(again) == said(entry)
    assert json.loads(written.data)["items"] == [json.loads(write_activity(entry))]
    assert json.loads(write_activities(HEAD, [again]).data) == json.loads(written.data)
    if not written.losses:
        assert (again.authors, again.categories, again.enclosures) == (
            entry.authors,
            entry.categories,
            entry.enclosures,
        )


@given(ITEM_IDS, st.integers(0, 2 * 10**15), TEXTS)
def test_a_deletion_survives(item_id, deleted_us, text):
    """[A-18] [SF-013] in both formats, with its id and time and nothing else"""
    old = complete_entry(f'<entry xmlns="{atom.ATOM_NS}">{element("content", text)}</entry>'.encode(), item_id, 0)
    item = Item(1, item_id, 0, deleted_us, atom.tombstone(item_id, deleted_us, old), "a@b", deleted=True)
    entry = read_entry(item)
    for written in (write_json_feed(HEAD, [entry]), write_activities(HEAD, [entry])):
        assert written.losses == ()
        again = read_again(written.data, item)
        assert (again.item_id, again.deleted, again.changed_us) == (item_id, True, deleted_us)
        assert (again.title.value, again.content, again.extensions) == ("", None, [])


@given(ODD_ITEMS, ODD_ITEMS)
def test_any_items_are_read_and_can_be_written(first, second):
    """No item of a feed, however odd, spoils the document; what was made of it can be written in both formats."""
    for frame in ({"version": VERSION}, {"count": 2, "totalItems": 2}, {"totalItems": 2}):
        document = read_document(json.dumps({**frame, "items": [first, second]}).encode())
        assert len(document.items) + len(document.skipped) == 2
        found = []
        for one in document.items:
            xml.parse_payload(one.payload)
            found.append(read_entry(Item(1, one.id, 0, 0, one.payload, "a@b", one.deleted)))
        for written in (write_json_feed(HEAD, found), write_activities(HEAD, found)):
            assert len(read_document(written.data).items) == len(found)


@given(st.dictionaries(st.text(max_size=6).map(lambda name: f"_x{name}"), JSON, max_size=4))
def test_unknown_members_survive(members):
    """Whatever a JSON Feed says beyond its format, it says again."""
    data = json.dumps({"version": VERSION, "title": "T", "items": [{"id": "1", **members}]}).encode()
    (one,) = read_document(data).items
    entry = read_entry(Item(1, one.id, 0, 0, one.payload, "a@b"))
    (again,) = json.loads(write_json_feed(HEAD, [entry]).data)["items"]
    assert {name: value for name, value in again.items() if name.startswith("_x")} == members


@given(JSON)
def test_a_value_is_written_and_read_the_same(value):
    """Also where it holds lone surrogates; and it can stand in JavaScript."""
    data = dump_json(value)
    assert load_json(data).value == value
    assert not {"\u2028", "\u2029"} & set(data.decode())


@given(
    st.binary(max_size=60).map(lambda data: b"{" + data)
    | st.text(alphabet='{}[]",:\\1etn ', max_size=40).map(str.encode)
)
@example(b'{"\\')
@example(b"{" + b'"' * 31)
def test_any_text_is_read_as_python_reads_it_or_refused(data):
    """The check of the structure lets everything pass that is JSON."""
    with contextlib.suppress(FeedError):
        read_document(data)
    if looks_like_json(data):
        try:
            expected = json.loads(data)
        except (ValueError, UnicodeDecodeError):
            expected = None
        if expected is not None and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            assert load_json(data).value == expected


@given(inner_xhtml())
def test_xhtml_as_html_says_the_same(inside):
    """No text becomes markup and no markup text."""
    div = f'<div xmlns="http://www.w3.org/1999/xhtml" xmlns:x="urn:x-test:x">{inside}</div>'
    node = f'<content type="xhtml">{div}</content>'
    root = xml.parse_payload(f'<entry xmlns="{atom.ATOM_NS}">{node}</entry>'.encode())
    entry = read_entry(Item(1, "a", 0, 0, accept_payload(root), "a@b"))
    assert "".join(entry.content.plain.split()) == "".join(markup_text(root[0]).split())
