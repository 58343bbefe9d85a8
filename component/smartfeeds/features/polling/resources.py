"""The list of sources with their state (SRC-047) and that of their subscription (WS-141), and the list of what a person
follows. Secrets are left out."""

from smartfeeds.core.times import format_second
from smartfeeds.features.polling.following import FollowedFeed, ListFollowed
from smartfeeds.features.polling.requests import ChangeSource, ListSources, SourceAction, SourceShown, SourceStatus
from smartfeeds.features.polling.source import REMOVED_LIST, Source
from smartfeeds.net.fetch import display_url
from smartfeeds.service.resources import (
    Action,
    ActionResult,
    Brief,
    Caller,
    Choice,
    Column,
    Fields,
    ListCommand,
    Resource,
    Row,
    TablePage,
    reader,
)
from smartfeeds.texts import N_

_MAX_NUMBER_BYTES = 18
_STATES = (N_("new"), N_("polled"), N_("waiting"), N_("slowed"), N_("stopped"), N_("paused"))


def _second(time_us: int | None) -> str:
    return "" if time_us is None else format_second(time_us)


def _state_of(feed: FollowedFeed) -> str:
    """Returns the state of a feed that a person follows, in a word."""
    if feed.pending:
        return "pending"
    if not feed.may_read:
        return "closed"
    if not feed.sources:
        return "here"
    return "failing" if feed.failing else "new" if not any(source.good_us for source in feed.sources) else "read"


def _source_row(source: Source) -> Row:
    return {
        "address": display_url(source.url),
        "state": source.state_word,
        "reason": source.reason,
        "since": format_second(source.since_us),
        "last_good": _second(source.good_us),
        "next": _second(source.due_us),
    }


def _origin(source: Source) -> str:
    """Returns the origin of a source for people: the configuration, a list, a user or a command."""
    if source.configured:
        return "configuration"
    if source.settings.list_no == REMOVED_LIST:
        return "removed list"
    if source.settings.list_no:
        return f"list {source.settings.list_no}"
    return source.owner or ("source follow" if source.settings.is_list else "source add")


def _action(action: SourceAction, title: str, done: str, button: str = "", message: str = "") -> Action:
    """Returns an action on a source; `button` is its label in the table of the pages, `message` the key of the text
    after it."""

    async def perform(caller: Caller, fields: Fields) -> ActionResult:
        text = fields.get("source") or fields["number"]
        number = int(text) if text.isascii() and text.isdigit() else 0
        request = ChangeSource(caller.actor, caller.service, number, action)
        source = (await caller.ask(request, SourceShown)).source
        return ActionResult(done.format(number=source.source_no, node=source.node), message)

    return Action(action.value, perform, title, button=button, key="number")


SOURCES: Resource[SourceStatus] = Resource(
    "sources",
    "source",
    (
        Column("number", lambda entry: entry.source.source_no, "Number"),
        Column("node", lambda entry: entry.source.node, "Node", heading=N_("Feed")),
        Column("address", lambda entry: entry.source.url, "Address", heading=N_("Address")),
        Column("state", lambda entry: entry.source.state_word, "State", "word", heading=N_("State"), words=_STATES),
        Column("reason", lambda entry: entry.source.reason, "Reason", heading=N_("Reason")),
        Column("since", lambda entry: format_second(entry.source.since_us)),
        Column(
            "last_good",
            lambda entry: _second(entry.source.good_us),
            "Last good answer",
            "time",
            heading=N_("Read last"),
            var="good",
        ),
        Column("next", lambda entry: _second(entry.source.due_us), "Next poll", "time", heading=N_("Next look")),
        Column("from", lambda entry: _origin(entry.source)),
        Column("push", lambda entry: "" if entry.push is None else f"{entry.push.kind.value} {entry.push.state.value}"),
        Column("push_reason", lambda entry: "" if entry.push is None else entry.push.reason),
        Column("push_until", lambda entry: "" if entry.push is None else _second(entry.push.ends_us)),
        Column("last_push", lambda entry: "" if entry.push is None else _second(entry.push.pushed_us)),
        Column("missed", lambda entry: 0 if entry.push is None else entry.push.misses),
    ),
    empty="There are no sources.",
    brief=Brief(("number", "node", "state", "next", "reason"), cut=("reason",)),
    read=reader(ListSources),
    command=ListCommand(
        "list-sources",
        "List sources and their state",
        ("number", "node", "address", "state", "reason", "last_good", "next"),
    ),
    table=TablePage(
        N_("Sources"),
        N_("Feeds of other servers that fill feeds here, with their state. A feed that fails keeps its entries."),
        N_("There are no sources."),
        ("node", "address", "state", "reason", "last_good", "next"),
    ),
    choice=Choice(
        "source",
        "Source",
        _MAX_NUMBER_BYTES,
        lambda entry: (str(entry.source.source_no), f"{entry.source.node}: {entry.source.url}"),
    ),
    actions=(
        _action(
            SourceAction.REMOVE,
            "Remove a source",
            "Removed the source {number}; the node {node} remains.",
            N_("Remove"),
            "removed",
        ),
        _action(SourceAction.POLL, "Poll a source now", "The source {number} is due now.", N_("Check now"), "polled"),
        _action(SourceAction.PAUSE, "Pause a source", "Paused the source {number}."),
        _action(SourceAction.RESUME, "Resume a source", "The source {number} is due now."),
    ),
)
FOLLOWED: Resource[FollowedFeed] = Resource(
    "following",
    "feed",
    (
        Column("node", lambda feed: feed.node.name),
        Column("title", lambda feed: feed.title),
        Column("folder", lambda feed: feed.folder),
        Column("tell", lambda feed: feed.tell.value),
        Column("state", _state_of),
        Column("entries", lambda feed: feed.node.live if feed.may_read else 0),
        Column("newest", lambda feed: _second(feed.newest_us)),
        Column("sources", lambda feed: [_source_row(source) for source in feed.sources]),
    ),
    read=reader(ListFollowed),
    summary="The feeds that you follow, with the state of what fills them",
)
