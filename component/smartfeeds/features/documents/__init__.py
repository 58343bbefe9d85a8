"""Documents in other formats than those of the kernel: RSS 0.92, JSON Feed, ESS and NNO; and `smartfeeds convert`."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    import click

    from smartfeeds.features.documents.http import NnoLists
    from smartfeeds.formats.document_format import DocumentFormat
    from smartfeeds.http.side import HttpSide


def _documents() -> "tuple[DocumentFormat, ...]":
    from smartfeeds.features.documents.formats import FORMATS

    return FORMATS


def _http() -> "HttpSide[NnoLists]":
    from smartfeeds.features.documents.http import HTTP

    return HTTP


def _convert() -> "click.Command":
    from smartfeeds.features.documents.command import convert_command

    return convert_command


DOCUMENTS = Feature(
    "documents",
    commands=(
        CommandRow(
            "convert",
            CommandTopic.DOCUMENTS,
            "Write the feed in FILE (Atom, RSS, ActivityStreams, JSON Feed or OPML; - for standard input) in another "
            "format.",
            _convert,
        ),
    ),
    http=_http,
    documents=_documents,
)
