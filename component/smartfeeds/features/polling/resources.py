"""The list of sources with their state (SRC-047) and that of their subscription (WS-141). Secrets are left out."""

from smartfeeds.core.times import format_second
from smartfeeds.features.polling.requests import ChangeSource, ListSources, SourceAction, SourceShown, SourceStatus
from smartfeeds.features.polling.source import Source
from smartfeeds.service.resources import (
    Action,
    ActionResult,
    Caller,
    Choice,
    Column,
    Fields,
    ListCommand,
    Resource,
    reader,
)

_MAX_NUMBER_BYTES = 18


def _second(time_us: int | None) -> str:
    return "" if time_us is None else format_second(time_us)


def _origin(source: Source) -> str:
    """Returns the origin of a source for people: the configuration, a list, a user or a command."""
    if source.configured:
        return "configuration"
    if source.settings.list_no:
        return f"list {source.settings.list_no}"
    return source.owner or ("source follow" if source.settings.is_list else "source add")


def _action(action: SourceAction, title: str, done: str) -> Action:
    async def perform(caller: Caller, fields: Fields) -> ActionResult:
        text = fields["source"]
        number = int(text) if text.isascii() and text.isdigit() else 0
        request = ChangeSource(caller.actor, caller.service, number, action)
        source = (await caller.ask(request, SourceShown)).source
        return ActionResult(done.format(number=source.source_no, node=source.node))

    return Action(action.value, perform, title)


SOURCES: Resource[SourceStatus] = Resource(
    "sources",
    "source",
    (
        Column("number", lambda entry: entry.source.source_no, "Number"),
        Column("node", lambda entry: entry.source.node, "Node"),
        Column("address", lambda entry: entry.source.url, "Address"),
        Column("state", lambda entry: entry.source.state_word, "State"),
        Column("reason", lambda entry: entry.source.reason, "Reason"),
        Column("since", lambda entry: format_second(entry.source.since_us)),
        Column("last_good", lambda entry: _second(entry.source.good_us), "Last good answer", var="good"),
        Column("next", lambda entry: _second(entry.source.due_us), "Next poll"),
        Column("from", lambda entry: _origin(entry.source)),
        Column("push", lambda entry: "" if entry.push is None else f"{entry.push.kind.value} {entry.push.state.value}"),
        Column("push_reason", lambda entry: "" if entry.push is None else entry.push.reason),
        Column("push_until", lambda entry: "" if entry.push is None else _second(entry.push.ends_us)),
        Column("last_push", lambda entry: "" if entry.push is None else _second(entry.push.pushed_us)),
        Column("missed", lambda entry: 0 if entry.push is None else entry.push.misses),
    ),
    empty="There are no sources.",
    read=reader(ListSources),
    command=ListCommand(
        "list-sources",
        "List sources and their state",
        ("number", "node", "address", "state", "reason", "last_good", "next"),
    ),
    choice=Choice(
        "source",
        "Source",
        _MAX_NUMBER_BYTES,
        lambda entry: (str(entry.source.source_no), f"{entry.source.node}: {entry.source.url}"),
    ),
    actions=(
        _action(SourceAction.REMOVE, "Remove a source", "Removed the source {number}; the node {node} remains."),
        _action(SourceAction.POLL, "Poll a source now", "The source {number} is due now."),
        _action(SourceAction.PAUSE, "Pause a source", "Paused the source {number}."),
        _action(SourceAction.RESUME, "Resume a source", "The source {number} is due now."),
    ),
)
