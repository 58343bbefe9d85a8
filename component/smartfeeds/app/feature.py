"""What a feature is: a folder of `features/`, and one value of this type that says what it brings."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartfeeds.app.config import Settings
    from smartfeeds.app.config_types import SettingsSection
    from smartfeeds.features.polling.poller import PollClients
    from smartfeeds.features.polling.tools import SourceTools
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.xmpp.side import XmppSide

Work = Callable[[], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the configuration: `[name]`, or `[[name]]` where it `repeats`."""

    name: str
    kind: "type[SettingsSection]"
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the running service that features work with. `fetchers` request documents of other servers."""

    settings: "Settings"
    service: "FeedService"
    tools: "SourceTools"
    fetchers: "PollClients"


@dataclass(frozen=True, slots=True)
class Running:
    """What runs of a feature.

    `duties` are the works that one process at a time does, with their names; each call returns a run of it.
    `document_readers` name the documents of the web that the store has to remember (`features.polling.documents`).
    """

    duties: tuple[tuple[str, Work], ...] = ()
    document_readers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Feature:
    """What a feature brings to the service.

    `name` is that of its folder, and `needs` has the features that it imports. `commands` names the module of each of
    its commands, which has a function `NAME_command`. `extends` names, for a command of the kernel, the function that
    adds to it, as `module:function`; it receives a `click.Command` and returns one. `use_cases` returns the requests
    that it answers, `xmpp` what it does over XMPP, and `http` what it serves over HTTP.
    `settings` returns its sections of the configuration. `run` makes what runs, once, before the start.

    What needs imports is named by a text or returned by a function: `smartfeeds --help` imports every feature, and a
    command that opens the store alone needs no wires.
    """

    name: str
    needs: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    extends: Mapping[str, str] = field(default_factory=dict)
    use_cases: "Callable[[], UseCases] | None" = None
    xmpp: "Callable[[], XmppSide] | None" = None
    http: "Callable[[], HttpSide[Any]] | None" = None
    settings: "Callable[[], tuple[Section, ...]] | None" = None
    run: Callable[[Host], Running] | None = None
