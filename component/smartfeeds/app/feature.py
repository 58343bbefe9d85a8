"""The type of a feature: a folder of `features/` and one value, which lists the tables and functions of the feature.

The kernel loops over these values in `app/` and imports no feature elsewhere (docs/architecture.md, "Features"). What a
feature brings is typed data: nothing is registered by an import, and nothing is found by the text of its name.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from smartfeeds.app.commands import CommandExtension, CommandRow
    from smartfeeds.app.config import Settings
    from smartfeeds.app.config_types import SettingsSection
    from smartfeeds.app.group import Group, Spawn
    from smartfeeds.chat.commands import ChatTable
    from smartfeeds.delivery.changes import ChangeNotifier
    from smartfeeds.delivery.deliverer import StanzaSender
    from smartfeeds.delivery.dispatcher import Dispatcher
    from smartfeeds.delivery.letters import Letters
    from smartfeeds.formats.document_format import DocumentFormat
    from smartfeeds.http.side import HttpSide
    from smartfeeds.net.limiter import HostLimiter
    from smartfeeds.parts import Parts
    from smartfeeds.push.side import PushSide
    from smartfeeds.recent import RecentRates
    from smartfeeds.service.answers import Handle
    from smartfeeds.service.context import Hooks
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.service.requests import Answer, Request
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.service.web_documents import DocumentReaders
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.telemetry import Readings
    from smartfeeds.xmpp.caps import Caps
    from smartfeeds.xmpp.side import XmppSide
    from smartfeeds.xmpp.stanza_side import StanzaSide
    from smartfeeds.xmpp.stream import ComponentStream

CoroutineFunction = Callable[[], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the configuration: `[name]`, or `[[name]]` where it `repeats`.

    `check` compares it with other sections when all are read. It raises ValueError, whose text is for the operator.
    `policy` returns what use cases read of it, by its type, None if the feature is off (`Policy.find`).
    """

    name: str
    kind: "type[SettingsSection]"
    repeats: bool = False
    check: "Callable[[Settings], None] | None" = None
    policy: "Callable[[Settings], object | None] | None" = None


@dataclass(frozen=True, slots=True)
class Process:
    """The control of the process, for features that operate it.

    `stop` ends it; its parameter is true for a restart. `spawn` runs a coroutine as a task of this name, and returns
    the function that cancels it. `readings` returns the counts of the kernel at this moment, and `recent` has those of
    the last 24 hours.
    """

    stop: Callable[[bool], object]
    spawn: Callable[[CoroutineFunction, str], Callable[[], object]]
    sleep: Callable[[float], Awaitable[None]]
    readings: "Callable[[], Readings]"
    recent: "RecentRates"


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the running service that features work with."""

    settings: "Settings"
    service: "FeedService"
    handle: "Handle"
    """Answers requests, within the limits of the operator."""
    now_us: Callable[[], int]
    changes: "ChangeNotifier"
    dispatcher: "Dispatcher"
    link: "ComponentStream"
    """The link to the XMPP server."""
    send: Callable[[bytes], object]
    """Sends a stanza by the link of any process."""
    letters: "Letters"
    """Carries messages to the other processes on the database."""
    limiter: "HostLimiter"
    """Bounds the requests to one host."""
    process: Process
    """The control of the process, for features that stop it, run work in it, or show its counts."""
    parts: "Parts"
    """The objects of `Running.parts` of the features in `needs`, by their type."""
    chat: "tuple[ChatTable, ...]"
    """The commands of all features in chats."""
    notifications: "StanzaSender"
    """Sends XMPP notifications while this process owns its feeds."""
    capabilities: "Callable[[], Caps]"
    """Returns the capabilities that the service announces. For calls after the start."""
    picture: Callable[[], bytes]
    """Returns the picture of the service, empty if it has none. For calls after the start."""
    is_available: Callable[[str], bool | None]
    """Whether a bare JID can receive messages, None if that is not known. For calls after the start."""
    answers_chat: Callable[[], bool]
    """Whether a message to the service is answered. For calls after the start."""


@dataclass(frozen=True, slots=True)
class Running:
    """The objects and tasks of a feature in a running service."""

    duties: tuple[tuple[str, CoroutineFunction], ...] = ()
    """The named tasks that one process at a time runs. A function is called again whenever this process takes it
    over."""
    tasks: tuple[tuple[str, CoroutineFunction], ...] = ()
    """The named tasks that every process runs."""
    parts: tuple[object, ...] = ()
    """The objects for other features and for handlers over HTTP, by their type."""
    clients: tuple["AbstractAsyncContextManager[object]", ...] = ()
    """Open from before the start until all deliveries have ended."""
    start: CoroutineFunction | None = None
    """Called when the store is open."""
    stop: CoroutineFunction | None = None
    """Called at the end, before the link is closed."""
    online: Callable[[], object] | None = None
    """Called at once when the XMPP server has accepted the link."""
    load: CoroutineFunction | None = None
    """Reads what deliveries need, after `online`."""
    resume: CoroutineFunction | None = None
    """Called after `load`, whenever the XMPP server has accepted the link."""
    leave: CoroutineFunction | None = None
    """Called at the end, after the last response."""
    stanzas: "StanzaSide | None" = None
    """Its handlers of messages and presence."""
    push: "PushSide | None" = None
    """Its knowledge of the recipients of notifications."""
    document_readers: "DocumentReaders | None" = None
    """The documents of the web that the store has to remember (`service.web_documents`)."""
    readings: Callable[[], Iterable[object]] | None = None
    """Returns its metrics at this moment."""
    handlers: "Mapping[type[Request], Callable[[Any], Awaitable[Answer]]]" = field(default_factory=dict)
    """Answer requests that concern the process and not only the store."""


@dataclass(frozen=True, slots=True)
class StoreSide:
    """The use cases and hooks of a feature, for the service and for commands that open the store."""

    use_cases: "UseCases | None" = None
    """The requests that it answers."""
    hooks: "Hooks | None" = None
    """Its additions to the use cases of the kernel, and its tables."""


@dataclass(frozen=True, slots=True)
class ServiceSide:
    """The tables of a feature for every running service, also for one without HTTP."""

    xmpp: "XmppSide | None" = None
    """Its stanzas, commands and service discovery."""
    chat: "ChatTable | None" = None
    """Its commands in chats."""
    resources: "tuple[Resource[Any], ...]" = ()
    """Its lists."""
    metrics: tuple[type, ...] = ()
    """The classes of its readings (`telemetry`). Their module has its counters."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of the service: its name, and its parts by the time at which they are loaded.

    What needs imports is returned by a function, which imports it: `smartfeeds --help` imports every feature. There is
    one function for each time of loading: a command that opens the store needs no wires, and a service without HTTP no
    pages.
    """

    name: str
    """The name of its folder."""
    needs: tuple[str, ...] = ()
    """The features that it imports."""
    commands: "tuple[CommandRow, ...]" = ()
    """Its commands."""
    extends: "tuple[CommandExtension, ...]" = ()
    """Its additions to other commands. If several features extend a command, the function of the first feature is
    called last."""
    settings: Callable[[], tuple[Section, ...]] = tuple
    """Its sections of the configuration."""
    documents: "Callable[[], tuple[DocumentFormat, ...]]" = tuple
    """Its formats of documents."""
    store: Callable[[], StoreSide] = StoreSide
    service: Callable[[], ServiceSide] = ServiceSide
    http: "Callable[[], HttpSide[Any]] | None" = None
    """Its routes."""
    shows: "Callable[[tuple[Resource[Any], ...]], HttpSide[Any]] | None" = None
    """The routes that it makes from the lists of all features."""
    run: Callable[[Host], Running] | None = None
    """Makes what runs, once, before the start, and after what the features in `needs` run."""
    row_readers: "Callable[[], tuple[RowReader, ...]]" = tuple
    """The readers of its rows, for `smartfeeds doctor`."""
    group: "Callable[[Settings, FeedService, ChangeNotifier, Spawn], Group] | None" = None
    """Makes this process one of several on a database. At most one feature has it."""


def in_order(features: Iterable[Feature]) -> list[Feature]:
    """Returns the features with those that each needs before it, else in their order."""
    by_name = {feature.name: feature for feature in features}
    order = TopologicalSorter({name: feature.needs for name, feature in by_name.items()}).static_order()
    return [by_name[name] for name in order]


def run_all(features: Iterable[Feature], host: Host) -> list[Running]:
    """Returns what all features run. Each finds what those that it needs run in `host.parts`."""
    all_running = []
    for feature in in_order(features):
        if feature.run is not None:
            running = feature.run(host)
            for part in running.parts:
                host.parts.add(part)
            all_running.append(running)
    return all_running
