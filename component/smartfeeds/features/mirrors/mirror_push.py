"""Subscriptions of mirrors at hubs. They are rows like those of sources, with a number that no source has."""

from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling import push_states as state
from smartfeeds.features.polling.push_states import FOLLOWING, OVER, PushState, SourcePush, mirror_source_no
from smartfeeds.features.polling.source_push import PolledOffer, begin_push
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx


def follow_offer(tx: WriteTx, context: Context, mirror: str, polled: PolledOffer, *, has_news: bool) -> bool:
    """Applies a reading of the feed of a mirror to its subscription, and begins one at a hub that the feed names.

    Returns whether the feed is to be read again in a minute, as after a poll of a source (RC-073, RC-075).
    """
    source_no = mirror_source_no(mirror)
    offer, is_followed, is_again = polled.offer, False, False
    for row in source_push_rows.pushes_of(tx, source_no):
        if row.state not in FOLLOWING:
            continue
        push, is_hinted = state.after_poll(row, polled.began_us, has_news=has_news)
        is_again = is_again or is_hinted
        if offer is not None:
            push = state.offered(push, offer)
            if push.absences > 1 and not offer.targets:
                push = state.left(push, "the feed does not name it any more", context.now_us)
        is_followed = is_followed or (push.state in FOLLOWING and push.absences == 0)
        if push != row:
            source_push_rows.put(tx, push)
    if not is_followed and offer is not None and offer.targets:
        begin_push(tx, source_no, offer, polled, context.now_us, mirror)
    return is_again


def find_mirror_push(tx: ReadTx, _context: Context, mirror: str) -> SourcePush | None:
    """The subscription of a mirror: the active one, else the newest that it wants."""
    rows = [push for push in source_push_rows.pushes_of(tx, mirror_source_no(mirror)) if push.state in FOLLOWING]
    active = [push for push in rows if push.state is PushState.ACTIVE]
    return next(reversed(active or rows), None)


def leave_hub(tx: WriteTx, context: Context, mirror: str) -> None:
    """Ends the subscription of a mirror."""
    for push in source_push_rows.pushes_of(tx, mirror_source_no(mirror)):
        if push.state not in OVER:
            source_push_rows.put(tx, state.left(push, "the mirror does not follow it any more", context.now_us))
