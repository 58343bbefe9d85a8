"""What a feature is: a folder of `features/`, and one value of this type that says what it brings."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Feature:
    """What a feature brings to the service.

    `name` is that of its folder, and `needs` has the features that it imports. `commands` names the module of each of
    its commands, which has a function `NAME_command`. `extends` names, for a command of the kernel, the function that
    adds to it, as `module:function`; it receives a `click.Command` and returns one. Commands are named by texts because
    `smartfeeds --help` must not import them.
    """

    name: str
    needs: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    extends: Mapping[str, str] = field(default_factory=dict)
