"""Presence: whom a notification can reach, and delivery by presence (XEP-0060 4.2)."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    from smartfeeds.service.hooks import Hooks
    from smartfeeds.service.use_cases import UseCases


def _use_cases() -> "UseCases":
    from smartfeeds.features.presence.requests import USE_CASES

    return USE_CASES


def _run(host: Host) -> Running:
    from smartfeeds.features.presence.setup import run_presence

    return run_presence(host)


def _hooks() -> "Hooks":
    from smartfeeds.features.presence.personal import HOOKS

    return HOOKS


PRESENCE = Feature("presence", use_cases=_use_cases, run=_run, hooks=_hooks)
