"""Whether an entry names another author than the person who published it."""

from xml.sax.saxutils import escape

import pytest

from smartfeeds.core.model import Item, Node
from smartfeeds.core.options import NodeKind, NodeOptions
from smartfeeds.formats.atom import ATOM_NS
from smartfeeds.formats.authorship import SHOWN_AUTHORS, other_publisher
from smartfeeds.formats.entry import read_entry

BOB = "bob@localhost"


def publisher(*authors: dict[str, str], by: str = BOB, itemreply: str = "publisher", more: str = "") -> str:
    """What `other_publisher` returns for an entry with these authors."""
    people = "".join(
        f"<author>{''.join(f'<{name}>{escape(text)}</{name}>' for name, text in author.items())}</author>"
        for author in authors
    )
    payload = f"<entry xmlns='{ATOM_NS}'><title>t</title>{people}{more}</entry>".encode()
    item = Item(1, "a", 1, 1, payload, by)
    options = NodeOptions(NodeKind.FEED, {"itemreply": (itemreply,)})
    return other_publisher(Node(1, "n", NodeKind.FEED, BOB, 0, options), item, read_entry(item))


@pytest.mark.parametrize(
    "author",
    [
        {"name": "alice", "uri": "xmpp:alice@localhost"},
        {"name": "bob", "uri": "xmpp:alice@localhost"},
        {"name": "bob", "uri": "XMPP:Alice@LocalHost/phone"},
        {"name": "bob", "uri": "xmpp:alice%40localhost?message"},
        {"name": "bob", "uri": "xmpp://alice@localhost"},
        {"name": "bob", "uri": "xmpp:bob@elsewhere.example"},
        {"name": "bob", "uri": "xmpp:localhost"},
        {"name": "bob", "uri": "xmpp:"},
        {"name": "bob", "uri": "xmpp:bob@localhost@"},
        {"name": "bob", "uri": "xmpp:alice@localhost#bob@localhost"},
        {"name": "alice@localhost"},
        {"name": "xmpp:alice@localhost"},
        {"name": "alice@localhost", "uri": "xmpp:bob@localhost"},
        {"name": "alice@localhost", "uri": "https://bob.example/"},
        {"email": "alice@localhost"},
    ],
)
def test_publisher_is_named_beside_an_author_with_another_address(author: dict[str, str]) -> None:
    assert publisher(author) == BOB
    assert publisher({"name": "bob", "uri": f"xmpp:{BOB}"}, author) == BOB


@pytest.mark.parametrize(
    "author",
    [
        {"name": "bob", "uri": "xmpp:bob@localhost"},
        {"name": "Robert", "uri": "xmpp:Bob@LOCALHOST/desk?message;body=hello"},
        {"name": "bob@localhost"},
        {"name": "xmpp:bob@localhost"},
        {"email": "bob@localhost"},
        # Names without an address are pen names.
        {"name": "alice"},
        {"name": "Alice @ Home"},
        {"name": "alice", "uri": "https://alice.example/"},
        {"name": "alice", "email": "alice@mail.example"},
        {"uri": "https://alice@pictures.example/"},
    ],
)
def test_publisher_is_not_named_beside_itself_and_pen_names(author: dict[str, str]) -> None:
    assert publisher(author) == ""


@pytest.mark.parametrize("name", ["a;b@localhost", "a?b@localhost", "a#b@localhost", "a%41@localhost", "ä@localhost"])
def test_address_that_is_not_encoded_is_known(name: str) -> None:
    """The service writes it so itself (`formats.post.add_author`)."""
    assert publisher({"name": "a", "uri": f"xmpp:{name}"}, by=name) == ""


ALICE = {"name": "alice", "uri": "xmpp:alice@localhost"}


@pytest.mark.parametrize("by", ["feeds.localhost", "peer.example", ""])
def test_services_publish_for_others(by: str) -> None:
    """Sources, mirrors and imports. An item that is erased or damaged has no publisher."""
    assert publisher(ALICE, by=by) == ""


@pytest.mark.parametrize("itemreply", ["owner", "none"])
def test_hidden_publishers_stay_hidden(itemreply: str) -> None:
    assert publisher(ALICE, itemreply=itemreply) == ""


def test_authors_of_the_source_count_if_pages_show_them() -> None:
    """[RFC 4287 4.2.1]"""
    source = "<source><author><name>alice</name><uri>xmpp:alice@localhost</uri></author></source>"
    assert publisher(more=source) == BOB
    assert publisher({"name": "bob"}, more=source) == ""


def test_entry_without_authors_names_nobody() -> None:
    assert publisher() == ""
    assert publisher(*[{"name": "bob"}] * SHOWN_AUTHORS, ALICE) == ""  # more than a page shows
