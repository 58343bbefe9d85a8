"""Conflicts: listing them, and keeping one of the versions, by people, programs and operators (FeedSync 3.4, SSE 5)."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.chat.commands import ChatTable
    from smartfeeds.features.conflicts.http import Conflicts
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.xmpp.side import XmppSide


def _use_cases() -> "UseCases":
    from smartfeeds.features.conflicts.requests import USE_CASES

    return USE_CASES


def _xmpp() -> "XmppSide":
    from smartfeeds.features.conflicts.adhoc import XMPP

    return XMPP


def _http() -> "HttpSide[Conflicts]":
    from smartfeeds.features.conflicts.http import HTTP

    return HTTP


def _chat() -> "ChatTable":
    from smartfeeds.features.conflicts.chat import CHAT

    return CHAT


CONFLICTS = Feature(
    "conflicts",
    needs=("pages",),
    commands={"conflicts": "smartfeeds.features.conflicts.command"},
    use_cases=_use_cases,
    xmpp=_xmpp,
    http=_http,
    chat=_chat,
)
