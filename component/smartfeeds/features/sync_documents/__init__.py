"""FeedSync and SSE documents on the command line: `merge`, `import --sync` and `export --sync`."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandExtension, CommandRow, CommandTopic
from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    import click


def _merge() -> "click.Command":
    from smartfeeds.features.sync_documents.command import merge_command

    return merge_command


def _with_sync_import(command: "click.Command") -> "click.Command":
    from smartfeeds.features.sync_documents.options import with_sync_import

    return with_sync_import(command)


def _with_sync_export(command: "click.Command") -> "click.Command":
    from smartfeeds.features.sync_documents.options import with_sync_export

    return with_sync_export(command)


SYNC_DOCUMENTS = Feature(
    "sync_documents",
    commands=(
        CommandRow(
            "merge",
            CommandTopic.DOCUMENTS,
            "Merge INCOMING into LOCAL (FeedSync or SSE in Atom, RSS 2.0 or OPML) and write the merged document.",
            _merge,
        ),
    ),
    extends=(CommandExtension("import", _with_sync_import), CommandExtension("export", _with_sync_export)),
)
