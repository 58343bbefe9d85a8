"""Answers to entries (RFC 4685): the place of the entry that another one names, and this entry for its readers.

Anybody who may publish chooses what an entry answers. So a reference is followed only to items that the reader may
read, and few of them are followed.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from smartfeeds.core.feed_address import AddressError, parse_address, parse_item_address
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import MAX_ID_BYTES, Item, Node, NodeKind
from smartfeeds.core.urls import ENTRIES, entry_path, xmpp_uri
from smartfeeds.formats.atom import named_by
from smartfeeds.formats.entry import EntryLink, ReplyReference, read_entry, replies_of
from smartfeeds.service.context import Context, recipient_access
from smartfeeds.store.base import ReadTx

COMMENTS = "urn:xmpp:microblog:0:comments/"  # and the id of an entry: the node of its comments (XEP-0277 4.2)
# Publishers choose the references and links of an entry, so everything that is read for them has a bound.
REFERENCES = 3  # of one entry that are followed: hardly any answers more than one
_NODES = 8  # in which the entries that one page answers are looked up, by up to three statements each
_ITEMS = 100  # of each of them: more than a page has entries with one reference each
_LINKS = 100  # of an entry among which its comments are looked for: each may take a statement


class ItemPlace(NamedTuple):
    """The name of a feed of this service, and the id of an item that it may have."""

    node: str
    item_id: str


class Answered(NamedTuple):
    """An item that an entry answers, and its node."""

    node: Node
    item: Item


# By the number of the item that answers, and its reference.
AnsweredItems = Mapping[tuple[int, ReplyReference], Answered]


def linked_node(domain: str, link: EntryLink) -> str:
    """The node of this service that a link for replies names (XEP-0277 3), "" without one. It need not exist."""
    if link.rel != "replies":
        return ""
    try:
        address = parse_address(link.href, smart=False)
    except AddressError:
        return ""
    return address.node if address.service == domain else ""


class CommentsNode(NamedTuple):
    """The node of the comments of an entry. `only_of_it`: it has no comments of other entries."""

    node: Node
    only_of_it: bool


def find_comments(tx: ReadTx, domain: str, node: Node, item: Item, links: Iterable[EntryLink]) -> CommentsNode | None:
    """The node of this service that has the comments of an item (XEP-0277 4), whoever may read it.

    Who publishes an item chooses its links, and what readers write there has their rights. So the node must be one for
    comments by its name, or belong to the creator of the feed or to the publisher of the item. It is that of this item
    alone only if both hold: otherwise an entry could show the comments of another one as its own.
    """
    for link in islice(links, _LINKS):
        name = linked_node(domain, link)
        comments = tx.node(name) if name else None
        if comments is None or comments.kind is not NodeKind.FEED:
            continue
        is_theirs = comments.creator in (node.creator, item.publisher)
        if name.startswith(COMMENTS) or is_theirs:
            return CommentsNode(comments, is_theirs and name == COMMENTS + item.id)
    return None


def stated_place(reference: ReplyReference, domain: str, base_url: str | None) -> ItemPlace | None:
    """The place that an address of the reference states, None without an address of this service. `base_url` is that
    of the site over HTTP, "" without one; None if every host may be that of the site."""
    for address in (reference.href, reference.ref):
        item = parse_item_address(address)
        if item is not None and item.service == domain:
            return _checked(item.node, item.item_id)
        prefix = f"{address.partition(ENTRIES)[0] if base_url is None else base_url}{ENTRIES}"
        if base_url != "" and address.startswith(prefix):
            path = address.removeprefix(prefix).partition("?")[0].partition("#")[0]
            name, _, item_id = path.rpartition("/")
            try:
                return _checked(unquote(name, errors="strict"), unquote(item_id, errors="strict"))
            except UnicodeDecodeError:
                return None
    return None


def _checked(name: str, item_id: str) -> ItemPlace | None:
    """The place, None if no node or item can have this name or id."""
    texts = (name, item_id)
    if not all(texts) or any("\0" in text or len(text.encode("utf-8", "replace")) > MAX_ID_BYTES for text in texts):
        return None
    return ItemPlace(name, item_id)


def _place_of(reference: ReplyReference, node: Node, domain: str, base_url: str | None) -> ItemPlace | None:
    """The place that a reference states, else that in the feed of the answer: many ids of items are atom:ids."""
    return stated_place(reference, domain, base_url) or _checked(node.name, named_by(reference.ref) or reference.ref)


def find_answered(
    tx: ReadTx,
    context: Context,
    actor: Jid,
    entries: Iterable[tuple[Node, Item]],
    base_url: str | None,
    *,
    only_here: bool = False,
) -> AnsweredItems:
    """The items that entries answer, of those that the actor may read; with `only_here`, of those in the feeds of the
    entries. Deleted ones are among them.

    The actor may read the `entries`. Without answers among them this reads nothing. Otherwise it takes up to three
    statements for each feed that has the answered entries.
    """
    nodes: dict[str, Node] = {}
    places: dict[ItemPlace, list[tuple[int, ReplyReference]]] = {}
    for node, item in entries:
        for reference in replies_of(item.payload)[:REFERENCES]:
            place = _place_of(reference, node, context.policy.domain, base_url)
            if place is not None and place != (node.name, item.id):
                nodes[node.name] = node
                places.setdefault(place, []).append((item.item_no, reference))
    by_place = _items_at(tx, context, actor, places, nodes, only_here=only_here)
    return {answer: answered for place, answered in by_place.items() for answer in places[place]}


def find_named(
    tx: ReadTx, context: Context, actor: Jid, node: Node, references: Iterable[ReplyReference], base_url: str
) -> Mapping[ReplyReference, Answered]:
    """The items that references in a feed name, of those that the actor may read. The actor may read the feed."""
    places = {reference: _place_of(reference, node, context.policy.domain, base_url) for reference in references}
    distinct = dict.fromkeys(place for place in places.values() if place is not None)
    by_place = _items_at(tx, context, actor, distinct, {node.name: node}, only_here=False)
    return {reference: by_place[place] for reference, place in places.items() if place in by_place}


def reference_to(
    tx: ReadTx, context: Context, actor: Jid, node: Node, target: str, base_url: str
) -> ReplyReference | None:
    """The reference of an answer in the node to what an id or an address names, as all answers have it: the atom:id,
    and an address. None if it names no item that the actor may read."""
    named = ReplyReference(target)
    answered = find_named(tx, context, actor, node, [named], base_url).get(named)
    if answered is None or answered.item.deleted:
        return None
    name, item, domain = answered.node.name, answered.item, context.policy.domain
    atom_id = read_entry(item).atom_id
    # The address that was named stays, so that the answer is found by it.
    if target not in (item.id, atom_id):
        return ReplyReference(atom_id, target) if stated_place(named, domain, base_url) is not None else None
    address = f"{base_url}{entry_path(name, item.id)}" if base_url else xmpp_uri(domain, name, item.id)
    return ReplyReference(atom_id, address)


def _items_at(
    tx: ReadTx,
    context: Context,
    actor: Jid,
    places: Iterable[ItemPlace],
    nodes: Mapping[str, Node],
    *,
    only_here: bool,
) -> dict[ItemPlace, Answered]:
    """The items at these places, of those that the actor may read. `nodes` are those that the actor may read, and the
    only ones with `only_here`."""
    by_node: dict[str, list[str]] = {}
    for place in places:
        by_node.setdefault(place.node, []).append(place.item_id)
    by_place: dict[ItemPlace, Answered] = {}
    for name, ids in list(by_node.items())[:_NODES]:
        target = nodes.get(name) or (None if only_here else _readable(tx, context, actor, name))
        for item in [] if target is None else tx.items(target.node_no, ids[:_ITEMS]):
            if target is not None and not item.damaged:
                by_place[ItemPlace(name, item.id)] = Answered(target, item)
    return by_place


def _readable(tx: ReadTx, context: Context, actor: Jid, name: str) -> Node | None:
    """The feed with this name if the actor may read it."""
    node = tx.node(name)
    if node is None or node.kind is not NodeKind.FEED:
        return None
    access = recipient_access(tx, context, node, actor)
    return node if access.sees_items else None
