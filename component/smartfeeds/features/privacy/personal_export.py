"""The data of a person as files that other programs read (OPS-020): Atom with sync data, and JSON.

`items.atom` and the documents of `nodes.json` can be imported again: the entries are complete, with their history.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.person import Person
from smartfeeds.core.times import format_datetime
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.erasing_items import belongs_to
from smartfeeds.formats.atom import with_child
from smartfeeds.formats.plain_entry import ENTRY_START
from smartfeeds.service.context import Context
from smartfeeds.service.syncing import read_shared, shared_payload, sync_of
from smartfeeds.store.base import ReadTx
from smartfeeds.sync.record import Version

ITEM_CHUNK: Final = 200  # of one read, so that a read transaction stays short
_FEED_HEAD: Final = b'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
_README: Final = """\
The data of {jid} at the publish-subscribe service {domain}, on {date}.

nodes.json           nodes that the person owns or created, with their options
items.atom           Atom entries that the person published, with their sync data; smartfeeds import reads it
items.json           the same items and those of generic nodes: node, id, keys, revision, payload
versions.json        changes and conflicts by the person in items of others
subscriptions.json   subscriptions of the person
affiliations.json    rights of the person
tokens.json          bearer tokens and sessions, without secrets
other.json           contacts, files, chat settings, and the columns of other rows that name the person

Not in this export: logs, backups, replicas of the database, copies at other services and at readers, and the texts of
others that mention the person.
"""


class PersonalItems(NamedTuple):
    """A part of the items of a person, as JSON objects and as Atom entries. `versions` are the person's in items of
    others. The next part begins behind `after_no`; it is None at the end.
    """

    items: list[bytes]
    entries: list[bytes]
    versions: list[bytes]
    after_no: int | None


def export_items(tx: ReadTx, context: Context, person: Person, after_no: int) -> PersonalItems:
    """Returns what the next items of the store have of a person."""
    rows = privacy_rows.items_after(tx, after_no, ITEM_CHUNK)
    part = PersonalItems([], [], [], rows[-1].item.item_no if len(rows) == ITEM_CHUNK else None)
    for node_no, item in rows:
        node = tx.node_by_no(node_no)
        if node is None:
            continue
        if belongs_to(context, node, item, person):
            part.items.append(_json(_item(node, item)))
            if node.kind is NodeKind.FEED and item.payload.startswith(ENTRY_START):
                part.entries.append(with_child(shared_payload(item), sync_of(context, node, item)))
        elif node.kind is NodeKind.FEED and person.is_in(item.sync or b""):
            versions = _versions(node, item, read_shared(context, node, item).version, person)
            part.versions.extend(map(_json, versions))
    return part


def _item(node: Node, item: Item) -> dict[str, Any]:
    return {
        "node": node.name,
        "id": item.id,
        "created_us": item.created_us,
        "modified_us": item.modified_us,
        "revision": item.revision,
        "deleted": item.deleted,
        "payload": item.payload.decode(),
    }


def _versions(node: Node, item: Item, version: Version, person: Person) -> Iterator[dict[str, Any]]:
    for part in version.versions:
        stamps = [
            {
                "sequence": record.sequence,
                "when": None if record.when_us is None else format_datetime(record.when_us),
                "by": record.by,
            }
            for record in part.history
            if person.is_endpoint(record.by)
        ]
        if stamps:
            own = part is not version and person.is_endpoint(part.top.by)
            yield {
                "node": node.name,
                "id": item.id,
                "changes": stamps,
                "conflict": part.payload.decode() if own else None,
            }


def export_rows(tx: ReadTx, context: Context, person: Person) -> Mapping[str, object]:
    """Returns the JSON values of an export by the name of the file, except those of items."""
    jid, data = person.jid, context.hooks.personal_data
    owned = [(node, affiliation) for node, affiliation in tx.affiliations_of(jid)]
    created = [node for no in privacy_rows.nodes_created_by(tx, jid) if (node := tx.node_by_no(no)) is not None]
    nodes = {node.node_no: node for node in (*created, *(node for node, kind in owned if kind.value == "owner"))}
    files: dict[str, Any] = {
        "nodes.json": [
            {
                "name": node.name,
                "kind": node.kind.value,
                "created_us": node.created_us,
                "options": dict(node.options.stored),
            }
            for node in nodes.values()
        ],
        "subscriptions.json": [
            {
                "node": node.name,
                "jid": subscription.jid,
                "view": subscription.view,
                "state": subscription.state.value,
                "created_us": subscription.created_us,
                "options": dict(subscription.options),
            }
            for node, subscription in tx.subscriptions_of(jid, now_us=None)
        ],
        "affiliations.json": [{"node": node.name, "affiliation": affiliation.value} for node, affiliation in owned],
        "other.json": {
            # Not the texts: those of others have secrets of hub subscriptions, and documents of closed nodes.
            "rows": [
                {"table": row.table.name, "column": row.column, "spellings": person.spellings_in(row.text)}
                for row in (*privacy_rows.text_rows(tx, data, person), *privacy_rows.mention_rows(tx, data, person))
            ],
        },
    }
    for part in context.hooks.personal:
        exported = {} if part.export is None else part.export(tx, jid)
        for name, fields in exported.items():
            files[name] = {**files.get(name, {}), **fields}
    return files


def write_parts(
    context: Context,
    person: Person,
    rows: Mapping[str, object],
    items: Iterable[bytes] = (),
    entries: Iterable[bytes] = (),
    versions: Iterable[bytes] = (),
) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yields the files of an export: their names and the pieces of their contents. A person may have a million items,
    so no file is built in memory."""
    date = format_datetime(context.now_us)
    readme = _README.format(jid=person.jid, domain=context.policy.domain, date=date)
    yield "README.txt", (readme.encode(),)
    head = f"<id>urn:x-smartfeeds:export</id><title>Items of {person.jid}</title><updated>{date}</updated>\n"
    yield "items.atom", chain((_FEED_HEAD, head.encode()), (entry + b"\n" for entry in entries), (b"</feed>\n",))
    yield "items.json", _array(items)
    yield "versions.json", _array(versions)
    for name in sorted(rows):
        yield name, (_json(rows[name]), b"\n")


def _array(values: Iterable[bytes]) -> Iterator[bytes]:
    """Yields a JSON array of values that are JSON already."""
    separator = b"[\n"
    for value in values:
        yield separator + value
        separator = b",\n"
    yield b"\n]\n" if separator == b",\n" else b"[]\n"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True, default=str).encode()
