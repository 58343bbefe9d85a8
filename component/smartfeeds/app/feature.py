"""What a feature is: a folder of `features/`, and one value of this type that says what it brings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.xmpp.side import XmppSide


@dataclass(frozen=True, slots=True)
class Feature:
    """What a feature brings to the service.

    `name` is that of its folder, and `needs` has the features that it imports. `commands` names the module of each of
    its commands, which has a function `NAME_command`. `extends` names, for a command of the kernel, the function that
    adds to it, as `module:function`; it receives a `click.Command` and returns one. `use_cases` returns the requests
    that it answers, `xmpp` what it does over XMPP, and `http` what it serves over HTTP.

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
