"""Reads mod_pubsub of Prosody from its SQL storage (IMP-009, IMP-010): SQLite, or PostgreSQL by its address."""

import json
from collections.abc import Iterator
from typing import Final

from smartfeeds.errors import DocumentError
from smartfeeds.features.moving_in.foreign_database import ForeignRows, is_database, open_database, text_of_value
from smartfeeds.features.moving_in.moved import MovedItem, MovedNode, MovedProblem, UnreadableNode, check_host
from smartfeeds.features.moving_in.prosody_files import read_prosody_files, time_us
from smartfeeds.features.moving_in.prosody_options import OTHER_DATA, PERSONAL_NODES, Plain, moved_node, prosody_node

_HOSTS: Final = """SELECT DISTINCT host FROM prosody WHERE store = 'pubsub_nodes' ORDER BY host"""
_NODES: Final = """
    SELECT "user", "key", "type", value FROM prosody
    WHERE host = ? AND store = 'pubsub_nodes' ORDER BY "user", "key"
"""
_ITEMS: Final = """
    SELECT "key", "when", "with", value FROM prosodyarchive
    WHERE host = ? AND "user" = '' AND store = ? ORDER BY sort_id
"""
_PERSONAL: Final = """SELECT DISTINCT host FROM prosody WHERE store = 'pep' ORDER BY host"""


def read_prosody(source: str, host: str) -> Iterator[MovedNode | MovedProblem]:
    """Yields the nodes of a component of Prosody, from its data folder, or from its database.

    Raises DocumentError if the source cannot be read, ConfigError for a database of another kind, and if the source has
    no nodes of the component.
    """
    if not is_database(source):
        yield from read_prosody_files(source, host)
        return
    with open_database(source) as rows:
        yield from _read(rows, host)


def _read(rows: ForeignRows, host: str) -> Iterator[MovedNode | MovedProblem]:
    check_host("the database", host, [text_of_value(row[0]) for row in rows(_HOSTS)], OTHER_DATA)
    records: dict[str, dict[str, Plain]] = {}
    for user, key, kind, value in rows(_NODES, (host,)):
        records.setdefault(text_of_value(user), {})[text_of_value(key)] = _value(str(kind), value)
    for user, record in records.items():
        name = record.get("name")
        try:
            node = prosody_node(name if isinstance(name, str) else user, record)
        except DocumentError as error:
            yield UnreadableNode(f"node {user!r}", f"the node cannot be read: {error}")
        else:
            yield moved_node(node, _items(rows, host, user))
    for (personal,) in rows(_PERSONAL):
        yield MovedProblem(f"host {text_of_value(personal)}", PERSONAL_NODES)


def _value(kind: str, value: object) -> Plain:
    """Returns a stored value, False for broken JSON: it is neither a name nor a table."""
    text = text_of_value(value)
    if kind != "json":
        return text
    try:
        return json.loads(text)  # type: ignore[no-any-return]  # `Plain` has every value of JSON
    except (ValueError, RecursionError):
        return False


def _items(rows: ForeignRows, host: str, user: str) -> Iterator[MovedItem | MovedProblem]:
    for key, when, publisher, value in rows(_ITEMS, (host, f"pubsub_{user}")):
        payload = text_of_value(value).encode("utf-8", "surrogateescape")
        yield MovedItem(text_of_value(key), text_of_value(publisher), time_us(when), None, payload)
