"""Nodes from the PostgreSQL database of sat-pubsub, which is also named Libervia Pubsub (IMP-040 to IMP-046).

No node or item may get more readers by moving. A model without a counterpart becomes `whitelist`, and an item that only
some users may read moves only into a node with a whitelist.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from lxml import etree

from smartfeeds.core.options import PUBSUB, FormFields
from smartfeeds.core.stores import without_password
from smartfeeds.core.times import EPOCH
from smartfeeds.errors import ConfigError, DocumentError
from smartfeeds.features.moving_in.foreign_database import POSTGRESQL, ForeignRows, open_database
from smartfeeds.features.moving_in.moved import (
    MovedItem,
    MovedNode,
    MovedProblem,
    MovedSubscription,
    UnreadableItem,
    personal_nodes,
)
from smartfeeds.formats.xml import strict_parser
from smartfeeds.xml_names import parse_xml

# The tables and columns that are read here are the same in all versions between these (IMP-046).
OLDEST_VERSION: Final = 5
NEWEST_VERSION: Final = 10
_VERSION: Final = "SELECT value FROM metadata WHERE key = 'version'"
_PERSONAL: Final = "SELECT count(*) FROM nodes WHERE pep IS NOT NULL"
_NODES: Final = (
    "SELECT node_id, node, access_model, persist_items, deliver_payloads, max_items, send_last_published_item,"
    " publish_model FROM nodes WHERE pep IS NULL AND node_type = 'leaf' ORDER BY node"
)
_AFFILIATIONS: Final = (
    "SELECT jid, affiliation FROM affiliations JOIN entities USING (entity_id) WHERE node_id = ? ORDER BY jid"
)
_SUBSCRIPTIONS: Final = (
    "SELECT jid, resource, state FROM subscriptions JOIN entities USING (entity_id) WHERE node_id = ?"
    " ORDER BY jid, resource"
)
# The items of one request have one date: it is that of the transaction.
_ITEMS: Final = (
    "SELECT item, publisher, data::text, created, updated, access_model <> 'open'"
    " OR EXISTS (SELECT 1 FROM item_jids_authorized AS jids WHERE jids.item_id = items.item_id)"
    " OR EXISTS (SELECT 1 FROM item_groups_authorized AS parts WHERE parts.item_id = items.item_id)"
    " FROM items WHERE node_id = ? ORDER BY item_id"
)
# Models without a counterpart. Such a node must not become readable by more users.
_CLOSED_MODELS: Final = frozenset({"publisher-roster", "self-publisher", "publish-only"})
_WHITELIST: Final = "whitelist"
_PARSER: Final = strict_parser("utf-8")


def read_sat_pubsub(source: str, _host: str) -> Iterator[MovedNode | MovedProblem]:
    """Yields the nodes of the service, by name. A database has the nodes of one service, so the host is not used.

    Raises DocumentError if the database cannot be read or has a version before 5, ConfigError for another source.
    """
    if not source.startswith(POSTGRESQL):
        raise ConfigError(
            "sat-pubsub stores its nodes in PostgreSQL; give postgresql://USER@HOST/DATABASE, not"
            f" {without_password(source)}"
        )
    with open_database(source) as rows:
        yield from _check_version(next(rows(_VERSION), ("",))[0])
        yield from personal_nodes(next(rows(_PERSONAL))[0])
        yield MovedProblem(
            "titles, descriptions and types", "sat-pubsub does not store them; configure the nodes after the import"
        )
        for row in list(rows(_NODES)):
            yield _node(rows, *row)


def _check_version(text: str) -> Iterator[MovedProblem]:
    """Yields a problem for a version that is newer than those that are known. Raises DocumentError for an older one."""
    version = int(text) if text.isascii() and text.isdigit() else 0
    if version < OLDEST_VERSION:
        raise DocumentError(
            f"the database has version {text or 'none'} of the schema, and version {OLDEST_VERSION} is the oldest that"
            f" can be read; run libervia_pubsub_update_{version}_{version + 1}.sql and the later scripts of sat-pubsub"
        )
    if version > NEWEST_VERSION:
        yield MovedProblem(
            f"version {version} of the schema",
            f"version {NEWEST_VERSION} is the newest that is known; compare the access to nodes and items",
        )


def _node(
    rows: ForeignRows,
    number: int,
    name: str,
    access_model: str,
    persist: bool | None,
    deliver_payloads: bool,
    max_items: int,
    send_last: str,
    publish_model: str,
) -> MovedNode:
    problems: list[MovedProblem] = []
    whitelist = access_model == _WHITELIST
    if access_model in _CLOSED_MODELS:
        problems.append(MovedProblem("option pubsub#access_model", f"{access_model} becomes whitelist"))
        access_model = _WHITELIST
    options: FormFields = {
        f"{PUBSUB}access_model": (access_model,),
        f"{PUBSUB}persist_items": (_boolean(persist is not False),),
        f"{PUBSUB}deliver_payloads": (_boolean(deliver_payloads),),
        f"{PUBSUB}max_items": (str(max_items) if max_items else "max",),
        f"{PUBSUB}send_last_published_item": (send_last,),
        f"{PUBSUB}publish_model": (publish_model,),
    }
    subscriptions = [
        MovedSubscription(f"{jid}/{resource}" if resource else jid, state)
        for jid, resource, state in rows(_SUBSCRIPTIONS, (number,))
    ]
    items = _items(rows, number, whitelist=whitelist) if persist is not False else ()
    return MovedNode(name, options, dict(rows(_AFFILIATIONS, (number,))), subscriptions, items, problems)


def _items(rows: ForeignRows, number: int, *, whitelist: bool) -> Iterator[MovedItem | MovedProblem]:
    for item_id, publisher, data, created, updated, restricted in rows(_ITEMS, (number,)):
        if restricted and not whitelist:
            yield MovedProblem(f"item {item_id}", "only some users may read it, and the node is open to others")
            continue
        if restricted:
            yield MovedProblem(f"item {item_id}", "only some members of the node could read it; now all of them may")
        payload = _payload(data)
        if payload is None:
            yield UnreadableItem(f"item {item_id}", "its data cannot be read")
            continue
        yield MovedItem(item_id, publisher, _time_us(created), _time_us(updated), payload)


def _payload(data: str) -> bytes | None:
    """The first child element of the item that the data is (IMP-042), empty if it has none."""
    try:
        item = parse_xml(data.encode(), _PARSER)
    except (etree.XMLSyntaxError, UnicodeEncodeError):
        return None
    child = next(item.iterchildren(etree.Element), None)
    return b"" if child is None else etree.tostring(child, encoding="utf-8", with_tail=False)


def _time_us(time: datetime) -> int:
    return (time.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def _boolean(value: bool) -> str:
    return "true" if value else "false"
