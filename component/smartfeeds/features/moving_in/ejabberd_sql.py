"""Nodes of ejabberd's mod_pubsub (IMP-020), here from its SQL database (`db_type: sql`): SQLite or PostgreSQL (IMP-029,
IMP-030).

The tables of mod_pubsub are the same in the schema for single domains and in the schema for several (`new_sql_schema`).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from smartfeeds.core.options import FormFields
from smartfeeds.core.times import within_years
from smartfeeds.errors import FeedError
from smartfeeds.features.moving_in.ejabberd_dump import read_ejabberd_dump
from smartfeeds.features.moving_in.ejabberd_values import (
    AFFILIATIONS,
    OTHER_STORAGE,
    SUBSCRIPTION_STATES,
    moved_subscription,
    persists_items,
    read_options,
    subscribe_fields,
    time_us,
)
from smartfeeds.features.moving_in.erlang_terms import Term, parse_term
from smartfeeds.features.moving_in.foreign_database import ForeignRows, is_database, open_database, text_of_value
from smartfeeds.features.moving_in.moved import (
    MovedItem,
    MovedNode,
    MovedProblem,
    MovedSubscription,
    check_host,
    personal_nodes,
)

# The names of `AFFILIATIONS` and the subscription states by the letters in the tables.
_AFFILIATION_LETTERS: Final = {"o": "owner", "p": "publisher", "u": "publish_only", "m": "member", "c": "outcast"}
_STATE_LETTERS: Final = {state[0]: state for state in SUBSCRIPTION_STATES}
_TIME: Final = re.compile(r"(\d{1,9}):(\d{1,6}):(\d{1,6})")
# The nodes of a user account have its address as their host. A percent sign would be a parameter for PostgreSQL.
_HOSTS: Final = "SELECT DISTINCT host FROM pubsub_node WHERE host = replace(host, '@', '') ORDER BY host"
_PERSONAL: Final = "SELECT count(*) FROM pubsub_node WHERE host <> replace(host, '@', '')"
_NODES: Final = "SELECT nodeid, node FROM pubsub_node WHERE host = ? ORDER BY node"
_OPTIONS: Final = "SELECT name, val FROM pubsub_node_option WHERE nodeid = ? ORDER BY name"
_OWNERS: Final = "SELECT owner FROM pubsub_node_owner WHERE nodeid = ? ORDER BY owner"
_STATES: Final = "SELECT jid, affiliation, subscriptions FROM pubsub_state WHERE nodeid = ? ORDER BY jid"
_SUBSCRIBE_OPTIONS: Final = "SELECT subid, opt_name, opt_value FROM pubsub_subscription_opt"
_ITEMS: Final = "SELECT itemid, publisher, creation, modification, payload FROM pubsub_item WHERE nodeid = ?"


def read_ejabberd(source: str, host: str) -> Iterator[MovedNode | MovedProblem]:
    """Yields the nodes of a service of ejabberd, from a dump of mnesia (`ejabberd_dump`), or from its database.

    Raises DocumentError if the source cannot be read, ConfigError for a database of another kind, and for a host that
    is not in the source.
    """
    if not is_database(source):
        yield from read_ejabberd_dump(source, host)
        return
    with open_database(source) as rows:
        check_host("the database", host, [text_of_value(row[0]) for row in rows(_HOSTS)], OTHER_STORAGE)
        yield from personal_nodes(next(rows(_PERSONAL))[0])
        options = _subscribe_options(rows)
        for number, name in list(rows(_NODES, (host,))):
            yield _node(rows, number, text_of_value(name), options)


def _subscribe_options(rows: ForeignRows) -> dict[str, FormFields]:
    """The options of all subscriptions by their ids. Few subscriptions have any: the plugin `flat` stores none."""
    pairs: defaultdict[str, list[tuple[str, Term]]] = defaultdict(list)
    for subid, name, value in rows(_SUBSCRIBE_OPTIONS):
        pairs[text_of_value(subid)].append((text_of_value(name).lower(), text_of_value(value)))
    return {subid: subscribe_fields(options) for subid, options in pairs.items()}


def _node(rows: ForeignRows, number: object, name: str, subscribe_options: Mapping[str, FormFields]) -> MovedNode:
    pairs = [(text_of_value(option), _term(value)) for option, value in rows(_OPTIONS, (number,))]
    options, problems = read_options(pairs)
    affiliations = {text_of_value(owner): "owner" for (owner,) in rows(_OWNERS, (number,))}
    subscriptions: list[MovedSubscription] = []
    for row in rows(_STATES, (number,)):
        jid, affiliation_letter, states = map(text_of_value, row)
        if affiliation := AFFILIATIONS.get(_AFFILIATION_LETTERS.get(affiliation_letter, "")):
            affiliations[jid] = affiliation
        parts = [text.partition(":") for text in states.split(",")]
        subscription, lost = moved_subscription(
            jid, [(_STATE_LETTERS.get(letter, ""), subid) for letter, _, subid in parts], subscribe_options
        )
        problems += lost
        if subscription is not None:
            subscriptions.append(subscription)
    items = _items(rows, number) if persists_items(options) else ()
    return MovedNode(name, options, affiliations, subscriptions, items, problems)


def _term(value: object) -> Term:
    """The term of an option. A text that is no term becomes one that no option has, so that it is reported."""
    try:
        return parse_term(text_of_value(value).encode("utf-8", "surrogateescape"))
    except FeedError:
        return ()


def _items(rows: ForeignRows, number: object) -> Iterator[MovedItem]:
    for item_id, publisher, created, modified, payload in rows(_ITEMS, (number,)):
        yield MovedItem(
            text_of_value(item_id),
            text_of_value(publisher),
            _time_us(created),
            _time_us(modified),
            text_of_value(payload).encode("utf-8", "surrogateescape"),
        )


def _time_us(value: object) -> int | None:
    """A time in microseconds: a number in the schema of 2026, before that megaseconds, seconds and microseconds."""
    if isinstance(value, int):
        return within_years(value)
    match = _TIME.fullmatch(text_of_value(value))
    return time_us(tuple(map(int, match.groups()))) if match else None
