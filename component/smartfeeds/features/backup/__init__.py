"""Backup, restore, and copies from one store to another."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandExtension, CommandRow, CommandTopic
from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    import click


def _backup() -> "click.Command":
    from smartfeeds.features.backup.command import backup_command

    return backup_command


def _restore() -> "click.Command":
    from smartfeeds.features.backup.restore import restore_command

    return restore_command


def _with_copy(command: "click.Command") -> "click.Command":
    from smartfeeds.features.backup.command import with_copy

    return with_copy(command)


BACKUP = Feature(
    "backup",
    commands=(
        CommandRow(
            "backup",
            CommandTopic.SERVICE,
            "Copy the database to the new FILE, and uploaded files to the folder FILE-files, while the service may "
            "be running.",
            _backup,
        ),
        CommandRow(
            "restore",
            CommandTopic.SERVICE,
            "Check the backup FILE, and put it and its uploaded files in the place of the database.",
            _restore,
        ),
    ),
    extends=(
        CommandExtension(
            "db",
            _with_copy,
            {
                "copy": "Copy everything from the database FROM into the new or empty database TO: addresses as in "
                "store.url."
            },
        ),
    ),
)
