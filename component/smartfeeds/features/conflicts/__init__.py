"""Conflicts: listing them, and keeping one of the versions, by people, programs and operators (FeedSync 3.4, SSE 5)."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, ServiceSide, StoreSide

if TYPE_CHECKING:
    import click

    from smartfeeds.features.conflicts.http import Conflicts
    from smartfeeds.http.side import HttpSide


def _store() -> StoreSide:
    from smartfeeds.features.conflicts.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES)


def _service() -> ServiceSide:
    from smartfeeds.features.conflicts.adhoc import XMPP
    from smartfeeds.features.conflicts.chat import CHAT

    return ServiceSide(xmpp=XMPP, chat=CHAT)


def _http() -> "HttpSide[Conflicts]":
    from smartfeeds.features.conflicts.http import HTTP

    return HTTP


def _conflicts() -> "click.Command":
    from smartfeeds.features.conflicts.command import conflicts_command

    return conflicts_command


CONFLICTS = Feature(
    "conflicts",
    needs=("pages",),
    commands=(
        CommandRow(
            "conflicts",
            CommandTopic.FEEDS,
            "List and resolve conflicts: items that were changed in several places at once.",
            _conflicts,
            {
                "list": "List the items in conflict, of NODE or of all feeds, with their versions.",
                "resolve": "Resolve conflicts of ITEM in NODE.",
            },
            default="list",
            details="Without a command it lists them: smartfeeds conflicts [NODE].",
        ),
    ),
    store=_store,
    service=_service,
    http=_http,
)
