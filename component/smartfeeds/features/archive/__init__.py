"""The archive of nodes: queries with filters over XMPP (XEP-0313, XEP-0431, XEP-0442)."""

from smartfeeds.app.feature import Feature, ServiceSide, StoreSide


def _store() -> StoreSide:
    from smartfeeds.features.archive.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES)


def _service() -> ServiceSide:
    from smartfeeds.features.archive.stanzas import XMPP

    return ServiceSide(xmpp=XMPP)


ARCHIVE = Feature("archive", store=_store, service=_service)
