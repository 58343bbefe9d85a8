"""Moving in: the nodes of Prosody, ejabberd and sat-pubsub, from the data that they have stored (docs/moving-in.md)."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandExtension
from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    import click


def _with_from(command: "click.Command") -> "click.Command":
    from smartfeeds.features.moving_in.command import with_from

    return with_from(command)


MOVING_IN = Feature("moving_in", extends=(CommandExtension("import", _with_from),))
