"""Administration of mirrors by requests: owners list the mirrors of their nodes, admins change all mirrors."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors import statuses as mirrors
from smartfeeds.features.mirrors.mirror import Mirror
from smartfeeds.features.mirrors.statuses import MirrorStatus, mirror_status
from smartfeeds.service.context import Context
from smartfeeds.service.paged_lists import listed_bytes, listing_of, page_of
from smartfeeds.service.requests import Answer, Request
from smartfeeds.service.resources import ListAnswer, ListRequest
from smartfeeds.service.standing import check_admin, manages
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx


@dataclass(frozen=True, slots=True)
class AddMirror(Request):
    """Adds a mirror."""

    mirror: Mirror


@dataclass(frozen=True, slots=True)
class MirrorNamed(Answer):
    """The name of a mirror, and its local node."""

    name: str
    node: str


@dataclass(frozen=True, slots=True)
class ListMirrors(ListRequest):
    """The mirrors with their state by name, those of its nodes for an owner."""


@dataclass(frozen=True, slots=True)
class RemoveMirror(Request):
    """Removes a mirror."""

    name: str


@dataclass(frozen=True, slots=True)
class RestartMirror(Request):
    """Makes a mirror read and send everything again."""

    name: str


def list_mirrors(tx: ReadTx, context: Context, request: ListMirrors) -> ListAnswer[MirrorStatus]:
    """Mirrors with their state. The cost grows with the items that the mirrors of the page have still to send."""
    mirrors_by_name = stored_mirrors.mirrors(tx)
    rows = [row for row in mirrors_by_name if manages(tx, context, request.actor, tx.node(row.mirror.node))]
    listing = listing_of(rows, lambda row: listed_bytes(row.mirror.node, row.mirror.address))
    page_rows, result_set = page_of(listing, request.page, context.policy)
    return ListAnswer(tuple(mirror_status(tx, context, row) for row in page_rows), result_set)


def add_mirror(tx: WriteTx, context: Context, request: AddMirror) -> MirrorNamed:
    """Adds a mirror. Raises FeedError: FORBIDDEN, NOT_ACCEPTABLE if its name is in use, or its feed has one."""
    return _change(context, request, partial(mirrors.add_mirror, tx, context, request.mirror))


def remove_mirror(tx: WriteTx, context: Context, request: RemoveMirror) -> MirrorNamed:
    """Removes a mirror. Raises FeedError: FORBIDDEN, NOT_ACCEPTABLE if it is unknown or configured."""
    return _change(context, request, partial(mirrors.remove_mirror, tx, context, request.name))


def restart_mirror(tx: WriteTx, context: Context, request: RestartMirror) -> MirrorNamed:
    """Restarts a mirror. Raises FeedError: FORBIDDEN, NOT_ACCEPTABLE if it is unknown."""
    return _change(context, request, partial(mirrors.restart_mirror, tx, context, request.name))


def _change(context: Context, request: Request, work: Callable[[], Mirror]) -> MirrorNamed:
    """Runs work of an admin that raises ConfigError for settings that the admin may correct."""
    check_admin(context.policy, request.actor)
    try:
        mirror = work()
    except ConfigError as error:
        raise FeedError(Condition.NOT_ACCEPTABLE, str(error)) from None
    return MirrorNamed(mirror.name, mirror.node)


USE_CASES: Final = UseCases(
    reads={ListMirrors: ("list_mirrors", list_mirrors)},
    writes={
        AddMirror: ("add_mirror", add_mirror),
        RemoveMirror: ("remove_mirror", remove_mirror),
        RestartMirror: ("restart_mirror", restart_mirror),
    },
)
