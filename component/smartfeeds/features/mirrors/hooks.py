"""The hooks of mirrors in the use cases of the kernel: the feeds that they follow, and data of persons
(`service.context`)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from smartfeeds.core.person import Person
from smartfeeds.features.mirrors import rows
from smartfeeds.features.mirrors.mirror import Direction
from smartfeeds.features.polling.extensions import PushOwners
from smartfeeds.features.polling.source import Reach
from smartfeeds.service.context import Context, Hooks, Origin, Personal
from smartfeeds.service.personal import OWN, TEXT, PersonalTable
from smartfeeds.store.base import ReadTx, WriteTx


def _origins(tx: ReadTx, node: str) -> Iterator[Origin]:
    for row in rows.mirrors(tx):
        if row.mirror.node == node and Direction.IN in row.mirror.direction.ways:
            yield Origin(row.mirror.address)


def _reach(tx: ReadTx, name: str) -> Reach | None:
    """The networks in which the hub of a mirror may be: those of its feed."""
    row = rows.mirror(tx, name)
    return None if row is None else Reach.EVERYWHERE if row.mirror.allow_private else Reach.LISTED


def _erase(tx: WriteTx, _context: Context, person: Person) -> Mapping[str, int]:
    """Removes the mirrors of a feed of the person, and the person as the owner of other mirrors (OPS-010)."""
    count = 0
    for row in rows.mirrors(tx):
        if person.is_in(row.mirror.address):
            rows.remove(tx, row.mirror.name)
            count += 1
        elif row.mirror.owner == person.jid:
            rows.put(tx, replace(row, mirror=replace(row.mirror, owner="")))
            count += 1
    return {"mirrors": count}


def _unconfirmed(tx: ReadTx) -> Iterator[tuple[str, str]]:
    """A mirror that only reads sends nothing back: its source may still have the data."""
    for row in rows.mirrors(tx):
        if row.mirror.direction is Direction.IN:
            yield row.mirror.node, row.mirror.address


MIRROR = PersonalTable("mirror", "name", {"settings": OWN, "state": TEXT}, frozenset({"name"}))
HOOKS = Hooks(
    origins=(_origins,),
    personal=(Personal((MIRROR,), erase=_erase, unconfirmed=_unconfirmed),),
    of_features=(PushOwners(_reach),),
)
