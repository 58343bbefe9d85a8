"""Data of mod_pubsub as Prosody writes it, from a model of nodes and items: files in Lua, and the tables of its SQL."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree

from smartfeeds.features.moving_in.prosody_files import encoded

XML = "{http://www.w3.org/XML/1998/namespace}"
TABLES = """
CREATE TABLE "prosody" ("host" TEXT NOT NULL, "user" TEXT NOT NULL, "store" TEXT NOT NULL, "key" TEXT NOT NULL,
    "type" TEXT NOT NULL, "value" TEXT NOT NULL);
CREATE TABLE "prosodyarchive" ("sort_id" INTEGER PRIMARY KEY AUTOINCREMENT, "host" TEXT NOT NULL,
    "user" TEXT NOT NULL, "store" TEXT NOT NULL, "key" TEXT NOT NULL, "when" INTEGER NOT NULL, "with" TEXT NOT NULL,
    "type" TEXT NOT NULL, "value" TEXT NOT NULL);
"""


@dataclass(frozen=True)
class ProsodyItem:
    """An item with the Unix seconds of its last change."""

    item_id: str
    when: int
    publisher: str
    payload: etree._Element


@dataclass(frozen=True)
class ProsodyModel:
    """A node."""

    name: str
    items: Sequence[ProsodyItem] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    affiliations: Mapping[str, str] = field(default_factory=dict)
    subscribers: Mapping[str, Any] = field(default_factory=dict)


def lua(value: Any) -> str:
    """A value as Prosody writes it. A list has positional entries, a dictionary with None entries behind its fields."""
    if isinstance(value, Mapping):
        fields = "".join(f"\t[{lua(key)}] = {lua(part)};\n" for key, part in value.items() if key is not None)
        return "{\n" + "".join(f"\t{lua(part)};\n" for part in value.get(None, ())) + fields + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return lua_string(value) if isinstance(value, str) else repr(value)


def lua_string(text: str) -> str:
    """A string with Lua's escapes."""
    escapes = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n"}
    return (
        '"'
        + "".join(escapes.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03d}") for byte in text.encode())
        + '"'
    )


def stanza(element: etree._Element) -> dict[str | None, Any]:
    """An element as Prosody stores it: its namespace as an attribute, namespaces of attributes in their names."""
    tag = etree.QName(element)
    attributes = {"xmlns": tag.namespace or ""}
    for name, value in element.attrib.items():
        qualified = etree.QName(str(name))
        plain = str(name).replace(XML, "xml:")
        key = (
            plain
            if qualified.namespace is None or plain.startswith("xml:")
            else f"{qualified.namespace}\1{qualified.localname}"
        )
        attributes[key] = str(value)
    entries: list[Any] = [element.text] if element.text else []
    for child in element:
        entries += [stanza(child), *([child.tail] if child.tail else [])]
    return {None: entries, "name": tag.localname, "attr": attributes}


def list_entry(item: ProsodyItem) -> str:
    """An item in a list file."""
    table = stanza(item.payload)
    table["attr"]["stamp"] = "2026-11-22T02:42:39Z"
    table |= {"key": item.item_id, "when": item.when}
    if item.publisher:
        table["with"] = item.publisher
    return f"item({lua(table)});\n"


def write_files(folder: Path, host: str, nodes: Iterable[ProsodyModel]) -> Path:
    """Writes the data folder of Prosody."""
    place = folder / encoded(host)
    (place / "pubsub_nodes").mkdir(parents=True)
    for node in nodes:
        record = {
            "name": node.name,
            "config": node.config,
            "affiliations": node.affiliations,
            "subscribers": node.subscribers,
        }
        (place / "pubsub_nodes" / f"{encoded(node.name)}.dat").write_text(f"return {lua(record)};\n")
        with (place / f"pubsub_{encoded(node.name, keep='_')}.list").open("w") as file:
            file.writelines(map(list_entry, node.items))
    return folder


def write_sqlite(path: Path, host: str, nodes: Iterable[ProsodyModel]) -> Path:
    """Writes the SQL storage of Prosody."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES)
        for node in nodes:
            rows = [("name", "string", node.name)]
            rows += [(key, "json", json.dumps(getattr(node, key))) for key in ("config", "affiliations", "subscribers")]
            connection.executemany(
                "INSERT INTO prosody VALUES (?, ?, 'pubsub_nodes', ?, ?, ?)",
                [(host, node.name, *row) for row in rows],
            )
            statement = (
                'INSERT INTO prosodyarchive (host, user, store, key, "when", "with", type, value)'
                " VALUES (?, '', ?, ?, ?, ?, 'xml', ?)"
            )
            for item in node.items:
                payload = etree.tostring(item.payload, encoding="unicode")
                row = (host, f"pubsub_{node.name}", item.item_id, item.when, item.publisher, payload)
                connection.execute(statement, row)
    return path
