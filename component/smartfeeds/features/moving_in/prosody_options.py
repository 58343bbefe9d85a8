"""Nodes of Prosody's mod_pubsub as its storages have them, as values of `moved` (IMP-002, IMP-003, IMP-010).

The storages differ in their notation, Lua or JSON. Both become plain dictionaries before they come here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from smartfeeds.core.options import FormFields
from smartfeeds.errors import DocumentError
from smartfeeds.features.moving_in.moved import MovedItem, MovedNode, MovedProblem, MovedSubscription

OTHER_DATA: Final = "name the data of the Prosody that serves them"
PERSONAL_NODES: Final = "personal nodes (mod_pep) stay on the server"
Plain = str | int | float | bool | None | Mapping[str, "Plain"] | Sequence["Plain"]
# The names of Prosody that are not those of XEP-0060 16.4.4.
_NAMES: Final = {
    "payload_type": "type",
    "notify_items": "deliver_notifications",
    "include_payload": "deliver_payloads",
}


@dataclass(frozen=True, slots=True)
class ProsodyNode:
    """The record of a node, by Prosody's names."""

    name: str
    config: Mapping[str, Plain] = field(default_factory=dict)
    affiliations: Mapping[str, Plain] = field(default_factory=dict)
    subscribers: Mapping[str, Plain] = field(default_factory=dict)


def prosody_node(name: str, record: Mapping[str, Plain]) -> ProsodyNode:
    """Returns the node of a record. Raises DocumentError if a part is no table: without its configuration or its
    outcasts the node would have more readers."""
    return ProsodyNode(name, *(_table(part, record.get(part)) for part in ("config", "affiliations", "subscribers")))


def _table(name: str, value: Plain) -> Mapping[str, Plain]:
    # An empty table may be stored as an empty array.
    if value is None or value == []:
        return {}
    if not isinstance(value, Mapping):
        raise DocumentError(f"its {name} is no table")
    return value


def moved_node(node: ProsodyNode, items: Iterable[MovedItem | MovedProblem]) -> MovedNode:
    """Returns a node with its items."""
    problems: list[MovedProblem] = []
    affiliations = {}
    for jid, value in sorted(node.affiliations.items()):
        if isinstance(value, str):
            affiliations[jid] = value
        else:
            problems.append(MovedProblem(f"affiliation {jid!r}", f"{value!r} is no affiliation"))
    return MovedNode(
        node.name,
        _form({_NAMES.get(name, name): value for name, value in node.config.items()}, "pubsub#"),
        affiliations,
        tuple(_subscriptions(node.subscribers)),
        items,
        tuple(problems),
    )


def _subscriptions(subscribers: Mapping[str, Plain]) -> Iterator[MovedSubscription]:
    for jid, value in sorted(subscribers.items()):
        if isinstance(value, Mapping):
            yield MovedSubscription(jid, options=_form(value, ""))
        elif value:
            yield MovedSubscription(jid)


def _form(values: Mapping[str, Plain], prefix: str) -> FormFields:
    """Returns values as fields of a form. Fields without a value, and `FORM_TYPE`, are left out."""
    return {
        f"{prefix}{name}": _texts(value)
        for name, value in sorted(values.items())
        if value is not None and name != "FORM_TYPE"
    }


def _texts(value: Plain) -> tuple[str, ...]:
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, float) and value.is_integer():
        return (str(int(value)),)
    if isinstance(value, Mapping):
        return tuple(str(part) for part in value.values())
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
