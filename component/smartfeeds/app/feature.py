"""What a feature is: a folder of `features/`, and one value of this type that says what it brings."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from smartfeeds.app.config import Settings
    from smartfeeds.app.config_types import SettingsSection
    from smartfeeds.app.group import Group, Spawn
    from smartfeeds.delivery.changes import ChangeNotifier
    from smartfeeds.delivery.dispatcher import Dispatcher
    from smartfeeds.delivery.letters import Letters
    from smartfeeds.features.polling.poller import PollClients
    from smartfeeds.features.polling.tools import SourceTools
    from smartfeeds.http.side import HttpSide
    from smartfeeds.net.limiter import HostLimiter
    from smartfeeds.parts import Parts
    from smartfeeds.service.answers import Handle
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.xmpp.side import XmppSide
    from smartfeeds.xmpp.stream import ComponentStream

Work = Callable[[], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the configuration: `[name]`, or `[[name]]` where it `repeats`.

    `check` compares it with other sections when all are read. It raises ValueError, whose text is for the operator.
    """

    name: str
    kind: "type[SettingsSection]"
    repeats: bool = False
    check: "Callable[[Settings], None] | None" = None


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the running service that features work with.

    `handle` answers requests, within the limits of the operator. `link` is the link to the XMPP server, `send` sends a
    stanza by the link of any process, and `letters` are read by the other processes on the database. `fetchers` request
    documents of other servers, and `limiter` bounds the other requests to one host. `parts` has what the features that
    come before run.
    """

    settings: "Settings"
    service: "FeedService"
    handle: "Handle"
    now_us: Callable[[], int]
    changes: "ChangeNotifier"
    dispatcher: "Dispatcher"
    link: "ComponentStream"
    send: Callable[[bytes], object]
    letters: "Letters"
    tools: "SourceTools"
    fetchers: "PollClients"
    limiter: "HostLimiter"
    parts: "Parts"


@dataclass(frozen=True, slots=True)
class Running:
    """What runs of a feature.

    `duties` are the works that one process at a time does, and `tasks` those that every process does, with their names;
    each call returns a run. `parts` are for others, by their type. `clients` are open from before the start until all
    deliveries have ended. `start` is called when the store is open, and `stop` at the end, before the link is closed.
    `resume` is called whenever the XMPP server has accepted the link. `document_readers` name the documents of the web
    that the store has to remember (`features.polling.documents`). `readings` returns its metrics at this moment.
    """

    duties: tuple[tuple[str, Work], ...] = ()
    tasks: tuple[tuple[str, Work], ...] = ()
    parts: tuple[object, ...] = ()
    clients: tuple["AbstractAsyncContextManager[object]", ...] = ()
    start: Work | None = None
    stop: Work | None = None
    resume: Work | None = None
    document_readers: frozenset[str] = frozenset()
    readings: Callable[[], Iterable[object]] | None = None


@dataclass(frozen=True, slots=True)
class Feature:
    """What a feature brings to the service.

    What needs imports is named by a text or returned by a function: `smartfeeds --help` imports every feature, and a
    command that opens the store alone needs no wires.
    """

    name: str
    """The name of its folder."""
    needs: tuple[str, ...] = ()
    """The features that it imports."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """The modules of its commands, by name. Each has a function `NAME_command`."""
    extends: Mapping[str, str] = field(default_factory=dict)
    """For a command of the kernel, the function that adds to it, as `module:function`. It receives a `click.Command`
    and returns one. Of several features the first one adds last."""
    use_cases: "Callable[[], UseCases] | None" = None
    """The requests that it answers."""
    xmpp: "Callable[[], XmppSide] | None" = None
    """What it does over XMPP."""
    http: "Callable[[], HttpSide[Any]] | None" = None
    """What it serves over HTTP."""
    resources: "Callable[[], tuple[Resource[Any], ...]] | None" = None
    """Its lists."""
    shows: "Callable[[tuple[Resource[Any], ...]], HttpSide[Any]] | None" = None
    """What it serves over HTTP of the lists of all features."""
    settings: "Callable[[], tuple[Section, ...]] | None" = None
    """Its sections of the configuration."""
    metrics: Callable[[], tuple[type, ...]] | None = None
    """The classes of its readings (`telemetry`). Their module has its counters."""
    run: Callable[[Host], Running] | None = None
    """Makes what runs, once, before the start, and after what the features in `needs` run."""
    row_readers: "Callable[[], tuple[RowReader, ...]] | None" = None
    """How its rows are read, for `smartfeeds doctor`."""
    group: "Callable[[Settings, FeedService, ChangeNotifier, Spawn], Group] | None" = None
    """Makes this process one of several on a database. One feature at most has it."""


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
