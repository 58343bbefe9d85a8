"""Entries whose enclosures have a copy at this service (RSS-036, PRE-034), in each form of the original address."""

import pytest
from lxml import etree

from smartfeeds.core.model import Item
from smartfeeds.features.prefetch.local_enclosures import PODCAST_NS, Alternative, with_local
from smartfeeds.formats.entry import EntryLink, enclosures_of

REMOTE = "https://media.example/talk.mp3"
LOCAL = "https://feeds.example.org/enclosures/podcast/0a.mp3"
COPY = EntryLink("enclosure", LOCAL, "audio/mpeg", length=2_048)
LINK = f'<link rel="enclosure" href="{REMOTE}" type="audio/mpeg" length="7"/>'


def entry(*links: str, base: str = "") -> bytes:
    attribute = f' xml:base="{base}"' if base else ""
    return f'<entry xmlns="http://www.w3.org/2005/Atom"{attribute}><title>T</title>{"".join(links)}</entry>'.encode()


def links_of(payload: bytes) -> list[tuple[str, str]]:
    return [(link.href, link.title) for link in enclosures_of(Item(1, "a", 1, 1, payload, "a@x").payload)]


@pytest.mark.parametrize(
    ("payload", "links"),
    [
        pytest.param(entry(LINK), [(LOCAL, "talk.mp3"), (REMOTE, "talk.mp3")], id="the name of the file is the title"),
        pytest.param(
            entry(LINK.replace("/>", ' title="A talk"/>')), [(LOCAL, "A talk"), (REMOTE, "A talk")], id="own title"
        ),
        pytest.param(
            entry('<link rel="enclosure" href="talk.mp3"/>', base="https://media.example/"),
            [(LOCAL, "talk.mp3"), (REMOTE, "talk.mp3")],
            id="relative address",
        ),
        pytest.param(
            entry(LINK.replace('"enclosure"', '"http://www.iana.org/assignments/relation/enclosure"')),
            [(LOCAL, "talk.mp3"), (REMOTE, "talk.mp3")],
            id="relation as an address",
        ),
        pytest.param(
            entry('<link rel="enclosure" href="https://media.example/b.ogg"/>', LINK),
            [("https://media.example/b.ogg", ""), (LOCAL, "talk.mp3"), (REMOTE, "talk.mp3")],
            id="one of two has arrived",
        ),
        pytest.param(
            entry(LINK, LINK), [(LOCAL, "talk.mp3"), (REMOTE, "talk.mp3"), (REMOTE, "")], id="the same address twice"
        ),
        pytest.param(entry(f'<link rel="alternate" href="{REMOTE}"/>'), [], id="a page with this address"),
        pytest.param(entry('<link rel="enclosure"/>', LINK), [(LOCAL, "talk.mp3"), (REMOTE, "talk.mp3")], id="no href"),
        pytest.param(
            entry('<link rel="enclosure" href="https://media.example/other"/>'),
            [("https://media.example/other", "")],
            id="none has arrived",
        ),
    ],
)
def test_copy_stands_before_its_original(payload: bytes, links: list[tuple[str, str]]) -> None:
    """[RSS-036] [PRE-034] Most readers use the first enclosure."""
    assert links_of(with_local(payload, {REMOTE: COPY}, Alternative.LINK)) == links


@pytest.mark.parametrize(
    ("link", "alternate"),
    [
        (LINK, {"type": "audio/mpeg", "length": "7"}),
        (LINK.replace("/>", ' title="A talk"/>'), {"type": "audio/mpeg", "length": "7", "title": "A talk"}),
        (f'<link rel="enclosure" href="{REMOTE}"/>', {"type": "application/octet-stream"}),
        (LINK.replace('"7"', '"0"'), {"type": "audio/mpeg"}),
    ],
)
def test_rss_has_one_enclosure_and_an_alternate_enclosure(link: str, alternate: dict[str, str]) -> None:
    """[RSS-036] [PRE-034] Podcasting 2.0, podcast:alternateEnclosure: `type` is required, `length` recommended."""
    payload = with_local(entry(link), {REMOTE: COPY}, Alternative.ELEMENT)
    assert [href for href, _title in links_of(payload)] == [LOCAL]
    (node,) = etree.fromstring(payload).findall(f"{{{PODCAST_NS}}}alternateEnclosure")
    assert dict(node.attrib) == alternate
    assert [(source.tag, dict(source.attrib)) for source in node] == [(f"{{{PODCAST_NS}}}source", {"uri": REMOTE})]
