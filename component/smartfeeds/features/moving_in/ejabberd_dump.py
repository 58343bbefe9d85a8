"""Nodes from a text dump of ejabberd's mnesia: `ejabberdctl dump FILE`, or `dump_table` into files of one folder
(IMP-020 to IMP-028).

The dump has the items before their nodes. It is therefore read twice: first the nodes and who is subscribed, then the
items of the chosen nodes, which a temporary file groups by node.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from smartfeeds.core.options import FormFields
from smartfeeds.errors import Condition, DocumentError, FeedError
from smartfeeds.features.moving_in.ejabberd_values import (
    AFFILIATIONS,
    OTHER_STORAGE,
    moved_subscription,
    persists_items,
    read_options,
    subscribe_fields,
    text_of,
    time_us,
)
from smartfeeds.features.moving_in.erlang_terms import ErlangAtom, Term, parse_head, parse_term, read_terms, term_name
from smartfeeds.features.moving_in.erlang_xml import xml_of
from smartfeeds.features.moving_in.item_file import NumberedItem, temporary_items
from smartfeeds.features.moving_in.moved import (
    MovedItem,
    MovedNode,
    MovedProblem,
    MovedSubscription,
    UnreadableItem,
    UnreadableNode,
    check_host,
    personal_nodes,
)

_CHUNK_BYTES: Final = 1 << 20
_DISK_LOG: Final = b"\x01\x02\x03\x04"  # how Erlang's disk_log begins, and with it a backup of mnesia
_ITEM, _STATE, _NODE = b"pubsub_item", b"pubsub_state", b"pubsub_node"
# The options of subscriptions. It may be missing: the plugin `flat` stores none.
_SUBSCRIPTION = b"pubsub_subscription"
_TABLES: Final = (_NODE, _STATE, _ITEM)
# The beginning of an item: its id, and the number of its node.
_ITEM_NODE: Final = re.compile(rb"\s*+\{pubsub_item,\s*+\{<<[^<>]*+>>,\s*+(\d{1,18}+)\}")
_MOST_NODES: Final = 10**18  # the temporary file stores numbers of 64 bits
_PAYLOAD: Final = "payload"  # the last attribute of an item, in every version of ejabberd
_STATE_FIELDS: Final = ("stateid", "affiliation", "subscriptions")
_ANY_NODE: Final = UnreadableItem("items", "items that cannot be read may be of this node")

# Values of a record by the names of its attributes.
Fields = Mapping[str, Term]


@dataclass(slots=True)
class _Person:
    """The affiliation and the subscriptions of a JID to a node: their states with their ids."""

    affiliation: str = ""
    subscriptions: Sequence[tuple[str, str]] = ()


@dataclass(slots=True)
class _Node:
    host: bytes
    name: bytes
    number: int
    options: Sequence[Term]
    owners: Sequence[Term]
    people: dict[str, _Person] = field(default_factory=dict)
    problems: list[MovedProblem] = field(default_factory=list)
    unreadable: list[UnreadableItem] = field(default_factory=list)


class _Record(NamedTuple):
    """A row of a table, and where it begins."""

    table: bytes
    data: bytes
    attributes: Sequence[str]
    place: str

    def fields(self) -> Fields:
        """The values. Raises FeedError if the record cannot be read."""
        values = parse_term(self.data)
        assert isinstance(values, tuple)  # `term_name` has read the beginning of a tuple
        # A record of another length gets no error here: it lacks a field, so its caller reports an unknown form.
        return dict(zip(self.attributes, values[1:], strict=False))

    def fields_before(self, attribute: str) -> tuple[Fields, int]:
        """The values of the attributes before this one, which is the last, and the offset of its value.

        Raises FeedError if the record cannot be read, or has another order.
        """
        if self.attributes[-1] != attribute:
            raise FeedError(Condition.INVALID_PAYLOAD, f"the last attribute is {self.attributes[-1]}, not {attribute}")
        values, offset = parse_head(self.data, len(self.attributes))
        return dict(zip(self.attributes, values[1:], strict=False)), offset


def read_ejabberd_dump(source: str, host: str) -> Iterator[MovedNode | MovedProblem]:
    """Yields the nodes of a service in a dump, by name. `source` is a file, or a folder with files of single tables.

    Raises DocumentError for a file that is no dump, ConfigError for a host that is not in it.
    """
    files = _files(Path(source))
    nodes: dict[int, _Node] = {}
    # A state may stand before its node.
    states: list[tuple[int, Fields]] = []
    options_by_subid: dict[str, FormFields] = {}
    problems: list[MovedProblem] = []
    personal = 0
    for record in _records(files, (_NODE, _STATE, _SUBSCRIPTION)):
        try:
            fields = record.fields()
        except FeedError as error:
            problems.append(_left_out(record, error.text))
            continue
        match fields:
            case {"nodeid": (bytes(owner), bytes(name)), "id": int(number), "options": list(options)} if (
                abs(number) < _MOST_NODES
            ):
                owners = fields.get("owners")
                nodes[number] = _Node(owner, name, number, options, owners if isinstance(owners, list) else ())
            case {"nodeid": (tuple(), bytes())}:
                personal += 1
            case {"subid": bytes(subid), "options": list(options)}:
                options_by_subid[text_of(subid)] = subscribe_fields(_pairs(options))
            case {"stateid": (tuple(), int(number))}:
                states.append((number, {name: fields.get(name, ()) for name in _STATE_FIELDS}))
            case _:
                problems.append(_left_out(record, f"unknown form of a record {record.table.decode()}"))
    check_host("the dump", host, sorted({text_of(node.host) for node in nodes.values()}), OTHER_STORAGE)
    chosen = {number: node for number, node in nodes.items() if text_of(node.host) == host}
    for number, state in states:
        if number in chosen:
            _read_state(chosen[number], state)
    yield from personal_nodes(personal)
    yield from problems
    with temporary_items() as items:
        strays: list[MovedProblem] = []
        items.fill(_items(files, chosen, strays))
        yield from strays
        for node in sorted(chosen.values(), key=lambda node: node.name):
            unreadable = [*node.unreadable, *([_ANY_NODE] if strays else ())]
            yield _moved(node, options_by_subid, chain(unreadable, items.items(node.number)))


def _left_out(record: _Record, reason: str) -> MovedProblem:
    return (UnreadableNode if record.table == _NODE else MovedProblem)(record.place, reason)


def _files(path: Path) -> list[Path]:
    """The files of a source, checked. Raises DocumentError."""
    try:
        files = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
        for file in files:
            with file.open("rb") as stream:
                if stream.read(len(_DISK_LOG)) == _DISK_LOG:
                    raise DocumentError(
                        f"{file} is a binary backup of mnesia; restore it with ejabberdctl restore, and write a"
                        " text with ejabberdctl dump"
                    )
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror}") from None
    if not files:
        raise DocumentError(f"{path} has no files; name the folder into which ejabberdctl dump_table has written")
    return files


def _records(files: Sequence[Path], tables: Sequence[bytes]) -> Iterator[_Record]:
    """Yields the records of some tables in all files. Raises DocumentError if one is no dump or lacks a table."""
    attributes: dict[bytes, Sequence[str]] = {}
    for file in files:
        try:
            with file.open("rb") as stream:
                terms = read_terms(iter(lambda: stream.read(_CHUNK_BYTES), b""))
                _, header = next(terms, (0, b""))
                attributes |= _attributes(header)
                for position, data in terms:
                    table = term_name(data)
                    if table in tables:
                        if table not in attributes:
                            raise DocumentError(f"{file} has records of {table.decode()}, but not in its first term")
                        yield _Record(table, data, attributes[table], f"record at byte {position} of {file.name}")
        except OSError as error:
            raise DocumentError(f"cannot read {file}: {error.strerror}") from None
        except FeedError as error:
            raise DocumentError(f"{file} is no text dump of mnesia: {error.text}") from None
    missing = ", ".join(table.decode() for table in _TABLES if table not in attributes)
    if missing:
        raise DocumentError(
            f"the dump has no table {missing}; dump all tables with ejabberdctl dump, or name the"
            " database if mod_pubsub has db_type sql"
        )


def _attributes(header: bytes) -> dict[bytes, Sequence[str]]:
    """The attributes of each table, from the first term of a dump. Raises FeedError if it is another term."""
    match parse_term(header):
        case ("tables", list(tables)):
            pass
        case _:
            raise FeedError(Condition.INVALID_PAYLOAD, "the first term does not list the tables")
    attributes: dict[bytes, Sequence[str]] = {}
    for table in tables:
        match table:
            case (ErlangAtom() as name, list(properties)):
                for part in properties:
                    match part:
                        case ("attributes", list(names)):
                            attributes[name.encode("utf-8", "replace")] = [str(attribute) for attribute in names]
    return attributes


def _read_state(node: _Node, state: Fields) -> None:
    """Adds the row of a JID: its affiliation and its subscription."""
    match state:
        case {"stateid": (user, int()), "affiliation": str(affiliation), "subscriptions": list(subscriptions)} if (
            jid := _jid(user)
        ):
            node.people[jid] = _Person(AFFILIATIONS.get(affiliation, ""), [*_states(subscriptions)])
        case _:
            node.problems.append(MovedProblem("a row of pubsub_state", "unknown form of the record"))


def _states(subscriptions: Iterable[Term]) -> Iterator[tuple[str, str]]:
    for subscription in subscriptions:
        match subscription:
            case (str(state), bytes(subid)):
                yield state, text_of(subid)


def _items(files: Sequence[Path], nodes: Mapping[int, _Node], strays: list[MovedProblem]) -> Iterator[NumberedItem]:
    """Yields the items of some nodes. Items that cannot be read are added to their node, or to `strays` if even the
    number of the node cannot be read."""
    stored = {number for number, node in nodes.items() if persists_items(read_options(_pairs(node.options))[0])}
    for record in _records(files, (_ITEM,)):
        number = _ITEM_NODE.match(record.data)
        # Most items of a server may belong to nodes of users; reading their fields would take most of the time.
        if number is not None and int(number[1]) not in stored:
            continue
        try:
            fields, payload = record.fields_before(_PAYLOAD)
            match fields:
                case {
                    "itemid": (bytes(item_id), int(node_no)),
                    "creation": (created, _),
                    "modification": (modified, publisher),
                }:
                    if node_no in stored:
                        yield (
                            node_no,
                            MovedItem(
                                text_of(item_id),
                                _jid(publisher),
                                time_us(created),
                                time_us(modified),
                                xml_of(record.data, payload),
                            ),
                        )
                case _:
                    raise FeedError(Condition.INVALID_PAYLOAD, "unknown form of a record pubsub_item")
        except FeedError as error:
            problem = UnreadableItem(record.place, error.text)
            (strays if number is None else nodes[int(number[1])].unreadable).append(problem)


def _moved(
    node: _Node, options_by_subid: Mapping[str, FormFields], items: Iterator[MovedItem | MovedProblem]
) -> MovedNode:
    options, problems = read_options(_pairs(node.options))
    subscriptions: list[MovedSubscription] = []
    for jid, person in sorted(node.people.items()):
        subscription, lost = moved_subscription(jid, person.subscriptions, options_by_subid)
        problems += lost
        if subscription is not None:
            subscriptions.append(subscription)
    affiliations = {jid: "owner" for jid in map(_jid, node.owners) if jid}
    affiliations |= {jid: person.affiliation for jid, person in node.people.items() if person.affiliation}
    return MovedNode(
        text_of(node.name),
        options,
        affiliations,
        subscriptions,
        items,
        [*node.problems, *problems],
    )


def _pairs(options: Sequence[Term]) -> Iterator[tuple[str, Term]]:
    for option in options:
        match option:
            case (str(name), value):
                yield name, value


def _jid(term: Term) -> str:
    """The text of an address, or "" for another term."""
    match term:
        case (bytes(local), bytes(domain), bytes(resource)):
            bare = b"%b@%b" % (local, domain) if local else domain
            return text_of(b"%b/%b" % (bare, resource) if resource else bare)
    return ""
