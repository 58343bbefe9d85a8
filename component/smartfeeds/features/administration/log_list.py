"""The newest warnings and errors of the log, as a list of pages."""

from smartfeeds.features.administration.process import GetRecentEvents
from smartfeeds.recent import LogEvent
from smartfeeds.service.resources import Column, Resource, TablePage, reader
from smartfeeds.texts import N_

LOG: Resource[LogEvent] = Resource(
    "log",
    "event",
    (
        Column("time", lambda event: event.time, N_("Time"), "time"),
        Column("level", lambda event: event.level, N_("Level"), "word", words=("warning", "error", "critical")),
        Column("event", lambda event: event.event, N_("Event"), "code"),
        Column(
            "fields",
            lambda event: ", ".join(f"{name}: {value}" for name, value in event.fields.items()),
            N_("Details"),
            "code",
        ),
    ),
    read=reader(GetRecentEvents),
    table=TablePage(
        N_("Warnings and errors"),
        N_("The newest warnings and errors of the log since the start, newest first."),
        N_("No warnings and no errors were logged since the start."),
        ("time", "level", "event", "fields"),
    ),
)
