"""The small language that the store's tests are written in: values that are not stored yet."""

import hashlib
from collections.abc import Callable

from smartfeeds.core.feed_files import FeedFile, file_id_of
from smartfeeds.core.filters import EntryMeta, entry_facets
from smartfeeds.core.model import Item, Node, NodeKind, Subscription, SubscriptionState
from smartfeeds.core.options import NodeOptions
from smartfeeds.core.text import words as words_of
from smartfeeds.core.view import Traits, View, parse_view
from smartfeeds.store.base import Work, WriteTx

DIGEST = hashlib.sha256(b"photo").hexdigest()
FILE_ID = file_id_of(DIGEST, "image/jpeg")


class NamedWork(Work):
    """A work without an effect, whose result is its name."""

    def __init__(self, turn: str, name: str = "") -> None:
        super().__init__(turn, None)
        self.name = name

    def step(self, tx: object) -> str:
        return self.name

    def ended(self) -> None:
        pass


def read_payload(payload: bytes, *, words: bool = True) -> Traits:
    """An indexer for payloads like `by=alice in=news re=1 la=en | some words`: the store ignores the format."""
    head, _, text = payload.decode().partition("|")
    pairs = [pair.partition("=") for pair in head.split()]
    values = {kind: frozenset(value for name, _, value in pairs if name == kind) for kind in ("by", "in", "re", "la")}
    meta = EntryMeta(values["by"], values["in"], values["re"], language="".join(values["la"]))
    return Traits(entry_facets(meta), words_of(text) if words else frozenset())


def node(name: str = "feed", kind: NodeKind = NodeKind.FEED, creator: str = "alice@example.org") -> Node:
    """A node that is not stored yet."""
    return Node(0, name, kind, creator, 1_000, NodeOptions(kind))


def item(item_id: str, key_us: int, payload: str = "", *, created_us: int | None = None, **fields: object) -> Item:
    """An item that is not stored yet; both keys are `key_us` unless a created one is given."""
    values: dict[str, object] = {"publisher": "alice@example.org", **fields}
    created = key_us if created_us is None else created_us
    return Item(0, item_id, created, key_us, payload.encode(), **values)  # type: ignore[arg-type]


def subscription(node_no: int, jid: str, view: str = "", state: str = "subscribed") -> Subscription:
    """A subscription that is not stored yet."""
    return Subscription(0, node_no, jid, view, "feed", "feeds.example.org", SubscriptionState(state), 5, 6, 7)


def add_feed(*items: Item, name: str = "feed") -> Callable[[WriteTx], Node]:
    """A work that makes a node with these items."""

    def work(tx: WriteTx) -> Node:
        made = tx.add_node(node(name))
        tx.begin_index(made.node_no)  # as if somebody had read a filtered view
        for one in items:
            tx.put_item(made.node_no, one)
        return made

    return work


def ids(items: list[Item]) -> str:
    """The ids of items, for comparing."""
    return " ".join(one.id for one in items)


def view(query: str) -> View:
    """The view of a query string."""
    found = parse_view(query)
    assert found is not None
    return found


def feed_file(node_no: int, owner: str = "alice@example.org", digest: str = DIGEST) -> FeedFile:
    """An unused file of five bytes."""
    return FeedFile(node_no, file_id_of(digest, "image/jpeg"), digest, "p.jpg", "image/jpeg", 5, owner, 1, 1)


def link(file_id: str = FILE_ID) -> str:
    """A payload that refers to a file."""
    return f"| <link href='https://x.example/files/feed/{file_id}' rel='enclosure'/>"
