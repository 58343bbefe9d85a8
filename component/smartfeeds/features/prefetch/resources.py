"""The lists of enclosures with their progress (PRE-036), and of the loads that have ended (PRE-031)."""

from smartfeeds.core.times import format_second
from smartfeeds.features.prefetch.enclosure import EnclosureState, FileArrival
from smartfeeds.features.prefetch.requests import ListedEnclosure, ListEnclosures
from smartfeeds.service.resources import Brief, Column, Resource, TablePage, reader
from smartfeeds.texts import N_

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
    brief=Brief(("node", "item", "state", "percent", "reason"), cut=("reason",)),
    read=reader(ListEnclosures),
    table=TablePage(
        N_("Enclosures"),
        N_("Files of feeds elsewhere that are loaded in advance."),
        N_("No file is loaded in advance."),
        ("node", "address", "state", "percent", "bytes", "failures", "reason", "since"),
    ),
)
ARRIVALS: Resource[FileArrival] = Resource(
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
    brief=Brief(("at", "node", "item", "bytes", "reason"), cut=("reason",)),
)
