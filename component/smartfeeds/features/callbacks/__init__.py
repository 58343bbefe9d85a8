"""Callbacks: addresses that get changes by HTTP, and the consumers that call them. WebSub and rssCloud use it."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, Section

if TYPE_CHECKING:
    from smartfeeds.service.hooks import Hooks


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.callbacks.settings import WebhooksSettings

    return (Section("webhooks", WebhooksSettings),)


def _metrics() -> tuple[type, ...]:
    from smartfeeds.features.callbacks.metrics import CallbackReading

    return (CallbackReading,)


def _run(host: Host) -> Running:
    from smartfeeds.features.callbacks.setup import run_callbacks

    return run_callbacks(host)


def _hooks() -> "Hooks":
    from smartfeeds.features.callbacks.personal import HOOKS

    return HOOKS


CALLBACKS = Feature("callbacks", settings=_settings, metrics=_metrics, run=_run, hooks=_hooks)
