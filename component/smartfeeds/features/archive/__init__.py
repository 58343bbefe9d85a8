"""The archive of nodes: queries with filters over XMPP (XEP-0313, XEP-0431, XEP-0442)."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.xmpp.side import XmppSide


def _use_cases() -> "UseCases":
    from smartfeeds.features.archive.requests import USE_CASES

    return USE_CASES


def _xmpp() -> "XmppSide":
    from smartfeeds.features.archive.stanzas import XMPP

    return XMPP


ARCHIVE = Feature("archive", use_cases=_use_cases, xmpp=_xmpp)
