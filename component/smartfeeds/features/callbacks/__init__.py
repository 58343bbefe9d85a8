"""Callbacks: addresses that get changes by HTTP, and the consumers that call them. WebSub and rssCloud use it."""

from smartfeeds.app.feature import Feature, Host, Running, Section, ServiceSide, StoreSide


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.callbacks.settings import WebhooksSettings

    return (Section("webhooks", WebhooksSettings),)


def _store() -> StoreSide:
    from smartfeeds.features.callbacks.personal import HOOKS

    return StoreSide(hooks=HOOKS)


def _service() -> ServiceSide:
    from smartfeeds.features.callbacks.metrics import CallbackReading

    return ServiceSide(metrics=(CallbackReading,))


def _run(host: Host) -> Running:
    from smartfeeds.features.callbacks.setup import run_callbacks

    return run_callbacks(host)


CALLBACKS = Feature(
    "callbacks",
    settings=_settings,
    store=_store,
    service=_service,
    run=_run,
)
