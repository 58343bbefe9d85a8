"""Attachments of items (XEP-0470)."""

from smartfeeds.app.feature import Feature, ServiceSide, StoreSide


def _store() -> StoreSide:
    from smartfeeds.features.attachments.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES)


def _service() -> ServiceSide:
    from smartfeeds.core.attachment_names import ATTACHMENTS
    from smartfeeds.xmpp.side import XmppSide

    return ServiceSide(xmpp=XmppSide(features=(ATTACHMENTS,)))


ATTACHMENTS = Feature("attachments", store=_store, service=_service)
