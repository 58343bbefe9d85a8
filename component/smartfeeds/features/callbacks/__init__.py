"""Callbacks: addresses that get changes by HTTP, and the consumers that call them. WebSub and rssCloud use it."""

from smartfeeds.app.feature import Feature, Section


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.callbacks.settings import WebhooksSettings

    return (Section("webhooks", WebhooksSettings),)


CALLBACKS = Feature("callbacks", settings=_settings)
