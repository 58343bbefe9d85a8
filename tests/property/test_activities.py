"""Activities of plain entries are written from their bytes, and are those that the reader of entries makes."""

from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from smartfeeds.core.model import Item
from smartfeeds.formats import plain_activity
from smartfeeds.formats.activity import write_activity
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.xml import canonical

TEXT = st.text(st.sampled_from("ab1 \t\n\r<>&\"'\\/:%\u00a0\u2028\u20ac\U0001f600"), max_size=8)
DATE = st.sampled_from(
    ["2026-01-02T08:00:00Z", "2026-01-31T08:00:00Z", "2026-02-30T08:00:00Z", "2026-01-02T08:00:00.50+01:00", " ", "x"]
)
LINK = st.sampled_from(
    ["", " ", "/a", "http://a.example/?a=b&c", "javascript:x", "http://a.example/\u00e9 b", "data:,x"]
)


def element(name: str, text: str = "", /, *children: etree._Element, **attributes: str | None) -> etree._Element:
    node = etree.Element(f"{{{ATOM_NS}}}{name}", {key: value for key, value in attributes.items() if value is not None})
    node.text = text or None
    node.extend(children)
    return node


KIND = st.sampled_from([None, "text", "html", "xhtml", "image/png"])
OPTIONAL = st.none() | TEXT
# Most of them are plain; others have attributes, children or names that make an entry that is not.
CHILD = st.one_of(
    st.builds(element, st.sampled_from(["id", "title", "summary", "content"]), TEXT),
    st.builds(element, st.sampled_from(["title", "summary", "content"]), TEXT, type=KIND),
    st.builds(element, st.sampled_from(["updated", "published"]), DATE),
    st.builds(lambda name: element("author", "", element("name", name)), TEXT),
    st.builds(lambda name, uri: element("author", "", element("name", name), element("uri", uri)), TEXT, LINK),
    st.builds(lambda term, scheme, label: element("category", term=term, scheme=scheme, label=label), *[OPTIONAL] * 3),
    st.builds(
        lambda href, rel, title: element("link", href=href, rel=rel, title=title),
        st.none() | LINK,
        st.sampled_from([None, "", "alternate", "self", "enclosure", " alternate"]),
        OPTIONAL,
    ),
    st.builds(element, st.sampled_from(["rights", "source"]), TEXT),
)


def item_of(children: list[etree._Element], item_id: str = "a", *, deleted: bool = False) -> Item:
    entry = etree.Element(f"{{{ATOM_NS}}}entry", nsmap={None: ATOM_NS})
    entry.extend(children)
    return Item(1, item_id, 1_700_000_000_000_000, 1_700_000_000_000_001, canonical(entry), "ann@a.example", deleted)


@given(st.lists(CHILD, max_size=8), TEXT, st.booleans(), st.booleans())
@example([element("title", "a"), element("content", '<p class="a">\\&amp;\n\t</p>', type="html")], "a", False, False)
@example([element("content", "", type="html"), element("id", "urn:x-smartfeeds:a")], "a", True, False)
def test_activity_of_any_entry_is_that_of_the_reader(
    children: list[etree._Element], item_id: str, comments: bool, deleted: bool
) -> None:
    """[A-35] [SF-060]: the bytes are equal."""
    item = item_of(children, item_id, deleted=deleted)
    assert plain_activity.write_item(item, comments=comments) == write_activity(read_entry(item), comments=comments)


def test_plain_entry_needs_no_tree() -> None:
    """What most programs publish is plain."""
    children = [
        element("id", "tag:a.example,2026:1"),
        element("title", "Rain & sun"),
        element("updated", "2026-01-31T08:00:00Z"),
        element("author", "", element("name", "Ann")),
        element("category", term="x", scheme="http://a.example/"),
        element("link", href="http://a.example/1", rel="alternate"),
        element("link", href="http://a.example/1.atom", rel="self", type="application/atom+xml"),
        element("content", "<p>Rain</p>", type="html"),
    ]
    assert plain_activity._plain_activity(item_of(children), comments=False)
    for other in ("rights", "title", "link"):
        assert not plain_activity._plain_activity(item_of([*children, element(other, "all")]), comments=False)
