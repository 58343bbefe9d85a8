"""Presence: whom a notification can reach, and delivery by presence (XEP-0060 4.2)."""

from smartfeeds.app.feature import Feature, Host, Running, StoreSide


def _store() -> StoreSide:
    from smartfeeds.features.presence.personal import HOOKS
    from smartfeeds.features.presence.requests import USE_CASES

    return StoreSide(use_cases=USE_CASES, hooks=HOOKS)


def _run(host: Host) -> Running:
    from smartfeeds.features.presence.setup import run_presence

    return run_presence(host)


PRESENCE = Feature("presence", store=_store, run=_run)
