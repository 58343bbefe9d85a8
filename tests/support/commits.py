"""Watches the commits of a service: what happens after each of them."""

from collections.abc import Callable

import pytest

from smartfeeds.service.feeds import _Write


def watch_commits(monkeypatch: pytest.MonkeyPatch, watcher: Callable[[], object]) -> None:
    """Calls a function after each commit of a use case."""
    committed = _Write.committed

    def watched(write: _Write) -> None:
        committed(write)
        watcher()

    monkeypatch.setattr(_Write, "committed", watched)
