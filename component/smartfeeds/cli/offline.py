"""The service over its store, without a server: what commands work on. A running service sees what they change."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from smartfeeds.cli.common import config_file, read_settings
from smartfeeds.config import STORE_URL
from smartfeeds.console import err
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.errors import ConfigError
from smartfeeds.opening import open_service
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import OpenMode


@asynccontextmanager
async def open_offline(config: Path | None, mode: OpenMode = OpenMode.READ) -> AsyncIterator[FeedService]:
    """The service of the configuration with its store open; the operator acts as the component and may do everything.

    `mode` is what the command may do to the database. Raises ConfigError, StoreError.
    """
    settings = read_settings(config)
    path = settings.store.path
    if config_file(config) is None or STORE_URL in os.environ:
        err.print(f"smartfeeds: using the database {path.absolute()}", markup=False)
    service = open_service(settings, on_change=lambda _nodes: None, mode=mode)
    policy = service.policy
    service.policy = replace(policy, admins=policy.admins | {policy.domain})
    await service.store.open()
    try:
        yield service
    finally:
        await service.store.close()


def operator(service: FeedService) -> Jid:
    """Who acts when nobody else is named."""
    return Jid("", service.policy.domain)


def named_or_admin(config: Path | None, text: str | None) -> str | None:
    """The bare JID that was named, else the first of pubsub.admins, else None. Raises ConfigError."""
    return text or next(iter(read_settings(config).pubsub.admins), None)


def actor_of(service: FeedService, text: str | None) -> Jid:
    """The bare JID that `--owner` or `--publisher` names, else the operator. Raises ConfigError."""
    if text is None:
        return operator(service)
    jid = parse_jid(text)
    if jid is None or jid.resource:
        raise ConfigError(f"{text!r} is not a bare JID such as alice@example.org")
    return jid
