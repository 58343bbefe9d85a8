"""The end of subscriptions with a lease (XEP-0060 12.19)."""

from collections.abc import Sequence

from smartfeeds.core.model import SubscriptionState
from smartfeeds.service.context import Context
from smartfeeds.service.steps import MoreSteps, WriteStep
from smartfeeds.service.subscription_states import change_state
from smartfeeds.store.base import ReadTx, WriteTx

STEP = 100  # subscriptions that one transaction ends: some 5 ms


def due_leases(tx: ReadTx, context: Context, _after: int) -> tuple[Sequence[WriteStep[None]], None]:
    """Returns `end_leases` if a lease has ended. A read costs less than an empty transaction."""
    return ([end_leases] if tx.ended_leases(context.now_us, 1) else []), None


def end_leases(tx: WriteTx, context: Context) -> MoreSteps[None] | None:
    """Ends the next subscriptions whose lease is over, and notifies the subscribers."""
    subscriptions = tx.ended_leases(context.now_us, STEP)
    for subscription in subscriptions:
        change_state(tx, context, subscription, SubscriptionState.NONE)
    return MoreSteps(end_leases) if len(subscriptions) == STEP else None
