"""The lists of addresses that may not use the service, or that only may use it (XEP-0133 4.10 and 4.11; OPS-061).

Every request of a user passes `service.context.check_admitted`, and so do tokens, sessions, chat and callbacks. A
subscriber who may not use the service receives no notifications.
"""

from collections.abc import Collection
from dataclasses import dataclass

from smartfeeds.core.blocklist import DIGEST_PREFIX, ListKind, list_entry
from smartfeeds.core.person import Person
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.privacy import rows
from smartfeeds.service.context import Context
from smartfeeds.service.requests import Answer, EmptyResult, Request
from smartfeeds.service.standing import check_admin
from smartfeeds.store.base import ReadTx, WriteTx


@dataclass(frozen=True, slots=True)
class GetBlockList(Request):
    """One of the two lists."""

    kind: ListKind


@dataclass(frozen=True, slots=True)
class SetBlockList(Request):
    """Replaces one of the two lists. Entries of erased persons stay."""

    kind: ListKind
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BlockList(Answer):
    """The entries of a list, and the number of those of erased persons, who have no name any more."""

    names: tuple[str, ...]
    nameless: int


def get_block_list(tx: ReadTx, context: Context, request: GetBlockList) -> BlockList:
    """Returns a list, for admins."""
    check_admin(context.policy, request.actor)
    return read_list(tx, request.kind)


def set_block_list(tx: WriteTx, context: Context, request: SetBlockList) -> EmptyResult:
    """Replaces a list, for admins. Raises FeedError(JID_MALFORMED)."""
    check_admin(context.policy, request.actor)
    names = {_entry(text) for text in request.names}
    present = set(read_list(tx, request.kind).names)
    rows.remove_blocks(tx, request.kind, present - names)
    add_entries(tx, context, request.kind, names - present)
    return EmptyResult()


def read_list(tx: ReadTx, kind: ListKind) -> BlockList:
    """Returns a list."""
    entries = rows.blocks(tx, kind)
    names = tuple(name for name in entries if not name.startswith(DIGEST_PREFIX))
    return BlockList(names, len(entries) - len(names))


def add_entries(tx: WriteTx, _context: Context, kind: ListKind, names: Collection[str]) -> None:
    """Adds entries in the form of `list_entry`. The subscriptions of JIDs that are denied end."""
    rows.add_blocks(tx, kind, names)
    if kind is ListKind.DENY:
        for name in names:
            # In parts, because a JID may have any number of subscriptions.
            while sub_nos := rows.subscription_nos(tx, name, 500):
                for sub_no in sub_nos:
                    tx.remove_subscription(sub_no)


def remove_entry(tx: WriteTx, kind: ListKind, name: str) -> bool:
    """Removes an entry in the form of `list_entry`, also if it was hidden by the erasure of the person. Returns whether
    the list had it."""
    names, salt = {name}, tx.person_salt()
    if salt and "@" in name:
        names.add(f"{DIGEST_PREFIX}{Person(name).digest(salt).hex()}")
    present = names & set(rows.blocks(tx, kind))
    if present:
        rows.remove_blocks(tx, kind, present)
    return bool(present)


def _entry(text: str) -> str:
    try:
        return list_entry(text)
    except ConfigError as error:
        raise FeedError(Condition.JID_MALFORMED, str(error)) from None
