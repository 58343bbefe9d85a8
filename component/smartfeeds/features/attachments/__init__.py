"""Attachments of items (XEP-0470)."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.xmpp.side import XmppSide


def _use_cases() -> "UseCases":
    from smartfeeds.features.attachments.requests import USE_CASES

    return USE_CASES


def _xmpp() -> "XmppSide":
    from smartfeeds.core.attachment_names import ATTACHMENTS
    from smartfeeds.xmpp.side import XmppSide

    return XmppSide(features=(ATTACHMENTS,))


ATTACHMENTS = Feature("attachments", use_cases=_use_cases, xmpp=_xmpp)
