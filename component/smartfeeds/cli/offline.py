"""Opens the service on its database without a server, for commands. A running service sees the changes of a command."""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from smartfeeds.cli.common import config_file, load_settings, read_settings
from smartfeeds.console import print_err, run_async
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import NO_LIMIT
from smartfeeds.core.nearest import did_you_mean
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.store.base import OpenMode

if TYPE_CHECKING:
    from smartfeeds.service.context import Context
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.store.base import ReadTx, WriteTx

T = TypeVar("T")

PAGE_ROWS = 500  # of one transaction of `read_pages`


@asynccontextmanager
async def open_offline(config: Path | None, mode: OpenMode = OpenMode.READ) -> "AsyncIterator[FeedService]":
    """Yield the service of the configuration with an open database. The operator acts as the component and may do
    everything.

    `mode` says what the command may do to the database. Raises ConfigError, StoreError.
    """
    # Here, because help texts and the completion of shells need no store.
    import structlog

    from smartfeeds.app.config import STORE_URL
    from smartfeeds.app.opening import open_service

    if not structlog.is_configured():
        # Standard output is for the result of the command, such as a document.
        structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    settings = read_settings(config)
    # Neither the command line nor the file names this database, so the user may mean another one.
    if config_file(config) is None or STORE_URL in os.environ:
        print_err(f"smartfeeds: using the database {settings.store.address.name}")
    service = open_service(settings, on_change=lambda _nodes: None, mode=mode)
    policy = service.policy
    service.policy = replace(policy, admins=policy.admins | {policy.domain})
    await service.store.open()
    try:
        yield service
    except FeedError as error:
        raise await _with_suggestion(service, error) from None
    finally:
        await service.store.close()


async def _with_suggestion(service: "FeedService", error: FeedError) -> FeedError:
    """Return the error of a request, with the node that was probably meant if the command names one that is missing."""
    command = click.get_current_context(silent=True)
    name = command.params.get("node") if command is not None else None
    if error.condition is not Condition.ITEM_NOT_FOUND or not isinstance(name, str):
        return error
    names = await service.read(lambda tx, _context: _names_without(tx, name))
    return (
        error
        if names is None
        else FeedError(error.condition, f"no such node: {name}{did_you_mean(name.partition('?')[0], names)}")
    )


def _names_without(tx: "ReadTx", name: str) -> list[str] | None:
    """Return the names of all nodes, None if a node or a view has this name."""
    from smartfeeds.service.context import find

    try:
        is_known = find(tx, name) is not None
    except FeedError:  # the feed exists, and its view does not
        is_known = True
    return None if is_known else [node.name for node in tx.nodes("", NO_LIMIT)]


def run_offline(
    config: Path | None, work: "Callable[[FeedService], Awaitable[T]]", mode: OpenMode = OpenMode.READ
) -> T:
    """Return the result of work with the service of `open_offline`."""

    async def run() -> T:
        async with open_offline(config, mode) as service:
            return await work(service)

    return run_async(run())


def read_offline(config: Path | None, work: "Callable[[ReadTx, Context], T]") -> T:
    """Return the result of a read on the database of the configuration."""
    return run_offline(config, lambda service: service.read(work))


def read_pages(
    config: Path | None, page: "Callable[[ReadTx, Context, int, int], list[T]]", number: Callable[[T], int]
) -> list[T]:
    """Return all rows that `page` returns behind a number, at most so many at a time.

    Each page is a transaction: a long read would let the WAL file of a running service grow.
    """

    async def read(service: "FeedService") -> list[T]:
        rows: list[T] = []
        while more := await service.read(
            lambda tx, context: page(tx, context, number(rows[-1]) if rows else 0, PAGE_ROWS)  # noqa: B023 - run here
        ):
            rows += more
        return rows

    return run_offline(config, read)


def write_offline(config: Path | None, work: "Callable[[WriteTx, Context], T]", mode: OpenMode = OpenMode.WRITE) -> T:
    """Return the result of a write to the database of the configuration."""
    return run_offline(config, lambda service: service.write(work), mode)


def operator(service: "FeedService") -> Jid:
    """Return the JID that acts if no other is named."""
    return Jid("", service.policy.domain)


def named_or_admin(config: Path | None, text: str | None) -> str | None:
    """Return the JID that was named, else the first of pubsub.admins, else None. Raises ConfigError."""
    return text or next(iter(load_settings(config).pubsub.admins), None)


def actor_of(service: "FeedService", text: str | None) -> Jid:
    """Return the bare JID that `--owner` or `--publisher` names, else the operator. Raises ConfigError."""
    if text is None:
        return operator(service)
    jid = parse_jid(text)
    if jid is None or jid.resource:
        raise ConfigError(f"{text!r} is not a bare JID such as alice@example.org")
    return jid


def act_as(service: "FeedService", text: str | None) -> Jid:
    """Return the bare JID that acts, as `actor_of`. The choice of the operator overrides the rights on nodes."""
    actor = actor_of(service, text)
    service.policy = replace(service.policy, admins=service.policy.admins | {str(actor)})
    return actor
