"""The lists of enclosures with their progress (PRE-036), and of the loads that have ended (PRE-031)."""

from typing import NamedTuple

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.times import format_second
from smartfeeds.features.prefetch.enclosure import Arrival, EnclosureState
from smartfeeds.features.prefetch.enclosures import EnclosureStatus
from smartfeeds.features.prefetch.requests import EnclosureList, ListEnclosures
from smartfeeds.service.resources import Caller, Column, Entries, Resource, Table
from smartfeeds.texts import N_


class ListedEnclosure(NamedTuple):
    """An enclosure, and the size of its partial file."""

    status: EnclosureStatus
    part_bytes: int

    @property
    def size_bytes(self) -> int:
        """How much of it is there."""
        enclosure = self.status.enclosure
        has_arrived = enclosure.state is EnclosureState.ARRIVED
        return (enclosure.length_bytes or 0) if has_arrived else self.part_bytes

    @property
    def total_bytes(self) -> int:
        """Its length, 0 if it is unknown."""
        enclosure = self.status.enclosure
        has_arrived = enclosure.state is EnclosureState.ARRIVED
        return (enclosure.length_bytes if has_arrived else enclosure.total_bytes or enclosure.length_bytes) or 0

    @property
    def percent(self) -> int:
        """Its progress."""
        return min(100, 100 * self.size_bytes // self.total_bytes) if self.total_bytes else 0


async def _read(caller: Caller, page: ResultSetRequest, _narrow: bool) -> Entries[ListedEnclosure]:
    answer = await caller.ask(ListEnclosures(caller.actor, caller.service, page), EnclosureList)
    entries = [ListedEnclosure(status, status.enclosure.partial_bytes) for status in answer.statuses]
    return Entries(entries, answer.result_set)


ENCLOSURES: Resource[ListedEnclosure] = Resource(
    "enclosures",
    "enclosure",
    (
        Column("node", lambda entry: entry.status.node, N_("Feed")),
        Column("item", lambda entry: entry.status.item_id),
        Column(
            "state",
            lambda entry: entry.status.enclosure.state.value,
            N_("State"),
            "word",
            words=tuple(state.value for state in EnclosureState),
        ),
        Column("bytes", lambda entry: entry.size_bytes, N_("Bytes"), "number"),
        Column("of_bytes", lambda entry: entry.total_bytes),
        Column("percent", lambda entry: entry.percent, N_("Progress"), "progress"),
        Column("reason", lambda entry: entry.status.enclosure.reason, N_("Last error")),
        Column("failures", lambda entry: entry.status.enclosure.failures, N_("Failures"), "number"),
        Column("since", lambda entry: format_second(entry.status.enclosure.since_us), N_("Since"), "time"),
        Column("address", lambda entry: entry.status.enclosure.url, N_("Address")),
    ),
    empty="There are no enclosures.",
    read=_read,
    table=Table(
        N_("Enclosures"),
        N_("Files of feeds elsewhere that are loaded in advance."),
        N_("No file is loaded in advance."),
        ("node", "address", "state", "percent", "bytes", "failures", "reason", "since"),
    ),
)
ARRIVALS: Resource[Arrival] = Resource(
    "arrivals",
    "load",
    (
        Column("at", lambda arrival: format_second(arrival.at_us)),
        Column("node", lambda arrival: arrival.node),
        Column("item", lambda arrival: arrival.item_id),
        Column("bytes", lambda arrival: arrival.size_bytes),
        Column("seconds", lambda arrival: round(arrival.seconds, 1)),
        Column("reason", lambda arrival: arrival.reason or "arrived"),
        Column("address", lambda arrival: arrival.url),
    ),
    empty="No load has ended.",
)
