"""The pages on which people follow blogs: an address, what they follow, and lists of other readers."""

from typing import TYPE_CHECKING

from smartfeeds.app.feature import Feature, Host, Running, StoreSide

if TYPE_CHECKING:
    from smartfeeds.features.following.pages import FollowPages
    from smartfeeds.http.side import HttpSide


def _store() -> StoreSide:
    from smartfeeds.features.following.entries import USE_CASES

    return StoreSide(use_cases=USE_CASES)


def _http() -> "HttpSide[FollowPages]":
    from smartfeeds.features.following.pages import HTTP

    return HTTP


def _run(host: Host) -> Running:
    if not host.settings.http.listen:
        return Running()
    from smartfeeds.features.following.pages import PLACES, feed_controls
    from smartfeeds.features.following.waiting import NewsWaiters

    http = host.settings.http
    waiters = NewsWaiters(host.service, host.changes, min(http.poll_default_s, http.poll_max_s))
    controls = feed_controls(host.handle, host.settings.component.jid)
    return Running(parts=(PLACES, controls, waiters), stop=waiters.stop)


FOLLOWING = Feature(
    "following",
    needs=("pages", "polling"),
    store=_store,
    http=_http,
    run=_run,
)
