"""What both kinds of incoming mirrors do: make the node, believe or not, and count what became of items."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.mirror import Half, Mirror, Refusal, refusal
from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import KIND
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.merging import Result
from smartfeeds.service.nodes import add_node
from smartfeeds.sources.mirror_state import Change, Keeper
from smartfeeds.store.base import WriteTx
from smartfeeds.sync.merging import Outcome

BATCH: Final = 100  # changes that one transaction takes over


async def ensure_node(service: FeedService, mirror: Mirror, keeper: Keeper) -> None:
    """Makes the node of a mirror where it is missing, which is then to be filled from the beginning.

    Raises FeedError, StoreError.
    """
    if await service.read(lambda tx, _context: tx.node(mirror.node) is not None):
        return
    owner = parse_jid(mirror.owner) if mirror.owner else None

    def work(tx: WriteTx, context: Context) -> tuple[None, Change]:
        if tx.node(mirror.node) is not None:
            return None, lambda half: half
        actor = owner or Jid("", context.policy.domain)
        add_node(tx, context, actor, mirror.node, {KIND: (NodeKind.FEED.value,)}, trusted=True)
        return None, lambda half: replace(half, position="", filling=True)

    await keeper.write(work)


def believes(mirror: Mirror, half: Half) -> bool:
    """Whether histories may name edits made here that are not known here (A-61).

    A node that was deleted here and is filled for the first time again has forgotten all of them.
    """
    return mirror.own_edits or half.filling


def counted_results(
    half: Half, results: Sequence[Result], refused: Sequence[Refusal], now_us: int, *, once: bool = False
) -> Half:
    """The state with what a merge did; `once` is that of `Half.refuse`."""
    outcomes = [result.outcome for result in results]
    late = [refusal(one.item_id or one.sync_id, one.reason, now_us) for one in results if one.outcome is None]
    changed = sum(outcome not in (None, Outcome.UNCHANGED) for outcome in outcomes)
    conflicts = outcomes.count(Outcome.CONFLICT)
    half = replace(half, items=half.items + changed, conflicts=half.conflicts + conflicts)
    return half.refuse((*refused, *late), once=once)
