"""Callbacks: addresses that get changes by HTTP, and the consumers that call them. WebSub and rssCloud use it."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Section

if TYPE_CHECKING:
    from smartfeeds.store.row_readers import RowReader


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.callbacks.settings import WebhooksSettings

    return (Section("webhooks", WebhooksSettings),)


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.callbacks.rows import to_sound_callback
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.store.sql_tables import CALLBACK

    return (RowReader(CALLBACK, "callback_no", CALLBACK.columns, to_sound_callback),)


def _metrics() -> tuple[type, ...]:
    from smartfeeds.features.callbacks.metrics import CallbackReading

    return (CallbackReading,)


CALLBACKS = Feature("callbacks", settings=_settings, metrics=_metrics, row_readers=_row_readers)
